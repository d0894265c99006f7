//! Encodes and decodes the records of a database. Errors name the entry.

use super::redo::{PORTION, PORTION_BYTES};
use crate::StoreError;
use crate::engine::{
    self, Class, Engine, FirstRead, KeyOrder, KeyRange, RecordKey, Writes, beginning_with,
};
use crate::limits::{CHAIN_LIMIT, VALUE_LIMIT};
use crate::record::{
    Record, RecordError, TextRecord, decode, encode, encode_plain, packing, read_fields,
};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::iter;
use std::ops::{Bound, Deref};
use std::sync::{Arc, Weak};
use tidegate_core::model::Time;

/// How many entries of a range are read at once: at first, and at most.
const PORTIONS: (usize, usize) = (8, 512);
/// How many are read at first where each read is a round trip.
const FIRST_OF_SHARED: usize = 64;

/// Encodes and decodes records; knows where they are, for errors.
#[derive(Clone)]
pub(crate) struct RecordCodec {
    path: Arc<str>,
    /// Whether records are compressed, and stored as differences.
    is_compact: bool,
}

/// The records of a database.
#[derive(Clone)]
pub(crate) struct Records {
    engine: Arc<dyn Engine>,
    codec: RecordCodec,
    /// The values of keys that were read already; `None` where there is none.
    read: Arc<HashMap<RecordKey, Option<Bytes>>>,
    /// Whether everything that will be asked for was read: another read would be a round trip where a transaction
    /// holds locks.
    is_loaded: bool,
}

impl Deref for Records {
    type Target = RecordCodec;

    fn deref(&self) -> &RecordCodec {
        &self.codec
    }
}

impl Records {
    /// The records of `engine`.
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Self {
        let codec = RecordCodec { path: engine.path().into(), is_compact: engine.is_compact() };
        Self { engine, codec, read: Arc::default(), is_loaded: false }
    }

    /// A snapshot of the records, where other processes write to the database.
    pub(super) fn snapshot(&self, first: FirstRead) -> Result<Option<Self>, StoreError> {
        Ok(self.engine.snapshot(first)?.map(Self::new))
    }

    /// The database.
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// A weak handle of the database.
    pub(super) fn watch(&self) -> Weak<dyn Engine> {
        Arc::downgrade(&self.engine)
    }

    /// Reads the values at these keys at once, and keeps them for later reads.
    pub(super) fn prefetch(&mut self, keys: BTreeSet<RecordKey>) -> Result<(), StoreError> {
        let keys: Vec<RecordKey> = keys.into_iter().collect();
        let values = self.get_all(&keys)?;
        Arc::make_mut(&mut self.read).extend(keys.into_iter().zip(values));
        Ok(())
    }

    /// From now on only what was prefetched is asked for.
    pub(super) fn end_loading(&mut self) {
        self.is_loaded = true;
    }

    /// The database, for a read of what was not prefetched.
    fn unread(&self, class: Class, key: &[u8]) -> &dyn Engine {
        debug_assert!(!self.is_loaded, "{} was not loaded", place(class, key));
        &*self.engine
    }

