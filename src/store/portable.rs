//! Everything that a store keeps, in pieces that do not depend on how it keeps them: what one store
//! hands to another, and what stands in the file that a gateway is carried in.
//!
//! A feed's pieces come together, and its state comes last: whoever takes them in shows the feed
//! only when it is whole.

mod file;
mod fit;

#[cfg(test)]
mod tests;

pub use file::{ExportReader, ExportTotals, ExportWriter, MAGIC, PortableError, UNRELEASED_MAGIC};
pub(super) use fit::Fit;

pub use super::purge_mark::PurgeMark;
use super::{ClosedEpoch, KeptVersion, lineage};
use crate::model::{
    Archive, ArchiveNote, Event, FeedName, FeedRecord, FeedState, Gap, HeldEntry, LedgerEntry,
    Markup, PollState, Skeleton, Stub, SyncId, Tick, Time, Version,
};
use crate::websub::Subscription;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// An item with everything that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedItem {
    /// What the ledger has of it.
    pub known: LedgerEntry,
    /// Its newest bytes.
    pub newest: Markup,
    /// What is in conflict with its current version.
    pub conflicts: Vec<Version<Markup>>,
    /// Its kept versions, newest first; in the file each is a record of its own.
    #[serde(skip)]
    pub versions: Vec<KeptVersion>,
}

/// A piece of what a store keeps. The order of its kinds is part of the file's format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExportRecord {
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
    /// A document around a feed's entries, and since when it was in force; oldest first, the last
    /// one is still.
    Skeleton(FeedName, Time, Box<Skeleton>),
    /// An order of a feed's reader view likewise.
    Order(FeedName, Time, Vec<SyncId>),
    /// What is kept of a feed's held documents.
    Held(FeedName, Vec<HeldEntry>),
    /// An item of a feed.
    Item(FeedName, Box<CarriedItem>),
    /// What is left of an item that left a feed's ledger.
    Stub(FeedName, Box<Stub>),
    /// What happened in a feed, oldest first.
    Event(FeedName, Box<Event>),
    /// An archive of a feed, by its number; without content where it was dropped.
    Archive(FeedName, Box<ArchiveNote>, #[serde(skip)] Option<Box<Archive>>),
    /// A feed's state: the last of its pieces.
    State(FeedName, Box<FeedState>),
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
            Self::Feed(_) | Self::Poll(_) | Self::Subscription(_) => None,
            Self::Floor(..) | Self::Log(_) => None,
            Self::Skeleton(feed, ..)
            | Self::Order(feed, ..)
            | Self::Held(feed, _)
            | Self::Item(feed, _)
            | Self::Stub(feed, _)
            | Self::Event(feed, _)
            | Self::Archive(feed, ..)
            | Self::State(feed, _) => Some(feed),
        }
    }
}

/// The state of a feed that goes on from a copy, at the time `now`. `known`: the last moment that the
/// copy knows of ([`ExportRecord::latest`]).
///
/// The store that it was copied from may have gone on, and subscribers with it: they hold ticks and
/// tags that this one does not know. So a new window begins after all of them, and every subscriber
/// finds itself out of sync and reads the complete feed (SSE 1.0 section 4.1). That the copy does not know
/// what was made since is noted ([`FeedState::gap`]).
pub fn restarted(mut state: FeedState, known: Time, now: Time) -> FeedState {
    let second = Duration::from_secs(1);
    if let Some(last) = state.tick {
        let tick = Tick::next(now, Some(last));
        state.tick = Some(tick);
        state.window_start = Some(tick);
        state.complete_start = state.complete_start.or(Some(tick));
    }
    let until = state.tick.map_or(now, |tick| now.max(tick.time()));
    state.gap = Some(Gap { since: known.min(until), until }.after(state.gap));
    let found = state.render_revision;
    state.render_revision = found.saturating_add(1);
    state.deltas_from = state.render_revision;
    state.updated_at = now.max(state.updated_at.plus(second));
    match lineage::mark() {
        Some(mark) => state.lineage.go_on(mark, found),
        // Nobody could tell what was made from now on: nothing is claimed of any revision.
        None => state.lineage = crate::model::Lineage::default(),
    }
    state
}
