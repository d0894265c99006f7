//! A store within this process: what a feed's records mean, written once over a database
//! ([`super::engine`]).
//!
//! Writes go to one committer, which groups them ([`committer`]); a reader sees a feed at one durable
//! revision ([`shared`]). After a write that may not have become durable, nothing is acknowledged,
//! published or answered any more.
//!
//! On disk the committer has a thread of its own, and reads run on blocking threads, a bounded number at
//! a time. In memory nothing blocks, and all is done where it is asked for.

mod archives;
mod chain;
mod committer;
mod conflicts;
mod keys;
mod open;
mod past;
mod plan;
mod prune;
mod purge;
mod read;
mod records;
mod redact;
mod request;
mod shared;
mod supersede;
#[cfg(test)]
mod tests;
mod transfer;

pub(super) use self::open::{Found, check_format, inspect};
pub(super) use self::records::Records;

use self::committer::Committer;
use self::open::Opened;
use self::request::{CommitRequest, Touches, Unanswered, WriteError};
use self::shared::{Published, StoreShared, broken};
use super::engine::MemoryEngine;
use super::portable::ExportRecord;
use super::{
    Claim, ClosedEpoch, CommitError, Committed, Epoch, Holdings, KeptVersion, Past, PastSelect,
    Pruned, Retention, Select, Store, StoreError, VersionNote, View,
};
use crate::clock::Clock;
use crate::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Attempt, Change, Count, EndpointId, Event,
    FeedName, FeedRecord, FeedState, Item, LedgerEntry, PollState, Snapshot, SupIdBasis, SyncId,
    Time,
};
use crate::websub::Subscription;
use async_trait::async_trait;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

/// The most reads at a time.
const READS: u32 = 16;
/// The most requests that wait for the committer before callers wait to ask.
const REQUESTS: usize = 1024;

/// A store on disk or in memory.
pub struct EmbeddedStore {
    endpoint: EndpointId,
    sup_ids: SupIdBasis,
    fence: u64,
    clock: Arc<dyn Clock>,
    shared: Arc<StoreShared>,
    reads: Arc<Semaphore>,
    /// Whether reading and writing wait for a disk.
    blocks: bool,
    /// `None` once closed.
    open: RwLock<Option<OpenStore>>,
    committer: Mutex<Option<JoinHandle<()>>>,
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
}

/// The place that a database has, which keeps notes beside it.
pub(super) trait StorePlace: Send + Sync + 'static {
    /// Whether reading and writing wait for a disk.
    fn blocks(&self) -> bool;

    /// Notes an epoch that became durable, without waiting for the disk.
    fn note(&self, epoch: Epoch) -> std::io::Result<()>;

    /// Notes what the store had reached when it was closed. `is_alone`: nobody has the database open any
    /// more.
    fn closed(&self, epoch: Epoch, is_alone: bool);
}

/// What is in memory leaves no note.
struct Nowhere;

impl StorePlace for Nowhere {
    fn blocks(&self) -> bool {
        false
    }

    fn note(&self, _epoch: Epoch) -> std::io::Result<()> {
        Ok(())
    }

    fn closed(&self, _epoch: Epoch, _is_alone: bool) {}
}