    /// The bytes of a record.
    pub(super) fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        // Where nothing was prefetched, as for all readers, the key is not copied.
        if self.read.is_empty() {
            return self.engine.get(class, key);
        }
        match self.read.get(&(class, key.to_vec())) {
            Some(read) => Ok(read.clone()),
            None => self.unread(class, key).get(class, key),
        }
    }

    /// The bytes of the first of many records, in the order of their keys: at least one.
    pub(super) fn get_many(&self, keys: &[RecordKey]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let read: Vec<_> = keys.iter().map_while(|key| self.read.get(key).cloned()).collect();
        match keys.first().filter(|_| read.is_empty()) {
            Some((class, key)) => self.unread(*class, key).get_many(keys),
            None => Ok(read),
        }
    }

    /// The bytes of many records, in the order of their keys.
    fn get_all(&self, keys: &[RecordKey]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let mut values = Vec::with_capacity(keys.len());
        while let Some(left) = keys.get(values.len()..).filter(|left| !left.is_empty()) {
            values.extend(self.get_many(left)?);
        }
        Ok(values)
    }

    /// Many records, in the order of their keys.
    pub(super) fn all<T: Record>(
        &self,
        class: Class,
        keys: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Vec<Option<T>>, StoreError> {
        let keys: Vec<RecordKey> = keys.into_iter().map(|key| (class, key)).collect();
        let values = self.get_all(&keys)?.into_iter().zip(&keys);
        let decode = |(value, (class, key)): (Option<Bytes>, &RecordKey)| {
            value.map(|value| self.decode(*class, key, &value)).transpose()
        };
        values.map(decode).collect()
    }

    /// Many records, in the order of their keys. All must exist, since others refer to them.
    pub(super) fn expect_all<T: Record>(
        &self,
        class: Class,
        keys: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Vec<T>, StoreError> {
        let keys: Vec<_> = keys.into_iter().collect();
        let found = self.all(class, keys.iter().cloned())?.into_iter().zip(&keys);
        let missing = |key: &[u8]| self.damaged(class, key, "it is missing");
        found.map(|(record, key)| record.ok_or_else(|| missing(key))).collect()
    }

    /// Whether there is a record.
    pub(super) fn contains(&self, class: Class, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.get(class, key)?.is_some())
    }

    /// A record.
    pub(super) fn record<T: Record>(
        &self,
        class: Class,
        key: &[u8],
    ) -> Result<Option<T>, StoreError> {
        self.get(class, key)?.map(|value| self.decode(class, key, &value)).transpose()
    }

    /// A record that must exist, since others refer to it.
    pub(super) fn expected<T: Record>(&self, class: Class, key: &[u8]) -> Result<T, StoreError> {
        self.record(class, key)?.ok_or_else(|| self.damaged(class, key, "it is missing"))
    }

    /// A version of an item, or bytes that made none.
    pub(super) fn text(&self, key: &[u8]) -> Result<Option<TextRecord>, StoreError> {
        self.get(Class::Texts, key)?.map(|value| self.decode_text(key, &value)).transpose()
    }

    /// The entries of a range.
    pub(super) fn range(&self, class: Class, range: KeyRange, order: KeyOrder) -> RangeReader<'_> {
        let is_over = engine::is_empty(&range);
        let limit = if self.engine.is_shared() { FIRST_OF_SHARED } else { PORTIONS.0 };
        let read = VecDeque::new();
        RangeReader { records: self, class, range, order, limit, read, is_over }
    }

    /// The entries whose keys begin with `prefix`, in the order of their keys.
    pub(super) fn entries(&self, class: Class, prefix: &[u8]) -> RangeReader<'_> {
        self.range(class, beginning_with(prefix), KeyOrder::Ascending)
    }

    /// The first entry of a range in this order.
    pub(super) fn first(
        &self,
        class: Class,
        range: KeyRange,
        order: KeyOrder,
    ) -> Result<Option<(Vec<u8>, Bytes)>, StoreError> {
        let mut entries = self.range(class, range, order);
        entries.limit = 1;
        entries.next().transpose()
    }

    /// The keys that begin with `prefix`, in their order, each with the size of its value. Read in portions.
    pub(super) fn sizes<'a>(
        &'a self,
        class: Class,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, u64), StoreError>> + use<'a> {
        let (mut range, mut is_over) = (beginning_with(prefix), false);
        let mut read = Vec::new().into_iter();
        iter::from_fn(move || {
            if read.len() == 0 && !is_over {
                match self.engine.sizes(&[(class, range.clone())], PORTIONS.1) {
                    Err(error) => {
                        is_over = true;
                        return Some(Err(error));
                    }
                    Ok(found) => {
                        is_over = found.len() < PORTIONS.1;
                        if let Some(((_, last), _)) = found.last() {
                            range.0 = Bound::Excluded(last.clone());
                            is_over |= engine::is_empty(&range);
                        }
                        read = found.into_iter();
                    }
                }
            }
            read.next().map(|((_, key), size)| Ok((key, size)))
        })
    }

    /// The keys of many prefixes in one call; without prefixes, nothing is read.
    pub(super) fn sizes_of(
        &self,
        prefixes: Vec<RecordKey>,
    ) -> Result<Vec<(RecordKey, u64)>, StoreError> {
        if prefixes.is_empty() {
            return Ok(Vec::new());
        }
        let ranges = prefixes.into_iter().map(|(class, key)| (class, beginning_with(&key)));
        self.engine.sizes(&ranges.collect::<Vec<_>>(), usize::MAX)
    }

    /// Removes a portion of the entries whose keys begin with `prefix`; answers whether there may be more. The
    /// portion is bounded in bytes as well, because a large value is many entries of an engine on disk. Not durable
    /// yet.
    pub(super) fn clear(&self, class: Class, prefix: &[u8]) -> Result<bool, StoreError> {
        let range = beginning_with(prefix);
        if self.engine.remove_range(class, &range)? {
            return Ok(false);
        }
        let found = self.engine.sizes(&[(class, range)], PORTION)?;
        let mut has_more = found.len() >= PORTION;
        let (mut writes, mut bytes) = (Writes::new(), 0_usize);
        for (key, size) in found {
            if bytes >= PORTION_BYTES {
                has_more = true;
                break;
            }
            bytes = bytes.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
            writes.insert(key, None);
        }
        self.engine.apply(writes)?;
        Ok(has_more)
    }

    /// All records whose keys begin with `prefix`, in the order of their keys.
    pub(super) fn scan<'a, T: Record>(
        &'a self,
        class: Class,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<(Vec<u8>, T), StoreError>> + use<'a, T> {
        self.entries(class, prefix).map(move |entry| {
            let (key, value) = entry?;
            let record = self.decode(class, &key, &value)?;
            Ok((key, record))
        })
    }

    /// All records whose keys begin with `prefix`, as a list.
    pub(super) fn list<T: Record>(
        &self,
        class: Class,
        prefix: &[u8],
    ) -> Result<Vec<T>, StoreError> {
        self.values(class, prefix).collect()
    }

    /// All records whose keys begin with `prefix`, without their keys.
    pub(super) fn values<'a, T: Record>(
        &'a self,
        class: Class,
        prefix: &[u8],
    ) -> impl Iterator<Item = Result<T, StoreError>> + use<'a, T> {
        self.scan(class, prefix).map(|entry| entry.map(|(_, value)| value))
    }
}

