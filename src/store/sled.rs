//! A store on disk. sled is named here and in this folder only.
//!
//! Writes go to one thread, which groups them ([`committer`]); reads run on blocking threads, a
//! bounded number at a time, and see a feed at one durable revision ([`shared`]). After a write
//! that may not have become durable, nothing is acknowledged, published or answered any more.

mod archives;
mod barrier;
mod chain;
mod closing;
mod committer;
mod conflicts;
#[cfg(test)]
mod faults;
mod folder;
mod keys;
mod open;
mod past;
mod plan;
mod private;
mod prune;
mod purge;
mod read;
mod recovery_check;
mod redact;
mod redo;
mod request;
mod shared;
mod supersede;
mod transfer;
mod trees;

use self::barrier::{Barrier, FlushAndSync};
use self::committer::Committer;
use self::folder::StoreFolder;
use self::request::{AnswerSender, CommitRequest};
use self::shared::{Published, StoreShared, broken};
use self::trees::Trees;
use super::portable::ExportRecord;
use super::{
    Claim, ClosedEpoch, CommitError, Committed, Epoch, Holdings, KeptVersion, Past, PastSelect,
    Pruned, Retention, Select, Store, StoreError, VersionNote, View, lineage,
};
use crate::clock::Clock;
use crate::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Attempt, Change, Count, EndpointId, Event,
    FeedName, FeedRecord, FeedState, Item, LedgerEntry, PollState, Snapshot, SupIdBasis, SyncId,
    Time,
};
use crate::websub::Subscription;
use async_trait::async_trait;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

/// The most reads at a time.
const READS: u32 = 16;
/// The most requests that wait for the committer before callers wait to ask.
const REQUESTS: usize = 1024;

/// A store on disk.
pub struct SledStore {
    endpoint: EndpointId,
    sup_ids: SupIdBasis,
    fence: u64,
    shared: Arc<StoreShared>,
    reads: Arc<Semaphore>,
    /// `None` once closed.
    open: RwLock<Option<OpenFolder>>,
    committer: Mutex<Option<JoinHandle<()>>>,
}

/// What goes when the store is closed. The folder's lock goes last.
#[derive(Clone)]
struct OpenFolder {
    requests: mpsc::Sender<CommitRequest>,
    trees: Arc<Trees>,
    folder: Arc<StoreFolder>,
}

impl SledStore {
    /// Opens the store in the folder `path`, or makes one. `endpoint`: as configured; a new store
    /// without one chooses its own at random, a used one refuses another. Blocks.
    pub fn open(
        path: &Path,
        endpoint: Option<EndpointId>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::open_as(path, endpoint, None, clock)
    }

    /// The same; `sup_ids` says what SUP ids are made of in a new store, for one that takes the place of
    /// another.
    pub fn open_as(
        path: &Path,
        endpoint: Option<EndpointId>,
        sup_ids: Option<SupIdBasis>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::open_with(path, (endpoint, sup_ids), clock, |trees, folder| {
            let barrier = FlushAndSync::new(trees.db().clone(), folder.path())
                .map_err(|source| StoreError::Io { doing: "open its database", source })?;
            Ok(Box::new(barrier))
        })
    }

    fn open_with(
        path: &Path,
        (endpoint, sup_ids): (Option<EndpointId>, Option<SupIdBasis>),
        clock: Arc<dyn Clock>,
        barrier: impl FnOnce(&Trees, &StoreFolder) -> Result<Box<dyn Barrier>, StoreError>,
    ) -> Result<Self, StoreError> {
        let folder = StoreFolder::take(path)?;
        let mark = folder.mark()?;
        let (noted, reached) = folder.reached()?;
        if let Some(mark) = &mark {
            recovery_check::verify_recovery_on_copy(&folder, mark, noted)?;
        }
        let trees = Arc::new(open::engine(folder.path(), folder.path())?);
        folder.restrict();
        let found = open::inspect(&trees, mark.as_ref(), noted)?;
        let mut barrier = barrier(&trees, &folder)?;
        let opened = open::open(&folder, &trees, &mut *barrier, found, endpoint, sup_ids)?;
        let feeds = opened.held.iter().map(|(feed, held)| {
            let published = Published::new(held.state.clone());
            (feed.clone(), published)
        });
        let shared = Arc::new(StoreShared::new(feeds.collect(), opened.sealed.0));
        let committer = Committer {
            trees: Arc::clone(&trees),
            shared: Arc::clone(&shared),
            barrier,
            reached,
            clock,
            held: opened.held,
            floors: opened.floors,
            fence: opened.fence,
            mark: lineage::mark(),
            sealed: opened.sealed,
            bringing: None,
        };
        let (requests, waiting) = mpsc::channel(REQUESTS);
        let thread = std::thread::Builder::new()
            .name("store-committer".to_owned())
            .spawn(move || committer.run(waiting))
            .map_err(|source| StoreError::Io { doing: "start its thread", source })?;
        Ok(Self {
            endpoint: opened.endpoint,
            sup_ids: opened.sup_ids,
            fence: opened.fence,
            shared,
            reads: Arc::new(Semaphore::new(READS as usize)),
            open: RwLock::new(Some(OpenFolder { requests, trees, folder: Arc::new(folder) })),
            committer: Mutex::new(Some(thread)),
        })
    }

