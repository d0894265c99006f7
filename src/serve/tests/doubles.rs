//! A store with one hand-made feed, and an operator who writes down what is asked.

use super::{DAY, at, endpoint};
mod content;
mod lines;
mod log;
mod operator;
mod reader;

use self::content::known;
pub(super) use self::content::{feed, item};
pub(super) use self::lines::LoggedLines;
use self::log::TestLog;
pub(super) use self::operator::*;
use self::reader::TestReader;
use crate::operator::*;
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use tidegate_core::model::*;
use tidegate_core::websub::{Subscription, Verification};
use tidegate_judge::record::local::{Act, ActError, Acted};
use tidegate_judge::{Conclusion, PendingAbsence};
use tidegate_status::*;
use tidegate_store::portable;
use tidegate_store::*;
use tokio::sync::{Semaphore, mpsc, watch};

#[derive(Clone)]
pub(super) struct Feed {
    pub(super) state: FeedState,
    pub(super) skeleton: Skeleton,
    pub(super) order: Vec<SyncId>,
    pub(super) items: Vec<Item>,
    /// Outdated by every change of the state.
    pub(super) watch: StateWatch,
}

pub(super) struct TestStore {
    endpoint: EndpointId,
    pub(super) records: Mutex<Vec<FeedRecord>>,
    pub(super) feeds: Arc<Mutex<BTreeMap<FeedName, Feed>>>,
    pub(super) listings: AtomicUsize,
    pub(super) views: Arc<AtomicUsize>,
    /// How often an item was read.
    pub(super) items: AtomicUsize,
    /// How often the items in conflict of a feed were.
    pub(super) contests: AtomicUsize,
    pub(super) snapshots: Arc<AtomicUsize>,
    /// On which threads states were read, each time.
    pub(super) states: Mutex<Vec<ThreadId>>,
    /// A state waits here; closed: nobody waits.
    pub(super) state_gate: Semaphore,
    pub(super) broken: AtomicBool,
    /// Its database does not answer: what is in memory is told, and nothing else.
    pub(super) is_silent: AtomicBool,
    /// What it says of itself; while it has stopped, states are answered and nothing else.
    pub(super) condition: Mutex<StoreCondition>,
    /// What is in memory was not compared with the database lately.
    pub(super) is_old: AtomicBool,
    /// The database is not seen.
    pub(super) is_unseen: AtomicBool,
    /// Who shares it.
    pub(super) gateways: Mutex<Option<Arc<Gateways>>>,
    /// A view waits here; closed: nobody waits.
    pub(super) gate: Arc<Semaphore>,
    /// The only feed whose views wait, where it is not every one.
    pub(super) gated: Option<&'static str>,
    /// How many views wait, and how many waited at once at most. As in a real store, who leaves stops
    /// no read.
    pub(super) reading: Arc<(AtomicUsize, AtomicUsize)>,
    /// Changes the feed behind the reader's back this many times.
    pub(super) restless: Arc<AtomicUsize>,
    /// The change log.
    pub(super) log: TestLog,
    /// Which opening closed which epochs; none: they are not told apart.
    pub(super) lineage: Mutex<Lineage>,
    /// The list of feeds as it was last read, until it changes.
    listed: Mutex<Option<Arc<FeedList>>>,
    /// How often it was looked what another gateway wrote, and what the next look finds.
    pub(super) looks: AtomicUsize,
    pub(super) at_look: Mutex<Option<WriteElsewhere>>,
}

/// What another gateway writes.
type WriteElsewhere = Box<dyn FnOnce(&TestStore) + Send>;

pub(super) fn name(text: &str) -> FeedName {
    FeedName::new(text).unwrap()
}

pub(super) fn id(text: &str) -> SyncId {
    SyncId::new(text).unwrap()
}

pub(super) fn tick(seconds: i64) -> Tick {
    Tick::at(at(seconds))
}

