//! Rounds and the polling task, with doubles for everything outside.

mod announced;
mod checkpoints;
mod hubs;
mod interruptions;
mod leaps;
mod ownership;
mod pauses;
mod probes;
mod restart;
mod sharing;
mod store_trouble;

use super::*;
use crate::testing::double::*;
use crate::testing::gateway::*;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{EventKind, FeedRecord, FeedStanding, Time};
use tidegate_net::fetch::{FetchBlame, FetchError};
use tidegate_status::*;

fn later(seconds: u64) -> Time {
    NOW.plus(Duration::from_secs(seconds))
}

async fn a_while() {
    tokio::time::sleep(Duration::from_secs(30)).await;
}

fn store_of_many(count: usize) -> (Arc<ScriptedStore>, Vec<String>) {
    let names: Vec<String> = (0..count).map(|n| format!("feed{n}")).collect();
    (store_of(&names.iter().map(String::as_str).collect::<Vec<_>>()), names)
}

impl Gateway {
    /// Stops this gateway and starts the next one `seconds` after [`NOW`].
    async fn restart(self, seconds: u64) -> Self {
        let publisher = Arc::clone(&self.publisher);
        Self::start_later(&self.stop().await, &publisher, seconds).await
    }
}

/// A document without items.
const EMPTY: &str = "<rss version=\"2.0\"><channel><title>News</title></channel></rss>";

/// Makes a document of the posts of these days.
fn posts(days: &[u32]) -> String {
    let post = |day: &u32| {
        format!(
            "<item><title>Post {day}</title><guid isPermaLink=\"false\">{day}</guid>\
             <pubDate>{day} Nov 2026 12:00:00 GMT</pubDate></item>"
        )
    };
    let posts: String = days.iter().map(post).collect();
    format!("<rss version=\"2.0\"><channel><title>News</title>{posts}</channel></rss>")
}

/// Lets the requests to a host follow each other at once.
fn without_pauses(config: &mut PollerConfig) {
    config.settings.hosts.spacing = Duration::ZERO;
}

fn moved() -> FeedRecord {
    FeedRecord { url: "http://elsewhere.example/".into(), ..record("news") }
}

#[tokio::test]
async fn unchanged_polls_write_nothing() {
    let gateway = Gateway::with_news("moved, fresh").await;
    assert_eq!(gateway.poll().await.outcome, PollEnding::NotModified);
    let next = gateway.status().next.unwrap();
    assert!(next.at >= later(3600) && next.reason.contains("Cache-Control"), "{next:?}");
    // Another validator, the same bytes.
    gateway.publisher.says("moved, fresh", "2");
    assert_eq!(gateway.poll().await.outcome, PollEnding::Unchanged);
    assert_eq!(gateway.poll().await.outcome, PollEnding::NotModified);
    // Other transferred bytes, but the same after decompression.
    gateway.publisher.says("moved, fresh ", "3");
    let report = gateway.poll().await;
    assert_eq!(report.outcome, PollEnding::Unchanged);
    assert_eq!(report.until, gateway.store.state_of("news").tick);
    let status = gateway.status();
    let not_modified = |poll: &&FinishedPoll| poll.outcome == PollEnding::NotModified;
    assert_eq!((status.polls.len(), status.polls.iter().filter(not_modified).count()), (5, 2));
    assert_eq!(status.moved_to.as_deref(), Some("http://new.example/"));
    // Another document that changes nothing is not judged twice.
    let trivial = document_of("moved").replace("12:00:01", "12:00:02");
    for etag in ["4", "5"] {
        gateway.publisher.says(&trivial, etag);
        assert_eq!(gateway.poll().await.outcome, PollEnding::Unchanged);
    }
    let wire = xxhash_rust::xxh3::xxh3_128(trivial.as_bytes());
    assert_eq!(gateway.publisher.asked.lock().unwrap()[6].known_wire, Some(wire));
    let store = gateway.stop().await;
    // One commit and one checkpoint, both for the first poll. The checkpoint contains what was known when it was
    // written.
    assert_eq!(store.writes(), (1, 1));
    assert_eq!(store.poll_state("news").unwrap().etag.as_deref(), Some("5"));
}

