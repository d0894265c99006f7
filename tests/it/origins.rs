//! A gateway in front of a whole site: its feeds are made while their first request is passed on or redirected, as is
//! everything else.

use crate::support;
use crate::support::gateways::{FORM, Running, form, until};
use crate::support::prelude::*;
use crate::support::publisher::{SeenRequest, Server};
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use reqwest::{Client, StatusCode, header};

pub struct Site {
    pub url: String,
    pub server: Server,
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

fn answer(seen: &SeenRequest) -> Response {
    // It is asked by its own host.
    let base = &format!("http://{}/", seen.header("host"));
    match &*seen.target() {
        "/atom.xml" | "/feed?id=1" | "/feed?id=2" | KEY => typed(ATOM, atom(base)),
        "/private.xml" => with(typed(ATOM, atom(base)), "cache-control", "private"),
        "/choices" => {
            let mut answer = with(typed(HTML, "<script>alert(1)</script>"), "set-cookie", "a=b");
            *answer.status_mut() = StatusCode::MULTIPLE_CHOICES;
            with(answer, "location", "/x")
        }
        "/sitemap.xml" => typed("text/xml", "<urlset/>"),
        "/" => typed(HTML, "<link rel=alternate type=application/atom+xml href='/feed?id=1'>Hi"),
        "/upload" => seen.body.len().to_string().into_response(),
        _ => (StatusCode::NOT_FOUND, "nothing").into_response(),
    }
}

impl Site {
    pub async fn start() -> Self {
        let server = Server::start(|seen| Some(answer(seen))).await;
        Self { url: server.address("/"), server }
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
    pub async fn through(url: &str) -> Self {
        let origin = format!(
            "[[origin]]\nname = \"blog\"\nurl = \"{url}\"\nhost = \"{HOST}\"\npass = true\n"
        );
        Self::start(&origin, Some(HOST)).await
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

    /// The addresses of all feeds.
    pub async fn feeds(&self) -> Vec<String> {
        let (_, all) = self.gateway.admin("GET", "/feeds", Value::Null).await;
        let feeds = all["feeds"].as_array().unwrap().iter();
        feeds.map(|feed| feed["url"].as_str().unwrap().to_owned()).collect()
    }
}
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_for_everybody_makes_no_feed() {
    let site = Site::start().await;
    let front = Front::through(&site.url).await;
    // What may be a feed is looked at once.
    for (path, looks) in
        [("/private.xml", 0), ("/sitemap.xml", 1), ("/feed?id=1", 0), ("/feed?id=2", 0), (KEY, 0)]
    {
        for _ in 0..2 {
            assert!(!front.text(path).await.contains("sx:sync"), "{path}");
        }
        assert_eq!(site.server.asked(path), 2 + looks, "{path}");
    }
    // Nor is it subscribed to.
    for (path, said) in [("/private.xml", "(Cache-Control: private)"), (KEY, "a key in it")] {
        let url = format!("{}{}", site.url, path.trim_start_matches('/'));
        let asked = front.client.post(front.gateway.url("/subscribe")).header("content-type", FORM);
        let answer = asked.body(form(&[("url", &url)])).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{path}");
        let text = answer.text().await.unwrap();
        assert!(text.contains(said), "{path}: {text}");
    }
    assert!(front.feeds().await.is_empty());
    // A page announces one of the addresses with a query.
    front.text("/").await;
    until("a feed", async || front.text("/feed?id=1").await.contains("sx:sync")).await;
    front.text("/feed?id=2").await;
    assert_eq!(front.feeds().await, [format!("{}feed?id=1", site.url)]);
    front.gateway.stop().await;
}

/// Where nothing is passed on, no part of what the site answers comes to our host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_site_answers_what_is_no_feed_itself() {
    let site = Site::start().await;
    // Below a path, where only feeds are.
    let origin = format!("[[origin]]\nname = \"blog\"\nurl = \"{}\"\nat = \"/blog/\"\n", site.url);
    let front = Front::start(&origin, None).await;
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
    let url = &site.url;
    let feed =
        format!("[[feed]]\nname = \"news\"\nurl = \"{url}atom.xml\"\npath = \"/atom.xml\"\n");
    let front = Front::start(&feed, None).await;
    front.gateway.poll("news").await;
    let text = async |path: &str| front.gateway.text(path).await;
    let own = text("/atom.xml").await;
    assert_eq!(own, text("/feeds/news").await);
    assert!(own.contains("\"http://gw.example/atom.xml\""), "{own}");
    assert!(text("/atom.xml?as=rss").await.contains("<rss"));
    front.gateway.stop().await;
}
