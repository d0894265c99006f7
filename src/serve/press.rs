//! Documents that are made when they are asked for and kept for a while: of many who ask for the
//! same at once, one makes it, and only so many are made at a time.

use super::metrics::Metrics;
use crate::store::StoreError;
use moka::future::Cache;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What is kept, and what it takes to make more of it.
pub(super) struct Press<K, V> {
    kept: Cache<K, Arc<V>>,
    turns: Arc<Semaphore>,
    metrics: Metrics,
}

impl<K, V> Press<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Keeps at most `bytes`, as `weigh` has it, and makes at most `at_once` at a time.
    pub(super) fn new(bytes: u64, at_once: usize, weigh: fn(&V) -> u32, metrics: Metrics) -> Self {
        Self::build(bytes, at_once, weigh, metrics, None)
    }

    /// The same, for `age` at most each.
    pub(super) fn ageing(
        bytes: u64,
        at_once: usize,
        weigh: fn(&V) -> u32,
        metrics: Metrics,
        age: Duration,
    ) -> Self {
        Self::build(bytes, at_once, weigh, metrics, Some(age))
    }

    fn build(
        bytes: u64,
        at_once: usize,
        weigh: fn(&V) -> u32,
        metrics: Metrics,
        age: Option<Duration>,
    ) -> Self {
        let kept =
            Cache::builder().max_capacity(bytes).weigher(move |_: &K, value: &Arc<V>| weigh(value));
        let kept = match age {
            Some(age) => kept.time_to_live(age),
            None => kept,
        };
        Self { kept: kept.build(), turns: Arc::new(Semaphore::new(at_once)), metrics }
    }

    /// What is kept under a key, or what `make` answers when its turn has come. A failure is not
    /// kept.
    pub(super) async fn get<E>(
        &self,
        key: K,
        make: impl AsyncFnOnce(OwnedSemaphorePermit) -> Result<V, E>,
    ) -> Result<Arc<V>, Arc<E>>
    where
        E: From<StoreError> + Send + Sync + 'static,
    {
        if let Some(hit) = self.kept.get(&key).await {
            self.metrics.cache_hit();
            return Ok(hit);
        }
        let build = async {
            self.metrics.cache_miss();
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            let turn = turn.map_err(|_| StoreError::Closed)?;
            make(turn).await.map(Arc::new)
        };
        self.kept.try_get_with(key, build).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test]
    async fn of_many_who_ask_one_makes_it_and_failures_are_not_kept() {
        let press = Press::<u8, u32>::new(1024, 1, |_| 1, Metrics::new());
        let made = AtomicU32::new(0);
        let make = async |_turn| Ok::<u32, StoreError>(made.fetch_add(1, Ordering::SeqCst));
        let (one, other) = tokio::join!(press.get(7, &make), press.get(7, &make));
        assert_eq!((*one.unwrap(), *other.unwrap()), (0, 0));
        assert_eq!(*press.get(8, &make).await.unwrap(), 1);
        let fail = async |_turn| Err::<u32, StoreError>(StoreError::Closed);
        assert!(press.get(9, fail).await.is_err());
        assert_eq!(*press.get(9, &make).await.unwrap(), 2);
    }
}