/// A list is complete, so that what it lacks three times in half a day was deleted.
#[tokio::test]
async fn what_is_pending_is_decided_when_it_is_ripe_and_not_before() {
    for early in [1, 0] {
        let (store, publisher) = (store_of(&["news"]), Publisher::new(posts(&[3, 2, 1])));
        store.edit_record("news", |it| {
            it.options.complete = true;
            it.options.min_interval = Some(Duration::from_secs(86_400));
        });
        let gateway = Gateway::start(&store, &publisher).await;
        gateway.polls("news", 1).await;
        publisher.says(posts(&[3, 1]), "2");
        gateway.poll().await;
        store.take_reads("frames");
        for _ in 0..early {
            assert_eq!(gateway.poll().await.outcome, PollEnding::NotModified);
        }
        assert_eq!(store.take_reads("frames"), [""; 0], "nothing was judged");
        let next = gateway.status().next.unwrap();
        assert_eq!(next.reason, "something pending can be decided then");
        gateway.clock.set(later(12 * 3600));
        // The scheduled poll may come first; the third observation finds the deletion.
        gateway.poll().await;
        gateway.poll().await;
        let is_deletion = |poll: &FinishedPoll| poll.counts.contains_key(&EventKind::Deleted);
        assert_eq!(gateway.status().polls.iter().rev().position(is_deletion), Some(3));
        assert_eq!(store.writes().0, 3);
    }
}

#[tokio::test]
async fn a_document_apart_from_the_last_one_is_counted_and_dated_over_a_restart() {
    let gateway = Gateway::with_news("one").await;
    assert_eq!(gateway.status().gaps, PollGaps::default(), "a first document");
    gateway.clock.set(later(600));
    gateway.publisher.says("two", "2");
    assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
    let gaps = PollGaps { count: 1, last: Some(later(600)) };
    assert_eq!((gateway.status().gaps, gateway.poller.totals().apart), (gaps, 1));
    gateway.clock.set(later(700));
    assert_eq!(gateway.poll().await.outcome, PollEnding::NotModified);
    assert_eq!(gateway.status().gaps, gaps, "the same document again");
    // A partial document tells nothing about missing items.
    for (text, writes) in [("three, delta", 3), ("four, delta", 4)] {
        gateway.publisher.says(text, text);
        gateway.poll().await;
        assert_eq!((gateway.status().gaps, gateway.store.writes().0), (gaps, writes));
    }

    let gateway = gateway.restart(800).await;
    assert_eq!((gateway.status().gaps, gateway.poller.totals().apart), (gaps, 0));
}

/// A hold is confirmed by observing the document again, so neither a 304 nor an equal body may prevent its judgement.
#[tokio::test]
async fn a_held_document_is_told_and_asked_for_whole_and_judged_again() {
    let gateway = Gateway::with_news("one").await;
    gateway.publisher.says(EMPTY, "2");
    let before = gateway.store.writes().0;
    for polls in 1..=3 {
        let report = gateway.poll().await;
        let held = Some("empty: the document is empty, the last one had 1 items");
        assert_eq!((report.outcome, report.held.as_deref()), (PollEnding::Unchanged, held));
        assert_eq!(gateway.store.writes().0, before + polls);
    }
    {
        let asked = gateway.publisher.asked.lock().unwrap();
        let asked = &asked[asked.len() - 2..];
        assert!(asked.iter().all(|r| r.validators.is_empty() && r.known_wire.is_none()));
    }
    // The last good document ends the hold, although the state already has its fingerprint.
    gateway.publisher.says("one", "1");
    let report = gateway.poll().await;
    assert_eq!((report.outcome, report.held), (PollEnding::Unchanged, None));
    assert_eq!(gateway.poll().await.outcome, PollEnding::NotModified);
}

/// After a restart, only the store knows that the last document was partial.
#[tokio::test]
async fn a_part_seen_again_after_a_restart_confirms_nothing() {
    for mark in ["", "<!-- delta -->"] {
        let gateway = Gateway::with_news(posts(&[3, 2, 1])).await;
        gateway.publisher.says(posts(&[3, 1]), "2");
        gateway.poll().await;
        // The document is cut off after its newest post.
        let part = posts(&[4, 3]).replace("</channel></rss>", "<item>") + mark;
        gateway.publisher.says(part, "3");
        // What is left of a broken document is doubted at first.
        assert_eq!(gateway.poll().await.outcome, PollEnding::Unchanged);
        assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
        let asked = gateway.publisher.requests();
        let gateway = gateway.restart(86_400).await;
        for _ in 0..3 {
            gateway.poll().await;
        }
        assert_eq!(probes::deleted(&gateway, "news").await, 0, "{mark}");
        let asked = &gateway.publisher.asked.lock().unwrap()[asked..];
        assert!(asked.iter().all(|r| r.validators.is_empty()), "{mark}");
    }
}