impl RecordCodec {
    /// A version of an item, or bytes that made none.
    pub(super) fn decode_text(&self, key: &[u8], value: &Bytes) -> Result<TextRecord, StoreError> {
        TextRecord::decode(value).map_err(|error| self.damaged(Class::Texts, key, error))
    }

    /// Whether a record is stored as it is, not as a difference.
    pub(super) fn is_whole(
        &self,
        class: Class,
        key: &[u8],
        bytes: &[u8],
    ) -> Result<bool, StoreError> {
        let base = packing::base(bytes).map_err(|error| self.damaged(class, key, error))?;
        Ok(base.is_none())
    }

    /// Decodes a record that may be stored as a difference. `base`: reads the record in force at a time, to which
    /// others are differences.
    pub(super) fn decode_difference<T: Record>(
        &self,
        (class, key): (Class, &[u8]),
        bytes: Bytes,
        base: impl Fn(Time) -> Result<Option<Bytes>, StoreError>,
    ) -> Result<T, StoreError> {
        let damaged = |what: &dyn std::fmt::Display| self.damaged(class, key, what);
        let mut chain = vec![bytes];
        while let Some(last) = chain.last()
            && let Some(at) = packing::base(last).map_err(|error| damaged(&error))?
        {
            if chain.len() > CHAIN_LIMIT {
                return Err(damaged(&format!("it is more than {CHAIN_LIMIT} differences away")));
            }
            let missing = || damaged(&format!("what it differs from, {at}, is missing"));
            chain.push(base(at)?.ok_or_else(missing)?);
        }
        let mut payload = Vec::new();
        for bytes in chain.iter().rev() {
            let opened =
                packing::payload(bytes, Some(&payload)).map_err(|error| damaged(&error))?;
            payload = opened.into_owned();
        }
        read_fields(&payload).map_err(|error| damaged(&error))
    }

    /// A record from its bytes.
    pub(super) fn decode<T: Record>(
        &self,
        class: Class,
        key: &[u8],
        value: &[u8],
    ) -> Result<T, StoreError> {
        decode(value).map_err(|error| self.damaged(class, key, error))
    }

