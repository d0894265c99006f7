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
use prometheus_client::registry::{Metric, Registry, Unit};
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

/// One label.
type Label = [(&'static str, &'static str); 1];
/// Of a metric that is absent where it says nothing.
type NoLabels = [(&'static str, &'static str); 0];

/// Metrics with their names, units and descriptions.
macro_rules! meters {
    (@unit) => { None };
    (@unit $unit:ident) => { Some(Unit::$unit) };
    ($($field:ident: $kind:ty = $name:literal $(in $unit:ident)?, $help:literal;)*) => {
        #[derive(Debug, Clone, Default)]
        struct Meters { $($field: $kind,)* }

        impl Meters {
            fn register(&self, registry: &mut Registry) {
                $(register(registry, ($name, $help), meters!(@unit $($unit)?), self.$field.clone());)*
            }
        }
    };
}

meters! {
    requests: Family<AnswerLabels, Counter> = "http_requests", "Answers by route and status";
    sent: Counter = "http_sent" in Bytes, "Bytes of bodies in answers, as encoded";
    hits: Counter = "cache_hits", "Views that were answered from the cache";
    misses: Counter = "cache_misses", "Views that had to be rendered";
    connections: Gauge = "connections", "Open connections";
    feeds: Family<Label, Gauge> = "feeds", "Feeds by standing";
    polled: Gauge = "feeds_polled", "Feeds that this gateway polls";
    failing: Gauge = "feeds_failing", "Polled feeds whose last poll failed";
    stale: Gauge = "feeds_stale",
        "Polled feeds that were not read for three of their intervals and at least a day";
    held: Gauge = "feeds_held", "Feeds of which a document is held back until it is confirmed";
    in_conflict: Gauge = "feeds_in_conflict", "Feeds with items that have unresolved conflicts";
    with_gaps: Gauge = "feeds_with_gaps",
        "Feeds of which items may have been missed within seven days";
    in_flight: Gauge = "polls_in_flight", "Feeds that are being polled";
    waiting: Gauge = "polls_waiting", "Feeds whose poll is due and has not begun";
    lag: Gauge = "poll_lag" in Seconds, "How late the poll is that is late most; 0 where none is";
    oldest_read: Gauge = "oldest_read_age" in Seconds,
        "How long ago the polled feed was last read that was read longest ago; since the start where it was not";
    durations: PollDurations = "poll_duration" in Seconds,
        "How long polls took, from the request until what came of it was durable";
    polls: Family<Label, Counter> = "polls", "Polls by outcome";
    commits: Counter = "commits", "Commits to the store";
    gaps: Counter = "feed_gaps",
        "Documents that had no item in common with the one before: items may have been missed";
    fetched: Counter = "fetched" in Bytes, "Bytes read from upstreams, as they came over the wire";
    subscriptions: Family<Label, Gauge> = "websub_subscriptions",
        "Subscriptions of the hub by standing";
    contested: Gauge = "items_in_conflict", "Items with unresolved conflicts";
    tick_lead: Gauge = "tick_lead" in Seconds,
        "How far the time of a feed's last change is ahead of the clock, at most; 0 below an hour";
    certificate: Family<NoLabels, Gauge> = "certificate_expiry" in Seconds,
        "When the certificate for TLS expires, since 1970. Absent without TLS";
    store_up: Gauge = "store_up",
        "1 while the store is open, 0 while it is opened again after a failure";
    store_intake: Gauge = "store_takes_in",
        "1 while new documents are taken in, 0 while the store is closed, space is low or the database silent";
    standby: Gauge = "standby",
        "1 while another gateway writes the database, and this one polls its part of the feeds";
    differences: Gauge = "settings_differ",
        "Other gateways over the same store whose settings are others than this one's";
    clock_difference: Gauge<f64, AtomicU64> = "clock_difference" in Seconds,
        "How far this machine's clock is ahead of the database's, at least; below 0: behind it";
    poll_shards: Gauge = "poll_shards", "Shards of feeds that this gateway polls, of 1024";
    store_free: Gauge = "store_free" in Bytes,
        "Bytes that are free on the file system of the data folder";
    store_min_free: Gauge = "store_min_free" in Bytes,
        "Bytes of it that must stay free for anything new to be taken in";
    store_size: Gauge = "store_size" in Bytes,
        "Bytes that the files of the data folder take on disk; counted once a minute";
    store_max_size: Gauge = "store_max_size" in Bytes,
        "Bytes that they may take for anything new to be taken in; 0 where there is no limit";
    deliveries: Family<Label, Counter> = "websub_deliveries", "Deliveries of the hub by outcome";
    caches: Family<Label, Gauge> = "cache" in Bytes, "Bytes that a cache of answers keeps";
    cache_limits: Family<Label, Gauge> = "cache_limit" in Bytes, "Bytes that it keeps at most";
    passed: Family<[(&'static str, String); 2], Counter> = "origin_requests",
        "Requests for origins, by outcome";
}

fn register(
    registry: &mut Registry,
    (name, help): (&str, &str),
    unit: Option<Unit>,
    metric: impl Metric,
) {
    match unit {
        Some(unit) => registry.register_with_unit(name, help, unit, metric),
        None => registry.register(name, help, metric),
    }
}

/// A number as a gauge has it.
fn signed(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// Counts the bytes that a cache keeps.
type CountBytes = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The meters of this module, and those that are read from the operator's side at each scrape.
#[derive(Clone)]
pub(super) struct Metrics {
    meters: Meters,
    process: ProcessMeter,
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
        let (meters, process) = (Meters::default(), ProcessMeter::default());
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process.clone()));
        let ours = registry.sub_registry_with_prefix("tidegate");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        ours.register("build", "The version that runs; 1", build);
        meters.register(ours);
        let (registry, caches) = (Arc::new(registry), Arc::default());
        Self { meters, process, registry, caches, counting: Arc::default(), keys: Arc::default() }
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
        self.meters.cache_limits.get_or_create(&[("cache", cache)]).set(signed(limit));
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        caches.push((cache, Arc::new(bytes)));
    }

    /// Looks what the caches keep, until when the certificate is good, and what the process takes.
    pub(super) async fn measure(&self) {
        let caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (cache, bytes) in caches {
            self.meters.caches.get_or_create(&[("cache", cache)]).set(signed(bytes()));
        }
        if let Some(expires) = self.keys.get().and_then(|keys| keys.current().expires()) {
            self.meters.certificate.get_or_create(&[]).set(expires.unix());
        }
        let process = self.process.clone();
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
        let labels = [("origin", origin.to_string()), ("outcome", outcome.name().to_owned())];
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
        self.meters.tick_lead.set(signed(ahead.lead().as_secs()));
    }

    /// Takes over what the operator's side counted; its counters only grow.
    pub(super) fn totals(&self, totals: PollTotals) {
        for (outcome, number) in [
            ("changed", totals.changed),
            ("unchanged", totals.unchanged),
            ("not_modified", totals.not_modified),
            ("failed", totals.failed),
        ] {
            let counter = self.meters.polls.get_or_create(&[("outcome", outcome)]);
            counter.inner().store(number, Ordering::Relaxed);
        }
        self.meters.poll_shards.set(signed(totals.shards));
        self.meters.commits.inner().store(totals.commits, Ordering::Relaxed);
        self.meters.fetched.inner().store(totals.bytes, Ordering::Relaxed);
        self.meters.gaps.inner().store(totals.apart, Ordering::Relaxed);
        self.meters.durations.set(totals);
    }

    /// Takes over what the hub counted.
    pub(super) fn hub(&self, totals: HubTotals) {
        for (standing, number) in [("active", totals.active), ("pending", totals.pending)] {
            let gauge = self.meters.subscriptions.get_or_create(&[("standing", standing)]);
            gauge.set(signed(number));
        }
        for (outcome, number) in [("delivered", totals.delivered), ("failed", totals.failed)] {
            let counter = self.meters.deliveries.get_or_create(&[("outcome", outcome)]);
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
