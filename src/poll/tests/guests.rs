//! The first polls of feeds that requests make, by a gateway that does not have their shards.

use super::shards::{LoggedRequests, a_while};
use super::*;
use crate::testing::shards::{follower, give, held, writer};
use std::collections::BTreeMap;
use tidegate_core::model::FeedRecord;

fn made(feed: &str) -> FeedRecord {
    FeedRecord::on_demand(name(feed), &record(feed).url, "http://site.example/", NOW)
}

/// The gateway that is asked, which writes and has no shards, the one that has the shard of a feed, and their requests,
/// each of which takes so long.
async fn start(
    store: &StoreDouble,
    publisher: &Arc<Publisher>,
    feed: &str,
    wait: Duration,
) -> (Gateway, Gateway, Arc<LoggedRequests>) {
    let log = Arc::new(LoggedRequests::default());
    let services = log.services(publisher, wait);
    let [of_asked, of_owner] = [writer(), follower()];
    give(&of_asked, BTreeMap::new());
    give(&of_owner, held(&[feed], 1));
    let asked =
        Gateway::with_client(&store.shared_by(&of_asked), publisher, services.clone()).await;
    let owner = Gateway::with_client(&store.shared_by(&of_owner), publisher, services).await;
    (asked, owner, log)
}

/// A request makes a feed.
async fn make(store: &StoreDouble, asked: &Gateway, feed: &str) -> FirstPoll {
    store.shelf.lock().unwrap().feeds.push(made(feed));
    asked.poller.put_and_poll(made(feed)).await.unwrap()
}

fn etag(store: &StoreDouble, feed: &str) -> Option<String> {
    let shelf = store.shelf.lock().unwrap();
    shelf.poll_states.get(&name(feed)).and_then(|state| state.etag.clone())
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_feed_is_left_alone_until_its_first_poll_elsewhere_is_over() {
    let (store, publisher) = (StoreDouble::new(&[]), Publisher::new("one"));
    let (asked, owner, log) = start(&store, &publisher, "new", Duration::from_secs(40)).await;
    let poll = make(&store, &asked, "new").await;
    seconds(39).await;
    assert_eq!((log.begun("new"), owner.poller.status(&name("new")).is_some()), (1, false));
    assert_eq!(poll.finish().await.unwrap().outcome, PollEnding::Changed);
    eventually(|| owner.poller.status(&name("new")).is_some()).await;
    a_while().await;
    assert_eq!(log.begun("new"), 1, "it goes on with the schedule of the first poll");
    owner.clock.set(later(86_400));
    eventually(|| log.begun("new") == 2).await;
    assert!(log.overlaps.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_first_poll_that_takes_too_long_is_given_up_before_the_next_gateway_begins() {
    let (store, publisher) = (StoreDouble::new(&[]), Publisher::gated("one"));
    let (asked, owner, log) = start(&store, &publisher, "new", Duration::ZERO).await;
    let poll = make(&store, &asked, "new").await;
    seconds(60).await;
    assert_eq!((log.begun("new"), log.in_flight()), (1, 1));
    seconds(8).await;
    assert_eq!((log.begun("new"), log.in_flight()), (1, 0));
    eventually(|| log.begun("new") == 2).await;
    assert!(log.overlaps.lock().unwrap().is_empty());
    publisher.gate.as_ref().unwrap().add_permits(1);
    owner.polls("new", 1).await;
    eventually(|| etag(&store, "new").is_some()).await;
    a_while().await;
    assert_eq!(etag(&store, "new").as_deref(), Some("1"));
    let answer = poll.finish().await;
    assert!(matches!(answer, Err(PollError::PolledElsewhere { .. })), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn what_a_guest_learned_is_not_stored_over_what_the_next_gateway_learns() {
    let (store, publisher) = (StoreDouble::new(&[]), Publisher::new("one"));
    let (asked, _owner, log) = start(&store, &publisher, "new", Duration::ZERO).await;
    store.shelf.lock().unwrap().trouble = vec![Trouble::Unwritable];
    let poll = make(&store, &asked, "new").await;
    assert_eq!(poll.finish().await.unwrap().outcome, PollEnding::Changed);
    seconds(68).await;
    store.shelf.lock().unwrap().trouble.clear();
    publisher.says("two", "2");
    seconds(4).await;
    assert_eq!((etag(&store, "new"), log.begun("new")), (None, 1));
    eventually(|| etag(&store, "new").is_some()).await;
    a_while().await;
    assert_eq!(etag(&store, "new").as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_not_polled_where_it_was_made_is_not_waited_for() {
    let (store, publisher) = (StoreDouble::new(&[]), Publisher::gated("one"));
    let (asked, _owner, log) = start(&store, &publisher, "last", Duration::ZERO).await;
    let mut polls = Vec::new();
    for number in 0..64 {
        polls.push(make(&store, &asked, &format!("new{number}")).await);
    }
    let refused = make(&store, &asked, "last").await.finish().await;
    assert!(matches!(refused, Err(PollError::TooMany { .. })), "{refused:?}");
    eventually(|| log.begun("last") == 1).await;
}
