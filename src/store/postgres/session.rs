//! A gateway's session with its database: connections, and the lease on its shard.
//!
//! A node says that it lives every sixth of the lease's time. Another one takes a shard only when the node that
//! has it has not said so for the whole time, by the database's clock, and raises the shard's fence as it does:
//! each write names the fence, so whoever had the shard before writes nothing more.

use super::ask::{ASK_TRIES, DatabasePool, READ_PAUSE, get, retried};
use super::clocks::{ClockComparison, unix_millis};
use super::connect::{CONNECTIONS, DatabaseAddress, LEASE_CONNECTIONS, SqlError, connection};
use super::lease::{LeaseState, LeaseWatch, Ownership};
use super::poll_claims::NodeStatus;
use super::statements::{
    BEAT, CLAIM, FORMAT, HAS_VERSIONS, JOIN, LEAVE, NOTE_VERSION, OWNER, PUBLISH_STATUS, RELEASE,
    RELEASE_ALL_POLLS, TABLES, VERSION,
};
use super::writer::WritePosition;
use crate::embedded::{LeaseSign, since_boot};
use crate::{DatabaseOwner, PollShards, StoreError};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering as AtomicOrdering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

/// How long a node that says nothing keeps its shards.
pub(super) const LEASE: Duration = Duration::from_secs(15);
/// So many times in that time a node says that it lives.
pub(super) const BEATS: u32 = 6;
/// The part of the lease that this process relies on: it ends before the others think so.
pub(super) const KEPT_PART: f64 = 0.9;
/// How long the answer to a statement is waited for: longer than the database takes to give up itself.
pub(super) const ANSWER_TIME: Duration = Duration::from_secs(40);
/// How often a claim is tried while others claim as well.
const CLAIM_TRIES: u32 = 100;
/// How long giving back may take at the end.
const LEAVE_TIME: Duration = Duration::from_secs(3);
/// The part of a node's number that its name shows.
const NODE_SHOWN: i64 = 0xff_ffff;
/// The threads that talk to the database.
const THREADS: usize = 2;
/// The shard of all feeds, as long as one gateway has them all.
pub(super) const SHARD: i32 = 0;

/// A gateway's session with its database.
pub(super) struct Session {
    runtime: Option<Runtime>,
    shared: Arc<SessionShared>,
    /// The shards that this node polls, once it does: one at a time finds out which, and nobody else waits for that.
    pub(super) shards: (Mutex<()>, OnceLock<Arc<PollShards>>),
}

/// What is used on the session's own threads.
pub(super) struct SessionShared {
    pub(super) pool: DatabasePool,
    /// What the lease rests on has connections of its own: it does not wait behind what waits for a table.
    pub(super) lease_pool: DatabasePool,
    /// The database, as messages show it.
    pub(super) shown: String,
    /// This process among the nodes, at random.
    pub(super) node: i64,
    pub(super) lease: Duration,
    /// The fence of the claim.
    fence: Mutex<Option<i64>>,
    /// That of the last claim, also once it was given back; 0 before the first.
    last_fence: AtomicI64,
    /// Whether what is in memory may be answered, and whether anything may be written.
    pub(super) sign: Arc<LeaseSign>,
    /// This machine's clock, and the database's.
    pub(super) clocks: ClockComparison,
    /// The status that this node published last; `None`: it is to publish it anew.
    published: Mutex<Option<NodeStatus>>,
    /// Whether this node takes part in polling.
    pub(super) takes_part: AtomicBool,
    /// Whether others took this node for dead since it decided last what it polls.
    pub(super) is_forgotten: AtomicBool,
}