    fn opened(&self) -> Result<OpenFolder, StoreError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or(StoreError::Closed)
    }

    /// Runs `read` on a blocking thread, where one is free for it.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Trees, &StoreShared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.reads).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let trees = self.opened()?.trees;
        let shared = Arc::clone(&self.shared);
        let reading = tokio::task::spawn_blocking(move || {
            let answer = read(&trees, &shared);
            // The trees go before the permit does: whoever closes waits for all permits.
            drop(trees);
            drop(permit);
            answer
        });
        reading.await.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(StoreError::Io { doing: "read", source })
        })
    }

    /// Asks the committer and waits for its answer; `Err` where there is none.
    async fn ask<T, E>(
        &self,
        request: impl FnOnce(AnswerSender<T, E>) -> CommitRequest,
    ) -> Result<Result<T, E>, Unanswered> {
        let requests = self.opened().map_err(Unanswered::Refused)?.requests;
        let (reply, answer) = oneshot::channel();
        let sent = requests.send(request(reply)).await;
        drop(requests);
        sent.map_err(|_| Unanswered::Refused(broken()))?;
        answer.await.map_err(|_| Unanswered::Lost(broken()))
    }
}

/// Why the committer did not answer.
enum Unanswered {
    /// It never got the request.
    Refused(StoreError),
    /// It broke off with the request in hand.
    Lost(StoreError),
}

impl From<Unanswered> for StoreError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused(error) | Unanswered::Lost(error) => error,
        }
    }
}

impl From<Unanswered> for CommitError {
    fn from(unanswered: Unanswered) -> Self {
        match unanswered {
            Unanswered::Refused(error) => Self::Store(error),
            Unanswered::Lost(error) => Self::Ambiguous(error),
        }
    }
}

#[async_trait]
impl Store for SledStore {
    fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    fn sup_ids(&self) -> SupIdBasis {
        self.sup_ids
    }

