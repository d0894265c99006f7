//! When the gateway that takes feeds over polls those that are due.

use super::shards::{a_while, start};
use super::*;
use crate::testing::shards::{follower, give, held, shard};
use std::collections::BTreeMap;

/// So many names of feeds.
fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("feed{number}")).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_due_when_a_gateway_begins_with_shards_is_polled_within_seconds() {
    let names = names(200);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (shards, publisher) = (follower(), Publisher::new("one"));
    // As one that writes from now on, and had shards before.
    give(&shards, held(&names, 1));
    let (gateway, log) = start(&StoreDouble::new(&names), &shards, &publisher).await;
    let begun = || names.iter().map(|feed| log.begun(feed)).sum::<u32>();
    gateway.clock.set(later(1));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    eventually(|| begun() == 200).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_due_when_it_is_taken_over_is_polled_within_seconds() {
    let names = names(2_400);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (shards, publisher) = (follower(), Publisher::new("one"));
    let store = StoreDouble::new(&names);
    let (gateway, log) = start(&store, &shards, &publisher).await;
    let is_known = |feed: &&str| gateway.poller.status(&name(feed)).is_some();
    let begun = |feeds: &[&str]| feeds.iter().map(|feed| log.begun(feed)).sum::<u32>();
    give(&shards, held(&names, 1));
    eventually(|| names.iter().all(is_known)).await;
    // They are spread, over ten seconds at most.
    gateway.clock.set(later(4));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!((600..1_800).contains(&begun(&names)), "{} have begun", begun(&names));
    gateway.clock.set(later(10));
    eventually(|| begun(&names) == 2_400).await;
    a_while().await;

    // Those that are not due count for nothing.
    give(&shards, BTreeMap::new());
    eventually(|| !names.iter().any(is_known)).await;
    let late = ["late0", "late1", "late2", "late3"];
    store.shelf.lock().unwrap().feeds.extend(late.iter().map(|feed| record(feed)));
    gateway.clock.set(later(100));
    let all: Vec<&str> = names.iter().chain(&late).copied().collect();
    give(&shards, held(&all, 3));
    eventually(|| all.iter().all(is_known)).await;
    gateway.clock.set(later(101));
    eventually(|| begun(&late) == 4).await;
    assert_eq!(begun(&names), 2_400);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_begins_with_shards_polls_what_others_may_not_have_polled_lately() {
    let first = Gateway::with_news("one").await;
    let due = first.status().next.unwrap().at;
    let store = first.stop().await;
    // Another gateway noted another feed after that time, and was gone before it polled this one, or after.
    {
        let mut shelf = store.shelf.lock().unwrap();
        let mut other = shelf.poll_states[&name("news")].clone();
        (other.feed, other.url) = (name("other"), record("other").url);
        let noted = due.plus(Duration::from_secs(10));
        let schedule = other.schedule.as_mut().unwrap();
        (schedule.noted, schedule.polled) = (noted, noted);
        shelf.poll_states.insert(name("other"), other);
        shelf.feeds.push(record("other"));
    }
    let (shards, publisher) = (follower(), Publisher::new("one"));
    give(&shards, held(&["news", "other"], 1));
    let seconds = due.since(NOW).as_secs() + 30;
    let gateway = Gateway::start_later(&store.shared_by(&shards), &publisher, seconds).await;
    gateway.polls("news", 1).await;
    a_while().await;
    assert_eq!(publisher.requests(), 1, "the other one is not due");
}

/// All gateways were killed, and one of them is back after hours.
#[tokio::test(start_paused = true)]
async fn what_came_due_while_nobody_polled_is_polled_at_once() {
    let hours = |count: u64| Duration::from_secs(3600 * count);
    // It was due soon after they were killed, and would be due again hours later.
    for (unpolled, polls) in [(hours(30), 1), (Duration::MAX, 1), (Duration::from_secs(1), 0)] {
        let store = Gateway::with_news("one").await.stop().await;
        let saved = store.shelf.lock().unwrap().poll_states[&name("news")].schedule.clone();
        let polled = saved.unwrap().polled;
        let (shards, publisher) = (follower(), Publisher::new("one"));
        let (gateway, log) = start(&store, &shards, &publisher).await;
        gateway.clock.set(polled.plus(hours(30).saturating_add(Duration::from_secs(600))));
        shards.note_unpolled([(shard("news"), unpolled)]);
        give(&shards, held(&["news"], 7));
        eventually(|| gateway.poller.status(&name("news")).is_some()).await;
        a_while().await;
        assert_eq!(log.begun("news"), polls, "nobody polled it for {unpolled:?}");
    }
}

/// Its store may be open for longer: readers are answered to the end.
#[tokio::test(start_paused = true)]
async fn a_gateway_whose_polling_has_ended_leaves_its_feeds_to_others() {
    let store = StoreDouble::new(&["a"]);
    let (shards, publisher) = (follower(), Publisher::new("one"));
    give(&shards, held(&["a"], 1));
    let (gateway, _) = start(&store, &shards, &publisher).await;
    gateway.polls("a", 1).await;
    assert!(!shards.abstains());
    let store = gateway.stop().await;
    assert!(shards.abstains());
    assert!(store.shelf.lock().unwrap().poll_states.contains_key(&name("a")));
}