    /// Plans to set a record.
    pub(super) fn put<T: Record>(
        &self,
        writes: &mut Writes,
        class: Class,
        key: Vec<u8>,
        record: &T,
    ) -> Result<(), StoreError> {
        let value = self.encoded(record, || format!("a record of {}", place(class, &key)))?;
        writes.insert((class, key), Some(value));
        Ok(())
    }

    /// Encodes a record; `what` names it in the error where it is too large.
    pub(super) fn encoded<T: Record>(
        &self,
        record: &T,
        what: impl FnOnce() -> String,
    ) -> Result<Vec<u8>, StoreError> {
        let encoded = match self.is_compact {
            true => encode(record),
            false => encode_plain(record, VALUE_LIMIT),
        };
        encoded.map_err(|error| unwritable(what(), error))
    }

    /// Encodes a record as a difference to the record `newer`, which is in force from `at` on; whole where that is
    /// not larger. `what` names it in errors.
    pub(super) fn difference(
        &self,
        whole: &[u8],
        at: Time,
        newer: &[u8],
        what: impl FnOnce() -> String,
    ) -> Result<Vec<u8>, StoreError> {
        let difference = match self.is_compact {
            true => {
                packing::against(whole, at, newer).map_err(|error| unwritable(what(), error))?
            }
            false => None,
        };
        Ok(difference.unwrap_or_else(|| whole.to_vec()))
    }

    /// Plans to set a version of an item, or bytes that made none.
    pub(super) fn put_text(
        &self,
        writes: &mut Writes,
        key: Vec<u8>,
        text: &TextRecord,
    ) -> Result<(), StoreError> {
        let value = text.encode().map_err(|error| unwritable(place(Class::Texts, &key), error))?;
        writes.insert((Class::Texts, key), Some(value));
        Ok(())
    }

    /// The decoded key; damage where it could not be decoded.
    pub(super) fn read_key<T>(
        &self,
        class: Class,
        key: &[u8],
        found: Option<T>,
    ) -> Result<T, StoreError> {
        found.ok_or_else(|| self.damaged(class, key, "its key is not as it was written"))
    }

    /// The error of a damaged entry.
    pub(super) fn damaged(
        &self,
        class: Class,
        key: &[u8],
        what: impl std::fmt::Display,
    ) -> StoreError {
        self.damage(format!("in {}: {what}", place(class, key)))
    }

    /// The error of a damaged store.
    pub(crate) fn damage(&self, what: String) -> StoreError {
        StoreError::Damaged { path: self.path.to_string(), what }
    }
}

fn place(class: Class, key: &[u8]) -> String {
    format!("{} at {}", class.name(), key.escape_ascii())
}

/// The error of a record that cannot be encoded.
fn unwritable(what: String, error: RecordError) -> StoreError {
    match error {
        RecordError::TooLarge { size, limit } => StoreError::TooLarge { what, size, limit },
        other => StoreError::failed("encode a record", other),
    }
}

/// Reads the entries of a range, portion by portion.
pub(super) struct RangeReader<'a> {
    records: &'a Records,
    class: Class,
    /// The range that remains.
    range: KeyRange,
    order: KeyOrder,
    /// The entries that are read next at most.
    limit: usize,
    read: VecDeque<(Vec<u8>, Bytes)>,
    is_over: bool,
}

impl RangeReader<'_> {
    fn fill(&mut self) -> Result<(), StoreError> {
        let engine = self.records.unread(self.class, b"a range");
        let portion = engine.portion(self.class, &self.range, self.order, self.limit)?;
        self.is_over = !portion.has_more;
        if let Some((last, _)) = portion.entries.last() {
            let beyond = Bound::Excluded(last.clone());
            match self.order {
                KeyOrder::Ascending => self.range.0 = beyond,
                KeyOrder::Descending => self.range.1 = beyond,
            }
            self.is_over |= engine::is_empty(&self.range);
        }
        self.limit = self.limit.saturating_mul(4).clamp(PORTIONS.0, PORTIONS.1);
        self.read = portion.entries.into();
        Ok(())
    }
}

impl Iterator for RangeReader<'_> {
    type Item = Result<(Vec<u8>, Bytes), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.read.is_empty() && !self.is_over {
            if let Err(error) = self.fill() {
                self.is_over = true;
                return Some(Err(error));
            }
        }
        self.read.pop_front().map(Ok)
    }
}
