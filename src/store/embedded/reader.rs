//! A feed as it was when it was asked for.

use super::{StoreInner, ledger, read};
use crate::record::StateRecord;
use crate::{PinnedFeed, RemainingItems, Select, StoreError, View};
use async_trait::async_trait;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedState, FoundItems, Item, LedgerQuery, Snapshot, Tick};

/// Reads a feed as of one write: an error once there was another.
pub(super) struct EmbeddedReader {
    inner: Arc<StoreInner>,
    feed: FeedName,
    head: StateRecord,
}

impl EmbeddedReader {
    /// The feed as it is published; `None` where nothing was committed to it.
    pub(super) fn new(
        inner: &Arc<StoreInner>,
        feed: &FeedName,
    ) -> Result<Option<Arc<Self>>, StoreError> {
        inner.opened()?;
        inner.check_seen()?;
        inner.shared.health()?;
        let head = inner.shared.published(feed).map(|published| published.head()).transpose()?;
        let (inner, feed) = (Arc::clone(inner), feed.clone());
        Ok(head.map(|head| Arc::new(Self { inner, feed, head })))
    }

    async fn read<T: Send + 'static>(
        self: Arc<Self>,
        read: impl FnOnce(&super::Records, &Self) -> Result<Option<T>, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let this = Arc::clone(&self);
        let found = self.inner.read_feed(&self.feed, move |records, now| {
            let is_same =
                (now.state.revision, now.write) == (this.head.state.revision, this.head.write);
            if is_same { read(records, &this) } else { Err(StoreError::Outdated) }
        });
        let found = found.await;
        if matches!(found, Err(StoreError::Outdated)) {
            // So that who begins anew finds another state.
            self.inner.catch_up().await?;
        }
        Ok(found?.flatten())
    }
}

#[async_trait]
impl PinnedFeed for EmbeddedReader {
    fn state(&self) -> &FeedState {
        &self.head.state
    }

    async fn begin_view(
        self: Arc<Self>,
        select: Select,
    ) -> Result<Option<(View, RemainingItems)>, StoreError> {
        self.read(move |records, of| read::begin_view(records, &of.feed, of.state(), select)).await
    }

    async fn next_items(
        self: Arc<Self>,
        remaining: RemainingItems,
    ) -> Result<Option<(Vec<Item>, RemainingItems)>, StoreError> {
        self.read(move |records, of| read::next_items(records, &of.feed, remaining).map(Some)).await
    }

    async fn snapshot(self: Arc<Self>) -> Result<Option<Snapshot>, StoreError> {
        self.read(|records, of| read::snapshot(records, &of.feed, of.state())).await
    }
    async fn has_index(self: Arc<Self>) -> Result<bool, StoreError> {
        let found = self.read(|records, of| ledger::has_index(records, &of.feed).map(Some));
        Ok(found.await?.unwrap_or_default())
    }

    async fn unsettled(self: Arc<Self>, cutoff: Tick) -> Result<Option<Snapshot>, StoreError> {
        self.read(move |records, of| ledger::unsettled(records, &of.feed, of.state(), cutoff)).await
    }

    async fn find_items(self: Arc<Self>, query: LedgerQuery) -> Result<FoundItems, StoreError> {
        let found = self.read(move |records, of| ledger::find(records, &of.feed, &query).map(Some));
        Ok(found.await?.unwrap_or_default())
    }
}
