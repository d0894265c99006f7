//! Reads of the store: on blocking threads where the engine waits for a disk, and of a feed with its lock held. Also
//! reads of a feed at one revision, in portions ([`PinnedFeed`]).

use super::feed::FeedRecords;
use super::shared::StoreShared;
use super::{Records, Store, StoreInner, keys};
use crate::engine::{Class, FirstRead, beginning_with};
use crate::error::AWAY;
use crate::record::StateRecord;
use crate::{Select, StoreError, View};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedState, Item, LedgerQuery, Snapshot, SyncId, Tick};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// How often reading a feed is begun again because it changed meanwhile.
const READ_TRIES: usize = 16;
/// A ledger of at most this many items is read at once, whatever is wanted of it.
const ITEMS_READ_FIRST: u32 = 256;
/// The most reads at a time.
pub(super) const READS: u32 = 16;
/// How long a read waits for a permit where the database is in the network, which may leave earlier reads unanswered.
const PERMIT_TIME: Duration = Duration::from_secs(10);

impl StoreInner {
    /// A permit to read. An error where earlier reads hang.
    pub(super) async fn acquire_read_permit(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let limit = if self.records()?.engine().is_shared() { PERMIT_TIME } else { Duration::MAX };
        let permit = timeout(limit, Arc::clone(&self.read_permits).acquire_owned()).await;
        let late = |_| {
            let source = io::Error::other("those that read before this one are not answered");
            StoreError::Away { doing: "read", why: AWAY, source }
        };
        permit.map_err(late)?.map_err(|_| StoreError::Closed)
    }

    /// Waits for all permits, without a time limit.
    pub(super) async fn acquire_all_read_permits(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.read_permits).acquire_many_owned(READS).await.ok()
    }

    /// Runs `read`, on a blocking thread if it may wait for a disk.
    pub(super) async fn read<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        read: impl FnOnce(&Records, &Arc<StoreShared>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        if !self.blocks {
            return read(&self.records()?, &self.shared);
        }
        // A stopped store answers before a permit is waited for.
        drop(self.records()?);
        let permit = self.acquire_read_permit().await?;
        let records = self.records()?;
        let shared = Arc::clone(&self.shared);
        let reading = tokio::task::spawn_blocking(move || {
            let answer = read(&records, &shared);
            // Dropped before the permit: closing waits for all permits and expects the records to be free.
            drop(records);
            drop(permit);
            answer
        });
        reading.await.unwrap_or_else(|error| Err(StoreError::failed("read", error).into()))
    }

    /// Reads a feed from one snapshot; `None` where nothing was committed to it. `first`: what is probably
    /// read.
    pub(super) async fn read_feed<T: Send + 'static>(
        &self,
        feed: &FeedName,
        mut first: FirstRead,
        read: impl FnOnce(&FeedRecords, &StateRecord) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        // A shared database gives each reader a snapshot, so no lock is needed.
        let lock = match self.opened()?.records.engine().is_shared() {
            true => None,
            false => Some(self.shared.locks.lock_to_read(feed).await),
        };
        let feed = feed.clone();
        self.read(move |records, shared| {
            let key = keys::feed(&feed);
            first.keys.push((Class::States, key.clone()));
            let (records, head) = match records.snapshot(first)? {
                Some(records) => {
                    let head = records.record(Class::States, &key)?;
                    (records, head)
                }
                None => (records.clone(), shared.head(&feed)?),
            };
            let found = head.map(|head| read(&FeedRecords::new(&records, &feed), &head));
            drop(lock);
            found.transpose()
        })
        .await
    }

    /// Reads a feed from one snapshot; the default where nothing was committed to it.
    pub(super) async fn query_feed<T: Default + Send + 'static>(
        &self,
        feed: &FeedName,
        read: impl FnOnce(&FeedRecords, &FeedState) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let read = move |feed: &FeedRecords, head: &StateRecord| read(feed, &head.state);
        let found = self.read_feed(feed, FirstRead::default(), read);
        Ok(found.await?.unwrap_or_default())
    }

    /// Reads over all feeds from one snapshot.
    pub(super) async fn query_feeds<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Records) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read(move |records, shared| {
            let first = FirstRead::default();
            shared.read_lists(|| read(records.snapshot(first)?.as_ref().unwrap_or(records)))
        })
        .await
    }
}