/// A document that is held for this reason.
pub(super) fn hold(reason: &str) -> Hold {
    Hold {
        reason: reason.to_owned(),
        kind: "empty".to_owned(),
        since: at(-60),
        row_since: at(-60),
        observations: 2,
        documents: 1,
        body: 1,
        source: 0,
        kept: 4,
        decision: None,
    }
}

pub(super) fn record(text: &str, standing: FeedStanding) -> FeedRecord {
    FeedRecord {
        standing,
        ..FeedRecord::new(
            name(text),
            format!("https://me:secret@upstream.example/{text}.xml"),
            FeedSource::Api,
        )
    }
}

impl TestStore {
    pub(super) fn with(feeds: Vec<(FeedRecord, Option<Feed>)>) -> Self {
        let gate = Semaphore::new(0);
        gate.close();
        let state_gate = Semaphore::new(0);
        state_gate.close();
        let mut records = Vec::new();
        let mut named = BTreeMap::new();
        for (record, feed) in feeds {
            if let Some(feed) = feed {
                named.insert(record.name.clone(), feed);
            }
            records.push(record);
        }
        Self {
            endpoint: endpoint(),
            records: Mutex::new(records),
            feeds: Arc::new(Mutex::new(named)),
            listings: AtomicUsize::new(0),
            views: Arc::default(),
            items: AtomicUsize::new(0),
            contests: AtomicUsize::new(0),
            snapshots: Arc::default(),
            states: Mutex::default(),
            state_gate,
            broken: AtomicBool::new(false),
            is_silent: AtomicBool::new(false),
            condition: Mutex::default(),
            is_unseen: AtomicBool::new(false),
            gate: Arc::new(gate),
            gated: None,
            reading: Arc::default(),
            restless: Arc::default(),
            log: TestLog::default(),
            lineage: Mutex::default(),
            is_old: AtomicBool::new(false),
            gateways: Mutex::default(),
            listed: Mutex::default(),
            looks: AtomicUsize::new(0),
            at_look: Mutex::default(),
        }
    }

    /// Changes what the operator says of a feed.
    pub(super) fn edit_record(&self, feed: &str, edit: impl FnOnce(&mut FeedRecord)) {
        let mut records = self.records.lock().unwrap();
        edit(records.iter_mut().find(|record| record.name == name(feed)).unwrap());
        *self.listed.lock().unwrap() = None;
    }

    /// `news` (Atom), `radio` (RSS), `new` (no document yet), `dead` (deleted), `still` (paused).
    pub(super) fn with_news() -> Self {
        let atom = || Some(feed(Format::Atom10));
        Self::with(vec![
            (record("news", FeedStanding::Active), atom()),
            (record("radio", FeedStanding::Active), Some(feed(Format::Rss20))),
            (record("new", FeedStanding::Active), None),
            (record("dead", FeedStanding::Gone), atom()),
            (record("still", FeedStanding::Paused), atom()),
        ])
    }

    /// Changes the state of a feed, as a commit does.
    pub(super) fn edit(&self, feed: &str, edit: impl FnOnce(&mut Feed)) {
        edit_in(&self.feeds, &name(feed), edit);
    }

    fn works(&self) -> Result<(), StoreError> {
        if self.broken.load(Ordering::SeqCst) {
            let source = std::io::Error::other("no disk");
            return Err(StoreError::Io { doing: "read", source });
        }
        Ok(())
    }

    fn stopped(&self) -> Result<(), StoreError> {
        let stop = self.condition.lock().unwrap().stop.clone();
        stop.map_or(Ok(()), |stop| Err(StoreError::Stopped(Box::new(stop))))
    }

    fn feed(&self, feed: &FeedName) -> Result<Option<Feed>, StoreError> {
        self.stopped()?;
        self.works()?;
        Ok(self.in_memory(feed))
    }

    /// What the store has in memory, whatever becomes of its disk.
    fn in_memory(&self, feed: &FeedName) -> Option<Feed> {
        self.feeds.lock().unwrap().get(feed).cloned()
    }
}

