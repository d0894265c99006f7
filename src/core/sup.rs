//! The Simple Update Protocol (SUP, draft of January 2009): which feeds have changed lately.
//!
//! Both ends, as values: [`Windows`] makes the updates documents of a publisher out of the change
//! log, [`read`] reads those of others, and [`Follower`] decides for a consumer what a document has
//! told it and which one to ask for next. What is absent: the store, the network, the clock.

mod discover;
mod follower;
mod links;
mod read;
#[cfg(test)]
mod tests;
mod windows;

pub use discover::{RELATION, SupAnnouncement, in_header, in_link, in_links};
pub use follower::{Follower, FollowerStatus, News, SEEN_LIMIT};
pub use links::{HeaderLink, links};
pub use read::{ID_LIMIT, ReadError, SupDocument, UPDATES_LIMIT, UpdateMember, read, read_of};
pub use windows::{Closed, SupWindow, Windows};

use std::time::Duration;

/// The periods of a publisher's documents unless it is configured otherwise, in seconds.
pub const PERIODS: [u32; 5] = [60, 300, 600, 3600, 86_400];

/// The longest period, in seconds: the change log is kept for twice as long.
pub const PERIOD_LIMIT: u32 = 86_400;

/// What every document covers beyond its period (SUP section 3.4; READINGS 4, row 3).
const SLACK: Duration = Duration::from_secs(10);

/// How far apart gateways over one change log may be: how much earlier the time is at which one of them has found an
/// epoch, or closed it, than that at which another one, by its own clock, could read it. Twice the difference from which a
/// clock is warned of, which is 4 seconds, and the 5 for which a gateway answers while its database does not; and some to
/// spare. A test of the store holds it against both.
pub const GATEWAYS_APART: Duration = Duration::from_secs(20);

/// How much longer than `period` seconds the interval of a document is: ten seconds and a tenth of
/// the period. A consumer that polls once a period, with a document that is a little old and a timer
/// that drifts, still finds its last `updated_time` in the interval.
pub const fn slack(period: u32) -> Duration {
    SLACK.saturating_add(Duration::from_secs(period as u64 / 10))
}

/// How old `updated_time` may become while nothing changes before a document is made anew: a
/// twentieth of the period, a second at least and a minute at most. Within the slack, by far.
pub const fn step(period: u32) -> Duration {
    let step = period as u64 / 20;
    Duration::from_secs(if step < 1 {
        1
    } else if step > 60 {
        60
    } else {
        step
    })
}
