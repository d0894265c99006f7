//! What is asked of the hub, and what it does not take (sections 4 and 5.1).

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_wrongly_is_refused_in_words_and_nobody_is_called() {
    let stage = Stage::new().await;
    let callback = Callback::start().await;
    let url = callback.address("/push");
    let ask = |topic: &str| {
        form(&[("hub.mode", "subscribe"), ("hub.topic", topic), ("hub.callback", &url)])
    };
    let of_news = |rest: &str| ask(&topic(&format!("/feeds/news{rest}")));
    for (kind, body, status, said) in [
        ("application/json", of_news(""), 415, FORM),
        (FORM, String::new(), 400, "hub.mode is missing"),
        (FORM, ask(&topic("/feeds/none")), 404, "no feed of that name"),
        (FORM, ask("https://other.example/feeds/news"), 404, "of this gateway"),
        (FORM, of_news("/about"), 404, "of this gateway"),
        (FORM, of_news("?as=exe"), 400, "as is one of"),
        (FORM, of_news("?as-of=2026-01-01T00:00:00Z"), 400, "as-of"),
        (FORM, of_news("/sync?since=2026-01-01T00:00:00Z"), 400, "neither since"),
        (FORM, of_news("?junk=1"), 400, "but as and sx"),
        (FORM, "x".repeat(70_000), 413, "limit"),
    ] {
        let (answered, problem) = stage.post_as("/websub", kind, body.clone()).await;
        assert_eq!(answered.as_u16(), status, "{body}: {problem}");
        assert!(problem.contains(said) && problem.contains("\"detail\""), "{body}: {problem}");
    }
    let (status, said) = stage.post("unsubscribe", &topic("/feeds/news"), &url, &[]).await;
    assert!(status == 404 && said.contains("no subscription"), "{said}");
    assert_eq!(stage.get("/websub").await.0, 405);
    assert_eq!(stage.subscriptions().await["subscriptions"], serde_json::json!([]));
    assert!(callback.seen().is_empty());
}