impl Session {
    /// Connects, makes the tables where there are none, and says that this node lives.
    pub(super) fn open(url: &str, lease: Duration) -> Result<Arc<Self>, StoreError> {
        let address = DatabaseAddress::parse(url)?;
        let pool = DatabasePool(address.pool(CONNECTIONS)?);
        let lease_pool = DatabasePool(address.pool(LEASE_CONNECTIONS)?);
        let chance = getrandom::u64().map_err(io::Error::other);
        let chance = chance.map_err(|source| StoreError::Io { doing: "choose a node", source })?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("store-postgres")
            .enable_all()
            .build()
            .map_err(|source| StoreError::Io { doing: "start its threads", source })?;
        let shared = Arc::new(SessionShared {
            pool,
            lease_pool,
            shown: address.shown,
            node: (chance >> 1).cast_signed(),
            lease,
            fence: Mutex::default(),
            last_fence: AtomicI64::default(),
            sign: Arc::new(LeaseSign::new(lease.mul_f64(KEPT_PART))),
            clocks: ClockComparison::default(),
            published: Mutex::default(),
            takes_part: AtomicBool::new(false),
            is_forgotten: AtomicBool::new(false),
        });
        let shards = (Mutex::default(), OnceLock::new());
        let session = Arc::new(Self { runtime: Some(runtime), shared, shards });
        session.run("make its tables", |shared| async move { shared.make_tables().await })?;
        session.check_tables()?;
        let joining = |shared: Arc<SessionShared>| async move {
            // To join again changes nothing.
            retried(READ_PAUSE, || shared.join()).await
        };
        session.run("join the nodes", joining)?;
        if let Some(runtime) = &session.runtime {
            let shared = Arc::downgrade(&session.shared);
            runtime.spawn(async move {
                while let Some(shared) = shared.upgrade() {
                    let pause = shared.lease / BEATS;
                    shared.beat().await;
                    drop(shared);
                    sleep(pause).await;
                }
            });
        }
        Ok(session)
    }

    /// What is used on its threads.
    pub(super) const fn shared(&self) -> &Arc<SessionShared> {
        &self.shared
    }

    /// Does `work` on the session's own threads.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    /// Does `work` on the session's own threads, and waits for it.
    pub(super) async fn run_async<T, F>(
        &self,
        doing: &'static str,
        work: impl FnOnce(Arc<SessionShared>) -> F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlError>> + Send + 'static,
    {
        let done = match &self.runtime {
            Some(runtime) => runtime.spawn(work(Arc::clone(&self.shared))).await.ok(),
            None => None,
        };
        self.outcome(doing, done)
    }

    /// What came of work; `None`: the session ended before it did.
    fn outcome<T>(
        &self,
        doing: &'static str,
        done: Option<Result<T, SqlError>>,
    ) -> Result<T, StoreError> {
        let ended = || Err(SqlError::Refused("the session ended".to_owned()));
        done.unwrap_or_else(ended).map_err(|error| error.of_store(doing, &self.shared.shown))
    }

    /// Does `work` on the session's own threads, and waits for it. Blocks.
    pub(super) fn run<T, F>(
        &self,
        doing: &'static str,
        work: impl FnOnce(Arc<SessionShared>) -> F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlError>> + Send + 'static,
    {
        let (sender, answer) = mpsc::sync_channel(1);
        if let Some(runtime) = &self.runtime {
            let work = work(Arc::clone(&self.shared));
            runtime.spawn(async move { sender.send(work.await) });
        }
        self.outcome(doing, answer.recv().ok())
    }

    /// Reads on the session's own threads, and waits for that, no longer than [`LeaseSign::reads_end`]. Blocks.
    pub(super) fn read<T, F>(
        &self,
        work: impl FnOnce(Arc<SessionShared>) -> F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, SqlError>> + Send + 'static,
    {
        self.run("read", |shared| {
            let reading = work(Arc::clone(&shared));
            async move {
                tokio::select! {
                    biased;
                    read = reading => read,
                    why = shared.sign.reads_end() => {
                        // Those that are idle may lead to the machine that hangs.
                        shared.pool.close_idle();
                        Err(SqlError::Vain(why))
                    }
                }
            }
        })
    }

    /// Takes the shard, where no other node lives that has it. Blocks for as long as that is unknown, at most
    /// the time of the lease. Where another node has taken it since the last claim of this session, that one has it,
    /// also once it is gone: what this process knows from before beside its store, such as who subscribes, may be old.
    pub(super) fn claim(&self) -> Result<WritePosition, StoreError> {
        let position =
            self.run("take its shard", |shared| async move { shared.claim().await })??;
        if let Err(error) = self.check_tables() {
            // The tables may be a newer program's by now, and one of those is to have the shard.
            self.run("give its shard back", |shared| async move { shared.release().await })?;
            return Err(error);
        }
        Ok(position)
    }

    /// An error where the tables have another format: another program writes them.
    pub(super) fn check_tables(&self) -> Result<(), StoreError> {
        let found = self.run("read its format", |shared| async move { shared.format().await })?;
        if found == FORMAT {
            return Ok(());
        }
        let number = |format: i32| u32::try_from(format).unwrap_or_default();
        let path = self.shared.shown.clone();
        Err(StoreError::Format { path, found: number(found), known: number(FORMAT) })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let shared = Arc::clone(&self.shared);
        let (sender, answer) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            if timeout(LEAVE_TIME, shared.leave()).await.is_err() {
                tracing::warn!("the lease was not given back; it runs out by itself");
            }
            let _ = sender.send(());
        });
        let _ = answer.recv();
        runtime.shutdown_background();
    }
}

impl SessionShared {
    fn fence(&self) -> MutexGuard<'_, Option<i64>> {
        self.fence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The status that this node published last.
    pub(super) fn published(&self) -> MutexGuard<'_, Option<NodeStatus>> {
        self.published.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fence of the claim, where this node has the shard of all writes.
    pub(super) fn held_fence(&self) -> Option<i64> {
        *self.fence()
    }

