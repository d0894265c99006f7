//! What one client, one feed and one peer may have at a time.

use super::*;
use crate::admission::{Work, WorkKind};
use tokio::task::JoinHandle;

fn of(client: Client, path: &str) -> Request<Body> {
    with_extension(request("GET", path, &[], ""), client)
}

/// A site whose feed `news` is large, and whose reads wait for the guard.
fn large() -> (Arc<Site>, impl Sized) {
    let site = Site::new();
    site.store.edit("news", |feed| (feed.state.current, feed.state.living) = (145_000, 145_000));
    let held = site.store.hold_feed(&name("news"));
    (Arc::new(site), held)
}

async fn reads(site: &Site, number: usize) {
    let waiting = || site.store.waiting(&name("news"));
    while waiting() < number {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Whoever could have begun by now has.
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(waiting(), number);
}

/// Asks for a path of the site in a task of its own; answers the status.
fn spawn_ask(site: &Arc<Site>, from: u8, path: String) -> JoinHandle<u16> {
    let site = Arc::clone(site);
    tokio::spawn(async move { site.ask(of(client(from), &path)).await.status().as_u16() })
}

/// All of these are answered once nothing is held.
async fn are_answered(asked: Vec<JoinHandle<u16>>) {
    for answer in asked {
        assert_eq!(answer.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn who_walks_through_the_forms_of_a_large_feed_holds_up_nobody() {
    let (site, held) = large();
    let mut asked = Vec::new();
    for form in ["as=rss", "as=jsonfeed", "as=pox", "sx=feedsync", "sx=sse-0.91"] {
        for view in ["", "/complete", "/sync"] {
            asked.push(spawn_ask(&site, 1, format!("/feeds/news{view}?{form}")));
        }
    }
    reads(&site, 1).await;
    // A second client of the same feed waits as well, of another feed it does not.
    asked.push(spawn_ask(&site, 2, "/feeds/news".to_owned()));
    reads(&site, 1).await;
    assert_eq!(spawn_ask(&site, 2, "/feeds/radio".to_owned()).await.unwrap(), 200);
    drop(held);
    are_answered(asked).await;
}

/// The views that tell deletions look into the ledger, however little they show.
#[tokio::test]
async fn the_ledger_counts_where_it_is_read() {
    let (site, held) = large();
    site.store.edit("news", |feed| (feed.state.current, feed.state.tombstones) = (2, 1));
    drop(held);
    // What it weighs is known from here on, and is next to nothing.
    assert_eq!(site.ask(of(client(1), "/feeds/news")).await.status(), 200);
    let held = site.store.hold_feed(&name("news"));
    let paths = [(2, "/feeds/news?sx=feedsync"), (3, "/feeds/news?sx=sse-0.91")];
    let asked = paths.map(|(from, path)| spawn_ask(&site, from, path.to_owned())).into();
    reads(&site, 1).await;
    drop(held);
    are_answered(asked).await;
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_turn_in_time_is_told_to_come_back() {
    let (site, _held) = large();
    let asked = spawn_ask(&site, 1, "/feeds/news/complete".to_owned());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let answer = site.ask(of(client(1), "/feeds/news/sync?sx=feedsync")).await;
    assert_eq!(header(&answer, "retry-after"), "30");
    problem(answer, 503).await;
    asked.abort();
}

#[tokio::test]
async fn the_dashboard_is_made_again_once_a_feed_stands_otherwise() {
    let site = Site::new();
    // Of each feed that it shows the events are read.
    let reads = || site.store.take_reads("events").len();
    let page = async || site.text("/").await;
    page().await;
    assert_eq!(reads(), 3);
    page().await;
    assert_eq!(reads(), 0, "it is the page of before");
    let fails = PollStatus { failures: 17, ..polling() };
    site.polling.tell(&record("news", FeedStanding::Active), fails);
    assert!(page().await.contains("17 in a row"));
    site.store.edit("radio", |feed| feed.state.living = 99);
    assert!(page().await.contains("99 kept"));
    site.store.set_record(&record("added", FeedStanding::Active));
    assert!(page().await.contains("/feeds/added/about"));
}

const LIST: &str = "/subscriptions.opml";

#[tokio::test]
async fn the_list_of_subscriptions_is_made_once_until_it_says_something_else() {
    let site = Site::new();
    let list = async || site.text(LIST).await;
    list().await;
    // A change that it does not tell of leaves it as it is.
    site.store.edit("news", |feed| feed.state.living = 99);
    list().await;
    assert_eq!(site.room.metrics.misses.get(), 1);
    let address = "https://new.example/";
    site.store.edit("news", |feed| feed.state.site = Some(address.to_owned()));
    assert!(list().await.contains(address));
    site.store.set_record(&record("added", FeedStanding::Active));
    assert!(list().await.contains("/feeds/added"));
    // An answer of 304 is made of the same.
    let fresh = site.get(LIST).await;
    let known = [("if-none-match", header(&fresh, "etag"))];
    assert_eq!(site.get_with(LIST, &known).await.status(), 304);
    assert_eq!(site.room.metrics.misses.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_list_of_subscriptions_is_admitted_first() {
    let site = Site::new();
    let work = Work::of_all(WorkKind::Subscriptions);
    let mut held = Vec::new();
    while let Ok(admitted) = site.room.admission.admit(client(1), &work, 1).await {
        held.push(admitted);
    }
    for query in ["", "?upstream=1", "?since=2006-01-06T19:24:09Z"] {
        problem(site.ask(of(client(1), &format!("{LIST}{query}"))).await, 503).await;
    }
    drop(held);
    assert_eq!(site.ask(of(client(1), LIST)).await.status(), 200);
}

#[tokio::test]
async fn conflicts_are_told_once_for_each_revision_and_without_the_ledger() {
    let site = Site::new();
    site.store.edit("news", |feed| {
        let item = &mut feed.items[3];
        item.shared.conflicts = vec![item.shared.winner.clone()];
    });
    let json = [("accept", "application/json")];
    for _ in 0..5 {
        assert_eq!(site.get("/feeds/news/conflicts").await.status(), 200);
        assert_eq!(site.get_with("/feeds/news/conflicts", &json).await.status(), 200);
        assert_eq!(site.call("GET", "/feeds/news/conflicts", "").await.status(), 200);
    }
    assert_eq!(site.store.reads_of("texts"), 2, "once for people and once as data");
    assert_eq!(site.store.reads_of("unsettled"), 0);
    site.store.edit("news", |_| {});
    assert_eq!(site.get("/feeds/news/conflicts").await.status(), 200);
    assert_eq!(site.store.reads_of("texts"), 3);
}

#[tokio::test]
async fn the_page_about_a_feed_is_made_once() {
    let site = Site::new();
    // Nothing waits in it.
    site.store.edit("news", |feed| feed.state.next_decision_at = None);
    let first = site.text("/feeds/news/about").await;
    let snapshots = site.store.reads_of("unsettled");
    assert_eq!(snapshots, 1, "the ledger is read once");
    for _ in 0..5 {
        assert_eq!(site.text("/feeds/news/about").await, first);
    }
    assert_eq!(site.store.reads_of("unsettled"), snapshots);
}
