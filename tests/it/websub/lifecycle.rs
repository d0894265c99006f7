//! Verification, leases, renewals, denials and ends (sections 5.2 and 5.3).

use super::*;

/// How many subscriptions there are, in force or not.
async fn kept(stage: &Stage) -> usize {
    stage.seen().await["subscriptions"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_of_a_feed_that_goes_are_told_why() {
    let mut stage = Stage::new().await;
    let (callback, other) = (Callback::start().await, Callback::start().await);
    stage.add("other").await;
    stage.poll("other").await;
    stage.subscribes(&topic("/feeds/news/complete"), &callback.url("/?id=1"), &[]).await;
    stage.subscribes(&topic("/feeds/other"), &other.url("/"), &[]).await;
    stage.delete("news").await;
    until("it was denied", async || kept(&stage).await == 1).await;
    let asked = callback.verifications();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[1].query.starts_with("id=1&hub.mode=denied&"), "{asked:?}");
    let Verification::Denied { topic: denied, reason } = asked[1].verification() else {
        panic!("{asked:?}")
    };
    assert_eq!(denied, topic("/feeds/news/complete"));
    assert!(reason.unwrap().contains("no longer published"), "{asked:?}");
    assert_eq!(other.verifications().len(), 1, "other feeds are not touched");
    let (status, said) = stage
        .post(&[
            ("hub.mode", "subscribe"),
            ("hub.topic", &topic("/feeds/news")),
            ("hub.callback", &callback.url("/")),
        ])
        .await;
    assert_eq!(status, 410, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_public_address_ends_no_subscription() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    stage.subscribes(&topic("/feeds/news"), &callback.url("/"), &[]).await;
    stage.stop().await;
    stage.moves_to("https://mistyped.example");
    stage.start().await;
    stage.changes_to(&["two", "one"]).await;
    // It looks at its topics at each start, and this one is asked after the look.
    let other = Callback::start().await;
    stage.subscribes("https://mistyped.example/feeds/news", &other.url("/"), &[]).await;
    assert_eq!((stage.active().await, callback.verifications().len()), (2, 1), "nobody is denied");
    assert!(callback.deliveries().is_empty());
    stage.stop().await;
    stage.moves_to(PUBLIC);
    stage.later(31);
    stage.start().await;
    stage.delivers(&callback, 1).await;
    assert!(callback.deliveries()[0].text().contains("<title>two</title>"));
}
