//! A store within this process: what a feed's records mean, written once over a database
//! ([`super::engine`]).
//!
//! On disk and in memory, one committer does all writes, in groups ([`committer`]). A change that is too large for
//! one transaction is first noted whole, then applied in portions ([`redo`]). A reader of a feed holds its lock; a
//! change holds it alone from planning until publication. After a write that may not be durable, the store
//! acknowledges and publishes nothing and answers only states, until it was opened again ([`reopen`]). On disk the
//! committer has its own thread, and reads run on a bounded number of blocking threads. In memory nothing blocks, so
//! all work is done in the caller.
//!
//! In PostgreSQL, which several gateways write, each write is a transaction ([`transactions`]) and each read has a
//! snapshot. Each gateway updates its copy in memory from the notes of changes that the database numbers
//! ([`follow`]).

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
use self::reader::READS;
use self::shared::{StoreShared, committer_failed};
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
    /// The gateways that share its database, this one included.
    gateways: Option<Arc<Gateways>>,
    /// The space on its file system, where that is watched.
    space: Option<Arc<FreeSpace>>,
    inner: Arc<StoreInner>,
}

/// The part of a store that running requests share; it may outlive the caller of a request.
struct StoreInner {
    shared: Arc<StoreShared>,
    /// Bounds the reads at a time.
    read_permits: Arc<Semaphore>,
    /// Whether reading and writing wait for a disk.
    blocks: bool,
    open: RwLock<OpenState>,
    /// The store is about to be closed: new changes are refused.
    is_closing: AtomicBool,
    /// The thread that writes.
    committer: Mutex<Option<JoinHandle<()>>>,
    /// How current the copy in memory is, where other gateways write to the database as well.
    following: Option<Arc<Following>>,
}

/// Whether the store is open.
enum OpenState {
    Open(OpenStore),
    /// A write failed; the store is being opened again.
    Reopening,
    Closed,
}

/// The parts that closing the store drops.
#[derive(Clone)]
struct OpenStore {
    records: Records,
    writer: Writer,
    /// The data folder, where there is one; dropped last.
    folder: Option<Arc<OpenFolder>>,
}

/// The way in which writes are done.
#[derive(Clone)]
enum Writer {
    /// By the thread of the committer.
    Thread(mpsc::Sender<CommitRequest>),
    /// In the calling task.
    Here(Arc<Mutex<Committer>>),
    /// As transactions of a database that other gateways write to as well.
    Transactions(Arc<Database>),
}

impl Store {
    /// Waits until every accepted change is durable, and releases the folder. Every later call answers
    /// [`StoreError::Closed`].
    pub async fn close(&self) -> Result<(), StoreError> {
        // With all read permits in hand, changes have broken off and every earlier reader has dropped the records.
        self.inner.is_closing.store(true, Ordering::Release);
        let all = self.inner.acquire_all_read_permits().await;
        let Some(rest) = self.inner.begin_close() else { return Err(StoreError::Closed) };
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
        let records = Records::new(Arc::new(MemoryEngine::default()));
        Self::over_memory(records, OpenRequest { endpoint, sup_ids: None }, clock)
    }

    fn over_memory(
        records: Records,
        request: OpenRequest,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let found = inspect(&records)?;
        let opened = open::begin(&records, found, request)?;
        let written = (opened.1.list_writes, opened.1.newest);
        let shared = Arc::new(StoreShared::new(opened, clock));
        let committer = Committer::new(records.clone(), None, &shared, written);
        let writer = Writer::Here(Arc::new(Mutex::new(committer)));
        let open = OpenStore { records, writer, folder: None };
        Ok(Self::new(StoreInner::new(shared, open, false, None)))
    }

