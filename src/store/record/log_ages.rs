//! How old the change log is, on disk.

use crate::{Epoch, LOG_AGE};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far apart two notes are at least, in seconds.
const APART: u64 = 1800;

/// Which epochs were closed when the store had been open for how long. The epochs themselves have the time
/// of the wall clock, which leaps, and the running time by which content ages may run ahead of time:
/// whoever follows the log counts on its age.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct LogAges {
    /// For how many seconds the store was open in all, as far as that was noted.
    open: u64,
    /// The newest epoch at such a time; oldest first. As many as [`LOG_AGE`] has half hours, and a few.
    newest: Vec<(u64, u64)>,
}

impl LogAges {
    /// Notes that the store was open for `passed` since the last note, and that `epoch` is the newest.
    pub(crate) fn note(&mut self, passed: Duration, epoch: Epoch) {
        self.open = self.open.saturating_add(passed.as_secs());
        let last = self.newest.last();
        let is_soon = |(at, noted): &(u64, u64)| self.open < at + APART || epoch.0 <= *noted;
        if last.is_some_and(is_soon) {
            return;
        }
        self.newest.push((self.open, epoch.0));
        // Of those that are old enough to go by, the newest says it all.
        let until = self.open.saturating_sub(LOG_AGE.as_secs());
        let old = self.newest.partition_point(|(at, _)| *at <= until);
        self.newest.drain(..old.saturating_sub(1));
    }

    /// The newest epoch that is at least so old, as far as that was noted.
    pub(crate) fn older_than(&self, age: Duration) -> Option<Epoch> {
        let until = self.open.checked_sub(age.as_secs())?;
        let old = self.newest.partition_point(|(at, _)| *at <= until);
        let (_, epoch) = self.newest.get(old.checked_sub(1)?)?;
        Some(Epoch(*epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_for_as_long_as_the_log_is_kept() {
        let hour = Duration::from_secs(3600);
        let mut ages = LogAges::default();
        assert_eq!(ages.older_than(Duration::ZERO), None);
        for hours in 1..500 {
            ages.note(hour, Epoch(10 * hours + 1));
            // A restart: no time has passed, whatever clocks say.
            ages.note(Duration::ZERO, Epoch(10 * hours + 2));
            let age = LOG_AGE.as_secs() / 3600;
            let then = hours.checked_sub(age).filter(|then| *then > 0);
            let expected = then.map(|then| Epoch(10 * then + 1));
            assert_eq!(ages.older_than(LOG_AGE), expected, "after {hours} hours");
        }
        assert!(ages.newest.len() < 60, "{} are kept", ages.newest.len());
        let before = ages.newest.clone();
        ages.note(hour, Epoch(3));
        assert_eq!(ages.newest, before, "epochs do not go back");
    }
}