    /// An error where the lease may have run out: another node may have the shard.
    pub(super) fn check_lease(&self) -> Result<(), SqlError> {
        match self.sign.unanswered() {
            None => Ok(()),
            Some(_) => Err(SqlError::Refused("the lease could not be renewed in time".to_owned())),
        }
    }

    /// Makes the tables where there are none.
    async fn make_tables(&self) -> Result<(), SqlError> {
        for _ in 1..ASK_TRIES {
            match self.try_to_make_tables().await {
                // Another node did it at the same time, or its answer was lost.
                Err(SqlError::Database(_)) => sleep(READ_PAUSE).await,
                done => return done,
            }
        }
        self.try_to_make_tables().await
    }

    async fn try_to_make_tables(&self) -> Result<(), SqlError> {
        if self.format().await? > 0 {
            return Ok(());
        }
        let mut client = connection(&self.pool.0).await?;
        let transaction = client.transaction().await?;
        transaction.batch_execute(TABLES).await?;
        transaction.execute(NOTE_VERSION, &[&FORMAT]).await?;
        transaction.commit().await?;
        tracing::info!(database = %self.shown, "the tables were made");
        Ok(())
    }

    /// The format of the tables; 0 where there are none.
    async fn format(&self) -> Result<i32, SqlError> {
        match get(&self.lease_pool.row(HAS_VERSIONS, &[]).await?, 0)? {
            true => get(&self.lease_pool.row(VERSION, &[]).await?, 0),
            false => Ok(0),
        }
    }

    /// Says for the first time that this node lives.
    async fn join(&self) -> Result<(), SqlError> {
        let began = since_boot();
        let (now, place) = self.lease_pool.now().await?;
        // Readers see it: it says nothing of addresses.
        let (process, node) = (std::process::id(), self.node & NODE_SHOWN);
        let name = format!("process {process} (node {node:06x})");
        tracing::info!(name, place, "this gateway is one of those of the database");
        // A node that others took for dead has lost its shards.
        if self.takes_part.load(AtomicOrdering::Acquire)
            && self.lease_pool.execute(BEAT, &[&self.node, &now]).await? == 0
        {
            self.is_forgotten.store(true, AtomicOrdering::Release);
        }
        self.lease_pool.execute(JOIN, &[&self.node, &name, &now]).await?;
        let published = self.published().clone();
        if let Some(NodeStatus { polls, reaches, settings }) = published {
            self.lease_pool
                .execute(PUBLISH_STATUS, &[&self.node, &polls, &reaches, &settings])
                .await?;
        }
        self.sign.answered(began);
        Ok(())
    }

