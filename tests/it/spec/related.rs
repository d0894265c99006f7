//! `sx:related` as the gateway writes it (SSE 1.0 section 2.3; READINGS 1, row 30).

use super::support::{Gate, addresses, page, post};
use tidegate_format::render::{self, Addresses, Container, Dialect, Page, ViewKind};
use tidegate_store::Select;
use url::Url;

/// The values of `link` in everything that names a related feed.
fn links(text: &str, container: Container) -> Vec<String> {
    if container == Container::Json {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        let related = value["sharing"]["related"].as_array().unwrap();
        return related.iter().map(|one| one["link"].as_str().unwrap().to_owned()).collect();
    }
    let tags = text.split(":related ").skip(1);
    let link = |tag: &str| tag.split_once("link=\"")?.1.split_once('"').map(|(l, _)| l.to_owned());
    tags.map(|tag| link(tag).unwrap()).collect()
}

#[tokio::test]
async fn links_to_related_feeds_are_absolute() {
    let mut gate = Gate::new().await;
    gate.posts(&[post(1), post(2)]).await;
    let view = gate.store.view(&gate.feed, Select::All).await.unwrap().unwrap();
    let addresses = Addresses {
        aggregated: vec![("Other".into(), "https://gate.example/feeds/other/sync".into())],
        ..addresses("https://gate.example/feeds/news")
    };
    for container in [Container::Atom, Container::Rss, Container::Pox, Container::Json] {
        for dialect in [Dialect::Sse, Dialect::FeedSync, Dialect::Sse091] {
            let text = render::document(&Page {
                kind: ViewKind::Sync,
                container,
                dialect,
                since: view.state.tick,
                until: view.state.tick,
                ..page(&view, &addresses)
            });
            let links = links(&text, container);
            let wanted = [&*addresses.complete, &*addresses.aggregated[0].1];
            assert_eq!(links, wanted, "{container:?} {dialect:?}: {text}");
            for link in links {
                assert!(Url::parse(&link).is_ok_and(|url| url.fragment().is_none()), "{link}");
            }
        }
    }
}
