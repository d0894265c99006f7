use super::*;
use tidegate_store::StoreStop;

fn stopped(store: &ScriptedStore, is_stopped: bool) {
    let cause = "the disk failed".to_owned();
    let stop = StoreStop { cause, since: NOW, next_try: Some(NOW), failed_tries: 0 };
    store.set_stop(is_stopped.then_some(stop));
}

fn low(store: &ScriptedStore, is_low: bool) {
    store.set_free(if is_low { 1 } else { u64::MAX });
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_for_while_the_store_takes_nothing_in() {
    for trouble in [low, stopped] {
        let gateway = Gateway::with_news("one").await;
        let asked = gateway.publisher.requests();
        trouble(&gateway.store, true);
        gateway.publisher.says("two", "2");
        gateway.clock.set(later(86_400));
        a_while().await;
        assert_eq!(gateway.publisher.requests(), asked);
        trouble(&gateway.store, false);
        a_while().await;
        assert_eq!(gateway.publisher.requests(), asked + 1);
        let status = gateway.status();
        assert_eq!((status.polls[0].outcome, status.failures), (PollEnding::Changed, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_poll_that_the_store_refuses_is_no_failure_of_its_feed() {
    let gateway = Gateway::with_news("one").await;
    stopped(&gateway.store, true);
    gateway.publisher.says("two", "2");
    let report = gateway.poll().await;
    assert_eq!(report.outcome, PollEnding::Failed);
    assert!(report.error.unwrap().contains("the disk failed"));
    let status = gateway.status();
    assert_eq!(status.failures, 0);
    let next = status.next.unwrap();
    assert!(next.at <= later(10), "{next:?}");
    stopped(&gateway.store, false);
    gateway.clock.set(later(10));
    a_while().await;
    assert_eq!(gateway.status().polls[0].outcome, PollEnding::Changed);
}
