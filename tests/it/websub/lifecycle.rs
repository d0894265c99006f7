//! Verification, leases, renewals, denials and ends (sections 5.2 and 5.3).

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscribers_of_a_feed_that_goes_are_told_why() {
    let mut stage = Stage::new().await;
    let (callback, other) = (Callback::start().await, Callback::start().await);
    stage.add("other").await;
    let complete = topic("/feeds/news/complete");
    stage.subscribes(&complete, &callback.address("/?id=1"), &[]).await;
    stage.subscribes(&topic("/feeds/other"), &other.address("/"), &[]).await;
    stage.delete("news").await;
    until("it was denied", async || {
        stage.subscriptions().await["subscriptions"].as_array().unwrap().len() == 1
    })
    .await;
    let asked = callback.verifications();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[1].query.starts_with("id=1&hub.mode=denied&"), "{asked:?}");
    let Verification::Denied { topic: denied, reason } = verification(&asked[1]) else {
        panic!("{asked:?}")
    };
    assert_eq!(denied, complete);
    assert!(reason.unwrap().contains("no longer published"), "{asked:?}");
    assert_eq!(other.verifications().len(), 1, "other feeds are not touched");
    let again = stage.post("subscribe", &topic("/feeds/news"), &callback.address("/")).await;
    assert_eq!(again.0, 410, "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_public_address_ends_no_subscription() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    stage.subscribes(&topic("/feeds/news"), &callback.address("/"), &[]).await;
    stage.close().await;
    stage.config.server.public_url = Some("https://mistyped.example".to_owned());
    stage.open().await;
    stage.changes_to(&["two", "one"]).await;
    // It looks at its topics at each start, and this one is asked after the look.
    let other = Callback::start().await;
    stage.subscribes("https://mistyped.example/feeds/news", &other.address("/"), &[]).await;
    assert_eq!((stage.active().await, callback.verifications().len()), (2, 1), "nobody is denied");
    assert!(callback.deliveries().is_empty());
    stage.close().await;
    stage.config.server.public_url = Some(PUBLIC.to_owned());
    stage.pass(31);
    stage.open().await;
    stage.delivers(&callback, 1).await;
    assert!(callback.deliveries()[0].text().contains("<title>two</title>"));
}
