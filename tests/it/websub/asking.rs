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
