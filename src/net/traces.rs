//! Traces of what the gateway does, for an OpenTelemetry collector: spans, which of them are recorded, and
//! how they are sent.
//!
//! What is not recorded costs a look at a counter, and nothing where no collector is configured. Spans wait in
//! a bounded queue; what finds no place in it, and what the collector does not take, is counted and lost.
//! Attributes are feed names, routes, kinds and numbers: never an address, a text or a header.

mod exporter;
mod otlp;

pub use self::exporter::{CollectorConfig, SpanExporter};

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_core::clock::unix_nanos;
use tokio::sync::mpsc;

/// The most spans that wait to be sent.
pub const QUEUE_LIMIT: usize = 4096;
/// The most attributes of a span.
const ATTRIBUTES_LIMIT: usize = 16;

/// What a span is about, as OpenTelemetry numbers it (`SpanKind`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal = 1,
    Server = 2,
    Client = 3,
}

/// Of how many of a kind one has a trace; 0: none has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleRates {
    pub polls: u32,
    pub requests: u32,
    pub deliveries: u32,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    Text(Cow<'static, str>),
    Number(i64),
    Flag(bool),
}

impl From<&'static str> for SpanValue {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u16> for SpanValue {
    fn from(number: u16) -> Self {
        Self::Number(i64::from(number))
    }
}

impl From<bool> for SpanValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

/// A span that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FinishedSpan {
    trace: [u8; 16],
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    name: Cow<'static, str>,
    kind: SpanKind,
    /// In nanoseconds of Unix time.
    begun: u64,
    ended: u64,
    attributes: Vec<(&'static str, SpanValue)>,
    has_failed: bool,
}

/// How many spans became what.
#[derive(Debug, Default)]
struct SpanCounts {
    sent: AtomicU64,
    lost: AtomicU64,
}

/// What counts how many there were of a kind.
#[derive(Debug, Default)]
struct Sampler {
    rate: u32,
    seen: AtomicU64,
}

impl Sampler {
    fn new(rate: u32) -> Self {
        Self { rate, seen: AtomicU64::new(0) }
    }

    /// Whether the next one has a trace: the first has, and then each one after as many as the rate says.
    fn takes_next(&self) -> bool {
        let rate = u64::from(self.rate);
        rate > 0 && self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(rate)
    }
}

struct SpanRecorder {
    queue: mpsc::Sender<FinishedSpan>,
    counts: Arc<SpanCounts>,
    polls: Sampler,
    requests: Sampler,
    deliveries: Sampler,
}

/// Where spans begin. Without a collector it records nothing.
#[derive(Clone, Default)]
pub struct Traces(Option<Arc<SpanRecorder>>);

impl Traces {
    fn recorder(&self, sampler: impl Fn(&SpanRecorder) -> &Sampler) -> Option<&Arc<SpanRecorder>> {
        self.0.as_ref().filter(|recorder| sampler(recorder).takes_next())
    }

    /// Begins the span of a poll, where it is recorded.
    pub fn begin_poll(&self) -> TraceSpan {
        let recorder = self.recorder(|recorder| &recorder.polls);
        TraceSpan::root(recorder, "poll", SpanKind::Internal)
    }

    /// Begins the span of a request, where it is recorded.
    pub fn begin_request(&self) -> TraceSpan {
        let recorder = self.recorder(|recorder| &recorder.requests);
        TraceSpan::root(recorder, "request", SpanKind::Server)
    }

    /// Begins the span of a delivery, where it is recorded.
    pub fn begin_delivery(&self, name: &'static str) -> TraceSpan {
        let recorder = self.recorder(|recorder| &recorder.deliveries);
        TraceSpan::root(recorder, name, SpanKind::Client)
    }

    /// How many spans were sent, and how many were lost.
    pub fn totals(&self) -> (u64, u64) {
        let counts = self.0.as_ref().map(|recorder| &recorder.counts);
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        counts.map_or((0, 0), |counts| (read(&counts.sent), read(&counts.lost)))
    }
}

