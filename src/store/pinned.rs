//! A feed that is read at one revision, a portion at a time.

use super::{Select, StoreError, View};
use crate::model::{FeedState, Item, Snapshot, SyncId};
use async_trait::async_trait;
use std::sync::Arc;

/// Reads a feed at one revision, whatever is committed meanwhile. What it sees is kept until it is dropped.
#[async_trait]
pub trait PinnedFeed: Send + Sync {
    /// The feed's state.
    fn state(&self) -> &FeedState;
    /// The first items with their bytes, the skeleton, and which items follow; `None` before the first
    /// skeleton, and where the feed was purged meanwhile.
    async fn begin_view(
        self: Arc<Self>,
        select: Select,
    ) -> Result<Option<(View, RemainingItems)>, StoreError>;
    /// The next items of a view, and which follow; `None` where the feed was purged meanwhile.
    async fn next_items(
        self: Arc<Self>,
        remaining: RemainingItems,
    ) -> Result<Option<(Vec<Item>, RemainingItems)>, StoreError>;
    /// All items with their bytes, and the skeleton; `None` before the first skeleton, and where the feed
    /// was purged meanwhile.
    async fn view(self: Arc<Self>, select: Select) -> Result<Option<View>, StoreError> {
        let begun = Arc::clone(&self).begin_view(select).await?;
        let Some((mut view, mut remaining)) = begun else { return Ok(None) };
        while !remaining.is_empty() {
            let Some(next) = Arc::clone(&self).next_items(remaining).await? else {
                return Ok(None);
            };
            view.items.extend(next.0);
            remaining = next.1;
        }
        Ok(Some(view))
    }
    /// The ledger and the order; `None` where the feed was purged meanwhile.
    async fn snapshot(self: Arc<Self>) -> Result<Option<Snapshot>, StoreError>;
}

/// Items of a view that were not read yet.
#[derive(Debug, Clone, Default)]
pub struct RemainingItems {
    ids: Arc<[SyncId]>,
    from: usize,
}

impl RemainingItems {
    /// All of these.
    pub fn new(ids: Vec<SyncId>) -> Self {
        Self { ids: ids.into(), from: 0 }
    }

    /// Their ids, in the order of the view.
    pub fn ids(&self) -> &[SyncId] {
        self.ids.get(self.from..).unwrap_or_default()
    }

    /// Those after the next `read`.
    #[must_use]
    pub fn after(mut self, read: usize) -> Self {
        self.from = self.from.saturating_add(read);
        self
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.ids().is_empty()
    }
}
