//! What is counted, in Prometheus' words. Labels take few values: routes, not addresses. Figures that are not counted as things
//! happen are told as they were when they were last looked at.
//!
//! Metrics are written in OpenMetrics; whoever does not ask for that gets Prometheus' older format, which every scraper reads
//! and every browser shows.

mod gathered;

pub(super) use gathered::FeedCounts;

use super::origins::PassOutcome;
use super::{TlsKeys, locked};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::{Arc, Mutex, OnceLock};
use tidegate_core::model::FeedName;
use tidegate_poll::hub::SubscriptionCount;

/// What is counted as it happens, and what it says.
const COUNTED: [(&str, &str); 5] = [
    (REQUESTS, "Answers by route and status"),
    (SENT, "Bytes of bodies in answers, as encoded"),
    (HITS, "Views that were answered from the cache"),
    (MISSES, "Views that had to be rendered"),
    (PASSED, "Requests for origins, by outcome"),
];
const REQUESTS: &str = "http_requests";
const SENT: &str = "http_sent_bytes";
const HITS: &str = "cache_hits";
const MISSES: &str = "cache_misses";
const PASSED: &str = "origin_requests";

/// What is counted as it happens, and the figures that are looked at for each scrape.
pub(super) struct Metrics {
    /// By the name and the labels.
    counts: Mutex<BTreeMap<(&'static str, String), u64>>,
    /// The figures that were looked at last, by where they come from.
    figures: Mutex<BTreeMap<&'static str, Vec<Figure>>>,
    /// Each open connection has one more.
    connections: Arc<()>,
    /// The turn of who counts feeds: one count is made at a time.
    pub(super) counting: Arc<tokio::sync::Mutex<()>>,
    /// What handshakes are made with, where there are any.
    keys: OnceLock<Arc<TlsKeys>>,
}

impl Metrics {
    /// Meters that stand at zero.
    pub(super) fn new() -> Self {
        Self {
            counts: Mutex::new([SENT, HITS, MISSES].map(|name| ((name, String::new()), 0)).into()),
            figures: Mutex::default(),
            connections: Arc::default(),
            counting: Arc::default(),
            keys: OnceLock::new(),
        }
    }

    fn count(&self, name: &'static str, labels: String, more: u64) {
        *locked(&self.counts).entry((name, labels)).or_default() += more;
    }

    /// Has these figures told in the place of those that came from there before.
    fn set(&self, source: &'static str, figures: Vec<Figure>) {
        locked(&self.figures).insert(source, figures);
    }

    /// Has it shown until when the certificate of handshakes is good.
    pub(super) fn certificate(&self, keys: &Arc<TlsKeys>) {
        // There is one listener that speaks TLS.
        let _ = self.keys.set(Arc::clone(keys));
    }

    /// Looks what the documents take that are kept, and at most, until when the certificate is good, and what the process
    /// takes.
    pub(super) async fn measure(&self, (kept, limit): (u64, u64)) {
        let (about, most) = ("Bytes that a cache of answers keeps", "Bytes that it keeps at most");
        let gauges = [("cache_bytes", about, kept), ("cache_limit_bytes", most, limit)];
        let of_documents = |(name, help, bytes)| {
            Figure::by_label(FigureKind::Gauge, name, help, "cache", [("documents", bytes)])
        };
        let mut figures: Vec<Figure> = gauges.map(of_documents).into();
        let expires = self.keys.get().and_then(|keys| keys.current().expires());
        figures.extend(expires.map(|expires| {
            let about = "When the certificate for TLS expires, since 1970. Absent without TLS";
            gauge("certificate_expiry_seconds", about, expires.unix())
        }));
        self.set("serving", figures);
        // Where that thread broke off, the process is as it was seen last.
        if let Ok(figures) = tokio::task::spawn_blocking(gathered::process_figures).await {
            self.set("process", figures);
        }
    }

    /// Counts a connection as open until what this returns is dropped.
    pub(super) fn connection(&self) -> Arc<()> {
        Arc::clone(&self.connections)
    }

    /// A document was answered from the cache, or had to be made.
    pub(super) fn note_document(&self, is_hit: bool) {
        self.count(if is_hit { HITS } else { MISSES }, String::new(), 1);
    }

