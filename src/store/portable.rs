//! Everything that a store keeps, in pieces that do not depend on its database: what one store hands to another, and
//! what stands in the file that a gateway is carried in. Indices are no part of it: whoever takes it in makes its own.
//!
//! A feed's pieces come together, and its state comes last: whoever takes them in shows the feed
//! only when it is whole.

mod copy;
mod digest;
mod file;
mod fit;

#[cfg(test)]
mod tests;

pub use copy::Copying;
pub(super) use copy::{announcement, restarted};
pub use digest::ExportDigest;
pub use file::{ExportHead, ExportReader, ExportTotals, ExportWriter, MAGIC, PortableError};
pub(super) use fit::Fit;

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

/// What a store had reached. One that takes its place goes on from there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreOrigin {
    /// The number of its last opening.
    pub fence: u64,
    /// Which opening closed which epochs.
    pub lineage: Lineage,
    /// The last closed epoch.
    pub reached: Epoch,
    /// Where the running time stood.
    pub running: Option<Time>,
}

/// A piece of what a store keeps. The order of its kinds is part of the file's format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExportRecord {
    /// What the store had reached: the first piece.
    Origin(Box<StoreOrigin>),
    /// A feed's record.
    Feed(Box<FeedRecord>),
    /// What polling remembers of a feed.
    Poll(Box<PollState>),
    /// A subscription of the hub.
    Subscription(Box<Subscription>),
    /// What is left of a purged feed.
    Floor(FeedName, PurgeMark),
    /// A closed epoch of the change log, oldest first.
    Log(ClosedEpoch),
    /// Where the sites of the configuration were.
    Sites(AppliedOrigins),
    /// An order of a feed with the document around its entries, as it is stored, and since when it was in force; none
    /// is in force any more, and the oldest comes first.
    Past(FeedName, Time, #[serde(with = "carried_bytes")] Option<Bytes>),
    /// The order that is in force, with the document around the entries.
    Frame(FeedName, Box<FrameRecord>),
    /// What is kept of a feed's held documents.
    Held(FeedName, Vec<HeldEntry>),
    /// An item of a feed; its texts follow.
    Item(FeedName, Box<ItemRecord>),
    /// A text of the item before it: first bytes that made no version, then each version under its tick, oldest first.
    Text(FeedName, Option<Tick>, Box<TextRecord>),
    /// What is left of an item that left a feed's ledger.
    Stub(FeedName, Box<LedgerEntry>),
    /// What happened in a feed: a block by its number, oldest first.
    Events(FeedName, u64, Vec<Event>),
    /// An archive of a feed, by its number; its blocks follow.
    Archive(FeedName, Box<ArchiveRecord>),
    /// A block of the archive before it.
    Block(FeedName, Box<SegmentRecord>),
    /// A feed's state: the last of its pieces.
    State(FeedName, Box<StateRecord>),
}

/// What a store is handed while it takes in another's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportMessage {
    /// The next piece.
    Record(ExportRecord),
    /// The last message: that was all of it. Where the channel ends without it, the rest is missing.
    End,
}

impl ExportRecord {
    /// A moment at which the gateway that this was copied from did something, as far as it tells.
    pub fn latest(&self) -> Option<Time> {
        match self {
            Self::Log(sealed) => Some(sealed.at),
            Self::Poll(poll) => poll.refreshed,
            Self::Events(_, _, events) => events.last().map(|event| event.at),
            Self::State(_, head) => Some(head.latest()),
            _ => None,
        }
    }

    /// The feed that it is a part of; `None` for what stands by itself.
    pub const fn feed(&self) -> Option<&FeedName> {
        match self {
            Self::Origin(_) | Self::Feed(_) | Self::Poll(_) | Self::Subscription(_) => None,
            Self::Floor(..) | Self::Log(_) | Self::Sites(_) => None,
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

    /// How many bytes it takes where it is encoded.
    pub(super) fn size(&self) -> usize {
        let size = postcard::serialize_with_flavor(self, ser_flavors::Size::default());
        size.unwrap_or(usize::MAX)
    }
}
