//! The one place that reads the clock. Everything else is told the time.

use crate::model::Time;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The time now, by the wall clock.
    fn now(&self) -> Time;

    /// How long it has run: it never leaps and never goes back, whatever the wall clock is set to.
    fn running(&self) -> Duration;
}

/// The system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> Time {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
        let seconds = since_epoch.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX));
        Time::from_unix(seconds)
    }

    #[allow(clippy::disallowed_methods)]
    fn running(&self) -> Duration {
        static BEGUN: OnceLock<std::time::Instant> = OnceLock::new();
        BEGUN.get_or_init(std::time::Instant::now).elapsed()
    }
}

/// The time by the wall clock, in nanoseconds since 1970.
#[allow(clippy::disallowed_methods)]
pub fn unix_nanos() -> u64 {
    let since_epoch =
        std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    since_epoch.map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// A clock that is set by hand: for tests and for replay.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<Hands>);

#[derive(Debug, Default)]
struct Hands {
    wall: AtomicI64,
    running: AtomicU64,
}

impl ManualClock {
    /// A clock that stands at `time`.
    pub fn at(time: Time) -> Self {
        Self(Arc::new(Hands { wall: AtomicI64::new(time.unix()), running: AtomicU64::new(0) }))
    }

    /// Sets the time, forward or back; forward, that much time has passed.
    pub fn set(&self, time: Time) {
        let before = Time::from_unix(self.0.wall.swap(time.unix(), Ordering::AcqRel));
        self.0.running.fetch_add(time.since(before).as_secs(), Ordering::AcqRel);
    }

    /// The wall clock is set to another time, and no time has passed.
    pub fn leap(&self, time: Time) {
        self.0.wall.store(time.unix(), Ordering::Release);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_unix(self.0.wall.load(Ordering::Acquire))
    }

    fn running(&self) -> Duration {
        Duration::from_secs(self.0.running.load(Ordering::Acquire))
    }
}

/// The time by which what is kept ages: that of another clock, but it never leaps with it and never goes
/// back.
///
/// While it is behind the wall clock it runs at most twice as fast as time, and half as fast while it is
/// ahead, so that both come together again. A restart adds [`RunningClock::GAP_LIMIT`] at most. So a
/// wall clock that leaps ages nothing at once, and what is late is late by a bounded time: a wall clock
/// that ran evenly for [`RunningClock::BELIEVED`] is right, and is taken over.
pub struct RunningClock {
    wall: Arc<dyn Clock>,
    state: Mutex<Running>,
    is_unhurried: bool,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    /// Milliseconds since 1970.
    at: i64,
    /// How long the other clock had run then.
    seen: Duration,
    /// By how many milliseconds the wall clock was ahead of how long it had run, and since when it is so.
    even: (i64, Duration),
}

impl RunningClock {
    /// The most that one gap between two runs adds, however long it was.
    pub const GAP_LIMIT: Duration = Duration::from_secs(2 * 3600);
    /// How long a wall clock must have run without a leap before it is believed.
    pub const BELIEVED: Duration = Duration::from_secs(7 * 86_400);
    /// What a wall clock is moved by at once that is no leap: it is kept right by small steps.
    const NO_LEAP: Duration = Duration::from_secs(60);

    /// Goes on from `last`, where it stood when the program ran last.
    pub fn since(wall: Arc<dyn Clock>, last: Option<Time>) -> Self {
        let now = wall.now();
        let at = last.map_or(now, |last| now.clamp(last, last.plus(Self::GAP_LIMIT)));
        let seen = wall.running();
        let even = (ahead(milliseconds(now), seen), seen);
        let state = Mutex::new(Running { at: milliseconds(at), seen, even });
        Self { wall, state, is_unhurried: false }
    }

    /// The same, but it is never faster than time: for what was promised to last.
    pub fn unhurried(wall: Arc<dyn Clock>, last: Option<Time>) -> Self {
        Self { is_unhurried: true, ..Self::since(wall, last) }
    }
}

impl Running {
    /// Whether the wall clock has run evenly for so long that it is right. `NO_LEAP` is allowed for in each
    /// look, not in all together.
    fn believes(&mut self, wall: i64, running: Duration) -> bool {
        let (before, since) = self.even;
        let now = ahead(wall, running);
        let leapt = u128::from(now.abs_diff(before)) > RunningClock::NO_LEAP.as_millis();
        self.even = (now, if leapt { running } else { since });
        running.saturating_sub(self.even.1) >= RunningClock::BELIEVED
    }
}

/// By how many milliseconds a wall clock is ahead of how long it has run.
fn ahead(wall: i64, running: Duration) -> i64 {
    wall.saturating_sub(i64::try_from(running.as_millis()).unwrap_or(i64::MAX))
}

fn milliseconds(time: Time) -> i64 {
    time.unix().saturating_mul(1000)
}

impl Clock for RunningClock {
    fn now(&self) -> Time {
        let (wall, running) = (milliseconds(self.wall.now()), self.wall.running());
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = running.saturating_sub(state.seen).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        let behind = state.at <= wall;
        let is_right = state.believes(wall, running);
        let step = match (behind, self.is_unhurried) {
            (true, false) if is_right => i64::MAX,
            (true, false) => passed.saturating_mul(2),
            (true, true) => passed,
            (false, _) => passed / 2,
        };
        // Less than a step is not lost.
        if step > 0 {
            state.seen = state.seen.max(running);
            let next = state.at.saturating_add(step);
            state.at = if behind { next.min(wall).max(state.at) } else { next };
        }
        Time::from_unix(state.at.div_euclid(1000))
    }

    fn running(&self) -> Duration {
        self.wall.running()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;
    const YEAR: u64 = 365 * 24 * HOUR;

    fn at(seconds: u64) -> Time {
        Time::from_unix(1_800_000_000).plus(Duration::from_secs(seconds))
    }

    fn clocks(last: Option<Time>) -> (ManualClock, RunningClock) {
        let wall = ManualClock::at(at(YEAR));
        let running = RunningClock::since(Arc::new(wall.clone()), last);
        (wall, running)
    }

    #[test]
    fn it_is_the_wall_clock_and_a_leap_ahead_ages_nothing_at_once() {
        let (wall, running) = clocks(None);
        for seconds in [0, 1, 2, 60, YEAR, 3 * YEAR] {
            wall.set(at(YEAR + seconds));
            assert_eq!(running.now(), at(YEAR + seconds));
        }
        let (wall, running) = clocks(None);
        wall.leap(at(2 * YEAR));
        assert_eq!(running.now(), at(YEAR));
        wall.set(at(2 * YEAR + HOUR));
        assert_eq!(running.now(), at(YEAR + 2 * HOUR), "twice as fast as time");
        // Put right again: it waits, but not for ever.
        wall.leap(at(YEAR + HOUR));
        assert_eq!(running.now(), at(YEAR + 2 * HOUR));
        wall.set(at(YEAR + 2 * HOUR));
        assert_eq!(running.now(), at(YEAR + 2 * HOUR), "both are together again");
        wall.set(at(YEAR + 10 * HOUR));
        assert_eq!(running.now(), at(YEAR + 10 * HOUR));
    }

    #[test]
    fn a_leap_back_makes_nothing_younger_and_time_goes_on() {
        let (wall, running) = clocks(None);
        wall.leap(at(0));
        assert_eq!(running.now(), at(YEAR));
        for hours in 1..=10 {
            wall.set(at(hours * HOUR));
            assert_eq!(running.now(), at(YEAR + hours * HOUR / 2));
        }
    }

    /// A machine without a clock of its own starts in 1970, and is told the time a minute later.
    #[test]
    fn a_clock_that_was_put_right_is_caught_up_with() {
        let wall = ManualClock::at(Time::from_unix(0));
        let running = RunningClock::since(Arc::new(wall.clone()), None);
        wall.set(Time::from_unix(60));
        assert_eq!(running.now(), Time::from_unix(60));
        wall.leap(at(0));
        for hour in 1..=8 * 24 {
            wall.set(at(hour * HOUR));
            let now = running.now();
            assert_eq!(now == at(hour * HOUR), hour > 7 * 24, "after {hour} hours: {now}");
        }
        // It is caught up with once, and the next leap is one again.
        wall.leap(at(YEAR));
        wall.set(at(YEAR + HOUR));
        assert_eq!(running.now(), at(8 * 24 * HOUR + 2 * HOUR));
    }

    #[test]
    fn a_promise_holds_after_a_stop() {
        const DAY: u64 = 24 * HOUR;
        let wall = ManualClock::at(at(YEAR));
        let unhurried = RunningClock::unhurried(Arc::new(wall.clone()), Some(at(YEAR - 10 * DAY)));
        let begun = unhurried.now();
        for hour in 1..=20 * 24 {
            wall.set(at(YEAR + hour * HOUR));
            assert!(unhurried.now().since(begun) <= Duration::from_secs(hour * HOUR));
        }
        assert!(unhurried.now().since(begun) >= Duration::from_secs(20 * DAY));
    }

    #[test]
    fn a_restart_adds_a_bounded_time_and_takes_none_away() {
        let gap = RunningClock::GAP_LIMIT;
        for (last, now) in
            [(at(YEAR - 60), at(YEAR)), (at(0), at(0).plus(gap)), (at(YEAR + 60), at(YEAR + 60))]
        {
            assert_eq!(clocks(Some(last)).1.now(), now);
        }
    }
}
