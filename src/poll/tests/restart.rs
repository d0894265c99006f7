//! What polling retains across a restart, and what it must not.

use super::*;
use crate::permits::{Attempts, LARGE_ENTRIES, MAX_KILLS};
use tidegate_core::model::{Attempt, FeedRecord};

/// Validators are stored some seconds after the commit. After a crash in between, the stored ones belong to the
/// previous document and must not be taken for the last one's.
#[tokio::test]
async fn validators_of_an_earlier_document_are_not_sent_after_a_crash() {
    let gateway = Gateway::with_news("one").await.restart(0).await;
    let (publisher, saved) = (Arc::clone(&gateway.publisher), gateway.store.stored_polls());
    publisher.says("two", "2");
    assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
    let store = gateway.stop().await;
    store.set_polls(&saved);

    publisher.says("one", "1");
    let gateway = Gateway::start(&store, &publisher).await;
    assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
}

/// Validators and pauses of one address do not apply to another.
#[tokio::test]
async fn an_address_that_changed_over_a_restart_begins_anew() {
    let gateway = Gateway::with_news("one").await;
    gateway.publisher.fails(status_error(410, None));
    gateway.poll().await;
    gateway.store.edit_record("news", |it| it.url = "http://elsewhere.example/feed".into());
    gateway.publisher.says("one", "1");
    let gateway = gateway.restart(0).await;
    gateway.polls("news", 1).await;
    assert!(gateway.publisher.asked.lock().unwrap()[2].validators.is_empty());
    assert_eq!(gateway.status().failures, 0);
}

/// Failures that the operator must resolve are retried when they may have been resolved.
#[tokio::test]
async fn a_refused_address_is_tried_again_after_a_reload_and_after_a_restart() {
    let gateway = Gateway::with_news("one").await;
    let refusal = tidegate_net::fetch::Refusal::address("a.example", [127, 0, 0, 1].into());
    gateway.publisher.fails(FetchError::Refused { hop: 0, refusal });
    gateway.poll().await;
    assert!(gateway.status().next.unwrap().at > later(3600));
    let services = gateway.publisher.services();
    gateway.poller.reconfigure(PollSettings::default(), services).await.unwrap();
    gateway.polls("news", 3).await;
    assert!(gateway.status().next.unwrap().at > later(3600));
    gateway.restart(0).await.polls("news", 1).await;
}

/// The schedule, its basis, and pauses after failures survive a restart.
#[tokio::test]
async fn a_restart_polls_what_is_due_and_nothing_else() {
    let gateway = Gateway::with_news("one").await;
    let planned = gateway.status().next.unwrap();
    assert!(planned.reason.contains("ttl"), "{planned:?}");
    let gateway = gateway.restart(60).await;
    assert_eq!(gateway.status().next, Some(planned));
    // The document's hints are stored: an unchanged poll uses them.
    assert_eq!(gateway.poll().await.outcome, PollEnding::NotModified);
    let next = gateway.status().next.unwrap();
    assert!(next.at >= later(60 + 1200) && next.reason.contains("ttl"), "{next:?}");
    gateway.publisher.fails(status_error(500, None));
    gateway.poll().await;
    gateway.poll().await;
    let failing = gateway.status().next.unwrap();

    let gateway = gateway.restart(61).await;
    assert_eq!(gateway.status().next, Some(failing));
    assert_eq!((gateway.status().failures, gateway.publisher.requests()), (2, 4));
    let gateway = gateway.restart(5000).await;
    assert!(gateway.status().next.unwrap().reason.contains("was due"));
    gateway.polls("news", 1).await;
}

