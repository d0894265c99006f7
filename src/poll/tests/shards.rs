//! Gateways that each poll a share of the feeds of one store.

use super::*;
use crate::testing::shards::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use tidegate_core::model::{Attempt, FeedRecord};
use tidegate_net::fetch::{Fetch, FetchRequest, Services};
use tidegate_store::{DatabaseOwner, PollShards, Shard, ShardRequests};
use tower::ServiceExt as _;

/// Which requests of each address there were, and are.
#[derive(Default)]
pub(super) struct LoggedRequests {
    pub(super) begun: Mutex<HashMap<String, u32>>,
    pub(super) in_flight: Mutex<HashMap<String, u32>>,
    /// Addresses that were asked for twice at the same time.
    pub(super) overlaps: Mutex<Vec<String>>,
}

/// A request in flight, until it is answered or given up.
struct RequestInFlight(Arc<LoggedRequests>, String);

impl LoggedRequests {
    fn begin(self: &Arc<Self>, url: &str) -> RequestInFlight {
        *self.begun.lock().unwrap().entry(url.to_owned()).or_default() += 1;
        let mut in_flight = self.in_flight.lock().unwrap();
        let here = in_flight.entry(url.to_owned()).or_default();
        *here += 1;
        if *here > 1 {
            self.overlaps.lock().unwrap().push(url.to_owned());
        }
        RequestInFlight(Arc::clone(self), url.to_owned())
    }

    pub(super) fn begun(&self, feed: &str) -> u32 {
        self.begun.lock().unwrap().get(&record(feed).url).copied().unwrap_or_default()
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight.lock().unwrap().values().sum()
    }

    /// A client that notes its requests, each of which takes so long.
    pub(super) fn services(
        self: &Arc<Self>,
        publisher: &Arc<Publisher>,
        wait: Duration,
    ) -> Services {
        let (log, fetch) = (Arc::clone(self), publisher.fetch());
        let fetch = Fetch::new(tower::service_fn(move |request: FetchRequest| {
            let (log, fetch) = (Arc::clone(&log), fetch.clone());
            async move {
                let _request = log.begin(&request.url);
                tokio::time::sleep(wait).await;
                fetch.oneshot(request).await
            }
        }));
        Services { fetch, ..publisher.services() }
    }
}

impl Drop for RequestInFlight {
    fn drop(&mut self) {
        *self.0.in_flight.lock().unwrap().get_mut(&self.1).unwrap() -= 1;
    }
}

/// How long this machine has run, as the store counts it.
fn uptime() -> Duration {
    let text = std::fs::read_to_string("/proc/uptime").unwrap();
    Duration::from_secs_f64(text.split(' ').next().unwrap().parse().unwrap())
}

pub(super) async fn a_while() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

/// A gateway over a shared store, and the requests that it makes.
pub(super) async fn start(
    store: &StoreDouble,
    shards: &Arc<PollShards>,
    publisher: &Arc<Publisher>,
) -> (Gateway, Arc<LoggedRequests>) {
    let log = Arc::new(LoggedRequests::default());
    let services = log.services(publisher, Duration::ZERO);
    let gateway = Gateway::with_client(&store.shared_by(shards), publisher, services).await;
    (gateway, log)
}

/// Waits until the scheduler has asked for something.
pub(super) async fn asks(shards: &PollShards, is: impl Fn(&ShardRequests) -> bool) {
    eventually(|| is(&shards.take_requests())).await;
}

fn is_known(gateway: &Gateway, feed: &str) -> bool {
    gateway.poller.status(&name(feed)).is_some()
}

