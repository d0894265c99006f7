//! Transactions that write, and snapshots. Writes are sent together with the commit.

use super::connect::{Parameters, SqlError, execute};
use super::engine::{bounds, columns, limited, number, portion, value};
use super::shown;
use super::statements::{
    BEGIN, BEGIN_READ, COMMIT, FIRST, GET_MANY, LOCK_AND_GET, REACH, ROLLBACK, WRITE,
};
use crate::embedded::WriteScope;
use crate::engine::{
    Class, FirstRead, KeyRange, MANY_BYTES, PORTION_BYTES, Portion, RecordKey, Writes,
};
use crate::{Epoch, GatewayId};
use bytes::Bytes;
use deadpool_postgres::Object;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_core::model::Time;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The bytes that one statement sets, about.
const BATCH_BYTES: usize = 16 << 20;
/// How long a rollback may take before the connection is closed.
const ROLLBACK_TIME: Duration = Duration::from_secs(5);
/// The most entries of a range that are read as a transaction begins.
const FIRST_ENTRIES: usize = 512;

/// The notes of a transaction: changed records that gateways keep in memory.
#[derive(Debug, Clone)]
pub(crate) struct MemoryNotes {
    /// The time of the transaction, by the clock of this gateway.
    pub(crate) at: Time,
    /// The keys of changed feeds and of a changed identity, each with its entry in the change log, if any. An empty
    /// key: everything is to be read anew.
    pub(crate) keys: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The last epoch that came from another store.
    pub(crate) reached: Option<(Epoch, Time)>,
}

/// An open transaction on a connection.
pub(super) struct OpenTransaction {
    pub(super) client: Arc<Object>,
    handle: Handle,
    /// The writes to be sent.
    writes: Mutex<Writes>,
    /// Entries that were read at its beginning, those of a range among them.
    pub(super) first: HashMap<RecordKey, Option<Bytes>>,
    pub(super) first_portion: Option<(Class, KeyRange, Portion)>,
    is_over: AtomicBool,
}

impl OpenTransaction {
    /// Begins a transaction that locks `scope`, so that it reads what earlier writers of the scope have committed;
    /// without a scope, a snapshot.
    pub(super) async fn begin(
        client: Object,
        handle: Handle,
        scope: Option<WriteScope>,
        FirstRead { keys: first, range }: FirstRead,
    ) -> Result<Self, SqlError> {
        let begin = if scope.is_some() { BEGIN } else { BEGIN_READ };
        let lock = scope.and_then(|scope| match scope {
            WriteScope::Notes => None,
            WriteScope::Feed(feed) => Some(format!("feed {feed}")),
            WriteScope::Identity => Some("identity".to_owned()),
            WriteScope::Feeds => Some("feeds".to_owned()),
            WriteScope::Subscriptions => Some("subscriptions".to_owned()),
        });
        let (client, writes, is_over) = (Arc::new(client), Mutex::default(), false.into());
        // Rolled back also if the caller is dropped while it begins.
        let (known, first_portion) = (HashMap::new(), None);
        let mut open = Self { client, handle, writes, first: known, first_portion, is_over };
        let client = &open.client;
        let (classes, keys) = columns(&first);
        let statement = if lock.is_some() { LOCK_AND_GET } else { GET_MANY };
        let statement = client.prepare_cached(statement).await?;
        let listing = match &range {
            Some((class, range)) => {
                Some((client.prepare_cached(FIRST).await?, number(*class), bounds(range)))
            }
            None => None,
        };
        // All are sent at once on one connection, in this order.
        let (begun, found, listed) = tokio::join!(
            biased;
            client.batch_execute(begin),
            async {
                let bytes = limited(MANY_BYTES);
                match &lock {
                    Some(name) => client.query(&statement, &[&classes, &keys, &bytes, name]).await,
                    None if first.is_empty() => Ok(Vec::new()),
                    None => client.query(&statement, &[&classes, &keys, &bytes]).await,
                }
            },
            async {
                let Some((statement, class, (from, to))) = &listing else { return Ok(Vec::new()) };
                let (rows, bytes) = (limited(FIRST_ENTRIES), limited(PORTION_BYTES));
                client.query(statement, &[class, from, to, &rows, &bytes]).await
            },
        );
        begun?;
        let found = found?.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let listed = portion(&listed?, FIRST_ENTRIES)?;
        open.first = first.into_iter().zip(found).collect();
        if let Some((class, range)) = range {
            let entries = listed.entries.iter().cloned();
            open.first.extend(entries.map(|(key, value)| ((class, key), Some(value))));
            open.first_portion = Some((class, range, listed));
        }
        Ok(open)
    }

