//! A store that keeps everything in memory: for tests and for `replay`.

mod feed_table;
mod transfer;

use self::feed_table::FeedTable;
use super::limits::{LOG_EPOCHS, TAIL_LIMIT, TRIM_LIMIT};
use super::portable::ExportRecord;
use super::purge_mark::PurgeMark;
use super::{
    Claim, ClosedEpoch, CommitError, Committed, Epoch, Holdings, KeptVersion, LoggedChange, Past,
    PastSelect, Pruned, Retention, Select, Store, StoreError, VersionNote, View, check, lineage,
};
use crate::clock::Clock;
use crate::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Change, Count, EndpointId, Event, FeedName,
    FeedRecord, FeedState, Item, LedgerEntry, PollState, Revision, Seal, Snapshot, SupIdBasis,
    SyncId, Time,
};
use crate::websub::{Subscription, SubscriptionId};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// What all handles on one store share.
#[derive(Debug, Default)]
struct MemoryContent {
    fence: u64,
    feeds: BTreeMap<FeedName, FeedRecord>,
    polls: BTreeMap<FeedName, PollState>,
    shelves: BTreeMap<FeedName, FeedTable>,
    floors: BTreeMap<FeedName, PurgeMark>,
    subscriptions: BTreeMap<SubscriptionId, Subscription>,
    log: Vec<ClosedEpoch>,
}

/// A store in memory. Nothing outlives the process, so "durable" means "applied".
pub struct MemoryStore {
    endpoint: EndpointId,
    sup_ids: SupIdBasis,
    clock: Arc<dyn Clock>,
    content: Arc<Mutex<MemoryContent>>,
    sealed: Arc<watch::Sender<Epoch>>,
    fence: u64,
    /// Tells this opening from all others.
    mark: Option<u32>,
    closed: AtomicBool,
}

impl MemoryStore {
    /// An empty store of the endpoint `endpoint`.
    pub fn new(endpoint: EndpointId, clock: Arc<dyn Clock>) -> Self {
        let content = Arc::new(Mutex::new(MemoryContent::default()));
        Self::open(endpoint, clock, content, Arc::new(watch::Sender::new(Epoch(0))))
    }

    /// The same with SUP ids that are made of this.
    pub fn with_sup_ids(mut self, sup_ids: SupIdBasis) -> Self {
        self.sup_ids = sup_ids;
        self
    }

    /// Another handle on the same content, with the claim given out anew: what a restart is to a
    /// store on disk. This handle's claim is fenced from then on.
    pub fn reopen(&self) -> Self {
        let content = Arc::clone(&self.content);
        Self::open(
            self.endpoint.clone(),
            Arc::clone(&self.clock),
            content,
            Arc::clone(&self.sealed),
        )
        .with_sup_ids(self.sup_ids)
    }

    fn open(
        endpoint: EndpointId,
        clock: Arc<dyn Clock>,
        content: Arc<Mutex<MemoryContent>>,
        sealed: Arc<watch::Sender<Epoch>>,
    ) -> Self {
        let fence = {
            let mut content = content.lock().unwrap_or_else(PoisonError::into_inner);
            content.fence += 1;
            content.fence
        };
        let closed = AtomicBool::new(false);
        let sup_ids = SupIdBasis::Endpoint;
        Self { endpoint, sup_ids, clock, content, sealed, fence, mark: lineage::mark(), closed }
    }

    fn content(&self) -> Result<MutexGuard<'_, MemoryContent>, StoreError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        Ok(self.content.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The content, for a writer that holds `claim`.
    fn claimed(&self, claim: &Claim) -> Result<MutexGuard<'_, MemoryContent>, CommitError> {
        let content = self.content()?;
        if claim.shard == 0 && claim.fence == content.fence {
            Ok(content)
        } else {
            Err(CommitError::Fenced)
        }
    }
}

