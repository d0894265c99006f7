//! The connections of a gateway to its database, and its row among the gateways that share it.

use super::connect::{
    ANSWER_TIME, CONNECTIONS, DatabaseAddress, LOOK_CONNECTIONS, SqlError, close_idle, connection,
    execute, get, in_time, on_connection, only, query,
};
use super::engine::PostgresEngine;
use super::statements::{
    ANALYZE, BEAT, FORGET_GATEWAYS, FORMAT, GATEWAYS, HAS_TABLES, KEPT_POSITIONS, LEAVE, NUMBER,
    POSITION, READ_NOTES, TABLES, VERSION,
};
use super::transaction::OpenTransaction;
use crate::embedded::WriteScope;
use crate::engine::FirstRead;
use crate::gateways::{GatewayId, Gateways, KnownGateway};
use crate::{StoreError, since_boot};
use bytes::Bytes;
use deadpool_postgres::{Object, Pool};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tidegate_core::clock::unix_nanos;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};
use tokio_postgres::Row;

/// The lease: how long a row counts as living without renewal.
const LEASE: Duration = Duration::from_secs(10);
/// How often a gateway renews its row.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// How long reading notes may take: less than readers wait for it.
const NOTES_TIMEOUT: Duration = Duration::from_secs(2);
/// How long gathering statistics may take: longer than the time-out of the database.
const GATHER_TIME: Duration = Duration::from_secs(310);
/// The pause after gathering statistics, successful or not.
const GATHER_PAUSE: Duration = Duration::from_secs(600);
/// How long removing the row may take at the end.
const LEAVE_TIME: Duration = Duration::from_secs(3);
/// How many digits of a gateway's number its name shows.
const ID_SHOWN: i64 = 0xff_ffff;
/// The number of threads that talk to the database.
const THREADS: usize = 2;

/// The notes of changes after a position.
pub(crate) struct SeenNotes {
    /// The last numbered position, and the last epoch.
    pub(crate) position: i64,
    pub(crate) epoch: u64,
    /// Notes up to this position may have been removed.
    pub(crate) forgotten: i64,
    /// Whether there are notes without a number.
    pub(crate) has_more: bool,
    pub(crate) entries: Vec<NotedEntry>,
}

/// The present entries at a noted key.
pub(crate) struct NotedEntry {
    pub(crate) key: Vec<u8>,
    pub(crate) state: Option<Bytes>,
    pub(crate) record: Option<Bytes>,
    pub(crate) identity: Option<Bytes>,
}

/// The connections of a gateway to its database.
pub(crate) struct Database {
    runtime: Option<Runtime>,
    pub(super) pool: Pool,
    follow_pool: Pool,
    shown: String,
    gateways: Arc<Gateways>,
}

impl Database {
    /// Connects, makes the tables where there are none, and adds the row of this gateway.
    pub(super) fn open(url: &str) -> Result<Arc<Self>, StoreError> {
        let address = DatabaseAddress::parse(url)?;
        let (pool, follow_pool) = (address.pool(CONNECTIONS)?, address.pool(LOOK_CONNECTIONS)?);
        let chance =
            getrandom::u64().map_err(|error| StoreError::failed("choose a name", error))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("store-postgres")
            .enable_all()
            .build()
            .map_err(|source| StoreError::Io { doing: "start its threads", source })?;
        let gateways = Arc::new(Gateways::new(GatewayId((chance >> 1).cast_signed()), LEASE));
        let (runtime, shown) = (Some(runtime), address.shown);
        let database = Self { runtime, pool, follow_pool, shown, gateways };
        let pool = database.follow_pool.clone();
        let format = database.run("make its tables", async move {
            on_connection(&pool, ANSWER_TIME, make_tables).await
        })?;
        if format != FORMAT {
            let number = |format: i32| u32::try_from(format).unwrap_or_default();
            let path = database.shown.clone();
            return Err(StoreError::Format { path, found: number(format), known: number(FORMAT) });
        }
        let (pool, gateways) = (database.follow_pool.clone(), Arc::clone(&database.gateways));
        let (shown, id) = (database.shown.clone(), gateways.id().0 & ID_SHOWN);
        let name = format!("process {} (gateway {id:06x})", std::process::id());
        let first = (pool.clone(), Arc::clone(&gateways), name.clone());
        let write_pool = database.pool.clone();
        let joining = async move { beat(&first.0, &first.1, &first.2).await };
        database.run("join the gateways", joining)?;
        database.spawn(async move {
            let mut gathering = tokio::task::JoinSet::new();
            loop {
                sleep(BEAT_EVERY).await;
                match beat(&pool, &gateways, &name).await {
                    // The renewal does not wait for it.
                    Ok(true) if gathering.is_empty() || gathering.try_join_next().is_some() => {
                        gathering.spawn(gather_statistics(write_pool.clone()));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        let error = error.of_store("say that this gateway lives", &shown);
                        tracing::warn!(error = %crate::in_words(&error), "the database does not know that this gateway lives");
                        close_idle(&pool);
                    }
                }
            }
        });
        Ok(Arc::new(database))
    }

