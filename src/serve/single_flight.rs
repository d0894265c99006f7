//! Documents that are made when they are asked for and kept for a while: of many who ask for the
//! same at once, one has it made, when it is admitted; and each feed has a share of what is kept.

mod share;

pub(super) use super::shared_work::WorkRequest;

use super::admission::{Admission, Overloaded, Work};
use super::cache::Cache;
use super::metrics::Metrics;
use super::shared_work::SingleFlight;
use share::FeedShares;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tidegate_store::StoreError;

/// How often what is made is in memory beside itself: what is read, what is written, what is compressed.
const TIMES: u64 = 4;
/// The part of what is kept that is one feed's: a half. Where the views of a feed are more, those that
/// were asked for longest ago go, and those of other feeds stay.
const FEED_SHARE: u64 = 2;

/// What is kept, and what it takes to make more of it.
pub(super) struct SingleFlightCache<K, V, E> {
    kept: Cache<K, V>,
    shares: Arc<FeedShares<K>>,
    flights: SingleFlight<K, V, E>,
    weigh: fn(&V) -> u32,
    metrics: Metrics,
}

impl<K, V, E> SingleFlightCache<K, V, E>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
    E: From<StoreError> + From<Overloaded> + Send + Sync + 'static,
{
    /// Keeps at most so many bytes, as `weigh` has it; its name is for operators.
    pub(super) fn new(
        kept: (&'static str, u64),
        weigh: fn(&V) -> u32,
        admission: Arc<Admission>,
        metrics: Metrics,
    ) -> Self {
        Self::lasting(kept, Duration::MAX, weigh, admission, metrics)
    }

    /// The same, and nothing for longer than `age`.
    pub(super) fn lasting(
        (name, bytes): (&'static str, u64),
        age: Duration,
        weigh: fn(&V) -> u32,
        admission: Arc<Admission>,
        metrics: Metrics,
    ) -> Self {
        let shares: Arc<FeedShares<K>> = Arc::new(FeedShares::new(bytes / FEED_SHARE));
        let of = Arc::clone(&shares);
        let kept = Cache::new(bytes, age, weigh, move |key| of.left(key));
        let flights = SingleFlight::new(admission);
        let counted = kept.clone();
        metrics.cache(name, bytes, move || counted.weight());
        Self { kept, shares, flights, weigh, metrics }
    }

    /// Lets go of what is kept under some keys.
    pub(super) fn forget(&self, those: impl Fn(&K) -> bool + Send + Sync + 'static) {
        self.kept.remove_all(those);
    }

    /// Lets go of what is kept under a key.
    pub(super) fn drop_kept(&self, key: &K) {
        self.kept.remove(key);
        // At once, and not when somebody asks next.
        self.kept.settle();
    }

    /// What is kept under a key; nothing is made.
    pub(super) fn kept(&self, key: &K) -> Option<Arc<V>> {
        self.kept.get(key)
    }

    /// What is kept under a key, or what `make` answers: begun when it is admitted, and kept whoever
    /// leaves meanwhile. A failure is not kept.
    pub(super) async fn get<F>(
        &self,
        key: K,
        ask: WorkRequest,
        make: impl FnOnce() -> F,
    ) -> Result<Arc<V>, Arc<E>>
    where
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        if let Some(hit) = self.kept.get(&key) {
            self.shares.used(&key);
            self.metrics.cache_hit();
            return Ok(hit);
        }
        let (work, tells) = (ask.work.clone(), ask.tells);
        let mut is_hit = true;
        let made = self.flights.get(&key, ask, || {
            is_hit = false;
            self.keeping(key.clone(), (work, tells), make())
        });
        let made = made.await;
        if is_hit && made.is_ok() {
            self.metrics.cache_hit();
        }
        made
    }

    /// Makes something and keeps it.
    fn keeping<F>(
        &self,
        key: K,
        (work, tells): (Work, bool),
        make: F,
    ) -> impl Future<Output = Result<Arc<V>, Arc<E>>> + Send + 'static
    where
        F: Future<Output = Result<V, E>> + Send + 'static,
    {
        let (kept, shares) = (self.kept.clone(), Arc::clone(&self.shares));
        let (admission, metrics) = (Arc::clone(self.flights.admission()), self.metrics.clone());
        let weigh = self.weigh;
        async move {
            // Who made it may have ended just before this began.
            if let Some(hit) = kept.get(&key) {
                metrics.cache_hit();
                return Ok(hit);
            }
            metrics.cache_miss();
            let value = Arc::new(make.await.map_err(Arc::new)?);
            let weight = u64::from(weigh(&value));
            if let Some(feed) = work.feed() {
                for gone in shares.came(feed, &key, weight) {
                    kept.remove(&gone);
                }
            }
            if tells {
                admission.took(work, weight.saturating_mul(TIMES));
            }
            kept.insert(key, Arc::clone(&value));
            Ok(value)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::WorkKind;
    use crate::client::Client;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tidegate_core::model::FeedName;

    #[derive(Debug, PartialEq, Eq)]
    struct Failed;

    impl From<StoreError> for Failed {
        fn from(_: StoreError) -> Self {
            Self
        }
    }

    impl From<Overloaded> for Failed {
        fn from(_: Overloaded) -> Self {
            Self
        }
    }

    fn ask(client: u8, cost: u64) -> WorkRequest {
        let feed = FeedName::new("news").unwrap();
        let client = Client::at([192, 0, 2, client].into());
        WorkRequest { client, work: Work::new(&feed, WorkKind::Ledger), cost, tells: false }
    }

    fn press() -> SingleFlightCache<u8, u32, Failed> {
        SingleFlightCache::new(("press", 1024), |_| 1, Arc::new(Admission::on(4)), Metrics::new())
    }

    #[tokio::test]
    async fn of_many_who_ask_one_makes_it_and_failures_are_not_kept() {
        let press = press();
        let made = Arc::new(AtomicU32::new(0));
        let make = || {
            let made = Arc::clone(&made);
            async move { Ok::<u32, Failed>(made.fetch_add(1, Ordering::SeqCst)) }
        };
        let (one, other) =
            tokio::join!(press.get(7, ask(1, 1), make), press.get(7, ask(2, 1), make));
        assert_eq!((*one.unwrap(), *other.unwrap()), (0, 0));
        assert_eq!(*press.get(8, ask(1, 1), make).await.unwrap(), 1);
        let fail = || async { Err::<u32, Failed>(Failed) };
        assert!(press.get(9, ask(1, 1), fail).await.is_err());
        assert_eq!(*press.get(9, ask(1, 1), make).await.unwrap(), 2);
        assert_eq!(press.flights.keys(), 0);
    }

    /// A client that asks and leaves has as much made as one that waits, and it is there for the next.
    #[tokio::test(start_paused = true)]
    async fn what_was_begun_is_kept_though_who_asked_left() {
        let press = Arc::new(press());
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (begun, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let make = move |gate: Arc<tokio::sync::Semaphore>| {
            let (begun, most) = (Arc::clone(&begun), Arc::clone(&most));
            async move {
                let now = begun.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                let _passed = gate.acquire().await.map_err(|_| Failed)?;
                begun.fetch_sub(1, Ordering::SeqCst);
                Ok(most.load(Ordering::SeqCst))
            }
        };
        for key in 0..100 {
            let (press, gate, make) = (Arc::clone(&press), Arc::clone(&gate), make.clone());
            // One client, and one that costs a whole share each time.
            let asking = async move { press.get(key, ask(1, u64::MAX), || make(gate)).await };
            let asked = tokio::spawn(asking);
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            asked.abort();
        }
        gate.add_permits(1);
        let failing = || async { Err(Failed) };
        let first = press.get(0, ask(2, 1), failing).await.unwrap();
        assert_eq!(*first, 1, "the first is there, and no other was begun beside it");
    }

    #[tokio::test]
    async fn a_feed_with_many_views_leaves_those_of_others() {
        let press: SingleFlightCache<(u8, u8), u32, Failed> = SingleFlightCache::new(
            ("press", 1000),
            |_| 100,
            Arc::new(Admission::new()),
            Metrics::new(),
        );
        let get = async |feed: u8, number: u8| {
            let work =
                Work::new(&FeedName::new(&format!("feed-{feed}")).unwrap(), WorkKind::Ledger);
            let ask = WorkRequest { client: Client::Own, work, cost: 1, tells: false };
            press.get((feed, number), ask, || async { Ok(1) }).await.unwrap();
        };
        get(1, 0).await;
        for number in 0..100 {
            get(2, number).await;
            // The one that is asked for all the time stays.
            get(2, 0).await;
        }
        press.kept.settle();
        let kept: Vec<(u8, u8)> = (1..=2)
            .flat_map(|feed| (0..100).map(move |number| (feed, number)))
            .filter(|key| press.kept.get(key).is_some())
            .collect();

        assert_eq!(kept, [(1, 0), (2, 0), (2, 96), (2, 97), (2, 98), (2, 99)]);
        assert_eq!(press.shares.keys(), 6);
    }

    /// One that has its share in use already asks first, and is waited for by nobody.
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_client_that_asks_for_too_much() {
        let press = press();
        let all = u64::MAX;
        let work = Work::new(&FeedName::new("other").unwrap(), WorkKind::Ledger);
        let greedy = ask(1, all).client;
        let held = press.flights.admission().admit(greedy, &work, all).await.unwrap();
        let make = || async { Ok::<u32, Failed>(1) };
        let begun = tokio::time::Instant::now();
        let first = async { press.get(7, ask(1, all), make).await.map(|_| begun.elapsed()) };
        let other = async { press.get(7, ask(2, all), make).await.map(|_| begun.elapsed()) };
        let (first, other) = tokio::join!(first, other);
        assert_eq!((first.unwrap(), other.unwrap()), (Duration::ZERO, Duration::ZERO));
        drop(held);
    }
}
