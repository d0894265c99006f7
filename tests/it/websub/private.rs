//! Topics that are private: by the address of a reader alone, for as long as the token counts.

use super::*;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn readers() -> String {
    format!("[[reader]]\nname = \"ann\"\ntoken = \"{TOKEN}\"\nall_private = true\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_topic_is_delivered_below_its_token_until_that_is_revoked() {
    let mut stage = Stage::with(&readers()).await;
    let (public, own) = (Callback::start().await, Callback::start().await);
    stage.subscribes(&topic("/feeds/news"), &public.url("/push"), &[]).await;
    stage.hides("news").await;
    // Who subscribed while it was for everybody is told that it is gone, and told nothing else.
    until("the public topic ends", async || stage.active().await == 0).await;
    let (status, said) = stage
        .post(&[
            ("hub.mode", "subscribe"),
            ("hub.topic", &topic("/feeds/news")),
            ("hub.callback", &public.url("/push")),
        ])
        .await;
    assert_eq!(status, 404, "{said}");
    let path = format!("/t/{TOKEN}/feeds/news");
    stage.subscribes(&topic(&path), &own.url("/push"), &[]).await;
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&own, 1).await;
    let pushed = &own.deliveries()[0];
    let (_, _, document) = stage.get(&path).await;
    assert_eq!(pushed.text(), document, "the bytes that the reader gets");
    let links = pushed.all("link").join(", ");
    assert!(links.contains(&format!("<{PUBLIC}/t/{TOKEN}/websub>; rel=\"hub\"")), "{links}");
    assert!(links.contains(&format!("<{PUBLIC}{path}>; rel=\"self\"")), "{links}");
    assert!(public.deliveries().is_empty());
    // It outlives a restart, and ends with the token.
    stage.stop().await;
    stage.later(10);
    stage.start().await;
    assert_eq!(stage.active().await, 1);
    stage.revokes().await;
    until("the subscription ends", async || stage.active().await == 0).await;
    stage.changes_to(&["three", "two", "one"]).await;
    assert_eq!(own.deliveries().len(), 1);
    let seen = stage.seen().await.to_string();
    assert!(!seen.contains(TOKEN), "{seen}");
}
