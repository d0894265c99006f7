//! Archives on disk: what is known of each, and their content in blocks.

use super::RecordError;
use serde::{Deserialize, Serialize};
use tidegate_core::model::{Archive, ArchiveNote, Deletion, Item, Skeleton};

/// An [`ArchiveNote`], and how many blocks the content has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveRecord {
    pub(crate) note: ArchiveNote,
    /// The blocks of its content; none where it was dropped.
    pub(crate) blocks: u32,
}

/// A block of an [`Archive`]; the first one says what it has once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRecord {
    head: Option<HeadOfSegment>,
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct HeadOfSegment {
    upstream: String,
    skeleton: Skeleton,
    deleted: Vec<Deletion>,
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
            // What it is besides is none of the archive's.
            open.items.push(Item { sse091: None, extras: None, touched: 0, ..item.clone() });
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
            items.extend(block.items);
        }
        let HeadOfSegment { upstream, skeleton, deleted } = head.ok_or(RecordError::Short)?;
        Ok(Archive { upstream, skeleton, items, deleted })
    }
}
