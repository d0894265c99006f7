//! What makes no feed of an origin: what turns private, and addresses with a key in them.

use crate::origins::{Front, HOST};
use crate::support::publisher::{Answer, Publisher};
use crate::support::{atom, post};
use reqwest::{StatusCode, header};
use tidegate_core::model::FeedName;

const KEY: &str = "premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml";
const CLOSED: &str = "the site says that this is not for everybody (Cache-Control: private)";

/// A site of feeds, one at every path. `is_closed`: what it answers is for its members.
fn says(site: &Publisher, is_closed: bool) {
    let posts = if is_closed { 4..=6 } else { 1..=3 };
    let cached = if is_closed { "private, no-store" } else { "max-age=60" };
    let body = atom(&site.address("/"), &posts.map(post).collect::<Vec<_>>());
    site.set_all(Answer::document("application/atom+xml", body).with("cache-control", cached));
}

async fn front(site: &Publisher, passes: &str) -> Front {
    let url = site.address("/");
    let origin = format!(
        "[[origin]]\nname = \"blog\"\nurl = \"{url}\"\nhost = \"{HOST}\"\npass = {passes}\n"
    );
    Front::start(&origin, Some(HOST)).await
}

/// What `/subscribe` answers to a form.
async fn subscribe(front: &Front, url: &str) -> (StatusCode, String) {
    let at = format!("http://{}/subscribe", front.gateway.address());
    let body: String =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("url", url).finish();
    let form = (header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let sent = reqwest::Client::new().post(at).header(form.0, form.1).body(body).send();
    let answer = sent.await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_turns_private_is_taken_by_no_poll() {
    let site = Publisher::start().await;
    says(&site, false);
    let front = front(&site, "true").await;
    let open = front.made("/atom.xml").await;
    assert!(open.contains("sx:sync"), "{open}");
    let name = front.feeds().await.remove(&site.address("/atom.xml")).unwrap();
    let name = FeedName::new(&name).unwrap();
    says(&site, true);
    let polled = front.gateway.operator().poll_now(&name).await.unwrap();
    assert_eq!(polled.error.as_deref(), Some(CLOSED));
    assert_eq!(front.text("/atom.xml").await, open, "what everybody may read stays");
    // Nor is it subscribed to.
    let (status, said) = subscribe(&front, &site.address("/other.xml")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(said.contains(CLOSED), "{said}");
    assert_eq!(front.feeds().await.len(), 1);
    says(&site, false);
    let polled = front.gateway.operator().poll_now(&name).await.unwrap();
    assert_eq!(polled.error, None);
    front.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_with_a_key_makes_no_feed() {
    let site = Publisher::start().await;
    says(&site, false);
    for passes in ["true", "\"redirect\""] {
        let front = front(&site, passes).await;
        for _ in 0..2 {
            let answer = front.get(&format!("/{KEY}")).send().await.unwrap();
            match answer.status() {
                StatusCode::OK => assert!(!answer.text().await.unwrap().contains("sx:sync")),
                status => assert_eq!(status, StatusCode::TEMPORARY_REDIRECT),
            }
        }
        let (status, said) = subscribe(&front, &site.address(&format!("/{KEY}"))).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(said.contains("a key in it"), "{said}");
        assert!(front.feeds().await.is_empty());
        front.gateway.stop().await;
    }
}
