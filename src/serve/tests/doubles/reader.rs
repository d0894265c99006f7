//! Reading a feed of the test store as it was.

use super::content::known;
use super::{Feed, edit_in};
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tidegate_core::model::*;
use tidegate_store::*;
use tokio::sync::Semaphore;

/// A feed as it was, and what of the store counts and disturbs its reading.
pub(super) struct TestReader {
    pub(super) name: FeedName,
    pub(super) feed: Feed,
    pub(super) feeds: Arc<Mutex<BTreeMap<FeedName, Feed>>>,
    pub(super) views: Arc<AtomicUsize>,
    pub(super) snapshots: Arc<AtomicUsize>,
    pub(super) gate: Arc<Semaphore>,
    pub(super) gated: Option<&'static str>,
    pub(super) reading: Arc<(AtomicUsize, AtomicUsize)>,
    pub(super) restless: Arc<AtomicUsize>,
}

#[async_trait]
impl PinnedFeed for TestReader {
    fn state(&self) -> &FeedState {
        &self.feed.state
    }

    async fn snapshot(self: Arc<Self>) -> Result<Option<Snapshot>, StoreError> {
        self.snapshots.fetch_add(1, Ordering::SeqCst);
        let feed = self.feed.clone();
        let known = feed.items.iter().map(known).collect();
        let contested = feed.items.iter().filter(|item| !item.shared.conflicts.is_empty());
        let contested =
            contested.map(|item| (item.shared.winner.id.clone(), item.shared.conflicts.clone()));
        Ok(Some(Snapshot {
            state: feed.state,
            known,
            settled: None,
            unsettled: None,
            order: feed.order,
            kept: Vec::new(),
            archives: Vec::new(),
            conflicts: contested.collect(),
        }))
    }

    async fn next_items(
        self: Arc<Self>,
        remaining: RemainingItems,
    ) -> Result<Option<(Vec<Item>, RemainingItems)>, StoreError> {
        Ok(Some((Vec::new(), remaining)))
    }

    async fn begin_view(
        self: Arc<Self>,
        select: Select,
    ) -> Result<Option<(View, RemainingItems)>, StoreError> {
        self.views.fetch_add(1, Ordering::SeqCst);
        if !self.gate.is_closed() && self.gated.is_none_or(|gated| gated == self.name.as_str()) {
            let (gate, reading) = (Arc::clone(&self.gate), Arc::clone(&self.reading));
            let read = tokio::spawn(async move {
                let now = reading.0.fetch_add(1, Ordering::SeqCst) + 1;
                reading.1.fetch_max(now, Ordering::SeqCst);
                if let Ok(permit) = gate.acquire().await {
                    permit.forget();
                }
                reading.0.fetch_sub(1, Ordering::SeqCst);
            });
            read.await.unwrap();
        }
        let still =
            self.restless.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if still.is_ok() {
            edit_in(&self.feeds, &self.name, |_| {});
        }
        let feed = self.feed.clone();
        let all = feed.items;
        let items = match select {
            Select::Current => {
                let find =
                    |id: &SyncId| all.iter().find(|item| item.shared.winner.id == *id).cloned();
                feed.order.iter().filter_map(find).collect()
            }
            Select::After(tick) => all.into_iter().filter(|item| item.tick > tick).collect(),
            Select::All => all,
        };
        let view = View { state: feed.state, skeleton: feed.skeleton, items };
        Ok(Some((view, RemainingItems::default())))
    }
}
