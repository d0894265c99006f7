//! Several gateways that poll the feeds of one store, of which one writes.

use super::follow::{follow, listed, named, shown, wide};
use super::unpolled::half;
use super::{SHORT_LEASE, TestSchema, commit, open, open_for, sql};
use crate::conformance::make::poll_state;
use crate::disk::faults::{change, claim, news};
use crate::{
    AnswerQuestions, CommitError, EmbeddedStore, Epoch, GatewayAnswer, PollShards, PublisherReach,
    SHARDS, Shard, SharedSettings, Store,
};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_core::model::{
    Attempt, FeedName, FeedRecord, FeedStanding, PollState, Revision, Time,
};
use tokio::time::{Instant, sleep, timeout};

async fn list(store: &EmbeddedStore, feed: &FeedName) {
    let record = FeedRecord { name: feed.clone(), ..listed("listed") };
    store.put_feed(&record).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_follower_commits_is_written_by_the_other_gateway() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    list(&writer, &news()).await;
    list(&writer, &named("wide")).await;
    let follower = follow(&schema);
    follower.catch_up().await.unwrap();
    let right = claim(&follower).await;
    assert_eq!(right, claim(&writer).await);
    // The first commit of a feed, the next, and one that the writer makes in portions.
    let done = follower.commit(&right, change(&follower, "one").await).await.unwrap();
    assert_eq!((done.revision, done.epoch), (Revision(1), Some(Epoch(1))));
    assert_eq!(follower.state(&news()).await.unwrap().unwrap().revision, Revision(1));
    let stale = change(&follower, "two, but late").await;
    commit(&writer, "two").await.unwrap();
    let refused = follower.commit(&right, stale).await.unwrap_err();
    assert!(matches!(refused, CommitError::Conflict(Revision(2))), "{refused:?}");
    let large = wide(&follower, &named("wide"), 40, "first").await;
    follower.commit(&right, large).await.unwrap();
    for store in [&writer, &follower] {
        assert_eq!(shown(store, &news()).await, (Revision(2), 1, "two".to_owned()));
        assert_eq!(shown(store, &named("wide")).await, (Revision(1), 40, "first".to_owned()));
        assert_eq!(*store.watch_epochs().borrow(), Epoch(3));
    }
    let epochs = follower.epochs_after(Epoch(0), 9).await.unwrap();
    assert_eq!(epochs, writer.epochs_after(Epoch(0), 9).await.unwrap());
    // Of a feed that is paused or gone nothing is committed any more.
    let late = change(&follower, "three").await;
    let paused = FeedRecord { standing: FeedStanding::Paused, ..listed("news") };
    writer.put_feed(&FeedRecord { name: news(), ..paused }).await.unwrap();
    assert!(matches!(follower.commit(&right, late).await, Err(CommitError::NotPolled)));
    let late = wide(&follower, &named("wide"), 40, "second").await;
    writer.purge_feed(&named("wide")).await.unwrap();
    // Whether the follower has seen that by then or not.
    let refused = follower.commit(&right, late).await.unwrap_err();
    assert!(matches!(refused, CommitError::Conflict(_) | CommitError::NotPolled), "{refused:?}");
    assert!(writer.state(&named("wide")).await.unwrap().is_none());
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_polling_remembers_goes_to_the_writer_too() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    list(&writer, &news()).await;
    commit(&writer, "one").await.unwrap();
    let follower = follow(&schema);
    let right = claim(&follower).await;
    let url = "https://example.org/feed".to_owned();
    let state = PollState { feed: news(), url, ..poll_state("any") };
    follower.checkpoint(&right, std::slice::from_ref(&state)).await.unwrap();
    // Of a feed that is gone, or has another address by now, nothing is kept.
    let gone = PollState { feed: named("gone"), ..state.clone() };
    let moved = PollState { feed: news(), ..poll_state("any") };
    follower.checkpoint(&right, &[gone, moved]).await.unwrap();
    assert_eq!(writer.poll_states().await.unwrap(), [state]);
    let begun = Time::from_unix(1_795_191_605);
    let attempt = Attempt { feed: news(), entries: 70_000, begun, kills: 0, is_open: true };
    follower.note_attempt(&attempt).await.unwrap();
    assert_eq!(writer.attempts().await.unwrap(), [attempt]);
    // Another opening: what was decided before it is decided anew.
    writer.close().await.unwrap();
    let next = change(&follower, "two").await;
    let writer = open(&schema).unwrap();
    follower.catch_up().await.unwrap();
    let refused = follower.commit(&right, next).await.unwrap_err();
    assert!(matches!(refused, CommitError::Fenced), "{refused:?}");
    let (right, next) = (claim(&follower).await, change(&follower, "two").await);
    assert_eq!(follower.commit(&right, next).await.unwrap().revision, Revision(2));
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}

