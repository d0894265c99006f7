use super::*;
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
    eventually(|| waiting() >= number).await;
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
    // The views that tell deletions look into the ledger, however little they show.
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

#[tokio::test]
async fn the_list_of_subscriptions_is_made_once_until_it_says_something_else() {
    let site = Site::new();
    let list = async || site.text("/subscriptions.opml").await;
    list().await;
    // A change that it does not tell of leaves it as it is.
    site.store.edit("news", |feed| feed.state.living = 99);
    list().await;
    assert_eq!(site.app.metrics.misses.get(), 1);
    let address = "https://new.example/";
    site.store.edit("news", |feed| feed.state.site = Some(address.to_owned()));
    assert!(list().await.contains(address));
    site.store.set_record(&record("added", FeedStanding::Active));
    assert!(list().await.contains("/feeds/added"));
    assert_eq!(site.app.metrics.misses.get(), 3);
    // A page is made once until its feed says something else: what is read for each, and how often. The
    // conflicts are told without the ledger.
    let json = ("accept", "application/json");
    let html = ("accept", "text/html");
    for (path, accept, class, reads) in [
        // Of each feed that it shows the events are read.
        ("/", html, "events", 3),
        ("/feeds/news/about", html, "unsettled", 1),
        ("/feeds/news/conflicts", html, "texts", 1),
        ("/feeds/news/conflicts", json, "texts", 1),
        ("/api/v1/feeds/news/conflicts", json, "texts", 1),
    ] {
        let site = Site::new();
        site.store.edit("news", |feed| {
            // Nothing waits in it.
            feed.state.next_decision_at = None;
            let item = &mut feed.items[3];
            item.shared.conflicts = vec![item.shared.winner.clone()];
        });
        let mut headers = vec![accept];
        headers.extend(path.starts_with("/api").then_some(BEARER));
        let ask = async || {
            let answer = site.get_with(path, &headers).await;
            assert_eq!(answer.status(), 200, "{path}");
            text(answer).await
        };
        let first = ask().await;
        for _ in 0..5 {
            assert_eq!(ask().await, first, "{path}");
        }
        assert_eq!(site.store.reads_of(class), reads, "{path}");
        assert!(class != "texts" || site.store.reads_of("unsettled") == 0, "{path}");
        site.store.edit("news", |feed| feed.state.living = 99);
        ask().await;
        assert_eq!(site.store.reads_of(class), 2 * reads, "{path}");
    }
    let site = Site::new();
    let page = async || site.text("/").await;
    page().await;
    let fails = PollStatus { failures: 17, ..polling() };
    site.polling.tell(&record("news", FeedStanding::Active), fails);
    assert!(page().await.contains("17 in a row"));
    site.store.set_record(&record("added", FeedStanding::Active));
    assert!(page().await.contains("/feeds/added/about"));
}
