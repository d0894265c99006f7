//! A clock that goes on while the machine is suspended.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The time since the machine was started.
pub fn since_boot() -> Duration {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(now.tv_nsec).unwrap_or(0))
}