/// The writer ended between its write and the barrier: another gateway makes the write durable, so that the feed can be
/// read. The epoch stays open, since the writer may go on with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_write_without_its_barrier_is_shown_and_its_epoch_is_not() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    let follower = follow(&schema);
    commit(&writer, "one").await.unwrap();
    follower.catch_up().await.unwrap();
    assert_eq!(*follower.watch_epochs().borrow(), Epoch(1));
    commit(&writer, "two").await.unwrap();
    schema
        .sql("UPDATE tidegate_shard SET passed = passed - 1, closed = closed - 1 WHERE shard = 0");
    let late = follow(&schema);
    for store in [&follower, &late] {
        let begun = Instant::now();
        while shown(store, &news()).await.0 != Revision(2) {
            assert!(begun.elapsed() < Duration::from_secs(9));
            sleep(Duration::from_millis(50)).await;
        }
    }
    assert_eq!(*late.watch_epochs().borrow(), Epoch(1));
    assert_eq!(late.epochs_after(Epoch(0), 9).await.unwrap().len(), 1);
    commit(&writer, "three").await.unwrap();
    for store in [&follower, &late] {
        store.catch_up().await.unwrap();
        assert_eq!(*store.watch_epochs().borrow(), Epoch(3));
        let epochs = store.epochs_after(Epoch(0), 9).await.unwrap();
        assert_eq!(epochs, writer.epochs_after(Epoch(0), 9).await.unwrap());
    }
    for store in [follower, late, writer] {
        store.close().await.unwrap();
    }
}

/// The database lost that an epoch was closed, as it may in a failover: the next barrier says so again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_epoch_whose_closing_was_lost_is_told_after_the_next_barrier() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    schema.sql("UPDATE tidegate_shard SET closed = closed - 1 WHERE shard = 0");
    let follower = follow(&schema);
    assert_eq!(*follower.watch_epochs().borrow(), Epoch(0));
    writer.put_feed(&listed("other")).await.unwrap();
    follower.catch_up().await.unwrap();
    assert_eq!(*follower.watch_epochs().borrow(), Epoch(1));
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}

/// Writes without an epoch move on as well how far epochs are closed: otherwise a gateway that starts after many of them
/// would have to go through all.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_gateway_that_starts_after_many_writes_without_an_epoch_follows() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    for name in ["a", "b", "c"] {
        writer.put_feed(&listed(name)).await.unwrap();
    }
    let late = "SELECT 1 FROM tidegate_shard WHERE shard = 0 AND closed < passed - 1";
    assert_eq!(sql(&schema.url, late), 0);
    writer.close().await.unwrap();
}

/// Everything is read anew when the database has lost that an epoch was closed: what was told stays told.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_epoch_that_was_told_stays_so_where_its_closing_was_lost() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    let follower = follow(&schema);
    commit(&writer, "one").await.unwrap();
    follower.catch_up().await.unwrap();
    assert_eq!(*follower.watch_epochs().borrow(), Epoch(1));
    schema.sql("UPDATE tidegate_shard SET closed = closed - 1, fence = fence + 9 WHERE shard = 0");
    follower.catch_up().await.unwrap();
    assert_eq!(*follower.watch_epochs().borrow(), Epoch(1));
    assert_eq!(shown(&follower, &news()).await.0, Revision(1));
    follower.close().await.unwrap();
    drop(writer);
}

