//! Whether this machine's clock agrees with the database's, which all gateways have in common.

use crate::condition::CLOCK_LIMIT;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tidegate_core::clock::unix_nanos;

/// The difference up to which a warning is over, and the longest round trip that says anything of clocks.
const AGREEMENT_LIMIT: i64 = 1_000;

/// The time by this machine's clock, in milliseconds since 1970.
pub(super) fn unix_millis() -> i64 {
    i64::try_from(unix_nanos() / 1_000_000).unwrap_or(i64::MAX)
}

/// What the last comparison of the clocks says.
#[derive(Default)]
pub(super) struct ClockComparison {
    /// By how many milliseconds this machine's clock is ahead, at least; below 0: it is behind.
    ahead: AtomicI64,
    is_warned: AtomicBool,
}

impl ClockComparison {
    /// By how many milliseconds this machine's clock is ahead of the database's, at least; below 0: it is behind.
    pub(super) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Compares the clocks: the database's said `database` after this machine's had said `asked`, in milliseconds.
    pub(super) fn compare(&self, asked: i64, database: i64) {
        match self.note(asked, database, unix_millis()) {
            Some(true) => tracing::warn!(
                milliseconds = self.ahead(),
                "this machine's clock is ahead of the database's, or behind it where that is below 0; give the \
                 machines of all gateways the same time (NTP)"
            ),
            Some(false) => tracing::info!("the clock of this machine agrees with the database's"),
            None => {}
        }
    }

    /// Notes what the database's clock said between two times of this machine's; whether the clocks differ, where that
    /// is to be told. The difference is known up to the round trip: the smallest that there may be counts.
    fn note(&self, asked: i64, database: i64, answered: i64) -> Option<bool> {
        let round_trip = answered.saturating_sub(asked);
        if !(0..=AGREEMENT_LIMIT).contains(&round_trip) {
            return None;
        }
        let ahead = asked.saturating_sub(database).max(0);
        let behind = database.saturating_sub(answered).max(0);
        let difference = ahead.saturating_sub(behind);
        self.ahead.store(difference, Ordering::Relaxed);
        if difference.unsigned_abs() > CLOCK_LIMIT {
            (!self.is_warned.swap(true, Ordering::Relaxed)).then_some(true)
        } else if difference.abs() <= AGREEMENT_LIMIT {
            self.is_warned.swap(false, Ordering::Relaxed).then_some(false)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::{KEPT_PART, LEASE};
    use super::*;
    use std::time::Duration;

    /// SUP documents reach back over two clocks of which none is warned of, and over how long the gateway that writes
    /// answers without an answer of its database.
    #[test]
    fn what_gateways_are_apart_without_a_warning_is_less_than_sup_documents_allow_for() {
        let apart = Duration::from_millis(2 * CLOCK_LIMIT) + LEASE.mul_f64(KEPT_PART);
        assert!(apart < tidegate_core::sup::GATEWAYS_APART, "{apart:?}");
    }

    #[test]
    fn a_difference_is_told_once_and_once_when_it_is_over() {
        let clocks = ClockComparison::default();
        for (database, answered, ahead, told) in [
            // Within the round trip nothing is known.
            (100_000, 100_400, 0, None),
            (100_200, 100_400, 0, None),
            (102_400, 100_400, -2_000, None),
            (102_401, 100_400, -2_001, Some(true)),
            (109_000, 100_400, -8_600, None),
            (98_500, 100_400, 1_500, None),
            (97_000, 100_400, 3_000, None),
            // The process was paused, or its clock was set in between.
            (100_000, 109_000, 3_000, None),
            (100_000, 90_000, 3_000, None),
            (99_000, 100_400, 1_000, Some(false)),
            (99_500, 100_400, 500, None),
            (90_000, 100_400, 10_000, Some(true)),
        ] {
            assert_eq!(clocks.note(100_000, database, answered), told, "{database} {answered}");
            assert_eq!(clocks.ahead(), ahead, "{database} {answered}");
        }
    }
}
