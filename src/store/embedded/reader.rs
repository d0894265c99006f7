//! A feed that is read at one revision, a portion at a time.

use super::feed::FeedRecords;
use super::{Store, StoreInner, keys};
use crate::engine::{Class, FirstRead, beginning_with};
use crate::record::StateRecord;
use crate::{Select, StoreError, View};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedState, Item, LedgerQuery, Snapshot, SyncId, Tick};

/// How often a feed is read anew that was changed while it was read.
const READ_TRIES: usize = 16;
/// A ledger of no more items is read at once, whatever of it is wanted.
const ITEMS_READ_FIRST: u32 = 256;

impl Store {
    /// The feed as it stands, to be read as it is now: [`StoreError::Outdated`] once another change was committed. `None`
    /// where nothing was committed yet.
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

    /// Reads a feed at one revision, anew where it changes meanwhile.
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

/// Reads a feed at one revision. Once another change was committed, every call answers [`StoreError::Outdated`]: whoever
/// reads begins anew. Nothing is answered before the first skeleton, and where the feed was purged meanwhile.
#[derive(Clone)]
pub struct PinnedFeed {
    inner: Arc<StoreInner>,
    feed: FeedName,
    head: Arc<StateRecord>,
}

impl PinnedFeed {
    /// Reads the feed; `first`: what is read most likely.
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
            // So that who begins anew finds another state.
            self.inner.catch_up().await?;
        }
        Ok(found?.flatten())
    }

    /// The order, which items are not settled, what is held, the oldest archives, and `with_items` the items.
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

    /// The same of all items and tombstones, in the publisher's order; what is in none comes last.
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
    /// All of these.
    pub(super) fn new(ids: Vec<SyncId>) -> Self {
        Self { ids: ids.into(), from: 0 }
    }

    /// Their ids, in the order of the view.
    pub fn ids(&self) -> &[SyncId] {
        self.ids.get(self.from..).unwrap_or_default()
    }

    /// Those after the next `read`.
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