/// The table of requests is emptied, as by a restart of the database: who waits learns that soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_was_lost_is_not_waited_for() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    let follower = follow(&schema);
    writer.close().await.unwrap();
    let asking = follower.ask_writer(b"why".to_vec(), Duration::from_secs(60));
    let losing = async {
        sleep(Duration::from_millis(500)).await;
        schema.sql("DELETE FROM tidegate_request");
    };
    let began = Instant::now();
    let (asked, ()) = tokio::join!(asking, losing);
    assert!(asked.is_err() && began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    // A question that nobody waits for any more is not answered by whoever writes next.
    let answered = Arc::new(AtomicBool::new(false));
    assert!(follower.ask_writer(Vec::new(), Duration::from_millis(200)).await.is_err());
    let writer = open(&schema).unwrap();
    writer.answer_questions(Arc::new(Noting(Arc::clone(&answered))));
    sleep(Duration::from_secs(1)).await;
    assert!(!answered.load(Ordering::Acquire));
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}

/// Whoever asked has gone before the request was in the table: nobody carries it out later.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_was_given_up_as_it_was_sent_does_not_stay() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    let follower = follow(&schema);
    writer.close().await.unwrap();
    schema.sql(
        "CREATE FUNCTION wait() RETURNS trigger language plpgsql AS \
        'BEGIN PERFORM pg_sleep(3); RETURN NEW; END'; CREATE TRIGGER waits BEFORE INSERT \
        ON tidegate_request FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let asking = follower.ask_writer(b"why".to_vec(), Duration::from_secs(60));
    assert!(timeout(Duration::from_millis(300), asking).await.is_err());
    let count = || sql(&schema.url, "SELECT 1 FROM tidegate_request");
    assert_eq!(count(), 0, "it is not there yet");
    sleep(Duration::from_secs(5)).await;
    assert_eq!(count(), 0);
    // One that somebody waits for does.
    let asking = follower.ask_writer(b"why".to_vec(), Duration::from_secs(60));
    let looking = async {
        while count() != 1 {
            sleep(Duration::from_millis(50)).await;
        }
        // It stays.
        sleep(Duration::from_secs(1)).await;
        count()
    };
    tokio::select! {
        asked = timeout(Duration::from_secs(40), asking) => panic!("{asked:?}"),
        there = looking => assert_eq!(there, 1),
    }
    follower.close().await.unwrap();
}

struct Noting(Arc<AtomicBool>);

#[async_trait]
impl AnswerQuestions for Noting {
    async fn answer_question(&self, question: Vec<u8>) -> GatewayAnswer {
        self.0.store(true, Ordering::Release);
        question.into()
    }
}

struct Echo;

