//! What each feed has of what is kept.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_core::model::FeedName;

/// Something that is kept.
struct CacheSlot {
    feed: FeedName,
    weight: u64,
    /// When it was last asked for, in the order of requests.
    used: u64,
}

struct CacheTable<K> {
    entries: HashMap<K, CacheSlot>,
    feeds: HashMap<FeedName, u64>,
    order: u64,
}

/// What is kept of each feed, by key.
pub(super) struct FeedShares<K> {
    each: u64,
    table: Mutex<CacheTable<K>>,
}

impl<K: Clone + Eq + Hash> CacheTable<K> {
    fn remove(&mut self, key: &K) {
        let Some(entry) = self.entries.remove(key) else { return };
        if let Some(weight) = self.feeds.get_mut(&entry.feed) {
            *weight = weight.saturating_sub(entry.weight);
            if *weight == 0 {
                self.feeds.remove(&entry.feed);
            }
        }
    }
}

impl<K: Clone + Eq + Hash> FeedShares<K> {
    /// So much for each feed.
    pub(super) fn new(each: u64) -> Self {
        let table = CacheTable { entries: HashMap::new(), feeds: HashMap::new(), order: 0 };
        Self { each, table: Mutex::new(table) }
    }

    fn table(&self) -> MutexGuard<'_, CacheTable<K>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was asked for.
    pub(super) fn used(&self, key: &K) {
        let mut table = self.table();
        table.order += 1;
        let order = table.order;
        if let Some(entry) = table.entries.get_mut(key) {
            entry.used = order;
        }
    }

    /// Something is about to be kept. Answers what has to go for it: what was asked for longest ago of
    /// the same feed, until that has its share again. What is more than a share stays alone.
    pub(super) fn came(&self, feed: &FeedName, key: &K, weight: u64) -> Vec<K> {
        let mut table = self.table();
        table.remove(key);
        let mut gone = Vec::new();
        while table.feeds.get(feed).is_some_and(|had| had.saturating_add(weight) > self.each) {
            let its = table.entries.iter().filter(|(_, entry)| entry.feed == *feed);
            let Some(oldest) = its.min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone())
            else {
                break;
            };
            table.remove(&oldest);
            gone.push(oldest);
        }
        table.order += 1;
        let entry = CacheSlot { feed: feed.clone(), weight: weight.max(1), used: table.order };
        *table.feeds.entry(feed.clone()).or_default() += entry.weight;
        table.entries.insert(key.clone(), entry);
        gone
    }

    /// Something is not kept any more.
    pub(super) fn left(&self, key: &K) {
        self.table().remove(key);
    }

    /// How many keys are remembered.
    #[cfg(test)]
    pub(super) fn keys(&self) -> usize {
        self.table().entries.len()
    }
}
