//! Documents that are made when they are asked for and kept for a while: of many who ask for the
//! same at once, one makes it; only so many are made at a time, and only for who is admitted.

use super::admission::{Admission, Admitted, Overloaded, Work};
use super::client::Client;
use super::metrics::Metrics;
use crate::store::StoreError;
use moka::future::Cache;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How often what is made is in memory beside itself: what is read, what is written, what is compressed.
const TIMES: u64 = 4;

/// Leave to make something, until it is dropped: whatever goes on after a visitor left holds on to it.
pub(super) struct Turn {
    _admitted: Admitted,
    _permit: OwnedSemaphorePermit,
}

/// Who asks, for what, and what that may take.
pub(super) struct Ask {
    /// Who asks.
    pub(super) client: Client,
    /// What is made.
    pub(super) work: Work,
    /// The bytes in memory that it takes.
    pub(super) cost: u64,
    /// Whether what it weighs says what work of the kind takes.
    pub(super) tells: bool,
}

/// What somebody else is making, as soon as it is there.
type Made<V> = watch::Sender<Option<Arc<V>>>;
/// Each with how many take part in it.
type Flights<K, V> = Arc<Mutex<HashMap<K, (Arc<Made<V>>, usize)>>>;

/// A part in making something that several wait for.
struct Flight<K: Eq + Hash, V> {
    key: K,
    made: Arc<Made<V>>,
    all: Flights<K, V>,
}

impl<K: Clone + Eq + Hash, V> Flight<K, V> {
    fn join(all: &Flights<K, V>, key: &K) -> Self {
        let mut flights = all.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || (Arc::new(watch::channel(None).0), 0);
        let (made, parts) = flights.entry(key.clone()).or_insert_with(new);
        *parts += 1;
        Self { key: key.clone(), made: Arc::clone(made), all: Arc::clone(all) }
    }
}

impl<K: Eq + Hash, V> Drop for Flight<K, V> {
    fn drop(&mut self) {
        let mut flights = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, parts)) = flights.get_mut(&self.key) else { return };
        *parts = parts.saturating_sub(1);
        if *parts == 0 {
            flights.remove(&self.key);
        }
    }
}

/// What is kept, and what it takes to make more of it.
pub(super) struct Press<K, V> {
    kept: Cache<K, Arc<V>>,
    flights: Flights<K, V>,
    weigh: fn(&V) -> u32,
    turns: Arc<Semaphore>,
    admission: Arc<Admission>,
    metrics: Metrics,
}