#[async_trait]
impl AnswerQuestions for Echo {
    async fn answer_question(&self, mut question: Vec<u8>) -> GatewayAnswer {
        question.reverse();
        question.into()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_question_is_answered_by_the_writer() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    let follower = follow(&schema);
    let limit = Duration::from_secs(9);
    let ask = |text: &str| follower.ask_writer(text.as_bytes().to_vec(), limit);
    assert_eq!(ask("why").await.unwrap(), None);
    writer.answer_questions(Arc::new(Echo));
    assert_eq!(ask("why").await.unwrap().unwrap(), b"yhw");
    let asked = (0..100).map(|number| async move { (number, ask(&format!("{number:03}")).await) });
    for (number, answer) in futures_util::future::join_all(asked).await {
        let answer = String::from_utf8(answer.unwrap().unwrap()).unwrap();
        assert_eq!(answer.chars().rev().collect::<String>(), format!("{number:03}"));
    }
    writer.close().await.unwrap();
    let began = Instant::now();
    assert!(follower.ask_writer(Vec::new(), Duration::from_millis(300)).await.is_err());
    assert!(began.elapsed() < Duration::from_secs(3));
    follower.close().await.unwrap();
}

/// Waits until each of these has so many shards.
pub(super) async fn until_held(shards: &[&Arc<PollShards>], wanted: &[usize]) {
    let begun = Instant::now();
    loop {
        // What is to be given back is given back, as the scheduler does once nothing is in flight.
        shards.iter().for_each(|of| of.end(of.leaving()));
        let held: Vec<usize> = shards.iter().map(|of| of.polled().len()).collect();
        if held == wanted {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{held:?} instead of {wanted:?}");
        sleep(Duration::from_millis(50)).await;
    }
}

pub(super) async fn until(by: Instant, mut holds: impl FnMut() -> bool) {
    while !holds() {
        assert!(Instant::now() < by);
        sleep(Duration::from_millis(20)).await;
    }
}

/// A gateway that writes and one that follows it, once each polls its half of the shards.
pub(super) async fn two_that_poll(
    schema: &TestSchema,
) -> ([EmbeddedStore; 2], [Arc<PollShards>; 2]) {
    let (writer, follower) = (open(schema).unwrap(), follow(schema));
    let first = writer.poll_shards().await.unwrap().unwrap();
    let second = follower.poll_shards().await.unwrap().unwrap();
    until_held(&[&first, &second], &[half(), half()]).await;
    ([writer, follower], [first, second])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn gateways_share_the_shards_and_hand_them_over() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    let first = writer.poll_shards().await.unwrap().unwrap();
    assert_eq!(first.polled().len(), usize::from(SHARDS));
    assert!(first.may_begin() && first.is_writer());
    // Who does not poll has no part.
    let follower = follow(&schema);
    sleep(Duration::from_millis(1500)).await;
    assert_eq!(first.polled().len(), usize::from(SHARDS));
    let second = follower.poll_shards().await.unwrap().unwrap();
    assert!(second.polled().is_empty() && !second.is_writer());
    until_held(&[&first, &second], &[half(), half()]).await;
    let common: BTreeSet<Shard> = first.polled().intersection(&second.polled()).copied().collect();
    assert!(common.is_empty());
    // One that is not ended is not given over.
    let wanted = *first.polled().first().unwrap();
    second.want(wanted);
    let [soon, late] = [9, 20].map(|seconds| Instant::now() + Duration::from_secs(seconds));
    until(soon, || !first.polls(wanted)).await;
    sleep(Duration::from_millis(1500)).await;
    assert!(!second.polls(wanted) && first.leaving().contains(&wanted));
    first.end([wanted]);
    until(soon, || second.polls(wanted)).await;
    // What only the writer may poll.
    second.leave_to_writer(wanted);
    until(late, || {
        second.end(second.leaving());
        first.polls(wanted)
    })
    .await;
    let name = follower.condition().owner.unwrap().name;
    until(late, || second.owner(wanted).as_deref() == Some(name.as_str())).await;
    // One whose polling has ended has nothing, also while its store is open.
    first.abstain(true);
    until_held(&[&first, &second], &[0, usize::from(SHARDS)]).await;
    first.abstain(false);
    until_held(&[&first, &second], &[half(), half()]).await;
    writer.close().await.unwrap();
    until_held(&[&second], &[usize::from(SHARDS)]).await;
    follower.close().await.unwrap();
}

/// Others took a gateway for dead that was only slow: what it asks for is not done, it has nothing any more, and then
/// its part again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_gateway_that_was_taken_for_dead_asks_for_nothing_more() {
    let Some(schema) = TestSchema::new() else { return };
    let ([writer, follower], [first, second]) = two_that_poll(&schema).await;
    list(&writer, &news()).await;
    let before = second.held();
    follower.catch_up().await.unwrap();
    let (right, late) = (claim(&follower).await, change(&follower, "late").await);
    schema.sql(
        "DELETE FROM tidegate_node WHERE polls AND node <> (SELECT owner FROM tidegate_shard WHERE shard = 0)",
    );
    let refused = follower.commit(&right, late).await.unwrap_err();
    assert!(matches!(refused, CommitError::Fenced), "{refused:?}");
    assert!(writer.state(&news()).await.unwrap().is_none());
    // It says so again within a part of its lease.
    let begun = Instant::now();
    loop {
        first.end(first.leaving());
        let now = second.held();
        let is_anew =
            now.iter().all(|(shard, held)| before.get(shard).is_none_or(|b| b.fence < held.fence));
        if now.len() == half() && is_anew {
            break;
        }
        assert!(begun.elapsed() < SHORT_LEASE * 5, "{} shards, anew: {is_anew}", now.len());
        sleep(Duration::from_millis(20)).await;
    }
    let late = change(&follower, "late").await;
    assert_eq!(follower.commit(&right, late).await.unwrap().revision, Revision(1));
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}

/// A gateway that reaches no publishers leaves them to one that does; where none does, all go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_gateway_that_reaches_no_publishers_leaves_them_to_one_that_does() {
    let Some(schema) = TestSchema::new() else { return };
    let ([writer, follower], [first, second]) = two_that_poll(&schema).await;
    let all = usize::from(SHARDS);
    first.note_reach(PublisherReach::CutOff);
    until_held(&[&first, &second], &[0, all]).await;
    // It has them again once it tries anew.
    first.note_reach(PublisherReach::Reached);
    until_held(&[&first, &second], &[half(), half()]).await;
    second.note_reach(PublisherReach::CutOff);
    until_held(&[&first, &second], &[all, 0]).await;
    first.note_reach(PublisherReach::CutOff);
    until_held(&[&first, &second], &[half(), half()]).await;
    // One that only tries again takes nothing from the other.
    first.note_reach(PublisherReach::Tried);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2500) {
        assert_eq!([&first, &second].map(|of| of.polled().len()), [half(), half()]);
        sleep(Duration::from_millis(20)).await;
    }
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn gateways_know_of_each_others_settings() {
    let Some(schema) = TestSchema::new() else { return };
    let ([writer, follower], [first, second]) = two_that_poll(&schema).await;
    let settings = |url: &str| {
        let mut settings = SharedSettings::new("1");
        settings.add("server.public_url", url);
        settings.add("publish", "the same");
        settings
    };
    let until = async |wanted: &[&str]| {
        let begun = Instant::now();
        let of = |store: &EmbeddedStore| {
            let gateways = store.condition().gateways;
            gateways.iter().flat_map(|it| it.differing.clone()).collect::<Vec<_>>()
        };
        while of(&writer) != wanted || of(&follower) != wanted {
            assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", of(&writer));
            sleep(Duration::from_millis(20)).await;
        }
    };
    first.publish_settings(settings("https://a.example"));
    second.publish_settings(settings("https://b.example"));
    until(&["server.public_url"]).await;
    let said: Vec<String> = writer.condition().differences().collect();
    assert!(said[0].starts_with("the gateway process "), "{said:?}");
    let known = follower.condition().gateways;
    let shares: Vec<_> = known.iter().map(|it| (it.writes, it.is_this, it.shards)).collect();
    for expected in [(true, false, half()), (false, true, half())] {
        assert!(shares.contains(&expected), "{shares:?}");
    }
    // When each said last that it lives is seen a moment later.
    let begun = Instant::now();
    let ages = || -> Vec<Duration> {
        follower.condition().gateways.iter().map(|it| it.beat_age).collect()
    };
    while !ages().iter().all(|age| (Duration::from_millis(1)..SHORT_LEASE).contains(age)) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", ages());
        sleep(Duration::from_millis(20)).await;
    }
    // It was read again.
    second.publish_settings(settings("https://a.example"));
    until(&[]).await;
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}

