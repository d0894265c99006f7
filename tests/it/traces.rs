//! Traces of a gateway at a collector in this process: what a poll, a request and a delivery say, and that no
//! secret is among it.

use crate::support::{self, gateways::Paper, post};
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate::app::{Gateway, Outside};
use tidegate_config as config;
use tidegate_core::model::FeedName;

/// What nothing may tell: the key of a publisher, the token of a reader, the administration's, the collector's,
/// what webhooks are signed with, and words of a post.
const SECRETS: [&str; 6] = [
    "publishers-key",
    "0123456789abcdef0123456789abcdef",
    "administration-token",
    "collectors-key",
    "webhooks-secret-of-24-bytes-at-least",
    "Post 1",
];
/// How long something is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a collector received: the headers and the body of each request.
#[derive(Clone)]
struct Collector {
    received: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    status: StatusCode,
}

impl Collector {
    async fn start(status: StatusCode) -> (Self, String) {
        let collector = Self { received: Arc::default(), status };
        let take = |State(to): State<Self>, headers: HeaderMap, body: String| async move {
            to.received.lock().unwrap().push((headers, serde_json::from_str(&body).unwrap()));
            to.status
        };
        let app = axum::Router::new()
            .route("/v1/traces", axum::routing::post(take))
            .route("/hook/publishers-key", axum::routing::post(|| async {}))
            .with_state(collector.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        (collector, url)
    }

    fn spans(&self) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let scopes = received.iter().map(|(_, body)| &body["resourceSpans"][0]["scopeSpans"][0]);
        scopes.flat_map(|scope| scope["spans"].as_array().unwrap().clone()).collect()
    }

