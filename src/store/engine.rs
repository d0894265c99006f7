//! The interface of a database to the store: entries in classes, each with a key and a value, in the order of their
//! keys; changed all or nothing, made durable by a barrier.
//!
//! Implemented by sled ([`super::sled`]), PostgreSQL ([`super::postgres`]) and an ordered map in memory. The meaning
//! of entries is in [`super::embedded`], once for all engines.

mod memory;
#[cfg(any(test, feature = "testing"))]
mod testing;

pub(super) use self::memory::MemoryEngine;
#[cfg(any(test, feature = "testing"))]
pub(super) use self::testing::{EngineCall, WatchedEngine};

use super::StoreError;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

macro_rules! classes {
    ($($(#[$doc:meta])* $class:ident $name:ident $number:literal)+) => {
        /// A class of values. The numbers are part of the format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub(super) enum Class {
            $($(#[$doc])* $class = $number,)+
        }

        impl Class {
            /// All classes.
            pub(super) const ALL: &[Self] = &[$(Self::$class,)+];

            /// Its name.
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$class => stringify!($name),)+ }
            }
        }
    };
}

classes! {
    /// The format number and the identity of the store, by name.
    Gateway gateway 1
    /// Records of feeds, as operators configured them.
    Feeds feeds 2
    /// Poll states of feeds.
    Polls polls 3
    /// The change log: a record for each change.
    Log log 4
    /// Subscriptions of the hub, by id.
    Subscriptions subscriptions 5
    /// Purge marks, notes of large documents while they are taken in, and large changes before their commit.
    Marks marks 6
    /// States of feeds.
    States states 7
    /// The frame of a feed (its order, and the document around its entries); entries of held documents; unsettled
    /// items.
    Frames frames 8
    /// Past frames.
    Past past 9
    /// Ledger entries, with the place of their newest bytes, and conflicting versions.
    Items items 10
    /// Versions with their bytes, and newest bytes without a version.
    Texts texts 11
    /// Items by tick, by the keys of their ledger, by conflicts; stubs by name; archives by id.
    Index index 12
    /// Events, in blocks.
    Events events 13
    /// Notes of archives, by number.
    Archives archives 14
    /// Blocks of archives; written once but for redaction.
    Segments segments 15
    /// Stubs of items that left the ledger.
    Stubs stubs 16
}

/// A class and a key.
pub(super) type RecordKey = (Class, Vec<u8>);

/// Entries to set (`Some`) and to remove (`None`), each with its class and key.
pub(super) type Writes = BTreeMap<RecordKey, Option<Vec<u8>>>;

/// From which key to which.
pub(super) type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// In which order entries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyOrder {
    Ascending,
    Descending,
}

/// What is read together with the beginning of a transaction, which saves round trips.
#[derive(Debug, Default)]
pub(super) struct FirstRead {
    /// The values at these keys.
    pub(super) keys: Vec<RecordKey>,
    /// The first entries of this range.
    pub(super) range: Option<(Class, KeyRange)>,
}

/// A portion of the entries of a range.
#[derive(Debug, Clone)]
pub(super) struct Portion {
    /// The entries, with their keys.
    pub(super) entries: Vec<(Vec<u8>, Bytes)>,
    /// Whether there may be more.
    pub(super) has_more: bool,
}

/// About how many bytes of a range are read at once.
pub(super) const PORTION_BYTES: usize = 1 << 20;
/// About how many bytes of values at many keys are read at once.
pub(super) const MANY_BYTES: usize = 8 << 20;

/// A database.
pub(super) trait Engine: Send + Sync + 'static {
    /// The folder, or the name of the database in messages.
    fn path(&self) -> &str;

    /// Whether records are compressed, and stored as differences.
    fn is_compact(&self) -> bool;

    /// A value.
    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError>;

    /// Whether other processes write to the database as well: then each write is a transaction, and each read goes
    /// over a network.
    fn is_shared(&self) -> bool {
        false
    }

    /// The values of the first of these keys, in their order: at least one, and as many as fit a portion of bytes.
    fn get_many(&self, keys: &[RecordKey]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let (mut values, mut bytes) = (Vec::with_capacity(keys.len()), 0_usize);
        for (class, key) in keys {
            let value = self.get(*class, key)?;
            bytes = bytes.saturating_add(value.as_ref().map_or(0, Bytes::len));
            values.push(value);
            if bytes >= MANY_BYTES {
                break;
            }
        }
        Ok(values)
    }

    /// The first entries of a range, at least one where there is any, at most `limit` unless more were read with the
    /// snapshot. The range is not empty ([`is_empty`]).
    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError>;

    /// The first keys of each of these ranges, each with how many bytes its value takes, at most `limit` of a range. No
    /// range is empty.
    fn sizes(
        &self,
        ranges: &[(Class, KeyRange)],
        limit: usize,
    ) -> Result<Vec<(RecordKey, u64)>, StoreError>;

    /// Sets and removes entries, all or nothing for readers and crashes; not durable yet. After an error it is
    /// unknown which entries were applied. Takes up to several kilobytes of memory an entry: callers pass at most a
    /// few thousand.
    fn apply(&self, writes: Writes) -> Result<(), StoreError>;

    /// Removes the entries of a range without reading them, if the engine can; answers whether it did. No entry of
    /// the range may wait to be applied, and the range is not empty. Not durable yet.
    fn remove_range(&self, _class: Class, _range: &KeyRange) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// The durability barrier: returns when everything written before would survive a loss of power.
    fn pass(&self) -> Result<(), StoreError>;

    /// A snapshot of the database, where other processes write to it; `None`: none do.
    fn snapshot(&self, _first: FirstRead) -> Result<Option<Arc<dyn Engine>>, StoreError> {
        Ok(None)
    }

    /// Wakes callers that wait for a write that has failed. Makes nothing durable.
    fn wake(&self) {}
}

/// The range of the keys that begin with `prefix`.
pub(super) fn beginning_with(prefix: &[u8]) -> KeyRange {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return (Bound::Included(prefix.to_vec()), Bound::Excluded(end));
        }
    }
    (Bound::Included(prefix.to_vec()), Bound::Unbounded)
}

/// Whether no key can be in a range.
pub(super) fn is_empty(range: &KeyRange) -> bool {
    match range {
        (Bound::Included(begin), Bound::Included(end)) => begin > end,
        (
            Bound::Included(begin) | Bound::Excluded(begin),
            Bound::Included(end) | Bound::Excluded(end),
        ) => begin >= end,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ops::RangeBounds;

    proptest! {
        #[test]
        fn a_range_holds_what_begins_with_the_prefix(
            prefix in proptest::collection::vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..4),
            key in proptest::collection::vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..6),
        ) {
            let range = beginning_with(&prefix);
            prop_assert_eq!(range.contains(&key), key.starts_with(&prefix));
            prop_assert!(!is_empty(&range));
        }
    }

    #[test]
    fn ranges_that_hold_nothing_are_told() {
        let key = |byte: u8| vec![byte];
        assert!(is_empty(&(Bound::Included(key(2)), Bound::Included(key(1)))));
        assert!(is_empty(&(Bound::Included(key(1)), Bound::Excluded(key(1)))));
        assert!(!is_empty(&(Bound::Included(key(1)), Bound::Included(key(1)))));
        assert!(!is_empty(&(Bound::Excluded(key(1)), Bound::Unbounded)));
    }
}
