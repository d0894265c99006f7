//! What a feed's content was before: how a reader sees it as of a write, and how a write that is not
//! finished is undone.
//!
//! Each record of a feed's content ([`Class::CONTENT`]) begins with the number of the write that set it.
//! A write that somebody might see in part keeps what each record was before in [`Class::Undo`], in the
//! same transaction; a record that it removes stays as a mark. So a reader as of an earlier write finds
//! there what it is to see; a start that finds a write unfinished puts it back; and once nobody reads as
//! of an earlier write, it goes.

use super::records::Records;
use super::{ahead, keys};
use crate::StoreError;
use crate::engine::{Class, KeyOrder, RecordKey, Writes, beginning_with};
use bytes::Bytes;
use std::ops::Bound;
use tidegate_core::model::FeedName;

/// The entries that one transaction sets or removes, about. So few in unit tests that they see portions.
pub(super) const PORTION: usize = if cfg!(test) { 7 } else { 1024 };
/// The last write that there can be: its number, and a sign beside it, fit what is stored.
pub(super) const LAST: u64 = u64::MAX >> 8;

/// What stands before the bytes of a record of a feed's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WriteMark {
    /// The number of the write that set it.
    pub(super) write: u64,
    /// That write removed the record.
    pub(super) is_removed: bool,
}

impl WriteMark {
    /// The bytes of a record as they are stored.
    fn before(self, value: &[u8]) -> Vec<u8> {
        let mut stored = Vec::with_capacity(value.len() + 4);
        let mut number = self.write << 1 | u64::from(self.is_removed);
        while number > 0x7f {
            stored.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        stored.push(number.to_le_bytes()[0]);
        stored.extend_from_slice(value);
        stored
    }

    /// It, and how many bytes it takes.
    pub(super) fn read(stored: &[u8]) -> Option<(Self, usize)> {
        let mut number = 0_u64;
        for (byte, taken) in stored.iter().zip(1..=9_usize) {
            number |= u64::from(byte & 0x7f) << (7 * (taken - 1));
            if byte & 0x80 == 0 {
                return Some((Self { write: number >> 1, is_removed: number & 1 == 1 }, taken));
            }
        }
        None
    }
}

/// How a write goes into the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// It is whole, and nobody reads the feed meanwhile.
    Nothing,
    /// What was there before.
    Before,
}

/// The entries of the write `write` as they are stored.
pub(super) fn numbered(
    records: &Records,
    writes: Writes,
    write: u64,
    keep: Keep,
) -> Result<Writes, StoreError> {
    let mut made = Writes::new();
    let looks = keep == Keep::Before && records.is_far();
    let touched = writes.keys().filter(|(class, _)| looks && class.is_content());
    let records = &records.ahead(touched.cloned().collect())?;
    for ((class, key), value) in writes {
        if !class.is_content() {
            made.insert((class, key), value);
            continue;
        }
        let removed = WriteMark { write, is_removed: true };
        let mut stored =
            value.map(|value| WriteMark { is_removed: false, ..removed }.before(&value));
        if keep == Keep::Before {
            let before = records.stored_at(class, &key)?;
            if let Some(before) = &before {
                let undo = keys::undo(class, &key, write);
                let undo = undo.ok_or_else(|| records.damaged(class, &key, "it is no feed's"))?;
                let is_first = records.origin(class, &key, before)?.0.write < write;
                // Of a record that this write made itself, nothing was there before.
                let is_marked = is_first
                    || stored.is_none() && records.engine().contains(Class::Undo, &undo)?;
                if is_first {
                    made.insert((Class::Undo, undo), Some(before.to_vec()));
                }
                if is_marked {
                    stored = stored.or_else(|| Some(removed.before(&[])));
                }
            }
        }
        made.insert((class, key), stored);
    }
    Ok(made)
}

/// What the record at `key` was as of the write `until`, which a later one took the place of; `None`
/// where there was none.
pub(super) fn before(
    records: &Records,
    class: Class,
    key: &[u8],
    until: u64,
) -> Result<Option<Bytes>, StoreError> {
    let Some((origin, _, value)) = stored_before(records, class, key, until)? else {
        return Ok(None);
    };
    Ok((!origin.is_removed).then_some(value))
}

/// The same: where it came from, as it was stored, and its bytes.
fn stored_before(
    records: &Records,
    class: Class,
    key: &[u8],
    until: u64,
) -> Result<Option<(WriteMark, Bytes, Bytes)>, StoreError> {
    let key_at = |write| keys::undo(class, key, write).unwrap_or_default();
    let range = (Bound::Included(key_at(until.saturating_add(1))), Bound::Included(key_at(LAST)));
    let found = records.engine().portion(Class::Undo, &range, KeyOrder::Ascending, 1)?;
    let Some((at, stored)) = found.entries.into_iter().next() else { return Ok(None) };
    let (origin, value) = records.origin(Class::Undo, &at, &stored)?;
    // What came later still, and was replaced in its turn, was not there.
    Ok((origin.write <= until).then_some((origin, stored, value)))
}

