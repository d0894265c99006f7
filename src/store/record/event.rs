//! Events on disk.

use super::sharing::Seconds;
use super::{Record, RecordError, fields, newest};
use crate::model::{Event, EventKind, SyncId};
use serde::{Deserialize, Serialize};

/// An [`Event`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct EventRecord {
    kind: KindRecord,
    id: String,
    native_id: String,
    old_native_id: Option<String>,
    title: String,
    tick: Option<Seconds>,
    reason: String,
    at: Seconds,
    seen_gone: Option<Seconds>,
}

impl Record for EventRecord {
    const VERSION: u8 = 3;

    /// The first two layouts knew fewer kinds and are otherwise the same.
    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        if version <= 2 { fields(payload) } else { newest(version, payload) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum KindRecord {
    Created,
    Updated,
    Deleted,
    Undeleted,
    Retired,
    Returned,
    Rekeyed,
    /// Since the second layout.
    Backfilled,
    /// Since the third layout.
    Discarded,
}

impl From<&Event> for EventRecord {
    fn from(event: &Event) -> Self {
        let kind = match event.kind {
            EventKind::Created => KindRecord::Created,
            EventKind::Updated => KindRecord::Updated,
            EventKind::Deleted => KindRecord::Deleted,
            EventKind::Undeleted => KindRecord::Undeleted,
            EventKind::Retired => KindRecord::Retired,
            EventKind::Returned => KindRecord::Returned,
            EventKind::Rekeyed => KindRecord::Rekeyed,
            EventKind::Backfilled => KindRecord::Backfilled,
            EventKind::Discarded => KindRecord::Discarded,
        };
        Self {
            kind,
            id: event.id.as_str().to_owned(),
            native_id: event.native_id.clone(),
            old_native_id: event.old_native_id.clone(),
            title: event.title.clone(),
            tick: event.tick.map(Seconds::from),
            reason: event.reason.clone(),
            at: event.at.into(),
            seen_gone: event.seen_gone.map(Seconds::from),
        }
    }
}

impl TryFrom<EventRecord> for Event {
    type Error = RecordError;

    fn try_from(record: EventRecord) -> Result<Self, RecordError> {
        let kind = match record.kind {
            KindRecord::Created => EventKind::Created,
            KindRecord::Updated => EventKind::Updated,
            KindRecord::Deleted => EventKind::Deleted,
            KindRecord::Undeleted => EventKind::Undeleted,
            KindRecord::Retired => EventKind::Retired,
            KindRecord::Returned => EventKind::Returned,
            KindRecord::Rekeyed => EventKind::Rekeyed,
            KindRecord::Backfilled => EventKind::Backfilled,
            KindRecord::Discarded => EventKind::Discarded,
        };
        Ok(Self {
            kind,
            id: SyncId::new(&record.id)?,
            native_id: record.native_id,
            old_native_id: record.old_native_id,
            title: record.title,
            tick: record.tick.map(Into::into),
            reason: record.reason,
            at: record.at.into(),
            seen_gone: record.seen_gone.map(Into::into),
        })
    }
}
