//! PostgreSQL as the store's database: one table of entries, by shard, class and key.

use super::ask::get;
use super::connect::SqlError;
use super::session::{SHARD, Session};
use super::statements::{
    CONTAINS, FIRST, FIRST_ALL, GET, GET_MANY, LAST, LAST_ALL, RANGES, SIZES, SIZES_ALL,
};
use super::writer::{Removal, WriteBatch, WritePosition, number};
use crate::StoreError;
use crate::engine::{
    Class, Engine, HEAD_BYTES, KeyOrder, KeyRange, PORTION_BYTES, Portion, RangeEntries, RecordKey,
    ValueSize, Writes, beginning_with,
};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most bytes of values that one answer to a question for many has, about.
const MANY_BYTES: usize = 8 << 20;
/// A range of so many entries is too long to be read with others.
pub(super) const LONG_RANGE: usize = 1024;

/// The database of one claim: under a later one it writes nothing more. Without a claim it is read from alone.
pub(super) struct PostgresEngine {
    session: Arc<Session>,
    state: Option<Mutex<WriteState>>,
}

/// Where the writes stand.
struct WriteState {
    position: WritePosition,
    /// What was written since the last barrier is not durable.
    is_passed: bool,
    /// The last write under this claim up to which epochs are closed.
    closed: i64,
}

impl PostgresEngine {
    /// Takes the shard. Blocks.
    pub(super) fn open(session: &Arc<Session>) -> Result<Self, StoreError> {
        let position = session.claim()?;
        // Nobody knows whether the last writes of another were made durable.
        let state = Some(Mutex::new(WriteState { position, is_passed: false, closed: 0 }));
        Ok(Self { session: Arc::clone(session), state })
    }

    /// Takes nothing: another node writes, and this one reads.
    pub(super) fn following(session: &Arc<Session>) -> Self {
        Self { session: Arc::clone(session), state: None }
    }