    /// Adds writes to be sent.
    pub(super) fn write(&self, writes: Writes) {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).extend(writes);
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        if self.is_over.load(Ordering::Acquire) {
            return;
        }
        let client = Arc::clone(&self.client);
        self.handle.spawn(async move {
            let ended = timeout(ROLLBACK_TIME, client.batch_execute(ROLLBACK)).await;
            if !matches!(ended, Ok(Ok(()))) {
                drop(Arc::into_inner(client).map(Object::take));
            }
        });
    }
}

/// The parameters of one statement: entries to remove, notes, and entries to set with their readable forms.
#[derive(Default)]
struct WriteBatch {
    gone: (Vec<i16>, Vec<Vec<u8>>),
    at: i64,
    notes: (Vec<Vec<u8>>, Vec<Option<Vec<u8>>>),
    notes_shown: Vec<Option<String>>,
    puts: (Vec<i16>, Vec<Vec<u8>>),
    values: Vec<Vec<u8>>,
    shown: Vec<Option<String>>,
}

impl WriteBatch {
    async fn send(self, client: &Object) -> Result<(), SqlError> {
        let Self { gone, at, notes, notes_shown, puts, values, shown } = self;
        let parameters: Parameters<'_> = &[
            &gone.0,
            &gone.1,
            &at,
            &notes.0,
            &notes.1,
            &notes_shown,
            &puts.0,
            &puts.1,
            &values,
            &shown,
        ];
        execute(client, WRITE, parameters).await.map(drop)
    }
}

/// Sends all writes, the last of them together with the commit.
pub(super) async fn commit(
    open: &OpenTransaction,
    notes: MemoryNotes,
    gateway: GatewayId,
) -> Result<(), SqlError> {
    let writes = std::mem::take(&mut *open.writes.lock().unwrap_or_else(PoisonError::into_inner));
    let client = &open.client;
    let (mut batch, mut bytes) = (WriteBatch::default(), 0);
    for ((class, key), value) in writes {
        let Some(value) = value else {
            batch.gone.0.push(number(class));
            batch.gone.1.push(key);
            continue;
        };
        bytes += value.len();
        batch.shown.push(shown::of_entry(class, &key, &value, gateway));
        batch.puts.0.push(number(class));
        batch.puts.1.push(key);
        batch.values.push(value);
        if bytes >= BATCH_BYTES {
            std::mem::take(&mut batch).send(client).await?;
            bytes = 0;
        }
    }
    if let Some((epoch, closed)) = notes.reached {
        let epoch = i64::try_from(epoch.0).unwrap_or(i64::MAX);
        execute(client, REACH, &[&epoch, &closed.unix()]).await?;
    }
    batch.at = notes.at.unix();
    batch.notes = notes.keys.into_iter().unzip();
    let shown = |logged: &Option<Vec<u8>>| shown::of_change(logged.as_ref()?);
    batch.notes_shown = batch.notes.1.iter().map(shown).collect();
    // Prepared first, so that both are sent at once on one connection, in this order.
    client.prepare_cached(WRITE).await?;
    let (written, committed) =
        tokio::join!(biased; batch.send(client), client.batch_execute(COMMIT));
    written?;
    committed?;
    open.is_over.store(true, Ordering::Release);
    Ok(())
}