    /// Says once that this node lives.
    pub(super) async fn beat(&self) {
        let began = since_boot();
        let beaten = async {
            let asked = unix_millis();
            let (now, _) = self.lease_pool.now().await?;
            self.clocks.compare(asked, now);
            // Somebody took it for dead and forgot it. The fence says whether anybody has its shard.
            if self.lease_pool.execute(BEAT, &[&self.node, &now]).await? == 0 {
                self.is_forgotten.store(true, AtomicOrdering::Release);
                self.join().await?;
            }
            // A process that was paused learns so that another one has its shard.
            let held = *self.fence();
            let Some(fence) = held else { return Ok::<_, SqlError>(None) };
            let row = self.lease_pool.row(OWNER, &[&SHARD]).await?;
            let seen = Ownership::read(&row, [0, 2, 3, 4])?;
            let is_taken = get::<i64>(&row, 1)? != fence && seen.owner != Some(self.node);
            Ok(is_taken.then_some((fence, seen)))
        };
        // So that there is time for another.
        match timeout(self.lease / 3, beaten).await {
            Ok(Ok(taken_by)) => {
                self.sign.answered(began);
                let held = self.fence();
                match taken_by {
                    Some((fence, seen)) if *held == Some(fence) => drop(self.lost_to(seen)),
                    // This process has taken it again meanwhile.
                    Some(_) => {}
                    None => self.sign.held(began),
                }
            }
            Ok(Err(error)) => {
                self.sign.not_answered();
                let error = error.of_store("renew its lease", &self.shown);
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(%error, ?cause, "the lease on the database was not renewed");
            }
            Err(_) => {
                // Those that are idle may lead to the machine that hangs: each would cost a try. One that is slow is
                // not asked for new ones each time.
                if since_boot().saturating_sub(self.sign.last_answer()) < self.lease * 2 / 3 {
                    self.pool.close_idle();
                    self.lease_pool.close_idle();
                }
                self.sign.not_answered();
                tracing::warn!("the lease on the database was not renewed in time");
            }
        }
    }

    /// Notes that another node has taken the shard. One that gave it back or was forgotten has said nothing of its life.
    fn lost_to(&self, seen: Ownership) -> DatabaseOwner {
        self.sign.lost(seen.name, seen.beat.is_none())
    }

    async fn claim(&self) -> Result<Result<WritePosition, StoreError>, SqlError> {
        retried(READ_PAUSE, || self.join()).await?;
        let (mut watch, mut is_said) = (LeaseWatch::default(), false);
        for _ in 0..CLAIM_TRIES {
            let row = self.lease_pool.row(OWNER, &[&SHARD]).await?;
            let (seen, fence) = (Ownership::read(&row, [0, 2, 3, 4])?, get::<i64>(&row, 1)?);
            let last = self.last_fence.load(AtomicOrdering::Acquire);
            // A claim of this node whose answer was lost is its own. Where the database went back, the fence is lower:
            // then it is looked what is missing.
            if last > 0 && fence > last && seen.owner != Some(self.node) {
                return Ok(Err(StoreError::Overtaken { owner: self.lost_to(seen) }));
            }
            let left = match watch.note(&seen, (self.node, self.lease), Instant::now()) {
                LeaseState::Free => {
                    if self.lease_pool.execute(CLAIM, &[&SHARD, &fence, &self.node]).await? == 1 {
                        let fence = fence.saturating_add(1);
                        *self.fence() = Some(fence);
                        self.last_fence.store(fence, AtomicOrdering::Release);
                        // Only now: until it was taken, another node may have written.
                        let (begun, log_seq) = (since_boot(), self.reached(fence).await?);
                        self.sign.held(begun);
                        return Ok(Ok(WritePosition { fence, log_seq }));
                    }
                    continue;
                }
                LeaseState::Held { has_moved: true, .. } => {
                    let (path, owner) = (self.shown.clone(), seen.name);
                    return Ok(Err(StoreError::Leased { path, owner }));
                }
                LeaseState::Held { left, .. } => left,
            };
            if !std::mem::replace(&mut is_said, true) {
                tracing::warn!(
                    owner = %seen.name,
                    seconds = left.as_millis().div_ceil(1000),
                    "another gateway writes; the database is taken over if that one says nothing more"
                );
            }
            sleep(left.min(self.lease / BEATS).max(READ_PAUSE)).await;
        }
        Err(SqlError::Refused("others took the shard again and again".to_owned()))
    }

    /// Gives the shard back.
    async fn release(&self) -> Result<(), SqlError> {
        let held = self.fence().take();
        if let Some(fence) = held {
            self.lease_pool.execute(RELEASE, &[&SHARD, &fence]).await?;
        }
        Ok(())
    }

    /// Gives everything back, and is no node any more.
    async fn leave(&self) {
        let _ = self.release().await;
        if self.takes_part.load(AtomicOrdering::Acquire) {
            let _ = self.lease_pool.execute(RELEASE_ALL_POLLS, &[&self.node]).await;
        }
        let _ = self.lease_pool.execute(LEAVE, &[&self.node]).await;
    }
}
