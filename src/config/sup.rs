//! `[sup]`: the documents that tell which feeds have changed.

use super::keys::{Preset::Value as Preset, section};
use super::kinds::list;
use super::section::Section;
use super::{duration, written};
use std::time::Duration;

/// The most periods.
const PERIODS_LIMIT: usize = 16;
/// The fewest: the validator of the protocol wants two.
const PERIODS_LEAST: usize = 2;
/// The longest period, in seconds; the change log is kept for twice as long.
const PERIOD_LIMIT: u32 = 86_400;
/// Periods, in words.
const PERIODS: &str = "a list of durations, like [\"60s\", \"5m\", \"24h\"]";

section! {
    /// The documents that tell which feeds have changed.
    pub struct SupConfig with KEYS {
        /// The periods of `/sup.json?seconds=N` in seconds, two or more, `"1s"` to `"24h"`.
        ///
        /// The documents tell consumers of many feeds which of them have changed. The period "60s" is
        /// what /sup.json alone answers.
        periods: Vec<u32> = list(PERIODS_LIMIT, PERIODS, period),
            Preset("[\"60s\", \"5m\", \"10m\", \"1h\", \"24h\"]"), at restart;
    }
}

fn period(text: &str) -> Result<u32, String> {
    let period = duration(text)?;
    let seconds = u32::try_from(period.as_secs()).unwrap_or(u32::MAX);
    if (1..=PERIOD_LIMIT).contains(&seconds) {
        return Ok(seconds);
    }
    let most = written(Duration::from_secs(u64::from(PERIOD_LIMIT)));
    Err(format!("{text:?} is out of bounds; write \"1s\" to {most:?}"))
}

/// Puts the shortest period first, and notes where there are too few.
pub(super) fn check(section: &mut Section<'_, '_, '_>, sup: &mut SupConfig) {
    if sup.periods.len() < PERIODS_LEAST {
        section.fault("periods", format!("write {PERIODS_LEAST} periods or more, {PERIODS}"));
    }
    sup.periods.sort_unstable();
}

#[cfg(test)]
mod tests {
    use crate::{Config, check};

    fn periods(text: &str) -> Result<Vec<u32>, String> {
        let checked = check("f", &format!("[sup]\n{text}"));
        checked.map(|checked| checked.config.sup.periods).map_err(|faults| faults.to_string())
    }

    #[test]
    fn periods_are_durations_shortest_first() {
        assert_eq!(periods("periods = [\"5m\", \"10s\", \"24h\"]"), Ok(vec![10, 300, 86_400]));
        assert_eq!(periods(""), Ok(Config::default().sup.periods));
    }

    #[test]
    fn wrong_periods_are_named() {
        for (bad, said) in [
            ("periods = 60", "number"),
            ("periods = []", "2 periods or more"),
            ("periods = [\"60s\"]", "2 periods or more"),
            ("periods = [\"60s\", \"1m\"]", "twice"),
            ("periods = [\"60s\", \"2d\"]", "out of bounds; write \"1s\" to"),
            ("periods = [\"60s\", \"0s\"]", "out of bounds"),
            ("periods = [\"60s\", \"often\"]", "often"),
            ("periods = [60, 300]", "has a number"),
            ("period = 1", "did you mean periods?"),
        ] {
            let error = periods(bad).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
