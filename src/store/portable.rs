//! Everything that a store keeps, in pieces that do not depend on how it keeps them: what one store
//! hands to another, and what stands in the file that a gateway is carried in.
//!
//! A feed's pieces come together, and its state comes last: whoever takes them in shows the feed
//! only when it is whole.

mod copy;
mod digest;
mod file;
mod fit;

#[cfg(test)]
mod tests;

pub use copy::{Copying, restarted};
pub use digest::ExportDigest;
pub use file::{ExportHead, ExportReader, ExportTotals, ExportWriter, MAGIC, PortableError};
pub(super) use fit::Fit;

pub use super::purge_mark::PurgeMark;
pub use super::record::SegmentRecord;
use super::{AppliedOrigins, ClosedEpoch, Epoch, KeptVersion};
use postcard::ser_flavors;
use serde::{Deserialize, Serialize};
use tidegate_core::model::{
    ArchiveNote, Event, FeedName, FeedRecord, FeedState, HeldEntry, LedgerEntry, Lineage, Markup,
    PollState, Skeleton, SyncId, Tick, Time, Version,
};
use tidegate_core::websub::Subscription;

/// An item with what is kept of it, but for its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedItem {
    /// What the ledger has of it.
    pub known: LedgerEntry,
    /// Its newest bytes.
    pub newest: Markup,
    /// What is in conflict with its current version.
    pub conflicts: Vec<Version<Markup>>,
}

/// The order of a feed's reader view and the document around its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedFrame {
    /// Since when it was in force.
    pub since: Time,
    pub order: Vec<SyncId>,
    pub skeleton: Option<Skeleton>,
}

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
    /// An order of a feed with the document around its entries; oldest first, the last one is still in force.
    Frame(FeedName, Box<CarriedFrame>),
    /// What is kept of a feed's held documents.
    Held(FeedName, Vec<HeldEntry>),
    /// An item of a feed; its versions follow.
    Item(FeedName, Box<CarriedItem>),
    /// What is left of an item that left a feed's ledger.
    Stub(FeedName, Box<LedgerEntry>),
    /// What happened in a feed, oldest first.
    Event(FeedName, Box<Event>),
    /// An archive of a feed, by its number; its blocks follow, unless it was dropped.
    Archive(FeedName, Box<ArchiveNote>),
    /// A feed's state: the last of its pieces.
    State(FeedName, Box<FeedState>),
    /// Where the sites of the configuration were; it stands by itself.
    Sites(AppliedOrigins),
    /// A kept version of the item before it, newest first.
    Version(FeedName, Box<KeptVersion>),
    /// A block of the archive before it, likewise.
    Block(FeedName, Box<SegmentRecord>),
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
            Self::Event(_, event) => Some(event.at),
            Self::State(_, state) => state.tick.map(Tick::time).max(Some(state.updated_at)),
            _ => None,
        }
    }

    /// The feed that it is a part of; `None` for what stands by itself.
    pub const fn feed(&self) -> Option<&FeedName> {
        match self {
            Self::Origin(_) | Self::Feed(_) | Self::Poll(_) | Self::Subscription(_) => None,
            Self::Floor(..) | Self::Log(_) | Self::Sites(_) => None,
            Self::Frame(feed, _)
            | Self::Held(feed, _)
            | Self::Item(feed, _)
            | Self::Stub(feed, _)
            | Self::Event(feed, _)
            | Self::Archive(feed, _)
            | Self::State(feed, _)
            | Self::Version(feed, _)
            | Self::Block(feed, _) => Some(feed),
        }
    }

    /// How many bytes it takes where it is encoded.
    pub(super) fn size(&self) -> usize {
        let size = postcard::serialize_with_flavor(self, ser_flavors::Size::default());
        size.unwrap_or(usize::MAX)
    }
}
