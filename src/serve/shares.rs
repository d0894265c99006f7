//! Something that is shared out by key (by client, by feed): each has so much of it at a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

type ShareTable<K> = Arc<Mutex<HashMap<K, Arc<Semaphore>>>>;

/// What is shared out. Only keys that have or want some of it are remembered.
#[derive(Debug)]
pub(super) struct FairShares<K> {
    each: u32,
    table: ShareTable<K>,
}

/// A part of a key's share, until it is dropped.
#[derive(Debug)]
pub(super) struct Share<K: Eq + Hash> {
    key: K,
    permit: Option<OwnedSemaphorePermit>,
    table: ShareTable<K>,
}

impl<K: Clone + Eq + Hash> FairShares<K> {
    /// `each` for each key.
    pub(super) fn new(each: u32) -> Self {
        Self { each, table: Arc::default() }
    }

    fn share(&self, key: &K) -> (Arc<Semaphore>, Share<K>) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(Semaphore::new(usize::try_from(self.each).unwrap_or(usize::MAX)));
        let own = Arc::clone(table.entry(key.clone()).or_insert_with(fresh));
        // What is waited for in vain is let go of like what was had.
        (own, Share { key: key.clone(), permit: None, table: Arc::clone(&self.table) })
    }

    /// So much of the key's share, now; `None` where it has not so much left.
    pub(super) fn try_take(&self, key: &K, much: u32) -> Option<Share<K>> {
        let (own, mut share) = self.share(key);
        share.permit = own.try_acquire_many_owned(much.min(self.each)).ok();
        share.permit.is_some().then_some(share)
    }

    /// The same as soon as it is there; what is more than a share takes the whole share.
    pub(super) async fn acquire(&self, key: &K, much: u32) -> Share<K> {
        let (own, mut share) = self.share(key);
        // These semaphores are never closed.
        share.permit = own.acquire_many_owned(much.min(self.each)).await.ok();
        share
    }

    /// The same, where it is there in time; `None` where it is not.
    pub(super) async fn acquire_by(&self, key: &K, much: u32, until: Instant) -> Option<Share<K>> {
        // Mostly it is there, and nothing needs a timer.
        match self.try_take(key, much) {
            Some(share) => Some(share),
            None => timeout_at(until, self.acquire(key, much)).await.ok(),
        }
    }

    /// How many keys are remembered.
    #[cfg(test)]
    pub(super) fn keys(&self) -> usize {
        self.table.lock().unwrap().len()
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        self.permit = None;
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever has or waits for some holds on to it.
        if table.get(&self.key).is_some_and(|own| Arc::strong_count(own) == 1) {
            table.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_has_its_own_and_nothing_is_remembered() {
        let shares = FairShares::new(3);
        let first = shares.try_take(&1, 2).unwrap();
        assert!(shares.try_take(&1, 2).is_none());
        let other = shares.acquire(&2, 99).await;
        assert!(shares.try_take(&2, 1).is_none(), "the whole share");
        assert_eq!(shares.keys(), 2);
        let waits =
            tokio::time::timeout(std::time::Duration::from_millis(1), shares.acquire(&1, 3));
        assert!(waits.await.is_err());
        drop(first);
        assert!(shares.try_take(&1, 3).is_some());
        drop(other);
        assert_eq!(shares.keys(), 0);
    }
}
