//! What polling remembers, where another gateway takes its time to write it.

use super::shards::{a_while, asks};
use super::*;
use crate::attempts::Attempts;
use crate::testing::shards::{follower, give, held, shard};
use crate::turns::LARGE_ENTRIES;
use tidegate_core::model::{Attempt, PollState};
use tidegate_store::PollShards;
use tokio::sync::Semaphore;

/// A gateway that follows and has polled these feeds. What it remembers of them is passed on, and stored once the
/// semaphore lets it.
async fn passes_on(feeds: &[&str]) -> (Gateway, Arc<PollShards>, Arc<Semaphore>) {
    let store = StoreDouble::new(feeds);
    let gate = Arc::new(Semaphore::new(0));
    store.shelf.lock().unwrap().checkpoint_gate = Some(Arc::clone(&gate));
    let (shards, publisher) = (follower(), Publisher::new("one"));
    let gateway = Gateway::start(&store.shared_by(&shards), &publisher).await;
    give(&shards, held(feeds, 1));
    for feed in feeds {
        gateway.polls(feed, 1).await;
    }
    eventually(|| gateway.store.shelf.lock().unwrap().begun == 1).await;
    (gateway, shards, gate)
}

fn stored(store: &StoreDouble, feed: &str) -> Option<PollState> {
    store.shelf.lock().unwrap().poll_states.get(&name(feed)).cloned()
}

#[tokio::test(start_paused = true)]
async fn polling_goes_on_while_what_it_remembers_is_being_stored() {
    let (gateway, _shards, gate) = passes_on(&["a", "b"]).await;
    let store = Arc::clone(&gateway.store);
    let etag = |feed| stored(&store, feed).and_then(|state| state.etag);
    gateway.publisher.says("two", "2");
    gateway.clock.set(later(86_400));
    gateway.polls("a", 2).await;
    gateway.polls("b", 2).await;
    gateway.poller.poll_now(&name("a")).await.unwrap();
    a_while().await;
    assert_eq!(etag("a"), None);
    assert_eq!(store.shelf.lock().unwrap().begun, 1, "one at a time");
    gate.add_permits(1);
    eventually(|| etag("a").is_some() && etag("b").is_some()).await;
    assert_eq!(etag("a").as_deref(), Some("1"));
    // What has changed meanwhile goes with the next.
    gate.add_permits(1);
    eventually(|| etag("a").as_deref() == Some("2") && etag("b").as_deref() == Some("2")).await;
    a_while().await;
    assert_eq!(store.writes().1, 2);
}

#[tokio::test(start_paused = true)]
async fn a_shard_is_given_back_once_what_was_being_stored_is_and_what_came_after() {
    let (gateway, shards, gate) = passes_on(&["a"]).await;
    let trouble = |trouble| gateway.store.shelf.lock().unwrap().trouble = trouble;
    gateway.clock.set(later(30));
    shards.give_back([shard("a")]);
    eventually(|| gateway.poller.status(&name("a")).is_none()).await;
    let is_ended = || shards.take_requests().ended.contains(&shard("a"));
    a_while().await;
    assert!(!is_ended(), "it is being stored");
    trouble(vec![Trouble::Unwritable]);
    gate.add_permits(1);
    a_while().await;
    assert!(!is_ended() && stored(&gateway.store, "a").is_none(), "it was refused");
    trouble(Vec::new());
    assert!(gateway.store.shelf.lock().unwrap().begun >= 2, "it is tried again");
    gate.add_permits(1);
    asks(&shards, |asked| asked.ended.contains(&shard("a"))).await;
    let schedule = stored(&gateway.store, "a").unwrap().schedule.unwrap();
    assert_eq!(schedule.noted, later(30));
}

#[tokio::test(start_paused = true)]
async fn what_is_newer_than_what_is_being_stored_keeps_its_shard() {
    let (gateway, shards, gate) = passes_on(&["a"]).await;
    gateway.clock.set(later(30));
    shards.give_back([shard("a")]);
    eventually(|| gateway.poller.status(&name("a")).is_none()).await;
    gate.add_permits(1);
    a_while().await;
    assert_eq!(stored(&gateway.store, "a").unwrap().schedule.unwrap().noted, NOW);
    assert!(shards.take_requests().ended.is_empty());
    gate.add_permits(1);
    asks(&shards, |asked| asked.ended.contains(&shard("a"))).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_on_being_stored_of_a_shard_that_another_gateway_has_taken() {
    let (gateway, shards, gate) = passes_on(&["a", "b"]).await;
    give(&shards, held(&["b"], 1));
    eventually(|| gateway.poller.status(&name("a")).is_none()).await;
    a_while().await;
    gate.add_permits(9);
    eventually(|| stored(&gateway.store, "b").is_some()).await;
    a_while().await;
    assert!(stored(&gateway.store, "a").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_what_is_being_stored() {
    let (gateway, _shards, gate) = passes_on(&["a"]).await;
    let store = Arc::clone(&gateway.store);
    let stopping = tokio::spawn(gateway.stop());
    a_while().await;
    assert!(!stopping.is_finished());
    gate.add_permits(9);
    stopping.await.unwrap();
    assert_eq!(stored(&store, "a").unwrap().etag.as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_being_stored_counts_as_unwritten() {
    let store = StoreDouble::new(&["a"]);
    let (attempts, feed) = (Arc::new(Attempts::new(store.clone())), name("a"));
    attempts.begin(&feed, LARGE_ENTRIES + 1, NOW).await.unwrap().unwrap();
    attempts.close();
    let gate = Arc::new(Semaphore::new(0));
    store.shelf.lock().unwrap().checkpoint_gate = Some(Arc::clone(&gate));
    let flushing = tokio::spawn({
        let attempts = Arc::clone(&attempts);
        async move { attempts.flush().await }
    });
    a_while().await;
    assert!(attempts.is_unwritten(&feed) && attempts.has_unwritten());
    gate.add_permits(1);
    assert!(flushing.await.unwrap());
    assert!(!attempts.is_unwritten(&feed) && !attempts.has_unwritten());
    assert!(store.shelf.lock().unwrap().attempts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_stored_costs_no_state_at_the_end() {
    let store = StoreDouble::new(&["a"]);
    let mark = Attempt { feed: name("a"), entries: 1, begun: NOW, kills: 0, is_open: true };
    {
        let mut shelf = store.shelf.lock().unwrap();
        shelf.attempts.insert(name("a"), mark);
        shelf.refuses_marks = true;
    }
    let gateway = Gateway::start(&store, &Publisher::new("one")).await;
    gateway.polls("a", 1).await;
    assert!(stored(&store, "a").is_none());
    gateway.stop().await;
    assert_eq!(stored(&store, "a").unwrap().etag.as_deref(), Some("1"));
    assert!(store.shelf.lock().unwrap().attempts[&name("a")].is_open);
}
