//! Settled items: what of a feed's ledger no document is judged with unless it names it, so that a poll
//! costs what its document has, not what the feed ever had.

use super::{LedgerEntry, SyncId, Tick};

/// A hash of something that an item is known by: an id, an address without its host, a title. Items that
/// bear the same have the same key; two of one key may still bear something else.
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
    /// The items outside the order of the reader view that each document is judged with, where these are
    /// others than before. The first such list comes with the keys of all items: from then on all others
    /// are settled, and found by their keys.
    pub unsettled: Option<Vec<SyncId>>,
    /// The items whose keys change.
    pub items: Vec<ReindexedItem>,
}

impl IndexUpdate {
    /// No change.
    pub const NONE: Self = Self { unsettled: None, items: Vec::new() };
}

/// Which settled items are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LedgerQuery {
    /// Those with one of these keys, at most [`LedgerQuery::ITEMS_OF_KEY`] of each.
    pub keys: Vec<IndexKey>,
    /// Those with one of these ids.
    pub ids: Vec<SyncId>,
    /// So many of those with the earliest ticks.
    pub oldest: usize,
}

impl LedgerQuery {
    /// The most items that are read of one key. What more bear tells none of them from the others.
    pub const ITEMS_OF_KEY: usize = 64;
    /// The most keys of one query. A document that asks for more is judged with the whole ledger.
    pub const KEYS_LIMIT: usize = 4096;

    /// Whether it asks for nothing.
    pub const fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ids.is_empty() && self.oldest == 0
    }
}

/// What of the settled items a document is judged with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedItems {
    /// All of them.
    Whole,
    /// What this finds; nothing where it is empty.
    Found(LedgerQuery),
}

/// What a query found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundItems {
    /// The items, in the order of their ids, each once.
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