    async fn claims(&self, _node: u64, _ttl: Duration) -> Result<Vec<Claim>, StoreError> {
        self.opened()?;
        self.shared.health()?;
        Ok(vec![Claim { shard: 0, fence: self.fence }])
    }

    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        self.read(|trees, shared| shared.listing(|| read::feeds(trees))).await
    }

    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        let record = Box::new(record.clone());
        self.ask(|reply| CommitRequest::PutFeed { record, reply }).await?
    }

    async fn purge_feed(&self, feed: &FeedName) -> Result<(), StoreError> {
        let feed = feed.clone();
        self.ask(|reply| CommitRequest::Purge { feed, reply }).await?
    }

    async fn purged_updates(&self, feed: &FeedName) -> Result<u32, StoreError> {
        let feed = feed.clone();
        self.read(move |trees, _| read::purged_updates(trees, &feed)).await
    }

    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        self.opened()?;
        self.shared.health()?;
        Ok(self.shared.published(feed).map(|published| published.state))
    }

    async fn snapshot(&self, feed: &FeedName) -> Result<Option<Snapshot>, StoreError> {
        let feed = feed.clone();
        self.read(move |trees, shared| {
            shared.reading(&feed, |state| read::snapshot(trees, &feed, state))
        })
        .await
    }

    async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        let feed = feed.clone();
        let ids = self.read(move |trees, shared| {
            shared.reading(&feed, |_| conflicts::ids(trees, &feed).map(Some))
        });
        Ok(ids.await?.unwrap_or_default())
    }

    async fn view(&self, feed: &FeedName, select: Select) -> Result<Option<View>, StoreError> {
        let feed = feed.clone();
        self.read(move |trees, shared| {
            shared.reading(&feed, |state| read::view(trees, &feed, state, select))
        })
        .await
    }

    async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let (feed, id) = (feed.clone(), id.clone());
        self.read(move |trees, shared| shared.reading(&feed, |_| read::item(trees, &feed, &id)))
            .await
    }

    async fn known(&self, feed: &FeedName, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        let (feed, id) = (feed.clone(), id.clone());
        self.read(move |trees, shared| shared.reading(&feed, |_| past::known(trees, &feed, &id)))
            .await
    }

    async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        let (feed, id) = (feed.clone(), id.clone());
        let notes = self.read(move |trees, shared| {
            shared.reading(&feed, |_| read::versions(trees, &feed, &id, limit).map(Some))
        });
        Ok(notes.await?.unwrap_or_default())
    }

    async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let (feed, id) = (feed.clone(), id.clone());
        self.read(move |trees, shared| {
            shared.reading(&feed, |_| past::version(trees, &feed, &id, updates))
        })
        .await
    }

    async fn past(
        &self,
        feed: &FeedName,
        select: PastSelect,
        at: Time,
    ) -> Result<Option<Past>, StoreError> {
        let feed = feed.clone();
        self.read(move |trees, shared| {
            shared.reading(&feed, |state| past::past(trees, &feed, state, select, at).map(Some))
        })
        .await
    }

    async fn holdings(&self, feed: &FeedName) -> Result<Holdings, StoreError> {
        let feed = feed.clone();
        let found = self.read(move |trees, shared| {
            shared.reading(&feed, |state| past::holdings(trees, &feed, state).map(Some))
        });
        Ok(found.await?.unwrap_or_default())
    }

    async fn events(&self, feed: &FeedName, limit: usize) -> Result<Vec<Event>, StoreError> {
        let feed = feed.clone();
        let events = self.read(move |trees, shared| {
            shared.reading(&feed, |_| read::events(trees, &feed, limit).map(Some))
        });
        Ok(events.await?.unwrap_or_default())
    }

    async fn archives(
        &self,
        feed: &FeedName,
        limit: usize,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        let feed = feed.clone();
        let notes = self.read(move |trees, shared| {
            let kept = |state: &FeedState| archives::kept(trees, &feed, state, limit).map(Some);
            shared.reading(&feed, kept)
        });
        Ok(notes.await?.unwrap_or_default())
    }

    async fn archive_place(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        let (feed, id) = (feed.clone(), id.clone());
        self.read(move |trees, shared| {
            shared.reading(&feed, |_| archives::place(trees, &feed, &id))
        })
        .await
    }

    async fn archive(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<Archive>, StoreError> {
        let (feed, id) = (feed.clone(), id.clone());
        self.read(move |trees, shared| {
            shared.reading(&feed, |_| archives::archive(trees, &feed, &id))
        })
        .await
    }

    async fn commit(&self, claim: &Claim, change: Change) -> Result<Committed, CommitError> {
        let prepared = self.read(move |trees, shared| plan::prepare(trees, shared, change)).await?;
        let (claim, prepared) = (claim.clone(), Box::new(prepared));
        self.ask(|reply| CommitRequest::Commit { claim, prepared, reply }).await?
    }

    async fn checkpoint(&self, claim: &Claim, states: &[PollState]) -> Result<(), CommitError> {
        let (claim, states) = (claim.clone(), states.to_vec());
        self.ask(|reply| CommitRequest::Checkpoint { claim, states, reply }).await?
    }

    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        self.read(|trees, shared| shared.listing(|| read::poll_states(trees))).await
    }

    async fn note_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        self.ask(|reply| CommitRequest::NoteAttempt { attempt: attempt.clone(), reply }).await?
    }

    async fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        self.read(|trees, shared| shared.listing(|| read::attempts(trees))).await
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.read(|trees, shared| shared.listing(|| read::subscriptions(trees))).await
    }

    async fn put_subscriptions(&self, subscriptions: &[Subscription]) -> Result<(), StoreError> {
        let subscriptions = subscriptions.to_vec();
        self.ask(|reply| CommitRequest::PutSubscriptions { subscriptions, reply }).await?
    }

    async fn prune(
        &self,
        claim: &Claim,
        feed: &FeedName,
        retention: &Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        let (name, retention) = (feed.clone(), *retention);
        let gone = self.read(move |trees, shared| {
            shared
                .reading(&name, |state| prune::list(trees, &name, state, &retention, now).map(Some))
        });
        let Some(gone) = gone.await? else { return Ok(Pruned::default()) };
        let pruned = gone.pruned;
        // What is kept as it should be costs no write.
        if !gone.is_empty() {
            let (claim, feed) = (claim.clone(), feed.clone());
            self.ask(|reply| CommitRequest::Prune { claim, feed, gone, reply }).await??;
        }
        Ok(pruned)
    }

    async fn trim_log(&self, claim: &Claim, before: Time) -> Result<usize, CommitError> {
        let claim = claim.clone();
        self.ask(|reply| CommitRequest::Trim { claim, before, reply }).await?
    }

    async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        let newest = *self.shared.sealed.borrow();
        let list = move |trees: &Trees| read::epochs_after(trees, after, newest, limit);
        self.read(move |trees, shared| shared.listing(|| list(trees))).await
    }

    fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.shared.sealed.subscribe()
    }

    async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        self.read(move |trees, shared| transfer::export(trees, shared, &to)).await
    }

    async fn import(
        &self,
        claim: &Claim,
        mut from: mpsc::Receiver<ExportRecord>,
    ) -> Result<(), CommitError> {
        loop {
            let mut pieces = Vec::new();
            let taken = from.recv_many(&mut pieces, transfer::AT_ONCE).await;
            let (claim, end) = (claim.clone(), taken == 0);
            self.ask(|reply| CommitRequest::Bring { claim, pieces, end, reply }).await??;
            if end {
                return Ok(());
            }
        }
    }

    async fn close(&self) -> Result<(), StoreError> {
        let Some(rest) = self.take() else { return Err(StoreError::Closed) };
        // Every reader that began before has let go of the trees once all permits are here.
        let all = Arc::clone(&self.reads).acquire_many_owned(READS).await;
        let ended = tokio::task::spawn_blocking(rest).await;
        drop(all);
        let source = match ended {
            Ok(()) => return self.shared.health(),
            Err(error) => std::io::Error::other(error),
        };
        Err(StoreError::Io { doing: "close", source })
    }
}
