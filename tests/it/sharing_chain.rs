//! Gateways in a row, each in front of the next: what the first one makes of a plain feed passes
//! through untouched, ids, histories and tombstones.

use crate::support::gateways;

use axum::response::IntoResponse;
use gateways::{gateway, name, poll};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::app::Gateway;
use tidegate_core::model::{Count, History, Item, ItemStatus, Origin};
use tidegate_store::Select;

/// A publisher of one plain feed, which lists everything.
struct Publisher {
    posts: Arc<Mutex<Vec<(u32, String)>>>,
    port: u16,
}

impl Publisher {
    async fn start() -> Self {
        let posts = Arc::new(Mutex::new(
            (1..=6).rev().map(|n| (n, format!("Text of post {n}"))).collect::<Vec<_>>(),
        ));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let held = Arc::clone(&posts);
        let app = axum::Router::new().fallback(move || {
            let posts = held.lock().unwrap().clone();
            async move {
                let mut xml = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title>\
                     <id>urn:news</id><updated>2026-01-01T00:00:00Z</updated>"
                    .to_owned();
                for (n, text) in posts {
                    xml.push_str(&format!(
                        "<entry><id>urn:post:{n}</id><title>Post {n}</title>\
                         <updated>2026-01-{n:02}T00:00:00Z</updated><content>{text}</content></entry>"
                    ));
                }
                ([("content-type", "application/atom+xml")], xml + "</feed>").into_response()
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { posts, port }
    }
}

/// What an item is to those who share it.
type Shared = (Count, bool, History, String, String);

async fn items(gateway: &Gateway) -> BTreeMap<String, Shared> {
    let Some(view) = gateway.store().view(&name(), Select::All).await.unwrap() else {
        return BTreeMap::new();
    };
    let said = |item: Item| {
        let winner = item.shared.winner;
        let said = (
            winner.updates,
            winner.deleted,
            winner.history,
            item.published_id,
            winner.data.card.title,
        );
        (winner.id.to_string(), said)
    };
    view.items.into_iter().map(said).collect()
}

async fn reader(gateway: &Gateway) -> Vec<String> {
    let view = gateway.store().view(&name(), Select::Current).await.unwrap().unwrap();
    view.items.into_iter().map(|item| item.published_id).collect()
}

async fn row(kind: &str) {
    let publisher = Publisher::start().await;
    let url = format!("http://127.0.0.1:{}/", publisher.port);
    let more = "complete = true\ndeletions = \"eager\"\n";
    let first = gateway("one.example", &url, more).await;
    let address = |gateway: &Gateway| format!("http://{}/feeds/news{kind}", gateway.address());
    poll(&first).await;
    let second = gateway("two.example", &address(&first), "").await;
    poll(&second).await;
    let third = gateway("three.example", &address(&second), "").await;
    poll(&third).await;
    let all = [&first, &second, &third];

    let origin = items(&first).await;
    assert_eq!(origin.len(), 6);
    assert!(origin.keys().all(|id| id.starts_with("one.example.")));
    for gateway in all {
        assert_eq!(items(gateway).await, origin);
    }
    let known = third.store().snapshot(&name()).await.unwrap().unwrap().known;
    assert!(known.iter().all(|known| known.origin == Origin::Upstream));

    // An edit, a deletion and a new post.
    {
        let mut posts = publisher.posts.lock().unwrap();
        posts[1].1 = "Another text".to_owned();
        posts.remove(3);
        posts.insert(0, (7, "Text of post 7".to_owned()));
    }
    for gateway in all {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        poll(gateway).await;
    }
    let origin = items(&first).await;
    assert_eq!(origin.values().filter(|said| said.1).count(), 1, "{origin:?}");
    for gateway in all {
        assert_eq!(items(gateway).await, origin, "{}", gateway.address());
        let readers = reader(gateway).await;
        assert!(!readers.contains(&"urn:post:3".to_owned()) && readers.len() == 6, "{readers:?}");
    }
    // What is at rest stays so: no version, no write.
    let before = states(&all).await;
    for _ in 0..5 {
        for gateway in all {
            poll(gateway).await;
        }
    }
    assert_eq!(states(&all).await, before);
    let dead = third.store().snapshot(&name()).await.unwrap().unwrap().known;
    let dead = dead.into_iter().find(|known| known.is_deleted()).unwrap();
    assert!(matches!(dead.standing, ItemStatus::Deleted { .. }));
    assert_eq!(dead.history.len(), 2, "nobody but the first gateway has its name in it");
    for gateway in [first, second, third] {
        gateway.stop().await.unwrap();
    }
}

async fn states(gateways: &[&Gateway]) -> Vec<tidegate_core::model::Revision> {
    let mut revisions = Vec::new();
    for gateway in gateways {
        revisions.push(gateway.store().state(&name()).await.unwrap().unwrap().revision);
    }
    revisions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_in_a_row_by_the_sync_view() {
    row("/sync").await;
}

/// The reader view has no tombstones: what it does not list any more is asked of the complete feed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_in_a_row_by_the_reader_view() {
    row("").await;
}

/// The complete feed of a publisher cannot be had at first: it is asked for again, though the
/// document that names it stays the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_complete_feed_that_fails_is_asked_for_again() {
    let entry = |id: &str| {
        format!(
            "<entry><sx:sync id=\"x.{id}\" updates=\"1\"><sx:history sequence=\"1\" by=\"REO\" \
             when=\"2026-01-01T00:00:00Z\"/></sx:sync><id>urn:{id}</id><title>{id}</title>\
             <updated>2026-01-01T00:00:00Z</updated></entry>"
        )
    };
    let document = |sharing: String, entries: String| {
        format!(
            "<feed xmlns=\"http://www.w3.org/2005/Atom\" \
             xmlns:sx=\"http://www.microsoft.com/schemas/sse\"><title>L</title><id>urn:l</id>\
             <updated>2026-01-01T00:00:00Z</updated>{sharing}{entries}</feed>"
        )
    };
    let fails = Arc::new(Mutex::new(true));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let all =
        document("<sx:sharing since=\"s0\" until=\"s5\"/>".to_owned(), entry("a") + &entry("b"));
    let related = format!("<sx:related link=\"http://127.0.0.1:{port}/all\" type=\"complete\"/>");
    let partial = document(
        format!("<sx:sharing since=\"s1\" until=\"s5\">{related}</sx:sharing>"),
        entry("a"),
    );
    let is_failing = Arc::clone(&fails);
    let app = axum::Router::new().fallback(move |uri: axum::http::Uri| {
        let text = if uri.path() == "/all" { all.clone() } else { partial.clone() };
        let fails = uri.path() == "/all" && *is_failing.lock().unwrap();
        async move {
            if fails {
                return axum::http::StatusCode::SERVICE_UNAVAILABLE.into_response();
            }
            ([("content-type", "application/atom+xml")], text).into_response()
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let gateway = gateway("one.example", &format!("http://127.0.0.1:{port}/partial"), "").await;
    poll(&gateway).await;
    assert_eq!(items(&gateway).await.len(), 1);
    *fails.lock().unwrap() = false;
    poll(&gateway).await;
    assert_eq!(items(&gateway).await.len(), 2);
    gateway.stop().await.unwrap();
}