impl MemoryContent {
    fn commit(
        &mut self,
        mut change: Change,
        now: Time,
        mark: Option<u32>,
    ) -> Result<Committed, CommitError> {
        let before = self.shelves.get(&change.feed);
        let state = before.map(|shelf| &shelf.state);
        check::check(&change, state, |id| Ok(before.is_some_and(|shelf| shelf.holds(id))))?;
        let is_given = |seal: &Seal| before.is_some_and(|s| s.archive_place(&seal.id).is_some());
        if change.seals.iter().any(is_given) {
            let what = "it gives an archive an id that another has".to_owned();
            return Err(check::invalid(&change, what));
        }
        let mut base = change.base;
        if let Some(floor) = self.floors.get(&change.feed) {
            if state.is_none() {
                base = floor.revision;
            }
            floor.lift(&mut change, state.is_none());
        }
        let revision = Revision(base.0 + 1);
        change.state.revision = revision;
        lineage::go_on(&mut change, state, mark);

        let feed = change.feed.clone();
        let announced = change.tick.map(|tick| LoggedChange {
            feed: feed.clone(),
            tick,
            revision,
            versions: u32::try_from(change.versions.len()).unwrap_or(u32::MAX),
        });
        match self.shelves.get_mut(&feed) {
            Some(shelf) => shelf.apply(change),
            None => {
                self.shelves.insert(feed.clone(), FeedTable::first(change));
            }
        }
        let Some(announced) = announced else { return Ok(Committed { revision, epoch: None }) };
        self.floors.remove(&feed);
        let at = self.log.last().map_or(now, |last| last.at.max(now));
        let epoch = Epoch(self.log.last().map_or(0, |last| last.epoch.0) + 1);
        self.log.push(ClosedEpoch { epoch, at, changes: vec![announced] });
        Ok(Committed { revision, epoch: Some(epoch) })
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    fn sup_ids(&self) -> SupIdBasis {
        self.sup_ids
    }

    async fn claims(&self, _node: u64, _ttl: Duration) -> Result<Vec<Claim>, StoreError> {
        drop(self.content()?);
        Ok(vec![Claim { shard: 0, fence: self.fence }])
    }

    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        Ok(self.content()?.feeds.values().cloned().collect())
    }

    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        self.content()?.feeds.insert(record.name.clone(), record.clone());
        Ok(())
    }

    async fn purge_feed(&self, feed: &FeedName) -> Result<(), StoreError> {
        let mut content = self.content()?;
        content.feeds.remove(feed);
        content.polls.remove(feed);
        if let Some(shelf) = content.shelves.remove(feed) {
            let updates = shelf.most_updates(&self.endpoint);
            let floor = PurgeMark::under(&shelf.state, updates, content.floors.get(feed));
            content.floors.insert(feed.clone(), floor);
        }
        Ok(())
    }

    async fn purged_updates(&self, feed: &FeedName) -> Result<u32, StoreError> {
        Ok(self.content()?.floors.get(feed).map_or(0, |floor| floor.updates))
    }

    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        Ok(self.content()?.shelves.get(feed).map(|shelf| shelf.state.clone()))
    }

    async fn snapshot(&self, feed: &FeedName) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.content()?.shelves.get(feed).map(FeedTable::snapshot))
    }

    async fn view(&self, feed: &FeedName, select: Select) -> Result<Option<View>, StoreError> {
        Ok(self.content()?.shelves.get(feed).and_then(|shelf| shelf.view(select)))
    }

    async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        Ok(self.content()?.shelves.get(feed).and_then(|shelf| shelf.item(id)))
    }

    async fn known(&self, feed: &FeedName, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        Ok(self.content()?.shelves.get(feed).and_then(|shelf| shelf.known(id)))
    }

    async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        let content = self.content()?;
        Ok(content.shelves.get(feed).map_or_else(Vec::new, |shelf| shelf.versions(id, limit)))
    }

    async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        Ok(self.content()?.shelves.get(feed).and_then(|shelf| shelf.version(id, updates)))
    }

    async fn past(
        &self,
        feed: &FeedName,
        select: PastSelect,
        at: Time,
    ) -> Result<Option<Past>, StoreError> {
        Ok(self.content()?.shelves.get(feed).map(|shelf| shelf.past(select, at)))
    }

    async fn holdings(&self, feed: &FeedName) -> Result<Holdings, StoreError> {
        Ok(self.content()?.shelves.get(feed).map(FeedTable::holdings).unwrap_or_default())
    }

    async fn events(&self, feed: &FeedName, limit: usize) -> Result<Vec<Event>, StoreError> {
        let content = self.content()?;
        Ok(content.shelves.get(feed).map_or_else(Vec::new, |shelf| shelf.events(limit)))
    }

    async fn archives(
        &self,
        feed: &FeedName,
        limit: usize,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        let content = self.content()?;
        Ok(content.shelves.get(feed).map_or_else(Vec::new, |shelf| shelf.archives(limit)))
    }

    async fn archive_place(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        Ok(self.content()?.shelves.get(feed).and_then(|shelf| shelf.archive_place(id)))
    }

    async fn archive(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<Archive>, StoreError> {
        Ok(self.content()?.shelves.get(feed).and_then(|shelf| shelf.archive(id)))
    }

    async fn commit(&self, claim: &Claim, change: Change) -> Result<Committed, CommitError> {
        let now = self.clock.now();
        let committed = self.claimed(claim)?.commit(change, now, self.mark)?;
        if let Some(epoch) = committed.epoch {
            self.sealed.send_if_modified(|newest| {
                let later = epoch > *newest;
                *newest = epoch.max(*newest);
                later
            });
        }
        Ok(committed)
    }

    async fn checkpoint(&self, claim: &Claim, states: &[PollState]) -> Result<(), CommitError> {
        let mut content = self.claimed(claim)?;
        for state in states {
            content.polls.insert(state.feed.clone(), state.clone());
        }
        Ok(())
    }

    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        Ok(self.content()?.polls.values().cloned().collect())
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        Ok(self.content()?.subscriptions.values().cloned().collect())
    }

    async fn put_subscriptions(&self, subscriptions: &[Subscription]) -> Result<(), StoreError> {
        let mut content = self.content()?;
        for subscription in subscriptions {
            if subscription.is_over() {
                content.subscriptions.remove(&subscription.id());
            } else {
                content.subscriptions.insert(subscription.id(), subscription.clone());
            }
        }
        Ok(())
    }

    async fn prune(
        &self,
        claim: &Claim,
        feed: &FeedName,
        retention: &Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        let mut content = self.claimed(claim)?;
        let shelf = content.shelves.get_mut(feed);
        Ok(shelf.map(|shelf| shelf.prune(retention, now)).unwrap_or_default())
    }

    async fn trim_log(&self, claim: &Claim, before: Time) -> Result<usize, CommitError> {
        let mut content = self.claimed(claim)?;
        let newest = content.log.last().map_or(0, |last| last.epoch.0);
        let mut changes = 0;
        let old = content.log.iter().take_while(|sealed| {
            changes += sealed.changes.len();
            let keeps = sealed.epoch.0.saturating_add(LOG_EPOCHS) > newest;
            sealed.at < before && !keeps && changes <= TRIM_LIMIT
        });
        let count = old.count();
        content.log.drain(..count);
        Ok(count)
    }

    async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        let content = self.content()?;
        let begin = content.log.partition_point(|sealed| sealed.epoch <= after);
        Ok(content.log.iter().skip(begin).take(limit.min(TAIL_LIMIT)).cloned().collect())
    }

    fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.sealed.subscribe()
    }

    async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        let pieces = self.content()?.pieces();
        for piece in pieces {
            if to.send(piece).await.is_err() {
                break;
            }
        }
        Ok(())
    }

    async fn import(
        &self,
        claim: &Claim,
        mut from: mpsc::Receiver<ExportRecord>,
    ) -> Result<(), CommitError> {
        drop(self.claimed(claim)?);
        let mut arrived = transfer::Arrived::default();
        while let Some(piece) = from.recv().await {
            arrived.take(piece)?;
        }
        let mut content = self.claimed(claim)?;
        let newest = arrived.move_into(&mut content)?;
        drop(content);
        self.sealed.send_replace(newest);
        Ok(())
    }

    async fn close(&self) -> Result<(), StoreError> {
        if self.closed.swap(true, Ordering::AcqRel) { Err(StoreError::Closed) } else { Ok(()) }
    }
}
