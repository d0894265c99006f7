//! First requests for feeds of a site that fails now and then: nobody is refused what the site answers, and no id is
//! another at the second request because of it.

use crate::origins::{Front, HOST, TOKEN};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
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
        ("/cut.xml", 0) => typed("<rss version=\"2.0\"><channel><item><ti".to_owned()),
        ("/empty.xml", 0) => typed(String::new()),
        ("/failed.xml", 0) => {
            (StatusCode::INTERNAL_SERVER_ERROR, typed("<rss/>".to_owned())).into_response()
        }
        _ if value(header::ACCEPT_ENCODING) == Some("dcb") => {
            ([("content-encoding", "dcb")], typed("packed".to_owned())).into_response()
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
    let (_, first) = get(&front, path, &[]).await;
    assert!(first.contains("urn:0") && first.contains("sx:sync"), "{first}");
    for (number, status) in [(1, "unchanged or changed"), (2, "refused")] {
        let name = feeds().await.into_values().next().unwrap();
        let url = format!("http://{}/api/v1/feeds/{name}/poll", front.gateway.address());
        let polled = reqwest::Client::new().post(url).bearer_auth(TOKEN).send().await.unwrap();
        assert!(polled.status().is_success(), "{number}: {status}");
    }
    // The site answered three times by now; only readers get more.
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
async fn an_answer_that_failed_is_not_remembered() {
    let front = start().await;
    for (path, headers) in [
        ("/cut.xml", &[][..]),
        ("/empty.xml", &[][..]),
        ("/failed.xml", &[][..]),
        ("/packed.xml", &[("accept-encoding", "dcb")][..]),
    ] {
        let (_, failed) = get(&front, path, headers).await;
        assert!(!failed.contains("<guid"), "{path}: {failed}");
        let (status, first) = get(&front, path, &[]).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        assert!(first.contains("<guid"), "{path}: {first}");
        assert_eq!(get(&front, path, &[]).await, (StatusCode::OK, first), "{path}");
    }
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
