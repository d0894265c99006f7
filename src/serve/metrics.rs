//! What is counted, in Prometheus' words. Labels take few values: routes, not addresses.

mod exposition;
mod figures;
mod polling;
mod process;
mod store;

pub(super) use self::exposition::MetricsFormat;
pub(super) use self::polling::FeedCounts;

use self::exposition::in_prometheus_format;
use self::figures::{ByLabel, Figure, Figures, gauge, whole};
use super::origins::PassOutcome;
use super::tls::TlsKeys;
use crate::locked;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use std::sync::{Arc, Mutex, OnceLock};
use tidegate_core::model::FeedName;
use tidegate_poll::hub::SubscriptionCount;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OriginLabels {
    origin: String,
    outcome: &'static str,
}

/// Counts the bytes that a cache keeps.
/// The name of a cache, its limit in bytes, and what it keeps of them.
type CountedCache = (&'static str, u64, Arc<dyn Fn() -> u64 + Send + Sync>);

/// What is counted as it happens, and the figures that are looked at for each scrape.
#[derive(Clone)]
pub(super) struct Metrics {
    requests: Family<AnswerLabels, Counter>,
    sent: Counter,
    hits: Counter,
    misses: Counter,
    connections: Gauge,
    passed: Family<OriginLabels, Counter>,
    figures: Figures,
    process: Figures,
    registry: Arc<Registry>,
    /// Each cache with its limit.
    caches: Arc<Mutex<Vec<CountedCache>>>,
    /// The turn of who counts feeds.
    counting: Arc<tokio::sync::Mutex<()>>,
    /// What handshakes are made with, where there are any.
    keys: Arc<OnceLock<Arc<TlsKeys>>>,
}

/// Registers a metric.
fn add<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// A connection that is open.
pub(super) struct OpenConnectionGuard(Gauge);

impl Drop for OpenConnectionGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Meters that stand at zero.
    pub(super) fn new() -> Self {
        let (figures, process) = (Figures::default(), Figures::default());
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process.clone()));
        let own = registry.sub_registry_with_prefix("tidegate");
        own.register_collector(Box::new(figures.clone()));
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        own.register("build", "The version that runs; 1", build);
        let sent = Counter::default();
        let help = "Bytes of bodies in answers, as encoded";
        own.register_with_unit("http_sent", help, Unit::Bytes, sent.clone());
        Self {
            requests: add(own, "http_requests", "Answers by route and status"),
            sent,
            hits: add(own, "cache_hits", "Views that were answered from the cache"),
            misses: add(own, "cache_misses", "Views that had to be rendered"),
            connections: add(own, "connections", "Open connections"),
            passed: add(own, "origin_requests", "Requests for origins, by outcome"),
            figures,
            process,
            registry: Arc::new(registry),
            caches: Arc::default(),
            counting: Arc::default(),
            keys: Arc::default(),
        }
    }

    /// The turn to count feeds: one count is made at a time.
    pub(super) fn counting(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(&self.counting)
    }

    /// Has it shown until when the certificate of handshakes is good.
    pub(super) fn certificate(&self, keys: &Arc<TlsKeys>) {
        // There is one listener that speaks TLS.
        let _ = self.keys.set(Arc::clone(keys));
    }

    /// Has the bytes of a cache shown, which keeps at most `limit`.
    pub(super) fn cache(
        &self,
        cache: &'static str,
        limit: u64,
        bytes: impl Fn() -> u64 + Send + Sync + 'static,
    ) {
        let mut caches = locked(&self.caches);
        caches.push((cache, limit, Arc::new(bytes)));
    }

    /// Looks what the caches keep, until when the certificate is good, and what the process takes.
    pub(super) async fn measure(&self) {
        let caches = locked(&self.caches).clone();
        let kept = caches.iter().map(|(cache, _, bytes)| (*cache, whole(bytes())));
        let limits = caches.iter().map(|(cache, limit, _)| (*cache, whole(*limit)));
        let (about, most) = ("Bytes that a cache of answers keeps", "Bytes that it keeps at most");
        let mut figures = vec![
            Figure::new("cache", about, ByLabel("cache", kept.collect())).of(Unit::Bytes),
            Figure::new("cache_limit", most, ByLabel("cache", limits.collect())).of(Unit::Bytes),
        ];
        let expires = self.keys.get().and_then(|keys| keys.current().expires());
        figures.extend(expires.map(|expires| {
            let about = "When the certificate for TLS expires, since 1970. Absent without TLS";
            gauge("certificate_expiry", about, expires.unix()).of(Unit::Seconds)
        }));
        self.figures.set("serving", figures);
        // Where that thread broke off, the process is as it was seen last.
        if let Ok(figures) = tokio::task::spawn_blocking(process::figures).await {
            self.process.set("process", figures);
        }
    }

    /// A view was answered from the cache.
    pub(super) fn cache_hit(&self) {
        self.hits.inc();
    }

    /// A view had to be rendered.
    pub(super) fn cache_miss(&self) {
        self.misses.inc();
    }

    /// Counts a connection as open until what this returns is dropped.
    pub(super) fn connection(&self) -> OpenConnectionGuard {
        self.connections.inc();
        OpenConnectionGuard(self.connections.clone())
    }

    /// An answer went out.
    pub(super) fn answered(&self, method: &http::Method, route: &str, status: u16, bytes: u64) {
        self.answers(method, route, status).inc();
        self.sent(bytes);
    }

    /// What counts the requests for an origin with an outcome.
    pub(super) fn passed(&self, origin: &FeedName, outcome: PassOutcome) -> Counter {
        let labels = OriginLabels { origin: origin.to_string(), outcome: outcome.name() };
        self.passed.get_or_create(&labels).clone()
    }

    /// Bytes of a body went out.
    pub(super) fn sent(&self, bytes: u64) {
        self.sent.inc_by(bytes);
    }

    /// What counts the answers of a route with a status.
    pub(super) fn answers(&self, method: &http::Method, route: &str, status: u16) -> Counter {
        // A client may make up methods; they must not make up label values.
        let method = crate::query::known_method(method).unwrap_or("other");
        let answer = AnswerLabels { method, route: route.to_owned(), status };
        self.requests.get_or_create(&answer).clone()
    }

    /// Takes over what the hub counted.
    pub(super) fn hub(&self, totals: SubscriptionCount) {
        let standings = [("active", totals.active), ("pending", totals.pending)];
        let standings = standings.map(|(standing, number)| (standing, whole(number)));
        let outcomes = [("delivered", totals.delivered), ("failed", totals.failed)];
        let outcomes = outcomes.map(|(outcome, number)| (outcome, ConstCounter::new(number)));
        let standings = ByLabel("standing", Vec::from(standings));
        let outcomes = ByLabel("outcome", Vec::from(outcomes));
        let about = "Subscriptions of the hub by standing";
        let figures = vec![
            Figure::new("websub_subscriptions", about, standings),
            Figure::new("websub_deliveries", "Deliveries of the hub by outcome", outcomes),
        ];
        self.figures.set("hub", figures);
    }

    /// Everything.
    pub(super) fn text(&self, format: MetricsFormat) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(match format {
            MetricsFormat::OpenMetrics => text,
            MetricsFormat::Prometheus => in_prometheus_format(&text),
        })
    }
}
