//! Probes next to polls, with a scripted site.

use super::*;
use std::fmt::Write as _;
use std::sync::Mutex;
use tidegate_core::model::{FeedAccess, Login, Probing, SecretSource, SecretText};
use tidegate_net::fetch::{Call, CallRequest, Called, LeadScope, Services};
use tokio::sync::Semaphore;

/// A site with feeds and a page for each of their items.
struct Site {
    lists_all: Mutex<Result<bool, FetchError>>,
    /// The answer of pages whose items are gone.
    page: Mutex<Called>,
    asked: Mutex<Vec<CallRequest>>,
    /// Each permit releases one page.
    gate: Semaphore,
}

impl Site {
    /// Answers for a page; items with odd numbers still exist.
    async fn answer(&self, request: CallRequest) -> Called {
        let number = request.url.path().rsplit('-').next().and_then(|it| it.parse::<u32>().ok());
        self.asked.lock().unwrap().push(request);
        self.gate.acquire().await.unwrap().forget();
        let stays = number.is_some_and(|n| !n.is_multiple_of(2));
        let page = self.page.lock().unwrap().clone();
        Called { status: if stays { 200 } else { page.status }, ..page }
    }

    fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

/// Returns a feed's document with ten items, or only those with odd numbers.
fn document(feed: &str, whole: bool) -> String {
    let mut xml = "<rss version=\"2.0\"><channel><title>T</title><link>http://all.example/</link>\
                   <description/>"
        .to_owned();
    for n in (1..=10).filter(|n| whole || n % 2 == 1) {
        let page = format!("http://all.example/{feed}/item-{n}");
        let _ = write!(xml, "<item><title>{feed} {n}</title><link>{page}</link></item>");
    }
    xml + "</channel></rss>"
}

/// Starts a gateway whose feeds have credentials and are marked as complete. They were polled once; their next document
/// lacks half of the items. `pages`: how many pages are answered at once.
async fn start(feeds: &[&str], pages: usize) -> (Gateway, Arc<Site>) {
    let hush = || SecretSource::Literal(SecretText::new("hush").unwrap());
    let (headers, login) = (vec![("x-key".to_owned(), hush())], Some(Login::Bearer(hush())));
    let access = FeedAccess { headers, cookie: Some(hush()), login, ..FeedAccess::default() };
    let store = store_of(feeds);
    for feed in feeds {
        store.edit_record(feed, |it| {
            it.url = format!("http://all.example/{feed}/feed");
            (it.options.complete, it.options.probe) = (true, Probing::All);
            it.access = Some(Box::new(access.clone()));
        });
    }
    let site = Arc::new(Site {
        lists_all: Mutex::new(Ok(true)),
        page: Mutex::new(Called { status: 404, ..Called::default() }),
        asked: Mutex::default(),
        gate: Semaphore::new(pages),
    });
    let (polled, asked) = (Arc::clone(&site), Arc::clone(&site));
    let publisher = Publisher::new("");
    let services = publisher.services_by(move |_, request| {
        let feed = request.url.split('/').nth(3).unwrap();
        let text = document(feed, polled.lists_all.lock().unwrap().clone()?);
        Ok(fetched(&request.url, whole_document(text)))
    });
    let call = Call::new(tower::service_fn(move |request| {
        let site = Arc::clone(&asked);
        async move { Ok(site.answer(request).await) }
    }));
    let services = Services { call, ..services };
    let gateway = Gateway::with_parts(&store, &publisher, services, NOW, without_pauses).await;
    for feed in feeds {
        poll(&gateway, feed).await;
    }
    *site.lists_all.lock().unwrap() = Ok(false);
    gateway.clock.set(later(60));
    (gateway, site)
}

async fn poll(gateway: &Gateway, feed: &str) -> PollResponse {
    let report = gateway.poller.poll_now(&name(feed)).await.unwrap();
    assert_eq!(report.error, None);
    report
}

fn status(gateway: &Gateway, feed: &str) -> PollStatus {
    gateway.poller.status(&name(feed)).unwrap()
}

async fn ends(gateway: &Gateway, feed: &str) {
    eventually(|| !status(gateway, feed).probing).await;
}

async fn probe(gateway: &Gateway, feed: &str) {
    poll(gateway, feed).await;
    ends(gateway, feed).await;
}

pub(super) async fn deleted(gateway: &Gateway, feed: &str) -> usize {
    let events = gateway.store.events(&name(feed), 100).await.unwrap();
    events.iter().filter(|event| event.kind == EventKind::Deleted).count()
}

#[tokio::test]
async fn polls_do_not_wait_for_pages_which_get_no_credentials() {
    let (gateway, site) = start(&["one"], 0).await;
    assert!(!status(&gateway, "one").probing);
    assert_eq!(poll(&gateway, "one").await.counts.values().sum::<u32>(), 0);
    assert!(status(&gateway, "one").probing, "nobody waits to ask");
    // There is only one probe of a feed at a time.
    assert_eq!(poll(&gateway, "one").await.outcome, PollEnding::Unchanged);
    eventually(|| site.requests() == 1).await;
    assert!(status(&gateway, "one").probing);
    site.gate.add_permits(100);
    ends(&gateway, "one").await;
    let probes = status(&gateway, "one").probes;
    let found = (probes.len(), probes[0].requests, probes[0].counts.get(&EventKind::Deleted));
    assert_eq!(found, (1, 6, Some(&4)));
    let scope = LeadScope::Places(vec!["http://all.example/one/feed".parse().unwrap()]);
    for CallRequest { leads, sent, .. } in site.asked.lock().unwrap().drain(..) {
        assert_eq!(leads, scope);
        let mut keys = ["authorization", "cookie", "x-key"].iter();
        assert!(keys.all(|key| !sent.headers.contains_key(*key)), "{:?}", sent.headers);
    }
    assert_eq!(deleted(&gateway, "one").await, 4);
    // A probe does not cause the same document to be judged again.
    assert_eq!(poll(&gateway, "one").await.outcome, PollEnding::Unchanged);
    assert_eq!(status(&gateway, "one").probes.len(), 1, "four an hour");
}

#[tokio::test]
async fn a_round_of_asking_that_panics_is_over() {
    let (gateway, site) = start(&["one"], 0).await;
    site.gate.close();
    poll(&gateway, "one").await;
    eventually(|| site.requests() == 1).await;
    ends(&gateway, "one").await;
}

#[tokio::test]
async fn asking_ends_when_its_feed_leaves_or_polling_stops() {
    for stops in [false, true] {
        let (gateway, site) = start(&["one", "two"], 0).await;
        poll(&gateway, "one").await;
        // The second feed waits in the line of the same host.
        poll(&gateway, "two").await;
        eventually(|| site.requests() == 1).await;
        gateway.poller.remove(&name("two")).await.unwrap();
        if stops {
            gateway.cancel.cancel();
        } else {
            gateway.poller.remove(&name("one")).await.unwrap();
        }
        site.gate.add_permits(100);
        // The request in flight was dropped: nobody took a permit.
        eventually(|| site.gate.available_permits() == 100).await;
        let store = gateway.stop().await;
        assert_eq!(site.requests(), 1);
        for feed in ["one", "two"] {
            let snapshot = store.snapshot(&name(feed)).await.unwrap().unwrap();
            let missing = snapshot.known.iter().filter_map(|known| known.absence.as_ref());
            assert!(missing.clone().all(|absence| absence.probe.is_none()));
            assert_eq!(missing.count(), 5);
        }
    }
}

#[tokio::test]
async fn a_site_that_is_busy_is_left_alone_for_an_hour() {
    let (gateway, site) = start(&["one", "two"], 100).await;
    site.page.lock().unwrap().status = 503;
    probe(&gateway, "one").await;
    // The listed item was found; the made-up address was refused.
    assert_eq!(site.requests(), 2);
    probe(&gateway, "one").await;
    probe(&gateway, "two").await;
    assert_eq!(site.requests(), 2);
    site.page.lock().unwrap().status = 404;
    gateway.clock.set(later(60 + 3600));
    probe(&gateway, "two").await;
    assert_eq!(deleted(&gateway, "two").await, 4);
}

/// Returns the note of the feed's last probe, which the pause of its host ended.
fn ended_by_pause(gateway: &Gateway, feed: &str) -> FinishedProbe {
    let note = status(gateway, feed).probes.pop_front().unwrap();
    assert!(note.said[0].contains("the host asked for a pause (Retry-After)"), "{note:?}");
    note
}

/// A pause that a host asks for in a probe of one feed applies to other feeds.
#[tokio::test]
async fn a_page_speaks_for_its_host() {
    let (gateway, site) = start(&["one", "two"], 100).await;
    let retry_after = Some(Duration::from_secs(1800));
    *site.page.lock().unwrap() = Called { status: 429, retry_after, ..Called::default() };
    probe(&gateway, "one").await;
    assert_eq!((status(&gateway, "one").probes[0].requests, site.requests()), (2, 2));
    poll(&gateway, "two").await;
    eventually(|| status(&gateway, "two").probes.len() == 1).await;
    assert_eq!((ended_by_pause(&gateway, "two").requests, site.requests()), (0, 2));
    assert!(!status(&gateway, "two").probing);
}

/// A probe makes several requests; it is aborted when its host asks for a pause.
#[tokio::test]
async fn a_round_of_asking_ends_with_the_pause_of_its_host() {
    let (gateway, site) = start(&["one", "two"], 0).await;
    poll(&gateway, "one").await;
    eventually(|| site.requests() == 1).await;
    let busy = status_error(429, Some(Duration::from_secs(1800)));
    *site.lists_all.lock().unwrap() = Err(busy);
    gateway.poller.poll_now(&name("two")).await.unwrap();
    ends(&gateway, "one").await;
    ended_by_pause(&gateway, "one");
    assert_eq!(site.requests(), 1);
}