#[tokio::test]
async fn a_failure_leaves_everything_and_is_told_with_its_blame() {
    let gateway = Gateway::with_news("one").await;
    let before = gateway.store.state_of("news");
    for (error, seconds) in [
        (status_error(410, None), 86_400),
        (status_error(429, Some(Duration::from_secs(7200))), 7200),
        (status_error(500, None), 1200),
    ] {
        gateway.publisher.fails(error.clone());
        let report = gateway.poll().await;
        assert_eq!((report.outcome, report.error), (PollEnding::Failed, Some(error.to_string())));
        let status = gateway.status();
        assert_eq!(status.failure.as_ref().map(|f| f.blame), Some(FetchBlame::Upstream));
        assert_eq!(status.failure.unwrap().status, error.status());
        let wait = status.next.unwrap().at.since(NOW).as_secs();
        assert!(wait >= seconds && wait <= seconds * 11 / 10, "{error}: {wait}");
    }
    assert_eq!(gateway.status().failures, 3);
    assert_eq!(gateway.store.state_of("news"), before);

    gateway.publisher.says("one", "1");
    assert_eq!(gateway.poll().await.outcome, PollEnding::Unchanged);
    let status = gateway.status();
    assert_eq!((status.failures, status.failure), (0, None));
}

#[tokio::test]
async fn a_web_page_costs_one_poll() {
    let gateway = Gateway::with_news("<html><body>Please log in</body></html>").await;
    assert_eq!(gateway.status().polls[0].outcome, PollEnding::Failed);
    assert_eq!(gateway.status().failure.unwrap().blame, FetchBlame::Upstream);
    // The validators of the answer are not kept.
    gateway.publisher.says("one", "1");
    assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
}

#[tokio::test]
async fn a_commit_of_unknown_fate_is_looked_up() {
    let gateway = Gateway::with_news("one").await;
    for (fault, text) in [(StoreFault::Unknown, "two"), (StoreFault::Lost, "three")] {
        let before = gateway.store.writes().0;
        gateway.store.fault(fault);
        gateway.publisher.says(text, text);
        let report = gateway.poll().await;
        assert_eq!(report.outcome, PollEnding::Changed);
        assert_eq!(report.counts.get(&EventKind::Created), Some(&1));
        assert_eq!(gateway.store.writes().0, before + 1, "{text}");
        assert_eq!(report.until, gateway.store.state_of("news").tick);
    }
}

fn ask_twice(gateway: &Gateway) -> [tokio::task::JoinHandle<Result<PollResponse, PollError>>; 2] {
    [(); 2].map(|()| {
        let poller = gateway.poller.clone();
        tokio::spawn(async move { poller.poll_now(&name("news")).await })
    })
}

#[tokio::test]
async fn poll_now_is_not_answered_by_a_request_that_was_in_flight() {
    let publisher = Publisher::gated("old");
    let gateway = Gateway::start(&store_of(&["news"]), &publisher).await;
    eventually(|| publisher.requests() == 1).await;
    assert!(gateway.poller.summary(&name("news")).unwrap().is_in_flight);
    // The publisher's document changes after its old answer was sent.
    let asked = ask_twice(&gateway);
    tokio::task::yield_now().await;
    publisher.release(1);
    eventually(|| publisher.requests() == 2).await;
    assert!(!asked.iter().any(|answer| answer.is_finished()));
    publisher.says("new", "2");
    publisher.release(2);
    for answer in asked {
        let report = answer.await.unwrap().unwrap();
        assert_eq!(report.outcome, PollEnding::Changed);
        assert_eq!(report.until, gateway.store.state_of("news").tick);
    }
    assert_eq!(gateway.store.state_of("news").body, xxhash_rust::xxh3::xxh3_128(b"new"));
    assert_eq!(publisher.requests(), 2);
}

