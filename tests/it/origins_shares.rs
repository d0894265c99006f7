//! What one client takes of what the gateway asks and holds for a site, and what is left for others.

use crate::origins::{Front, HOST};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use reqwest::{Client, StatusCode, header};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const RSS: &str = "application/rss+xml";
/// Sooner than anybody gives up waiting for his turn.
const SOON: Duration = Duration::from_secs(4);

fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE.as_str(), kind)], body.into()).into_response()
}

/// A document of which the beginning comes and nothing more.
fn endless() -> Response {
    let beginning = format!("<rss version=\"2.0\"><channel>{}", " ".repeat(64 * 1024));
    let beginning = stream::iter([Ok::<_, std::io::Error>(beginning)]);
    typed(RSS, Body::from_stream(beginning.chain(stream::pending())))
}

/// A site, and how often it was asked for what never ends.
async fn start() -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let app = axum::Router::new().fallback(move |request: Request| {
        let path = request.uri().path().to_owned();
        let (is_held, is_endless) = (path.starts_with("/held/"), path.starts_with("/endless/"));
        if is_held || is_endless {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        async move {
            if is_held {
                std::future::pending::<()>().await;
            }
            let items = "<item><title>One</title></item>";
            let head = "<title>t</title><link>http://x.example/</link><description/>";
            match path.as_str() {
                _ if is_endless => endless(),
                "/feed.xml" => typed(
                    RSS,
                    format!("<rss version=\"2.0\"><channel>{head}{items}</channel></rss>"),
                ),
                "/sitemap.xml" => typed("text/xml", "<?xml version='1.0'?><urlset/>"),
                _ => "a page".into_response(),
            }
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (format!("http://127.0.0.1:{port}/"), asked)
}

/// A client of its own, by its address.
fn client(last: u8) -> Client {
    let builder = Client::builder().redirect(reqwest::redirect::Policy::none());
    builder.local_address(IpAddr::from([127, 0, 0, last])).build().unwrap()
}

/// Waits until the site was asked so often, and then for what else may come.
async fn until(asked: &AtomicUsize, count: usize) {
    while asked.load(Ordering::SeqCst) < count {
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_millis(300)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_addresses_of_one_client_stop_no_redirects_of_others() {
    let (url, asked) = start().await;
    let origin = format!("[[origin]]\nname = \"blog\"\nurl = \"{url}\"\nat = \"/blog/\"\n");
    let front = Front::start(&origin, None).await;
    let base = format!("http://{}/blog", front.gateway.address());
    let get = |client: &Client, path: &str| client.get(format!("{base}{path}")).send();
    let (one, other) = (client(2), client(3));
    assert_eq!(get(&one, "/page").await.unwrap().status(), StatusCode::TEMPORARY_REDIRECT);
    // The look at the page may still have one of its places.
    let mut held = Vec::new();
    while asked.load(Ordering::SeqCst) < 2 || held.len() < 8 {
        held.push(tokio::spawn(get(&one, &format!("/held/{}", held.len()))));
        sleep(Duration::from_millis(20)).await;
    }
    until(&asked, 2).await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    let begun = Instant::now();
    // A page that was looked at needs no turn.
    for (client, path) in [(&one, "/page"), (&other, "/other-page")] {
        let answer = get(client, path).await.unwrap();
        assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT, "{path}");
    }
    for status in [StatusCode::TEMPORARY_REDIRECT, StatusCode::OK] {
        assert_eq!(get(&other, "/feed.xml").await.unwrap().status(), status);
    }
    // Who asks for what is slow is redirected at once.
    for each in held {
        assert_eq!(each.await.unwrap().unwrap().status(), StatusCode::TEMPORARY_REDIRECT);
    }
    assert!(begun.elapsed() < SOON, "it was waited for");
    front.gateway.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_documents_of_one_client_stop_no_feeds_of_others() {
    let (url, asked) = start().await;
    let origin =
        format!("[[origin]]\nname = \"blog\"\nurl = \"{url}\"\nhost = \"{HOST}\"\npass = true\n");
    let front = Front::start(&origin, Some(HOST)).await;
    let base = format!("http://{}", front.gateway.address());
    let get = |client: &Client, path: &str| {
        client.get(format!("{base}{path}")).header(header::HOST, HOST).send()
    };
    let (one, other) = (client(2), client(3));
    let held: Vec<_> = (0..16).map(|n| tokio::spawn(get(&one, &format!("/endless/{n}")))).collect();
    // All are passed on, and two are looked at.
    until(&asked, 18).await;
    assert_eq!(asked.load(Ordering::SeqCst), 18);
    let begun = Instant::now();
    for is_made in [false, true] {
        let feed = get(&other, "/feed.xml").await.unwrap();
        assert_eq!(feed.status(), StatusCode::OK);
        assert_eq!(feed.text().await.unwrap().contains("sx:sync"), is_made);
    }
    let sitemap = get(&one, "/sitemap.xml").await.unwrap();
    assert_eq!(sitemap.status(), StatusCode::OK);
    assert!(begun.elapsed() < SOON, "it was waited for");
    for each in held {
        each.abort();
    }
    front.gateway.stop().await.unwrap();
}
