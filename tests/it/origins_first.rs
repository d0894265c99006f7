//! Feeds of a site that fails now and then, or refuses the gateway: nobody is refused what the site answers.

use crate::origins::{Front, HOST, TOKEN};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode, header};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;

const RSS: &str = "application/rss+xml";

fn rss(items: &str) -> String {
    let head = "<title>t</title><link>http://x.example/</link><description/>";
    format!("<rss version=\"2.0\"><channel>{head}{items}</channel></rss>")
}

/// A feed whose entries have no ids of their own.
fn without_ids() -> String {
    rss("<item><title>One</title></item><item><title>Two</title></item>")
}

fn with_ids() -> String {
    rss("<item><title>One</title><guid>urn:1</guid></item>")
}

fn typed(body: String) -> Response {
    ([(header::CONTENT_TYPE.as_str(), RSS)], body).into_response()
}

/// What the site answers to the request for a path that comes after `before` others for it.
fn answer(request: &Request, before: usize) -> Response {
    let value = |name: header::HeaderName| {
        request.headers().get(name).and_then(|value| value.to_str().ok())
    };
    let agent = value(header::USER_AGENT).unwrap_or_default().to_lowercase();
    match (request.uri().path(), before) {
        ("/readers.xml" | "/readers-no-ids.xml", _) if agent.starts_with("tidegate") => {
            StatusCode::FORBIDDEN.into_response()
        }
        ("/readers.xml", _) => {
            ([(header::VARY.as_str(), "user-agent")], typed(with_ids())).into_response()
        }
        ("/readers-no-ids.xml", _) => {
            ([(header::VARY.as_str(), "user-agent")], typed(without_ids())).into_response()
        }
        ("/readers-alike.xml", 2..) if agent.starts_with("tidegate") => {
            StatusCode::FORBIDDEN.into_response()
        }
        ("/readers-alike.xml", _) => {
            let item = |n: usize| format!("<item><title>{n}</title><guid>urn:{n}</guid></item>");
            typed(rss(&(0..=before).map(item).collect::<String>()))
        }
        ("/slow.xml", _) => {
            let pieces =
                futures_util::stream::iter(with_ids().into_bytes()).then(|byte| async move {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    Ok::<_, std::io::Error>(vec![byte])
                });
            ([(header::CONTENT_TYPE.as_str(), RSS)], Body::from_stream(pieces)).into_response()
        }
        ("/cut.xml", _) => typed("<rss version=\"2.0\"><channel><item><ti".to_owned()),
        ("/empty.xml", _) => typed(String::new()),
        ("/failed.xml", _) => {
            (StatusCode::INTERNAL_SERVER_ERROR, typed("<rss/>".to_owned())).into_response()
        }
        ("/page", _) => "a page".into_response(),
        _ => typed(without_ids()),
    }
}

/// A gateway through which everything of the site is passed.
async fn start() -> Front {
    let asked: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let app = axum::Router::new().fallback(move |request: Request| {
        let before = {
            let mut asked = asked.lock().unwrap();
            let count = asked.entry(request.uri().path().to_owned()).or_default();
            *count += 1;
            *count - 1
        };
        async move {
            if request.uri().path() == "/page" {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            answer(&request, before)
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let url = format!("http://127.0.0.1:{port}/");
    let origin =
        format!("[[origin]]\nname = \"blog\"\nurl = \"{url}\"\nhost = \"{HOST}\"\npass = true\n");
    Front::start(&origin, Some(HOST)).await
}

async fn get(front: &Front, path: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
    let mut request = front.ask(Method::GET, path).header("user-agent", "reader/1");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_the_gateway_may_not_poll_is_passed_on() {
    let front = start().await;
    for (path, document) in [("/readers.xml", with_ids()), ("/readers-no-ids.xml", without_ids())] {
        let begun = Instant::now();
        for _ in 0..3 {
            assert_eq!(get(&front, path, &[]).await, (StatusCode::OK, document.clone()), "{path}");
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "nothing is waited for");
    }
    front.gateway.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_the_gateway_may_not_poll_any_more_goes_on_with_its_readers() {
    let front = start().await;
    let feeds = async || front.feeds().await;
    let path = "/readers-alike.xml";
    let first = front.made(path).await;
    assert!(first.contains("urn:1") && first.contains("sx:sync"), "{first}");
    let name = feeds().await.into_values().next().unwrap();
    let url = format!("http://{}/api/v1/feeds/{name}/poll", front.gateway.address());
    let polled = reqwest::Client::new().post(url).bearer_auth(TOKEN).send().await.unwrap();
    assert!(polled.status().is_success(), "{}", polled.status());
    // Only readers get more by now.
    let (_, second) = get(&front, path, &[("if-none-match", "\"x\"")]).await;
    assert!(second.contains("urn:3") && second.contains("sx:sync"), "{second}");
    // The operator sees that its own polls fail, and where documents come from.
    let name = feeds().await.into_values().next().unwrap();
    let url = format!("http://{}/api/v1/feeds/{name}", front.gateway.address());
    let told = reqwest::Client::new().get(url).bearer_auth(TOKEN).send().await.unwrap();
    let told: serde_json::Value = serde_json::from_slice(&told.bytes().await.unwrap()).unwrap();
    assert_eq!(told["failures"], 1, "{told}");
    assert!(told["last_error"].as_str().unwrap().contains("403"), "{told}");
    let why = told["why"].as_str().unwrap();
    assert!(why.contains("what the site answers its readers is read instead: "), "{why}");
    front.gateway.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_fails_or_breaks_off_is_passed_on_and_makes_no_feed() {
    let front = start().await;
    for path in ["/cut.xml", "/empty.xml", "/failed.xml"] {
        let begun = Instant::now();
        let expected = get(&front, path, &[]).await;
        for _ in 0..3 {
            assert_eq!(get(&front, path, &[]).await, expected, "{path}");
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "it was waited for");
    }
    assert!(front.feeds().await.is_empty());
    front.gateway.stop().await.unwrap();
}

/// The document of a site that is slow comes to its readers as it comes, while the gateway reads it too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_that_is_slow_hides_nothing() {
    let front = start().await;
    assert_eq!(get(&front, "/slow.xml", &[]).await, (StatusCode::OK, with_ids()));
    assert!(front.made("/slow.xml").await.contains("urn:1"));
    front.gateway.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_office_behind_one_address_is_answered() {
    let front = start().await;
    let asked = (0..100).map(|_| get(&front, "/page", &[]));
    for (status, _) in futures_util::future::join_all(asked).await {
        assert_eq!(status, StatusCode::OK);
    }
    front.gateway.stop().await.unwrap();
}
