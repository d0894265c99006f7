//! What makes no feed of an origin, and what a feed is known by: what turns private, addresses with a key in them,
//! headers of clients, and other spellings of one address.

use crate::origins::{Front, HOST};
use crate::support::{self, post};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::IntoResponse as _;
use reqwest::{StatusCode, header};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tidegate_core::model::FeedName;

const KEY: &str = "premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml";
const CLOSED: &str = "the site says that this is not for everybody (Cache-Control: private)";
/// A site of feeds, one at every path.
struct ManyFeeds {
    url: String,
    /// Whether what it answers is for its members.
    is_closed: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<(String, HeaderMap)>>>,
}

impl ManyFeeds {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let (is_closed, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::default()));
        let (base, closed, log) = (url.clone(), Arc::clone(&is_closed), Arc::clone(&asked));
        let app = axum::Router::new().fallback(move |request: Request| {
            let is_closed = closed.load(Ordering::SeqCst);
            let log: &Mutex<Vec<(String, HeaderMap)>> = &log;
            log.lock().unwrap().push((request.uri().to_string(), request.headers().clone()));
            let posts = if is_closed { 4..=6 } else { 1..=3 };
            let body = support::atom(&base, &posts.map(post).collect::<Vec<_>>());
            let cached = if is_closed { "private, no-store" } else { "max-age=60" };
            let headers = [("content-type", "application/atom+xml"), ("cache-control", cached)];
            async move { (headers, body).into_response() }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, is_closed, asked }
    }

    async fn front(&self, passes: &str) -> Front {
        let origin = format!(
            "[[origin]]\nname = \"blog\"\nurl = \"{}\"\nhost = \"{HOST}\"\npass = {passes}\n",
            self.url
        );
        Front::start(&origin, Some(HOST)).await
    }

    /// The headers of each request for a path.
    fn headers(&self, path: &str) -> Vec<HeaderMap> {
        let asked = self.asked.lock().unwrap();
        let of_path = asked.iter().filter(|(target, _)| target == path);
        of_path.map(|(_, headers)| headers.clone()).collect()
    }
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
    let site = ManyFeeds::start().await;
    let front = site.front("true").await;
    let open = front.made("/atom.xml").await;
    assert!(open.contains("sx:sync"), "{open}");
    let name = front.feeds().await.remove(&format!("{}atom.xml", site.url)).unwrap();
    let name = FeedName::new(&name).unwrap();
    site.is_closed.store(true, Ordering::SeqCst);
    let polled = front.gateway.operator().poll_now(&name).await.unwrap();
    assert_eq!(polled.error.as_deref(), Some(CLOSED));
    assert_eq!(front.text("/atom.xml").await, open, "what everybody may read stays");
    // Nor is it subscribed to.
    let (status, said) = subscribe(&front, &format!("{}other.xml", site.url)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert!(said.contains(CLOSED), "{said}");
    assert_eq!(front.feeds().await.len(), 1);
    site.is_closed.store(false, Ordering::SeqCst);
    let polled = front.gateway.operator().poll_now(&name).await.unwrap();
    assert_eq!(polled.error, None);
    front.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_with_a_key_makes_no_feed() {
    let site = ManyFeeds::start().await;
    for passes in ["true", "\"redirect\""] {
        let front = site.front(passes).await;
        for _ in 0..2 {
            let answer = front.get(&format!("/{KEY}")).send().await.unwrap();
            match answer.status() {
                StatusCode::OK => assert!(!answer.text().await.unwrap().contains("sx:sync")),
                status => assert_eq!(status, StatusCode::TEMPORARY_REDIRECT),
            }
        }
        let (status, said) = subscribe(&front, &format!("{}{KEY}", site.url)).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(said.contains("a key in it"), "{said}");
        assert!(front.feeds().await.is_empty());
        front.gateway.stop().await;
    }
}
