//! The WebSub hub of a whole gateway, in scenarios written from the W3C Recommendation of 23 January
//! 2018; sections are its sections. Subscribers are servers of their own.

pub mod callback;
mod cloud;
mod private;
pub mod stage;
mod webhook;

use crate::support::gateways::{Asked as _, FORM, form, until};
use callback::{Callback, Takes, verification};
use stage::{PUBLIC, Stage};
use tidegate_core::websub::{Intent, Secret, Verification};

/// The address of a document of the gateway, as it names it.
fn topic(path: &str) -> String {
    format!("{PUBLIC}{path}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_is_verified_and_gets_each_change_signed() {
    let mut stage = Stage::new().await;
    let callback = Callback::start().await;
    let news = topic("/feeds/news");
    let url = callback.address("/push?id=7&x=a%20b");
    stage.subscribes(&news, &url, &[("hub.secret", "hush"), ("hub.lease_seconds", "864000")]).await;

    // Section 5.3: the callback's own query is kept, and the parameters follow it.
    let asked = callback.verifications();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].path, "/push");
    assert!(asked[0].query.starts_with("id=7&x=a%20b&hub.mode=subscribe&"), "{asked:?}");
    let Verification::Intent { intent, topic, challenge, lease } = verification(&asked[0]) else {
        panic!("{asked:?}")
    };
    assert_eq!((intent, topic.as_str(), lease), (Intent::Subscribe, &*news, Some(864_000)));
    assert!(challenge.len() >= 32, "{challenge}");

    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&callback, 1).await;
    let pushed = &callback.deliveries()[0];
    // Section 7: the whole document with the topic's own content type, links to hub and topic.
    let (_, headers, document) = stage.get("/feeds/news").await;
    assert_eq!(pushed.text(), document, "the bytes that a reader gets");
    assert!(document.contains("<title>two</title>"), "{document}");
    assert_eq!(pushed.header("content-type"), headers["content-type"].to_str().unwrap());
    let links = pushed.all("link").join(", ");
    assert!(links.contains(&format!("<{PUBLIC}/websub>; rel=\"hub\"")), "{links}");
    assert!(links.contains(&format!("<{news}>; rel=\"self\"")), "{links}");
    assert_eq!((pushed.path.as_str(), pushed.query.as_str()), ("/push", "id=7&x=a%20b"));
    // Section 7.1.
    let signature = pushed.header("x-hub-signature");
    assert!(signature.starts_with("sha256="), "{signature}");
    Secret::new("hush").unwrap().verify(&signature, &pushed.body).unwrap();
    assert!(Secret::new("other").unwrap().verify(&signature, &pushed.body).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_view_is_a_topic_of_its_own() {
    let mut stage = Stage::new().await;
    let views = ["", "/sync", "/complete", "/sync?sx=feedsync", "?as=atom"];
    let paths = views.map(|view| format!("/feeds/news{view}"));
    let callback = Callback::start().await;
    for (number, path) in paths.iter().enumerate() {
        stage.subscribes(&topic(path), &callback.address(&format!("/{number}")), &[]).await;
    }
    stage.changes_to(&["two", "one"]).await;
    stage.delivers(&callback, paths.len()).await;
    for pushed in callback.deliveries() {
        let path = &paths[pushed.path[1..].parse::<usize>().unwrap()];
        assert_eq!(pushed.text(), stage.text(path).await, "{path}");
        assert!(pushed.all("x-hub-signature").is_empty(), "nobody gave a secret");
        assert_eq!(pushed.all("content-encoding"), [""; 0]);
    }
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
