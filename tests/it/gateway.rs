//! A whole gateway in front of a publisher of one document, asked as administration asks.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::app::{Gateway, Outside};
use tidegate_config::{self as config, Config};
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{FeedAccess, FeedName, FeedOptions, SharingOptions, Time};
use tidegate_serve::{OperatorError, Put, PutFeed};
use tidegate_status::{PollEnding, PollResponse};

/// 2026-11-20T16:20:05Z.
const START: Time = Time::from_unix(1_795_191_605);

const TOKEN: &str = "a-token-for-this-test";

/// What the publisher says.
#[derive(Clone, Default)]
struct Says(Arc<Mutex<String>>);

impl Says {
    fn set(&self, document: impl Into<String>) {
        *self.0.lock().unwrap() = document.into();
    }
}

/// A feed of ten posts with this text.
fn document(text: &str) -> String {
    let mut xml = "<rss version=\"2.0\"><channel><title>News</title>\
         <link>http://news.example/</link><description>d</description>"
        .to_owned();
    for n in (1..=10).rev() {
        xml.push_str(&format!(
            "<item><title>Post {n}</title><guid isPermaLink=\"false\">post-{n}</guid>\
             <pubDate>{n:02} Jan 2026 12:00:00 GMT</pubDate>\
             <description>{text}</description></item>"
        ));
    }
    xml + "</channel></rss>"
}

