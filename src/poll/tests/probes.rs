//! Probes next to polls, with a real store and judge and a scripted publisher.

use super::*;
use crate::probe::{FEED_ASKS_PER_HOUR, HOST_ASKS_PER_HOUR};
use http::HeaderMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use tidegate_core::clock::{Clock, ManualClock};
use tidegate_core::model::{BodyPrints, EndpointId, FeedOptions, FeedRecord, Probing};
use tidegate_core::model::{FeedAccess, Login, SecretSource, SecretText};
use tidegate_net::fetch::{Call, CallRequest, Called, LeadScope, Services};
use tidegate_store::Store;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_128;

/// The answers of the publisher's pages, and the requests for them.
struct Pages {
    code: Mutex<u16>,
    retry_after: Mutex<Option<Duration>>,
    asked: Mutex<Vec<String>>,
    /// The scope and the headers of each request.
    sent: Mutex<Vec<(LeadScope, HeaderMap)>>,
    /// Each permit releases one answer, if there is a gate.
    gate: Option<Semaphore>,
    at_once: Mutex<(usize, usize)>,
}

impl Pages {
    fn new(gate: Option<Semaphore>) -> Arc<Self> {
        let (asked, sent, at_once, retry_after) = Default::default();
        Arc::new(Self { code: Mutex::new(404), retry_after, asked, sent, gate, at_once })
    }

    fn service(self: &Arc<Self>) -> Call {
        let pages = Arc::clone(self);
        Call::new(tower::service_fn(move |request: CallRequest| {
            let pages = Arc::clone(&pages);
            pages.sent.lock().unwrap().push((request.leads, request.sent.headers));
            async move { Ok(pages.answer(request.url.path().to_owned()).await) }
        }))
    }

    async fn answer(&self, path: String) -> Called {
        {
            let mut at_once = self.at_once.lock().unwrap();
            at_once.0 += 1;
            at_once.1 = at_once.1.max(at_once.0);
        }
        self.asked.lock().unwrap().push(path.clone());
        match &self.gate {
            Some(gate) => gate.acquire().await.unwrap().forget(),
            None => tokio::task::yield_now().await,
        }
        self.at_once.lock().unwrap().0 -= 1;
        // Items with odd numbers still exist.
        let stays = number(&path).is_some_and(|n| !n.is_multiple_of(2));
        Called {
            status: if stays { 200 } else { *self.code.lock().unwrap() },
            retry_after: *self.retry_after.lock().unwrap(),
            ..Called::default()
        }
    }

    fn items(&self) -> usize {
        self.items_of("")
    }

    fn items_of(&self, feed: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        let of = asked.iter().filter(|path| path.contains(feed));
        of.filter_map(|path| number(path)).filter(|n| n.is_multiple_of(2)).count()
    }
}

