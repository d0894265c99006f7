//! Detects silences of this gateway, when it was suspended or not known to live. Afterwards other gateways may have
//! polled its feeds, so that states remembered from before must not overwrite theirs.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// The longest time between two checks; a longer one means that the process was stopped or its machine slept.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// Detects silences: gaps between two checks of the scheduler.
pub struct SilenceWatch(Mutex<SilenceChecks>);

struct SilenceChecks {
    last: Instant,
    /// Other gateways may have polled the feeds of this one.
    is_outdated: bool,
    /// The number of silences dealt with.
    term: u64,
}

impl Default for SilenceWatch {
    fn default() -> Self {
        Self(Mutex::new(SilenceChecks { last: Instant::now(), is_outdated: false, term: 0 }))
    }
}

impl SilenceWatch {
    /// Records a check by the scheduler. Returns whether a silence still has to be dealt with.
    pub fn check(&self, now: Instant, may_begin: bool, has_others: impl FnOnce() -> bool) -> bool {
        let mut checks = self.0.lock();
        let silent_for = now.saturating_duration_since(std::mem::replace(&mut checks.last, now));
        let was_silent = !may_begin || silent_for > SILENT_AFTER;
        checks.is_outdated |= was_silent && has_others();
        checks.is_outdated
    }

    /// Ends a silence once outdated states are discarded.
    pub fn end_silence(&self) {
        let mut checks = self.0.lock();
        checks.is_outdated = false;
        checks.term += 1;
    }

    /// Returns the term during which states may be written: as long as the value stays the same. `None`: a silence is
    /// not dealt with yet, or will be found at the next check.
    pub fn term(&self) -> Option<u64> {
        let checks = self.0.lock();
        let is_followed = checks.last.elapsed() <= SILENT_AFTER;
        (is_followed && !checks.is_outdated).then_some(checks.term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_from_a_silence_until_it_is_dealt_with() {
        let watch = SilenceWatch::default();
        let check = |may_begin, has_others| watch.check(Instant::now(), may_begin, || has_others);
        advance(Duration::from_secs(5)).await;
        assert_eq!((watch.term(), check(true, true)), (Some(0), false));
        advance(Duration::from_secs(6)).await;
        assert_eq!(watch.term(), None, "the scheduler has not looked yet");
        assert_eq!((check(true, true), watch.term()), (true, None));
        watch.end_silence();
        assert_eq!((watch.term(), check(true, true)), (Some(1), false));
        // It is not known to live for a while.
        assert_eq!((check(false, true), watch.term()), (true, None));
        assert_eq!((check(true, true), watch.term()), (true, None));
        watch.end_silence();
        // No other gateway polls.
        advance(Duration::from_secs(60)).await;
        assert_eq!((watch.term(), check(true, false), watch.term()), (None, false, Some(2)));
    }
}
