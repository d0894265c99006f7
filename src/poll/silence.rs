//! Silences of this gateway, where several poll: after one, others may have polled its feeds, so that what it remembers
//! from before must not be written down over what they have written.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// A gateway that did not look for longer was silent: it was stopped, or its machine slept.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// When the scheduler last looked, and what it has found.
pub struct SilenceWatch(Mutex<SchedulerLooks>);

struct SchedulerLooks {
    last: Instant,
    /// Others may have polled the feeds that are here.
    is_outdated: bool,
    /// How many silences are dealt with.
    term: u64,
}

impl Default for SilenceWatch {
    fn default() -> Self {
        Self(Mutex::new(SchedulerLooks { last: Instant::now(), is_outdated: false, term: 0 }))
    }
}

impl SilenceWatch {
    /// The scheduler looks. Answers whether there was a silence with which it has still to deal.
    pub fn look(&self, now: Instant, may_begin: bool, has_others: impl FnOnce() -> bool) -> bool {
        let mut looks = self.0.lock();
        let silent_for = now.saturating_duration_since(std::mem::replace(&mut looks.last, now));
        let was_silent = !may_begin || silent_for > SILENT_AFTER;
        looks.is_outdated |= was_silent && has_others();
        looks.is_outdated
    }

    /// What was known before the silence is known no longer.
    pub fn deal(&self) {
        let mut looks = self.0.lock();
        looks.is_outdated = false;
        looks.term += 1;
    }

    /// What is remembered may be written down for as long as this answers the same. `None`: the scheduler has a silence
    /// still to deal with, or will find one when it looks.
    pub fn term(&self) -> Option<u64> {
        let looks = self.0.lock();
        let is_followed = looks.last.elapsed() <= SILENT_AFTER;
        (is_followed && !looks.is_outdated).then_some(looks.term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_from_a_silence_until_it_is_dealt_with() {
        let watch = SilenceWatch::default();
        let look = |may_begin, has_others| watch.look(Instant::now(), may_begin, || has_others);
        advance(Duration::from_secs(5)).await;
        assert_eq!((watch.term(), look(true, true)), (Some(0), false));
        advance(Duration::from_secs(6)).await;
        assert_eq!(watch.term(), None, "the scheduler has not looked yet");
        assert_eq!((look(true, true), watch.term()), (true, None));
        watch.deal();
        assert_eq!((watch.term(), look(true, true)), (Some(1), false));
        // It is not known to live for a while.
        assert_eq!((look(false, true), watch.term()), (true, None));
        assert_eq!((look(true, true), watch.term()), (true, None));
        watch.deal();
        // Nobody else polls.
        advance(Duration::from_secs(60)).await;
        assert_eq!((watch.term(), look(true, false), watch.term()), (None, false, Some(2)));
    }
}
