//! Limits by key (a client, a feed, a site): a semaphore for each key ([`FairShares`]), or a rate for each key
//! ([`RateLimiter`]).

use super::locked;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// How many may wait for one key's share; or as many as hold it, if that is more: a hub pushes to many topics at the
/// same moment. Further ones are refused at once: each waiter occupies a stream, and to refuse all at the deadline is a
/// burst.
pub(super) const WAITING: u32 = 64;

type ShareTable<K> = Arc<Mutex<HashMap<K, Arc<Semaphore>>>>;

/// What is shared out. Only keys that have or want some of it are remembered.
#[derive(Debug)]
pub(super) struct FairShares<K> {
    pub(super) each: u32,
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
        let mut table = locked(&self.table);
        let fresh = || Arc::new(Semaphore::new(usize::try_from(self.each).unwrap_or(usize::MAX)));
        let own = Arc::clone(table.entry(key.clone()).or_insert_with(fresh));
        // Made before the permit is there, so that a wait that is cancelled cleans up the table as well.
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

    /// The same, where it is there in time; `None` where it is not, and where too many wait for it already.
    pub(super) async fn acquire_by(&self, key: &K, much: u32, until: Instant) -> Option<Share<K>> {
        // Mostly it is there, and nothing needs a timer.
        if let Some(share) = self.try_take(key, much) {
            return Some(share);
        }
        let (own, mut share) = self.share(key);
        // Each holder and each waiter has a reference to the semaphore; so have the table and this function.
        let most = self.each.saturating_add(self.each.max(WAITING)).saturating_add(2);
        if Arc::strong_count(&own) >= usize::try_from(most).unwrap_or(usize::MAX) {
            drop(own);
            return None;
        }
        share.permit =
            timeout_at(until, own.acquire_many_owned(much.min(self.each))).await.ok()?.ok();
        Some(share)
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
        let mut table = locked(&self.table);
        // Any other holder or waiter would have a reference as well.
        if table.get(&self.key).is_some_and(|own| Arc::strong_count(own) == 1) {
            table.remove(&self.key);
        }
    }
}

/// How many keys are remembered. Of more, half are forgotten at once: those whose burst is free again soonest.
const REMEMBERED: usize = 100_000;

/// How fast something may be done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rate {
    /// How often at once.
    pub(super) burst: u32,
    /// After how long once more.
    pub(super) each: Duration,
}

impl Rate {
    /// The time after which a spent burst is free again.
    fn whole(self) -> Duration {
        self.each.saturating_mul(self.burst)
    }

    /// Adds one use: when the whole burst is free again after it, if it was at `free` before, and how long it has to
    /// wait.
    fn next(self, free: Option<&Instant>, now: Instant) -> (Instant, Duration) {
        let free = free.map_or(now, |free| now.max(*free)) + self.each;
        (free, free.saturating_duration_since(now + self.whole()))
    }
}

/// A rate limit by key (the generic cell rate algorithm): when the whole burst of each key is free again. Keys are
/// forgotten only when there are more than [`REMEMBERED`].
#[derive(Debug)]
pub(super) struct RateLimiter<K>(Mutex<HashMap<K, Instant>>);

impl<K> Default for RateLimiter<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> RateLimiter<K> {
    /// How long a key has to wait for its next time at this rate.
    pub(super) fn wait(&self, key: &K, rate: Rate) -> Duration {
        rate.next(locked(&self.0).get(key), Instant::now()).1
    }

    /// Takes one time of a key's; or how long it has to wait for one.
    pub(super) fn take(&self, key: &K, rate: Rate) -> Result<(), Duration> {
        let (now, mut times) = (Instant::now(), locked(&self.0));
        let (free, wait) = rate.next(times.get(key), now);
        if !wait.is_zero() {
            return Err(wait);
        }
        if times.len() >= REMEMBERED {
            let mut all: Vec<Instant> = times.values().copied().collect();
            let middle = *all.select_nth_unstable(REMEMBERED / 2).1;
            times.retain(|_, free| *free > middle);
        }
        times.insert(key.clone(), free);
        Ok(())
    }