pub(super) fn edit_in(
    feeds: &Mutex<BTreeMap<FeedName, Feed>>,
    feed: &FeedName,
    edit: impl FnOnce(&mut Feed),
) {
    let mut feeds = feeds.lock().unwrap();
    let feed = feeds.get_mut(feed).unwrap();
    edit(feed);
    feed.state.revision.0 += 1;
    feed.watch.outdate();
    feed.watch = StateWatch::new(feed.state.revision);
}

#[async_trait]
impl Store for TestStore {
    fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }
    fn lineage(&self) -> Lineage {
        self.lineage.lock().unwrap().clone()
    }
    fn condition(&self) -> StoreCondition {
        self.condition.lock().unwrap().clone()
    }
    fn answers_from_memory(&self) -> bool {
        !self.is_old.load(Ordering::Acquire)
    }
    async fn catch_up(&self) -> Result<(), StoreError> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let write = self.at_look.lock().unwrap().take();
        if let Some(write) = write {
            write(self);
        }
        match self.is_unseen.load(Ordering::Acquire) {
            true => Err(StoreError::Unseen { seconds: 6 }),
            false => Ok(()),
        }
    }
    fn gateways(&self) -> Option<Arc<Gateways>> {
        self.gateways.lock().unwrap().clone()
    }
    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        Ok(Vec::new())
    }
    async fn put_subscriptions(
        &self,
        _: &[tidegate_store::SubscriptionChange],
    ) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        self.works()?;
        self.stopped()?;
        self.listings.fetch_add(1, Ordering::SeqCst);
        Ok(self.records.lock().unwrap().clone())
    }
    async fn feed_list(&self) -> Result<Arc<FeedList>, StoreError> {
        let list = as_list(self.feeds().await?);
        let mut listed = self.listed.lock().unwrap();
        // A list that is not another is the same one.
        let same = listed.take().filter(|listed| **listed == list);
        Ok(Arc::clone(listed.insert(same.unwrap_or_else(|| Arc::new(list)))))
    }
    fn listed(&self) -> Option<Arc<FeedList>> {
        self.listed.lock().unwrap().clone()
    }
    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        *self.listed.lock().unwrap() = None;
        self.records.lock().unwrap().push(record.clone());
        Ok(())
    }
    async fn apply_feeds(
        &self,
        _: &[FeedRecord],
        _: &Arc<FeedList>,
        _: tidegate_store::AppliedOrigins,
    ) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    async fn purge_feed(&self, _: &FeedName) -> Result<(), StoreError> {
        Ok(())
    }
    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        self.states.lock().unwrap().push(std::thread::current().id());
        if let Ok(permit) = self.state_gate.acquire().await {
            permit.forget();
        }
        Ok(self.in_memory(feed).map(|feed| feed.state))
    }
    fn watch_state(&self, feed: &FeedName) -> Option<StateWatch> {
        Some(self.feeds.lock().unwrap().get(feed)?.watch.clone())
    }
    async fn pin(&self, feed: &FeedName) -> Result<Option<Arc<PinnedFeed>>, StoreError> {
        let Some(found) = self.feed(feed)? else { return Ok(None) };
        Ok(Some(Arc::new(TestReader {
            name: feed.clone(),
            feed: found,
            feeds: Arc::clone(&self.feeds),
            views: Arc::clone(&self.views),
            snapshots: Arc::clone(&self.snapshots),
            gate: Arc::clone(&self.gate),
            gated: self.gated,
            reading: Arc::clone(&self.reading),
            restless: Arc::clone(&self.restless),
        })))
    }
    async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        self.contests.fetch_add(1, Ordering::SeqCst);
        let items = self.feed(feed)?.map(|feed| feed.items).unwrap_or_default();
        let contested = items.iter().filter(|item| !item.shared.conflicts.is_empty());
        let mut ids: Vec<SyncId> = contested.map(|item| item.shared.winner.id.clone()).collect();
        ids.sort();
        Ok(ids)
    }
    async fn contested_feeds(&self) -> Result<BTreeSet<FeedName>, StoreError> {
        if self.is_silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.works()?;
        self.stopped()?;
        let feeds = self.feeds.lock().unwrap();
        let is_contested =
            |feed: &Feed| feed.items.iter().any(|item| !item.shared.conflicts.is_empty());
        let contested = feeds.iter().filter(|(_, feed)| is_contested(feed));
        Ok(contested.map(|(name, _)| name.clone()).collect())
    }
    async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        self.items.fetch_add(1, Ordering::SeqCst);
        let items = self.feed(feed)?.map(|feed| feed.items).unwrap_or_default();
        Ok(items.into_iter().find(|item| item.shared.winner.id == *id))
    }
    async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        let Some(item) = self.item(feed, id).await? else { return Ok(Vec::new()) };
        let note = VersionNote {
            updates: Count::ONE,
            update: item.shared.winner.history.topmost().clone(),
            deleted: item.shared.winner.deleted,
            tick: item.tick,
            shown: item.tick.time(),
            title: "<script>title</script>".to_owned(),
            reason: "<i>because</i>".to_owned(),
            size: 8,
        };
        Ok(vec![note; 1.min(limit)])
    }
    async fn known(&self, feed: &FeedName, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        Ok(self.item(feed, id).await?.map(|item| known(&item)))
    }
    async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let notes = self.versions(feed, id, 1).await?;
        let note = notes.into_iter().find(|note| note.updates == updates);
        let item = self.item(feed, id).await?.map(|item| item.shared.winner);
        let markup = item.filter(|item| !item.deleted).map(|item| item.data);
        Ok(note.map(|note| KeptVersion { note, markup }))
    }
    async fn past(&self, _: &FeedName, _: PastSelect, _: Time) -> Result<Option<Past>, StoreError> {
        Err(StoreError::Closed)
    }
    async fn holdings(&self, _: &FeedName) -> Result<Holdings, StoreError> {
        Ok(Holdings { versions: 4, version_bytes: 1234, ..Holdings::default() })
    }
    async fn prune(&self, _: &FeedName, _: &Retention, _: Time) -> Result<Pruned, CommitError> {
        Err(CommitError::Store(StoreError::Closed))
    }
    async fn trim_log(&self, _: Duration) -> Result<usize, CommitError> {
        Err(CommitError::Store(StoreError::Closed))
    }
    async fn events(&self, feed: &FeedName, _: usize) -> Result<Vec<Event>, StoreError> {
        if self.in_memory(feed).is_none() {
            return Ok(Vec::new());
        }
        Ok(vec![Event {
            kind: EventKind::Deleted,
            id: id("gone"),
            native_id: "urn:gone".to_owned(),
            old_native_id: None,
            title: "Gone".to_owned(),
            tick: Some(tick(-5 * DAY)),
            reason: "a hole that stayed".to_owned(),
            at: at(-5 * DAY),
            seen_gone: Some(at(-6 * DAY)),
        }])
    }
    async fn archives(&self, _: &FeedName, _: usize) -> Result<Vec<ArchiveNote>, StoreError> {
        Ok(Vec::new())
    }
    async fn archive_place(
        &self,
        _: &FeedName,
        _: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        Ok(None)
    }
    async fn archive(&self, _: &FeedName, _: &ArchiveId) -> Result<Option<Archive>, StoreError> {
        Ok(None)
    }
    async fn commit(&self, _: Change) -> Result<Committed, CommitError> {
        Err(CommitError::Store(StoreError::Closed))
    }
    async fn checkpoint(&self, _: &[PollState]) -> Result<(), CommitError> {
        Ok(())
    }
    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        Ok(Vec::new())
    }
    async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        self.stopped()?;
        if self.log.is_silent.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        Ok(self.log.epochs_after(after, limit))
    }
    fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.log.watch_epochs()
    }
    async fn export(&self, _: mpsc::Sender<portable::ExportRecord>) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    async fn import(&self, _: mpsc::Receiver<portable::ImportMessage>) -> Result<(), CommitError> {
        Err(CommitError::Store(StoreError::Closed))
    }
    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