    /// A store in a folder that `opener` has opened.
    pub(super) fn in_folder(
        Reopened { records, opened, folder }: Reopened,
        clock: Arc<dyn Clock>,
        opener: StoreOpener,
    ) -> Result<Self, StoreError> {
        let written = (opened.1.list_writes, opened.1.newest);
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

    /// A store in a database that other gateways write to as well, over the image `opened`, which was read at
    /// `position`.
    pub(super) fn in_database(
        database: &Arc<Database>,
        (opened, position): (Opened, i64),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let shared = Arc::new(StoreShared::new(opened, clock));
        let (following, sender) = Following::new(follow::UNSEEN_LIMIT);
        let records = Records::new(Arc::new(database.engine()));
        let writer = Writer::Transactions(Arc::clone(database));
        let open = OpenStore { records, writer, folder: None };
        let inner = StoreInner::new(shared, open, true, Some(Arc::clone(&following)));
        let (within, followed) = (Arc::downgrade(&inner), Arc::downgrade(database));
        database.spawn(follow::follow(within, followed, (following, sender), position));
        let mut store = Self::new(inner);
        store.gateways = Some(Arc::clone(database.gateways()));
        store
    }

    /// A store that no other gateway writes to.
    fn new(inner: Arc<StoreInner>) -> Self {
        let IdentityRecord { endpoint, sup_ids, .. } = inner.shared.identity();
        Self { endpoint, sup_ids, gateways: None, space: None, inner }
    }

    /// Refuses new content while the file system has too little space.
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
            read_permits: Arc::new(Semaphore::new(READS as usize)),
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
            OpenState::Reopening => Err(self.stop_error()),
            OpenState::Closed => Err(StoreError::Closed),
        }
    }

    /// The records; an error while the store is stopped, or the database was not seen for too long.
    fn records(&self) -> Result<Records, StoreError> {
        let records = self.opened()?.records;
        self.following.as_ref().map_or(Ok(()), |following| following.check_seen())?;
        self.shared.health().map(|()| records)
    }

    /// An error where states in memory must not be answered. While the store is opened again they may be: what was
    /// published is durable.
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

    /// The reason why no request is served.
    fn stop_error(&self) -> StoreError {
        self.shared.health().err().unwrap_or_else(committer_failed)
    }

    /// Sends `work` to the committer, and waits until it is durable.
    async fn submit<T: Send + 'static>(
        &self,
        scope: WriteScope,
        work: impl FnOnce(&mut Committer) -> Result<T, CommitError> + Send + 'static,
    ) -> Result<T, CommitError> {
        let (reply, answer) = oneshot::channel();
        let request = |work| CommitRequest::new(&scope, work, reply);
        match self.opened()?.writer {
            Writer::Thread(requests) => {
                if requests.send(request(work)).await.is_err() {
                    return Err(self.stop_error().into());
                }
            }
            Writer::Here(committer) => {
                committer.lock().map_err(|_| committer_failed())?.serve(vec![request(work)]);
            }
            Writer::Transactions(_) => return self.transact(scope, Vec::new(), work).await,
        }
        // The committer ended with the request: unknown whether it was carried out.
        answer.await.unwrap_or_else(|_| Err(CommitError::Ambiguous(self.stop_error())))
    }

    /// Runs `work` to its end even if the caller is dropped.
    async fn run_to_end<T: Send + 'static>(
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

    /// Marks the store as closed; answers the rest of closing, which blocks. `None` where it was closed before.
    fn begin_close(&self) -> Option<impl FnOnce() + Send + 'static + use<>> {
        let open = match self.replace(OpenState::Closed) {
            OpenState::Open(open) => Some(open),
            OpenState::Reopening => None,
            OpenState::Closed => return None,
        };
        let thread = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let shared = Arc::clone(&self.shared);
        Some(move || close(open, thread, &shared))
    }
}

/// Waits for the committer, drops the database and notes the last epoch in the folder. Blocks.
fn close(open: Option<OpenStore>, committer: Option<JoinHandle<()>>, shared: &StoreShared) {
    let Some(OpenStore { records, writer, folder }) = open else {
        // The store was being opened again, which ends by itself: there is no state to note.
        drop(committer.map(JoinHandle::join));
        return;
    };
    drop(writer);
    let ended = committer.is_none_or(|thread| thread.join().is_ok());
    drop(records);
    if let Some(folder) = folder.filter(|_| ended && shared.health().is_ok()) {
        folder.note_end(*shared.newest.borrow());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(rest) = self.inner.begin_close() {
            rest();
        }
    }
}