/// What a span belongs to.
#[derive(Clone)]
struct ParentSpan {
    recorder: Arc<SpanRecorder>,
    trace: [u8; 16],
    id: [u8; 8],
}

/// A handle on a span, under which others begin; on none where nothing is recorded.
#[derive(Clone, Default)]
pub struct SpanParent(Option<ParentSpan>);

thread_local! {
    static CURRENT: RefCell<SpanParent> = const { RefCell::new(SpanParent(None)) };
}

impl SpanParent {
    /// Begins a span under this one.
    pub fn begin(&self, name: &'static str, kind: SpanKind) -> TraceSpan {
        let Some(parent) = &self.0 else { return TraceSpan::default() };
        TraceSpan::begin(&parent.recorder, (parent.trace, Some(parent.id)), name, kind)
    }

    /// Does work of this thread under this span, so that [`begin_here`] finds it.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.0.is_none() {
            return work();
        }
        let before = CURRENT.with(|current| current.replace(self.clone()));
        let done = work();
        CURRENT.with(|current| current.replace(before));
        done
    }
}

/// Begins a span under that of the work that this thread does, where there is one.
pub fn begin_here(name: &'static str) -> TraceSpan {
    CURRENT.with(|current| current.borrow().begin(name, SpanKind::Internal))
}

/// A span: it ends when it is dropped.
#[derive(Default)]
pub struct TraceSpan(Option<Box<OpenSpan>>);

struct OpenSpan {
    recorder: Arc<SpanRecorder>,
    span: FinishedSpan,
}

impl TraceSpan {
    fn root(recorder: Option<&Arc<SpanRecorder>>, name: &'static str, kind: SpanKind) -> Self {
        let mut trace = [0; 16];
        match recorder {
            Some(recorder) if getrandom::fill(&mut trace).is_ok() => {
                Self::begin(recorder, (trace, None), name, kind)
            }
            _ => Self(None),
        }
    }

    fn begin(
        recorder: &Arc<SpanRecorder>,
        (trace, parent): ([u8; 16], Option<[u8; 8]>),
        name: &'static str,
        kind: SpanKind,
    ) -> Self {
        let mut id = [0; 8];
        if getrandom::fill(&mut id).is_err() {
            return Self(None);
        }
        let span = FinishedSpan {
            trace,
            id,
            parent,
            name: Cow::Borrowed(name),
            kind,
            begun: unix_nanos(),
            ended: 0,
            attributes: Vec::new(),
            has_failed: false,
        };
        Self(Some(Box::new(OpenSpan { recorder: Arc::clone(recorder), span })))
    }

    /// Whether it is recorded: what it is told is thrown away otherwise.
    pub const fn is_recorded(&self) -> bool {
        self.0.is_some()
    }

    /// The handle under which others begin.
    pub fn parent(&self) -> SpanParent {
        SpanParent(self.0.as_ref().map(|open| {
            let (recorder, trace, id) = (Arc::clone(&open.recorder), open.span.trace, open.span.id);
            ParentSpan { recorder, trace, id }
        }))
    }

    /// Gives it another name.
    pub fn rename(&mut self, name: impl FnOnce() -> String) {
        if let Some(open) = &mut self.0 {
            open.span.name = Cow::Owned(name());
        }
    }

    /// Says something of it. `value` must be nothing that is secret.
    pub fn set<V: Into<SpanValue>>(&mut self, key: &'static str, value: impl FnOnce() -> V) {
        let room = |open: &&mut Box<OpenSpan>| open.span.attributes.len() < ATTRIBUTES_LIMIT;
        if let Some(open) = self.0.as_mut().filter(room) {
            open.span.attributes.push((key, value().into()));
        }
    }

    /// Says that what it is about has failed.
    pub fn fail(&mut self) {
        if let Some(open) = &mut self.0 {
            open.span.has_failed = true;
        }
    }
}

impl Drop for TraceSpan {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        let OpenSpan { recorder, mut span } = *open;
        span.ended = unix_nanos().max(span.begun);
        if recorder.queue.try_send(span).is_err() {
            recorder.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
