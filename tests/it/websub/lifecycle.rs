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
async fn a_callback_in_trouble_is_asked_again_a_few_times() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    callback.agrees(Agrees::With(503));
    stage.asks(&topic("/feeds/news"), &callback.url("/push"), &[]).await;
    let tries = async |stage: &Stage, tries: u64| {
        stage
            .until("it was tried", async || {
                stage.seen().await["subscriptions"][0]["request"]["attempts"] == tries
            })
            .await;
    };
    tries(&stage, 1).await;
    let seen = stage.seen().await;
    let request = &seen["subscriptions"][0]["request"];
    assert_eq!(request["trouble"], "the callback answered 503");
    // What is not verified yet outlives a restart.
    stage.stop().await;
    stage.later(31);
    stage.start().await;
    tries(&stage, 2).await;
    callback.agrees(Agrees::Yes);
    stage.later(121);
    stage.until("it is in force", async || stage.active().await == 1).await;
    let challenges: Vec<String> = (callback.verifications().iter())
        .map(|seen| match seen.verification() {
            Verification::Intent { challenge, .. } => challenge,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(challenges.len(), 3);
    assert!(challenges[0] != challenges[1] && challenges[1] != challenges[2]);

    let hopeless = Callback::start().await;
    hopeless.agrees(Agrees::With(500));
    stage.asks(&topic("/feeds/news"), &hopeless.url("/push"), &[]).await;
    for tries in 1..=3 {
        stage.until("it was asked", async || hopeless.seen().len() == tries).await;
        stage
            .until("that is noted", async || {
                let seen = stage.seen().await;
                let all = seen["subscriptions"].as_array().unwrap();
                all.iter().all(|of| of["request"].is_null() || of["request"]["attempts"] == tries)
            })
            .await;
        stage.later(600);
    }
    assert_eq!(kept(&stage).await, 1, "then it was dropped");
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
async fn a_lease_is_bounded_and_ends_unless_it_is_renewed() {
    let mut stage = Stage::new().await;
    let (brief, renewed) = (Callback::start().await, Callback::start().await);
    let news = topic("/feeds/news");
    stage.subscribes(&news, &brief.url("/"), &[("hub.lease_seconds", "1")]).await;
    stage.subscribes(&news, &renewed.url("/"), &[("hub.lease_seconds", "999999999")]).await;
    let lease = |callback: &Callback| match callback.verifications()[0].verification() {
        Verification::Intent { lease, .. } => lease,
        other => panic!("{other:?}"),
    };
    assert_eq!((lease(&brief), lease(&renewed)), (Some(300), Some(30 * 86_400)));
    stage.later(301);
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&renewed, 1).await;
    stage.until("a lease has ended", async || kept(&stage).await == 1).await;
    assert!(brief.deliveries().is_empty(), "its lease had ended");

    // Renewed in time, it goes on beyond its first end.
    stage.later(29 * 86_400);
    stage.asks(&news, &renewed.url("/"), &[("hub.lease_seconds", "864000")]).await;
    stage.settles().await;
    stage.later(2 * 86_400);
    stage.changes_to(&["three", "two", "one"]).await;
    stage.delivers(&renewed, 2).await;
    stage.later(9 * 86_400);
    stage.until("the lease has ended", async || kept(&stage).await == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_ended_while_the_gateway_was_off_has_ended() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    stage
        .subscribes(&topic("/feeds/news"), &callback.url("/"), &[("hub.lease_seconds", "300")])
        .await;
    callback.takes(Takes::With(503));
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&callback, 1).await;
    stage.stop().await;
    stage.later(400);
    stage.start().await;
    stage.until("the lease has ended", async || kept(&stage).await == 0).await;
    assert_eq!(callback.deliveries().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_is_not_verified_changes_nothing() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    let news = topic("/feeds/news");
    stage.subscribes(&news, &callback.url("/"), &[("hub.secret", "first")]).await;
    let before = stage.seen().await["subscriptions"][0]["lease_ends"].clone();
    // Somebody else knows topic and callback, and would like another secret.
    callback.agrees(Agrees::With(404));
    stage.later(60);
    stage.asks(&news, &callback.url("/"), &[("hub.secret", "stolen")]).await;
    stage.settles().await;
    let (status, _) = stage
        .post(&[
            ("hub.mode", "unsubscribe"),
            ("hub.topic", &news),
            ("hub.callback", &callback.url("/")),
        ])
        .await;
    assert_eq!(status, 202);
    stage.settles().await;
    assert_eq!(stage.seen().await["subscriptions"][0]["lease_ends"], before);
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&callback, 1).await;
    let pushed = &callback.deliveries()[0];
    Secret::new("first").unwrap().verify(&pushed.header("x-hub-signature"), &pushed.body).unwrap();

    // One that is verified takes over.
    callback.agrees(Agrees::Yes);
    stage.asks(&news, &callback.url("/"), &[("hub.secret", "second")]).await;
    stage.settles().await;
    stage.changes_to(&["three", "two", "one"]).await;
    stage.delivers(&callback, 2).await;
    let pushed = &callback.deliveries()[1];
    Secret::new("second").unwrap().verify(&pushed.header("x-hub-signature"), &pushed.body).unwrap();
    assert_eq!(kept(&stage).await, 1, "topic and callback are the key");
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