/// A gateway that took no part any more, and ended before all its shards were given over.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn shards_of_a_gateway_that_ended_as_it_gave_them_over_are_taken() {
    let Some(schema) = TestSchema::new() else { return };
    open(&schema).unwrap().close().await.unwrap();
    schema.sql(
        "INSERT INTO tidegate_node (node, name, beat_at) VALUES (7, 'process 7 elsewhere', 0); \
        UPDATE tidegate_shard SET owner = 7, fence = fence + 1 WHERE shard > 1000",
    );
    // Looks that are a third of a lease apart say nothing of the time between them.
    let writer = open_for(&schema.url, SHORT_LEASE * 3).unwrap();
    let shards = writer.poll_shards().await.unwrap().unwrap();
    until_held(&[&shards], &[usize::from(SHARDS)]).await;
    writer.close().await.unwrap();
}

/// A status that was lost, as when a node joins anew, is published again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_status_that_was_lost_is_published_again() {
    let Some(schema) = TestSchema::new() else { return };
    let ([writer, follower], [first, second]) = two_that_poll(&schema).await;
    schema.sql("UPDATE tidegate_node SET polls = false, settings = 'lost'");
    let published = "SELECT 1 FROM tidegate_node WHERE polls AND settings <> 'lost'";
    until(Instant::now() + Duration::from_secs(10), || sql(&schema.url, published) >= 2).await;
    until_held(&[&first, &second], &[half(), half()]).await;
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}