    /// The spans of this name; they are waited for.
    async fn named(&self, name: &str) -> Vec<Value> {
        let began = tokio::time::Instant::now();
        loop {
            let all = self.spans();
            let found: Vec<_> = all.iter().filter(|span| span["name"] == name).cloned().collect();
            if !found.is_empty() {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "there is no span {name:?}: {all:#?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// An attribute of a span, without its type.
fn attribute(span: &Value, key: &str) -> Option<Value> {
    let all = span["attributes"].as_array().unwrap();
    let value = &all.iter().find(|one| one["key"] == key)?["value"];
    value.as_object().unwrap().values().next().cloned()
}

async fn gateway(publisher: &str, collector: &str) -> Gateway {
    let [key, token, admin, collectors, signing, _] = SECRETS;
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nadmin_token = \"{admin}\"\n[store]\nkind = \"memory\"\n\
         [polling]\nallow_private = true\nhost_spacing = \"0s\"\nmin_interval = \"1d\"\n\
         [traces]\nendpoint = \"{collector}\"\nheaders = {{ X-Key = \"{collectors}\" }}\n\
         service = \"gateway of the test\"\nrequests = 1\n\
         [[feed]]\nname = \"news\"\nurl = \"{publisher}?key={key}\"\nprivate = true\n\
         webhook = {{ url = \"{collector}/hook/{key}\", secret = \"{signing}\" }}\n\
         [[reader]]\nname = \"ann\"\ntoken = \"{token}\"\nfeeds = [\"news\"]\n"
    );
    let config = config::check("t.toml", &text).unwrap_or_else(|faults| panic!("{faults}")).config;
    Gateway::start(&config, Outside::default()).await.unwrap()
}

fn document(posts: std::ops::RangeInclusive<u32>) -> String {
    support::atom("https://publisher.example/", &posts.map(post).collect::<Vec<_>>())
}

#[tokio::test]
async fn a_collector_gets_polls_requests_and_deliveries_and_no_secret() {
    let paper = Paper::start("application/atom+xml", &document(1..=3)).await;
    let (collector, at) = Collector::start(StatusCode::OK).await;
    let gateway = gateway(&paper.url, &at).await;

    let poll = collector.named("poll").await.remove(0);
    assert_eq!(attribute(&poll, "tidegate.feed").unwrap(), "news");
    assert_eq!(attribute(&poll, "tidegate.outcome").unwrap(), "changed");
    let mut parents = vec![("fetch", poll.clone()), ("commit", poll.clone()), ("judge", poll)];
    parents.push(("parse", collector.named("judge").await.remove(0)));
    for (name, parent) in parents {
        let span = collector.named(name).await.remove(0);
        assert_eq!(span["traceId"], parent["traceId"], "{name}");
        assert_eq!(span["parentSpanId"], parent["spanId"], "{name}");
        let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        let (begun, ended) = (time(&span, "startTimeUnixNano"), time(&span, "endTimeUnixNano"));
        assert!(time(&parent, "startTimeUnixNano") <= begun && begun <= ended, "{name}");
        assert!(ended <= time(&parent, "endTimeUnixNano"), "{name}");
    }

    // A reader of a private feed: by the path, twice, so that the answer lies ready, and with all that may be secret.
    let path = format!("http://{}/t/{}/feeds/news", gateway.address(), SECRETS[1]);
    for _ in 0..2 {
        let answer = reqwest::get(format!("{path}?utm_source=publishers-key")).await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    let api = format!("http://{}/api/v1/feeds/news/poll", gateway.address());
    paper.print(&document(1..=4));
    let asked = reqwest::Client::new().post(api).bearer_auth(SECRETS[2]).send().await.unwrap();
    assert_eq!(asked.status(), 200);
    let request = collector.named("GET /feeds/{name}").await.remove(0);
    assert_eq!(
        (&request["kind"], attribute(&request, "http.response.status_code")),
        (&2.into(), Some("200".into()))
    );
    let posted = collector.named("POST /api/v1/feeds/{name}/poll").await.remove(0);
    assert_eq!(attribute(&posted, "http.request.method").unwrap(), "POST");
    let delivery = collector.named("webhook delivery").await.remove(0);
    assert_eq!(attribute(&delivery, "tidegate.outcome").unwrap(), "taken");

    let metrics = format!("http://{}/metrics", gateway.address());
    let metrics = reqwest::get(metrics).await.unwrap().text().await.unwrap();
    assert!(metrics.contains("tidegate_trace_spans_total{outcome=\"lost\"} 0"), "{metrics}");

    // What was asked just before the end is sent with it.
    gateway.stop().await.unwrap();
    assert!(collector.spans().iter().any(|span| span["name"] == "GET /metrics"));
    let received = collector.received.lock().unwrap();
    for (headers, body) in received.iter() {
        assert_eq!(headers["x-key"], SECRETS[3]);
        assert_eq!(headers["content-type"], "application/json");
        let service = &body["resourceSpans"][0]["resource"]["attributes"][0];
        assert_eq!(service["value"]["stringValue"], "gateway of the test");
        let text = body.to_string();
        for secret in SECRETS.into_iter().chain(["/t/", "/hook/", "publisher.example"]) {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}

#[tokio::test]
async fn without_a_collector_that_takes_them_spans_are_lost_and_nothing_else() {
    let paper = Paper::start("application/atom+xml", &document(1..=3)).await;
    let (_collector, at) = Collector::start(StatusCode::SERVICE_UNAVAILABLE).await;
    let gateway = gateway(&paper.url, &at).await;
    let name = FeedName::new("news").unwrap();
    let report = gateway.operator().poll_now(&name).await.unwrap();
    assert_eq!(report.error, None);
    let began = tokio::time::Instant::now();
    loop {
        let metrics = format!("http://{}/metrics", gateway.address());
        let text = reqwest::get(metrics).await.unwrap().text().await.unwrap();
        assert!(text.contains("tidegate_trace_spans_total{outcome=\"sent\"} 0"), "{text}");
        if !text.contains("tidegate_trace_spans_total{outcome=\"lost\"} 0") {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{text}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    gateway.stop().await.unwrap();
}