/// Returns the number of the item whose page it is; `None` for a made-up address.
fn number(path: &str) -> Option<u32> {
    path.rsplit('-').next()?.parse().ok()
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

struct Fixture {
    store: Arc<Store>,
    /// Whether documents list all items.
    answer: Arc<Mutex<Result<bool, FetchError>>>,
    clock: ManualClock,
    poller: Poller,
    cancel: CancellationToken,
    task: JoinHandle<()>,
}

impl Fixture {
    /// Starts polling of feeds that are marked as complete. They were polled once; their next document lacks half of
    /// the items.
    async fn new(feeds: &[&str], pages: &Arc<Pages>) -> Self {
        let options = FeedOptions { complete: true, probe: Probing::All, ..FeedOptions::default() };
        Self::of(feeds, pages, options, None).await
    }

    /// The same of feeds with other options, which are asked for with `access`.
    async fn of(
        feeds: &[&str],
        pages: &Arc<Pages>,
        options: FeedOptions,
        access: Option<FeedAccess>,
    ) -> Self {
        let clock = ManualClock::at(NOW);
        let endpoint = EndpointId::own("here").unwrap();
        let store = Arc::new(Store::in_memory(Some(endpoint), Arc::new(clock.clone())).unwrap());
        for feed in feeds {
            let url = format!("http://all.example/{feed}/feed");
            let (options, access) = (options.clone(), access.clone().map(Box::new));
            let asking = FeedRecord { url, options, access, ..record(feed) };
            store.put_feed(&asking).await.unwrap();
        }
        let answer = Arc::new(Mutex::new(Ok(true)));
        let given = Arc::clone(&answer);
        let services = Publisher::new("").services_by(move |_, request| {
            let text =
                document(request.url.split('/').nth(3).unwrap(), given.lock().unwrap().clone()?);
            let print = xxh3_128(text.as_bytes());
            let prints = BodyPrints { wire: print, body: print };
            Ok(fetched(&request.url, whole_document(text, prints)))
        });
        let services = Services { call: pages.service(), ..services };
        let known: Arc<dyn Clock> = Arc::new(clock.clone());
        let parts = PollerConfig {
            settings: PollSettings { spacing: Duration::ZERO, ..PollSettings::default() },
            judge: Arc::new(ParseAndRecord::default()),
            ..poller_config(Arc::clone(&store), &known, services)
        };
        let cancel = parts.cancel.clone();
        let (poller, task) = Poller::start(parts).await.unwrap();
        let fixture = Self { store, answer, clock, poller, cancel, task };
        for feed in feeds {
            fixture.poll(feed).await;
        }
        *fixture.answer.lock().unwrap() = Ok(false);
        fixture.clock.set(later(60));
        fixture
    }

    async fn poll(&self, feed: &str) -> PollResponse {
        let report = self.poller.poll_now(&name(feed)).await.unwrap();
        assert_eq!(report.error, None);
        report
    }

    fn status(&self, feed: &str) -> PollStatus {
        self.poller.status(&name(feed)).unwrap()
    }

    async fn asked(&self, feed: &str) {
        eventually(|| !self.status(feed).probing).await;
    }

    async fn probe(&self, feed: &str) {
        self.poll(feed).await;
        self.asked(feed).await;
    }

    async fn deleted(&self, feed: &str) -> usize {
        let events = self.store.events(&name(feed), 100).await.unwrap();
        events.iter().filter(|event| event.kind == EventKind::Deleted).count()
    }
}

#[tokio::test]
async fn polls_do_not_wait_for_pages() {
    let pages = Pages::new(Some(Semaphore::new(0)));
    let fixture = Fixture::new(&["one"], &pages).await;
    assert!(!fixture.status("one").probing);
    assert_eq!(fixture.poll("one").await.counts.values().sum::<u32>(), 0);
    assert!(fixture.status("one").probing, "nobody waits to ask");
    // There is only one probe of a feed at a time.
    assert_eq!(fixture.poll("one").await.outcome, PollEnding::Unchanged);
    eventually(|| pages.asked.lock().unwrap().len() == 1).await;
    assert!(fixture.status("one").probing);
    pages.gate.as_ref().unwrap().add_permits(100);
    fixture.asked("one").await;
    let status = fixture.status("one");
    assert_eq!(status.probes.len(), 1);
    assert_eq!(status.probes[0].counts.get(&EventKind::Deleted), Some(&4));
    assert_eq!(status.probes[0].requests, 6);
    let scope = LeadScope::Places(vec!["http://all.example/one/feed".parse().unwrap()]);
    let sent = std::mem::take(&mut *pages.sent.lock().unwrap());
    assert_eq!(sent.into_iter().map(|(leads, _)| leads).collect::<Vec<_>>(), vec![scope; 6]);
    assert_eq!(fixture.deleted("one").await, 4);
    // A probe does not cause the same document to be judged again.
    assert_eq!(fixture.poll("one").await.outcome, PollEnding::Unchanged);
    assert_eq!(fixture.status("one").probes.len(), 1, "four an hour");
}

#[tokio::test]
async fn a_round_of_asking_that_panics_is_over() {
    let pages = Pages::new(Some(Semaphore::new(0)));
    let fixture = Fixture::new(&["one"], &pages).await;
    pages.gate.as_ref().unwrap().close();
    fixture.poll("one").await;
    eventually(|| pages.asked.lock().unwrap().len() == 1).await;
    fixture.asked("one").await;
}

#[tokio::test]
async fn a_feed_that_leaves_is_not_asked_for_any_more() {
    let pages = Pages::new(Some(Semaphore::new(0)));
    let fixture = Fixture::new(&["one", "two"], &pages).await;
    fixture.poll("one").await;
    // The second feed waits in the line of the same host.
    fixture.poll("two").await;
    eventually(|| pages.asked.lock().unwrap().len() == 1).await;
    fixture.poller.remove(&name("two")).await.unwrap();
    fixture.poller.remove(&name("one")).await.unwrap();
    assert!(fixture.poller.status(&name("one")).is_none());
    pages.gate.as_ref().unwrap().add_permits(100);
    fixture.cancel.cancel();
    fixture.task.await.unwrap();
    assert_eq!(pages.asked.lock().unwrap().len(), 1);
    for feed in ["one", "two"] {
        let events = fixture.store.events(&name(feed), 100).await.unwrap();
        assert!(events.iter().all(|event| event.kind == EventKind::Created));
    }
}

#[tokio::test]
async fn asking_ends_when_polling_stops() {
    let pages = Pages::new(Some(Semaphore::new(0)));
    let fixture = Fixture::new(&["one"], &pages).await;
    fixture.poll("one").await;
    eventually(|| pages.asked.lock().unwrap().len() == 1).await;
    fixture.cancel.cancel();
    fixture.task.await.unwrap();
    let snapshot = fixture.store.snapshot(&name("one")).await.unwrap().unwrap();
    let missing = snapshot.known.iter().filter_map(|known| known.absence.as_ref());
    assert!(missing.clone().all(|absence| absence.probe.is_none()));
    assert_eq!(missing.count(), 5);
}

#[tokio::test]
async fn a_host_is_asked_so_much_an_hour_by_all_its_feeds() {
    let feeds = ["one", "two", "three", "four"];
    let pages = Pages::new(None);
    let fixture = Fixture::new(&feeds, &pages).await;
    for feed in feeds {
        fixture.poll(feed).await;
    }
    for feed in feeds {
        fixture.asked(feed).await;
    }
    assert_eq!((pages.items(), pages.items_of("four")), (HOST_ASKS_PER_HOUR, 0));
    assert_eq!(pages.at_once.lock().unwrap().1, 1, "one request at a time");
    fixture.clock.set(later(60 + 3600));
    fixture.probe("four").await;
    assert_eq!(pages.items_of("four"), FEED_ASKS_PER_HOUR);
    // Others may be due again by then, each for the last of its five items.
    assert!(pages.items() <= HOST_ASKS_PER_HOUR + FEED_ASKS_PER_HOUR + 3);
    assert_eq!(fixture.deleted("four").await, 4);
}

#[tokio::test]
async fn a_site_that_is_busy_is_left_alone_for_an_hour() {
    let pages = Pages::new(None);
    let fixture = Fixture::new(&["one", "two"], &pages).await;
    *pages.code.lock().unwrap() = 503;
    fixture.probe("one").await;
    // The listed item was found; the made-up address was refused.
    assert_eq!(pages.asked.lock().unwrap().len(), 2);
    fixture.probe("one").await;
    fixture.probe("two").await;
    assert_eq!(pages.asked.lock().unwrap().len(), 2);
    *pages.code.lock().unwrap() = 404;
    fixture.clock.set(later(60 + 3600));
    fixture.probe("two").await;
    assert_eq!(fixture.deleted("two").await, 4);
}

/// A pause that a host asks for in a probe of one feed applies to other feeds.
#[tokio::test]
async fn a_page_speaks_for_its_host() {
    let pages = Pages::new(None);
    *pages.code.lock().unwrap() = 429;
    *pages.retry_after.lock().unwrap() = Some(Duration::from_secs(1800));
    let fixture = Fixture::new(&["one", "two"], &pages).await;
    fixture.probe("one").await;
    let asked = pages.asked.lock().unwrap().len();
    // One that is listed, and a made-up one.
    assert_eq!(fixture.status("one").probes[0].requests, 2);
    fixture.poll("two").await;
    eventually(|| fixture.status("two").probes.len() == 1).await;
    let note = fixture.status("two").probes.pop_front().unwrap();
    assert!(note.said[0].contains("the host asked for a pause (Retry-After)"), "{note:?}");
    assert_eq!((note.requests, pages.asked.lock().unwrap().len()), (0, asked));
    assert!(!fixture.status("two").probing);
}

/// A probe makes several requests; it is aborted when its host asks for a pause.
#[tokio::test]
async fn a_round_of_asking_ends_with_the_pause_of_its_host() {
    let pages = Pages::new(Some(Semaphore::new(0)));
    let fixture = Fixture::new(&["one", "two"], &pages).await;
    fixture.poll("one").await;
    eventually(|| pages.asked.lock().unwrap().len() == 1).await;
    let busy = status_error(429, Some(Duration::from_secs(1800)));
    *fixture.answer.lock().unwrap() = Err(busy);
    fixture.poller.poll_now(&name("two")).await.unwrap();
    fixture.asked("one").await;
    let note = fixture.status("one").probes.pop_front().unwrap();
    assert!(note.said[0].contains("the host asked for a pause (Retry-After)"), "{note:?}");
    assert_eq!(pages.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn pages_get_no_credentials() {
    let hush = || SecretSource::Literal(SecretText::new("hush").unwrap());
    let headers = vec![("x-key".to_owned(), hush())];
    let login = Some(Login::Bearer(hush()));
    let access = FeedAccess { headers, cookie: Some(hush()), login, ..FeedAccess::default() };
    let options = FeedOptions { complete: true, probe: Probing::All, ..FeedOptions::default() };
    let pages = Pages::new(None);
    let fixture = Fixture::of(&["one"], &pages, options, Some(access)).await;
    fixture.probe("one").await;
    let sent = std::mem::take(&mut *pages.sent.lock().unwrap());
    assert!(!sent.is_empty());
    for (_, headers) in sent {
        let keys = ["authorization", "cookie", "x-key"];
        assert!(keys.iter().all(|key| !headers.contains_key(*key)), "{headers:?}");
    }
}
