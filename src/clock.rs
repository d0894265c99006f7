//! The one place that reads the clock. Everything else is told the time.

use crate::model::Time;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Tells the time.
pub trait Clock: Send + Sync + 'static {
    /// The time now, by the wall clock.
    fn now(&self) -> Time;
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
}

/// A clock that is set by hand: for tests and for replay.
#[derive(Debug, Clone, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that stands at `time`.
    pub fn at(time: Time) -> Self {
        Self(Arc::new(AtomicI64::new(time.unix())))
    }

    /// Sets the time, forward or back.
    pub fn set(&self, time: Time) {
        self.0.store(time.unix(), Ordering::Release);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_unix(self.0.load(Ordering::Acquire))
    }
}
