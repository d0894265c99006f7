//! What makes no feed of an origin, and what a feed is known by: what turns private, addresses with a key in them,
//! headers of clients, and other spellings of one address.

use crate::origins::{Front, HOST};
use crate::support::{self, post};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::IntoResponse as _;
use reqwest::{StatusCode, header};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::model::FeedName;

const KEY: &str = "premium/k3Jx9QzLw8VtYp2R7mNb4cHd/feed.xml";
const CLOSED: &str = "the site says that this is not for everybody (Cache-Control: private)";
/// More feeds than the requests of one client make within an hour.
const MANY: usize = 25;

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
        self.front_of(passes, 40).await
    }

    async fn front_of(&self, passes: &str, feeds: u32) -> Front {
        let origin = format!(
            "[[origin]]\nname = \"blog\"\nurl = \"{}\"\nhost = \"{HOST}\"\npass = {passes}\nfeeds = {feeds}\n",
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
    front.gateway.stop().await.unwrap();
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
        front.gateway.stop().await.unwrap();
    }
}

/// The gateway looks by itself, so that what a client says of himself is in no feed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_header_of_a_client_is_told_to_the_site_for_a_feed() {
    let site = ManyFeeds::start().await;
    let front = site.front("true").await;
    for (number, header) in
        ["x-original-url", "x-remote-user", "cf-connecting-ip", "accept-language", "x-strange"]
            .into_iter()
            .enumerate()
    {
        let path = format!("/{number}.xml");
        let first = front.get(&path).header(header, "/ann").send().await.unwrap();
        assert!(!first.text().await.unwrap().contains("sx:sync"), "{header}");
        assert!(front.made(&path).await.contains("sx:sync"), "{header}");
        let told = site.headers(&path);
        assert!(told[0].contains_key(header), "it is passed on");
        assert!(!told[1].contains_key(header), "{header}");
    }
    front.gateway.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_client_makes_so_many_feeds_however_it_spells_them() {
    let site = ManyFeeds::start().await;
    let front = site.front("true").await;
    for spelled in ["/atom.xml", "/%61tom.xml", "/%61%74%6f%6D.xml", "/atom%2Exml"] {
        assert!(front.made(spelled).await.contains("sx:sync"), "{spelled}");
    }
    // What leads to the same, or is made up, is a feed where a page announced it.
    for made_up in ["//atom.xml", "/atom.xml;a=1", "/atom.xml?a=1"] {
        assert!(!front.text(made_up).await.contains("sx:sync"), "{made_up}");
        assert_eq!(site.headers(made_up).len(), 1, "{made_up}");
    }
    assert_eq!(front.feeds().await.len(), 1);
    // Nobody makes it one by looking.
    let look = format!("http://{}/subscribe", front.gateway.address());
    let typed = [("url", format!("{}atom.xml?a=1", site.url))];
    let look = reqwest::Url::parse_with_params(&look, typed).unwrap();
    let found = reqwest::get(look).await.unwrap().text().await.unwrap();
    assert!(found.contains("\"address\":null"), "{found}");
    assert!(!front.text("/atom.xml?a=1").await.contains("sx:sync"));
    for number in 0..MANY {
        let path = format!("/{number}.xml");
        front.text(&path).await;
        // The next one waits for its turn, or is the site's.
        if number < 19 {
            front.made(&path).await;
        }
    }
    let made = front.feeds().await.len();
    assert_eq!(made, 20);
    let metrics = format!("http://{}/metrics", front.gateway.address());
    let metrics = reqwest::get(metrics).await.unwrap().text().await.unwrap();
    let counted = "tidegate_origin_requests_total{origin=\"blog\",outcome=\"unmade\"} ";
    let unmade = metrics.lines().find_map(|line| line.strip_prefix(counted)?.parse::<u32>().ok());
    // One that comes before the feed of the one before is made is counted as well.
    assert!(unmade >= Some(6), "{metrics}");
    let (status, said) = subscribe(&front, &format!("{}one-more.xml?a=1", site.url)).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{said}");
    assert_eq!(front.feeds().await.len(), made);
    front.gateway.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn feeds_that_one_client_filled_a_site_with_give_way() {
    let site = ManyFeeds::start().await;
    let front = site.front_of("true", 3).await;
    let base = format!("http://{}", front.gateway.address());
    let is_enriched = async |last: u8, path: &str| {
        let client = reqwest::Client::builder().local_address(IpAddr::from([127, 0, 0, last]));
        let client = client.build().unwrap();
        for _ in 0..20 {
            let asked = client.get(format!("{base}{path}")).header(header::HOST, HOST);
            if asked.send().await.unwrap().text().await.unwrap().contains("sx:sync") {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        false
    };
    for (path, is_made) in [("/1.xml", true), ("/2.xml", true), ("/3.xml", true), ("/4.xml", false)]
    {
        assert_eq!(is_enriched(2, path).await, is_made, "{path}");
    }
    assert!(
        is_enriched(3, "/feed.xml").await,
        "the site has no place for what another one asks for"
    );
    let feeds = front.feeds().await;
    assert_eq!(feeds.len(), 3);
    assert!(feeds.contains_key(&format!("{}feed.xml", site.url)), "{feeds:?}");
    // What gave way is as if it had never been made, and takes no place from another client.
    assert!(is_enriched(3, "/feed.xml").await);
    let gone = (1..=3).find(|n| !feeds.contains_key(&format!("{}{n}.xml", site.url))).unwrap();
    assert!(!is_enriched(2, &format!("/{gone}.xml")).await);
    assert_eq!(front.feeds().await.keys().len(), 3);
    front.gateway.stop().await.unwrap();
}
