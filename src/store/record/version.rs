//! Versions of items on disk, and where an item's newest bytes stand.

use super::sharing::{Seconds, UpdateRecord};
use super::{Record, RecordError, fields, newest};
use crate::model::{Count, Tick};
use crate::store::VersionNote;
use serde::{Deserialize, Serialize};

/// Where the newest bytes of an item stand, and how many versions of it are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct HeadRecord {
    tick: Seconds,
    body: Seconds,
    /// Newer bytes than those of any version stand beside them.
    pub(in crate::store) latest: bool,
    /// Versions kept.
    pub(in crate::store) kept: u32,
}

impl Record for HeadRecord {}

impl HeadRecord {
    /// The head of an item whose first version has the tick `tick`; none is kept yet.
    pub(in crate::store) fn new(tick: Tick) -> Self {
        Self { tick: tick.into(), body: tick.into(), latest: false, kept: 0 }
    }

    /// The tick of the current version.
    pub(in crate::store) fn tick(&self) -> Tick {
        self.tick.into()
    }

    /// The tick of the newest version that brought bytes.
    pub(in crate::store) fn body(&self) -> Tick {
        self.body.into()
    }

    /// Sets the tick of the current version.
    pub(in crate::store) fn set_tick(&mut self, tick: Tick) {
        self.tick = tick.into();
    }

    /// Sets the tick of the newest version that brought bytes.
    pub(in crate::store) fn set_body(&mut self, tick: Tick) {
        self.body = tick.into();
    }
}

/// A [`VersionNote`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct NoteRecord {
    updates: u32,
    update: UpdateRecord,
    deleted: bool,
    tick: Seconds,
    title: String,
    reason: String,
    shown: Seconds,
    size: u64,
}

/// The first layout: it says neither when the version came to be shown nor how large it is.
#[derive(Deserialize)]
struct First {
    updates: u32,
    update: UpdateRecord,
    deleted: bool,
    tick: Seconds,
    title: String,
    reason: String,
}

impl Record for NoteRecord {
    const VERSION: u8 = 2;

    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        if version != 1 {
            return newest(version, payload);
        }
        let first: First = fields(payload)?;
        Ok(Self {
            updates: first.updates,
            update: first.update,
            deleted: first.deleted,
            tick: first.tick,
            title: first.title,
            reason: first.reason,
            shown: first.tick,
            size: 0,
        })
    }
}

impl From<&VersionNote> for NoteRecord {
    fn from(note: &VersionNote) -> Self {
        Self {
            updates: note.updates.value(),
            update: (&note.update).into(),
            deleted: note.deleted,
            tick: note.tick.into(),
            title: note.title.clone(),
            reason: note.reason.clone(),
            shown: note.shown.into(),
            size: note.size,
        }
    }
}

impl TryFrom<NoteRecord> for VersionNote {
    type Error = RecordError;

    fn try_from(record: NoteRecord) -> Result<Self, RecordError> {
        Ok(Self {
            updates: Count::new(record.updates)?,
            update: record.update.try_into()?,
            deleted: record.deleted,
            tick: record.tick.into(),
            shown: record.shown.into(),
            title: record.title,
            reason: record.reason,
            size: record.size,
        })
    }
}