    /// An answer went out.
    pub(super) fn answered(&self, method: &http::Method, route: &str, status: u16, bytes: u64) {
        // A client may make up methods; they must not make up label values.
        let method = crate::query::known_method(method).unwrap_or("other");
        let status = status.to_string();
        self.count(
            REQUESTS,
            labels(&[("method", method), ("route", route), ("status", &status)]),
            1,
        );
        self.count(SENT, String::new(), bytes);
    }

    /// A request for an origin was answered.
    pub(super) fn note_passed(&self, origin: &FeedName, outcome: PassOutcome) {
        self.count(PASSED, labels(&[("origin", origin.as_str()), ("outcome", outcome)]), 1);
    }

    /// Takes over what the hub counted.
    pub(super) fn hub(&self, totals: SubscriptionCount) {
        let SubscriptionCount { active, pending, delivered, failed } = totals;
        let standings = [("active", active), ("pending", pending)];
        let outcomes = [("delivered", delivered), ("failed", failed)];
        let about = "Subscriptions of the hub by standing";
        let delivered = "Deliveries of the hub by outcome";
        let (gauge, counter) = (FigureKind::Gauge, FigureKind::Counter);
        let figures = vec![
            Figure::by_label(gauge, "websub_subscriptions", about, "standing", standings),
            Figure::by_label(counter, "websub_deliveries", delivered, "outcome", outcomes),
        ];
        self.set("hub", figures);
    }

