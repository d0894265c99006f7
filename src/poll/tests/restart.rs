//! What polling remembers over a restart, and what it must not.

use super::*;

#[tokio::test]
async fn a_restart_goes_on_with_validators_and_keeps_the_pause_that_was_asked_for() {
    let gateway = Gateway::with_news("one").await;
    let store = gateway.stop().await;
    let gateway = Gateway::start(&store, &Publisher::new("one")).await;
    gateway.polls("news", 1).await;
    assert_eq!(gateway.status().polls[0].outcome, Outcome::NotModified);
    let wait = Some(Duration::from_secs(5000));
    gateway.publisher.fails(FetchError::Status { code: 503, retry_after: wait });
    gateway.poll().await;
    let store = gateway.stop().await;

    let publisher = Publisher::new("one");
    let gateway = Gateway::start(&store, &publisher).await;
    let next = gateway.status().next.unwrap();
    assert!(next.at >= later(5000), "{next:?}");
    assert_eq!(publisher.requests(), 0);
}

/// The validators are written some seconds after the commit. A crash in between leaves those of the
/// document before it, which must not make that one pass for the last.
#[tokio::test]
async fn validators_of_an_earlier_document_are_not_sent_after_a_crash() {
    let gateway = Gateway::with_news("one").await;
    let (store, publisher) = (Arc::clone(&gateway.store), Arc::clone(&gateway.publisher));
    gateway.stop().await;
    let saved = store.shelf.lock().unwrap().poll_states.clone();
    let gateway = Gateway::start(&store, &publisher).await;
    gateway.polls("news", 1).await;
    publisher.says("two", "2");
    assert_eq!(gateway.poll().await.outcome, Outcome::Changed);
    gateway.stop().await;
    store.shelf.lock().unwrap().poll_states = saved;

    publisher.says("one", "1");
    let gateway = Gateway::start(&store, &publisher).await;
    gateway.polls("news", 1).await;
    assert_eq!(gateway.status().polls[0].outcome, Outcome::Changed);
}

/// Neither validators nor pauses of an address say anything of another one.
#[tokio::test]
async fn an_address_that_changed_over_a_restart_begins_anew() {
    let gateway = Gateway::with_news("one").await;
    gateway.publisher.fails(FetchError::Status { code: 410, retry_after: None });
    gateway.poll().await;
    let store = gateway.stop().await;
    store.shelf.lock().unwrap().feeds[0].url = "http://elsewhere.example/feed".into();
    let publisher = Publisher::new("one");
    let gateway = Gateway::start(&store, &publisher).await;
    gateway.polls("news", 1).await;
    assert!(publisher.asked.lock().unwrap()[0].validators.is_empty());
    assert_eq!(gateway.status().failures, 0);
}

/// What the operator has to mend is tried again when it may be mended.
#[tokio::test]
async fn a_refused_address_is_tried_again_after_a_reload_and_after_a_restart() {
    let gateway = Gateway::with_news("one").await;
    let refusal = crate::fetch::Refusal::address("a.example", [127, 0, 0, 1].into());
    gateway.publisher.fails(FetchError::Refused { hop: 0, refusal });
    gateway.poll().await;
    assert!(gateway.status().next.unwrap().at > later(3600));
    gateway
        .poller
        .reconfigure(PollSettings::default(), gateway.publisher.services())
        .await
        .unwrap();
    gateway.polls("news", 3).await;
    assert!(gateway.status().next.unwrap().at > later(3600));

    let (store, publisher) = (Arc::clone(&gateway.store), Arc::clone(&gateway.publisher));
    gateway.stop().await;
    let gateway = Gateway::start(&store, &publisher).await;
    gateway.polls("news", 1).await;
}