impl Store {
    /// The feed at its present revision: reads answer [`StoreError::Outdated`] once another change was committed.
    /// `None` where nothing was committed yet.
    pub async fn pin(&self, feed: &FeedName) -> Result<Option<PinnedFeed>, StoreError> {
        drop(self.inner.records()?);
        let head = self.inner.shared.head(feed)?;
        let (inner, feed) = (Arc::clone(&self.inner), feed.clone());
        Ok(head.map(|head| PinnedFeed { inner, feed, head: Arc::new(head) }))
    }

    /// The state, ledger and order, at one revision.
    pub async fn snapshot(&self, feed: &FeedName) -> Result<Option<Snapshot>, StoreError> {
        self.read_pinned(feed, |reader| async move { reader.snapshot().await }).await
    }

    /// Items with their bytes, state and skeleton, at one revision.
    pub async fn view(&self, feed: &FeedName, select: Select) -> Result<Option<View>, StoreError> {
        self.read_pinned(feed, |reader| async move { reader.view(select).await }).await
    }

    /// Reads a feed at one revision; begins again where it changes meanwhile.
    async fn read_pinned<T, F: Future<Output = Result<Option<T>, StoreError>>>(
        &self,
        feed: &FeedName,
        read: impl Fn(PinnedFeed) -> F,
    ) -> Result<Option<T>, StoreError> {
        let mut tries = 1..READ_TRIES;
        loop {
            let Some(reader) = self.pin(feed).await? else { return Ok(None) };
            match read(reader).await {
                Err(StoreError::Outdated) if tries.next().is_some() => {}
                read => return read,
            }
        }
    }
}

/// Reads a feed at one revision. After another commit every call answers [`StoreError::Outdated`], and the caller
/// pins the feed again. Answers nothing before the first skeleton, and after a purge.
#[derive(Clone)]
pub struct PinnedFeed {
    inner: Arc<StoreInner>,
    feed: FeedName,
    head: Arc<StateRecord>,
}

