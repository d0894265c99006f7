//! Archives on disk: what is known of each, and their content in blocks.

use super::known::StandingRecord;
use super::markup::{MarkupRecord, SkeletonRecord};
use super::sharing::{Seconds, UpdateRecord, history, history_record};
use super::{Record, RecordError};
use crate::model::{
    Archive, ArchiveId, ArchiveNote, Count, Deletion, Item, Markup, Shared, SyncId, Version,
};
use serde::{Deserialize, Serialize};

/// An [`ArchiveNote`], and how many blocks the content has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct ArchiveRecord {
    number: u64,
    id: String,
    previous: Option<String>,
    sealed: Seconds,
    until: Seconds,
    entries: u32,
    deletions: u32,
    bytes: u64,
    redacted: Option<Seconds>,
    dropped: bool,
    /// The blocks of its content; none where it was dropped.
    pub(in crate::store) blocks: u32,
}

impl Record for ArchiveRecord {}

impl ArchiveRecord {
    /// A note of an archive whose content has `blocks` blocks.
    pub(in crate::store) fn new(note: &ArchiveNote, blocks: u32) -> Self {
        Self {
            number: note.number,
            id: note.id.as_str().to_owned(),
            previous: note.previous.as_ref().map(|id| id.as_str().to_owned()),
            sealed: note.sealed.into(),
            until: note.until.into(),
            entries: note.entries,
            deletions: note.deletions,
            bytes: note.bytes,
            redacted: note.redacted.map(Seconds::from),
            dropped: note.dropped,
            blocks,
        }
    }
}

impl TryFrom<ArchiveRecord> for ArchiveNote {
    type Error = RecordError;

    fn try_from(record: ArchiveRecord) -> Result<Self, RecordError> {
        Ok(Self {
            number: record.number,
            id: archive_id(&record.id)?,
            previous: record.previous.as_deref().map(archive_id).transpose()?,
            sealed: record.sealed.into(),
            until: record.until.into(),
            entries: record.entries,
            deletions: record.deletions,
            bytes: record.bytes,
            redacted: record.redacted.map(Into::into),
            dropped: record.dropped,
        })
    }
}

/// The id of an archive.
pub(super) fn archive_id(text: &str) -> Result<ArchiveId, RecordError> {
    ArchiveId::new(text).ok_or_else(|| RecordError::Archive(text.to_owned()))
}

/// The number of the archive that an id names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct ArchiveNumber(pub(in crate::store) u64);

impl Record for ArchiveNumber {}

/// A block of an [`Archive`]; the first one says what it has once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct SegmentRecord {
    head: Option<HeadOfSegment>,
    items: Vec<SealedItem>,
}

impl Record for SegmentRecord {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeadOfSegment {
    upstream: String,
    skeleton: SkeletonRecord,
    deleted: Vec<DeletionRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct DeletionRecord {
    id: String,
    published_id: String,
    when: Seconds,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SealedItem {
    id: String,
    published_id: String,
    tick: Seconds,
    standing: StandingRecord,
    winner: SealedVersion,
    conflicts: Vec<SealedVersion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SealedVersion {
    updates: u32,
    deleted: bool,
    noconflicts: Option<bool>,
    history: Vec<UpdateRecord>,
    data: MarkupRecord,
}

impl SegmentRecord {
    /// The blocks of an archive: each holds about `size` bytes of text or one larger entry.
    pub(in crate::store) fn blocks(archive: &Archive, size: usize) -> Vec<Self> {
        let head = HeadOfSegment {
            upstream: archive.upstream.clone(),
            skeleton: SkeletonRecord::from(&archive.skeleton),
            deleted: archive.deleted.iter().map(DeletionRecord::from).collect(),
        };
        let mut blocks = Vec::new();
        let mut open = Self { head: Some(head), items: Vec::new() };
        let mut filled = archive.skeleton.text.len();
        for item in &archive.items {
            let weight = item.shared.winner.data.xml.len();
            if filled > 0 && filled.saturating_add(weight) > size {
                blocks.push(std::mem::replace(&mut open, Self { head: None, items: Vec::new() }));
                filled = 0;
            }
            filled = filled.saturating_add(weight);
            open.items.push(item.into());
        }
        blocks.push(open);
        blocks
    }

    /// The archive of these blocks; an error where the first has no head.
    pub(in crate::store) fn join(
        blocks: impl IntoIterator<Item = Self>,
    ) -> Result<Archive, RecordError> {
        let (mut head, mut items) = (None, Vec::new());
        for block in blocks {
            head = head.or(block.head);
            for item in block.items {
                items.push(Item::try_from(item)?);
            }
        }
        let HeadOfSegment { upstream, skeleton, deleted } = head.ok_or(RecordError::Short)?;
        let deleted = deleted.into_iter().map(Deletion::try_from).collect::<Result<_, _>>()?;
        Ok(Archive { upstream, skeleton: skeleton.try_into()?, items, deleted })
    }
}

impl From<&Deletion> for DeletionRecord {
    fn from(deletion: &Deletion) -> Self {
        Self {
            id: deletion.id.as_str().to_owned(),
            published_id: deletion.published_id.clone(),
            when: deletion.when.into(),
        }
    }
}

impl TryFrom<DeletionRecord> for Deletion {
    type Error = RecordError;

    fn try_from(record: DeletionRecord) -> Result<Self, RecordError> {
        let id = SyncId::new(&record.id)?;
        Ok(Self { id, published_id: record.published_id, when: record.when.into() })
    }
}

impl From<&Item> for SealedItem {
    fn from(item: &Item) -> Self {
        Self {
            id: item.shared.winner.id.as_str().to_owned(),
            published_id: item.published_id.clone(),
            tick: item.tick.into(),
            standing: (&item.standing).into(),
            winner: (&item.shared.winner).into(),
            conflicts: item.shared.conflicts.iter().map(SealedVersion::from).collect(),
        }
    }
}

impl TryFrom<SealedItem> for Item {
    type Error = RecordError;

    fn try_from(record: SealedItem) -> Result<Self, RecordError> {
        let id = SyncId::new(&record.id)?;
        let conflicts = record.conflicts.into_iter().map(|version| version.read(id.clone()));
        let conflicts = conflicts.collect::<Result<_, _>>()?;
        Ok(Self {
            shared: Shared { winner: record.winner.read(id)?, conflicts },
            published_id: record.published_id,
            tick: record.tick.into(),
            standing: record.standing.into(),
            sse091: None,
            extras: None,
            touched: 0,
        })
    }
}

impl From<&Version<Markup>> for SealedVersion {
    fn from(version: &Version<Markup>) -> Self {
        Self {
            updates: version.updates.value(),
            deleted: version.deleted,
            noconflicts: version.noconflicts,
            history: history_record(&version.history),
            data: (&version.data).into(),
        }
    }
}

impl SealedVersion {
    pub(super) fn read(self, id: SyncId) -> Result<Version<Markup>, RecordError> {
        Ok(Version {
            id,
            updates: Count::new(self.updates)?,
            deleted: self.deleted,
            noconflicts: self.noconflicts,
            history: history(self.history)?,
            data: self.data.try_into()?,
        })
    }
}
