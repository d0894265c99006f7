//! Which records share a tree of the engine.
//!
//! A merge of tables writes anew what it meets. So records that are replaced all the time, large ones that are
//! written once, and small ones that are added each have a tree: a poll's 4 KB then cost 8 KB to write in the
//! long run, in one tree 22 KB. One for each class writes no less, and takes a memtable each.

use crate::store::engine::{Class, KeyRange};
use ::fjall::compaction::Leveled;
use ::fjall::config::BlockSizePolicy;
use ::fjall::{Database, Keyspace, KeyspaceCreateOptions};
use std::ops::Bound;
use std::sync::Arc;

/// How many bytes are written before they are sorted into a table, of each keyspace.
const MEMTABLE: u64 = 16 << 20;
/// How many new tables are merged at a time.
const MERGED: u8 = 8;
/// The bytes of a block, before which the engine looks a key up in an index.
const BLOCK: u32 = 8 << 10;
/// Where the number of the last write stands, among the feeds; no class has this number.
pub(super) const WRITES_KEY: &[u8] = &[u8::MAX];

/// How many trees a database has: these, and one that the engine keeps for itself.
pub(super) const TREES: usize = 4;

/// The trees.
pub(super) struct Keyspaces {
    /// What a feed has one of: it is replaced.
    pub(super) feeds: Keyspace,
    /// What an item has: it is added and removed, and small.
    items: Keyspace,
    /// Texts, and documents as they were.
    texts: Keyspace,
}

impl Keyspaces {
    /// Opens or makes them.
    pub(super) fn open(database: &Database) -> ::fjall::Result<Self> {
        let open = |name: &str| {
            database.keyspace(name, || {
                let merging = Leveled::default().with_l0_threshold(MERGED);
                KeyspaceCreateOptions::default()
                    .max_memtable_size(MEMTABLE)
                    .data_block_size_policy(BlockSizePolicy::all(BLOCK))
                    .compaction_strategy(Arc::new(merging))
                    .manual_journal_persist(true)
            })
        };
        Ok(Self { feeds: open("feeds")?, items: open("items")?, texts: open("texts")? })
    }

    /// That of a class.
    pub(super) fn of_class(&self, class: Class) -> &Keyspace {
        match class {
            Class::Gateway
            | Class::Feeds
            | Class::States
            | Class::Skeletons
            | Class::Orders
            | Class::Polls
            | Class::Attempts
            | Class::Floors
            | Class::Subscriptions
            | Class::Histories
            | Class::Unfinished
            | Class::Unsettled => &self.feeds,
            Class::Bodies
            | Class::Latest
            | Class::Kept
            | Class::Conflicts
            | Class::PastOrders
            | Class::PastSkeletons
            | Class::Segments
            | Class::Undo => &self.texts,
            Class::Ledger
            | Class::Heads
            | Class::ByTick
            | Class::Versions
            | Class::Events
            | Class::Log
            | Class::Stubs
            | Class::StubNames
            | Class::LedgerIndex
            | Class::Archives
            | Class::ArchiveIds => &self.items,
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> [&Keyspace; 3] {
        [&self.feeds, &self.items, &self.texts]
    }
}

/// The engine's key of a record.
pub(super) fn class_key(class: Class, key: &[u8]) -> Vec<u8> {
    [&[class as u8], key].concat()
}

/// The engine's range of a range of records.
pub(super) fn class_range(class: Class, range: &KeyRange) -> KeyRange {
    let (begin, end) = range;
    let begin = match begin {
        Bound::Included(key) => Bound::Included(class_key(class, key)),
        Bound::Excluded(key) => Bound::Excluded(class_key(class, key)),
        Bound::Unbounded => Bound::Included(class_key(class, &[])),
    };
    let end = match end {
        Bound::Included(key) => Bound::Included(class_key(class, key)),
        Bound::Excluded(key) => Bound::Excluded(class_key(class, key)),
        Bound::Unbounded => Bound::Excluded(vec![(class as u8).saturating_add(1)]),
    };
    (begin, end)
}
