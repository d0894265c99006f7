//! What is missing of a feed's past after its store was brought back from a copy.

use super::Time;
use serde::{Deserialize, Serialize};

/// A stretch of time of which a feed knows nothing: what it made then is known to others at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gap {
    /// The last moment that the copy knows.
    pub since: Time,
    /// When the store was brought back.
    pub until: Time,
}

/// The most updates of an item that are thought to be lost: more would be a leap to others.
const LOST_LIMIT: u32 = 16_384;
const DAY: u64 = 24 * 3600;

impl Gap {
    /// This one, and what was missing before the copy was made.
    #[must_use]
    pub fn after(self, earlier: Option<Self>) -> Self {
        let since = earlier.map_or(self.since, |earlier| earlier.since.min(self.since));
        Self { since, ..self }
    }

    /// Whether a moment lies in it.
    pub fn has(&self, when: Time) -> bool {
        self.since <= when && when <= self.until
    }

    /// Its whole seconds. An item was updated here no more often than that: each update has a tick of
    /// its own, and each tick a second.
    pub fn seconds(&self) -> u64 {
        u64::try_from(self.until.unix().saturating_sub(self.since.unix())).unwrap_or_default()
    }

    /// How often an item can have been updated in it, however many updates a day are allowed.
    pub fn most_updates(&self) -> u32 {
        u32::try_from(self.seconds()).unwrap_or(u32::MAX).min(LOST_LIMIT)
    }

    /// How often an item may have been updated in it, where `per_day` are made in a day.
    pub fn updates(&self, per_day: u32) -> u32 {
        let days = self.seconds() / DAY + 2;
        let lost = days.saturating_mul(u64::from(per_day));
        u32::try_from(lost).unwrap_or(u32::MAX).min(LOST_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_lost_is_bounded_by_time() {
        let gap =
            |since, until| Gap { since: Time::from_unix(since), until: Time::from_unix(until) };
        let day = gap(1000, 1000 + 86_400);
        assert_eq!((day.seconds(), day.updates(24)), (86_400, 72));
        assert_eq!(gap(0, 86_400 * 36_500).updates(24), LOST_LIMIT);
        let back = gap(500, 100);
        assert_eq!((back.seconds(), back.updates(1)), (0, 2));
        assert!(day.has(Time::from_unix(1000)) && !day.has(Time::from_unix(999)));
        assert_eq!(day.after(Some(gap(10, 20))), gap(10, 1000 + 86_400));
        assert_eq!(day.after(None), day);
    }
}
