//! Holds that operators decide about, and what is missing until it is decided.

use crate::e2e::support::{Format, Stage, posts};
use serde_json::json;

/// The decision is stored, though no poll follows.
#[tokio::test]
async fn a_hold_of_a_paused_feed_is_released() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    assert!(stage.posts(&[]).await.held.is_some());
    let mut config = stage.config().clone();
    config.feeds.clear();
    stage.gateway_mut().reload(&config).await.unwrap();
    assert_eq!(stage.status().await["standing"], "paused");
    let release = Some(json!({ "action": "release" }));
    let (status, told) = stage.admin("POST", "/feeds/news/hold", release).await;
    assert_eq!((status, &told["hold"]["decision"]), (200, &json!("release")), "{told}");
    stage.stop().await;
}

#[tokio::test]
async fn what_is_missing_is_explained_until_it_is_decided() {
    let mut stage = Stage::new(Format::Rss20).await;
    stage.posts(&posts(1..=8)).await;
    stage.hours(1);
    let mut without = posts(1..=8);
    without.retain(|p| p.day != 5);
    stage.posts(&without).await;
    stage.hours(6);
    stage.poll().await;
    let status = stage.status().await;
    let pending = &status["pending"][0];
    assert_eq!(status["pending_absences"], 1);
    for (key, value) in [
        ("title", json!("Post 5")),
        ("evidence", json!("hole")),
        ("observations", json!(2)),
        ("would", json!("deleted")),
    ] {
        assert_eq!(pending[key], value, "{key} of {pending}");
    }
    assert!(pending["reason"].as_str().unwrap().contains("older items stay"), "{pending}");
    assert!(pending["decides_at"].as_str().unwrap() > pending["since"].as_str().unwrap());
    let id = pending["sync_id"].as_str().unwrap().to_owned();
    let (code, item) = stage.admin("GET", &format!("/feeds/news/items/{id}"), None).await;
    assert_eq!((code, &item["pending"]), (200, pending));
    let page = stage.net.text("http://gateway.example/feeds/news/about").await;
    assert!(page.contains("Missing, to be confirmed") && page.contains("Post 5"), "{page}");
    stage.polls(5, 6).await;
    let (_, item) = stage.admin("GET", &format!("/feeds/news/items/{id}"), None).await;
    assert_eq!((&item["deleted"], &item["pending"]), (&json!(true), &json!(null)));
    let said = item["events"][0]["reason"].as_str().unwrap();
    assert!(said.contains("older items stay; so for"), "{said}");
    assert_eq!(stage.status().await["pending"], json!([]));
    stage.end().await;
}
