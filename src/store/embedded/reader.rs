//! A feed as it was when it was asked for.

use super::overtaken::verified;
use super::pins::Pin;
use super::{StoreInner, ledger, read};
use crate::{PinnedFeed, RemainingItems, Select, StoreError, View};
use async_trait::async_trait;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedState, FoundItems, Item, LedgerQuery, Snapshot, Tick};

/// Reads a feed as of one write.
pub(super) struct EmbeddedReader {
    inner: Arc<StoreInner>,
    feed: FeedName,
    pin: Pin,
}

impl EmbeddedReader {
    /// The feed as it is published; `None` where nothing was committed to it.
    pub(super) async fn new(
        inner: &Arc<StoreInner>,
        feed: &FeedName,
    ) -> Result<Option<Arc<Self>>, StoreError> {
        inner.opened()?;
        let pin = inner.pin(feed).await?;
        let (inner, feed) = (Arc::clone(inner), feed.clone());
        Ok(pin.map(|pin| Arc::new(Self { inner, feed, pin })))
    }

    async fn read<T: Send + 'static>(
        self: Arc<Self>,
        read: impl FnOnce(&super::Records, &Self) -> Result<Option<T>, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        let (inner, this) = (Arc::clone(&self.inner), Arc::clone(&self));
        let found = inner
            .read(move |records, _| {
                self.pin.check()?;
                let pin = &self.pin;
                let found =
                    verified(records, &self.feed, &pin.head, |records| read(records, &self));
                if self.pin.is_purged() { Ok(None) } else { found }
            })
            .await;
        if matches!(found, Err(StoreError::Outdated)) {
            // So that who begins anew finds another state.
            inner.see_change(&this.feed, this.pin.head.write).await?;
        }
        found
    }
}

#[async_trait]
impl PinnedFeed for EmbeddedReader {
    fn state(&self) -> &FeedState {
        &self.pin.head.state
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
