//! What is counted, in Prometheus' words. Labels take few values: routes, not addresses. Figures that are not counted as things
//! happen are told as they were when they were last looked at.
//!
//! Metrics are written in OpenMetrics; whoever does not ask for that gets Prometheus' older format, which every scraper reads
//! and every browser shows.

mod gathered;

pub(super) use gathered::feed_figures;

use super::origins::PassOutcome;
use super::{TlsKeys, locked};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
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

/// What is counted as it happens, and the figures that are looked at for each scrape.
#[derive(Clone)]
pub(super) struct Metrics {
    requests: Family<AnswerLabels, Counter>,
    pub(super) sent: Counter,
    /// Documents that were answered from the cache, and those that had to be made.
    pub(super) hits: Counter,
    pub(super) misses: Counter,
    connections: Gauge,
    passed: Family<OriginLabels, Counter>,
    figures: Figures,
    process: Figures,
    registry: Arc<Registry>,
}

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
    /// Creates all metrics at zero.
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
        }
    }

    /// Updates the figures of the document cache (`kept` bytes of `limit`), of the certificate's expiry and of the
    /// process.
    pub(super) async fn measure(&self, (kept, limit): (u64, u64), keys: Option<&TlsKeys>) {
        let of_documents = |bytes| ByLabel("cache", vec![("documents", whole(bytes))]);
        let (about, most) = ("Bytes that a cache of answers keeps", "Bytes that it keeps at most");
        let mut figures = vec![
            Figure::new("cache", about, of_documents(kept)).of(Unit::Bytes),
            Figure::new("cache_limit", most, of_documents(limit)).of(Unit::Bytes),
        ];
        let expires = keys.and_then(|keys| keys.current().expires());
        figures.extend(expires.map(|expires| {
            let about = "When the certificate for TLS expires, since 1970. Absent without TLS";
            gauge("certificate_expiry", about, expires.unix()).of(Unit::Seconds)
        }));
        self.figures.set("serving", figures);
        // Where that thread broke off, the process is as it was seen last.
        if let Ok(figures) = tokio::task::spawn_blocking(gathered::process_figures).await {
            self.process.set("process", figures);
        }
    }

    /// Counts a connection as open until what this returns is dropped.
    pub(super) fn connection(&self) -> OpenConnectionGuard {
        self.connections.inc();
        OpenConnectionGuard(self.connections.clone())
    }

    /// An answer went out.
    pub(super) fn answered(&self, method: &http::Method, route: &str, status: u16, bytes: u64) {
        self.answers(method, route, status).inc();
        self.sent.inc_by(bytes);
    }

    /// What counts such answers.
    pub(super) fn answers(&self, method: &http::Method, route: &str, status: u16) -> Counter {
        // A client may make up methods; they must not make up label values.
        let method = crate::query::known_method(method).unwrap_or("other");
        let answer = AnswerLabels { method, route: route.to_owned(), status };
        self.requests.get_or_create(&answer).clone()
    }

    /// What counts the requests for an origin with an outcome.
    pub(super) fn passed(&self, origin: &FeedName, outcome: PassOutcome) -> Counter {
        let labels = OriginLabels { origin: origin.to_string(), outcome };
        self.passed.get_or_create(&labels).clone()
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

    pub(super) fn text(&self, format: MetricsFormat) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(&mut text, &self.registry)?;
        Ok(match format {
            MetricsFormat::OpenMetrics => text,
            MetricsFormat::Prometheus => in_prometheus_format(&text),
        })
    }
}

/// A text format of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsFormat {
    OpenMetrics,
    /// Prometheus' text format, 0.0.4.
    Prometheus,
}

impl MetricsFormat {
    /// The name of OpenMetrics in `Accept`.
    pub(crate) const OPEN: &'static str = "application/openmetrics-text";

    /// What `Content-Type` says.
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// OpenMetrics in Prometheus' format. There, the name of a counter ends in `_total` in its description
/// too, an info is a gauge, and units and the end are not told.
pub(super) fn in_prometheus_format(text: &str) -> String {
    let mut older = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# HELP ") {
            help = about.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", kind),
                "info" => ("_info", "gauge"),
                _ => ("", kind),
            };
            // Writing to a string cannot fail.
            if let Some((_, help)) = help.take().filter(|(of, _)| *of == name) {
                let _ = writeln!(older, "# HELP {name}{suffix} {help}");
            }
            let _ = writeln!(older, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            older.push_str(line);
            older.push('\n');
        }
    }
    older
}

/// A figure with its name and what it says.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    value: Arc<dyn Metric>,
}

impl Figure {
    pub(super) fn new(name: &'static str, help: &'static str, value: impl Metric) -> Self {
        Self { name, help, unit: None, value: Arc::new(value) }
    }

    /// The same in a unit, which its name ends with.
    pub(super) fn of(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }
}

/// A whole number; as much as fits where it is larger.
pub(super) fn whole(number: impl TryInto<i64>) -> ConstGauge<i64> {
    ConstGauge::new(number.try_into().unwrap_or(i64::MAX))
}

/// A figure that is a whole number and may go up and down.
pub(super) fn gauge(name: &'static str, help: &'static str, number: impl TryInto<i64>) -> Figure {
    Figure::new(name, help, whole(number))
}

/// A figure that only grows.
pub(super) fn counter(name: &'static str, help: &'static str, number: u64) -> Figure {
    Figure::new(name, help, ConstCounter::new(number))
}

/// Metrics of one kind by the values of a label.
#[derive(Debug)]
pub(super) struct ByLabel<M>(pub(super) &'static str, pub(super) Vec<(&'static str, M)>);

impl<M: EncodeMetric> EncodeMetric for ByLabel<M> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let Self(label, all) = self;
        all.iter().try_for_each(|(of, one)| one.encode(encoder.encode_family(&[(*label, *of)])?))
    }

    fn metric_type(&self) -> MetricType {
        self.1.first().map_or(MetricType::Gauge, |(_, metric)| metric.metric_type())
    }
}

/// A histogram: the sum of the observations, and for each upper bound how many are in its bucket alone (not
/// cumulative).
#[derive(Debug)]
pub(super) struct ConstHistogram(pub(super) f64, pub(super) Vec<(f64, u64)>);

impl EncodeMetric for ConstHistogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let all = self.1.iter().map(|(_, count)| count).sum();
        encoder.encode_histogram::<NoLabelSet>(self.0, all, &self.1, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

/// The figures that were looked at last, by where they come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures(Arc<Mutex<BTreeMap<&'static str, Vec<Figure>>>>);

impl Figures {
    /// Has these figures told in the place of those that came from there before.
    pub(super) fn set(&self, source: &'static str, figures: Vec<Figure>) {
        locked(&self.0).insert(source, figures);
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        locked(&self.0).values().flatten().try_for_each(|Figure { name, help, unit, value }| {
            let help = format!("{help}.");
            let kind = value.metric_type();
            value.encode(encoder.encode_descriptor(name, &help, unit.as_ref(), kind)?)
        })
    }
}