impl EmbeddedStore {
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
            (endpoint, sup_ids),
            clock,
        )
    }

    /// Another store over the same content in memory, with the claim given out anew: what a restart is to
    /// a store on disk. This one must not be written to any more.
    pub fn reopen(&self) -> Result<Self, StoreError> {
        let records = self.opened()?.records;
        let clock = Arc::clone(&self.clock);
        Self::over_memory(records, (None, None), clock)
    }

    fn over_memory(
        records: Records,
        ids: (Option<EndpointId>, Option<SupIdBasis>),
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let found = inspect(&records)?;
        Self::begin(records, found, ids, clock, |_| Ok(Arc::new(Nowhere)))
    }

    /// A store over a database in which this was found. `place`: where it is, once it is decided whose it
    /// is.
    pub(super) fn begin(
        records: Records,
        found: Found,
        (endpoint, sup_ids): (Option<EndpointId>, Option<SupIdBasis>),
        clock: Arc<dyn Clock>,
        place: impl FnOnce(&Opened) -> Result<Arc<dyn StorePlace>, StoreError>,
    ) -> Result<Self, StoreError> {
        let opened = open::begin(&records, found, endpoint, sup_ids)?;
        let place = place(&opened)?;
        let Opened { endpoint, sup_ids, fence, committed, floors, sealed } = opened;
        let feeds = committed.iter().map(|(feed, committed)| {
            let published = Published::new(committed.state.clone());
            (feed.clone(), published)
        });
        let shared = Arc::new(StoreShared::new(feeds.collect(), sealed.0));
        let committer = Committer {
            records: records.clone(),
            shared: Arc::clone(&shared),
            place: Arc::clone(&place),
            clock: Arc::clone(&clock),
            committed,
            floors,
            fence,
            mark: super::lineage::mark(),
            sealed,
            importing: None,
        };
        let blocks = place.blocks();
        let (writer, thread) = if blocks {
            let (requests, waiting) = mpsc::channel(REQUESTS);
            let thread = std::thread::Builder::new()
                .name("store-committer".to_owned())
                .spawn(move || committer.run(waiting))
                .map_err(|source| StoreError::Io { doing: "start its thread", source })?;
            (Writer::Thread(requests), Some(thread))
        } else {
            (Writer::Here(Arc::new(Mutex::new(committer))), None)
        };
        let reads = Arc::new(Semaphore::new(READS as usize));
        let open = RwLock::new(Some(OpenStore { records, writer, place }));
        let committer = Mutex::new(thread);
        Ok(Self { endpoint, sup_ids, fence, clock, shared, reads, blocks, open, committer })
    }

    fn opened(&self) -> Result<OpenStore, StoreError> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.clone().ok_or(StoreError::Closed)
    }

    /// Runs `read`; on a blocking thread, where one is free for it, if it waits for a disk.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Records, &StoreShared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.blocks {
            return self.read_blocking(read).await;
        }
        let records = self.opened()?.records;
        read(&records, &self.shared)
    }

    async fn read_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Records, &StoreShared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.reads).acquire_owned().await;
        let permit = permit.map_err(|_| StoreError::Closed)?;
        let records = self.opened()?.records;
        let shared = Arc::clone(&self.shared);
        let reading = tokio::task::spawn_blocking(move || {
            let answer = read(&records, &shared);
            // The records go before the permit does: whoever closes waits for all permits.
            drop(records);
            drop(permit);
            answer
        });
        reading.await.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(StoreError::Io { doing: "read", source })
        })
    }

    /// Reads of one feed at one revision; the default where nothing was committed to it.
    async fn of_feed<T: Default + Send + 'static>(
        &self,
        feed: &FeedName,
        read: impl FnOnce(&Records, &FeedName, &FeedState) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let feed = feed.clone();
        self.read(move |records, shared| {
            shared.reading(&feed, |state| read(records, &feed, state).map(Some))
        })
        .await
        .map(Option::unwrap_or_default)
    }

    /// Reads over all feeds.
    async fn of_all<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Records) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read(|records, shared| shared.listing(|| read(records))).await
    }

    /// Asks the committer to do `work`, and waits until that is durable.
    async fn ask<T: Send + 'static, E: WriteError>(
        &self,
        touches: Touches,
        work: impl FnOnce(&mut Committer, &mut committer::CommitGroup) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (reply, answer) = oneshot::channel();
        let request = CommitRequest::new(touches, work, reply);
        let writer = self.opened()?.writer;
        match writer {
            Writer::Thread(requests) => {
                if requests.send(request).await.is_err() {
                    return Err(broken().into());
                }
            }
            Writer::Here(committer) => {
                committer.lock().unwrap_or_else(PoisonError::into_inner).serve(vec![request]);
            }
        }
        // Whether a request that the committer took with it was carried out is unknown.
        answer.await.unwrap_or_else(|_| Err(Unanswered(broken()).into()))
    }

    /// Takes what goes when the store is closed: the rest is to be run where blocking is allowed.
    fn take(&self) -> Option<impl FnOnce() + Send + 'static + use<>> {
        let open = self.open.write().unwrap_or_else(PoisonError::into_inner).take()?;
        let thread = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let shared = Arc::clone(&self.shared);
        Some(move || close(open, thread, &shared))
    }
}

/// Waits for the committer, lets go of the database and notes what the store has reached. Blocks.
fn close(open: OpenStore, committer: Option<JoinHandle<()>>, shared: &StoreShared) {
    let OpenStore { records, writer, place } = open;
    drop(writer);
    let ended = committer.is_none_or(|thread| thread.join().is_ok());
    // A reader that is still at work lets the database write after this; then the files as they
    // stand prove nothing.
    let is_alone = records.end();
    if ended && shared.health().is_ok() {
        place.closed(*shared.sealed.borrow(), is_alone);
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        if let Some(rest) = self.take() {
            rest();
        }
    }
}