#[tokio::test(start_paused = true)]
async fn a_gateway_polls_the_feeds_of_its_shards_and_takes_over_those_that_it_gains() {
    let store = StoreDouble::new(&["a", "b", "c"]);
    let (shards, publisher) = (writer(), Publisher::new("one"));
    let (gateway, log) = start(&store, &shards, &publisher).await;
    a_while().await;
    assert_eq!(publisher.requests(), 0, "it has no shards yet");
    give(&shards, held(&["a"], 1));
    gateway.polls("a", 1).await;
    a_while().await;
    assert_eq!((log.begun("a"), log.begun("b"), log.begun("c")), (1, 0, 0));
    assert!(is_known(&gateway, "a") && !is_known(&gateway, "b"));
    assert_eq!(gateway.poller.summaries().len(), 1);
    give(&shards, held(&["a", "b"], 1));
    gateway.polls("b", 1).await;
    a_while().await;
    assert_eq!((log.begun("a"), log.begun("b"), log.begun("c")), (1, 1, 0));
    // What a restart finds given out to it is polled from the start on.
    let store = gateway.stop().await;
    let restarted = Gateway::start_later(&store, &publisher, 30).await;
    assert!(is_known(&restarted, "a") && !is_known(&restarted, "c"));
    a_while().await;
    assert_eq!(publisher.requests(), 2, "neither is due yet");
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_taken_over_goes_on_with_its_schedule() {
    let store = Gateway::with_news("one").await.stop().await;
    let (shards, publisher) = (follower(), Publisher::new("one"));
    let (gateway, log) = start(&store, &shards, &publisher).await;
    // Its poll was missed a minute ago at most.
    let due = store.shelf.lock().unwrap().poll_states[&name("news")].schedule.clone().unwrap();
    gateway.clock.set(due.polled.plus(Duration::from_secs(600)));
    give(&shards, held(&["news"], 7));
    eventually(|| is_known(&gateway, "news")).await;
    a_while().await;
    let next = gateway.status().next.unwrap();
    assert_eq!(log.begun("news"), 0);
    assert!(next.at > later(600) && next.reason.contains("ttl"), "{next:?}");
    gateway.clock.set(next.at);
    gateway.polls("news", 1).await;
    let polls = gateway.status().polls;
    assert_eq!(polls[0].outcome, PollEnding::NotModified, "with the validators of the other");

    // Half a minute after its time it is polled at once.
    let store = gateway.stop().await;
    give(&shards, BTreeMap::new());
    let (gateway, log) = start(&store, &shards, &publisher).await;
    gateway.clock.set(next.at.plus(next.at.since(NOW)).plus(Duration::from_secs(30)));
    give(&shards, held(&["news"], 8));
    eventually(|| log.begun("news") == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_is_given_back_once_nothing_is_in_flight_and_all_is_stored() {
    let store = StoreDouble::new(&["a", "b"]);
    let (shards, publisher) = (writer(), Publisher::gated("one"));
    let (gateway, log) = start(&store, &shards, &publisher).await;
    give(&shards, held(&["a"], 1));
    eventually(|| log.in_flight() == 1).await;
    shards.give_back([shard("a")]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(shards.take_requests().ended.is_empty() && is_known(&gateway, "a"));
    let unwritable = |is: bool| {
        let trouble = if is { vec![Trouble::Unwritable] } else { Vec::new() };
        store.shelf.lock().unwrap().trouble = trouble;
    };
    unwritable(true);
    publisher.gate.as_ref().unwrap().add_permits(1);
    eventually(|| log.in_flight() == 0).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(shards.take_requests().ended.is_empty(), "it is not stored yet");
    unwritable(false);
    asks(&shards, |asked| asked.ended.contains(&shard("a"))).await;
    let state = store.shelf.lock().unwrap().poll_states[&name("a")].clone();
    assert_eq!((state.etag.as_deref(), state.schedule.is_some()), (Some("1"), true));
    assert!(state.interruptions.iter().count() == 0);
    assert!(!is_known(&gateway, "a"));
    gateway.clock.set(later(86_400));
    a_while().await;
    assert_eq!(log.begun("a"), 1, "nothing of it begins any more");

    // One of which there are no feeds is given back at once.
    give(&shards, [(Shard::numbered(9).unwrap(), 1)].into());
    a_while().await;
    shards.give_back([Shard::numbered(9).unwrap()]);
    asks(&shards, |asked| asked.ended.len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_in_flight_for_too_long_is_cancelled_when_its_shard_leaves() {
    let store = StoreDouble::new(&["a"]);
    let (shards, publisher) = (writer(), Publisher::gated("one"));
    let (gateway, log) = start(&store, &shards, &publisher).await;
    give(&shards, held(&["a"], 1));
    eventually(|| log.in_flight() == 1).await;
    shards.give_back([shard("a")]);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(log.in_flight(), 1);
    asks(&shards, |asked| asked.ended.contains(&shard("a"))).await;
    assert_eq!((log.in_flight(), is_known(&gateway, "a")), (0, false));
}

#[tokio::test(start_paused = true)]
async fn what_was_due_when_its_shard_left_is_polled_by_the_next_gateway() {
    let store = StoreDouble::new(&["one", "two"]);
    for feed in &mut store.shelf.lock().unwrap().feeds {
        feed.url = format!("http://both.example/{}", feed.name);
    }
    let both = shard_of("http://both.example/");
    let (shards, publisher) = (writer(), Publisher::gated("one"));
    let gate = publisher.gate.as_ref().unwrap();
    gate.add_permits(2);
    let (gateway, _log) = start(&store, &shards, &publisher).await;
    give(&shards, [(both, 1)].into());
    gateway.polls("one", 1).await;
    gateway.polls("two", 1).await;
    // One is asked for and does not answer, the other waits for its turn.
    gateway.clock.set(later(86_400));
    eventually(|| publisher.requests() == 3).await;
    gateway.clock.set(later(87_000));
    shards.give_back([both]);
    asks(&shards, |asked| asked.ended.contains(&both)).await;
    assert_eq!(publisher.requests(), 3);
    gate.add_permits(9);
    give(&shards, [(both, 2)].into());
    eventually(|| publisher.requests() == 5).await;
    gateway.polls("one", 1).await;
    gateway.polls("two", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_another_gateway_has_taken_is_dropped_and_nothing_is_written() {
    let store = StoreDouble::new(&["a"]);
    let (shards, publisher) = (follower(), Publisher::gated("one"));
    publisher.gate.as_ref().unwrap().add_permits(1);
    let (gateway, log) = start(&store, &shards, &publisher).await;
    give(&shards, held(&["a"], 1));
    gateway.polls("a", 1).await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    let before = store.writes();
    gateway.clock.set(later(86_400));
    eventually(|| log.in_flight() == 1).await;
    give(&shards, BTreeMap::new());
    eventually(|| log.in_flight() == 0 && !is_known(&gateway, "a")).await;
    a_while().await;
    assert_eq!(store.writes(), before);
    assert!(shards.take_requests().ended.is_empty());
    // It was given out to another one meanwhile: what that one wrote counts.
    give(&shards, held(&["a"], 1));
    gateway.polls("a", 0).await;
    gateway.clock.set(later(2 * 86_400));
    eventually(|| log.in_flight() == 1).await;
    give(&shards, held(&["a"], 3));
    eventually(|| log.in_flight() == 0).await;
    gateway.polls("a", 0).await;
    gateway.clock.set(later(3 * 86_400));
    eventually(|| log.begun("a") == 4).await;
    assert!(log.overlaps.lock().unwrap().is_empty());
}

#[tokio::test]
async fn nothing_begins_or_goes_on_while_the_shards_are_not_confirmed() {
    let store = StoreDouble::new(&["a", "b"]);
    let shards = Arc::new(PollShards::new(Duration::from_secs(3), true));
    let publisher = Publisher::gated("one");
    shards.confirm(uptime(), held(&["a"], 1));
    let (gateway, log) = start(&store, &shards, &publisher).await;
    eventually(|| log.in_flight() == 1).await;
    // It was confirmed when the test began, and not since.
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(log.in_flight(), 1);
    eventually(|| log.in_flight() == 0).await;
    assert!(is_known(&gateway, "a"));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!((log.begun("a"), store.writes()), (1, (0, 0)));
    let asked = tokio::spawn({
        let poller = gateway.poller.clone();
        async move { poller.poll_now(&name("a")).await }
    });
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(log.begun("a"), 1);
    shards.confirm(uptime(), held(&["a"], 1));
    publisher.gate.as_ref().unwrap().add_permits(2);
    asked.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_follower_follows_the_list_of_feeds() {
    let store = StoreDouble::new(&["a", "b"]);
    let (shards, publisher) = (follower(), Publisher::new("one"));
    let writes = |is_gone: bool| {
        let owner = DatabaseOwner { name: "writer".to_owned(), is_gone };
        store.shelf.lock().unwrap().condition.owner = Some(owner);
    };
    writes(true);
    let (gateway, log) = start(&store, &shards, &publisher).await;
    give(&shards, held(&["a", "b", "c"], 1));
    a_while().await;
    assert_eq!(publisher.requests(), 0, "nobody would write what comes of it");
    writes(false);
    gateway.polls("a", 1).await;
    let status = gateway.poller.status(&name("a")).unwrap();
    assert_eq!(status.polls[0].outcome, PollEnding::Changed);
    gateway.polls("b", 1).await;
    let change =
        |change: &dyn Fn(&mut Vec<FeedRecord>)| change(&mut store.shelf.lock().unwrap().feeds);
    // Who adds a feed does not poll it, unless a request has made it.
    change(&|feeds| feeds.extend([record("c"), record("elsewhere")]));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(log.begun("c"), 1);
    gateway.polls("c", 1).await;
    assert_eq!(log.begun("elsewhere"), 0);
    // Another address of the same domain.
    change(&|feeds| feeds[0].url = "http://a.example/other".to_owned());
    eventually(|| publisher.asked.lock().unwrap().iter().any(|it| it.url.ends_with("/other")))
        .await;
    change(&|feeds| feeds[1].standing = FeedStanding::Paused);
    eventually(|| gateway.poller.status(&name("b")).unwrap().next.is_none()).await;
    change(&|feeds| feeds.retain(|feed| feed.name != name("c")));
    eventually(|| !is_known(&gateway, "c")).await;
    gateway.clock.set(later(86_400));
    a_while().await;
    assert_eq!((log.begun("b"), log.begun("c")), (1, 1));
    change(&|feeds| feeds[1].standing = FeedStanding::Active);
    eventually(|| log.begun("b") == 2).await;
    // An address of another gateway's.
    change(&|feeds| feeds[0].url = "http://far.example/".to_owned());
    eventually(|| !is_known(&gateway, "a")).await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_is_read_again() {
    let store = StoreDouble::new(&["a"]);
    let (shards, publisher) = (follower(), Publisher::new("one"));
    give(&shards, held(&["a"], 1));
    store.shelf.lock().unwrap().trouble.push(Trouble::Unreadable);
    let (gateway, log) = start(&store, &shards, &publisher).await;
    a_while().await;
    assert_eq!(log.begun("a"), 0);
    store.shelf.lock().unwrap().trouble.clear();
    gateway.polls("a", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_feed_is_polled_once_where_it_was_added_and_then_handed_over() {
    let store = StoreDouble::new(&[]);
    let (shards, publisher) = (writer(), Publisher::new("one"));
    let (gateway, log) = start(&store, &shards, &publisher).await;
    give(&shards, BTreeMap::new());
    store.shelf.lock().unwrap().feeds.push(record("new"));
    let poll = gateway.poller.put_and_poll(record("new")).await.unwrap();
    assert_eq!(poll.finish().await.unwrap().outcome, PollEnding::Changed);
    eventually(|| !is_known(&gateway, "new")).await;
    eventually(|| store.shelf.lock().unwrap().poll_states.contains_key(&name("new"))).await;
    gateway.clock.set(later(86_400));
    a_while().await;
    assert_eq!(log.begun("new"), 1);
    // The others' records change nothing here.
    gateway.poller.put(record("new")).await.unwrap();
    gateway.poller.remove(&name("new")).await.unwrap();
    a_while().await;
    assert_eq!((log.begun("new"), is_known(&gateway, "new")), (1, false));

    // It stays where its shard comes here meanwhile.
    gateway.stop().await;
    let (gateway, log) = start(&store, &shards, &Publisher::new("one")).await;
    store.shelf.lock().unwrap().feeds.push(record("stays"));
    let poll = gateway.poller.put_and_poll(record("stays")).await.unwrap();
    give(&shards, held(&["stays"], 4));
    poll.finish().await.unwrap();
    eventually(|| gateway.poller.status(&name("stays")).is_some_and(|it| it.next.is_some())).await;
    a_while().await;
    assert_eq!(log.begun("stays"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_is_asked_for_waits_for_the_shard() {
    let store = StoreDouble::new(&["a", "b"]);
    let (shards, publisher) = (writer(), Publisher::new("one"));
    let (gateway, _log) = start(&store, &shards, &publisher).await;
    give(&shards, BTreeMap::new());
    shards.note_owners([(shard("a"), Arc::from("there"))].into());
    assert_eq!(gateway.poller.polled_elsewhere(&record("a")).as_deref(), Some("there"));
    let ask = |feed: &'static str| {
        let poller = gateway.poller.clone();
        tokio::spawn(async move { poller.poll_now(&name(feed)).await })
    };
    let asked = ask("a");
    asks(&shards, |asked| asked.wanted.contains(&shard("a"))).await;
    // The store need not have heard it: it is asked again.
    asks(&shards, |asked| asked.wanted.contains(&shard("a"))).await;
    assert!(!asked.is_finished());
    give(&shards, held(&["a"], 1));
    assert_eq!(asked.await.unwrap().unwrap().outcome, PollEnding::Changed);
    assert_eq!(gateway.poller.polled_elsewhere(&record("a")), None);

    let begun = tokio::time::Instant::now();
    let refused = ask("b").await.unwrap();
    assert_eq!(refused, Err(PollError::PolledElsewhere { owner: None }));
    assert!((8..11).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    let unknown = ask("nothing").await.unwrap();
    assert_eq!(unknown, Err(PollError::Unknown));
    let b = name("b");
    let walk = gateway.poller.walk(&b, WalkOrder::Start);
    let gained = async {
        asks(&shards, |asked| asked.wanted.contains(&shard("b"))).await;
        give(&shards, held(&["a", "b"], 1));
    };
    assert_eq!(tokio::join!(walk, gained).0, Ok(()));

    let waiting: Vec<_> = (0..80).map(|_| ask("c")).collect();
    store.shelf.lock().unwrap().feeds.push(record("c"));
    let mut refused = 0;
    for answer in waiting {
        let answer = answer.await.unwrap();
        refused += usize::from(matches!(answer, Err(PollError::TooMany { .. })));
        assert!(answer.is_err());
    }
    assert!(refused > 0, "no more than so many wait");

    // A follower's pages ask the gateway that writes.
    let shards = follower();
    shards.note_owners([(shard("b"), Arc::from("there"))].into());
    let (gateway, _log) = start(&store, &shards, &publisher).await;
    give(&shards, held(&["a"], 1));
    gateway.poller.poll_now(&name("a")).await.unwrap();
    let begun = tokio::time::Instant::now();
    let refused = gateway.poller.poll_now(&name("b")).await.unwrap_err();
    assert_eq!(refused, PollError::PolledElsewhere { owner: Some("there".into()) });
    assert!(refused.to_string().contains("by the gateway there"), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(shards.take_requests().wanted.is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_the_gateway_that_takes_a_feed_over_counts_that_another_was_killed_in_it() {
    let store = StoreDouble::new(&["a", "b"]);
    for feed in ["a", "b"] {
        let feed = name(feed);
        let mark = Attempt {
            feed: feed.clone(),
            entries: 49_000,
            begun: NOW,
            kills: KILLS_BORNE - 1,
            is_open: true,
        };
        store.shelf.lock().unwrap().attempts.insert(feed, mark);
    }
    let (shards, publisher) = (writer(), Publisher::new("one"));
    give(&shards, held(&["b"], 1));
    let (gateway, log) = start(&store, &shards, &publisher).await;
    let mark = |feed: &str| store.shelf.lock().unwrap().attempts[&name(feed)].clone();
    assert_eq!((mark("b").kills, mark("a").kills), (KILLS_BORNE, KILLS_BORNE - 1));
    assert!(mark("a").is_open, "the other gateway may still be at it");
    give(&shards, held(&["a", "b"], 1));
    eventually(|| mark("a").kills == KILLS_BORNE).await;
    a_while().await;
    let status = gateway.poller.status(&name("a")).unwrap();
    assert!(status.failure.unwrap().error.contains("ended 2 times"));
    assert_eq!(log.begun("a") + log.begun("b"), 0);
}
