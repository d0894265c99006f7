//! Documents without an item in common with the previous one.

use super::*;

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
    gateway.publisher.says("two and a delta", "3");
    gateway.poll().await;
    assert_eq!(gateway.status().gaps, gaps);

    let gateway = gateway.restart(800).await;
    assert_eq!((gateway.status().gaps, gateway.poller.totals().apart), (gaps, 0));
}
