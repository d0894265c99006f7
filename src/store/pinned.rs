//! A feed that is read at one revision, a portion at a time.

use super::{Select, StoreError, View};
use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::model::{
    FeedState, FoundItems, Item, LedgerQuery, Snapshot, SyncId, Tick, WantedItems,
};

/// Reads a feed at one revision. Once another change was committed, every call answers [`StoreError::Outdated`]: whoever
/// reads begins anew.
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
    /// The same of all items and tombstones, in the publisher's order; what is in none comes last.
    async fn whole_view(self: Arc<Self>) -> Result<Option<View>, StoreError> {
        let Some(mut view) = Arc::clone(&self).view(Select::All).await? else { return Ok(None) };
        let Some(ledger) = self.snapshot().await? else { return Ok(None) };
        let places: HashMap<&SyncId, usize> = ledger.order.iter().zip(0..).collect();
        let place = |item: &Item| places.get(&item.shared.winner.id).copied();
        view.items.sort_by_key(|item| place(item).unwrap_or(usize::MAX));
        Ok(Some(view))
    }
    /// The ledger and the order; `None` where the feed was purged meanwhile.
    async fn snapshot(self: Arc<Self>) -> Result<Option<Snapshot>, StoreError>;
    /// Whether the ledger has an index, so that it need not be read whole.
    async fn has_index(self: Arc<Self>) -> Result<bool, StoreError> {
        Ok(false)
    }
    /// The order, and of the ledger what is not settled ([`Snapshot::settled`]); the whole ledger where it has
    /// no index. `cutoff`: what changed at an earlier tick has left the sync view's window.
    async fn unsettled(self: Arc<Self>, _cutoff: Tick) -> Result<Option<Snapshot>, StoreError> {
        self.snapshot().await
    }
    /// The items that a snapshot without the settled ones lacks, as far as the query asks for them; those
    /// that it has may be among them.
    async fn find_items(self: Arc<Self>, _query: LedgerQuery) -> Result<FoundItems, StoreError> {
        Ok(FoundItems::default())
    }
    /// A snapshot of this feed with the items that are wanted besides; `None` where it has them already,
    /// there are none, or the feed was purged meanwhile. What had left the ledger stays in it.
    async fn read_more(
        self: Arc<Self>,
        snapshot: &Snapshot,
        wanted: WantedItems,
    ) -> Result<Option<Snapshot>, StoreError> {
        match wanted {
            WantedItems::Whole => {
                let whole = self.snapshot().await?;
                Ok(whole.map(|whole| whole.with_evicted(snapshot)))
            }
            WantedItems::Found(query) if query.is_empty() => Ok(None),
            WantedItems::Found(query) => Ok(snapshot.with_found(self.find_items(query).await?)),
        }
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