impl<K, V> Press<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// Keeps at most `bytes`, as `weigh` has it, and makes at most `at_once` at a time.
    pub(super) fn new(
        bytes: u64,
        at_once: usize,
        weigh: fn(&V) -> u32,
        admission: Arc<Admission>,
        metrics: Metrics,
    ) -> Self {
        Self::lasting(bytes, Duration::MAX, at_once, weigh, admission, metrics)
    }

    /// The same, and nothing for longer than `age`.
    pub(super) fn lasting(
        bytes: u64,
        age: Duration,
        at_once: usize,
        weigh: fn(&V) -> u32,
        admission: Arc<Admission>,
        metrics: Metrics,
    ) -> Self {
        let kept = Cache::builder()
            .max_capacity(bytes)
            .weigher(move |_: &K, value: &Arc<V>| weigh(value))
            .support_invalidation_closures();
        let kept = if age == Duration::MAX { kept } else { kept.time_to_live(age) };
        let (flights, turns) = (Flights::default(), Arc::new(Semaphore::new(at_once)));
        Self { kept: kept.build(), flights, weigh, turns, admission, metrics }
    }

    /// Lets go of what is kept under some keys.
    pub(super) fn forget(&self, those: impl Fn(&K) -> bool + Send + Sync + 'static) {
        // Whatever is not dropped here is under a key that nobody asks for any more.
        let _ = self.kept.invalidate_entries_if(move |key, _| those(key));
    }

    /// What is kept under a key; nothing is made.
    pub(super) async fn kept(&self, key: &K) -> Option<Arc<V>> {
        self.kept.get(key).await
    }

    /// What is kept under a key, or what `make` answers when its turn has come. A failure is not
    /// kept.
    ///
    /// Who is admitted first makes it for all who wait, so that nobody waits for the turn of a client
    /// that asks for too much.
    pub(super) async fn get<E>(
        &self,
        key: K,
        ask: Ask,
        make: impl AsyncFnOnce(Turn) -> Result<V, E>,
    ) -> Result<Arc<V>, Arc<E>>
    where
        E: From<StoreError> + From<Overloaded> + Send + Sync + 'static,
    {
        if let Some(hit) = self.kept.get(&key).await {
            self.metrics.cache_hit();
            return Ok(hit);
        }
        let flight = Flight::join(&self.flights, &key);
        let mut made = flight.made.subscribe();
        let admitted = tokio::select! {
            biased;
            // The sender is in `flight`.
            Ok(made) = made.wait_for(Option::is_some) => {
                if let Some(made) = made.as_ref() {
                    self.metrics.cache_hit();
                    return Ok(Arc::clone(made));
                }
                return Err(Arc::new(StoreError::Closed.into()));
            }
            admitted = self.admission.admit(ask.client, &ask.work, ask.cost) => {
                admitted.map_err(|error| Arc::new(error.into()))?
            }
        };
        let build = async {
            self.metrics.cache_miss();
            let turn = Arc::clone(&self.turns).acquire_owned().await;
            let permit = turn.map_err(|_| StoreError::Closed)?;
            let value = make(Turn { _admitted: admitted, _permit: permit }).await?;
            if ask.tells {
                let weight = u64::from((self.weigh)(&value));
                self.admission.took(ask.work, weight.saturating_mul(TIMES));
            }
            Ok(Arc::new(value))
        };
        let value = self.kept.try_get_with(key, build).await?;
        flight.made.send_replace(Some(Arc::clone(&value)));
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FeedName;
    use crate::serve::admission::What;
    use std::sync::atomic::{AtomicU32, Ordering};

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

    fn ask(client: u8, cost: u64) -> Ask {
        let feed = FeedName::new("news").unwrap();
        let client = Client::at([192, 0, 2, client].into());
        Ask { client, work: Work { feed, what: What::Ledger }, cost, tells: false }
    }

    fn press() -> Press<u8, u32> {
        Press::new(1024, 1, |_| 1, Arc::new(Admission::new()), Metrics::new())
    }

    #[tokio::test]
    async fn of_many_who_ask_one_makes_it_and_failures_are_not_kept() {
        let press = press();
        let made = AtomicU32::new(0);
        let make = async |_turn| Ok::<u32, Failed>(made.fetch_add(1, Ordering::SeqCst));
        let (one, other) =
            tokio::join!(press.get(7, ask(1, 1), &make), press.get(7, ask(2, 1), &make));
        assert_eq!((*one.unwrap(), *other.unwrap()), (0, 0));
        assert_eq!(*press.get(8, ask(1, 1), &make).await.unwrap(), 1);
        let fail = async |_turn| Err::<u32, Failed>(Failed);
        assert!(press.get(9, ask(1, 1), fail).await.is_err());
        assert_eq!(*press.get(9, ask(1, 1), &make).await.unwrap(), 2);
        assert!(press.flights.lock().unwrap().is_empty());
    }

    /// A key that lets go of another part in the same flight while its own is let go of.
    #[derive(Clone)]
    struct Last(Arc<Mutex<Option<Flight<Last, u32>>>>);

    impl PartialEq for Last {
        fn eq(&self, _: &Self) -> bool {
            true
        }
    }

    impl Eq for Last {}

    impl Hash for Last {
        fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
    }

    impl Drop for Last {
        fn drop(&mut self) {
            let other = self.0.lock().unwrap().take();
            drop(other);
        }
    }

    #[test]
    fn a_flight_that_two_leave_at_once_is_not_kept() {
        let (flights, key) = (Flights::default(), Last(Arc::default()));
        let one = Flight::join(&flights, &key);
        *key.0.lock().unwrap() = Some(Flight::join(&flights, &key));
        drop(one);
        assert!(flights.lock().unwrap().is_empty());
    }

    /// One that has its share in use already asks first, and is waited for by nobody.
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_client_that_asks_for_too_much() {
        let press = press();
        let all = u64::MAX;
        let work = Work { feed: FeedName::new("other").unwrap(), what: What::Ledger };
        let greedy = ask(1, all).client;
        let held = press.admission.admit(greedy, &work, all).await.unwrap();
        let make = async |_turn| Ok::<u32, Failed>(1);
        let begun = tokio::time::Instant::now();
        let first = async { press.get(7, ask(1, all), make).await.map(|_| begun.elapsed()) };
        let other = async { press.get(7, ask(2, all), make).await.map(|_| begun.elapsed()) };
        let (first, other) = tokio::join!(first, other);
        assert_eq!((first.unwrap(), other.unwrap()), (Duration::ZERO, Duration::ZERO));
        drop(held);
    }
}
