//! An upstream with a WebSub hub: subscribed to, believed as far as it has shown, and a reason to
//! poll now.

use crate::e2e::support::{Answer, FEED, Format, Hub, Post, Stage, on_disk, posts, pushes};
use crate::support::gateways;
use serde_json::Value;
use std::time::Duration;
use tidegate_core::websub::{HubRequest, Intent, Secret};

const SITE: &str = "http://gateway.example";
const LEASE: u64 = 90_000;

/// The publisher's document, with a `Link` header that names its hub and its own address.
fn publishes(stage: &Stage, hubs: &[&Hub], posts: &[Post]) {
    let text = Format::Atom10.document(posts);
    let topic = stage.publisher.address("/feed");
    let mut answer = Answer::document(Format::Atom10.media_type(), text);
    for hub in hubs {
        answer = answer.with("link", &format!("<{}>; rel=\"hub\"", hub.address()));
    }
    stage.answers(answer.with("link", &format!("<{topic}>; rel=\"self\"")));
}

async fn hub_of(stage: &Stage) -> Value {
    stage.status().await["hub"].clone()
}

/// Waits until the gateway says of its hub what is wanted.
async fn until(stage: &Stage, wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..500 {
        let hub = hub_of(stage).await;
        if wanted(&hub) {
            return hub;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{}", hub_of(stage).await);
}

fn signed(request: &HubRequest, body: &str) -> Option<String> {
    Some(request.secret.as_ref().unwrap().sign(body.as_bytes()))
}

/// A stage whose feed is subscribed to at the hub.
async fn subscribed(hub: &Hub, tables: &str) -> (Stage, HubRequest) {
    let mut stage = Stage::with(Format::Atom10, "", tables).await;
    publishes(&stage, &[hub], &posts(1..=5));
    stage.poll().await;
    let request = hub.asked(1).await;
    assert_eq!(hub.verifies(&stage.net, &request, LEASE).await.0, 200);
    (stage, request)
}

/// Publishes one more post and pushes it: it is shown with nobody polling.
async fn push(stage: &mut Stage, hub: &Hub, request: &HubRequest, newest: u32) {
    stage.later(Duration::from_secs(60));
    publishes(stage, &[hub], &posts(1..=newest));
    let body = "<feed/>";
    assert_eq!(pushes(&stage.net, request, signed(request, body), body).await, 202);
    let text = format!("day {newest}");
    let feed = format!("{SITE}/feeds/{FEED}");
    gateways::until("it is shown", async || stage.net.text(&feed).await.contains(&text)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_is_a_reason_to_poll_now_and_a_wrong_one_is_none() {
    let hub = Hub::start().await;
    let (mut stage, request) = subscribed(&hub, "").await;
    let polls = stage.publisher.asked("/feed");

    // Not signed, signed by somebody else, and signed for another body: answered and ignored.
    let body = Format::Atom10.document(&posts(1..=9));
    let stranger = Secret::new("a guess").unwrap().sign(body.as_bytes());
    stage.later(Duration::from_secs(60));
    for signature in [None, Some(stranger), signed(&request, "another body")] {
        assert_eq!(pushes(&stage.net, &request, signature, &body).await, 202);
    }
    let said = until(&stage, |hub| hub["disbelieved_pushes"] == 3).await;
    assert_eq!(said["pushes"], 0);
    assert!(said["last_disbelieved"]["why"].as_str().unwrap().contains("signature"), "{said}");
    assert_eq!(stage.publisher.asked("/feed"), polls, "nobody was asked");

    // What is pushed is not believed either: the publisher is asked, and its answer counts.
    push(&mut stage, &hub, &request, 6).await;
    assert!(!stage.net.text(&format!("{SITE}/feeds/{FEED}")).await.contains("day 9"));
    assert_eq!(stage.publisher.asked("/feed"), polls + 1);
    let status = stage.status().await;
    assert_eq!(status["last_polls"][0]["created"], 1);

    // A flood of pushes makes one poll, and no more of them the longer nothing is new.
    let polls = stage.publisher.asked("/feed");
    for _ in 0..200 {
        assert_eq!(pushes(&stage.net, &request, signed(&request, ""), "").await, 202);
    }
    stage.later(Duration::from_secs(60));
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let made = stage.publisher.asked("/feed") - polls;
    assert!((1..=2).contains(&made), "{made} polls");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_keeps_the_subscription() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start().await;
    let (mut stage, request) = subscribed(&hub, &on_disk(folder.path())).await;
    push(&mut stage, &hub, &request, 6).await;
    let before = until(&stage, |hub| hub["pushes"] == 1).await;
    stage.restart().await;
    let after = until(&stage, |hub| !hub.is_null()).await;
    for key in ["state", "hub", "topic", "lease_until", "pushes"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    push(&mut stage, &hub, &request, 7).await;
    assert_eq!(hub.requests(), 1, "it was not asked again");
    stage.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_not_named_any_more_is_left() {
    let hub = Hub::start().await;
    let (mut stage, request) = subscribed(&hub, "").await;
    publishes(&stage, &[], &posts(1..=6));
    stage.poll().await;
    let end = hub.asked(2).await;
    assert_eq!((end.intent, &end.callback), (Intent::Unsubscribe, &request.callback));
    assert_eq!(hub.verifies(&stage.net, &end, LEASE).await.0, 200);
    assert_eq!(hub_of(&stage).await, Value::Null);
    assert_eq!(pushes(&stage.net, &request, signed(&request, ""), "").await, 410);
    stage.end().await;
}
