//! Spans on their way to a scripted collector.

use super::*;
use crate::fetch::{Call, CallRequest, Called, FetchError};
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;

/// What the collector got.
type Received = Arc<Mutex<Vec<Value>>>;

fn collector(status: u16) -> (Call, Received) {
    let received = Received::default();
    let into = Arc::clone(&received);
    let call = tower::service_fn(move |request: CallRequest| {
        let body = request.send.unwrap().body;
        into.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
        let body = Bytes::new();
        let called = Called { status, body, whole: true, retry_after: None, location: None };
        async move { Ok::<_, FetchError>(called) }
    });
    (Call::new(call), received)
}

fn started(call: Call, rates: SampleRates) -> (SpanExporter, Traces) {
    SpanExporter::new(CollectorConfig {
        url: Url::parse("http://collector:4318/v1/traces").unwrap(),
        headers: HeaderMap::new(),
        service: "news".to_owned(),
        rates,
        call,
    })
}

const ALL: SampleRates = SampleRates { polls: 1, requests: 1, deliveries: 1 };

fn spans(received: &Received) -> Vec<Value> {
    let bodies = received.lock().unwrap();
    let spans = bodies.iter().map(|body| &body["resourceSpans"][0]["scopeSpans"][0]["spans"]);
    spans.flat_map(|spans| spans.as_array().unwrap().clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn spans_are_sent_with_what_they_belong_to() {
    let (call, received) = collector(200);
    let (exporter, traces) = started(call, ALL);
    let cancel = CancellationToken::new();
    let running = tokio::spawn(exporter.run(cancel.clone()));
    let mut poll = traces.begin_poll();
    poll.set("tidegate.feed", || "news".to_owned());
    poll.set("tidegate.entries", || 7_u64);
    poll.set("tidegate.committed", || true);
    let parent = poll.parent();
    parent.within(|| drop(begin_here("parse")));
    drop(begin_here("nowhere"));
    let mut fetch = parent.begin("fetch", SpanKind::Client);
    fetch.fail();
    drop(fetch);
    drop(poll);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(traces.totals(), (3, 0));
    let all = spans(&received);
    let [parse, fetch, poll] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(
        (&parse["name"], &fetch["name"], &poll["name"]),
        (&"parse".into(), &"fetch".into(), &"poll".into())
    );
    for child in [parse, fetch] {
        assert_eq!(child["parentSpanId"], poll["spanId"]);
        assert_eq!(child["traceId"], poll["traceId"]);
    }
    assert_eq!(poll.get("parentSpanId"), None);
    assert_eq!((&fetch["kind"], &fetch["status"]["code"]), (&3.into(), &2.into()));
    assert_eq!(
        (poll["traceId"].as_str().unwrap().len(), poll["spanId"].as_str().unwrap().len()),
        (32, 16)
    );
    let attributes = serde_json::json!([
        { "key": "tidegate.feed", "value": { "stringValue": "news" } },
        { "key": "tidegate.entries", "value": { "intValue": "7" } },
        { "key": "tidegate.committed", "value": { "boolValue": true } },
    ]);
    assert_eq!(poll["attributes"], attributes);
    let body = received.lock().unwrap()[0].clone();
    let service = &body["resourceSpans"][0]["resource"]["attributes"][0];
    assert_eq!(service["value"]["stringValue"], "news");
    cancel.cancel();
    running.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_sent_when_the_gateway_stops_and_nothing_later() {
    let (call, received) = collector(200);
    let (exporter, traces) = started(call, ALL);
    (0..1_000).for_each(|_| drop(traces.begin_request()));
    let cancel = CancellationToken::new();
    cancel.cancel();
    exporter.run(cancel).await;
    assert_eq!((spans(&received).len(), traces.totals()), (1_000, (1_000, 0)));
    drop(traces.begin_request());
    assert_eq!(traces.totals(), (1_000, 1));
}

#[tokio::test(start_paused = true)]
async fn what_finds_no_place_and_what_is_not_taken_is_counted() {
    let (call, _) = collector(503);
    let (exporter, traces) = started(call, ALL);
    (0..QUEUE_LIMIT + 10).for_each(|_| drop(traces.begin_delivery("delivery")));
    assert_eq!(traces.totals(), (0, 10));
    let cancel = CancellationToken::new();
    cancel.cancel();
    exporter.run(cancel).await;
    let all = u64::try_from(QUEUE_LIMIT + 10).unwrap();
    assert_eq!(traces.totals(), (0, all));
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_does_not_answer_holds_up_the_end_for_no_longer_than_the_limit() {
    let call = Call::new(tower::service_fn(|_: CallRequest| {
        std::future::pending::<Result<Called, FetchError>>()
    }));
    let (exporter, traces) = started(call, ALL);
    drop(traces.begin_poll());
    let (cancel, begun) = (CancellationToken::new(), tokio::time::Instant::now());
    cancel.cancel();
    exporter.run(cancel).await;
    assert!(begun.elapsed() <= Duration::from_secs(6), "{:?}", begun.elapsed());
}

#[test]
fn of_as_many_as_the_rate_says_one_is_recorded() {
    let (call, _) = collector(200);
    let rates = SampleRates { polls: 0, requests: 3, deliveries: 1 };
    let (_exporter, traces) = started(call, rates);
    let recorded: Vec<bool> = (0..6).map(|_| traces.begin_request().is_recorded()).collect();
    assert_eq!(recorded, [true, false, false, true, false, false]);
    assert!(!traces.begin_poll().is_recorded() && traces.begin_delivery("x").is_recorded());
    let off = Traces::default();
    assert!(!off.begin_request().is_recorded());
    assert!(!off.begin_request().parent().begin("x", SpanKind::Internal).is_recorded());
    assert_eq!(off.totals(), (0, 0));
}