impl PinnedFeed {
    /// Reads the feed; `first`: what is probably read.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        first: FirstRead,
        read: impl FnOnce(&FeedRecords, &FeedState) -> Result<Option<T>, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let head = Arc::clone(&self.head);
        let found = self.inner.read_feed(&self.feed, first, move |feed, now| {
            let is_same = (now.state.revision, now.write) == (head.state.revision, head.write);
            if is_same { read(feed, &head.state) } else { Err(StoreError::Outdated) }
        });
        let found = found.await;
        if matches!(found, Err(StoreError::Outdated)) {
            // So that pinning the feed again finds the new state.
            self.inner.catch_up().await?;
        }
        Ok(found?.flatten())
    }

    /// What is read first of a ledger: the order, the unsettled items, held entries, the oldest archives, and the items
    /// where `with_items`.
    fn first_of_ledger(&self, with_items: bool) -> FirstRead {
        let (feed, state) = (&self.feed, &self.head.state);
        let held = state.hold.as_ref().map(|_| keys::held(feed));
        let frames = [keys::feed(feed), keys::unsettled(feed)].into_iter().chain(held);
        let archives = keys::oldest_archives(feed, state, Snapshot::OLDEST_ARCHIVES);
        let archives = archives.map(|key| (Class::Archives, key));
        let range = with_items.then(|| (Class::Items, beginning_with(&keys::feed(feed))));
        FirstRead { keys: frames.map(|key| (Class::Frames, key)).chain(archives).collect(), range }
    }

    /// The feed's state.
    pub fn state(&self) -> &FeedState {
        &self.head.state
    }

    /// The first items with their bytes, the skeleton, and which items follow.
    pub async fn begin_view(
        &self,
        select: Select,
    ) -> Result<Option<(View, RemainingItems)>, StoreError> {
        let keys = vec![(Class::Frames, keys::feed(&self.feed))];
        self.read(FirstRead { keys, range: None }, move |feed, state| {
            feed.begin_view(state, select)
        })
        .await
    }

    /// The next items of a view, and which follow.
    pub async fn next_items(
        &self,
        remaining: RemainingItems,
    ) -> Result<Option<(Vec<Item>, RemainingItems)>, StoreError> {
        self.read(FirstRead::default(), move |feed, _| feed.next_items(remaining).map(Some)).await
    }

    /// All items with their bytes, and the skeleton.
    pub async fn view(&self, select: Select) -> Result<Option<View>, StoreError> {
        let begun = self.begin_view(select).await?;
        let Some((mut view, mut remaining)) = begun else { return Ok(None) };
        while !remaining.is_empty() {
            let Some(next) = self.next_items(remaining).await? else { return Ok(None) };
            view.items.extend(next.0);
            remaining = next.1;
        }
        Ok(Some(view))
    }

    /// All items and tombstones with their bytes, and the skeleton; in the order of the publisher, and those outside
    /// it last.
    pub async fn whole_view(&self) -> Result<Option<View>, StoreError> {
        let Some(mut view) = self.view(Select::All).await? else { return Ok(None) };
        let Some(ledger) = self.snapshot().await? else { return Ok(None) };
        let places: HashMap<&SyncId, usize> = ledger.order.iter().zip(0..).collect();
        let place = |item: &Item| places.get(&item.shared.winner.id).copied();
        view.items.sort_by_key(|item| place(item).unwrap_or(usize::MAX));
        Ok(Some(view))
    }

    /// The ledger and the order.
    pub async fn snapshot(&self) -> Result<Option<Snapshot>, StoreError> {
        self.read(self.first_of_ledger(true), FeedRecords::snapshot).await
    }

    /// Whether the ledger has an index, so that it need not be read whole.
    pub async fn has_index(&self) -> Result<bool, StoreError> {
        let found = self.read(FirstRead::default(), |feed, _| feed.has_index().map(Some));
        Ok(found.await?.unwrap_or_default())
    }

    /// The order, and of the ledger what is not settled ([`Snapshot::settled`]); the whole ledger where it has
    /// no index. `cutoff`: what changed at an earlier tick has left the sync view's window.
    pub async fn unsettled(&self, cutoff: Tick) -> Result<Option<Snapshot>, StoreError> {
        let state = &self.head.state;
        let is_small = state.living.saturating_add(state.tombstones) <= ITEMS_READ_FIRST;
        let first = self.first_of_ledger(is_small);
        self.read(first, move |feed, state| feed.unsettled(state, cutoff)).await
    }

    /// A snapshot of this feed with the items that a query asks for; `None` where it has them already,
    /// there are none, or the feed was purged meanwhile. What had left the ledger stays in it.
    pub async fn read_more(
        &self,
        snapshot: &Snapshot,
        query: LedgerQuery,
    ) -> Result<Option<Snapshot>, StoreError> {
        if query.is_empty() {
            return Ok(None);
        }
        let whole = if query.whole { self.snapshot().await? } else { None };
        let whole = whole.map(|whole| whole.with_evicted(snapshot));
        let found = self
            .read(FirstRead::default(), move |feed, _| feed.find(&query).map(Some))
            .await?
            .unwrap_or_default();
        Ok(whole.as_ref().unwrap_or(snapshot).with_found(found).or(whole))
    }
}

/// Items of a view that were not read yet.
#[derive(Debug, Clone, Default)]
pub struct RemainingItems {
    ids: Arc<[SyncId]>,
    from: usize,
}

impl RemainingItems {
    /// A view of these items, none of which was read.
    pub(super) fn new(ids: Vec<SyncId>) -> Self {
        Self { ids: ids.into(), from: 0 }
    }

    /// Their ids, in the order of the view.
    pub fn ids(&self) -> &[SyncId] {
        self.ids.get(self.from..).unwrap_or_default()
    }

    /// The items after the next `read` ones.
    #[must_use]
    pub(super) fn after(mut self, read: usize) -> Self {
        self.from = self.from.saturating_add(read);
        self
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.ids().is_empty()
    }
}
