//! A store within this process: what a feed's records mean, written once over a database
//! ([`super::engine`]).
//!
//! On disk and in memory, writes go to one committer, which groups them ([`committer`]); a large one is made certain
//! first, and then applied in portions ([`redo`]). A reader holds the gate of its feed, which is shut while a change is
//! applied. After a write that may not have become durable, nothing is acknowledged or published, and only states are
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
mod request;
mod shared;
#[cfg(any(test, feature = "testing"))]
pub(super) mod testing;
#[cfg(test)]
mod tests;
mod transactions;
mod transfer;
mod write;

pub use self::follow::SHOWN_WITHIN;
pub(super) use self::follow::read_image;
pub(super) use self::open::{
    Found, IDENTITY_KEY, OpenRequest, Opened, begin, identify, identity, inspect, is_used,
};
pub use self::reader::{PinnedFeed, RemainingItems};
pub(super) use self::records::Records;
pub(super) use self::reopen::{Reopen, ReopenPauses, Reopened};
pub(super) use self::request::WriteScope;

use self::committer::Committer;
use self::follow::Following;
use self::reading::READS;
use self::request::CommitRequest;
use self::shared::{StoreShared, broken};
use super::engine::MemoryEngine;
use super::postgres::Database;
use super::{CommitError, Epoch, FreeSpace, Gateways, StoreError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use tidegate_core::clock::Clock;
use tidegate_core::model::{EndpointId, SupIdBasis};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The most requests that wait for the committer before callers wait to ask.
const REQUESTS: usize = 1024;

/// The place that a database has, which may keep notes beside it.
pub(crate) trait StorePlace: Send + Sync + 'static {
    /// Whether reading and writing wait for a disk or a network.
    fn blocks(&self) -> bool {
        true
    }

    /// Notes an epoch that became durable, without waiting for the disk.
    fn note(&self, _epoch: Epoch) -> std::io::Result<()> {
        Ok(())
    }

    /// Notes what the store had reached when it was closed.
    fn closed(&self, _epoch: Epoch) {}
}

/// What is in memory leaves no note.
pub(super) struct Nowhere;

