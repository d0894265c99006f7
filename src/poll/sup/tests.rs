use super::*;
use crate::testing::double::{NOW, name as feed_name};
use crate::testing::gateway::{fetched, status_error, whole_document};
use tidegate_net::fetch::Fetched;
use tokio_util::sync::CancellationToken;
use url::Url;

const LEAST: Duration = Duration::from_secs(300);
const DOCUMENT: &str = "http://a.example/sup.json";

fn id(name: &str) -> SupId {
    SupId::new(name).unwrap()
}

fn idle_task() -> BackgroundTask {
    BackgroundTask { task: tokio::spawn(async {}), _cancel: CancellationToken::new().drop_guard() }
}

struct Fixture {
    source: SharedSource,
    feeds: BTreeMap<String, Box<FollowedFeed>>,
    /// The pause before the next reading, in seconds.
    wait: u64,
    time: Time,
}

impl Fixture {
    fn new(feeds: &[&str]) -> Self {
        let (mut documents, mut source) = (FollowedDocuments::default(), SharedSource::default());
        let feeds = feeds.iter().map(|name| {
            let announcement = SupAnnouncement { document: DOCUMENT.to_owned(), id: id(name) };
            let named = (announcement, LeadScope::default());
            let followed = documents.follow(&feed_name(name), None, named, |_, shared| {
                source = shared;
                idle_task()
            });
            ((*name).to_owned(), followed.unwrap())
        });
        let feeds = feeds.collect();
        Self { source, feeds, wait: 0, time: NOW }
    }

    /// Lets the pause pass and applies the result of a reading. Returns the feeds to poll.
    async fn reads(&mut self, read: Result<Option<SupNews>, FetchError>) -> Vec<String> {
        self.pass(self.wait + 1).await;
        let (wanted, wait) = self.source.lock().apply_reading(read);
        self.wait = wait.as_secs();
        wanted.feeds.iter().map(FeedName::to_string).collect()
    }

    async fn told(&mut self, listed: &[&str], missed: bool) -> Vec<String> {
        self.reads(Ok(Some(told(listed, missed)))).await
    }

    async fn pass(&mut self, seconds: u64) {
        let wait = Duration::from_secs(seconds);
        self.time = self.time.plus(wait);
        tokio::time::advance(wait).await;
    }

    fn polled(&mut self, name: &str, poll: PushedPoll) -> bool {
        let followed = self.feeds.get_mut(name);
        followed.is_some_and(|it| it.polled(poll, Instant::now(), self.time))
    }

    /// Whether a poll that began then covers the feed.
    fn covers_since(&mut self, name: &str, begun: Instant) -> bool {
        let followed = self.feeds.get_mut(name);
        followed.is_some_and(|it| it.polled(PushedPoll::default(), begun, self.time))
    }

    fn covers(&mut self, name: &str) -> bool {
        self.covers_since(name, Instant::now())
    }
}

