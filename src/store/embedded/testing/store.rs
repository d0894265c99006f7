//! What tests alone ask of a store.

use crate::embedded::{OpenRequest, OpenState, OpenStore};
use crate::engine::FirstRead;
use crate::{DiskRequest, PinnedFeed, Store, StoreError};
use std::path::Path;
use std::sync::Arc;
use tidegate_core::clock::Clock;
use tidegate_core::model::{
    ArchiveNote, EndpointId, FeedName, FeedRecord, FoundItems, LedgerQuery,
};

impl Store {
    /// Opens a store on disk, or makes one. Blocks.
    pub fn on_disk(
        path: &Path,
        endpoint: Option<EndpointId>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        Self::open_on_disk(DiskRequest::new(path, endpoint), clock)
    }

    /// Closes a store in memory and opens another over the same content: what a restart is to a store on disk.
    pub fn reopen(&self) -> Result<Self, StoreError> {
        if self.inner.blocks {
            let path = self.inner.opened()?.records.engine().path().to_owned();
            return Err(StoreError::InUse { path });
        }
        let open = self.inner.replace(OpenState::Closed);
        let OpenState::Open(OpenStore { records, .. }) = open else {
            return Err(StoreError::Closed);
        };
        let clock = Arc::clone(&self.inner.shared.clock);
        Self::over_memory(records, OpenRequest::default(), clock)
    }

    /// Every feed that was ever added and not purged, by name.
    pub async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        let listed = self.feed_list().await?;
        Ok(listed.values().map(|record| FeedRecord::clone(record)).collect())
    }

    /// The archives that are kept, newest first, at most `limit`.
    pub async fn archives(
        &self,
        feed: &FeedName,
        limit: usize,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        let all =
            self.inner.query_feed(feed, |feed, state| feed.oldest_archives(state, usize::MAX));
        Ok(all.await?.into_iter().rev().take(limit).collect())
    }
}

impl PinnedFeed {
    pub async fn find_items(&self, query: LedgerQuery) -> Result<FoundItems, StoreError> {
        let found = self.read(FirstRead::default(), move |feed, _| feed.find(&query).map(Some));
        Ok(found.await?.unwrap_or_default())
    }
}