    /// Where the writes stand; an error where there are none.
    fn writing(&self) -> Result<MutexGuard<'_, WriteState>, StoreError> {
        let state = self.state.as_ref().ok_or_else(|| StoreError::Io {
            doing: "write",
            source: io::Error::other("another gateway writes"),
        })?;
        Ok(state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes a write; how many entries it removed, where that is known. One at a time.
    fn write(&self, batch: WriteBatch) -> Result<Option<u64>, StoreError> {
        if batch.is_empty() {
            return Ok(Some(0));
        }
        let mut state = self.writing()?;
        let position = state.position;
        let write = self
            .session
            .run("write", move |shared| async move { shared.write(position, &batch).await });
        let removed = write?;
        state.position.log_seq = state.position.log_seq.saturating_add(1);
        state.is_passed = false;
        Ok(removed)
    }
}

/// The first key of a range, and the first behind it, where there is an end.
fn bounds((begin, end): &KeyRange) -> (Vec<u8>, Option<Vec<u8>>) {
    // The next key there can be.
    let next = |key: &[u8]| [key, &[0]].concat();
    let from = match begin {
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => next(key),
        Bound::Unbounded => Vec::new(),
    };
    let to = match end {
        Bound::Included(key) => Some(next(key)),
        Bound::Excluded(key) => Some(key.clone()),
        Bound::Unbounded => None,
    };
    (from, to)
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl Engine for PostgresEngine {
    fn path(&self) -> &str {
        &self.session.shared().shown
    }

    fn is_compact(&self) -> bool {
        true
    }

    fn is_followed(&self) -> bool {
        self.state.is_none()
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let (class, key) = (number(class), key.to_vec());
        self.session.read(move |shared| async move {
            let rows = shared.rows(GET, &[&SHARD, &class, &key]).await?;
            rows.first().map(|row| get::<&[u8]>(row, 0).map(Bytes::copy_from_slice)).transpose()
        })
    }

    fn is_far(&self) -> bool {
        true
    }

    fn get_many(
        &self,
        wanted: BTreeSet<RecordKey>,
    ) -> Result<Vec<(RecordKey, Option<Bytes>)>, StoreError> {
        let (classes, keys): (Vec<i16>, Vec<Vec<u8>>) =
            wanted.iter().map(|(class, key)| (number(*class), key.clone())).unzip();
        self.session.read(move |shared| async move {
            let bytes = limited(MANY_BYTES);
            let rows = shared.rows(GET_MANY, &[&SHARD, &classes, &keys, &bytes]).await?;
            let mut found = HashMap::with_capacity(rows.len());
            for row in &rows {
                let class = u8::try_from(get::<i16>(row, 0)?).ok().and_then(Class::numbered);
                let value = get::<Option<&[u8]>>(row, 2)?.map(Bytes::copy_from_slice);
                let key = get::<Vec<u8>>(row, 1)?;
                found.extend(class.map(|class| ((class, key), value)));
            }
            // One that is there and was too much for this answer is left out.
            let answered = wanted.into_iter().filter_map(|key| match found.remove(&key) {
                Some(Some(value)) => Some((key, Some(value))),
                Some(None) => None,
                None => Some((key, None)),
            });
            Ok(answered.collect())
        })
    }

    fn get_ranges(
        &self,
        wanted: &[RecordKey],
    ) -> Result<Vec<(RecordKey, RangeEntries)>, StoreError> {
        let (mut asked, mut classes) = (Vec::new(), Vec::new());
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for (class, prefix) in wanted {
            // One without an end is not asked for.
            if let (begin, Some(end)) = bounds(&beginning_with(prefix)) {
                asked.push((*class, prefix.clone()));
                classes.push(number(*class));
                from.push(begin);
                to.push(end);
            }
        }
        self.session.read(move |shared| async move {
            let (entries, bytes) = (limited(LONG_RANGE), limited(MANY_BYTES));
            let rows =
                shared.rows(RANGES, &[&SHARD, &classes, &from, &to, &entries, &bytes]).await?;
            let mut found: Vec<Option<RangeEntries>> = vec![Some(Vec::new()); asked.len()];
            for row in &rows {
                let place = get::<i64>(row, 0)?.saturating_sub(1);
                let Ok(place) = usize::try_from(place) else { continue };
                let Some(range) = found.get_mut(place) else { continue };
                let (key, value) = (get::<Vec<u8>>(row, 1)?, get::<Option<&[u8]>>(row, 2)?);
                let value = value.map(Bytes::copy_from_slice);
                // A range that is too much for this answer has an entry that comes without its value.
                *range = range.take().zip(value).map(|(mut entries, value)| {
                    entries.push((key, value));
                    entries
                });
            }
            let is_whole = |entries: &RangeEntries| entries.len() < LONG_RANGE;
            let found = found.into_iter().map(|entries| entries.filter(is_whole));
            let answered = asked.into_iter().zip(found);
            Ok(answered.filter_map(|(range, entries)| Some((range, entries?))).collect())
        })
    }

    fn contains(&self, class: Class, key: &[u8]) -> Result<bool, StoreError> {
        let (class, key) = (number(class), key.to_vec());
        self.session.read(move |shared| async move {
            let rows = shared.rows(CONTAINS, &[&SHARD, &class, &key]).await?;
            rows.first().map_or(Ok(false), |row| get(row, 0))
        })
    }

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        let (class, (from, to)) = (number(class), bounds(range));
        self.session.read(move |shared| async move {
            let (rows, bytes) = (limited(limit), limited(PORTION_BYTES));
            let found = match (order, &to) {
                (KeyOrder::Ascending, Some(to)) => {
                    shared.rows(FIRST, &[&SHARD, &class, &from, &rows, &bytes, to]).await
                }
                (KeyOrder::Ascending, None) => {
                    shared.rows(FIRST_ALL, &[&SHARD, &class, &from, &rows, &bytes]).await
                }
                (KeyOrder::Descending, Some(to)) => {
                    shared.rows(LAST, &[&SHARD, &class, &from, &rows, &bytes, to]).await
                }
                (KeyOrder::Descending, None) => {
                    shared.rows(LAST_ALL, &[&SHARD, &class, &from, &rows, &bytes]).await
                }
            };
            let (mut entries, mut taken) = (Vec::new(), 0_usize);
            for row in found? {
                let (key, value) = (get::<Vec<u8>>(&row, 0)?, get::<&[u8]>(&row, 1)?);
                taken = taken.saturating_add(value.len());
                entries.push((key, Bytes::copy_from_slice(value)));
            }
            let has_more = entries.len() >= limit || taken >= PORTION_BYTES;
            Ok(Portion { entries, has_more })
        })
    }

    fn sizes(
        &self,
        class: Class,
        range: &KeyRange,
        limit: usize,
    ) -> Result<Vec<ValueSize>, StoreError> {
        let (class, (from, to)) = (number(class), bounds(range));
        self.session.read(move |shared| async move {
            let (rows, head) = (limited(limit), i32::try_from(HEAD_BYTES).unwrap_or(i32::MAX));
            let found = match &to {
                Some(to) => shared.rows(SIZES, &[&SHARD, &class, &from, &rows, &head, to]).await,
                None => shared.rows(SIZES_ALL, &[&SHARD, &class, &from, &rows, &head]).await,
            };
            let size = |row: &tokio_postgres::Row| -> Result<ValueSize, SqlError> {
                let size = usize::try_from(get::<i32>(row, 1)?).unwrap_or_default();
                let head = Bytes::copy_from_slice(get::<&[u8]>(row, 2)?);
                Ok(ValueSize { key: get(row, 0)?, size, head })
            };
            found?.iter().map(size).collect()
        })
    }

    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        self.write(WriteBatch::of(writes)).map(drop)
    }

    fn clear(&self, class: Class, prefix: &[u8], limit: usize) -> Result<bool, StoreError> {
        let (from, to) = bounds(&beginning_with(prefix));
        let limit = limited(limit);
        let first = Removal::First { class: number(class), from, to, limit };
        let batch = WriteBatch::removing(first, class);
        let removed = self.write(batch)?;
        // Where the answer was lost there may be more.
        Ok(removed.is_none_or(|removed| i64::try_from(removed).unwrap_or(i64::MAX) >= limit))
    }

    fn pass(&self) -> Result<(), StoreError> {
        let mut state = self.writing()?;
        if !state.is_passed {
            let (position, closed) = (state.position, state.closed);
            self.session.run("make a write durable", move |shared| async move {
                shared.pass(position, closed).await
            })?;
            state.is_passed = true;
        }
        Ok(())
    }

    fn close_epochs(&self, has_epoch: bool) -> Result<(), StoreError> {
        let mut state = self.writing()?;
        let position = state.position;
        if !state.is_passed || state.closed >= position.log_seq {
            return Ok(());
        }
        if has_epoch {
            self.session.run("close an epoch", move |shared| async move {
                shared.close_epochs(position).await
            })?;
        }
        state.closed = position.log_seq;
        Ok(())
    }
}
