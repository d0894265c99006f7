use super::*;
use InterruptionKind::{Failed, Held};
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_core::model::{FeedRecord, Interruption, InterruptionKind};
use tidegate_net::fetch::Fetched;

fn fails(gateway: &Gateway) {
    gateway.publisher.fails(status_error(503, None));
}

async fn poll_at(gateway: &Gateway, seconds: u64) {
    gateway.clock.set(later(seconds));
    gateway.poll().await;
}

/// Returns the kind, start and end of each interruption, in seconds.
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
    gateway.publisher.says(EMPTY, "2");
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
    let feed = gateway.store.record(&name("news")).unwrap();
    let paused = FeedRecord { standing: FeedStanding::Paused, ..feed.clone() };
    gateway.clock.set(later(20));
    gateway.poller.put(paused.clone()).await.unwrap();
    let status = gateway.status();
    assert_eq!((status.polls.len(), status.next), (2, None));
    // The failure ends with the pause: its continuation is unknown.
    assert_eq!(interruptions(&gateway), [(Failed, 10, Some(20))]);
    // The same holds after a restart, except that polls are not stored.
    gateway.store.set_record(&paused);
    gateway.publisher.says("one", "1");
    let gateway = gateway.restart(30).await;
    assert_eq!(interruptions(&gateway), [(Failed, 10, Some(20))]);
    let asked = gateway.publisher.requests();

    gateway.poller.put(feed.clone()).await.unwrap();
    eventually(|| gateway.publisher.requests() > asked).await;
    eventually(|| !gateway.status().polls.is_empty()).await;
    let status = gateway.status();
    assert_eq!((status.polls[0].outcome, status.failures), (PollEnding::Unchanged, 0));
    assert_eq!(interruptions(&gateway), [(Failed, 10, Some(20))]);
    // What was known of another address is forgotten, and all of a removed feed.
    gateway.poller.put(paused.clone()).await.unwrap();
    gateway.poller.put(moved()).await.unwrap();
    gateway.polls("news", 1).await;
    assert_eq!((gateway.status().polls.len(), interruptions(&gateway)), (1, Vec::new()));
    gateway.poller.put(FeedRecord { standing: FeedStanding::Gone, ..paused }).await.unwrap();
    assert_eq!(gateway.poller.status(&name("news")), None);
}

/// Otherwise the site would be polled at full pace, and its refusal would stay hidden.
#[tokio::test]
async fn what_a_reader_was_answered_leaves_failures_and_their_backoff_as_they_are() {
    let (store, publisher) = (store_of(&["news"]), Publisher::new("one"));
    // The site refuses the gateway, and answers a reader whose request is passed on.
    let is_from_reader = Arc::new(AtomicBool::new(true));
    let passes = Arc::clone(&is_from_reader);
    let services = publisher.services_by(move |publisher, request| {
        let is_from_reader = passes.load(Ordering::SeqCst);
        let answer =
            if is_from_reader { publisher.reply(request) } else { Err(status_error(403, None)) };
        Ok(Fetched { is_from_reader, ..answer? })
    });
    let gateway = Gateway::with_client(&store, &publisher, services).await;
    gateway.polls("news", 1).await;
    let status = gateway.status();
    assert_eq!((status.failures, status.reads_answers()), (0, false), "the first poll takes one");

    is_from_reader.store(false, Ordering::SeqCst);
    for at in [10, 20, 30] {
        poll_at(&gateway, at).await;
    }
    let before = gateway.status();
    assert_eq!((before.failures, before.reads_answers()), (3, false));
    is_from_reader.store(true, Ordering::SeqCst);
    gateway.publisher.says("two", "2");
    gateway.clock.set(later(40));
    assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
    let after = gateway.status();
    assert_eq!((after.failures, &after.failure, &after.next), (3, &before.failure, &before.next));
    assert!(after.reads_answers());
    assert_eq!((after.failing_since(), after.last_read), (Some(later(10)), Some(later(40))));
    let summary = gateway.poller.summary(&name("news")).unwrap();
    assert_eq!((summary.failures, summary.error), (3, before.failure.map(|it| it.error)));
    // The next failure counts as the fourth; the first successful poll of its own ends the row.
    is_from_reader.store(false, Ordering::SeqCst);
    poll_at(&gateway, 50).await;
    assert_eq!((gateway.status().failures, gateway.status().reads_answers()), (4, true));
    let next = gateway.status().next.unwrap().at;
    let store = gateway.stop().await;
    let again = Gateway::start_later(&store, &Publisher::new("two"), 60).await;
    assert_eq!((again.status().failures, again.status().next.unwrap().at), (4, next));
    poll_at(&again, 70).await;
    assert_eq!((again.status().failures, again.status().failing_since()), (0, None));
}