/// A publisher that sends an entity tag and honours it.
async fn publisher(says: Says) -> u16 {
    let answer = move |headers: axum::http::HeaderMap| {
        let text = says.0.lock().unwrap().clone();
        let tag = format!("\"{}\"", text.len());
        async move {
            let known = headers.get("if-none-match").is_some_and(|known| *known == tag);
            let status = if known { 304 } else { 200 };
            let body = if known { String::new() } else { text };
            let status = axum::http::StatusCode::from_u16(status).unwrap();
            (status, [("content-type", "application/rss+xml".to_owned()), ("etag", tag)], body)
        }
    };
    let app = axum::Router::new().route("/feed.xml", axum::routing::get(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    port
}

struct Bench {
    gateway: Gateway,
    clock: ManualClock,
    says: Says,
    url: String,
    news: FeedName,
}

fn configuration() -> Config {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"{TOKEN}\"\n[store]\nkind = \"memory\"\n\
                [polling]\nallow_private = true\n"
    );
    config::check("t.toml", &text).unwrap().config
}

impl Bench {
    async fn new() -> Self {
        let says = Says::default();
        says.set(document("first"));
        let url = format!("http://127.0.0.1:{}/feed.xml", publisher(says.clone()).await);
        let clock = ManualClock::at(START);
        let outside = Outside { clock: Arc::new(clock.clone()), ..Outside::default() };
        let gateway = Gateway::start(&configuration(), outside).await.unwrap();
        let news = FeedName::new("news").unwrap();
        let bench = Self { gateway, clock, says, url, news };
        bench.put().await;
        bench.poll().await;
        bench
    }

    /// `PUT` as an operator sends it.
    async fn put(&self) {
        let address = format!("http://{}/api/v1/feeds/news", self.gateway.address());
        let call = reqwest::Client::new().put(address).bearer_auth(TOKEN);
        let body = format!("{{\"url\":\"{}\"}}", self.url);
        assert!(call.body(body).send().await.unwrap().status().is_success());
    }

    async fn poll(&self) -> PollResponse {
        self.gateway.operator().poll_now(&self.news).await.unwrap()
    }

    /// `DELETE` as an operator sends it.
    async fn delete(&self, query: &str) -> u16 {
        let address = format!("http://{}/api/v1/feeds/news{query}", self.gateway.address());
        let call = reqwest::Client::new().delete(address).bearer_auth(TOKEN);
        call.send().await.unwrap().status().as_u16()
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let address = format!("http://{}{path}", self.gateway.address());
        let answer = reqwest::get(address).await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// How many items there are, and what stands in them.
    async fn shown(&self) -> (usize, bool) {
        let (status, text) = self.get("/feeds/news").await;
        assert_eq!(status, 200);
        (text.matches("<item>").count(), text.contains("<description>second</description>"))
    }
}

/// The publisher answers 304 to whoever has the held document; it is confirmed all the same.
#[tokio::test]
async fn a_hold_is_confirmed_while_the_publisher_says_the_same_again_and_again() {
    let bench = Bench::new().await;
    bench.says.set(document("second"));
    let held = bench.poll().await;
    assert_eq!(held.outcome, PollEnding::Unchanged);
    let reason = held.held.expect("a document in which everything changed is held");
    assert_eq!(bench.shown().await, (10, false));
    assert_eq!(bench.gateway.operator().status(&bench.news).await.unwrap().held, Some(reason));

    let mut now = START;
    for _ in 0..30 {
        now = now.plus(Duration::from_secs(3600));
        bench.clock.set(now);
        if bench.poll().await.held.is_none() {
            break;
        }
    }
    assert_eq!(bench.shown().await, (10, true));
    bench.gateway.stop().await.unwrap();
}

#[tokio::test]
async fn a_poll_that_fails_tells_what_stands() {
    let bench = Bench::new().await;
    bench.says.set(document("second"));
    let held = bench.poll().await;
    assert!(held.held.is_some() && held.until.is_some());
    bench.says.set("<html><body>Please log in</body></html>");
    let failed = bench.poll().await;
    assert_eq!(failed.outcome, PollEnding::Failed);
    assert!(failed.error.is_some());
    assert_eq!((failed.held, failed.until), (held.held, held.until));
    bench.gateway.stop().await.unwrap();
}

#[tokio::test]
async fn a_feed_that_was_deleted_is_gone_with_and_without_its_data() {
    let bench = Bench::new().await;
    let operator = bench.gateway.operator();
    for (query, purge) in [("", false), ("?purge=true", true), ("?purge=true", true)] {
        assert_eq!(bench.delete(query).await, 204);
        for view in ["", "/sync", "/complete"] {
            assert_eq!(bench.get(&format!("/feeds/news{view}")).await.0, 410, "{view}");
        }
        assert!(matches!(operator.poll_now(&bench.news).await, Err(OperatorError::Conflict(_))));
        let kept = bench.gateway.store().state(&bench.news).await.unwrap();
        assert_eq!(kept.is_none(), purge);
    }
    assert_eq!(bench.delete("?purge=maybe").await, 400);
    // It can be added again, and goes on above what it was.
    bench.put().await;
    bench.poll().await;
    assert_eq!(bench.shown().await.0, 10);
    assert!(
        operator.hold(&bench.news, tidegate_core::model::Decision::Drop).await.is_err(),
        "nothing is held"
    );
    bench.gateway.stop().await.unwrap();
}

#[tokio::test]
async fn a_feed_shares_with_others_that_are_there() {
    let bench = Bench::new().await;
    let operator = bench.gateway.operator();
    let name = |text: &str| FeedName::new(text).unwrap();
    let put = async |with: &str| {
        let shares_with = vec![name(with)];
        let sharing = SharingOptions { local: true, shares_with, ..SharingOptions::default() };
        let options = FeedOptions { sharing, ..FeedOptions::default() };
        operator
            .put(
                &name("own"),
                PutFeed {
                    adds_feeds: false,
                    url: String::new(),
                    options,
                    must_be_new: false,
                    keeps_paused: false,
                    access: FeedAccess::default(),
                    private: None,
                },
            )
            .await
    };
    let refused = async |with: &str| {
        let Err(OperatorError::BadRequest(said)) = put(with).await else { return false };
        said == format!("shares_with: there is no other feed {with}")
    };
    assert!(refused("own").await && refused("nobody").await);
    assert_eq!(put("news").await.unwrap(), Put::Created);
    assert!(refused("own").await, "it is there now, and not another");
    assert_eq!(bench.delete("").await, 204);
    assert!(refused("news").await, "it is gone");
    bench.gateway.stop().await.unwrap();
}
