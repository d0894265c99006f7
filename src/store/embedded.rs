//! A store within this process: what a feed's records mean, written once over a database
//! ([`super::engine`]).
//!
//! On disk and in memory, writes go to one committer, which groups them ([`committer`]); a large one is made certain
//! first, and then applied in portions ([`redo`]). Who reads a feed holds its lock, which a change of it has to itself from
//! when it is planned until it is published. After a write that may not have become durable, nothing is acknowledged or published, and only states are
//! answered, until the store was opened again ([`reopen`]). On disk the committer has a thread of its own, and reads run
//! on blocking threads, a bounded number at a time. In memory nothing blocks, and all is done where it is asked for.
//!
//! In PostgreSQL, which several gateways write, each write is a transaction ([`transactions`]), each read is made as of
//! one moment, and what gateways have in memory follows what the database numbers ([`follow`]).

mod archives;
mod committer;
mod feed;
mod feed_writer;
mod follow;
mod health;
mod incarnation;
mod keys;
mod open;
mod operations;
mod past;
mod plan;
mod prune;
mod purge;
mod read;
mod reader;
mod reading;
mod records;
mod redo;
mod reopen;
mod shared;
#[cfg(any(test, feature = "testing"))]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod transactions;
mod transfer;
mod write;

pub(super) use self::committer::WriteScope;
pub use self::follow::SHOWN_WITHIN;
pub(super) use self::follow::read_image;
pub(super) use self::open::{
    Found, IDENTITY_KEY, OpenRequest, Opened, begin, identify, identity, inspect, is_used,
};
pub use self::reader::{PinnedFeed, RemainingItems};
pub(super) use self::records::Records;
pub(super) use self::reopen::{ReopenPauses, Reopened};

