//! What one client, one feed and one peer may have at a time.

use super::*;
use crate::serve::client::Client;
use crate::serve::doors::STREAMS_AT_ONCE;
use http_body_util::BodyExt as _;
use std::sync::atomic::Ordering;

fn client(last: u8) -> Client {
    Client::at([192, 0, 2, last].into())
}

fn of(client: Client, path: &str) -> Request<Body> {
    let mut asked = request("GET", path, &[], "");
    asked.extensions_mut().insert(client);
    asked
}

/// A site whose feed `news` is large, and whose reads wait.
fn large() -> Arc<Site> {
    let mut store = TestStore::with_news();
    store.gate = tokio::sync::Semaphore::new(0);
    store.edit("news", |feed| (feed.state.current, feed.state.living) = (145_000, 145_000));
    Arc::new(Site::over(store))
}

async fn reads(site: &Site, number: usize) {
    while site.store.views.load(Ordering::SeqCst) < number {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Whoever could have begun by now has.
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(site.store.views.load(Ordering::SeqCst), number);
}

#[tokio::test]
async fn who_walks_through_the_forms_of_a_large_feed_holds_up_nobody() {
    let site = large();
    let mut asked = Vec::new();
    let ask = |client, path: &'static str| {
        let site = Arc::clone(&site);
        tokio::spawn(async move { site.ask(of(client, path)).await.status().as_u16() })
    };
    for form in ["as=rss", "as=jsonfeed", "as=pox", "sx=feedsync", "sx=sse-0.91"] {
        asked.push(ask(client(1), format!("/feeds/news?{form}").leak()));
        asked.push(ask(client(1), format!("/feeds/news/complete?{form}").leak()));
        asked.push(ask(client(1), format!("/feeds/news/sync?{form}").leak()));
    }
    reads(&site, 1).await;
    // A second client of the same feed waits as well, of another feed it does not.
    asked.push(ask(client(2), "/feeds/news"));
    reads(&site, 1).await;
    asked.push(ask(client(2), "/feeds/radio"));
    reads(&site, 2).await;
    site.store.gate.add_permits(100);
    for answer in asked {
        assert_eq!(answer.await.unwrap(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_turn_in_time_is_told_to_come_back() {
    let site = large();
    let held = {
        let site = Arc::clone(&site);
        tokio::spawn(async move { site.ask(of(client(1), "/feeds/news/complete")).await.status() })
    };
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let answer = site.ask(of(client(1), "/feeds/news/sync?sx=feedsync")).await;
    assert_eq!(header(&answer, "retry-after"), "30");
    problem(answer, 503).await;
    held.abort();
}

#[tokio::test]
async fn one_client_takes_not_every_stream_and_comes_back() {
    let site = Site::announcing();
    site.store.log.close(-10, &["news"]);
    let mut streams = Vec::new();
    for _ in 0..32 {
        streams.push(site.ask(of(client(1), "/events?after=0")).await.into_body());
    }
    assert_eq!(site.room.doors.open_streams(), 32);
    let full = site.ask(of(client(1), "/events?after=0")).await;
    assert_eq!((full.status().as_u16(), header(&full, "content-type")), (200, "text/event-stream"));
    let said = text(full).await;
    assert!(said.starts_with("retry: 20000\nid: 0\n: 32 event streams of your address"), "{said}");
    assert!(said.ends_with("\n\n"));
    assert_eq!(site.room.doors.open_streams(), 32);
    let mut other = site.ask(of(client(2), "/events?after=0")).await.into_body();
    let first = other.frame().await.unwrap().unwrap();
    assert!(first.data_ref().unwrap().starts_with(b"retry: 2000\n"));
    const { assert!(32 * 4 < STREAMS_AT_ONCE) };
}

#[tokio::test]
async fn the_page_about_a_feed_is_made_once() {
    let site = Site::new();
    let first = text(site.get("/feeds/news/about").await).await;
    let snapshots = site.store.snapshots.load(Ordering::SeqCst);
    assert_eq!(snapshots, 1, "the ledger is read once");
    for _ in 0..5 {
        assert_eq!(text(site.get("/feeds/news/about").await).await, first);
    }
    assert_eq!(site.store.snapshots.load(Ordering::SeqCst), snapshots);
}