/// A second request would be answered as unchanged, and its caller would not learn of the change.
#[tokio::test]
async fn poll_now_is_answered_by_a_round_whose_request_has_still_to_go_out() {
    let gateway = Gateway::with_news(posts(&[1])).await;
    let commits = gateway.store.hold_commits();
    gateway.publisher.says(posts(&[2, 1]), "2");
    let given_up = ask_twice(&gateway);
    eventually(|| gateway.publisher.requests() == 2).await;
    // The feed's next round waits for the commit of this one.
    let (poller, asked) = (gateway.poller.clone(), gateway.publisher.requests());
    let put = tokio::spawn(async move { poller.put(moved()).await });
    let feed = gateway.poller.context.table.get(&name("news")).unwrap();
    eventually(|| feed.lock().is_paused()).await;
    eventually(|| gateway.poller.summary(&name("news")).unwrap().is_in_flight).await;
    let late = ask_twice(&gateway);
    tokio::task::yield_now().await;
    gateway.publisher.says(posts(&[3, 2, 1]), "3");
    commits.add_permits(9);
    put.await.unwrap().unwrap();
    for answer in given_up.into_iter().chain(late) {
        assert_eq!(answer.await.unwrap().unwrap().outcome, PollEnding::Changed);
    }
    assert_eq!(gateway.publisher.requests(), asked + 1);
}

#[tokio::test]
async fn feeds_come_change_and_go_at_run_time() {
    let gateway = Gateway::with_news("one").await;
    // A shared record takes the place of one that polls the same, and of no other.
    let mut titled = record("news");
    titled.enrolment.title = Some("News".to_owned());
    let records = [titled, moved()].map(Arc::new);
    gateway.poller.share(records.to_vec()).await.unwrap();
    gateway.poller.put(record("more")).await.unwrap();
    gateway.polls("more", 1).await;
    assert_eq!(records.map(|record| Arc::strong_count(&record)), [2, 1]);
    // Shorter intervals count at once; the feed itself is the same.
    let mut slow = record("news");
    slow.options.min_interval = Some(Duration::from_secs(12 * 3600));
    gateway.poller.put(slow).await.unwrap();
    gateway.poll().await;
    assert!(gateway.status().next.unwrap().at >= later(12 * 3600));
    gateway.poller.put(record("news")).await.unwrap();
    assert!(gateway.status().next.unwrap().at <= later(2 * 3600));
    let mut hurried = record("news");
    hurried.options.max_interval = Some(Duration::from_secs(60));
    gateway.poller.put(hurried).await.unwrap();
    assert!(gateway.status().next.unwrap().at <= later(60));
    assert_eq!(gateway.publisher.requests(), 3);

    gateway.poller.put(moved()).await.unwrap();
    gateway.polls("news", 1).await;
    let asked = gateway.publisher.asked.lock().unwrap().clone();
    let last = asked.iter().rfind(|r| r.url == moved().url).unwrap();
    assert!(last.validators.is_empty(), "validators belong to the old address");

    let mut paused = record("more");
    paused.standing = FeedStanding::Paused;
    gateway.poller.put(paused).await.unwrap();
    gateway.poller.remove(&name("news")).await.unwrap();
    assert!(gateway.poller.summary(&name("news")).is_none());
    assert!(gateway.poller.summary(&name("more")).is_some());
    for feed in ["news", "more"] {
        assert_eq!(gateway.poller.poll_now(&name(feed)).await, Err(PollError::Unknown));
    }
}

#[tokio::test]
async fn a_feed_that_is_removed_or_whose_address_changes_in_mid_flight_commits_nothing() {
    for is_removed in [true, false] {
        let publisher = Publisher::gated("one");
        let gateway = Gateway::start(&store_of(&["news"]), &publisher).await;
        eventually(|| publisher.requests() == 1).await;
        if is_removed {
            gateway.poller.remove(&name("news")).await.unwrap();
            publisher.release(1);
            assert_eq!(gateway.stop().await.writes(), (0, 0));
            continue;
        }
        gateway.poller.put(moved()).await.unwrap();
        publisher.release(9);
        gateway.polls("news", 1).await;
        assert_eq!(publisher.asked.lock().unwrap()[1].url, moved().url);
        assert_eq!(gateway.store.writes().0, 1);
    }
}

#[tokio::test]
async fn a_stop_answers_who_waits_and_writes_what_is_to_be_remembered() {
    let publisher = Publisher::gated("one");
    let gateway = Gateway::start(&store_of(&["news", "more"]), &publisher).await;
    publisher.release(2);
    gateway.polls("news", 1).await;
    gateway.polls("more", 1).await;
    let poller = gateway.poller.clone();
    let asked = tokio::spawn(async move { poller.poll_now(&name("news")).await });
    eventually(|| publisher.requests() == 3).await;
    let store = gateway.stop().await;
    assert_eq!(asked.await.unwrap(), Err(PollError::Stopped));
    assert_eq!(store.stored_polls().len(), 2);
    assert_eq!(store.writes().1, 1, "both states in one write");
}
