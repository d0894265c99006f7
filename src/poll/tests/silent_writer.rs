//! Polls of a gateway that follows, while the one that writes answers nothing, or takes a change in no more.

use super::shards::{LoggedRequests, start};
use super::*;
use crate::testing::shards::{follower, give, held, shard};
use tidegate_store::{DatabaseOwner, PollShards, StoreCondition};
use tokio::sync::Semaphore;

/// A gateway that follows and has the shards of these feeds, and its requests.
async fn following(
    store: &StoreDouble,
    feeds: &[&str],
) -> (Gateway, Arc<PollShards>, Arc<LoggedRequests>) {
    let owner = Some(DatabaseOwner { name: "writer".to_owned(), is_gone: false });
    store.shelf.lock().unwrap().condition = StoreCondition { owner, ..StoreCondition::default() };
    let (shards, publisher) = (follower(), Publisher::new("one"));
    give(&shards, held(feeds, 1));
    let (gateway, log) = start(store, &shards, &publisher).await;
    (gateway, shards, log)
}

/// However long the change took to store.
#[tokio::test(start_paused = true)]
async fn the_interval_counts_from_the_answer_of_the_publisher() {
    let store = StoreDouble::new(&["a"]);
    let minute = Some(Duration::from_secs(60));
    {
        let options = &mut store.shelf.lock().unwrap().feeds[0].options;
        (options.min_interval, options.max_interval) = (minute, minute);
    }
    let (gateway, _shards, log) = following(&store, &["a"]).await;
    gateway.polls("a", 1).await;
    let gate = Arc::new(Semaphore::new(0));
    store.shelf.lock().unwrap().gate = Some(Arc::clone(&gate));
    for (polls, text, begun, waits) in
        [(2, "two", 1000, 20), (3, "three", 2000, 59), (4, "four", 3000, 200)]
    {
        gateway.publisher.says(text, text);
        gateway.clock.set(later(begun));
        eventually(|| log.begun("a") == polls).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        gateway.clock.set(later(begun + waits));
        gate.add_permits(1);
        gateway.polls("a", polls.into()).await;
        let next = gateway.poller.status(&name("a")).unwrap().next;
        assert!(waits > 60 || next.unwrap().at == later(begun + 60), "after {waits} s");
    }
    // The interval was over when the last change was stored.
    eventually(|| log.begun("a") == 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_the_writer_does_not_answer_to_is_not_decided_anew() {
    let store = StoreDouble::new(&["a"]);
    let (gateway, shards, log) = following(&store, &["a"]).await;
    gateway.polls("a", 1).await;
    store.shelf.lock().unwrap().trouble = vec![Trouble::LostUnknown];
    gateway.publisher.says("two", "2");
    let report = gateway.poller.poll_now(&name("a")).await.unwrap();
    assert_eq!(report.outcome, PollEnding::Failed);
    assert!(report.error.unwrap().contains("could not be stored"));
    assert_eq!((store.writes().0, log.begun("a")), (1, 2));
    assert!(!shards.take_requests().of_writer.contains(&shard("a")));
    let status = gateway.poller.status(&name("a")).unwrap();
    assert_eq!((status.failures, status.next.unwrap().at), (0, later(10)));
    // What was stored is seen, whether it was answered or not.
    store.shelf.lock().unwrap().trouble = vec![Trouble::StoredUnknown];
    let report = gateway.poller.poll_now(&name("a")).await.unwrap();
    assert_eq!((report.outcome, store.writes().0), (PollEnding::Changed, 2));
}

/// Which this gateway learns later.
#[tokio::test(start_paused = true)]
async fn a_poll_of_a_feed_that_was_paused_is_given_up() {
    let store = StoreDouble::new(&["a"]);
    let (gateway, shards, log) = following(&store, &["a"]).await;
    gateway.polls("a", 1).await;
    store.shelf.lock().unwrap().trouble = vec![Trouble::NotPolled; 2];
    gateway.publisher.says("two", "2");
    assert_eq!(gateway.poller.poll_now(&name("a")).await, Err(PollError::Unknown));
    assert_eq!((store.writes().0, log.begun("a")), (1, 2));
    let status = gateway.poller.status(&name("a")).unwrap();
    assert_eq!((status.totals.polls(), status.failures, status.failure), (1, 0, None));
    assert_eq!(status.next.unwrap().at, later(10));
    assert!(shards.take_requests().of_writer.is_empty());
    // And so is one that was due.
    gateway.clock.set(later(86_400));
    eventually(|| log.begun("a") == 3).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((store.writes().0, log.begun("a")), (1, 3));
    // It was resumed.
    gateway.clock.set(later(86_410));
    gateway.polls("a", 2).await;
    assert_eq!(store.writes().0, 2);
}

/// However many changes wait for it.
#[tokio::test(start_paused = true)]
async fn feeds_that_do_not_change_are_polled_while_the_writer_answers_nothing() {
    let names: Vec<String> = (0..340).map(|number| format!("changed{number}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    let store = StoreDouble::new(&["quiet"]);
    let (gateway, shards, log) = following(&store, &["quiet"]).await;
    gateway.polls("quiet", 1).await;
    let gate = Arc::new(Semaphore::new(0));
    {
        let mut shelf = store.shelf.lock().unwrap();
        shelf.gate = Some(Arc::clone(&gate));
        shelf.feeds.extend(names.iter().enumerate().map(|(number, feed)| {
            let mut record = record(feed);
            record.options.min_interval =
                Some(Duration::from_secs(if number.is_multiple_of(2) { 20 } else { 900 }));
            record
        }));
    }
    names.push("quiet");
    give(&shards, held(&names, 1));
    names.pop();
    let is_known = |feed: &&str| gateway.poller.status(&name(feed)).is_some();
    eventually(|| names.iter().all(is_known)).await;
    gateway.clock.set(later(60));
    eventually(|| names.iter().all(|feed| log.begun(feed) == 1)).await;
    gateway.clock.set(later(86_400));
    gateway.polls("quiet", 2).await;
    assert_eq!(store.writes().0, 1);
    let is_over = |feed: &&&str| {
        let status = gateway.poller.status(&name(feed)).unwrap();
        status.polls.front().is_some_and(|poll| {
            assert!(poll.failure.as_ref().unwrap().error.contains("too many changes wait"));
            true
        })
    };
    // 256 wait, and what found no room is asked for again later, as its interval allows.
    eventually(|| names.iter().filter(is_over).count() == names.len() - 256).await;
    let rests = |number: usize| if number.is_multiple_of(2) { 20 } else { 60 };
    let over = names.iter().enumerate().filter(|(_, feed)| is_over(feed));
    for (number, feed) in over {
        let next = gateway.poller.status(&name(feed)).unwrap().next.unwrap();
        assert_eq!(next.at, later(86_400 + rests(number)), "{feed}");
    }
    gate.add_permits(1000);
    gateway.clock.set(later(86_460));
    eventually(|| store.writes().0 == 341).await;
}
