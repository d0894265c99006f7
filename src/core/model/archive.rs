//! Sealed segments of a feed's change log: the archive documents of Feed History.

use super::{ArchiveId, Item, LedgerEntry, Skeleton, SyncId, Tick, Time};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Where the sealing of a feed's change log stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Chain {
    /// Every version with this tick or an earlier one stands in an archive; `None`: none does.
    pub sealed: Option<Tick>,
    /// Versions made since then.
    pub unsealed: u32,
    /// The newest archive.
    pub newest: Option<ArchiveId>,
    /// The number of the oldest archive that is kept; those before it were dropped.
    pub first: u64,
    /// The number that the next archive gets.
    pub next: u64,
    /// No archive before this one has the last state of an item that lives: all that lived was
    /// sealed anew in this one and later ones.
    pub free: u64,
    /// What the archives kept take, in bytes as the store keeps them. Set by the store on commit.
    pub bytes: u64,
}

impl Chain {
    /// Whether the version with this tick stands in an archive.
    pub fn is_sealed(&self, tick: Tick) -> bool {
        self.sealed.is_some_and(|sealed| tick <= sealed)
    }

    /// How many archives are kept.
    pub const fn kept(&self) -> u64 {
        self.next.saturating_sub(self.first)
    }
}

/// A segment that a commit seals: which items it lists. The store adds their last state, as of that
/// commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// Its number: that of the archive before it and one.
    pub number: u64,
    pub id: ArchiveId,
    /// The archive before it.
    pub previous: Option<ArchiveId>,
    /// The upstream's address as of now: relative references of its entries are relative to it.
    pub upstream: String,
    /// The items in the order to show, newest first. A tombstone is listed as a deletion.
    pub items: Vec<SyncId>,
}

/// What is known of an archive without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArchiveNote {
    pub number: u64,
    pub id: ArchiveId,
    /// The archive before it, which may have been dropped.
    pub previous: Option<ArchiveId>,
    /// When it was sealed: its feed-level `updated`, which is later than that of the archive before
    /// it and earlier than that of the subscription document.
    pub sealed: Time,
    /// Every version up to this tick stands in it or in an archive before it, where it is the last
    /// of its commit.
    pub until: Tick,
    /// Entries in it.
    pub entries: u32,
    /// Deletions in it.
    pub deletions: u32,
    /// What it takes, in bytes as the store keeps it.
    pub bytes: u64,
    /// When text was last taken out of it.
    pub redacted: Option<Time>,
    /// Whether it was dropped: its address answers 410.
    pub dropped: bool,
}

/// An archive and the one after it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ArchivePlace {
    /// The archive.
    pub note: ArchiveNote,
    /// The id of the archive after it and when that was sealed; `None` for the newest.
    pub next: Option<(ArchiveId, Time)>,
}

/// An item that was deleted, as `at:deleted-entry` tells it (RFC 6721).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Deletion {
    /// The item.
    pub id: SyncId,
    /// The id it was published with.
    pub published_id: String,
    /// When it was deleted.
    pub when: Time,
}

impl From<&Item> for Deletion {
    fn from(item: &Item) -> Self {
        let winner = &item.shared.winner;
        Self {
            id: winner.id.clone(),
            published_id: item.published_id.clone(),
            // Who reads it ignores one that is older than the entry says it was updated (RFC 6721
            // section 3).
            when: winner
                .history
                .topmost()
                .stamp
                .when()
                .unwrap_or(item.tick.time())
                .max(winner.data.card.updated.max(winner.data.card.published).unwrap_or(Time::MIN)),
        }
    }
}

/// What a sealed segment holds. It never changes but by redaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The upstream's address when it was sealed.
    pub upstream: String,
    /// The document around the entries when it was sealed.
    pub skeleton: Skeleton,
    /// The items that lived, in the order to show, each in its last state as of then.
    pub items: Vec<Item>,
    /// The items that were deleted.
    pub deleted: Vec<Deletion>,
}

impl Archive {
    /// What a seal holds: its items as they stand, the tombstones among them as deletions.
    pub fn new(upstream: String, skeleton: Skeleton, items: Vec<Item>) -> Self {
        // Since when it is shown as it is says nothing of an item that does not change any more.
        // Nor is what is in conflict with it told: that is for those who share it.
        let items = items.into_iter().map(|mut item| {
            item.shared.conflicts.clear();
            Item { touched: 0, ..item }
        });
        let (deleted, items): (Vec<Item>, Vec<Item>) =
            items.partition(|item| item.shared.winner.deleted);
        Self { upstream, skeleton, items, deleted: deleted.iter().map(Deletion::from).collect() }
    }

