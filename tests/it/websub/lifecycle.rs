//! Verification, leases, renewals, denials and ends (sections 5.2 and 5.3).

use super::*;

/// How many subscriptions there are, in force or not.
async fn kept(stage: &Stage) -> usize {
    stage.seen().await["subscriptions"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_agree_is_not_subscribed() {
    let mut stage = Stage::new().await;
    for agrees in [
        Agrees::With(404),
        Agrees::Wrongly,
        Agrees::With(302),
        Agrees::With(401),
        Agrees::With(410),
    ] {
        let callback = Callback::start().await;
        callback.agrees(agrees);
        stage.asks(&topic("/feeds/news"), &callback.url("/push"), &[]).await;
        stage.until("the request is dropped", async || kept(&stage).await == 0).await;
        stage.later(3600);
        stage.says(&["next", "one"]);
        stage.poll("news").await;
        let seen = callback.seen();
        assert_eq!(
            seen.len(),
            1,
            "one question, no redirect followed, nothing delivered: {seen:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_was_taken_is_not_lost_when_the_gateway_goes() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    callback.agrees(Agrees::Hangs);
    stage.asks(&topic("/feeds/news"), &callback.url("/"), &[("hub.secret", "hush")]).await;
    stage.until("it was asked", async || callback.seen().len() == 1).await;
    // A change that comes before the verification is delivered after it.
    stage.changes_to(&["two", "one"]).await;
    stage.stop().await;
    callback.agrees(Agrees::Yes);
    stage.start().await;
    stage.delivers(&callback, 1).await;
    assert_eq!(callback.verifications().len(), 2);
    let pushed = &callback.deliveries()[0];
    Secret::new("hush").unwrap().verify(&pushed.header("x-hub-signature"), &pushed.body).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsubscription_is_verified_and_is_the_end() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    let (news, url) = (topic("/feeds/news"), callback.url("/p?q"));
    stage.subscribes(&news, &url, &[]).await;
    let (status, _) = stage
        .post(&[("hub.mode", "unsubscribe"), ("hub.topic", &news), ("hub.callback", &url)])
        .await;
    assert_eq!(status, 202);
    stage.until("it has ended", async || kept(&stage).await == 0).await;
    let asked = callback.verifications();
    let Verification::Intent { intent, lease, .. } = asked[1].verification() else {
        panic!("{asked:?}")
    };
    assert_eq!((intent, lease), (Intent::Unsubscribe, None));
    assert!(asked[1].query.starts_with("q&hub.mode=unsubscribe&"), "{asked:?}");
    stage.changes_to(&["two", "one"]).await;
    stage.stop().await;
    stage.start().await;
    assert!(callback.deliveries().is_empty());
    assert_eq!(kept(&stage).await, 0);
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
    stage.until("it was denied", async || kept(&stage).await == 1).await;
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