    /// The name of the database in messages.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    /// The gateways that share it.
    pub(crate) const fn gateways(&self) -> &Arc<Gateways> {
        &self.gateways
    }

    /// Runs `work` on its own runtime.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    /// Runs `work` on its own runtime, and waits for it. Blocks.
    pub(super) fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl Future<Output = Result<T, SqlError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, answer) = mpsc::sync_channel(1);
        self.spawn(async move { drop(sender.send(work.await)) });
        let ended = || Err(SqlError::Refused("it was let go of".to_owned()));
        let done = answer.recv().unwrap_or_else(|_| ended());
        done.map_err(|error| error.of_store(doing, &self.shown))
    }

    /// An engine that reads each entry by itself.
    pub(crate) fn engine(self: &Arc<Self>) -> PostgresEngine {
        PostgresEngine::new(Arc::clone(self), None)
    }

    /// Begins a transaction that writes in `scope`, or a snapshot without one. Blocks.
    pub(crate) fn begin(
        self: &Arc<Self>,
        scope: Option<WriteScope>,
        first: FirstRead,
    ) -> Result<PostgresEngine, StoreError> {
        let runtime = self.runtime.as_ref().ok_or(StoreError::Closed)?;
        let (pool, handle) = (self.pool.clone(), runtime.handle().clone());
        let begun = self.run("begin a transaction", async move {
            let client = connection(&pool).await?;
            in_time(OpenTransaction::begin(client, handle, scope, first)).await
        })?;
        Ok(PostgresEngine::new(Arc::clone(self), Some(Arc::new(begun))))
    }

    /// Begins a snapshot, with the last numbered position. Blocks.
    pub(crate) fn snapshot_with_position(
        self: &Arc<Self>,
    ) -> Result<(PostgresEngine, i64), StoreError> {
        let engine = self.begin(None, FirstRead::default())?;
        let position = engine.ask("read", |client| async move {
            let rows = query(&client, POSITION, &[]).await?;
            get(only(&rows)?, 0)
        })?;
        Ok((engine, position))
    }

    /// Reads the notes after a position from one snapshot. `numbers`: number the committed notes first.
    pub(crate) async fn read_notes(
        &self,
        after: i64,
        numbers: bool,
    ) -> Result<SeenNotes, StoreError> {
        let read = async |client: &Object| {
            let reading = client.prepare_cached(READ_NOTES).await?;
            let numbering = client.prepare_cached(NUMBER).await?;
            let number = async {
                match numbers {
                    true => client.execute(&numbering, &[]).await.map(drop),
                    false => Ok(()),
                }
            };
            // Both are sent at once on one connection, in this order.
            let (numbered, rows) = tokio::join!(
                biased;
                number,
                async { client.query(&reading, &[&after]).await },
            );
            numbered?;
            let rows = rows?;
            let first = only(&rows)?;
            let position: i64 = get(first, 0)?;
            let entries = rows.iter().map(noted).collect::<Result<Vec<_>, _>>()?;
            Ok(SeenNotes {
                position,
                epoch: u64::try_from(get::<i64>(first, 1)?).unwrap_or_default(),
                forgotten: position.saturating_sub(KEPT_POSITIONS),
                has_more: get(first, 2)?,
                entries: entries.into_iter().flatten().collect(),
            })
        };
        let read = on_connection(&self.follow_pool, NOTES_TIMEOUT, read).await;
        read.map_err(|error| error.of_store("look at what was written", &self.shown))
    }
}

/// Drops a database on another thread: the last reference joins the threads of its runtime, which none of those can
/// do.
pub(crate) fn release_database(database: Arc<Database>) {
    if let Some(last) = Arc::into_inner(database) {
        drop(tokio::task::spawn_blocking(move || drop(last)));
    }
}

