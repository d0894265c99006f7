//! Locks of feeds: one change of a feed at a time, and not while it is read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::timeout;

/// A fair lock for each feed that is read, changed or waited for.
#[derive(Default)]
pub struct FeedLocks(Mutex<LockMap>);

#[derive(Default)]
struct LockMap {
    locks: HashMap<FeedName, Weak<RwLock<()>>>,
    /// How many locks the last sweep left.
    left: usize,
}

/// The right to change a feed: one change of a feed is made at a time.
pub type FeedLock = OwnedRwLockWriteGuard<()>;

impl FeedLocks {
    pub(super) fn lock_of(&self, feed: &FeedName) -> Arc<RwLock<()>> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = map.locks.get(feed).and_then(Weak::upgrade) {
            return lock;
        }
        // A sweep removes locks without owners and waiters. Its cost is at most that of the insertions since the last
        // one.
        if map.locks.len() >= 2 * map.left {
            map.locks.retain(|_, lock| lock.strong_count() > 0);
            map.left = map.locks.len();
        }
        let lock = Arc::default();
        map.locks.insert(feed.clone(), Arc::downgrade(&lock));
        lock
    }

    /// Locks the feed against other changes and readers; in order of the calls.
    pub async fn lock(&self, feed: &FeedName) -> FeedLock {
        self.lock_of(feed).write_owned().await
    }

    /// Locks the feed against changes; in order of the calls.
    pub(super) async fn lock_to_read(&self, feed: &FeedName) -> OwnedRwLockReadGuard<()> {
        self.lock_of(feed).read_owned().await
    }

    /// Locks the feed behind at most `most` other callers, and within `limit`; otherwise `None`.
    pub async fn lock_within(
        &self,
        feed: &FeedName,
        most: usize,
        limit: Duration,
    ) -> Option<FeedLock> {
        let lock = self.lock_of(feed);
        let others = Arc::strong_count(&lock).saturating_sub(1);
        if others > most {
            return None;
        }
        timeout(limit, lock.write_owned()).await.ok()
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
        // The caller gave up just when the feed became free.
        let first = locks.lock(&feed).await;
        let given_up = tokio::spawn({
            let (locks, feed) = (Arc::clone(&locks), feed.clone());
            async move { locks.lock(&feed).await }
        });
        tokio::task::yield_now().await;
        drop(first);
        given_up.abort();
        drop(given_up.await);
        drop(locks.lock(&other).await);
        for number in 0..100 {
            drop(locks.lock(&FeedName::new(&format!("feed-{number}")).unwrap()).await);
        }
        assert!(locks.0.lock().unwrap().locks.len() <= 2);
    }
}