use self::committer::{CommitRequest, Committer};
use self::follow::Following;
use self::reading::READS;
use self::shared::{StoreShared, broken};
use super::disk::{OpenFolder, StoreOpener};
use super::engine::MemoryEngine;
use super::postgres::Database;
use super::record::IdentityRecord;
use super::{CommitError, FreeSpace, Gateways, StoreError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use tidegate_core::clock::Clock;
use tidegate_core::model::{EndpointId, SupIdBasis};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The most requests that wait for the committer before callers wait to ask.
const REQUESTS: usize = 1024;

/// A store on disk or in memory.
pub struct Store {
    endpoint: EndpointId,
    sup_ids: SupIdBasis,
    /// Who shares its database, with this gateway.
    gateways: Option<Arc<Gateways>>,
    /// The space on its file system, where that is watched.
    space: Option<Arc<FreeSpace>>,
    inner: Arc<StoreInner>,
}

/// What a request takes with it, which may go on when nobody waits for it any more.
struct StoreInner {
    shared: Arc<StoreShared>,
    /// The turns to read.
    reads: Arc<Semaphore>,
    /// Whether reading and writing wait for a disk.
    blocks: bool,
    open: RwLock<OpenState>,
    /// No change is begun any more.
    is_closing: AtomicBool,
    /// The thread that writes.
    committer: Mutex<Option<JoinHandle<()>>>,
    /// What is known of a database that others write to as well.
    following: Option<Arc<Following>>,
}

/// Whether the store is open.
enum OpenState {
    Open(OpenStore),
    /// It failed, and is opened again.
    Again,
    Closed,
}

/// What goes when the store is closed.
#[derive(Clone)]
struct OpenStore {
    records: Records,
    writer: Writer,
    /// The folder, where it has one; gone last.
    folder: Option<Arc<OpenFolder>>,
}

/// Where writes are done.
#[derive(Clone)]
enum Writer {
    /// In a thread of their own.
    Thread(mpsc::Sender<CommitRequest>),
    /// Where they are asked for.
    Here(Arc<Mutex<Committer>>),
    /// In a database that others write to as well: each is a transaction.
    Transactions(Arc<Database>),
}

impl Store {
    /// Waits until everything that was accepted is durable, and lets go of the folder. Every later
    /// call answers [`StoreError::Closed`].
    pub async fn close(&self) -> Result<(), StoreError> {
        // Changes break off and are undone, and every reader that began before has let go of the records,
        // once all turns are here.
        self.inner.is_closing.store(true, Ordering::Release);
        let all = self.inner.all_turns().await;
        let Some(rest) = self.inner.take() else { return Err(StoreError::Closed) };
        if !self.inner.blocks {
            rest();
            return self.inner.shared.health();
        }
        let ended = tokio::task::spawn_blocking(rest).await;
        drop(all);
        ended.map_err(|error| StoreError::failed("close", error))?;
        self.inner.shared.health()
    }

    /// An empty store that keeps everything in memory, and forgets it when it ends. `endpoint`: as
    /// configured; one without chooses its own at random.
    pub fn in_memory(
        endpoint: Option<EndpointId>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let records = Records::of(Arc::new(MemoryEngine::default()));
        Self::over_memory(records, OpenRequest { endpoint, sup_ids: None }, clock)
    }

    fn over_memory(
        records: Records,
        request: OpenRequest,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let found = inspect(&records)?;
        let opened = open::begin(&records, found, request)?;
        let written = (opened.1.list_writes, opened.1.sealed);
        let shared = Arc::new(StoreShared::new(opened, clock));
        let committer = Committer::new(records.clone(), None, &shared, written);
        let writer = Writer::Here(Arc::new(Mutex::new(committer)));
        let open = OpenStore { records, writer, folder: None };
        Ok(Self::new(StoreInner::new(shared, open, false, None)))
    }

    /// A store in a folder, as it was opened by what opens it again after a failure.
    pub(super) fn in_folder(
        Reopened { records, opened, folder }: Reopened,
        clock: Arc<dyn Clock>,
        opener: StoreOpener,
    ) -> Result<Self, StoreError> {
        let written = (opened.1.list_writes, opened.1.sealed);
        let shared = Arc::new(StoreShared::new(opened, clock));
        let folder = Some(folder);
        let committer = Committer::new(records.clone(), folder.clone(), &shared, written);
        let (requests, waiting) = mpsc::channel(REQUESTS);
        let open = OpenStore { records, writer: Writer::Thread(requests), folder };
        let inner = StoreInner::new(shared, open, true, None);
        let within = Arc::downgrade(&inner);
        let thread = std::thread::Builder::new()
            .name("store-committer".to_owned())
            .spawn(move || reopen::keep_open(&within, committer, waiting, &opener))
            .map_err(|source| StoreError::Io { doing: "start its thread", source })?;
        *inner.committer.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(Self::new(inner))
    }

    /// A store in a database that others write to as well, as it was found.
    pub(super) fn in_database(
        database: &Arc<Database>,
        (opened, position): (Opened, i64),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let shared = Arc::new(StoreShared::new(opened, clock));
        let (following, looked) = Following::new(follow::UNSEEN_LIMIT);
        let records = Records::of(Arc::new(database.engine()));
        let writer = Writer::Transactions(Arc::clone(database));
        let open = OpenStore { records, writer, folder: None };
        let inner = StoreInner::new(shared, open, true, Some(Arc::clone(&following)));
        let (within, followed) = (Arc::downgrade(&inner), Arc::downgrade(database));
        database.spawn(follow::follow(within, followed, (following, looked), position));
        let mut store = Self::new(inner);
        store.gateways = Some(Arc::clone(database.gateways()));
        store
    }

    /// One that is its gateway's alone.
    fn new(inner: Arc<StoreInner>) -> Self {
        let IdentityRecord { endpoint, sup_ids, .. } = inner.shared.identity();
        Self { endpoint, sup_ids, gateways: None, space: None, inner }
    }

    /// Takes nothing new in while the file system has too little space.
    #[must_use]
    pub fn with_space(mut self, space: Arc<FreeSpace>) -> Self {
        self.space = Some(space);
        self
    }
}

impl StoreInner {
    fn new(
        shared: Arc<StoreShared>,
        open: OpenStore,
        blocks: bool,
        following: Option<Arc<Following>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            reads: Arc::new(Semaphore::new(READS as usize)),
            blocks,
            open: RwLock::new(OpenState::Open(open)),
            is_closing: AtomicBool::new(false),
            committer: Mutex::default(),
            following,
        })
    }

    fn opened(&self) -> Result<OpenStore, StoreError> {
        match &*self.open.read().unwrap_or_else(PoisonError::into_inner) {
            OpenState::Open(open) => Ok(open.clone()),
            OpenState::Again => Err(self.unserved()),
            OpenState::Closed => Err(StoreError::Closed),
        }
    }

    /// The records, where the store works and its database is seen.
    fn records(&self) -> Result<Records, StoreError> {
        let records = self.opened()?.records;
        self.following.as_ref().map_or(Ok(()), |following| following.check_seen())?;
        self.shared.health().map(|()| records)
    }

    /// An error where nothing is answered from memory; not where the store is opened again, for what was published is
    /// durable.
    fn check_answers(&self) -> Result<(), StoreError> {
        if self.is_closed() {
            return Err(StoreError::Closed);
        }
        self.following.as_ref().map_or(Ok(()), |following| following.check_seen())
    }

    fn is_closed(&self) -> bool {
        matches!(&*self.open.read().unwrap_or_else(PoisonError::into_inner), OpenState::Closed)
    }

    fn replace(&self, state: OpenState) -> OpenState {
        std::mem::replace(&mut *self.open.write().unwrap_or_else(PoisonError::into_inner), state)
    }

    /// Why nobody serves a request.
    fn unserved(&self) -> StoreError {
        self.shared.health().err().unwrap_or_else(broken)
    }

    /// Asks the committer to do `work`, and waits until that is durable.
    async fn ask<T: Send + 'static>(
        &self,
        scope: WriteScope,
        work: impl FnOnce(&mut Committer) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, CommitError> {
        let (reply, answer) = oneshot::channel();
        let request = |work| CommitRequest::new(&scope, work, reply);
        match self.opened()?.writer {
            Writer::Thread(requests) => {
                if requests.send(request(work)).await.is_err() {
                    return Err(self.unserved().into());
                }
            }
            Writer::Here(committer) => {
                committer.lock().map_err(|_| broken())?.serve(vec![request(work)]);
            }
            Writer::Transactions(_) => return self.transact(scope, Vec::new(), work).await,
        }
        // Whether a request that the committer took with it was carried out is unknown.
        answer.await.unwrap_or_else(|_| Err(CommitError::Ambiguous(self.unserved())))
    }

    /// Does `work` to its end, also where nobody waits for it any more.
    async fn to_the_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, CommitError>> + Send + 'static,
    ) -> Result<T, CommitError> {
        if !self.blocks {
            return work.await;
        }
        tokio::spawn(work)
            .await
            .unwrap_or_else(|error| Err(CommitError::Ambiguous(StoreError::failed("write", error))))
    }

    /// Takes what goes when the store is closed: the rest is to be run where blocking is allowed.
    fn take(&self) -> Option<impl FnOnce() + Send + 'static + use<>> {
        let open = match self.replace(OpenState::Closed) {
            OpenState::Open(open) => Some(open),
            OpenState::Again => None,
            OpenState::Closed => return None,
        };
        let thread = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let shared = Arc::clone(&self.shared);
        Some(move || close(open, thread, &shared))
    }
}

/// Waits for the committer, lets go of the database and notes what the store has reached. Blocks.
fn close(open: Option<OpenStore>, committer: Option<JoinHandle<()>>, shared: &StoreShared) {
    let Some(OpenStore { records, writer, folder }) = open else {
        // Opening it again ends soon; there is nothing to note.
        drop(committer.map(JoinHandle::join));
        return;
    };
    drop(writer);
    let ended = committer.is_none_or(|thread| thread.join().is_ok());
    drop(records);
    if let Some(folder) = folder.filter(|_| ended && shared.health().is_ok()) {
        folder.note_end(*shared.sealed.borrow());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(rest) = self.inner.take() {
            rest();
        }
    }
}
