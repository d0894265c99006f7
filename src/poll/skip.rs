//! RSS `skipHours` and `skipDays`. Pure.

use tidegate_core::model::{Time, UpdateHints};

const HOUR: i64 = 3600;
const DAY: i64 = 86_400;

/// Returns the first time from `at` on that no skip rule covers. If all times are covered, returns `at`: a feed that
/// may never be read cannot be intended.
pub fn allowed_from(at: Time, hints: &UpdateHints) -> Time {
    if hints.skip_hours.is_empty() && hints.skip_days.is_empty() {
        return at;
    }
    let start = at.unix().div_euclid(HOUR);
    // The rules repeat every week.
    for hour in start..=start + 7 * 24 {
        if !covered(hour, hints) {
            return at.max(Time::from_unix(hour.saturating_mul(HOUR)));
        }
    }
    at
}

/// Whether a rule covers this hour, counted from 1970.
fn covered(hour: i64, hints: &UpdateHints) -> bool {
    let of_day = hour.rem_euclid(DAY / HOUR);
    // 1970-01-01 was a Thursday, day 3 of a week that begins on Monday.
    let of_week = (hour.div_euclid(DAY / HOUR) + 3).rem_euclid(7);
    hints.skip_hours.iter().any(|skipped| i64::from(*skipped) == of_day)
        || hints.skip_days.iter().any(|skipped| i64::from(*skipped) == of_week)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    fn from(at: &str, hours: &[u8], days: &[u8]) -> String {
        let (skip_hours, skip_days) = (hours.to_vec(), days.to_vec());
        let hints = UpdateHints { skip_hours, skip_days, ..UpdateHints::default() };
        allowed_from(Time::parse_rfc3339(at).unwrap(), &hints).to_string()
    }

    #[test]
    fn the_first_allowed_time_is_found() {
        // 20 November 2026 is a Friday.
        let friday = "2026-11-20T16:20:05Z";
        let all: Vec<u8> = (0..24).collect();
        assert_eq!(from(friday, &[], &[]), friday);
        assert_eq!(from(friday, &[15, 17], &[]), friday);
        assert_eq!(from(friday, &[16], &[]), "2026-11-20T17:00:00Z");
        assert_eq!(from(friday, &[16, 17, 18], &[]), "2026-11-20T19:00:00Z");
        assert_eq!(from(friday, &[], &[4]), "2026-11-21T00:00:00Z");
        assert_eq!(from(friday, &[0], &[4, 5, 6]), "2026-11-23T01:00:00Z");
        assert_eq!(from(friday, &all[..23], &[]), "2026-11-20T23:00:00Z");
        assert_eq!(from(friday, &all, &[]), friday);
        assert_eq!(from(friday, &[], &[0, 1, 2, 3, 4, 5, 6]), friday);
    }

    proptest! {
        #[test]
        fn never_earlier_and_never_more_than_a_week_later(
            at in 0i64..4_000_000_000,
            skip_hours in proptest::collection::vec(0u8..30, 0..30),
            skip_days in proptest::collection::vec(0u8..9, 0..9),
        ) {
            let at = Time::from_unix(at);
            let hints = UpdateHints { skip_hours, skip_days, ..UpdateHints::default() };
            let found = allowed_from(at, &hints);
            prop_assert!(found >= at && found.since(at) <= Duration::from_secs(7 * 86_400));
            prop_assert_eq!(allowed_from(found, &hints), found);
        }
    }
}
