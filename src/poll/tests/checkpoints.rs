use super::*;
use tidegate_core::model::Attempt;

#[tokio::test(start_paused = true)]
async fn polling_goes_on_while_what_it_remembers_is_being_stored_and_a_stop_waits_for_it() {
    let store = store_of(&["a", "b"]);
    // Each permit stores one batch.
    let gate = store.hold_notes();
    let (owner, publisher) = (gateway(1), Publisher::new("one"));
    live(&[&owner]);
    let gateway = Gateway::start(&store.shared_by(&owner), &publisher).await;
    let store = Arc::clone(&gateway.store);
    let etag = |feed| store.poll_state(feed).and_then(|state| state.etag);
    gateway.polls("a", 1).await;
    gateway.polls("b", 1).await;
    eventually(|| store.begun() == 1).await;
    publisher.says("two", "2");
    gateway.clock.set(later(86_400));
    gateway.polls("a", 2).await;
    gateway.polls("b", 2).await;
    gateway.poller.poll_now(&name("a")).await.unwrap();
    a_while().await;
    assert_eq!(etag("a"), None);
    assert_eq!(store.begun(), 1, "one at a time");
    gate.add_permits(1);
    eventually(|| etag("a").is_some() && etag("b").is_some()).await;
    assert_eq!(etag("a").as_deref(), Some("1"));
    // Changes made meanwhile are in the next batch.
    gate.add_permits(1);
    eventually(|| etag("a").as_deref() == Some("2") && etag("b").as_deref() == Some("2")).await;
    a_while().await;
    assert_eq!(store.writes().1, 2);
    publisher.says("three", "3");
    gateway.poller.poll_now(&name("a")).await.unwrap();
    eventually(|| store.begun() == 3).await;
    let stopping = tokio::spawn(gateway.stop());
    a_while().await;
    assert!(!stopping.is_finished());
    gate.add_permits(9);
    stopping.await.unwrap();
    assert_eq!((etag("a").as_deref(), store.begun()), (Some("3"), 3));
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_stored_costs_no_state_at_the_end() {
    let store = store_of(&["a"]);
    let mark = Attempt { feed: name("a"), entries: 1, begun: NOW, kills: 0, is_open: true };
    store.set_attempt(&mark);
    store.fault(StoreFault::Writes("marks"));
    let gateway = Gateway::start(&store, &Publisher::new("one")).await;
    gateway.polls("a", 1).await;
    assert!(store.poll_state("a").is_none());
    gateway.stop().await;
    assert_eq!(store.poll_state("a").unwrap().etag.as_deref(), Some("1"));
    assert!(store.stored_attempts()[0].is_open);
}
