//! What a document whose publisher shares its items leads to: its complete feed, and items in this gateway's name.

use super::*;
use tidegate_core::model::{FeedState, Format, SyncId};
use tidegate_net::fetch::{FetchAnswer, LeadScope};
use url::Url;

const COMPLETE: &str = "http://news.example/all";

/// A document of shared items, each with its name and who made it.
fn document(sharing: &str, items: &[(&str, &str)]) -> FetchAnswer {
    let entry = |(id, by): &(&str, &str)| {
        format!(
            "<entry><sx:sync id=\"{id}\" updates=\"1\"><sx:history sequence=\"1\" \
             when=\"2026-01-01T00:00:00Z\" by=\"{by}\"/></sx:sync><id>urn:{id}</id>\
             <title>{id}</title><updated>2026-01-01T00:00:00Z</updated></entry>"
        )
    };
    whole_document(format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:sx=\"http://www.microsoft.com/schemas/sse\">\
         <title>List</title><id>urn:list</id><updated>2026-01-01T00:00:00Z</updated>{sharing}{}</feed>",
        items.iter().map(entry).collect::<String>()
    ))
}

/// Polls `news`, whose document names [`COMPLETE`] and lists `items` of it.
async fn poll(
    store: &Arc<ScriptedStore>,
    items: &'static [(&str, &str)],
    complete: Result<&'static [(&str, &str)], FetchError>,
) -> Gateway {
    let publisher = Publisher::new("");
    let services = publisher.services_by(move |publisher, request| {
        publisher.asked.lock().unwrap().push(request.clone());
        let answer = match (request.url == COMPLETE, &complete) {
            (false, _) => {
                let link = COMPLETE.replace("//", "//me:secret@");
                let since = "since=\"2026-01-01T00:00:00Z\" until=\"2026-02-01T00:00:00Z\"";
                let related = format!("<sx:related link=\"{link}\" type=\"complete\"/>");
                document(&format!("<sx:sharing {since}>{related}</sx:sharing>"), items)
            }
            (true, Ok(items)) => document("", items),
            (true, Err(error)) => return Err(error.clone()),
        };
        Ok(fetched(&request.url, answer))
    });
    let gateway = Gateway::with_parts(store, &publisher, services, NOW, without_pauses).await;
    gateway.polls("news", 1).await;
    gateway
}

fn asked(gateway: &Gateway) -> Vec<String> {
    gateway.publisher.asked.lock().unwrap().iter().map(|request| request.url.clone()).collect()
}

const NEW: &[(&str, &str)] = &[("b", "them")];
const ALL: &[(&str, &str)] = &[("a", "them"), ("b", "them")];

#[tokio::test]
async fn the_complete_feed_is_read_before_a_document_is_judged_for_the_first_time() {
    let feed = record("news").url;
    let gateway = poll(&store_of(&["news"]), NEW, Ok(ALL)).await;
    let status = gateway.status();
    assert_eq!(status.polls[0].counts.get(&EventKind::Created), Some(&2), "{status:?}");
    assert_eq!(status.document.unwrap().warnings, [""; 0]);
    // A document chooses no identity, and leads no further than its own feed.
    assert_eq!(asked(&gateway), [&*feed, COMPLETE]);
    let named = LeadScope::Places(vec![Url::parse(&feed).unwrap()]);
    assert_eq!(gateway.publisher.asked.lock().unwrap()[1].leads, named);
    gateway.poll().await;
    assert_eq!(asked(&gateway), [&*feed, COMPLETE, &*feed], "once");
}

#[tokio::test]
async fn a_complete_feed_that_cannot_be_read_is_asked_for_again_once_its_host_allows() {
    let busy = status_error(503, Some(Duration::from_secs(60)));
    let gateway = poll(&store_of(&["news"]), NEW, Err(busy)).await;
    let failed = "the complete feed that it names could not be read, and is asked for again: ";
    for why in ["the publisher answered 503", "its host asked for a pause (Retry-After), "] {
        let status = gateway.status();
        assert_eq!(status.failures, 0, "the document itself was read");
        let warnings = status.document.unwrap().warnings;
        assert!(warnings[0].starts_with(&format!("{failed}{why}")), "{warnings:?}");
        gateway.poll().await;
    }
    assert_eq!(asked(&gateway).iter().filter(|url| *url == COMPLETE).count(), 1);
}

/// An item in our name is ours only if we made so many updates of it, in this feed before it was purged or in others.
#[tokio::test]
async fn an_item_in_the_name_of_this_gateway_is_looked_up() {
    for (updates_before, is_ours) in [(0, false), (1, true)] {
        let store = store_of(&["news", "other"]);
        let state = FeedState { updates_before, ..FeedState::untouched(Format::Atom10, NOW) };
        store.set_state(&name("news"), state, None);
        let gateway = poll(&store, &[("here.x", "here")], Ok(&[("here.x", "here")])).await;
        let status = gateway.status();
        assert_eq!(status.polls[0].counts.get(&EventKind::Created), Some(&1), "{status:?}");
        let stored = store.item(&name("news"), &SyncId::new("here.x").unwrap()).await.unwrap();
        assert_eq!(stored.is_some(), is_ours);
    }
}