#[async_trait]
impl Store for EmbeddedStore {
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
        self.of_all(read::feeds).await
    }

    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        let record = record.clone();
        self.ask(Touches::Lists, move |committer, group| committer.put_feed(&record, group)).await
    }

    async fn purge_feed(&self, feed: &FeedName) -> Result<(), StoreError> {
        let name = feed.clone();
        let touches = Touches::FeedAndLists(feed.clone());
        self.ask(touches, move |committer, group| committer.purge(&name, group)).await
    }

    async fn purged_updates(&self, feed: &FeedName) -> Result<u32, StoreError> {
        let feed = feed.clone();
        self.read(move |records, _| read::purged_updates(records, &feed)).await
    }

    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        self.opened()?;
        self.shared.health()?;
        Ok(self.shared.published(feed).map(|published| published.state))
    }

    async fn snapshot(&self, feed: &FeedName) -> Result<Option<Snapshot>, StoreError> {
        self.of_feed(feed, read::snapshot).await
    }

    async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        self.of_feed(feed, |records, feed, _| conflicts::ids(records, feed)).await
    }

    async fn view(&self, feed: &FeedName, select: Select) -> Result<Option<View>, StoreError> {
        self.of_feed(feed, move |records, feed, state| read::view(records, feed, state, select))
            .await
    }

    async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| read::item(records, feed, &id)).await
    }

    async fn known(&self, feed: &FeedName, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| past::known(records, feed, &id)).await
    }

    async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| read::versions(records, feed, &id, limit)).await
    }

    async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| past::version(records, feed, &id, updates)).await
    }

    async fn past(
        &self,
        feed: &FeedName,
        select: PastSelect,
        at: Time,
    ) -> Result<Option<Past>, StoreError> {
        self.of_feed(feed, move |records, feed, state| {
            past::past(records, feed, state, select, at).map(Some)
        })
        .await
    }

    async fn holdings(&self, feed: &FeedName) -> Result<Holdings, StoreError> {
        self.of_feed(feed, past::holdings).await
    }

    async fn events(&self, feed: &FeedName, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.of_feed(feed, move |records, feed, _| read::events(records, feed, limit)).await
    }

    async fn archives(
        &self,
        feed: &FeedName,
        limit: usize,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        self.of_feed(feed, move |records, feed, state| archives::kept(records, feed, state, limit))
            .await
    }

    async fn archive_place(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| archives::place(records, feed, &id)).await
    }

    async fn archive(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<Archive>, StoreError> {
        let id = id.clone();
        self.of_feed(feed, move |records, feed, _| archives::archive(records, feed, &id)).await
    }

    async fn commit(&self, claim: &Claim, change: Change) -> Result<Committed, CommitError> {
        let (claim, feed) = (claim.clone(), change.feed.clone());
        let prepare =
            move |records: &Records, shared: &StoreShared| plan::prepare(records, shared, change);
        let mut prepared = Box::new(self.read(prepare).await?);
        self.ask(Touches::Feed(feed), move |committer, group| {
            committer.commit(&claim, &mut prepared, group)
        })
        .await
    }

    async fn checkpoint(&self, claim: &Claim, states: &[PollState]) -> Result<(), CommitError> {
        let (claim, states) = (claim.clone(), states.to_vec());
        self.ask(Touches::Lists, move |committer, group| {
            committer.checkpoint(&claim, &states, group)
        })
        .await
    }

    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        self.of_all(read::poll_states).await
    }

    async fn note_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        let attempt = attempt.clone();
        self.ask(Touches::Lists, move |committer, group| committer.note_attempt(&attempt, group))
            .await
    }

    async fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        self.of_all(read::attempts).await
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.of_all(read::subscriptions).await
    }

    async fn put_subscriptions(&self, subscriptions: &[Subscription]) -> Result<(), StoreError> {
        let subscriptions = subscriptions.to_vec();
        self.ask(Touches::Lists, move |committer, group| {
            committer.put_subscriptions(&subscriptions, group)
        })
        .await
    }

    async fn prune(
        &self,
        claim: &Claim,
        feed: &FeedName,
        retention: &Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        let retention = *retention;
        let list = move |records: &Records, feed: &FeedName, state: &FeedState| {
            prune::list(records, feed, state, &retention, now).map(Some)
        };
        let Some(gone) = self.of_feed(feed, list).await? else { return Ok(Pruned::default()) };
        let pruned = gone.pruned;
        // What is kept as it should be costs no write.
        if !gone.is_empty() {
            let claim = claim.clone();
            self.ask(Touches::Feed(feed.clone()), move |committer, group| {
                committer.prune(&claim, &gone, group)
            })
            .await?;
        }
        Ok(pruned)
    }

    async fn trim_log(&self, claim: &Claim, before: Time) -> Result<usize, CommitError> {
        let claim = claim.clone();
        self.ask(Touches::Lists, move |committer, group| committer.trim(&claim, before, group))
            .await
    }

    async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        let newest = *self.shared.sealed.borrow();
        self.of_all(move |records| read::epochs_after(records, after, newest, limit)).await
    }

    fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.shared.sealed.subscribe()
    }

    async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        self.read_blocking(move |records, shared| transfer::export(records, shared, &to)).await
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
            self.ask(Touches::Lists, move |committer, group| {
                committer.import(&claim, &pieces, end, group)
            })
            .await?;
            if end {
                return Ok(());
            }
        }
    }

    async fn close(&self) -> Result<(), StoreError> {
        let Some(rest) = self.take() else { return Err(StoreError::Closed) };
        // Every reader that began before has let go of the records once all permits are here.
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
