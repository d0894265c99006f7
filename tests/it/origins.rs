//! A gateway in front of a whole site: its feeds are made while their first request is passed on or redirected, as is
//! everything else.

use crate::support::gateways::{FORM, Running, form, until};
use crate::support::prelude::*;
use crate::support::publisher::{Answer, Publisher};
use reqwest::{Client, StatusCode, header};

/// An address with a key in it: whoever knows it has the feed.
const KEY: &str = "/premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml";
const HTML: &str = "text/html; charset=utf-8";

/// A site with feeds, pages and something to send bodies to.
pub async fn start_site() -> Publisher {
    let site = Publisher::start().await;
    let feed = Answer::document("application/atom+xml", atom(&site.address("/"), &days(1..=3)));
    for path in ["/atom.xml", "/feed?id=1", "/feed?id=2", KEY] {
        site.set(path, feed.clone());
    }
    for path in ["/posts", "/feed?id=1"] {
        site.set(path, feed.clone().with("vary", "Accept"));
    }
    site.set("/private.xml", feed.with("cache-control", "private"));
    site.set("/choices", Answer::redirect(300, "/x").with("set-cookie", "a=b"));
    site.set("/sitemap.xml", Answer::document("text/xml", "<urlset/>"));
    let link = "<link rel=alternate type=application/atom+xml href='/feed?id=1'>Hi";
    site.set("/", Answer::document(HTML, link));
    site.set("/upload", Answer::document("text/plain", "it has come"));
    site.set_all(Answer::status(404));
    site
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
    let site = start_site().await;
    let front = Front::through(&site.address("/")).await;
    // What may be a feed is looked at once.
    for (path, looks) in [
        ("/private.xml", 0),
        ("/posts", 0),
        ("/sitemap.xml", 1),
        ("/feed?id=1", 0),
        ("/feed?id=2", 0),
        (KEY, 0),
    ] {
        for _ in 0..2 {
            assert!(!front.text(path).await.contains("sx:sync"), "{path}");
        }
        assert_eq!(site.asked(path), 2 + looks, "{path}");
    }
    // Nor is it subscribed to.
    for (path, said) in
        [("/private.xml", "(Cache-Control: private)"), ("/posts", "(Vary)"), (KEY, "a key in it")]
    {
        let url = site.address(path);
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
    assert_eq!(front.feeds().await, [site.address("/feed?id=1")]);
    front.gateway.stop().await;
}

/// Readers have the site at our host alone, whatever they read it as.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_relative_to_the_site_is_at_our_host() {
    let site = start_site().await;
    let rss = "<rss version='2.0'><channel><title>T</title><link>/</link><item><title>A</title>\
               <guid>1</guid><link>/posts/1</link></item></channel></rss>";
    site.set("/rss.xml", Answer::document("application/rss+xml", rss));
    let front = Front::through(&site.address("/")).await;
    until("a feed", async || front.text("/rss.xml").await.contains("sx:sync")).await;
    let (_, all) = front.gateway.admin("GET", "/feeds", Value::Null).await;
    let feed = format!("/feeds/{}", all["feeds"][0]["name"].as_str().unwrap());
    for view in ["?as=atom", "?as=jsonfeed", "?as=html"] {
        let text = front.gateway.text(&format!("{feed}{view}")).await;
        assert!(text.contains(&format!("http://{HOST}/posts/1")), "{view}: {text}");
        assert!(!text.contains(&site.address("/")), "{view}: {text}");
    }
    front.gateway.stop().await;
}

/// Where nothing is passed on, no part of what the site answers comes to our host.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_site_answers_what_is_no_feed_itself() {
    let site = start_site().await;
    // Below a path, where only feeds are.
    let origin =
        format!("[[origin]]\nname = \"blog\"\nurl = \"{}\"\nat = \"/blog/\"\n", site.address("/"));
    let front = Front::start(&origin, None).await;
    for (method, path) in [("GET", "/nothing"), ("GET", "/choices"), ("POST", "/echo")] {
        let answer = front.ask(method.parse().unwrap(), path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT, "{path}");
        assert_eq!(answer.headers()["location"], site.address(path).as_str());
        assert!(!answer.headers().contains_key("set-cookie"), "{path}");
        assert!(!answer.text().await.unwrap().contains("<h1>"), "{path}");
    }
    let bare = front.client.get(front.base.clone()).send().await.unwrap();
    let location = &bare.headers()["location"];
    assert_eq!((bare.status().as_u16(), location.as_bytes()), (308, b"blog/".as_slice()));
    front.gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_has_a_path_of_its_own() {
    let site = start_site().await;
    let url = site.address("/atom.xml");
    let feed = format!("[[feed]]\nname = \"news\"\nurl = \"{url}\"\npath = \"/atom.xml\"\n");
    let front = Front::start(&feed, None).await;
    front.gateway.poll("news").await;
    let text = async |path: &str| front.gateway.text(path).await;
    let own = text("/atom.xml").await;
    assert_eq!(own, text("/feeds/news").await);
    assert!(own.contains("\"http://gw.example/atom.xml\""), "{own}");
    assert!(text("/atom.xml?as=rss").await.contains("<rss"));
    front.gateway.stop().await;
}
