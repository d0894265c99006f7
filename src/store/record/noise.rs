//! What is no news, on disk.

use super::sharing::Seconds;
use crate::model::{
    FeedNoise, Made, Noise, NoiseClass, NoiseClasses, Restless, SharedField, SharedSpan, Span,
    Unseen, WaitCause, Waiting,
};
use serde::{Deserialize, Serialize};

/// A [`Noise`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NoiseRecord {
    unseen: Option<UnseenRecord>,
    traces: [u32; NoiseClass::TRACED.len()],
    shape: u64,
    left: Vec<(u64, u64)>,
    restless: Vec<RestlessRecord>,
    held: bool,
    made: Option<(Seconds, u32)>,
    waiting: Option<WaitingRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct UnseenRecord {
    classes: u16,
    count: u32,
    since: Seconds,
    last: Seconds,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RestlessRecord {
    path: String,
    forms: Vec<u32>,
    returns: u8,
    changes: u8,
    spans: Vec<SpanRecord>,
    last: Seconds,
    pace: u32,
    masked: Option<Seconds>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SpanRecord {
    before: u32,
    after: u32,
    value: u32,
    changes: u8,
    told: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WaitingRecord {
    /// Whether the cause is the cap; else it is a mask.
    is_capped: bool,
    since: Seconds,
    due: Seconds,
    fields: String,
}

/// A [`FeedNoise`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FeedNoiseRecord {
    spans: Vec<SharedSpanRecord>,
    fields: Vec<SharedFieldRecord>,
    ignored: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SharedSpanRecord {
    path: String,
    before: Option<String>,
    after: Option<String>,
    items: u32,
    stamped: bool,
    since: Seconds,
    last: Seconds,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SharedFieldRecord {
    path: String,
    digest: u64,
    documents: u32,
    since: Seconds,
    last: Seconds,
}

impl From<&Noise> for NoiseRecord {
    fn from(noise: &Noise) -> Self {
        Self {
            unseen: noise.unseen.map(|unseen| UnseenRecord {
                classes: unseen.classes.bits(),
                count: unseen.count,
                since: unseen.since.into(),
                last: unseen.last.into(),
            }),
            traces: noise.traces,
            shape: noise.shape,
            left: noise.left.clone(),
            restless: noise.restless.iter().map(RestlessRecord::from).collect(),
            held: noise.held,
            made: noise.made.map(|made| (made.since.into(), made.versions)),
            waiting: noise.waiting.as_ref().map(|waiting| WaitingRecord {
                is_capped: waiting.cause == WaitCause::Cap,
                since: waiting.since.into(),
                due: waiting.due.into(),
                fields: waiting.fields.clone(),
            }),
        }
    }
}

impl From<NoiseRecord> for Noise {
    fn from(record: NoiseRecord) -> Self {
        Self {
            unseen: record.unseen.map(|unseen| Unseen {
                classes: NoiseClasses::from_bits(unseen.classes),
                count: unseen.count,
                since: unseen.since.into(),
                last: unseen.last.into(),
            }),
            traces: record.traces,
            shape: record.shape,
            left: record.left,
            restless: record.restless.into_iter().map(Restless::from).collect(),
            held: record.held,
            made: record.made.map(|(since, versions)| Made { since: since.into(), versions }),
            few_references: false,
            waiting: record.waiting.map(|waiting| Waiting {
                cause: if waiting.is_capped { WaitCause::Cap } else { WaitCause::Mask },
                since: waiting.since.into(),
                due: waiting.due.into(),
                fields: waiting.fields,
            }),
        }
    }
}

impl From<&Restless> for RestlessRecord {
    fn from(field: &Restless) -> Self {
        let span = |span: &Span| SpanRecord {
            before: span.before,
            after: span.after,
            value: span.value,
            changes: span.changes,
            told: span.told,
        };
        Self {
            path: field.path.clone(),
            forms: field.forms.clone(),
            returns: field.returns,
            changes: field.changes,
            spans: field.spans.iter().map(span).collect(),
            last: field.last.into(),
            pace: field.pace,
            masked: field.masked.map(Seconds::from),
        }
    }
}

impl From<RestlessRecord> for Restless {
    fn from(record: RestlessRecord) -> Self {
        let span = |span: SpanRecord| Span {
            before: span.before,
            after: span.after,
            value: span.value,
            changes: span.changes,
            told: span.told,
        };
        Self {
            path: record.path,
            forms: record.forms,
            returns: record.returns,
            changes: record.changes,
            spans: record.spans.into_iter().map(span).collect(),
            last: record.last.into(),
            pace: record.pace,
            masked: record.masked.map(Into::into),
        }
    }
}

impl From<&FeedNoise> for FeedNoiseRecord {
    fn from(noise: &FeedNoise) -> Self {
        let span = |span: &SharedSpan| SharedSpanRecord {
            path: span.path.clone(),
            before: span.before.clone(),
            after: span.after.clone(),
            items: span.items,
            stamped: span.stamped,
            since: span.since.into(),
            last: span.last.into(),
        };
        let field = |field: &SharedField| SharedFieldRecord {
            path: field.path.clone(),
            digest: field.digest,
            documents: field.documents,
            since: field.since.into(),
            last: field.last.into(),
        };
        Self {
            spans: noise.spans.iter().map(span).collect(),
            fields: noise.fields.iter().map(field).collect(),
            ignored: noise.ignored,
        }
    }
}

impl From<FeedNoiseRecord> for FeedNoise {
    fn from(record: FeedNoiseRecord) -> Self {
        let span = |span: SharedSpanRecord| SharedSpan {
            path: span.path,
            before: span.before,
            after: span.after,
            items: span.items,
            stamped: span.stamped,
            since: span.since.into(),
            last: span.last.into(),
        };
        let field = |field: SharedFieldRecord| SharedField {
            path: field.path,
            digest: field.digest,
            documents: field.documents,
            since: field.since.into(),
            last: field.last.into(),
        };
        Self {
            spans: record.spans.into_iter().map(span).collect(),
            fields: record.fields.into_iter().map(field).collect(),
            ignored: record.ignored,
        }
    }
}
