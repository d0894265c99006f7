//! Which records share a tree of the engine.
//!
//! A merge of tables writes anew what it meets. So records that are replaced all the time, large ones that are
//! written once, and small ones that are added each have a tree: a poll's 4 KB then cost 8 KB to write in the
//! long run, in one tree 22 KB. One for each class writes no less, and takes a memtable each.
//!
//! Tables are packed by block: records of one feed are next to each other and much alike, keys included. The engine
//! keeps how a tree is packed with the tree, so that a database of an earlier program stays as it was made.

use crate::engine::{Class, KeyRange};
use ::fjall::compaction::Leveled;
use ::fjall::config::{BlockSizePolicy, CompressionPolicy};
use ::fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions};
use std::ops::Bound;
use std::sync::Arc;

/// How many bytes are written before they are sorted into a table, of each keyspace.
const MEMTABLE: u64 = 16 << 20;
/// How many new tables are merged at a time.
const MERGED: u8 = 8;
/// The bytes of a block before it is packed. A key is looked up in an index of blocks, and then in its block.
const BLOCK: u32 = 16 << 10;
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
                    .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
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

#[cfg(test)]
mod tests {
    use super::super::engine::{Workers, open};
    use super::super::{FOLDER, TABLES};
    use super::*;
    use crate::engine::Engine;
    use std::path::Path;

    /// What the tables in a folder take, in bytes.
    fn tables(folder: &Path) -> u64 {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let size = |entry: std::fs::DirEntry| match entry.file_type().unwrap().is_dir() {
            true => tables(&entry.path()),
            false if folder.ends_with(TABLES) => entry.metadata().unwrap().len(),
            false => 0,
        };
        entries.map(size).sum()
    }

    /// Records of one kind, which are much alike.
    fn put(engine: &dyn Engine, numbers: std::ops::Range<u32>) {
        let value = |n: u32| Some(format!("an entry of the ledger, number {n}").into_bytes());
        let record = |n: u32| ((Class::Ledger, n.to_be_bytes().to_vec()), value(n));
        engine.apply(numbers.map(record).collect()).unwrap();
        engine.pass().unwrap();
    }

    fn sort_into_tables(path: &Path) {
        let database = Database::builder(path.join(FOLDER)).open().unwrap();
        let keyspaces = Keyspaces::open(&database).unwrap();
        keyspaces.all().iter().for_each(|it| it.rotate_memtable_and_wait().unwrap());
    }

    fn has_all(engine: &dyn Engine, count: u32) -> bool {
        (0..count).all(|n| engine.get(Class::Ledger, &n.to_be_bytes()).unwrap().is_some())
    }

    /// As an earlier program made it, which packed nothing.
    fn make_unpacked(path: &Path) {
        let database = Database::builder(path.join(FOLDER)).open().unwrap();
        for name in ["feeds", "items", "texts"] {
            let options = || {
                let unpacked = CompressionPolicy::disabled();
                KeyspaceCreateOptions::default().data_block_compression_policy(unpacked)
            };
            database.keyspace(name, options).unwrap();
        }
    }

    #[test]
    fn a_database_whose_tables_are_not_packed_goes_on() {
        let (packed, unpacked) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        make_unpacked(unpacked.path());
        let sizes = [packed.path(), unpacked.path()].map(|path| {
            for begin in [0, 2_000] {
                let engine = open(path, path, Workers::Run).unwrap();
                put(&engine, begin..begin + 2_000);
                drop(engine);
                sort_into_tables(path);
            }
            let engine = open(path, path, Workers::Run).unwrap();
            assert!(has_all(&engine, 4_000));
            drop(engine);
            tables(path)
        });
        assert!(sizes[0] * 2 < sizes[1], "{sizes:?} bytes");
    }
}
