//! Locks of feeds: what changes a feed, one at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tokio::sync::OwnedMutexGuard;
use tokio::time::timeout;

/// Who changes which feed, and who waits for that.
#[derive(Default)]
pub struct FeedLocks(Mutex<HashMap<FeedName, Arc<tokio::sync::Mutex<()>>>>);

/// The right to change a feed: one change of a feed is made at a time.
pub struct FeedLock {
    locks: Arc<FeedLocks>,
    feed: FeedName,
    held: Option<OwnedMutexGuard<()>>,
}

impl Drop for FeedLock {
    fn drop(&mut self) {
        self.held = None;
        let mut locks = self.locks.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waits has it as well.
        if locks.get(&self.feed).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(&self.feed);
        }
    }
}

impl FeedLocks {
    /// Waits until nobody else changes the feed: in turn.
    pub async fn lock(self: &Arc<Self>, feed: &FeedName) -> FeedLock {
        // It goes as well where nobody waits any more.
        let mut turn = FeedLock { locks: Arc::clone(self), feed: feed.clone(), held: None };
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(feed.clone()).or_default())
        };
        turn.held = Some(lock.lock_owned().await);
        turn
    }

    /// The same behind no more than `most` others, and for no longer than `limit`; `None` where that is not enough.
    pub async fn lock_within(
        self: &Arc<Self>,
        feed: &FeedName,
        most: usize,
        limit: Duration,
    ) -> Option<FeedLock> {
        let others = {
            let locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // The map has it, too.
            locks.get(feed).map_or(0, |lock| Arc::strong_count(lock).saturating_sub(1))
        };
        if others > most {
            return None;
        }
        timeout(limit, self.lock(feed)).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_feed_has_its_turn_or_is_refused_and_leaves_nothing() {
        let locks = Arc::new(FeedLocks::default());
        let (feed, other) = (FeedName::new("a").unwrap(), FeedName::new("b").unwrap());
        let first = locks.lock(&feed).await;
        drop(locks.lock_within(&other, 0, Duration::ZERO).await.unwrap());
        let limit = Duration::from_secs(9);
        let next = tokio::spawn({
            let (locks, feed) = (Arc::clone(&locks), feed.clone());
            async move { locks.lock_within(&feed, 1, limit).await }
        });
        tokio::task::yield_now().await;
        assert!(locks.lock_within(&feed, 1, limit).await.is_none(), "two are before it");
        assert!(locks.lock_within(&feed, 2, Duration::from_secs(1)).await.is_none(), "too late");
        drop(first);
        assert!(next.await.unwrap().is_some());
        // One that gives up while the feed becomes free.
        let first = locks.lock(&feed).await;
        let given_up = tokio::spawn({
            let (locks, feed) = (Arc::clone(&locks), feed.clone());
            async move { locks.lock(&feed).await }
        });
        tokio::task::yield_now().await;
        drop(first);
        given_up.abort();
        drop(given_up.await);
        assert!(locks.0.lock().unwrap().is_empty());
    }
}