/// Takes each portion of writes as they are stored.
pub(super) type Sink<'a, E> = dyn FnMut(Writes) -> Result<(), E> + 'a;

/// Undoes what writes behind `last` did to the feed, in portions that can be made anew, and the last of
/// which says that nothing is unfinished.
///
/// What the records were stays in [`Class::Undo`]: a reader may have read a record as the write left it, and
/// looks there next. It is right for whoever looks behind that write, also when another takes its number:
/// a record that the other one leaves alone is as it was. It goes with what is kept of the next write.
pub(super) fn roll_back<E: From<StoreError>>(
    records: &Records,
    feed: &FeedName,
    last: u64,
    sink: &mut Sink<'_, E>,
) -> Result<(), E> {
    let prefix = keys::feed(feed);
    let mut writes = Writes::new();
    for class in Class::CONTENT {
        for entry in records.stored(*class, beginning_with(&prefix)) {
            let (key, stored) = entry?;
            if records.origin(*class, &key, &stored)?.0.write <= last {
                continue;
            }
            let before = stored_before(records, *class, &key, last)?;
            let before = before.map(|(_, stored, _)| stored.to_vec());
            writes.insert((*class, key), before);
            if writes.len() >= PORTION {
                sink(std::mem::take(&mut writes))?;
            }
        }
    }
    writes.insert((Class::Unfinished, prefix), None);
    sink(writes)
}

/// How far a pass over what a feed's records were has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Cleaning {
    /// The last key that was looked at.
    after: Option<Vec<u8>>,
    /// The last write that nobody looks behind, when this pass began.
    until: u64,
    /// The last write that kept anything.
    pub(super) newest: u64,
}

impl Cleaning {
    /// Whether there is something to do, now that nobody looks behind the write `until`.
    pub(super) fn is_due(&self, until: u64) -> bool {
        self.after.is_some() || until > self.until
    }

