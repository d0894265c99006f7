//! Transactions: those that read as of one moment, and those that write. What is written is sent together with the
//! commit.

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
/// How long giving up a transaction may take before its connection is closed.
const ROLLBACK_TIME: Duration = Duration::from_secs(5);
/// The most entries of a range that are read as a transaction begins.
const FIRST_ENTRIES: usize = 512;

/// What a transaction notes of what gateways have in memory.
#[derive(Debug, Clone)]
pub(crate) struct MemoryNotes {
    /// When it was made, by this gateway's clock.
    pub(crate) at: Time,
    /// The keys of feeds and of the identity whose entries changed, and what the change log is to say of each; an empty
    /// one: everything is to be read anew.
    pub(crate) keys: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The last epoch that came from another store.
    pub(crate) reached: Option<(Epoch, Time)>,
}

/// A transaction that is open on a connection.
pub(super) struct OpenTransaction {
    pub(super) client: Arc<Object>,
    handle: Handle,
    /// What is to be written.
    writes: Mutex<Writes>,
    /// Entries that were read as it began, those of a range among them.
    pub(super) first: HashMap<RecordKey, Option<Bytes>>,
    pub(super) first_portion: Option<(Class, KeyRange, Portion)>,
    is_over: AtomicBool,
}

impl OpenTransaction {
    /// Begins one that writes what is in this scope, once no other one has that to itself; what it reads was committed
    /// then. Without a scope, it reads as of one moment.
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
        // It is rolled back also where nobody waits for its beginning any more.
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
        // In this order, one behind the other on one connection.
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

    /// Adds to what is to be written.
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

/// What one statement writes: entries that it removes, notes, and entries that it sets with what people read of each.
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

/// Sends everything that a gateway writes, the last of it together with the commit.
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
    // Prepared first, so that both go out together; in this order, one behind the other on one connection.
    client.prepare_cached(WRITE).await?;
    let (written, committed) =
        tokio::join!(biased; batch.send(client), client.batch_execute(COMMIT));
    written?;
    committed?;
    open.is_over.store(true, Ordering::Release);
    Ok(())
}
