//! The records of a store in a form that does not depend on its database: for export, import and the file of a
//! gateway. Indices are not exported; an import makes them.
//!
//! The records of a feed are consecutive, and its state is the last: an import publishes the feed only when it is
//! whole.

mod digest;
mod export_check;
mod file;

#[cfg(test)]
pub(crate) mod tests;

pub use digest::ExportDigest;
pub(super) use export_check::ExportCheck;
pub use file::{ExportHead, ExportReader, ExportTotals, ExportWriter, MAGIC, PortableError};

pub use super::purge_mark::PurgeMark;
use super::record::{
    ArchiveRecord, FrameRecord, ItemRecord, SegmentRecord, StateRecord, TextRecord, carried_bytes,
};
use super::{AppliedOrigins, ClosedEpoch, Epoch};
use bytes::Bytes;
use postcard::ser_flavors;
use serde::{Deserialize, Serialize};
use tidegate_core::model::{
    Event, FeedName, FeedRecord, HeldEntry, LedgerEntry, Lineage, PollState, Tick, Time,
};
use tidegate_core::websub::Subscription;

/// The fence, lineage, epoch and running time of a store; a store that replaces it continues from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreOrigin {
    /// The number of its last opening.
    pub fence: u64,
    /// Which opening closed which epochs.
    pub lineage: Lineage,
    /// The last closed epoch.
    pub reached: Epoch,
    /// Its running time.
    pub running: Option<Time>,
}

/// An exported record. The order of the variants is part of the file format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExportRecord {
    /// Fence, lineage, epoch and running time: the first record.
    Origin(Box<StoreOrigin>),
    /// A feed's record.
    Feed(Box<FeedRecord>),
    /// The poll state of a feed.
    Poll(Box<PollState>),
    /// A subscription of the hub.
    Subscription(Box<Subscription>),
    /// The purge mark of a purged feed.
    PurgeMark(FeedName, PurgeMark),
    /// A closed epoch of the change log, oldest first.
    Log(ClosedEpoch),
    /// The applied origins of the configuration.
    Sites(AppliedOrigins),
    /// A past frame of a feed, as it is stored (the order, and the document around the entries), and since when it
    /// was in force; oldest first.
    Past(FeedName, Time, #[serde(with = "carried_bytes")] Option<Bytes>),
    /// The frame that is in force.
    Frame(FeedName, Box<FrameRecord>),
    /// The entries of held documents of a feed.
    Held(FeedName, Vec<HeldEntry>),
    /// An item of a feed; its texts follow.
    Item(FeedName, Box<ItemRecord>),
    /// A text of the item before it: first the bytes without a version, then each version by tick, oldest first.
    Text(FeedName, Option<Tick>, Box<TextRecord>),
    /// The stub of an item that left the ledger.
    Stub(FeedName, Box<LedgerEntry>),
    /// A numbered block of the events of a feed, oldest first.
    Events(FeedName, u64, Vec<Event>),
    /// An archive of a feed, by its number; its blocks follow.
    Archive(FeedName, Box<ArchiveRecord>),
    /// A block of the archive before it.
    Block(FeedName, Box<SegmentRecord>),
    /// A feed's state: the last of its pieces.
    State(FeedName, Box<StateRecord>),
}

/// A message to an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportMessage {
    /// The next record.
    Record(ExportRecord),
    /// The last message: there are no more records. If the channel ends without it, the import is not whole.
    End,
}

impl ExportRecord {
    /// The feed that the record belongs to, if to one.
    pub const fn feed(&self) -> Option<&FeedName> {
        match self {
            Self::Origin(_) | Self::Feed(_) | Self::Poll(_) | Self::Subscription(_) => None,
            Self::PurgeMark(..) | Self::Log(_) | Self::Sites(_) => None,
            Self::Past(feed, ..)
            | Self::Frame(feed, _)
            | Self::Held(feed, _)
            | Self::Item(feed, _)
            | Self::Text(feed, ..)
            | Self::Stub(feed, _)
            | Self::Events(feed, ..)
            | Self::Archive(feed, _)
            | Self::Block(feed, _)
            | Self::State(feed, _) => Some(feed),
        }
    }

    /// Its encoded size in bytes.
    pub(super) fn size(&self) -> usize {
        let size = postcard::serialize_with_flavor(self, ser_flavors::Size::default());
        size.unwrap_or(usize::MAX)
    }
}
