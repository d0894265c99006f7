//! The engine over PostgreSQL: one table of entries, by class and key; in a transaction, or each statement by itself.

use super::connect::{SqlError, connection, execute, get, in_time, only, query};
use super::database::Database;
use super::statements::{FIRST, GET, GET_MANY, LAST, REMOVE_RANGE, SIZES};
use super::transaction::{MemoryNotes, OpenTransaction, commit};
use crate::StoreError;
use crate::engine::{
    Class, Engine, FirstRead, KeyOrder, KeyRange, MANY_BYTES, PORTION_BYTES, Portion, RecordKey,
    Writes,
};
use bytes::Bytes;
use deadpool_postgres::Object;
use std::ops::Bound;
use std::sync::Arc;
use tokio_postgres::Row;

/// The entries of a database.
pub(crate) struct PostgresEngine {
    database: Arc<Database>,
    transaction: Option<Arc<OpenTransaction>>,
}

/// The number of a class in the tables.
pub(super) fn number(class: Class) -> i16 {
    i16::from(class as u8)
}

/// A key after all others: names and random ids are shorter.
const END_OF_KEYS: [u8; 32] = [u8::MAX; 32];

/// The first key of a range, and the first key after it.
pub(super) fn bounds((begin, end): &KeyRange) -> (Vec<u8>, Vec<u8>) {
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

/// Keys as parameters: classes, and keys.
pub(super) fn columns(keys: &[RecordKey]) -> (Vec<i16>, Vec<Vec<u8>>) {
    keys.iter().map(|(class, key)| (number(*class), key.clone())).unzip()
}

/// Decodes an entry of a row.
pub(super) fn value(row: &Row) -> Result<Option<Bytes>, SqlError> {
    Ok(get::<Option<&[u8]>>(row, 0)?.map(Bytes::copy_from_slice))
}

/// The entries of rows with a key and a value each, of which at most `limit` were asked for.
pub(super) fn portion(rows: &[Row], limit: usize) -> Result<Portion, SqlError> {
    let (mut entries, mut taken) = (Vec::with_capacity(rows.len()), 0_usize);
    for row in rows {
        let (key, value) = (get::<Vec<u8>>(row, 0)?, get::<&[u8]>(row, 1)?);
        taken = taken.saturating_add(value.len());
        entries.push((key, Bytes::copy_from_slice(value)));
    }
    let has_more = entries.len() >= limit || taken >= PORTION_BYTES;
    Ok(Portion { entries, has_more })
}

pub(super) fn limited(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

impl PostgresEngine {
    pub(super) const fn new(
        database: Arc<Database>,
        transaction: Option<Arc<OpenTransaction>>,
    ) -> Self {
        Self { database, transaction }
    }

    /// Sends the writes and commits, in a transaction. After an error it is unknown whether they are committed.
    /// Blocks.
    pub(crate) fn commit(&self, notes: MemoryNotes) -> Result<(), StoreError> {
        let (open, gateway) = (Arc::clone(self.opened()?), self.database.gateways().id());
        self.database.run("write", async move { in_time(commit(&open, notes, gateway)).await })
    }

    /// The entry as read or written in this transaction.
    fn known(&self, key: &RecordKey) -> Option<Option<Bytes>> {
        self.transaction.as_ref()?.first.get(key).cloned()
    }

    fn opened(&self) -> Result<&Arc<OpenTransaction>, StoreError> {
        let none = || StoreError::failed("write", "there is no transaction");
        self.transaction.as_ref().ok_or_else(none)
    }

    /// Queries on the connection of the transaction, or on any. Blocks.
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

    fn is_shared(&self) -> bool {
        true
    }

    fn snapshot(&self, first: FirstRead) -> Result<Option<Arc<dyn Engine>>, StoreError> {
        Ok(Some(Arc::new(self.database.begin(None, first)?)))
    }

    fn get(&self, class: Class, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let key = (class, key.to_vec());
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let (class, key) = (number(class), key.1);
        self.ask("read", move |client| async move {
            let rows = query(&client, GET, &[&class, &key]).await?;
            Ok(rows.first().map(value).transpose()?.flatten())
        })
    }

    fn get_many(&self, keys: &[RecordKey]) -> Result<Vec<Option<Bytes>>, StoreError> {
        let known: Vec<_> = keys.iter().map_while(|key| self.known(key)).collect();
        if !known.is_empty() || keys.is_empty() {
            return Ok(known);
        }
        let (classes, keys) = columns(keys);
        self.ask("read", move |client| async move {
            let rows = query(&client, GET_MANY, &[&classes, &keys, &limited(MANY_BYTES)]).await?;
            // At least one value is answered.
            only(&rows)?;
            rows.iter().map(value).collect()
        })
    }

    fn portion(
        &self,
        class: Class,
        range: &KeyRange,
        order: KeyOrder,
        limit: usize,
    ) -> Result<Portion, StoreError> {
        let first = self.transaction.as_ref().and_then(|open| open.first_portion.as_ref());
        if let Some((of, whole, found)) = first
            && (*of, whole, order) == (class, range, KeyOrder::Ascending)
        {
            return Ok(found.clone());
        }
        let (class, (from, to)) = (number(class), bounds(range));
        self.ask("read", move |client| async move {
            let (rows, bytes) = (limited(limit), limited(PORTION_BYTES));
            let text = match order {
                KeyOrder::Ascending => FIRST,
                KeyOrder::Descending => LAST,
            };
            let found = query(&client, text, &[&class, &from, &to, &rows, &bytes]).await?;
            portion(&found, limit)
        })
    }

    fn sizes(
        &self,
        ranges: &[(Class, KeyRange)],
        limit: usize,
    ) -> Result<Vec<(RecordKey, u64)>, StoreError> {
        let classes: Vec<Class> = ranges.iter().map(|(class, _)| *class).collect();
        let numbers: Vec<i16> = classes.iter().map(|class| number(*class)).collect();
        let (from, to): (Vec<_>, Vec<_>) = ranges.iter().map(|(_, range)| bounds(range)).unzip();
        self.ask("read", move |client| async move {
            let found = query(&client, SIZES, &[&numbers, &from, &to, &limited(limit)]).await?;
            let size = |row| {
                let class = classes.get(get::<i64>(row, 0)? as usize).copied();
                let class =
                    class.ok_or_else(|| SqlError::Refused("it has another range".into()))?;
                let size = u64::try_from(get::<i32>(row, 2)?).unwrap_or_default();
                Ok(((class, get(row, 1)?), size))
            };
            found.iter().map(size).collect()
        })
    }

    /// Writes are sent with the commit.
    fn apply(&self, writes: Writes) -> Result<(), StoreError> {
        self.opened()?.write(writes);
        Ok(())
    }

    /// Writes are sent later.
    fn remove_range(&self, class: Class, range: &KeyRange) -> Result<bool, StoreError> {
        self.opened()?;
        let (class, (from, to)) = (number(class), bounds(range));
        self.ask("write", move |client| async move {
            execute(&client, REMOVE_RANGE, &[&class, &from, &to]).await?;
            Ok(true)
        })
    }

    fn pass(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
