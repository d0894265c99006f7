//! How fast each of many may do something: so much at once, and from then on one more each time that so long has passed.

use crate::locked;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

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
    /// In how long a whole burst is free again.
    fn whole(self) -> Duration {
        self.each.saturating_mul(self.burst)
    }

    /// When a whole burst is free after one time more, where it was so `free` before, and how long that one has to wait.
    fn next(self, free: Option<&Instant>, now: Instant) -> (Instant, Duration) {
        let free = free.map_or(now, |free| now.max(*free)) + self.each;
        (free, free.saturating_duration_since(now + self.whole()))
    }
}

/// When the whole burst of each key is free again (the generic cell rate algorithm). Keys whose is free are not kept.
#[derive(Debug)]
pub(super) struct Paces<K>(Mutex<HashMap<K, Instant>>);

impl<K> Default for Paces<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Paces<K> {
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

    const SECOND: Duration = Duration::from_secs(1);
    const RATE: Rate = Rate { burst: 3, each: SECOND };

    #[tokio::test(start_paused = true)]
    async fn each_key_has_a_burst_and_then_a_rate() {
        let pace = Paces::default();
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
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_keys_are_remembered() {
        let pace = Paces::default();
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