    /// Gives one back that was taken.
    pub(super) fn give_back(&self, key: &K, rate: Rate) {
        if let Some(free) = locked(&self.0).get_mut(key) {
            *free = free.checked_sub(rate.each).unwrap_or(*free);
        }
    }

    /// Whether the whole burst of a key is free.
    pub(super) fn is_unused(&self, key: &K) -> bool {
        locked(&self.0).get(key).is_none_or(|free| *free <= Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test]
    async fn each_has_its_own_and_nothing_is_remembered() {
        let shares = FairShares::new(3);
        let first = shares.try_take(&1, 2).unwrap();
        assert!(shares.try_take(&1, 2).is_none());
        let other = shares.acquire(&2, 99).await;
        assert!(shares.try_take(&2, 1).is_none(), "the whole share");
        assert_eq!(shares.keys(), 2);
        let waits = tokio::time::timeout(Duration::from_millis(1), shares.acquire(&1, 3));
        assert!(waits.await.is_err());
        drop(first);
        assert!(shares.try_take(&1, 3).is_some());
        drop(other);
        assert_eq!(shares.keys(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_wait_and_more_are_refused_at_once() {
        let shares = Arc::new(FairShares::new(2));
        let held = [shares.try_take(&1, 1).unwrap(), shares.try_take(&1, 1).unwrap()];
        let (begun, until) = (Instant::now(), Instant::now() + Duration::from_secs(5));
        let wait = || {
            let shares = Arc::clone(&shares);
            tokio::spawn(async move { shares.acquire_by(&1, 1, until).await.is_some() })
        };
        let waiting: Vec<_> = (0..WAITING).map(|_| wait()).collect();
        tokio::task::yield_now().await;
        assert!(!wait().await.unwrap() && begun.elapsed().is_zero());
        assert!(shares.acquire_by(&2, 1, until).await.is_some(), "another key has its own");
        drop(held);
        for waits in waiting {
            assert!(waits.await.unwrap(), "it waited for its turn");
        }
        assert_eq!(shares.keys(), 0);
    }

    const SECOND: Duration = Duration::from_secs(1);
    const RATE: Rate = Rate { burst: 3, each: SECOND };

    #[tokio::test(start_paused = true)]
    async fn each_key_has_a_burst_and_then_a_rate() {
        let pace = RateLimiter::default();
        assert!(pace.is_unused(&1));
        for _ in 0..3 {
            assert_eq!((pace.wait(&1, RATE), pace.take(&1, RATE)), (Duration::ZERO, Ok(())));
        }
        assert_eq!((pace.wait(&1, RATE), pace.take(&1, RATE)), (SECOND, Err(SECOND)));
        assert_eq!((pace.is_unused(&1), pace.take(&2, RATE)), (false, Ok(())));
        // Who has a smaller burst has none left before.
        assert!(pace.take(&2, Rate { burst: 1, ..RATE }).is_err());
        advance(SECOND).await;
        assert!(pace.take(&1, RATE).is_ok() && pace.take(&1, RATE).is_err());
        pace.give_back(&1, RATE);
        assert!(pace.take(&1, RATE).is_ok());
        advance(3 * SECOND).await;
        assert!(pace.is_unused(&1));
        // So many keys are remembered.
        let pace = RateLimiter::default();
        for _ in 0..RATE.burst {
            assert!(pace.take(&0, RATE).is_ok());
        }
        for key in 1..=2 * REMEMBERED {
            assert!(pace.take(&key, RATE).is_ok());
        }
        assert!(locked(&pace.0).len() <= REMEMBERED);
        assert_eq!(pace.take(&0, RATE), Err(SECOND), "who has to wait begins anew for no others");
    }
}
