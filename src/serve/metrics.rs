//! What is counted, in Prometheus' words. Labels take few values: routes, not addresses.

mod exposition;
mod polling;
mod process;
mod store;

pub(super) use self::exposition::MetricsFormat;
pub(super) use self::polling::FeedCounts;

use self::exposition::in_prometheus_format;
use self::polling::PollDurations;
use self::process::ProcessMeter;
use super::hub::HubTotals;
use super::origins::PassOutcome;
use super::tls::TlsKeys;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tidegate_core::model::FeedName;
use tidegate_status::{PollTotals, TicksAhead};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AnswerLabels {
    method: &'static str,
    route: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FeedGauges {
    standing: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CacheLabel {
    cache: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OriginLabels {
    origin: String,
    outcome: &'static str,
}

/// Of a metric that is absent where it says nothing.
type NoLabels = [(&'static str, &'static str); 0];

#[derive(Debug, Clone, Default)]
struct Meters {
    requests: Family<AnswerLabels, Counter>,
    sent: Counter,
    hits: Counter,
    misses: Counter,
    connections: Gauge,
    feeds: Family<FeedGauges, Gauge>,
    polls: Family<OutcomeLabel, Counter>,
    commits: Counter,
    fetched: Counter,
    gaps: Counter,
    subscriptions: Family<FeedGauges, Gauge>,
    deliveries: Family<OutcomeLabel, Counter>,
    contested: Gauge,
    polled: Gauge,
    failing: Gauge,
    stale: Gauge,
    held: Gauge,
    in_conflict: Gauge,
    with_gaps: Gauge,
    in_flight: Gauge,
    waiting: Gauge,
    lag: Gauge,
    oldest_read: Gauge,
    durations: PollDurations,
    tick_lead: Gauge,
    certificate: Family<NoLabels, Gauge>,
    store_up: Gauge,
    store_intake: Gauge,
    differences: Gauge,
    clock_difference: Gauge<f64, AtomicU64>,
    store_free: Gauge,
    store_min_free: Gauge,
    store_size: Gauge,
    store_max_size: Gauge,
    caches: Family<CacheLabel, Gauge>,
    cache_limits: Family<CacheLabel, Gauge>,
    passed: Family<OriginLabels, Counter>,
    process: ProcessMeter,
}

/// Counts the bytes that a cache keeps.
type CountBytes = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The meters of this module, and those that are read from the operator's side at each scrape.
#[derive(Clone)]
pub(super) struct Metrics {
    meters: Meters,
    registry: Arc<Registry>,
    caches: Arc<Mutex<Vec<(&'static str, CountBytes)>>>,
    /// The turn of who counts feeds.
    counting: Arc<tokio::sync::Mutex<()>>,
    /// What handshakes are made with, where there are any.
    keys: Arc<OnceLock<Arc<TlsKeys>>>,
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
        let meters = Meters::default();
        let mut all = Registry::default();
        all.register_collector(Box::new(meters.process.clone()));
        let registry = all.sub_registry_with_prefix("tidegate");
        let m = meters.clone();
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version that runs; 1", build);
        registry.register("http_requests", "Answers by route and status", m.requests);
        registry.register_with_unit(
            "http_sent",
            "Bytes of bodies in answers, as encoded",
            Unit::Bytes,
            m.sent,
        );
        registry.register("cache_hits", "Views that were answered from the cache", m.hits);
        registry.register("cache_misses", "Views that had to be rendered", m.misses);
        registry.register("connections", "Open connections", m.connections);
        registry.register("feeds", "Feeds by standing", m.feeds);
        register_polling(registry, meters.clone());
        registry.register("polls", "Polls by outcome", m.polls);
        registry.register("commits", "Commits to the store", m.commits);
        registry.register(
            "feed_gaps",
            "Documents that had no item in common with the one before: items may have been missed",
            m.gaps,
        );
        registry.register_with_unit(
            "fetched",
            "Bytes read from upstreams, as they came over the wire",
            Unit::Bytes,
            m.fetched,
        );
        registry.register(
            "websub_subscriptions",
            "Subscriptions of the hub by standing",
            m.subscriptions,
        );
        registry.register("items_in_conflict", "Items with unresolved conflicts", m.contested);
        registry.register_with_unit(
            "tick_lead",
            "How far the time of a feed's last change is ahead of the clock, at most; 0 below an hour",
            Unit::Seconds,
            m.tick_lead,
        );
        registry.register_with_unit(
            "certificate_expiry",
            "When the certificate for TLS expires, since 1970. Absent without TLS",
            Unit::Seconds,
            m.certificate,
        );
        registry.register(
            "store_up",
            "1 while the store is open, 0 while it is opened again after a failure",
            m.store_up,
        );
        registry.register(
            "store_takes_in",
            "1 while new documents are taken in, 0 while the store is closed, space is low or the database silent",
            m.store_intake,
        );
        registry.register(
            "settings_differ",
            "Other gateways over the same store whose settings are others than this one's",
            m.differences,
        );
        registry.register_with_unit(
            "clock_difference",
            "How far this machine's clock is ahead of the database's, at least; below 0: behind it",
            Unit::Seconds,
            m.clock_difference,
        );
        registry.register_with_unit(
            "store_free",
            "Bytes that are free on the file system of the data folder",
            Unit::Bytes,
            m.store_free,
        );
        registry.register_with_unit(
            "store_min_free",
            "Bytes of it that must stay free for anything new to be taken in",
            Unit::Bytes,
            m.store_min_free,
        );
        registry.register_with_unit(
            "store_size",
            "Bytes that the files of the data folder take on disk; counted once a minute",
            Unit::Bytes,
            m.store_size,
        );
        registry.register_with_unit(
            "store_max_size",
            "Bytes that they may take for anything new to be taken in; 0 where there is no limit",
            Unit::Bytes,
            m.store_max_size,
        );
        registry.register("websub_deliveries", "Deliveries of the hub by outcome", m.deliveries);
        registry.register_with_unit(
            "cache",
            "Bytes that a cache of answers keeps",
            Unit::Bytes,
            m.caches,
        );
        registry.register_with_unit(
            "cache_limit",
            "Bytes that it keeps at most",
            Unit::Bytes,
            m.cache_limits,
        );
        registry.register("origin_requests", "Requests for origins, by outcome", m.passed);
        let registry = Arc::new(all);
        let (caches, counting, keys) = (Arc::default(), Arc::default(), Arc::default());
        Self { meters, registry, caches, counting, keys }
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
        let gauge = self.meters.cache_limits.get_or_create(&CacheLabel { cache });
        gauge.set(i64::try_from(limit).unwrap_or(i64::MAX));
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        caches.push((cache, Arc::new(bytes)));
    }

    /// Looks what the caches keep, until when the certificate is good, and what the process takes.
    pub(super) async fn measure(&self) {
        let caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (cache, bytes) in caches {
            let bytes = bytes();
            let gauge = self.meters.caches.get_or_create(&CacheLabel { cache });
            gauge.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        }
        if let Some(expires) = self.keys.get().and_then(|keys| keys.current().expires()) {
            self.meters.certificate.get_or_create(&[]).set(expires.unix());
        }
        let process = self.meters.process.clone();
        // Where that thread broke off, the process is as it was seen last.
        let _ = tokio::task::spawn_blocking(move || process.measure()).await;
    }

    /// A view was answered from the cache.
    pub(super) fn cache_hit(&self) {
        self.meters.hits.inc();
    }

    /// A view had to be rendered.
    pub(super) fn cache_miss(&self) {
        self.meters.misses.inc();
    }

    /// Counts a connection as open until what this returns is dropped.
    pub(super) fn connection(&self) -> OpenConnectionGuard {
        self.meters.connections.inc();
        OpenConnectionGuard(self.meters.connections.clone())
    }

    /// An answer went out.
    pub(super) fn answered(&self, method: &http::Method, route: &str, status: u16, bytes: u64) {
        self.answers(method, route, status).inc();
        self.sent(bytes);
    }

    /// What counts the requests for an origin with an outcome.
    pub(super) fn passed(&self, origin: &FeedName, outcome: PassOutcome) -> Counter {
        let labels = OriginLabels { origin: origin.to_string(), outcome: outcome.name() };
        self.meters.passed.get_or_create(&labels).clone()
    }

    /// Bytes of a body went out.
    pub(super) fn sent(&self, bytes: u64) {
        self.meters.sent.inc_by(bytes);
    }

    /// What counts the answers of a route with a status.
    pub(super) fn answers(&self, method: &http::Method, route: &str, status: u16) -> Counter {
        // A client may make up methods; they must not make up label values.
        let method = crate::query::known_method(method).unwrap_or("other");
        let answer = AnswerLabels { method, route: route.to_owned(), status };
        self.meters.requests.get_or_create(&answer).clone()
    }

    /// Says how far ticks are ahead of the clock.
    pub(super) fn ticks_ahead(&self, ahead: &TicksAhead) {
        self.meters.tick_lead.set(i64::try_from(ahead.lead().as_secs()).unwrap_or(i64::MAX));
    }

    /// Takes over what the operator's side counted; its counters only grow.
    pub(super) fn totals(&self, totals: PollTotals) {
        for (outcome, number) in [
            ("changed", totals.changed),
            ("unchanged", totals.unchanged),
            ("not_modified", totals.not_modified),
            ("failed", totals.failed),
        ] {
            let counter = self.meters.polls.get_or_create(&OutcomeLabel { outcome });
            counter.inner().store(number, Ordering::Relaxed);
        }
        self.meters.commits.inner().store(totals.commits, Ordering::Relaxed);
        self.meters.fetched.inner().store(totals.bytes, Ordering::Relaxed);
        self.meters.gaps.inner().store(totals.apart, Ordering::Relaxed);
        self.meters.durations.set(totals);
    }

    /// Takes over what the hub counted.
    pub(super) fn hub(&self, totals: HubTotals) {
        for (standing, number) in [("active", totals.active), ("pending", totals.pending)] {
            let gauge = self.meters.subscriptions.get_or_create(&FeedGauges { standing });
            gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        }
        for (outcome, number) in [("delivered", totals.delivered), ("failed", totals.failed)] {
            let counter = self.meters.deliveries.get_or_create(&OutcomeLabel { outcome });
            counter.inner().store(number, Ordering::Relaxed);
        }
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

/// Registers what tells how feeds and their polling stand.
fn register_polling(registry: &mut Registry, m: Meters) {
    for (name, help, gauge) in [
        ("feeds_polled", "Feeds that this gateway polls", m.polled),
        ("feeds_failing", "Polled feeds whose last poll failed", m.failing),
        (
            "feeds_stale",
            "Polled feeds that were not read for three of their intervals and at least a day",
            m.stale,
        ),
        ("feeds_held", "Feeds of which a document is held back until it is confirmed", m.held),
        ("feeds_in_conflict", "Feeds with items that have unresolved conflicts", m.in_conflict),
        (
            "feeds_with_gaps",
            "Feeds of which items may have been missed within seven days",
            m.with_gaps,
        ),
        ("polls_in_flight", "Feeds that are being polled", m.in_flight),
        ("polls_waiting", "Feeds whose poll is due and has not begun", m.waiting),
    ] {
        registry.register(name, help, gauge);
    }
    for (name, help, gauge) in [
        ("poll_lag", "How late the poll is that is late most; 0 where none is", m.lag),
        (
            "oldest_read_age",
            "How long ago the polled feed was last read that was read longest ago; since the start \
             where it was not",
            m.oldest_read,
        ),
    ] {
        registry.register_with_unit(name, help, Unit::Seconds, gauge);
    }
    let help = "How long polls took, from the request until what came of it was durable";
    registry.register_with_unit("poll_duration", help, Unit::Seconds, m.durations);
}
