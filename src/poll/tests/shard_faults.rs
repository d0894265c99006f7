//! What goes wrong where several gateways poll: the store is cut off, or shards go while something is under way.

use super::shards::{a_while, asks};
use super::*;
use crate::attempts::Attempts;
use crate::testing::shards::{follower, give, held, shard, writer};
use crate::turns::LARGE_ENTRIES;
use std::collections::BTreeMap;
use tokio::sync::Semaphore;

#[tokio::test(start_paused = true)]
async fn a_feed_whose_new_address_went_to_another_gateway_comes_back_with_it() {
    let store = StoreDouble::new(&["a"]);
    let (shards, publisher) = (writer(), Publisher::new("one"));
    let gate = Arc::new(Semaphore::new(0));
    store.shelf.lock().unwrap().gate = Some(Arc::clone(&gate));
    let gateway = Gateway::start(&store.shared_by(&shards), &publisher).await;
    give(&shards, held(&["a", "far"], 1));
    eventually(|| publisher.requests() == 1).await;
    // Its round goes on until it is stored.
    let mut moved = record("a");
    moved.url = record("far").url;
    store.shelf.lock().unwrap().feeds[0] = moved.clone();
    let put = tokio::spawn({
        let poller = gateway.poller.clone();
        async move { poller.put(moved).await }
    });
    a_while().await;
    give(&shards, held(&["a"], 1));
    a_while().await;
    assert!(!put.is_finished());
    gate.add_permits(9);
    put.await.unwrap().unwrap();
    eventually(|| gateway.poller.status(&name("a")).is_none()).await;
    give(&shards, [(shard("a"), 1), (shard("far"), 3)].into());
    eventually(|| publisher.asked.lock().unwrap().iter().any(|it| it.url == record("far").url))
        .await;
    gateway.polls("a", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_moved_away_from_a_leaving_shard_stays() {
    let store = StoreDouble::new(&["a"]);
    let (shards, publisher) = (writer(), Publisher::gated("one"));
    let gateway = Gateway::start(&store.shared_by(&shards), &publisher).await;
    give(&shards, held(&["a", "far"], 1));
    eventually(|| publisher.requests() == 1).await;
    shards.give_back([shard("a")]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let mut moved = record("a");
    moved.url = record("far").url;
    store.shelf.lock().unwrap().feeds[0] = moved.clone();
    gateway.poller.put(moved).await.unwrap();
    asks(&shards, |asked| asked.ended.contains(&shard("a"))).await;
    publisher.gate.as_ref().unwrap().add_permits(9);
    gateway.polls("a", 1).await;
    assert_eq!(publisher.asked.lock().unwrap().last().unwrap().url, record("far").url);
}

#[tokio::test(start_paused = true)]
async fn an_older_document_is_not_judged_over_what_another_gateway_has_committed() {
    for shards in [follower(), writer()] {
        let store = StoreDouble::new(&["a"]);
        let publisher = Publisher::new("one");
        let gateway = Gateway::start(&store.shared_by(&shards), &publisher).await;
        give(&shards, held(&["a"], 1));
        gateway.polls("a", 1).await;
        // It is paused before its commit.
        let gate = Arc::new(Semaphore::new(0));
        store.shelf.lock().unwrap().gate = Some(Arc::clone(&gate));
        publisher.says("two", "2");
        gateway.clock.set(later(86_400));
        eventually(|| publisher.requests() == 2).await;
        a_while().await;
        // Another gateway takes the shard, and commits a newer document.
        store.shelf.lock().unwrap().snapshots.get_mut(&name("a")).unwrap().state.revision.0 += 1;
        let (by_others, commits) = (store.state_of("a").revision, store.writes().0);
        give(&shards, BTreeMap::new());
        gate.add_permits(9);
        a_while().await;
        assert_eq!(store.state_of("a").revision, by_others);
        assert_eq!((store.writes().0, publisher.requests()), (commits, 2));
        assert!(gateway.poller.status(&name("a")).is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn publishers_out_of_reach_that_others_poll_since_do_not_cut_a_gateway_off() {
    let names: Vec<String> = (0..24).map(|number| format!("feed{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for are_given_back in [false, true] {
        let (shards, publisher) = (writer(), Publisher::new("one"));
        let (host, why) = ("feed.example".to_owned(), "refused".to_owned());
        publisher.fails(FetchError::Connect { host, why });
        let store = StoreDouble::new(&names);
        let gateway = Gateway::start(&store.shared_by(&shards), &publisher).await;
        give(&shards, held(&names, 1));
        a_while().await;
        // All are due.
        gateway.clock.set(later(3600));
        for feed in &names {
            gateway.polls(feed, 1).await;
        }
        if are_given_back {
            shards.give_back(names.iter().skip(1).map(|feed| shard(feed)));
            a_while().await;
            give(&shards, held(&["feed0"], 1));
        }
        tokio::time::sleep(Duration::from_secs(180)).await;
        assert_eq!(shards.is_cut_off(), !are_given_back);
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_others_change_again_and_again_is_left_to_the_gateway_that_writes() {
    let store = StoreDouble::new(&["a"]);
    let (shards, publisher) = (follower(), Publisher::new("one"));
    let gateway = Gateway::start(&store.shared_by(&shards), &publisher).await;
    give(&shards, held(&["a"], 1));
    gateway.polls("a", 1).await;
    assert!(shards.take_requests().of_writer.is_empty());
    let attempts = usize::try_from(MAX_COMMIT_ATTEMPTS).unwrap();
    store.shelf.lock().unwrap().trouble = vec![Trouble::Conflict; attempts];
    publisher.says("two", "2");
    let report = gateway.poller.poll_now(&name("a")).await.unwrap();
    assert_eq!(report.outcome, PollEnding::Failed);
    asks(&shards, |asked| asked.of_writer.contains(&shard("a"))).await;
    // What it fetched is fetched again soon, wherever that is.
    let status = gateway.poller.status(&name("a")).unwrap();
    assert_eq!(status.failures, 0);
    assert!(status.next.is_some_and(|next| next.at <= later(10)));
    gateway.clock.set(later(10));
    let last = || gateway.poller.status(&name("a")).unwrap().polls[0].outcome;
    eventually(|| last() == PollEnding::Changed).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_unsaved_at_the_end_is_written_with_a_new_right_to_poll() {
    let store = StoreDouble::new(&["a"]);
    let (shards, publisher) = (writer(), Publisher::new("one"));
    let gateway = Gateway::start(&store.shared_by(&shards), &publisher).await;
    give(&shards, held(&["a"], 1));
    gateway.polls("a", 1).await;
    store.shelf.lock().unwrap().reopened += 1;
    assert!(store.shelf.lock().unwrap().poll_states.is_empty());
    gateway.stop().await;
    let state = store.shelf.lock().unwrap().poll_states[&name("a")].clone();
    assert_eq!(state.etag.as_deref(), Some("1"));
}

#[tokio::test]
async fn the_scheduler_sleeps_while_nothing_can_be_written() {
    let store = StoreDouble::new(&["a", "b"]);
    let (shards, publisher) = (writer(), Publisher::new("one"));
    let gateway = Gateway::start(&store.shared_by(&shards), &publisher).await;
    give(&shards, held(&["a", "b"], 1));
    gateway.polls("a", 1).await;
    gateway.polls("b", 1).await;
    store.shelf.lock().unwrap().trouble = vec![Trouble::Unwritable];
    // One is refused, so that the other has to wait.
    shards.give_back([shard("a")]);
    eventually(|| gateway.poller.status(&name("a")).is_none()).await;
    shards.give_back([shard("b")]);
    eventually(|| gateway.poller.status(&name("b")).is_none()).await;
    let before = store.shelf.lock().unwrap().looks;
    tokio::time::sleep(Duration::from_millis(600)).await;
    let looks = store.shelf.lock().unwrap().looks - before;
    assert!(looks < 200, "{looks}");
    store.shelf.lock().unwrap().trouble.clear();
    eventually(|| store.shelf.lock().unwrap().poll_states.len() == 2).await;
}

#[tokio::test]
async fn the_mark_of_a_gateway_that_was_cut_off_is_no_kill() {
    let store = StoreDouble::new(&["a"]);
    let gateways = [Attempts::new(store.clone()), Attempts::new(store.clone())];
    let [cut, next] = &gateways;
    let feed = name("a");
    let marks = || -> Vec<_> { store.shelf.lock().unwrap().attempts.values().cloned().collect() };

    // It takes the feed over again.
    cut.begin(&feed, LARGE_ENTRIES + 1, NOW).await.unwrap();
    cut.lose(&feed);
    cut.take_over(marks());
    assert!(cut.flush().await && marks().is_empty());

    // Another one has, and has counted it.
    cut.begin(&feed, LARGE_ENTRIES + 1, later(1)).await.unwrap();
    cut.lose(&feed);
    next.take_over(marks());
    assert!(next.flush().await);
    assert_eq!(marks()[0].kills, 1);
    assert!(cut.flush().await && marks().is_empty());

    // And has begun another document since.
    cut.begin(&feed, LARGE_ENTRIES + 1, later(2)).await.unwrap();
    cut.lose(&feed);
    let mark = next.begin(&feed, LARGE_ENTRIES + 1, later(3)).await.unwrap().unwrap();
    assert!(cut.flush().await);
    assert!(marks()[0].is_open);
    next.end(&mark).await.unwrap();
    assert!(marks().is_empty());
}
