//! What is asked of the hub, and what it does not take (sections 4 and 5.1).

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_wrongly_is_refused_in_words_and_nobody_is_called() {
    let stage = Stage::new().await;
    let callback = Callback::start().await;
    let url = callback.url("/push");
    let news = topic("/feeds/news");
    let subscribe = |topic: &str| {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        let form = [("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", &*url)];
        body.extend_pairs(form).finish()
    };
    let form = "application/x-www-form-urlencoded";
    for (media_type, body, status, said) in [
        ("application/json", subscribe(&news), 415, form),
        (form, String::new(), 400, "hub.mode is missing"),
        (form, subscribe(&topic("/feeds/none")), 404, "no feed of that name"),
        (form, subscribe("https://other.example/feeds/news"), 404, "of this gateway"),
        (form, subscribe(&topic("/feeds/news/about")), 404, "of this gateway"),
        (form, subscribe(&topic("/feeds/news?as=exe")), 400, "as is one of"),
        (form, subscribe(&topic("/feeds/news?as-of=2026-01-01T00:00:00Z")), 400, "as-of"),
        (
            form,
            subscribe(&topic("/feeds/news/sync?since=2026-01-01T00:00:00Z")),
            400,
            "neither since",
        ),
        (form, subscribe(&topic("/feeds/news?junk=1")), 400, "but as and sx"),
        (form, "x".repeat(70_000), 413, "limit"),
    ] {
        let (answered, problem) = stage.post_as(media_type, body.clone()).await;
        assert_eq!(answered.as_u16(), status, "{body}: {problem}");
        assert!(problem.contains(said), "{body}: {problem}");
        assert!(problem.contains("\"detail\""), "{problem}");
    }
    let (status, said) = stage
        .post(&[("hub.mode", "unsubscribe"), ("hub.topic", &news), ("hub.callback", &url)])
        .await;
    assert_eq!((status.as_u16(), said.contains("no subscription")), (404, true), "{said}");
    assert_eq!(stage.get("/websub").await.0, 405);
    assert_eq!(stage.seen().await["subscriptions"], serde_json::json!([]));
    assert!(callback.seen().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operators_see_subscriptions_and_never_what_protects_them() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    let url = callback.url("/push/very-private?token=1234");
    stage.subscribes(&topic("/feeds/news"), &url, &[("hub.secret", "hush-hush")]).await;
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&callback, 1).await;
    until("it is noted", async || stage.seen().await["delivered"] == 1).await;
    let seen = stage.seen().await;
    let of = &seen["subscriptions"][0];
    assert_eq!(of["topic"], topic("/feeds/news"));
    assert_eq!((&of["feed"], &of["state"]), (&"news".into(), &"active".into()));
    assert_eq!((&of["callback_host"], &of["signed"]), (&"127.0.0.1".into(), &true.into()));
    assert_eq!((&of["deliveries"], &of["failures"]), (&1.into(), &0.into()));
    assert!(of["lease_ends"].is_string() && of["last_delivery"].is_string(), "{of}");
    let shown = seen.to_string();
    for hidden in ["hush-hush", "very-private", "1234"] {
        assert!(!shown.contains(hidden), "{shown}");
    }
    let unasked = reqwest::get(stage.at("/api/v1/subscriptions")).await.unwrap();
    assert_eq!(unasked.status(), 401);
    let (_, _, metrics) = stage.get("/metrics").await;
    for line in [
        "tidegate_websub_subscriptions{standing=\"active\"} 1",
        "tidegate_websub_deliveries_total{outcome=\"delivered\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}