fn told(listed: &[&str], missed: bool) -> SupNews {
    let at = Time::from_unix(0);
    let update = |name: &&str| (UpdateMember { id: id(name), update: "1".into() }, at);
    let updates = listed.iter().map(update).collect();
    SupNews { updates, missed: missed.then_some((at, at)), unread: None, period: 300 }
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_covered_by_a_poll_that_began_after_its_document_was_read() {
    let mut fixture = Fixture::new(&["a", "b"]);
    assert!(!fixture.covers("a"));
    let before = Instant::now();
    // The first document lists changes that may be known already.
    assert_eq!(fixture.told(&["a"], false).await, [""; 0]);
    assert!(!fixture.covers_since("a", before));
    assert!(fixture.covers("a") && fixture.covers("b") && !fixture.covers("stranger"));
    assert_eq!(fixture.told(&["a", "stranger"], false).await, ["a"]);
    assert_eq!(fixture.reads(Ok(None)).await, [""; 0], "the same document tells nothing");
    // After a gap every feed is polled.
    let covered = Instant::now();
    assert_eq!(fixture.told(&["a"], true).await, ["a", "b"]);
    assert!(!fixture.covers_since("a", covered), "what was read before is not enough");
}

#[tokio::test(start_paused = true)]
async fn a_document_that_cannot_be_read_covers_nothing_after_a_while() {
    let mut fixture = Fixture::new(&["a", "b"]);
    fixture.told(&[], false).await;
    assert_eq!(fixture.wait, LEAST.as_secs());
    let mut waits = Vec::new();
    for failure in 1..=5 {
        let wanted = fixture.reads(Err(status_error(500, None))).await;
        assert_eq!(wanted.len(), if failure == MAX_FAILURES { 2 } else { 0 }, "{failure}");
        assert_eq!(fixture.covers("a"), failure < MAX_FAILURES);
        waits.push(fixture.wait);
    }
    // After three quick retries, feeds are polled individually.
    assert_eq!(waits, [5, 10, 300, 300, 300]);
    fixture.told(&["a"], false).await;
    assert!(fixture.covers("a"));
    // If the publisher names a time, it is not retried quickly.
    let retry_after = Some(Duration::from_secs(1800));
    let busy = status_error(503, retry_after);
    assert_eq!(fixture.reads(Err(busy)).await.len(), 2);
    assert_eq!((fixture.covers("a"), fixture.wait), (false, 1800));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_twice_is_held_against_it_for_that_feed() {
    let found = PushedPoll { changed: true, told: false, expected: true };
    let mut fixture = Fixture::new(&["a", "b"]);
    fixture.told(&[], false).await;
    // The change is listed a little later: the poll was merely faster.
    assert!(fixture.polled("a", found));
    for expected in [ToldChange::Known, ToldChange::New] {
        assert_eq!(fixture.told(&["a"], false).await, ["a"]);
        assert_eq!(fixture.feeds.get_mut("a").unwrap().listed(fixture.time), expected);
    }
    // Two changes are never listed.
    for _ in 0..2 {
        assert!(fixture.polled("a", found));
        for _ in 0..3 {
            assert_eq!(fixture.told(&[], false).await, [""; 0]);
        }
    }
    assert!(!fixture.covers("a") && fixture.covers("b"));
    assert_eq!(fixture.told(&["a"], false).await, ["a"], "what it lists is polled all the same");
}

#[tokio::test]
async fn a_document_without_feeds_is_forgotten_and_there_are_only_so_many() {
    let (mut documents, mut begun) = (FollowedDocuments::default(), Vec::new());
    let mut follow = |name: &str, document: &str, before| {
        let announcement = SupAnnouncement { document: document.to_owned(), id: id("x") };
        documents.follow(
            &feed_name(name),
            before,
            (announcement, LeadScope::default()),
            |it, source| {
                begun.push((it.request.url, source));
                idle_task()
            },
        )
    };
    let (a, b) = (follow("a", DOCUMENT, None), follow("b", DOCUMENT, None));
    let a = follow("a", DOCUMENT, a);
    let listed = |source: &SharedSource| source.lock().end_cover("").feeds.len();
    // Both feeds have the same id.
    let first = Arc::clone(&b.as_ref().unwrap().document.source);
    assert_eq!(listed(&first), 2);
    let mut many = Vec::new();
    for n in 1..MAX_DOCUMENTS {
        many.extend(follow(&format!("f{n}"), &format!("http://h{n}.example/"), None));
    }
    assert_eq!(many.len(), MAX_DOCUMENTS - 1);
    assert!(follow("c", "http://more.example/", None).is_none());
    // A feed names another document, and then none is left that names the first.
    drop(a);
    assert_eq!(listed(&first), 1);
    assert!(follow("b", "http://more.example/", b).is_some(), "it has the place of the first");
    let (address, source) = &begun[0];
    assert_eq!((&**address, listed(source), begun.len()), (DOCUMENT, 0, MAX_DOCUMENTS + 1));
}

/// The document cannot be read: it arrives too slowly, or its host asked for a pause.
#[tokio::test(start_paused = true)]
async fn what_is_not_read_for_two_periods_covers_nothing() {
    let mut fixture = Fixture::new(&["a"]);
    fixture.told(&[], false).await;
    let confirmed = Instant::now();
    fixture.pass((2 * LEAST + READ_TIME).as_secs() - 1).await;
    assert!(fixture.covers("a"));
    fixture.pass(1).await;
    assert!(!fixture.covers("a"));
    assert_eq!(fixture.told(&["a"], false).await, ["a"]);
    // It has told of all since.
    assert!(fixture.covers("a") && fixture.covers_since("a", confirmed));
}

#[tokio::test(start_paused = true)]
async fn reading_has_a_limit_however_many_documents_it_leads_to() {
    let (mut reader, begun) = (SupReader::new(DOCUMENT, LeadScope::default()), Instant::now());
    let fetch = Fetch::new(tower::service_fn(|_: FetchRequest| {
        std::future::pending::<Result<_, FetchError>>()
    }));
    let error = reader.read(&fetch, Time::from_unix(0)).await.unwrap_err().to_string();
    assert_eq!(begun.elapsed(), READ_TIME);
    assert!(error.contains("did not send its SUP documents within 60 s"), "{error}");
}

/// Creates a document of an interval within these minutes, with a longer one elsewhere.
fn document(period: u32, (since, updated): (usize, usize), updates: &str) -> FetchAnswer {
    whole_document(format!(
        "{{\"period\":{period},\"since_time\":\"2026-11-20T16:0{since}:05Z\",\
         \"updated_time\":\"2026-11-20T16:0{updated}:59Z\",\"updates\":[{updates}],\
         \"available_periods\":{{\"50\":\"{DOCUMENT}\",\"90\":\"http://c.example/\"}}}}"
    ))
}

/// Reading a document of a million feeds costs only as much as the feeds polled here. The feed that names a document
/// determines its scope, and the document that of further ones.
#[tokio::test(start_paused = true)]
async fn only_ids_that_matter_are_remembered_and_each_document_is_led_to() {
    let named_by = |url: &str| LeadScope::Places(vec![Url::parse(url).unwrap()]);
    let leads = named_by("http://b.example/feed");
    let mut reader = SupReader::new(DOCUMENT, leads.clone());
    reader.keep_only([id("a")].into());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let fetch = Fetch::new(tower::service_fn(move |request: FetchRequest| {
        let mut seen = seen.lock();
        seen.push(request.leads);
        let listed: Vec<String> = (0..2000).map(|n| format!("[\"x{n}\",\"1\"]")).collect();
        // The document of the longer period reaches back to the first.
        let (number, is_longer) = (seen.len(), request.url != DOCUMENT);
        let (period, since) = if is_longer { (90, 0) } else { (50, 2 * number) };
        let updates = format!("{},[\"a\",\"{number}\"]", listed.join(","));
        let document = document(period, (since, 2 * number), &updates);
        let leads = named_by(&request.url);
        std::future::ready(Ok(Fetched { leads, ..fetched(&request.url, document) }))
    }));
    let mut read = async || reader.read(&fetch, Time::from_unix(0)).await.unwrap().unwrap();
    assert_eq!(read().await.updates.len(), 1);
    // The next document leaves a gap, so the longer one is read.
    let news = read().await;
    assert_eq!((news.updates.len(), news.missed), (2, None));
    assert_eq!(reader.follower.remembered(), 1);
    let by_document = named_by(DOCUMENT);
    assert_eq!(asked.lock()[..], [leads.clone(), leads, by_document]);
}

#[tokio::test]
async fn the_period_that_is_asked_for_is_that_of_polls() {
    let fetch = Fetch::new(tower::service_fn(|request: FetchRequest| {
        let document = document(50, (0, 1), "");
        std::future::ready(Ok::<_, FetchError>(fetched(&request.url, document)))
    }));
    let longer = (90, "http://c.example/");
    for (least, expected) in
        [(None, (50, DOCUMENT)), (Some(50), (50, DOCUMENT)), (Some(51), longer), (Some(91), longer)]
    {
        let mut reader = SupReader::new(DOCUMENT, LeadScope::default());
        reader.least = least.map(Duration::from_secs);
        let news = reader.read(&fetch, Time::from_unix(0)).await.unwrap().unwrap();
        assert_eq!((news.period, &*reader.request.url), expected);
        // What is known of the document is sent to no other.
        assert_eq!(reader.request.known_wire.is_some(), expected.0 == 50);
    }
}

/// The document of the longer period cannot be fetched, or reading it panics.
#[tokio::test]
async fn a_gap_that_cannot_be_filled_is_told_once_with_what_is_known() {
    let mut reader = SupReader::new(DOCUMENT, LeadScope::default());
    let asked = Arc::new(Mutex::new(0));
    let fetch = Fetch::new(tower::service_fn(move |request: FetchRequest| {
        let mut asked = asked.lock();
        *asked += usize::from(request.url == DOCUMENT);
        let (number, is_longer) = (*asked, request.url != DOCUMENT);
        let since = if number == 4 { 2 } else { 2 * number };
        let document = document(50, (since, 2 * number), &format!("[\"a\",\"{number}\"]"));
        async move {
            match number {
                2 if is_longer => Err(status_error(404, None)),
                3 => panic!("a document that none can read"),
                _ => Ok(fetched(DOCUMENT, document)),
            }
        }
    }));
    let mut read = async || reader.read(&fetch, Time::from_unix(0)).await;
    assert!(read().await.unwrap().unwrap().missed.is_none());
    let news = read().await.unwrap().unwrap();
    assert_eq!(&*news.updates[0].0.update, "2");
    assert!(news.missed.is_some() && news.unread.is_some());
    assert!(matches!(read().await, Err(FetchError::Client { .. })));
    let news = read().await.unwrap().unwrap();
    assert_eq!((news.updates.len(), news.missed), (1, None), "it continues the second one");
}
