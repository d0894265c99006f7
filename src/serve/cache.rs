//! A cache for keys and values of any type. The library's machinery is compiled once, for keys and values whose
//! type is forgotten: compiled for each type, it was half of this crate.

use foldhash::fast::RandomState;
use moka::sync::{self, CacheBuilder};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// A key of some type.
trait AnyKey: Any + Send + Sync {
    fn equals(&self, other: &dyn AnyKey) -> bool;
    fn add_to(&self, state: &mut dyn Hasher);
}

impl<K: Eq + Hash + Send + Sync + 'static> AnyKey for K {
    fn equals(&self, other: &dyn AnyKey) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }

    fn add_to(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}

impl PartialEq for dyn AnyKey {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other)
    }
}

impl Eq for dyn AnyKey {}

impl Hash for dyn AnyKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.add_to(state);
    }
}

/// A value of some type.
type AnyValue = Arc<dyn Any + Send + Sync>;
type Key = Arc<dyn AnyKey>;
type Kept = sync::Cache<Key, AnyValue, RandomState>;

/// What is kept by key. A clone is the same cache.
pub struct Cache<K, V> {
    kept: Kept,
    of: PhantomData<fn(K) -> V>,
}

impl<K, V> fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

impl<K, V> Clone for Cache<K, V> {
    fn clone(&self) -> Self {
        Self { kept: self.kept.clone(), of: PhantomData }
    }
}

impl<K, V> Cache<K, V>
where
    K: Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Creates a cache of at most `entries`.
    #[must_use]
    pub fn with_capacity(entries: u64) -> Self {
        Self::with_ttl(entries, Duration::MAX)
    }

    /// Creates a cache of at most `entries`, each kept for at most `age`.
    #[must_use]
    pub fn with_ttl(entries: u64, age: Duration) -> Self {
        let kept = sync::Cache::builder().max_capacity(entries);
        Self::built(if age == Duration::MAX { kept } else { kept.time_to_live(age) })
    }

    /// Creates a cache whose entries weigh at most `capacity` together.
    #[must_use]
    pub fn with_weigher(capacity: u64, weigh: fn(&V) -> u32) -> Self {
        let weigh = move |_: &Key, value: &AnyValue| value.downcast_ref().map_or(u32::MAX, weigh);
        Self::built(sync::Cache::builder().max_capacity(capacity).weigher(weigh))
    }

    fn built(kept: CacheBuilder<Key, AnyValue, sync::Cache<Key, AnyValue>>) -> Self {
        let kept = kept.support_invalidation_closures();
        Self { kept: kept.build_with_hasher(RandomState::default()), of: PhantomData }
    }

    /// What is kept under a key.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        let key: &dyn AnyKey = key;
        self.kept.get(key)?.downcast().ok()
    }

    /// Keeps something, in the place of what was under the key.
    pub fn insert(&self, key: K, value: impl Into<Arc<V>>) {
        self.kept.insert(Arc::new(key), value.into());
    }

    /// Keeps something where nothing is under the key. What is kept then, and whether it is this.
    pub fn get_or_insert(&self, key: K, value: V) -> (Option<Arc<V>>, bool) {
        let entry = self.kept.entry(Arc::new(key)).or_insert(Arc::new(value));
        let is_new = entry.is_fresh();
        (entry.into_value().downcast().ok(), is_new)
    }

    /// Drops the entries whose keys `those` accepts.
    pub fn invalidate_if(&self, those: impl Fn(&K) -> bool + Send + Sync + 'static) {
        let is_one = move |key: &Key, _: &AnyValue| {
            let key: &dyn Any = key.as_ref();
            key.downcast_ref().is_some_and(&those)
        };
        // An error only without `support_invalidation_closures`, which every cache here has.
        let _ = self.kept.invalidate_entries_if(is_one);
    }

    /// What is kept weighs so much.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.run_pending_tasks();
        self.kept.weighted_size()
    }

    /// Runs the deferred maintenance now: entries beyond the capacity are dropped.
    pub fn run_pending_tasks(&self) {
        self.kept.run_pending_tasks();
    }
}
