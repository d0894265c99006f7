//! Transactions: those that read as of one moment, and those that write. What is written is sent together with the
//! commit.

use super::connect::{SqlError, execute, get};
use super::engine::number;
use super::shown;
use super::statements::{BEGIN, BEGIN_READ, COMMIT, GET, LOCK, NOTE, PUT, REACH, REMOVE, ROLLBACK};
use crate::embedded::WriteScope;
use crate::engine::{Class, RecordKey, Writes};
use crate::{Epoch, GatewayId};
use bytes::Bytes;
use deadpool_postgres::Object;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_core::model::{FeedName, Time};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// The bytes that one statement sets, about.
const PUT_BYTES: usize = 16 << 20;
/// How long giving up a transaction may take before its connection is closed.
const ROLLBACK_TIME: Duration = Duration::from_secs(5);

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
    /// An entry that was read when it began.
    first: Option<(RecordKey, Option<Bytes>)>,
    is_over: AtomicBool,
}

/// A transaction that is to be begun.
pub(super) struct TransactionRequest {
    /// How it begins.
    begin: &'static str,
    /// What it has to itself.
    lock: Option<String>,
    /// An entry that is read at once.
    first: Option<RecordKey>,
}

impl TransactionRequest {
    /// One that reads as of one moment.
    pub(super) const fn read(first: Option<RecordKey>) -> Self {
        Self { begin: BEGIN_READ, lock: None, first }
    }

    /// One that writes. What it reads later was committed when it had the lock.
    pub(super) fn write(scope: &WriteScope) -> Self {
        let (lock, first) = match scope {
            WriteScope::Notes => (None, None),
            WriteScope::Feed(feed) => (Some(format!("feed {feed}")), Some(state_key(feed))),
            WriteScope::Identity => (Some("identity".to_owned()), None),
            WriteScope::Feeds => (Some("feeds".to_owned()), None),
            WriteScope::Subscriptions => (Some("subscriptions".to_owned()), None),
        };
        Self { begin: BEGIN, lock, first }
    }
}

impl OpenTransaction {
    /// Begins one.
    pub(super) async fn begin(
        client: Object,
        handle: Handle,
        request: TransactionRequest,
    ) -> Result<Self, SqlError> {
        let TransactionRequest { begin, lock, first } = request;
        let (client, writes, is_over) = (Arc::new(client), Mutex::default(), false.into());
        // It is rolled back also where nobody waits for its beginning any more.
        let mut open = Self { client, handle, writes, first: None, is_over };
        let client = &open.client;
        let locking = client.prepare_cached(LOCK).await?;
        let getting = client.prepare_cached(GET).await?;
        // In this order, each behind the other on one connection.
        let (begun, locked, found) = tokio::join!(
            biased;
            client.batch_execute(begin),
            async {
                match &lock {
                    Some(name) => client.query(&locking, &[name]).await.map(drop),
                    None => Ok(()),
                }
            },
            async {
                match &first {
                    Some((class, key)) => client.query(&getting, &[&number(*class), key]).await,
                    None => Ok(Vec::new()),
                }
            },
        );
        begun?;
        locked?;
        let found = value(&found?)?;
        open.first = first.map(|key| (key, found));
        Ok(open)
    }

    /// What is known of an entry since it began.
    pub(super) fn known(&self, class: Class, key: &[u8]) -> Option<Option<Bytes>> {
        let (of, found) = self.first.as_ref()?;
        (of.0 == class && of.1 == key).then(|| found.clone())
    }

    /// Adds to what is to be written.
    pub(super) fn write(&self, writes: Writes) {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).extend(writes);
    }
}

fn state_key(feed: &FeedName) -> RecordKey {
    (Class::States, [feed.as_str().as_bytes(), &[0]].concat())
}

fn value(rows: &[tokio_postgres::Row]) -> Result<Option<Bytes>, SqlError> {
    rows.first().map(|row| get::<&[u8]>(row, 0).map(Bytes::copy_from_slice)).transpose()
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

/// Entries that one statement sets, and what people read of each.
#[derive(Default)]
struct Puts {
    classes: Vec<i16>,
    keys: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
    shown: Vec<Option<String>>,
}

/// Sends everything that a gateway writes, the last of it together with the commit.
pub(super) async fn commit(
    open: &OpenTransaction,
    notes: MemoryNotes,
    gateway: GatewayId,
) -> Result<(), SqlError> {
    let writes = std::mem::take(&mut *open.writes.lock().unwrap_or_else(PoisonError::into_inner));
    let client = &open.client;
    let (mut classes, mut gone, mut puts, mut bytes) = (Vec::new(), Vec::new(), Puts::default(), 0);
    for ((class, key), value) in writes {
        let Some(value) = value else {
            classes.push(number(class));
            gone.push(key);
            continue;
        };
        bytes += value.len();
        puts.classes.push(number(class));
        puts.shown.push(shown::of_entry(class, &key, &value, gateway));
        puts.keys.push(key);
        puts.values.push(value);
        if bytes >= PUT_BYTES {
            let Puts { classes, keys, values, shown } = std::mem::take(&mut puts);
            execute(client, PUT, &[&classes, &keys, &values, &shown]).await?;
            bytes = 0;
        }
    }
    if let Some((epoch, closed)) = notes.reached {
        let epoch = i64::try_from(epoch.0).unwrap_or(i64::MAX);
        execute(client, REACH, &[&epoch, &closed.unix()]).await?;
    }
    // What sets and removes nothing costs no wait.
    let remove = client.prepare_cached(REMOVE).await?;
    let put = client.prepare_cached(PUT).await?;
    let note = client.prepare_cached(NOTE).await?;
    let Puts { classes: of, keys, values, shown } = puts;
    let (noted, logged): (Vec<_>, Vec<_>) = notes.keys.into_iter().unzip();
    let logged_shown: Vec<Option<String>> =
        logged.iter().map(|value: &Option<Vec<u8>>| shown::of_change(value.as_ref()?)).collect();
    let at = notes.at.unix();
    // In this order, each behind the other on one connection.
    let (removed, set, noted, committed) = tokio::join!(
        biased;
        async { client.execute(&remove, &[&classes, &gone]).await },
        async { client.execute(&put, &[&of, &keys, &values, &shown]).await },
        async { client.execute(&note, &[&at, &noted, &logged, &logged_shown]).await },
        client.batch_execute(COMMIT),
    );
    removed?;
    set?;
    noted?;
    committed?;
    open.is_over.store(true, Ordering::Release);
    Ok(())
}