/// Decodes a row of the notes.
fn noted(row: &Row) -> Result<Option<NotedEntry>, SqlError> {
    let value =
        |column| Ok::<_, SqlError>(get::<Option<&[u8]>>(row, column)?.map(Bytes::copy_from_slice));
    let Some(key) = get::<Option<Vec<u8>>>(row, 3)? else { return Ok(None) };
    Ok(Some(NotedEntry { key, state: value(4)?, record: value(5)?, identity: value(6)? }))
}

/// Makes the tables where there are none; answers their format.
async fn make_tables(client: &Object) -> Result<i32, SqlError> {
    if !get::<bool>(only(&query(client, HAS_TABLES, &[]).await?)?, 0)? {
        client.batch_execute(TABLES).await?;
        tracing::info!("the tables of the store were made");
    }
    get(only(&query(client, VERSION, &[]).await?)?, 0)
}

fn unix_millis() -> i64 {
    i64::try_from(unix_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

/// Gathers the statistics of the query planner, and pauses.
async fn gather_statistics(pool: Pool) {
    let gathering = async |client: &Object| Ok(client.batch_execute(ANALYZE).await?);
    if let Err(error) = on_connection(&pool, GATHER_TIME, gathering).await {
        tracing::warn!(?error, "the database's statistics were not gathered");
    }
    sleep(GATHER_PAUSE).await;
}

/// Renews the row of this gateway, and reads those of the others; answers whether so much was written that statistics
/// are to be gathered.
async fn beat(pool: &Pool, gateways: &Gateways, name: &str) -> Result<bool, SqlError> {
    let (began, asked, id) = (since_boot(), unix_millis(), gateways.id());
    let (polls, settings) = (gateways.polls(), gateways.published_settings());
    let beating = async |client: &Object| {
        execute(client, BEAT, &[&id.0, &name, &polls, &settings]).await?;
        let rows = query(client, GATEWAYS, &[]).await?;
        execute(client, FORGET_GATEWAYS, &[]).await?;
        Ok(rows)
    };
    let rows = on_connection(pool, LEASE / 3, beating).await?;
    let now: i64 = get(only(&rows)?, 5)?;
    let behind = now.saturating_sub(unix_millis()).max(0);
    gateways.set_clock_ahead(asked.saturating_sub(now).max(0).saturating_sub(behind));
    let mut live = Vec::new();
    for row in &rows {
        let beat_age = u64::try_from(get::<i64>(row, 4)?).unwrap_or_default();
        let (other, beat_age) = (GatewayId(get(row, 0)?), Duration::from_millis(beat_age));
        if beat_age < LEASE {
            let differing = gateways.differing(&get::<String>(row, 3)?);
            let is_this = other == id;
            let (name, polls) = (get(row, 1)?, get(row, 2)?);
            live.push(KnownGateway { id: other, name, is_this, polls, beat_age, differing });
        }
    }
    live.sort_by_key(|gateway| gateway.id);
    gateways.confirm(began, live.into());
    get(only(&rows)?, 6)
}

impl Drop for Database {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let (pool, id) = (self.follow_pool.clone(), self.gateways.id().0);
        let (sender, answer) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            let leaving = async |client: &Object| execute(client, LEAVE, &[&id]).await;
            let left = timeout(LEAVE_TIME, on_connection(&pool, LEAVE_TIME, leaving)).await;
            if !matches!(left, Ok(Ok(_))) {
                tracing::warn!("the others learn only after {LEASE:?} that this gateway has ended");
            }
            let _ = sender.send(());
        });
        let _ = answer.recv();
        runtime.shutdown_background();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestSchema;

    #[tokio::test]
    async fn gateways_that_start_together_make_the_tables_once() {
        let Some(schema) = TestSchema::new() else { return };
        let pool = DatabaseAddress::parse(&schema.url).unwrap().pool(3).unwrap();
        let connect = async || connection(&pool).await.unwrap();
        let (one, two, other) = (connect().await, connect().await, connect().await);
        let lock =
            "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' tables', 0))";
        other.batch_execute(&format!("BEGIN; {lock}")).await.unwrap();
        // Both have seen no tables by then, and wait for the lock.
        let release = async {
            sleep(Duration::from_millis(500)).await;
            other.batch_execute("COMMIT").await.unwrap();
        };
        let (one, two, ()) = tokio::join!(make_tables(&one), make_tables(&two), release);
        assert_eq!((one.unwrap(), two.unwrap()), (FORMAT, FORMAT));
    }
}
