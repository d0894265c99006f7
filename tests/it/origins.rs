//! A gateway in front of a whole site: its feeds are made while their first request is passed on or redirected, as is
//! everything else.

use crate::support::gateways::Running;
use crate::support::{self, post};
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use reqwest::{Client, StatusCode, header};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub struct Site {
    pub url: String,
    pub asked: Arc<Mutex<Vec<String>>>,
}

const ATOM: &str = "application/atom+xml";
/// An address with a key in it: whoever knows it has the feed.
const KEY: &str = "/premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml";
const HTML: &str = "text/html; charset=utf-8";

fn typed(kind: &'static str, body: impl Into<Body>) -> Response {
    ([(header::CONTENT_TYPE.as_str(), kind)], body.into()).into_response()
}

fn atom(base: &str) -> String {
    support::atom(base, &(1..=3).map(post).collect::<Vec<_>>())
}

fn with(mut response: Response, name: &'static str, value: &'static str) -> Response {
    response.headers_mut().append(name, value.parse().unwrap());
    response
}

fn answer(base: &str, request: &Request) -> Response {
    let path = request.uri().path();
    let target = request.uri().path_and_query().map_or(path, |it| it.as_str());
    match target {
        "/atom.xml" | "/feed?id=1" | "/feed?id=2" | KEY => typed(ATOM, atom(base)),
        "/private.xml" => with(typed(ATOM, atom(base)), "cache-control", "private"),
        "/choices" => {
            let mut answer = with(typed(HTML, "<script>alert(1)</script>"), "set-cookie", "a=b");
            *answer.status_mut() = StatusCode::MULTIPLE_CHOICES;
            with(answer, "location", "/x")
        }
        "/sitemap.xml" => typed("text/xml", "<urlset/>"),
        "/" => typed(HTML, "<link rel=alternate type=application/atom+xml href='/feed?id=1'>Hi"),
        _ => (StatusCode::NOT_FOUND, "nothing").into_response(),
    }
}

impl Site {
    pub async fn start() -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
        let (base, log) = (url.clone(), Arc::clone(&asked));
        let app = axum::Router::new().fallback(move |request: Request| {
            let target = request.uri().path_and_query().unwrap().to_string();
            log.lock().unwrap().push(target.clone());
            let base = base.clone();
            async move {
                if target == "/said-back" {
                    let body = request.into_body().into_data_stream();
                    return typed("text/plain", Body::from_stream(body));
                }
                if request.uri().path() == "/upload" {
                    let size = axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
                    return size.len().to_string().into_response();
                }
                answer(&base, &request)
            }
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, asked }
    }

    pub fn count(&self, target: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| *asked == target).count()
    }
}

/// A gateway in front of it, and a client that follows nothing.
pub struct Front {
    pub gateway: Running,
    pub client: Client,
    /// What requests for the origin begin with, and the host that they name.
    base: String,
    host: Option<&'static str>,
}

pub const HOST: &str = "blog.gw.example";
pub use crate::support::process::TOKEN;

impl Front {
    pub async fn start(origin: &str, host: Option<&'static str>) -> Self {
        // `origin` may begin with more of the polling.
        let text = format!(
            "[server]\npublic_url = \"http://gw.example\"\n[polling]\nmin_interval = \"1m\"\n{origin}"
        );
        let gateway = Running::start(&text).await;
        let client = gateway.client().clone();
        let path = if host.is_some() { "" } else { "/blog" };
        let base = format!("http://{}{path}", gateway.address());
        Self { gateway, client, base, host }
    }

    /// With an origin at a host of its own, through which everything is passed.
    pub async fn through(site: &Site) -> Self {
        let origin = format!(
            "[[origin]]\nname = \"blog\"\nurl = \"{}\"\nhost = \"{HOST}\"\npass = true\n",
            site.url
        );
        Self::start(&origin, Some(HOST)).await
    }

