//! Sends spans to the collector, many at once. What it does not take is lost.

use super::{
    FinishedSpan, QUEUE_LIMIT, SampleRates, Sampler, SpanCounts, SpanRecorder, Traces, otlp,
};
use crate::fetch::{Call, CallBody, CallRequest, LeadScope};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegate_core::clock::{Clock, SystemClock};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;
use url::Url;

/// The most spans that are sent at once.
const BATCH: usize = 512;
/// How long spans are gathered before they are sent.
const GATHER_TIME: Duration = Duration::from_secs(2);
/// How long the collector may take.
const SEND_TIME: Duration = Duration::from_secs(10);
/// How long sending goes on when the gateway stops.
const FLUSH_TIME: Duration = Duration::from_secs(5);
/// How much of the answer is read, in bytes, so that its connection can go on.
const ANSWER: usize = 4096;

/// Where spans are sent, and which.
pub struct CollectorConfig {
    /// The address that takes them: `http://collector:4318/v1/traces`.
    pub url: Url,
    /// What is sent with them, secrets among it.
    pub headers: HeaderMap,
    /// `service.name`.
    pub service: String,
    pub rates: SampleRates,
    /// The client.
    pub call: Call,
}

/// Sends spans until it is stopped.
pub struct SpanExporter {
    queue: mpsc::Receiver<FinishedSpan>,
    counts: Arc<SpanCounts>,
    config: CollectorConfig,
    /// Whether the last ones were not taken, which is said once.
    is_failing: bool,
}

impl SpanExporter {
    /// The exporter, and where the spans that it sends begin.
    pub fn new(config: CollectorConfig) -> (Self, Traces) {
        let (sender, queue) = mpsc::channel(QUEUE_LIMIT);
        let counts = Arc::<SpanCounts>::default();
        let SampleRates { polls, requests, deliveries } = config.rates;
        let recorder = SpanRecorder {
            queue: sender,
            counts: Arc::clone(&counts),
            polls: Sampler::new(polls),
            requests: Sampler::new(requests),
            deliveries: Sampler::new(deliveries),
        };
        let exporter = Self { queue, counts, config, is_failing: false };
        (exporter, Traces(Some(Arc::new(recorder))))
    }

    /// Sends what comes; once it is cancelled, what waits, for `FLUSH_TIME` at most.
    pub async fn run(mut self, cancel: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let received = tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                received = self.queue.recv_many(&mut batch, BATCH) => received,
            };
            if received == 0 {
                return;
            }
            if batch.len() < BATCH {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => break,
                    () = sleep(GATHER_TIME) => {}
                }
                self.fill(&mut batch);
            }
            self.send(&mut batch).await;
        }
        self.queue.close();
        let flush = async {
            loop {
                self.fill(&mut batch);
                if batch.is_empty() {
                    break;
                }
                self.send(&mut batch).await;
            }
        };
        if timeout(FLUSH_TIME, flush).await.is_err() {
            tracing::warn!(limit = ?FLUSH_TIME, "the collector does not take the last spans in time");
        }
    }

    fn fill(&mut self, batch: &mut Vec<FinishedSpan>) {
        while batch.len() < BATCH
            && let Ok(span) = self.queue.try_recv()
        {
            batch.push(span);
        }
    }

    async fn send(&mut self, batch: &mut Vec<FinishedSpan>) {
        let number = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let body = Bytes::from(otlp::request(&self.config.service, batch));
        batch.clear();
        let sent = timeout(SEND_TIME, self.post(body)).await;
        let sent = sent.unwrap_or_else(|_| {
            Err(format!("it did not answer within {} seconds", SEND_TIME.as_secs()))
        });
        let count = if sent.is_ok() { &self.counts.sent } else { &self.counts.lost };
        count.fetch_add(number, Ordering::Relaxed);
        let host = self.config.url.host_str().unwrap_or_default();
        match (&sent, self.is_failing) {
            (Err(error), false) => {
                tracing::warn!(host, error, "the collector does not take spans, which are lost");
            }
            (Ok(()), true) => tracing::info!(host, "the collector takes spans again"),
            _ => {}
        }
        self.is_failing = sent.is_err();
    }

    async fn post(&self, body: Bytes) -> Result<(), String> {
        let mut headers = self.config.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let url = self.config.url.clone();
        let send = Some(CallBody { headers, body });
        let (leads, now) = (LeadScope::default(), SystemClock.now());
        let request = CallRequest { url, send, answer: ANSWER, leads, now };
        let called = self.config.call.clone().oneshot(request).await;
        match called.map_err(|error| error.to_string())?.status {
            200..=299 => Ok(()),
            status => Err(format!("it answered {status}")),
        }
    }
}
