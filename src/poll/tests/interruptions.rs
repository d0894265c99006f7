//! When a feed did not go on as usual, over restarts and pauses.

use super::*;
use crate::model::{FeedRecord, Interruption, InterruptionKind};
use InterruptionKind::{Failed, Held};

fn fails(gateway: &Gateway) {
    let error = FetchError::Status { code: 503, retry_after: None, redirected_to: None };
    gateway.publisher.fails(error);
}

async fn poll_at(gateway: &Gateway, seconds: u64) {
    gateway.clock.set(later(seconds));
    gateway.poll().await;
}

/// Of each interruption its kind, and from when to when it lasted, in seconds.
fn interruptions(gateway: &Gateway) -> Vec<(InterruptionKind, u64, Option<u64>)> {
    let seconds = |at: Time| at.since(NOW).as_secs();
    let told = |it: &Interruption| (it.kind, seconds(it.since), it.until.map(seconds));
    gateway.status().interruptions.iter().map(told).collect()
}

#[tokio::test]
async fn failures_and_holds_are_known_with_their_times_and_outlive_a_restart() {
    let gateway = Gateway::with_news("one").await;
    fails(&gateway);
    poll_at(&gateway, 10).await;
    poll_at(&gateway, 20).await;
    gateway.publisher.says("empty", "2");
    poll_at(&gateway, 30).await;
    gateway.publisher.says("two", "3");
    poll_at(&gateway, 40).await;
    fails(&gateway);
    poll_at(&gateway, 50).await;
    let expected = [(Failed, 10, Some(30)), (Held, 30, Some(40)), (Failed, 50, None)];
    assert_eq!(interruptions(&gateway), expected);
    let reason = gateway.status().interruptions.iter().next().unwrap().reason.clone();
    assert!(reason.contains("503"), "{reason}");

    let store = gateway.stop().await;
    let gateway = Gateway::start_later(&store, &Publisher::new("two"), 60).await;
    assert_eq!(interruptions(&gateway), expected);
    poll_at(&gateway, 70).await;
    assert_eq!(interruptions(&gateway)[2], (Failed, 50, Some(70)));
}

#[tokio::test]
async fn a_pause_forgets_neither_polls_nor_interruptions() {
    let gateway = Gateway::with_news("one").await;
    fails(&gateway);
    poll_at(&gateway, 10).await;
    let feed = gateway.store.shelf.lock().unwrap().feeds[0].clone();
    let paused = FeedRecord { standing: FeedStanding::Paused, ..feed.clone() };
    gateway.clock.set(later(20));
    gateway.poller.put(paused.clone()).await.unwrap();
    let status = gateway.status();
    assert_eq!((status.polls.len(), status.next, status.in_flight), (2, None, false));
    // Nobody knows whether it would have failed while it was not polled.
    assert_eq!(interruptions(&gateway), [(Failed, 10, Some(20))]);

    // So it is after a restart, but for the polls, which are not written down.
    gateway.store.shelf.lock().unwrap().feeds[0] = paused;
    let (store, publisher) = (Arc::clone(&gateway.store), Arc::clone(&gateway.publisher));
    gateway.stop().await;
    publisher.says("one", "1");
    let gateway = Gateway::start_later(&store, &publisher, 30).await;
    assert_eq!(interruptions(&gateway), [(Failed, 10, Some(20))]);
    let asked = publisher.requests();

    gateway.poller.put(feed).await.unwrap();
    eventually(|| publisher.requests() > asked).await;
    eventually(|| !gateway.status().polls.is_empty()).await;
    let status = gateway.status();
    assert_eq!((status.polls[0].outcome, status.failures), (PollEnding::NotModified, 0));
    assert_eq!(interruptions(&gateway), [(Failed, 10, Some(20))]);
}

#[tokio::test]
async fn what_was_known_of_another_address_or_of_a_removed_feed_is_forgotten() {
    let gateway = Gateway::with_news("one").await;
    fails(&gateway);
    poll_at(&gateway, 10).await;
    let feed = gateway.store.shelf.lock().unwrap().feeds[0].clone();
    let paused = FeedRecord { standing: FeedStanding::Paused, ..feed.clone() };
    gateway.poller.put(paused.clone()).await.unwrap();
    gateway.publisher.says("one", "1");
    let moved = FeedRecord { url: "http://elsewhere.example/feed".to_owned(), ..feed };
    gateway.poller.put(moved).await.unwrap();
    gateway.polls("news", 1).await;
    assert_eq!((gateway.status().polls.len(), interruptions(&gateway)), (1, Vec::new()));

    let gone = FeedRecord { standing: FeedStanding::Gone, ..paused };
    gateway.poller.put(gone).await.unwrap();
    assert_eq!(gateway.poller.status(&name("news")), None);
}
