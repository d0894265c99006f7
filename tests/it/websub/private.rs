use super::*;
use serde_json::{Value, json};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The topic of the denial that a callback hears, with its reason.
async fn denial(callback: &Callback) -> (String, String) {
    until("it was denied", async || callback.verifications().len() == 2).await;
    let asked = &callback.verifications()[1];
    assert!(asked.query.starts_with("id=1&hub.mode=denied&"), "its own query first: {asked:?}");
    let Verification::Denied { topic, reason } = verification(asked) else { panic!("{asked:?}") };
    (topic, reason.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_topic_is_delivered_below_its_token_until_that_is_revoked() {
    let reader = format!("[[reader]]\nname = \"ann\"\ntoken = \"{TOKEN}\"\nall_private = true\n");
    let mut stage = Stage::of_document(&stage::document(&["one"]), &reader).await;
    let (public, own) = (Callback::start().await, Callback::start().await);
    let push = public.address("/push?id=1");
    stage.subscribes(&topic("/feeds/news"), &push, &[]).await;
    let (_, shown) = stage.admin("GET", "/feeds/news", Value::Null).await;
    let put = json!({ "url": shown["url"], "private": true });
    assert_eq!(stage.admin("PUT", "/feeds/news", put).await.0, 200);
    // Who subscribed while it was for everybody is told that it is gone, and told nothing else.
    until("the public topic ends", async || stage.active().await == 0).await;
    let reason = "no feed of that name is published here".to_owned();
    assert_eq!(denial(&public).await, (topic("/feeds/news"), reason));
    let again = stage.post("subscribe", &topic("/feeds/news"), &push, &[]).await;
    assert_eq!(again.0, 404, "{again:?}");
    let path = format!("/t/{TOKEN}/feeds/news");
    stage.subscribes(&topic(&path), &own.address("/push"), &[]).await;
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&own, 1).await;
    let pushed = &own.deliveries()[0];
    assert_eq!(pushed.text(), stage.text(&path).await, "the bytes that the reader gets");
    let links = pushed.all("link").join(", ");
    assert!(links.contains(&format!("<{PUBLIC}/t/{TOKEN}/websub>; rel=\"hub\"")), "{links}");
    assert!(links.contains(&format!("<{PUBLIC}{path}>; rel=\"self\"")), "{links}");
    assert!(public.deliveries().is_empty());
    // It outlives a restart, and ends with the token.
    stage.close().await;
    stage.pass(10);
    stage.open().await;
    assert_eq!(stage.active().await, 1);
    stage.config.readers.clear();
    stage.reload().await;
    until("the subscription ends", async || stage.active().await == 0).await;
    stage.changes_to(&["three", "two", "one"]).await;
    assert_eq!(own.deliveries().len(), 1);
    let told = stage.subscriptions().await.to_string();
    assert!(!told.contains(TOKEN), "{told}");
    // Of a feed that was for everybody until it was deleted more is said.
    let (left, news) = (Callback::start().await, topic("/feeds/other"));
    stage.add("other").await;
    stage.subscribes(&news, &left.address("/push?id=1"), &[]).await;
    stage.delete("other").await;
    let reason = "the feed other is no longer published here".to_owned();
    assert_eq!(denial(&left).await, (news.clone(), reason));
    let again = stage.post("subscribe", &news, &push, &[]).await;
    assert_eq!(again.0, 410, "{again:?}");
}
