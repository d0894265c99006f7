//! Delays over a while → how much is left for later. Pure.

use super::{Deferrable, TICK, WINDOW};
use std::collections::VecDeque;
use std::time::Duration;

/// The delay of a wake-up at which the first kind is left.
const WAKE_LATE: Duration = Duration::from_millis(50);
/// The same of a commit.
const COMMIT_LATE: Duration = Duration::from_secs(1);
/// How many times that delay each kind is left at; what clients and feeds wait for comes late.
const STEPS: [u32; Deferrable::ALL.len()] = [1, 2, 8, 16, 32];
/// A kind is taken up again below this part of the delay at which it was left: one in so many.
const RELIEF: u32 = 2;
/// Of so many looks commits must tell, so that a single one, which may have been large, says nothing.
const LEAST_TOLD: usize = 4;
/// How many looks the window has.
const LOOKS: usize = (WINDOW.as_millis() / TICK.as_millis()) as usize;

/// What was seen in the last window, and what is left for later because of it.
#[derive(Debug, Default)]
pub(super) struct LoadMeter {
    late: VecDeque<Duration>,
    commits: VecDeque<Option<Duration>>,
    level: u8,
}

impl LoadMeter {
    /// Takes in a look: how late it came, and the shortest commit since the last one. How many of
    /// [`Deferrable::ALL`] are left for later from now on.
    pub(super) fn add(&mut self, late: Duration, commit: Option<Duration>) -> u8 {
        self.late.push_front(late);
        self.commits.push_front(commit);
        self.late.truncate(LOOKS);
        self.commits.truncate(LOOKS);
        if self.late.len() < LOOKS {
            return self.level;
        }
        let wake = self.late.iter().min().copied().unwrap_or_default();
        let told: Vec<Duration> = self.commits.iter().copied().flatten().collect();
        let is_told = told.len() >= LEAST_TOLD;
        let commit = told.into_iter().min().filter(|_| is_told).unwrap_or_default();
        let reached = level(wake, WAKE_LATE).max(level(commit, COMMIT_LATE));
        let kept = level(wake * RELIEF, WAKE_LATE).max(level(commit * RELIEF, COMMIT_LATE));
        // What was left is taken up again one kind at a time.
        self.level = reached.max(self.level.saturating_sub(1)).max(kept.min(self.level));
        self.level
    }
}

/// How many kinds a delay has left, where `first` has the first one left.
fn level(delay: Duration, first: Duration) -> u8 {
    let steps = STEPS.into_iter().take_while(|step| delay >= first * *step);
    u8::try_from(steps.count()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(meter: &mut LoadMeter, looks: usize, late: u64, commit: Option<u64>) -> u8 {
        let (late, commit) = (Duration::from_millis(late), commit.map(Duration::from_millis));
        (0..looks).map(|_| meter.add(late, commit)).last().unwrap()
    }

    #[test]
    fn each_kind_is_left_at_its_delay() {
        for (late, expected) in [
            (0, 0),
            (49, 0),
            (50, 1),
            (99, 1),
            (100, 2),
            (399, 2),
            (400, 3),
            (800, 4),
            (1_600, 5),
            (60_000, 5),
        ] {
            assert_eq!(after(&mut LoadMeter::default(), LOOKS, late, None), expected, "{late} ms");
            let slow = late * 20;
            let found = after(&mut LoadMeter::default(), LOOKS, 0, Some(slow));
            assert_eq!(found, expected, "a commit of {slow} ms");
        }
    }

    #[test]
    fn a_burst_is_no_load() {
        let mut meter = LoadMeter::default();
        assert_eq!(after(&mut meter, LOOKS - 1, 5_000, None), 0);
        assert_eq!(after(&mut meter, 1, 0, None), 0);
        assert_eq!(after(&mut meter, LOOKS - 1, 5_000, None), 0);
        assert_eq!(after(&mut meter, 1, 5_000, None), 5);
        // One large commit among looks without any.
        let mut meter = LoadMeter::default();
        after(&mut meter, LOOKS, 0, None);
        assert_eq!(after(&mut meter, 1, 0, Some(60_000)), 0);
        assert_eq!(after(&mut meter, LOOKS, 0, None), 0);
    }

    #[test]
    fn what_was_left_is_taken_up_again_one_kind_at_a_time_and_not_at_once() {
        let mut meter = LoadMeter::default();
        assert_eq!(after(&mut meter, LOOKS, 400, None), 3);
        // Somewhat less is no relief yet.
        assert_eq!(after(&mut meter, 3 * LOOKS, 210, None), 3);
        assert_eq!(after(&mut meter, 3 * LOOKS, 190, None), 2);
        assert_eq!([1, 1, 1].map(|looks| after(&mut meter, looks, 0, None)), [1, 0, 0]);
    }
}
