//! From a document, or the lack of a new one, to one commit. The only place that makes a version.
//!
//! `ingest` goes through a document's entries; `compare` says what of one changed; `rate_limited` whether
//! the day admits another version; `draft` makes it; `absence` makes deletions and retirements.

mod absence;
mod backfill;
mod character;
mod compare;
mod doubt;
mod draft;
mod evict;
mod gather;
mod head;
mod held;
mod held_entries;
mod ingest;
mod last_changed;
pub mod local;
mod mint;
mod newcomer;
mod operator;
mod outdated;
mod outline_moves;
mod rate_limited;
mod redacted_filter;
mod seal;
mod settled;
mod shared;
mod stand_in;
mod updates;

pub use absence::{decide_pending, judge_replies};
pub use backfill::{Backfilled, backfill};
pub use doubt::read_before;
pub use evict::{EVICTED_AT_ONCE, ITEMS_KEPT, TOMBSTONES_KEPT, age};
pub use gather::{AggregateSource, Credit, LeftOut, gather};
pub use ingest::{take_in, take_in_shared};
pub use operator::{DeletionError, decide, delete_missing, redact};
pub use outdated::{outdated, refreshed};
pub use settled::{ledger_query, wanted_after};
pub use shared::{Issued, LEAP_LIMIT, Peers, needs_complete};

use crate::same_item::Matching;
use crate::{JudgeInput, archive};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::model::{
    Change, EndpointId, Event, EventKind, FeedDocument, FeedName, FeedOptions, FeedState, Snapshot,
    SyncId, Time,
};

/// What a round of one feed knows before it looks at a document.
#[derive(Debug, Clone, Copy)]
pub struct Observation<'a> {
    pub feed: &'a FeedName,
    /// The address that is polled, as configured; empty where there is none.
    pub url: &'a str,
    /// This gateway's endpoint id, the `by` of every version made here.
    pub endpoint: &'a EndpointId,
    /// What the operator says of the feed.
    pub options: &'a FeedOptions,
    /// What the store knows of it; `None` before the first commit.
    pub snapshot: Option<&'a Snapshot>,
    /// The time of the observation by the wall clock: that of ticks, histories and events.
    pub now: Time,
    /// The time of the observation by the running clock: that of everything that waits or ages, and of the times stored
    /// for it.
    pub running_now: Time,
    /// How long changes stay in the sync view.
    pub window: Duration,
    /// How long tombstones are kept.
    pub tombstones: Duration,
    /// The most updates of one item in a day that make a version each.
    pub versions_per_day: u32,
    /// The most items, tombstones included, that the feed's ledger keeps: beyond them the oldest retired
    /// ones leave it.
    pub items: usize,
    /// How archives are made and kept.
    pub archives: archive::Policy,
}

impl Observation<'_> {
    /// What is before the judge with a document.
    fn judge_input<'b>(
        &'b self,
        snapshot: &'b Snapshot,
        document: &'b FeedDocument<'b>,
        matching: &'b Matching,
        is_changed: &'b [bool],
    ) -> JudgeInput<'b> {
        let moved = has_moved(&snapshot.state, self.url);
        let (options, now) = (self.options, self.running_now);
        JudgeInput { snapshot, document, matching, options, is_changed, moved, now }
    }

    /// The fingerprint of the address; 0 where there is none.
    pub fn source(&self) -> u64 {
        source_print(self.url)
    }
}

/// The fingerprint of an address that is polled, as [`tidegate_core::model::FeedState::source`] has it; 0
/// where there is none.
pub fn source_print(url: &str) -> u64 {
    if url.is_empty() { 0 } else { xxhash_rust::xxh3::xxh3_64(url.as_bytes()).max(1) }
}

/// Whether documents came from another address so far, as far as both are known.
pub fn has_moved(state: &FeedState, url: &str) -> bool {
    let source = source_print(url);
    source != 0 && state.source != 0 && state.source != source
}

/// What came of a round.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    /// What to commit; `None` if nothing is worth a write.
    pub change: Option<Change>,
    /// Why the document is held back, if it is.
    pub held: Option<String>,
    /// The earliest time, by the wall clock, at which another look can decide what is pending (a hold, a missing
    /// item); the schedule polls by then.
    pub decision_due: Option<Time>,
    /// What was not taken of what a document shares, and why.
    pub notes: Vec<String>,
    /// What waits of an ill-formed document until it is seen again, in words: it must be judged again
    /// even if it is the same.
    pub doubt: Option<String>,
    /// Items that bear this gateway's name and that the feed does not know: nothing of them was taken,
    /// and whether another feed knows them is to be asked ([`Peers::issued`]).
    pub asks: Vec<SyncId>,
}

impl Verdict {
    /// What happened, for people.
    pub fn events(&self) -> &[Event] {
        self.change.as_ref().map_or(&[], |change| &change.events)
    }

    /// How many items have other bytes in which a reader would see no difference: the bytes are
    /// served, and no version is made.
    pub fn rewritten(&self) -> u32 {
        let latest = self.change.as_ref().map_or(0, |change| change.latest.len());
        u32::try_from(latest).unwrap_or(u32::MAX)
    }

    /// How many events of each kind.
    pub fn counts(&self) -> BTreeMap<EventKind, u32> {
        let mut counts = BTreeMap::new();
        for event in self.events() {
            *counts.entry(event.kind).or_insert(0) += 1;
        }
        counts
    }
}

/// Why a document could not be taken in: the feed would have so many items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the feed would have {0} items, the limit is {ITEMS_LIMIT}; purge it or split it")]
pub struct ObservationError(usize);

/// The most items, retired ones and tombstones included, that the ledger of one feed takes.
pub const ITEMS_LIMIT: usize = 200_000;

/// Refuses a ledger of so many items where they are too many.
const fn check_size(found: usize) -> Result<(), ObservationError> {
    if found > ITEMS_LIMIT { Err(ObservationError(found)) } else { Ok(()) }
}
