//! Ranges of entries that were read at once, where the database is reached by the network.

use crate::engine::{Class, KeyRange, MemoryEngine, RangeEntries, RecordKey, beginning_with};
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

/// Whole ranges, each of the keys of a class that begin with a prefix. No prefix of a class begins with another one.
#[derive(Default)]
pub(super) struct RangesAhead {
    prefixes: HashMap<Class, BTreeSet<Vec<u8>>>,
    entries: MemoryEngine,
}

impl RangesAhead {
    /// These ranges, each with all of its entries.
    pub(super) fn new(ranges: Vec<(RecordKey, RangeEntries)>) -> Self {
        let mut ahead = Self::default();
        for ((class, prefix), entries) in ranges {
            ahead.prefixes.entry(class).or_default().insert(prefix);
            ahead.entries.extend(class, entries);
        }
        ahead
    }

    /// The entries, where the range that the key is in is one of them.
    pub(super) fn with_key(&self, class: Class, key: &[u8]) -> Option<&MemoryEngine> {
        self.prefix(class, key).map(|_| &self.entries)
    }

    /// The entries, where the whole range is within one of them.
    pub(super) fn with_range(
        &self,
        class: Class,
        (begin, end): &KeyRange,
    ) -> Option<&MemoryEngine> {
        let (Bound::Included(first) | Bound::Excluded(first)) = begin else { return None };
        let prefix = self.prefix(class, first)?;
        let is_within = match end {
            Bound::Included(last) => last.starts_with(prefix),
            Bound::Excluded(beyond) => {
                beyond.starts_with(prefix) || *end == beginning_with(prefix).1
            }
            Bound::Unbounded => false,
        };
        is_within.then_some(&self.entries)
    }

    /// What the keys of the range begin with that a key is in.
    fn prefix(&self, class: Class, key: &[u8]) -> Option<&[u8]> {
        let up_to: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Included(key));
        let prefix = self.prefixes.get(&class)?.range::<[u8], _>(up_to).next_back()?;
        key.starts_with(prefix).then_some(prefix.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Engine, KeyOrder};
    use bytes::Bytes;

    const READ: Class = Class::Versions;

    fn key(text: &str) -> Vec<u8> {
        text.as_bytes().to_vec()
    }

    fn range(prefix: &str, keys: &[&str]) -> (RecordKey, RangeEntries) {
        let entry = |text: &&str| (key(text), Bytes::from(key(text)));
        ((READ, key(prefix)), keys.iter().map(entry).collect())
    }

    fn ahead() -> RangesAhead {
        RangesAhead::new(vec![
            range("news\0a\0", &["news\0a\x001", "news\0a\x002"]),
            range("news\0c\0", &[]),
        ])
    }

    #[test]
    fn keys_of_ranges_that_were_read_are_known_and_others_are_not() {
        let ahead = ahead();
        for within in ["news\0a\0", "news\0a\x001", "news\0a\0x", "news\0c\x009"] {
            assert!(ahead.with_key(READ, within.as_bytes()).is_some(), "{within:?}");
            assert!(ahead.with_key(Class::Bodies, within.as_bytes()).is_none(), "{within:?}");
        }
        for without in
            ["", "news\0", "news\0a", "news\0a1\0", "news\0b\0", "news\0b\x001", "other\0"]
        {
            assert!(ahead.with_key(READ, without.as_bytes()).is_none(), "{without:?}");
        }
        let read = ahead.with_key(READ, b"news\0a\x002").unwrap();
        assert_eq!(read.get(READ, b"news\0a\x002").unwrap().unwrap(), "news\0a\x002");
        assert_eq!(read.get(READ, b"news\0a\x003").unwrap(), None);
    }

    #[test]
    fn ranges_within_those_that_were_read_are_known_and_longer_ones_are_not() {
        let ahead = ahead();
        let all = beginning_with(b"news\0a\0");
        let behind_first = (Bound::Excluded(key("news\0a\x001")), all.1.clone());
        let up_to_first = (all.0.clone(), Bound::Included(key("news\0a\x001")));
        for (within, count) in [(&all, 2), (&behind_first, 1), (&up_to_first, 1)] {
            let read = ahead.with_range(READ, within).unwrap();
            let found = read.portion(READ, within, KeyOrder::Ascending, 9).unwrap();
            assert_eq!(found.entries.len(), count, "{within:?}");
        }
        let longer = [
            beginning_with(b"news\0"),
            beginning_with(b"news\0b\0"),
            (all.0.clone(), Bound::Included(key("news\0b\0"))),
            (all.0.clone(), Bound::Excluded(key("news\0c\x001"))),
            (all.0.clone(), Bound::Unbounded),
            (Bound::Unbounded, all.1.clone()),
        ];
        for longer in &longer {
            assert!(ahead.with_range(READ, longer).is_none(), "{longer:?}");
        }
        assert!(ahead.with_range(Class::Bodies, &all).is_none());
    }
}
