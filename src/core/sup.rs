//! The Simple Update Protocol (SUP, draft of January 2009): announces which feeds have changed recently.
//!
//! Pure values for both sides. [`Windows`] derives a publisher's updates documents from the change log. [`read`] parses
//! those of others, and [`Follower`] decides for a consumer what is news and which document to read next. Store,
//! network and clock are elsewhere.

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

/// The default periods of a publisher's documents, in seconds.
pub const PERIODS: [u32; 5] = [60, 300, 600, 3600, 86_400];

/// The longest period, in seconds; the change log is retained for twice as long.
pub const PERIOD_LIMIT: u32 = 86_400;

/// The fixed part of [`slack`] (SUP section 3.4; READINGS 4, row 3).
const SLACK: Duration = Duration::from_secs(10);

/// How far gateways on one change log may be apart: the longest time from when one found or closed an epoch until
/// another can read it, by its own clock. It is twice the clock difference that causes a warning (4 seconds), plus the
/// 5 seconds for which a gateway answers without its database, plus a margin. A test of the store checks it against
/// both.
pub const GATEWAYS_APART: Duration = Duration::from_secs(20);

/// Returns how much longer than its period (in seconds) a document's interval is: ten seconds and a tenth of the
/// period. So a consumer that polls once a period still finds its last `updated_time` in the interval, despite a
/// slightly old document and a drifting timer.
pub const fn slack(period: u32) -> Duration {
    SLACK.saturating_add(Duration::from_secs(period as u64 / 10))
}

/// Returns how old `updated_time` may become without changes before a document is rendered again: a twentieth of the
/// period, between a second and a minute. This is well within the slack.
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
