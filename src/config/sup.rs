//! `[sup]`: the documents that tell which feeds have changed.

use super::section::Section;
use super::{duration, written};
use std::time::Duration;

pub(super) const KEYS: &[&str] = &["periods"];

/// The most periods.
const PERIODS_LIMIT: usize = 16;
/// The fewest: the validator of the protocol wants two.
const PERIODS_LEAST: usize = 2;
/// The longest period, in seconds; the change log is kept for twice as long.
const PERIOD_LIMIT: u32 = 86_400;

/// The documents that tell which feeds have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupConfig {
    /// Their periods, in seconds, shortest first.
    pub periods: Vec<u32>,
}

impl Default for SupConfig {
    fn default() -> Self {
        Self { periods: vec![60, 300, 600, 3600, PERIOD_LIMIT] }
    }
}

pub(super) fn read(section: &mut Section<'_, '_, '_>) -> SupConfig {
    const KEY: &str = "periods";
    const WANTED: &str = "a list of durations, like [\"60s\", \"5m\", \"24h\"]";
    let Some(texts) = section.list(KEY, PERIODS_LIMIT, WANTED) else { return SupConfig::default() };
    let mut periods = Vec::new();
    for (span, text) in texts {
        let seconds = match duration(text) {
            Ok(duration) => u32::try_from(duration.as_secs()).unwrap_or(u32::MAX),
            Err(error) => {
                section.fault_at(&span, KEY, error.to_string());
                continue;
            }
        };
        if !(1..=PERIOD_LIMIT).contains(&seconds) {
            let most = written(Duration::from_secs(u64::from(PERIOD_LIMIT)));
            let message = format!("{text:?} is out of bounds; write \"1s\" to {most:?}");
            section.fault_at(&span, KEY, message);
        } else if periods.contains(&seconds) {
            section.fault_at(&span, KEY, format!("{text:?} stands here twice"));
        } else {
            periods.push(seconds);
        }
    }
    if periods.len() < PERIODS_LEAST {
        section.fault(KEY, format!("write {PERIODS_LEAST} periods or more, {WANTED}"));
    }
    periods.sort_unstable();
    SupConfig { periods }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, check};

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