/// The times of unchanged polls are stored once an hour. After a crash, a feed continues from the last stored poll.
#[tokio::test(start_paused = true)]
async fn unchanged_polls_are_written_once_an_hour_and_a_crash_polls_once_more() {
    let gateway = Gateway::with_news("one").await;
    eventually(|| gateway.store.writes().1 == 1).await;
    let planned = gateway.status().next.unwrap().at;
    let interval = planned.since(NOW);
    for polls in 2..=3 {
        gateway.clock.set(gateway.status().next.unwrap().at);
        gateway.polls("news", polls).await;
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(gateway.store.writes().1, 1);
    let (store, publisher) = (Arc::clone(&gateway.store), Arc::clone(&gateway.publisher));
    gateway.task.abort();
    let soon = planned.plus(interval + interval / 2).since(NOW).as_secs();
    let gateway = Gateway::start_later(&store, &publisher, soon).await;
    assert!(gateway.status().next.unwrap().reason.contains("was due"));
    gateway.polls("news", 1).await;
    // After a stored poll, the plan continues from it.
    gateway.clock.set(later(3 * 3600));
    gateway.polls("news", 2).await;
    eventually(|| store.writes().1 == 2).await;
    let next = gateway.status().next.unwrap();
    gateway.task.abort();
    let gateway = Gateway::start_later(&store, &publisher, 3 * 3600 + 60).await;
    assert_eq!(gateway.status().next, Some(next));
}

fn large() -> String {
    format!("<rss><channel><title/>{}</channel></rss>", "<item/>".repeat(LARGE_ENTRIES + 1))
}

fn killed_in(store: &ScriptedStore, kills: u32) {
    let feed = name("news");
    store.set_attempt(&Attempt { feed, entries: 49_000, begun: NOW, kills, is_open: true });
}

#[tokio::test]
async fn a_large_document_bears_a_mark_while_it_is_taken_in() {
    let gateway = Gateway::with_news("one").await;
    assert_eq!(gateway.store.writes_of("marks"), 0);
    gateway.publisher.says(large(), "2");
    assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
    assert_eq!(gateway.store.writes_of("marks"), 2);
    assert!(gateway.store.stored_attempts().is_empty());
}

/// The permit is returned before the mark is closed, so the next judgement may have begun by then.
#[tokio::test(start_paused = true)]
async fn who_ends_closes_no_mark_of_another_and_one_that_is_being_stored_is_unwritten() {
    let store = store_of(&["news"]);
    let (attempts, feed) = (Arc::new(Attempts::new(store.real())), name("news"));
    assert_eq!(attempts.begin(&feed, LARGE_ENTRIES, NOW).await.unwrap(), None);
    let first = attempts.begin(&feed, LARGE_ENTRIES + 1, NOW).await.unwrap().unwrap();
    attempts.begin(&feed, LARGE_ENTRIES + 1, later(1)).await.unwrap().unwrap();
    attempts.end(&first).await.unwrap();
    assert_eq!(store.stored_attempts().len(), 1);
    attempts.close();
    let gate = store.hold_notes();
    let flushing = Arc::clone(&attempts);
    let flushing = tokio::spawn(async move { flushing.flush().await });
    a_while().await;
    assert!(attempts.has_unwritten());
    gate.add_permits(1);
    assert!(flushing.await.unwrap() && !attempts.has_unwritten());
    assert!(store.stored_attempts().is_empty());
}

#[tokio::test]
async fn a_feed_in_whose_document_the_gateway_was_killed_twice_waits_for_an_operator() {
    let store = store_of(&["news"]);
    killed_in(&store, 0);
    // After one end of the gateway, polling tries again.
    let gateway = Gateway::start(&store, &Publisher::new(large())).await;
    gateway.polls("news", 1).await;
    gateway.stop().await;
    assert!(store.stored_attempts().is_empty());
    // After the second, it does not.
    killed_in(&store, MAX_KILLS - 1);
    for _ in 0..2 {
        let gateway = Gateway::start(&store, &Publisher::new(large())).await;
        let status = gateway.status();
        let failure = status.failure.unwrap();
        assert!(failure.error.contains("ended 2 times"), "{failure:?}");
        assert!(failure.error.contains("49000 entries"), "{failure:?}");
        assert_eq!((status.next, gateway.publisher.requests()), (None, 0));
        gateway.stop().await;
    }
    let gateway = Gateway::start(&store, &Publisher::new(large())).await;
    assert_eq!(gateway.poll().await.outcome, PollEnding::NotModified);
    assert!(gateway.status().failure.is_none() && gateway.status().next.is_some());
    gateway.stop().await;
    assert!(store.stored_attempts().is_empty());
    // Putting the feed again also clears the mark.
    killed_in(&store, MAX_KILLS - 1);
    let gateway = Gateway::start(&store, &Publisher::new("one")).await;
    gateway.poller.put(record("news")).await.unwrap();
    gateway.polls("news", 1).await;
    gateway.stop().await;
    assert!(store.stored_attempts().is_empty());
}

/// A refused poll on demand leaves the feed stopped and its mark stored.
#[tokio::test]
async fn a_feed_that_is_stopped_stays_so_where_too_many_polls_are_asked_for() {
    let (store, others) = store_of_many(200);
    store.set_record(&record("news"));
    killed_in(&store, MAX_KILLS - 1);
    let publisher = Publisher::gated("one");
    let gateway = Gateway::start(&store, &publisher).await;
    let mut asked = tokio::task::JoinSet::new();
    for other in &others {
        let (poller, other) = (gateway.poller.clone(), name(other));
        asked.spawn(async move { poller.poll_now(&other).await });
    }
    // The publisher answers nobody, so an answered call was refused.
    asked.join_next().await.unwrap().unwrap().unwrap_err();
    let refused = gateway.poller.poll_now(&name("news")).await;
    assert!(matches!(refused, Err(PollError::TooMany { .. })), "{refused:?}");
    let store = gateway.stop().await;
    assert_eq!(store.stored_attempts().len(), 1);
    let gateway = Gateway::start(&store, &Publisher::new("one")).await;
    assert!(gateway.status().next.is_none() && gateway.status().failure.is_some());
}

/// A reader whose request created a feed got nothing if the gateway stopped then, so such feeds come first.
#[tokio::test(start_paused = true)]
async fn feeds_that_requests_made_and_nobody_polled_are_first_after_a_start() {
    let (store, _) = store_of_many(300);
    let asked: Vec<_> = (0..20).map(|n| name(&format!("asked{n}"))).collect();
    for name in &asked {
        let url = record(name.as_str()).url;
        store.set_record(&FeedRecord::on_demand(name.clone(), &url, "http://site.example/", NOW));
    }
    let gateway = Gateway::start(&store, &Publisher::new("one")).await;
    let polls = |name| gateway.poller.status(name).map_or(0, |status| status.polls.len());
    eventually(|| asked.iter().all(|name| polls(name) == 1)).await;
    let others = gateway.poller.totals().polls() - 20;
    assert!(others < 60, "{others} others in the second of the start");
}

#[tokio::test(start_paused = true)]
async fn walks_that_go_on_after_a_start_are_spread() {
    let (store, feeds) = store_of_many(300);
    let gateway = Gateway::start(&store, &Publisher::new("one")).await;
    gateway.clock.set(later(600));
    eventually(|| gateway.poller.totals().polls() == 300).await;
    gateway.stop().await;
    for feed in &feeds {
        store.edit_record(feed, |it| it.options.backfill = true);
    }
    let publisher = Publisher::new("one");
    let gateway = Gateway::start_later(&store, &publisher, 660).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let at_once = publisher.requests();
    assert!(at_once < 60, "{at_once} of them in the second of the start");
    gateway.clock.set(later(700));
    eventually(|| publisher.requests() == 300).await;
}
