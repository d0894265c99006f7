//! PostgreSQL as the store's database: one table of entries, by class and key; within a transaction, or each statement for
//! itself.

use super::connect::{SqlError, connection, execute, get, in_time, query};
use super::database::Database;
use super::statements::{CLEAR, FIRST, GET, GET_MANY, LAST, SIZES};
use super::transaction::OpenTransaction;
use crate::StoreError;
use crate::engine::{
    Class, Engine, KeyOrder, KeyRange, PORTION_BYTES, Portion, RecordKey, SnapshotWith, Writes,
    beginning_with,
};
use bytes::Bytes;
use deadpool_postgres::Object;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::ops::Bound;
use std::sync::Arc;

/// The most bytes of values that one answer to a question for many has, about.
const MANY_BYTES: usize = 8 << 20;

/// The entries of a database.
pub(crate) struct PostgresEngine {
    database: Arc<Database>,
    transaction: Option<Arc<OpenTransaction>>,
}

/// A class as the tables have it.
pub(super) fn number(class: Class) -> i16 {
    i16::from(class as u8)
}

/// Behind every key: a name, or a random id that is shorter.
const END_OF_KEYS: [u8; 32] = [u8::MAX; 32];

/// The first key of a range, and the first behind it.
fn bounds((begin, end): &KeyRange) -> (Vec<u8>, Vec<u8>) {
    // The next key there can be.
    let next = |key: &[u8]| [key, &[0]].concat();
    let from = match begin {
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => next(key),
        Bound::Unbounded => Vec::new(),
    };
    let to = match end {
        Bound::Included(key) => next(key),
        Bound::Excluded(key) => key.clone(),
        Bound::Unbounded => END_OF_KEYS.to_vec(),
    };
    (from, to)
}

fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl PostgresEngine {
    pub(super) const fn new(
        database: Arc<Database>,
        transaction: Option<Arc<OpenTransaction>>,
    ) -> Self {
        Self { database, transaction }
    }

    /// Asks on the transaction's connection, or on any. Blocks.
    pub(super) fn ask<T, F>(
        &self,
        doing: &'static str,
        work: impl FnOnce(Arc<Object>) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlError>> + Send + 'static,
    {
        let (pool, transaction) = (self.database.pool.clone(), self.transaction.clone());
        self.database.run(doing, async move {
            let client = match &transaction {
                Some(transaction) => Arc::clone(&transaction.client),
                None => Arc::new(connection(&pool).await?),
            };
            let done = in_time(work(client)).await;
            drop(transaction);
            done
        })
    }
}

impl Engine for PostgresEngine {
    fn path(&self) -> &str {
        self.database.shown()
    }

    fn is_compact(&self) -> bool {
        true
    }

    fn is_far(&self) -> bool {
        true
    }

    fn snapshot(&self, key: Option<RecordKey>) -> Result<Option<SnapshotWith>, StoreError> {
        let (engine, entry) = self.database.snapshot(key)?;
        Ok(Some((Arc::new(engine), entry)))
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let known = self.transaction.as_ref().and_then(|open| open.known(class, key));
        if let Some(known) = known {
            return Ok(known);
        }
        let (class, key) = (number(class), key.to_vec());
        self.ask("read", move |client| async move {
            let rows = query(&client, GET, &[&class, &key]).await?;
            rows.first().map(|row| get::<&[u8]>(row, 0).map(Bytes::copy_from_slice)).transpose()
        })
    }

    fn get_many(
        &self,
        wanted: BTreeSet<RecordKey>,
    ) -> Result<Vec<(RecordKey, Option<Bytes>)>, StoreError> {
        let (classes, keys): (Vec<i16>, Vec<Vec<u8>>) =
            wanted.iter().map(|(class, key)| (number(*class), key.clone())).unzip();
        self.ask("read", move |client| async move {
            let bytes = limited(MANY_BYTES);
            let rows = query(&client, GET_MANY, &[&classes, &keys, &bytes]).await?;
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

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        let (class, (from, to)) = (number(class), bounds(range));
        self.ask("read", move |client| async move {
            let (rows, bytes) = (limited(limit), limited(PORTION_BYTES));
            let text = match order {
                KeyOrder::Ascending => FIRST,
                KeyOrder::Descending => LAST,
            };
            let found = query(&client, text, &[&class, &from, &to, &rows, &bytes]).await?;
            let (mut entries, mut taken) = (Vec::new(), 0_usize);
            for row in found {
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
    ) -> Result<Vec<(Vec<u8>, u64)>, StoreError> {
        let (class, (from, to)) = (number(class), bounds(range));
        self.ask("read", move |client| async move {
            let rows = limited(limit);
            let found = query(&client, SIZES, &[&class, &from, &to, &rows]).await?;
            let size = |row: &tokio_postgres::Row| -> Result<(Vec<u8>, u64), SqlError> {
                Ok((get(row, 0)?, u64::try_from(get::<i32>(row, 1)?).unwrap_or_default()))
            };
            found.iter().map(size).collect()
        })
    }

    /// What is applied is sent with the commit.
    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        let outside = || io::Error::other("there is no transaction");
        let outside = || StoreError::Io { doing: "write", source: outside() };
        self.transaction.as_ref().ok_or_else(outside)?.write(writes);
        Ok(())
    }

    /// All of the range goes at once.
    fn clear(&self, class: Class, prefix: &[u8], _limit: usize) -> Result<bool, StoreError> {
        let (class, (from, to)) = (number(class), bounds(&beginning_with(prefix)));
        self.ask("write", move |client| async move {
            execute(&client, CLEAR, &[&class, &from, &to]).await?;
            Ok(false)
        })
    }

    fn pass(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