    /// Everything.
    pub(super) fn text(&self, format: MetricsFormat) -> String {
        let connections = Arc::strong_count(&self.connections).saturating_sub(1);
        let version = labels(&[("version", env!("CARGO_PKG_VERSION"))]);
        let build = Figure::new(FigureKind::Info, "build", "The version that runs; 1");
        let mut all =
            vec![build.with(version, 1), gauge("connections", "Open connections", connections)];
        let counts = locked(&self.counts).clone();
        all.extend(COUNTED.map(|(name, help)| {
            let its = counts.iter().filter(|((of, _), _)| *of == name);
            its.fold(
                Figure::new(FigureKind::Counter, name, help),
                |figure, ((_, labels), count)| figure.with(labels.clone(), count),
            )
        }));
        let mut text = String::new();
        for figure in all.iter().chain(locked(&self.figures).values().flatten()) {
            figure.write(&mut text, format);
        }
        text + if format == MetricsFormat::OpenMetrics { "# EOF\n" } else { "" }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FigureKind {
    Gauge,
    Counter,
    /// What does not change while the program runs.
    Info,
    Histogram,
}

/// The units that a name may end with.
const UNITS: [&str; 2] = ["bytes", "seconds"];

/// A metric as it is told.
#[derive(Debug)]
struct Figure {
    kind: FigureKind,
    /// It ends with its unit.
    name: &'static str,
    help: &'static str,
    /// What follows the name, and the value.
    samples: Vec<(String, String)>,
}

impl Figure {
    const fn new(kind: FigureKind, name: &'static str, help: &'static str) -> Self {
        Self { kind, name, help, samples: Vec::new() }
    }

    /// One more sample, with what follows the name.
    fn with(mut self, behind: String, value: impl Display) -> Self {
        self.samples.push((behind, value.to_string()));
        self
    }

    /// One with a sample for each value of a label.
    fn by_label<V: Display>(
        kind: FigureKind,
        name: &'static str,
        help: &'static str,
        label: &str,
        values: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Self {
        values.into_iter().fold(Self::new(kind, name, help), |figure, (of, value)| {
            figure.with(labels(&[(label, of)]), value)
        })
    }

    /// The sum of what was measured, and how often it was up to each bound and above the one before.
    fn histogram(
        name: &'static str,
        help: &'static str,
        sum: f64,
        buckets: impl IntoIterator<Item = (f64, u64)>,
    ) -> Self {
        let (mut figure, mut count) = (Self::new(FigureKind::Histogram, name, help), 0_u64);
        for (bound, more) in buckets {
            count = count.saturating_add(more);
            let bound = if bound.is_finite() { float(bound) } else { "+Inf".to_owned() };
            figure = figure.with(format!("_bucket{}", labels(&[("le", &bound)])), count);
        }
        figure.with("_sum".to_owned(), float(sum)).with("_count".to_owned(), count)
    }

    fn write(&self, text: &mut String, format: MetricsFormat) {
        // What was never counted is not described.
        if self.samples.is_empty() {
            return;
        }
        let (kind, ending) = match self.kind {
            FigureKind::Gauge => ("gauge", ""),
            FigureKind::Counter => ("counter", "_total"),
            FigureKind::Info => ("info", "_info"),
            FigureKind::Histogram => ("histogram", ""),
        };
        let is_of_process = self.name.starts_with("process_");
        let name = format!("{}{}", if is_of_process { "" } else { "tidegate_" }, self.name);
        // In the older format a description names what the samples are called, and no info is known.
        let (kind, described) = match format {
            MetricsFormat::OpenMetrics => (kind, name.clone()),
            MetricsFormat::Prometheus => {
                (if kind == "info" { "gauge" } else { kind }, format!("{name}{ending}"))
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {described} {}.\n# TYPE {described} {kind}", self.help);
        let unit = UNITS.iter().find(|unit| name.ends_with(*unit));
        if let Some(unit) = unit.filter(|_| format == MetricsFormat::OpenMetrics) {
            let _ = writeln!(text, "# UNIT {described} {unit}");
        }
        for (behind, value) in &self.samples {
            let _ = writeln!(text, "{name}{ending}{behind} {value}");
        }
    }
}

/// Labels as they follow the name of a metric.
fn labels(all: &[(&str, &str)]) -> String {
    let escaped =
        |value: &str| value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
    let all = all.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value)));
    format!("{{{}}}", all.collect::<Vec<_>>().join(","))
}

/// A figure that may go up and down.
fn gauge(name: &'static str, help: &'static str, value: impl Display) -> Figure {
    Figure::new(FigureKind::Gauge, name, help).with(String::new(), value)
}

/// A figure that only grows.
fn counter(name: &'static str, help: &'static str, value: impl Display) -> Figure {
    Figure::new(FigureKind::Counter, name, help).with(String::new(), value)
}

/// A number with a fraction, which says so.
fn float(number: f64) -> String {
    format!("{number:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_has_its_own_names_and_kinds() {
        let figures = [
            Figure::by_label(FigureKind::Counter, "a_bytes", "What", "of", [("x # \"y\"", 3)]),
            Figure::new(FigureKind::Info, "build", "About").with(labels(&[("version", "1")]), 1),
            Figure::histogram("h_seconds", "How long", 1.5, [(0.5, 1), (f64::INFINITY, 2)]),
            gauge("process_g", "Of one", 1),
        ];
        let text = |format| {
            let mut text = String::new();
            figures.iter().for_each(|figure| figure.write(&mut text, format));
            text
        };
        let samples = "tidegate_h_seconds_bucket{le=\"0.5\"} 1\ntidegate_h_seconds_bucket{le=\"+Inf\"} 3\n\
                       tidegate_h_seconds_sum 1.5\ntidegate_h_seconds_count 3\n\
                       # HELP process_g Of one.\n# TYPE process_g gauge\nprocess_g 1\n";
        let open = "# HELP tidegate_a_bytes What.\n# TYPE tidegate_a_bytes counter\n# UNIT tidegate_a_bytes bytes\n\
                    tidegate_a_bytes_total{of=\"x # \\\"y\\\"\"} 3\n\
                    # HELP tidegate_build About.\n# TYPE tidegate_build info\ntidegate_build_info{version=\"1\"} 1\n\
                    # HELP tidegate_h_seconds How long.\n# TYPE tidegate_h_seconds histogram\n\
                    # UNIT tidegate_h_seconds seconds\n";
        assert_eq!(text(MetricsFormat::OpenMetrics), format!("{open}{samples}"));
        let older = "# HELP tidegate_a_bytes_total What.\n# TYPE tidegate_a_bytes_total counter\n\
                     tidegate_a_bytes_total{of=\"x # \\\"y\\\"\"} 3\n\
                     # HELP tidegate_build_info About.\n# TYPE tidegate_build_info gauge\n\
                     tidegate_build_info{version=\"1\"} 1\n\
                     # HELP tidegate_h_seconds How long.\n# TYPE tidegate_h_seconds histogram\n";
        assert_eq!(text(MetricsFormat::Prometheus), format!("{older}{samples}"));
    }
}