    /// With an origin below a path, where only feeds are.
    async fn redirecting(site: &Site) -> Self {
        let origin =
            format!("[[origin]]\nname = \"blog\"\nurl = \"{}\"\nat = \"/blog/\"\n", site.url);
        Self::start(&origin, None).await
    }

    pub fn ask(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match self.host {
            Some(host) => request.header(header::HOST, host),
            None => request,
        }
    }

    pub fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.ask(reqwest::Method::GET, path)
    }

    pub async fn text(&self, path: &str) -> String {
        let answer = self.get(path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        answer.text().await.unwrap()
    }

    pub async fn feeds(&self) -> HashMap<String, String> {
        let url = format!("http://{}/api/v1/feeds", self.gateway.address());
        let answer = self.client.get(url).bearer_auth(TOKEN).send().await.unwrap();
        let all: serde_json::Value =
            serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        let feeds = all["feeds"].as_array().unwrap().iter();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        feeds.map(|feed| (text(&feed["url"]), text(&feed["name"]))).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_for_everybody_makes_no_feed() {
    let site = Site::start().await;
    let front = Front::through(&site).await;
    // What may be a feed is looked at once.
    for (path, looks) in
        [("/private.xml", 0), ("/sitemap.xml", 1), ("/feed?id=1", 0), ("/feed?id=2", 0), (KEY, 0)]
    {
        for _ in 0..2 {
            assert!(!front.text(path).await.contains("sx:sync"), "{path}");
        }
        assert_eq!(site.count(path), 2 + looks, "{path}");
    }
    // Nor is it subscribed to.
    for (path, said) in [("/private.xml", "(Cache-Control: private)"), (KEY, "a key in it")] {
        let url = format!("{}{}", site.url, path.trim_start_matches('/'));
        let form =
            url::form_urlencoded::Serializer::new(String::new()).append_pair("url", &url).finish();
        let asked = front.client.post(front.gateway.url("/subscribe")).body(form);
        let asked = asked.header("content-type", "application/x-www-form-urlencoded");
        let answer = asked.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(said), "{path}: {text}");
    }
    assert!(front.feeds().await.is_empty());
    // A page announces one of the addresses with a query.
    front.text("/").await;
    for _ in 0..100 {
        if front.text("/feed?id=1").await.contains("sx:sync") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    front.text("/feed?id=2").await;
    let feeds = front.feeds().await;
    assert_eq!(feeds.keys().collect::<Vec<_>>(), [&format!("{}feed?id=1", site.url)]);
    front.gateway.stop().await;
}

/// Where nothing is passed on, no part of what the site answers comes to our host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_site_answers_what_is_no_feed_itself() {
    let site = Site::start().await;
    let front = Front::redirecting(&site).await;
    for (method, path) in [("GET", "/nothing"), ("GET", "/choices"), ("POST", "/echo")] {
        let answer = front.ask(method.parse().unwrap(), path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT, "{path}");
        let to = format!("{}{}", site.url, path.trim_start_matches('/'));
        assert_eq!(answer.headers()["location"], to.as_str());
        assert!(!answer.headers().contains_key("set-cookie"), "{path}");
        assert!(!answer.text().await.unwrap().contains("script"), "{path}");
    }
    let bare = front.client.get(front.base.clone()).send().await.unwrap();
    let location = &bare.headers()["location"];
    assert_eq!((bare.status().as_u16(), location.as_bytes()), (308, b"blog/".as_slice()));
    front.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_has_a_path_of_its_own() {
    let site = Site::start().await;
    let feed = format!(
        "[[feed]]\nname = \"news\"\nurl = \"{}atom.xml\"\npath = \"/atom.xml\"\n",
        site.url
    );
    let front = Front::start(&feed, None).await;
    front.gateway.poll("news").await;
    let text = async |path: &str| front.gateway.text(path).await;
    let own = text("/atom.xml").await;
    assert_eq!(own, text("/feeds/news").await);
    assert!(own.contains("\"http://gw.example/atom.xml\""), "{own}");
    assert!(text("/atom.xml?as=rss").await.contains("<rss"));
    front.gateway.stop().await;
}
