//! Archives on disk: what is known of each, and their content in blocks.

use super::RecordError;
use serde::{Deserialize, Serialize};
use tidegate_core::model::{
    Archive, ArchiveNote, Deletion, Item, ItemStatus, Markup, Shared, Skeleton, Tick, Version,
};

/// An [`ArchiveNote`], and how many blocks the content has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArchiveRecord {
    pub(crate) note: ArchiveNote,
    /// The blocks of its content; none where it was dropped.
    pub(crate) blocks: u32,
}

/// A block of an [`Archive`]; the first one says what it has once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRecord {
    head: Option<HeadOfSegment>,
    items: Vec<SealedItem>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeadOfSegment {
    upstream: String,
    skeleton: Skeleton,
    deleted: Vec<Deletion>,
}

/// An item as it was sealed: what it is besides is none of the archive's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SealedItem {
    published_id: String,
    tick: Tick,
    standing: ItemStatus,
    winner: Version<Markup>,
    conflicts: Vec<Version<Markup>>,
}

impl SegmentRecord {
    /// The blocks of an archive: each holds about `size` bytes of text or one larger entry.
    pub(crate) fn blocks(archive: &Archive, size: usize) -> Vec<Self> {
        let head = HeadOfSegment {
            upstream: archive.upstream.clone(),
            skeleton: archive.skeleton.clone(),
            deleted: archive.deleted.clone(),
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

    /// Whether it is the first block of its archive.
    pub(crate) const fn is_first(&self) -> bool {
        self.head.is_some()
    }

    /// The archive of these blocks; an error where the first has no head.
    pub(crate) fn join(blocks: impl IntoIterator<Item = Self>) -> Result<Archive, RecordError> {
        let (mut head, mut items) = (None, Vec::new());
        for block in blocks {
            head = head.or(block.head);
            items.extend(block.items.into_iter().map(Item::from));
        }
        let HeadOfSegment { upstream, skeleton, deleted } = head.ok_or(RecordError::Short)?;
        Ok(Archive { upstream, skeleton, items, deleted })
    }
}

impl From<&Item> for SealedItem {
    fn from(item: &Item) -> Self {
        Self {
            published_id: item.published_id.clone(),
            tick: item.tick,
            standing: item.standing.clone(),
            winner: item.shared.winner.clone(),
            conflicts: item.shared.conflicts.clone(),
        }
    }
}

impl From<SealedItem> for Item {
    fn from(sealed: SealedItem) -> Self {
        Self {
            shared: Shared { winner: sealed.winner, conflicts: sealed.conflicts },
            published_id: sealed.published_id,
            tick: sealed.tick,
            standing: sealed.standing,
            sse091: None,
            extras: None,
            touched: 0,
        }
    }
}
