//! What a poll asks for beside a document whose publisher shares its items.

use super::shards::{asks, start};
use super::*;
use crate::sharing::{LOOKS_TIME, MAX_LOOKS};
use crate::testing::shards::{give, held, shard, writer};
use std::collections::BTreeMap;
use tokio::time::{Instant, sleep};

#[tokio::test(start_paused = true)]
async fn a_poll_whose_complete_feed_never_answers_ends_when_its_shard_is_lost() {
    for is_given_back in [false, true] {
        let store = StoreDouble::new(&["a"]);
        let (shards, publisher) = (writer(), Publisher::gated("leads"));
        publisher.gate.as_ref().unwrap().add_permits(1);
        let (gateway, log) = start(&store, &shards, &publisher).await;
        give(&shards, held(&["a"], 1));
        eventually(|| publisher.requests() == 2).await;
        let asked = publisher.asked.lock().unwrap().last().unwrap().url.clone();
        assert_eq!(asked, format!("{}/complete", record("a").url));
        if is_given_back {
            shards.give_back([shard("a")]);
            asks(&shards, |asked| asked.ended.contains(&shard("a"))).await;
        } else {
            give(&shards, BTreeMap::new());
            eventually(|| gateway.poller.status(&name("a")).is_none()).await;
        }
        assert_eq!((log.in_flight(), store.writes().0), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_looks_into_other_feeds_ends_when_its_shard_is_lost() {
    let store = StoreDouble::new(&["a", "b"]);
    store.shelf.lock().unwrap().look_takes = Some(LOOKS_TIME);
    let (shards, publisher) = (writer(), Publisher::new("ours"));
    let (gateway, _log) = start(&store, &shards, &publisher).await;
    give(&shards, held(&["a"], 1));
    eventually(|| publisher.requests() == 1).await;
    let begun = Instant::now();
    sleep(Duration::from_secs(1)).await;
    give(&shards, BTreeMap::new());
    eventually(|| gateway.poller.status(&name("a")).is_none()).await;
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(store.writes().0, 0);
}

/// Polls `news`, whose document has a hundred items of ours, over so many other feeds; how long that took, and how many
/// items were looked up.
async fn looked_up(others: usize, look_takes: Duration) -> (Duration, usize) {
    let gateway = Gateway::with_news("one").await;
    {
        let mut shelf = gateway.store.shelf.lock().unwrap();
        shelf.feeds.extend((0..others).map(|number| record(&format!("other{number}"))));
        shelf.look_takes = Some(look_takes);
    }
    gateway.publisher.says("ours", "2");
    let begun = Instant::now();
    let report = gateway.poll().await;
    assert_eq!((report.outcome, report.error), (PollEnding::Changed, None));
    let issued = gateway.judge.issued.lock().unwrap().take().unwrap();
    (begun.elapsed(), issued.len())
}

#[tokio::test(start_paused = true)]
async fn looks_into_other_feeds_end_in_time() {
    // Of an item that was looked up in some of the feeds alone nothing is said.
    let look = LOOKS_TIME / 200;
    let (took, items) = looked_up(125, look).await;
    assert!(took < LOOKS_TIME + Duration::from_secs(1), "{took:?}");
    assert_eq!(items, 1);
    assert_eq!(looked_up(1, look).await.1, 100);
}

#[tokio::test(start_paused = true)]
async fn one_item_is_looked_up_however_many_feeds_there_are() {
    assert_eq!(looked_up(MAX_LOOKS + 1, Duration::ZERO).await.1, 1);
}