    /// Takes an item's text out: what is left of it is a deletion at `when`. Nothing is left where
    /// its published id is one of `borne`, those of the items that live: an id that is said to be
    /// deleted takes the entry that bears it out of a reader (RFC 6721 section 3). Says whether the
    /// item was there.
    pub fn redact(&mut self, id: &SyncId, when: Time, borne: &HashSet<String>) -> bool {
        let Some(at) = self.items.iter().position(|item| item.shared.winner.id == *id) else {
            return false;
        };
        let item = self.items.remove(at);
        if !borne.contains(&item.published_id) {
            let said = Deletion::from(&item);
            self.deleted.push(Deletion { when: when.max(said.when), ..said });
        }
        true
    }
}

/// How many items left a feed's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = EvictedItems))]
pub struct Evictions {
    /// How many of them are not back.
    pub count: u64,
    /// When the first one left.
    pub since: Option<Time>,
    /// When the last one left.
    pub latest: Option<Time>,
}

impl Evictions {
    /// Notes that `left` items left at `now`, and that `back` ones came back.
    pub fn note(&mut self, left: usize, back: usize, now: Time) {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.count = self.count.saturating_add(number(left)).saturating_sub(number(back));
        if left > 0 {
            self.since.get_or_insert(now);
            self.latest = self.latest.max(Some(now));
        }
    }
}

// Settled items: what of a feed's ledger no document is judged with unless it names it, so that a
// poll costs what its document has, not what the feed ever had.

/// A hash of something that an item is known by: an id, an address without its host, a title. Items
/// that bear the same have the same key; two of one key may still bear something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey(pub u64);

/// The keys that an item gets in the index of its ledger, and those that it loses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReindexedItem {
    pub id: SyncId,
    pub added: Vec<IndexKey>,
    pub removed: Vec<IndexKey>,
}

/// What a change makes of the index of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexUpdate {
    /// The items outside the order of the reader view that each document is judged with, where
    /// these are others than before. The first such list comes with the keys of all items: from
    /// then on all others are settled, and found by their keys.
    pub unsettled: Option<Vec<SyncId>>,
    /// The items whose keys change.
    pub items: Vec<ReindexedItem>,
}

impl IndexUpdate {
    /// No change.
    pub const NONE: Self = Self { unsettled: None, items: Vec::new() };
}

/// Which items that a snapshot lacks are read: settled ones, and such as left the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerQuery {
    /// Whether all settled items are.
    pub whole: bool,
    /// Those with one of these keys, at most [`LedgerQuery::ITEMS_OF_KEY`] of each.
    pub keys: Vec<IndexKey>,
    /// Those with one of these ids.
    pub ids: Vec<SyncId>,
    /// So many of those with the earliest ticks.
    pub oldest: usize,
    /// What left the ledger under one of these names ([`super::LedgerEntry::names`]).
    pub names: Vec<String>,
}

impl LedgerQuery {
    /// The most items that are read of one key. What more bear tells none of them from the others.
    pub const ITEMS_OF_KEY: usize = 64;
    /// The most keys of one query. A document that asks for more is judged with the whole ledger.
    pub const KEYS_LIMIT: usize = 4096;

    /// Whether it asks for nothing.
    pub const fn is_empty(&self) -> bool {
        !self.whole
            && self.keys.is_empty()
            && self.ids.is_empty()
            && self.oldest == 0
            && self.names.is_empty()
    }
}

/// What a query found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundItems {
    /// The items; what left the ledger comes last.
    pub items: Vec<LedgerEntry>,
    /// All items with ticks up to this one are among them; `None`: it was not asked for the oldest.
    pub oldest_to: Option<Tick>,
}

/// The settled items that a snapshot does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettledItems {
    /// How many of them live.
    pub living: u32,
    /// How many of them are tombstones.
    pub tombstones: u32,
    /// The greatest tick of the ledger that has left the sync view's window.
    pub left_window: Option<Tick>,
    /// None of them has a tick that is not after this one.
    pub after: Option<Tick>,
}