    /// The entries that take out a portion of what nobody needs who does not look behind the write
    /// `until`, and whether that is all.
    pub(super) fn portion(
        &mut self,
        records: &Records,
        feed: &FeedName,
        until: u64,
    ) -> Result<(Writes, bool), StoreError> {
        let mut range = beginning_with(&keys::feed(feed));
        match &self.after {
            Some(after) => range.0 = Bound::Excluded(after.clone()),
            None => self.until = until,
        }
        let mut due: Vec<(Vec<u8>, RecordKey)> = Vec::new();
        for entry in records.stored(Class::Undo, range) {
            let (at, _) = entry?;
            let (class, key, write) = keys::undone(&at)
                .ok_or_else(|| records.damaged(Class::Undo, &at, "its key names no record"))?;
            if write <= self.until {
                due.push((at, (class, key)));
            }
            if due.len() >= PORTION {
                break;
            }
        }
        let mut writes = Writes::new();
        for some in due.chunks(ahead::ITEMS) {
            let records = match records.is_far() {
                true => &records.ahead(some.iter().map(|(_, record)| record.clone()).collect())?,
                false => records,
            };
            for (at, (class, key)) in some {
                writes.insert((Class::Undo, at.clone()), None);
                if let Some(stored) = records.stored_at(*class, key)? {
                    let origin = records.origin(*class, key, &stored)?.0;
                    if origin.is_removed && origin.write <= self.until {
                        writes.insert((*class, key.clone()), None);
                    }
                }
                // Each entry is one write at least, so a full list of entries ends here too.
                if writes.len() >= PORTION {
                    self.after = Some(at.clone());
                    return Ok((writes, false));
                }
            }
        }
        self.after = None;
        Ok((writes, self.newest <= self.until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{EngineCall, MemoryEngine, WatchedEngine};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const RECORD: Class = Class::Latest;

    fn feed() -> FeedName {
        FeedName::new("news").unwrap()
    }

    fn key(name: &str) -> Vec<u8> {
        [keys::feed(&feed()), name.as_bytes().to_vec()].concat()
    }

    fn records() -> Records {
        Records::of(Arc::new(MemoryEngine::default()))
    }

    fn set(records: &Records, write: u64, keep: Keep, values: &[(&str, Option<&str>)]) {
        let values = values.iter().map(|(name, value)| {
            ((RECORD, key(name)), value.map(|value| value.as_bytes().to_vec()))
        });
        records.write(values.collect(), write, keep).unwrap();
    }

    fn as_of(records: &Records, write: u64, name: &str) -> Option<String> {
        let found = records.at(write).get(RECORD, &key(name)).unwrap();
        found.map(|value| String::from_utf8(value.to_vec()).unwrap())
    }

    fn undo_behind(records: &Records, last: u64) {
        let mut apply = |writes| records.engine().apply(writes);
        roll_back::<StoreError>(records, &feed(), last, &mut apply).unwrap();
    }

    fn clean(records: &Records, until: u64) {
        let mut cleaning = Cleaning::default();
        loop {
            let (writes, is_all) = cleaning.portion(records, &feed(), until).unwrap();
            records.engine().apply(writes).unwrap();
            if is_all {
                break;
            }
        }
    }

    fn count(records: &Records) -> usize {
        let all = || beginning_with(&[]);
        [RECORD, Class::Undo].map(|class| records.stored(class, all()).count()).iter().sum()
    }

    /// A reader finds a record as a change left it, the change is undone, and then the reader looks for
    /// what was there before.
    #[test]
    fn a_reader_between_two_looks_is_told_what_was_there_when_a_change_is_undone() {
        let records = records();
        set(&records, 1, Keep::Nothing, &[("edited", Some("one")), ("removed", Some("one"))]);
        set(&records, 2, Keep::Before, &[("edited", Some("two")), ("removed", None)]);
        let found = |name| records.engine().get(RECORD, &key(name)).unwrap().unwrap();
        let changed = ["edited", "removed"].map(|name| (name, found(name)));
        undo_behind(&records, 1);
        for another in [false, true] {
            for (name, stored) in &changed {
                let seen = records.at(1).seen(RECORD, &key(name), stored).unwrap();
                assert_eq!(seen.as_deref(), Some(&b"one"[..]), "{name}");
            }
            if !another {
                // Another change takes the number, and leaves one of them alone.
                set(&records, 2, Keep::Before, &[("edited", Some("three"))]);
            }
        }
        assert_eq!(as_of(&records, 2, "edited").as_deref(), Some("three"));
        assert_eq!(as_of(&records, 2, "removed").as_deref(), Some("one"));
        clean(&records, 2);
        assert_eq!(count(&records), 2);
    }

    /// Two portions of one change may touch one record.
    #[test]
    fn what_a_change_sets_and_then_removes_is_there_for_who_reads_as_of_before() {
        let records = records();
        set(&records, 1, Keep::Nothing, &[("old", Some("one"))]);
        set(&records, 2, Keep::Before, &[("old", Some("two")), ("new", Some("two"))]);
        set(&records, 2, Keep::Before, &[("old", None), ("new", None)]);
        assert_eq!(as_of(&records, 1, "old").as_deref(), Some("one"));
        assert_eq!(as_of(&records, 1, "new"), None);
        assert_eq!(as_of(&records, 2, "old"), None);
        clean(&records, 2);
        assert_eq!(count(&records), 0);
    }

    /// A change over a record that was removed, which is undone.
    #[test]
    fn a_mark_that_is_put_back_goes_with_what_is_kept() {
        let records = records();
        set(&records, 1, Keep::Nothing, &[("it", Some("one"))]);
        set(&records, 2, Keep::Before, &[("it", None)]);
        set(&records, 3, Keep::Before, &[("it", Some("three"))]);
        assert_eq!(as_of(&records, 1, "it").as_deref(), Some("one"));
        clean(&records, 2);
        undo_behind(&records, 2);
        assert_eq!(as_of(&records, 2, "it"), None);
        clean(&records, LAST);
        assert_eq!(count(&records), 0);
    }

    /// Each read of a database far away is a round trip, and whoever writes waits for it.
    #[test]
    fn the_records_of_a_portion_are_read_at_once_where_they_are_far_away() {
        let names: Vec<String> = (0..3 * PORTION).map(|item| format!("item-{item:02}")).collect();
        // One that goes takes two entries, so that a portion has four of them.
        for (after, left, portions) in [(Some("two"), names.len(), 3), (None, 0, 6)] {
            let reads = Arc::new(AtomicUsize::new(0));
            let noted = Arc::clone(&reads);
            let watch = Box::new(move |call: EngineCall| {
                if matches!(call, EngineCall::Read(classes) if classes.contains(&RECORD)) {
                    noted.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, StoreError>(())
            });
            let (engine, far) = (Arc::new(MemoryEngine::default()), Some(Arc::default()));
            let records = Records::of(Arc::new(WatchedEngine { engine, watch, far }));
            for (write, value) in [(1, Some("one")), (2, after)] {
                let values: Vec<_> = names.iter().map(|name| (name.as_str(), value)).collect();
                let keep = if write == 1 { Keep::Nothing } else { Keep::Before };
                set(&records, write, keep, &values);
            }
            reads.store(0, Ordering::Relaxed);
            clean(&records, 2);
            assert_eq!(reads.load(Ordering::Relaxed), portions);
            assert_eq!(count(&records), left);
        }
    }

    #[test]
    fn what_stands_before_a_record_is_read_as_it_was_written() {
        for write in [0, 1, 63, 64, 8_191, 8_192, 1 << 40, LAST] {
            for is_removed in [false, true] {
                let origin = WriteMark { write, is_removed };
                let stored = origin.before(b"rest");
                let (read, taken) = WriteMark::read(&stored).unwrap();
                assert_eq!((read, stored.get(taken..)), (origin, Some(&b"rest"[..])));
                assert_eq!(WriteMark::read(stored.get(..taken - 1).unwrap()), None);
            }
        }
        assert_eq!(WriteMark::read(&[0xff; 20]), None);
    }
}