impl StorePlace for Nowhere {
    fn blocks(&self) -> bool {
        false
    }
}

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
    clock: Arc<dyn Clock>,
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
    /// What the database's place does at the end; gone last.
    place: Arc<dyn StorePlace>,
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
        let source = match ended {
            Ok(()) => return self.inner.shared.health(),
            Err(error) => std::io::Error::other(error),
        };
        Err(StoreError::Io { doing: "close", source })
    }

    /// An empty store that keeps everything in memory, and forgets it when it ends. `endpoint`: as
    /// configured; one without chooses its own at random.
    pub fn in_memory(
        endpoint: Option<EndpointId>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::in_memory_as(endpoint, None, clock)
    }

    /// The same; `sup_ids` says what SUP ids are made of.
    pub fn in_memory_as(
        endpoint: Option<EndpointId>,
        sup_ids: Option<SupIdBasis>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::over_memory(
            Records::of(Arc::new(MemoryEngine::default())),
            OpenRequest { endpoint, sup_ids },
            clock,
        )
    }

    /// Closes a store in memory and opens another over the same content: what a restart is to a store on disk.
    pub fn reopen(&self) -> Result<Self, StoreError> {
        if self.inner.blocks {
            let path = self.inner.opened()?.records.engine().path().to_owned();
            return Err(StoreError::InUse { path });
        }
        let open = self.inner.replace(OpenState::Closed);
        let OpenState::Open(OpenStore { records, .. }) = open else {
            return Err(StoreError::Closed);
        };
        let clock = Arc::clone(&self.inner.clock);
        Self::over_memory(records, OpenRequest::default(), clock)
    }

    fn over_memory(
        records: Records,
        request: OpenRequest,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let found = inspect(&records)?;
        let opened = open::begin(&records, found, request)?;
        Self::over(Reopened { records, opened, place: Arc::new(Nowhere) }, clock, None)
    }

    /// A store over a database that was opened. `reopen`: how it is opened again after a failure.
    pub(super) fn over(
        Reopened { records, opened, place }: Reopened,
        clock: Arc<dyn Clock>,
        reopen: Option<Box<dyn Reopen>>,
    ) -> Result<Self, StoreError> {
        let (endpoint, sup_ids) = (opened.0.endpoint.clone(), opened.0.sup_ids);
        let written = (opened.1.list_writes, opened.1.sealed);
        let shared = Arc::new(StoreShared::new(opened, Arc::clone(&clock)));
        let parts = (records.clone(), Arc::clone(&place));
        let committer = Committer::new(parts, &shared, &clock, written);
        let blocks = place.blocks();
        let inner = |writer| StoreInner::new(shared, clock, (records, writer, place), None);
        if !blocks {
            let inner = inner(Writer::Here(Arc::new(Mutex::new(committer))));
            return Ok(Self { endpoint, sup_ids, gateways: None, space: None, inner });
        }
        let (requests, waiting) = mpsc::channel(REQUESTS);
        let inner = inner(Writer::Thread(requests));
        let (within, whose) = (Arc::downgrade(&inner), endpoint.clone());
        let keep = move || {
            reopen::keep_open(&within, committer, waiting, &whose, reopen.as_deref());
        };
        let thread = std::thread::Builder::new()
            .name("store-committer".to_owned())
            .spawn(keep)
            .map_err(|source| StoreError::Io { doing: "start its thread", source })?;
        *inner.committer.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(Self { endpoint, sup_ids, gateways: None, space: None, inner })
    }

    /// A store in a database that others write to as well, as it was found.
    pub(super) fn in_database(
        database: &Arc<Database>,
        (opened, position): (Opened, i64),
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (endpoint, sup_ids) = (opened.0.endpoint.clone(), opened.0.sup_ids);
        let shared = StoreShared::new(opened, Arc::clone(&clock));
        let (following, requests) = Following::new(follow::UNSEEN_LIMIT);
        let records = Records::of(Arc::new(database.engine()));
        let writer = Writer::Transactions(Arc::clone(database));
        let parts = (records, writer, Arc::clone(database) as Arc<dyn StorePlace>);
        let inner = StoreInner::new(Arc::new(shared), clock, parts, Some(Arc::clone(&following)));
        let within = Arc::downgrade(&inner);
        let followed = Arc::downgrade(database);
        let task = follow::follow(within, followed, following, requests, position);
        database.spawn(task);
        let gateways = Some(Arc::clone(database.gateways()));
        Self { endpoint, sup_ids, gateways, space: None, inner }
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
        clock: Arc<dyn Clock>,
        (records, writer, place): (Records, Writer, Arc<dyn StorePlace>),
        following: Option<Arc<Following>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            clock,
            reads: Arc::new(Semaphore::new(READS as usize)),
            blocks: place.blocks(),
            open: RwLock::new(OpenState::Open(OpenStore { records, writer, place })),
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

    /// The records, where the store works.
    fn records(&self) -> Result<Records, StoreError> {
        let records = self.opened()?.records;
        self.shared.health().map(|()| records)
    }

    /// An error where the store is closed; not where it is opened again.
    fn check_open(&self) -> Result<(), StoreError> {
        match &*self.open.read().unwrap_or_else(PoisonError::into_inner) {
            OpenState::Open(_) | OpenState::Again => Ok(()),
            OpenState::Closed => Err(StoreError::Closed),
        }
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
            Writer::Here(committer) => serve_here(&committer, request(work))?,
            Writer::Transactions(_) => return self.transact(scope, work).await,
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
        tokio::spawn(work).await.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(CommitError::Ambiguous(StoreError::Io { doing: "write", source }))
        })
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

/// Has a request served by a committer that has no thread of its own.
fn serve_here(committer: &Mutex<Committer>, request: CommitRequest) -> Result<(), StoreError> {
    let mut committer = committer.lock().map_err(|_| broken())?;
    committer.serve(vec![request]);
    Ok(())
}

/// Waits for the committer, lets go of the database and notes what the store has reached. Blocks.
fn close(open: Option<OpenStore>, committer: Option<JoinHandle<()>>, shared: &StoreShared) {
    let Some(OpenStore { records, writer, place }) = open else {
        // Opening it again ends soon; there is nothing to note.
        drop(committer.map(JoinHandle::join));
        return;
    };
    drop(writer);
    let ended = committer.is_none_or(|thread| thread.join().is_ok());
    drop(records);
    if ended && shared.health().is_ok() {
        place.closed(*shared.sealed.borrow());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(rest) = self.inner.take() {
            rest();
        }
    }
}
