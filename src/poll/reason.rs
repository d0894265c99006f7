//! The next poll of a feed and its reason, in a compact form: every feed has one, and it is put into words only on
//! request.

use super::schedule::describe_duration;
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use tidegate_core::model::Time;
use tidegate_status::ScheduledPoll;

/// The next poll and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPoll {
    pub at: Time,
    pub reason: PollReason,
}

/// Why a poll is planned for its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollReason {
    /// A sentence for the operator.
    Said(Cow<'static, str>),
    /// The feed's polling interval.
    Interval {
        /// The interval in seconds.
        every: u32,
        because: IntervalReason,
        /// Whether `skipHours` or `skipDays` delayed the poll.
        is_put_off: bool,
    },
}

/// What determined an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IntervalReason {
    /// The publisher asks for this many seconds, by `ttl`, `sy:updatePeriod` or HTTP freshness.
    Ttl(u32),
    UpdatePeriod(u32),
    Freshness(u32),
    Shortest,
    Longest,
    /// The feed changes about every this many seconds.
    Pace(u32),
    /// During a longer interval more than half of the document would be replaced.
    Turnover,
    /// Changes are announced by a SUP document or a hub.
    BySup,
    ByHub,
}

/// Returns the duration in whole seconds, at most `u32::MAX`.
pub fn whole_seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

impl fmt::Display for PollReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (every, because, is_put_off) = match self {
            Self::Said(words) => return f.write_str(words),
            Self::Interval { every, because, is_put_off } => (*every, *because, *is_put_off),
        };
        let told = |seconds: u32| describe_duration(Duration::from_secs(u64::from(seconds)));
        let every = told(every);
        let asked = |seconds: u32, place: &str| {
            format!("the publisher asks for {} between polls ({place})", told(seconds))
        };
        f.write_str(&match because {
            IntervalReason::Ttl(seconds) => asked(seconds, "ttl"),
            IntervalReason::UpdatePeriod(seconds) => asked(seconds, "sy:updatePeriod"),
            IntervalReason::Freshness(seconds) => asked(seconds, "Cache-Control or Expires"),
            IntervalReason::Shortest => {
                format!("it changes often or is new: every {every}, the shortest interval")
            }
            IntervalReason::Longest => {
                format!("it changes seldom: every {every}, the longest interval")
            }
            IntervalReason::Pace(pace) => {
                format!("it takes about {} to change: every {every}", told(pace))
            }
            IntervalReason::Turnover => {
                format!("half of its document is replaced in about that time: every {every}")
            }
            IntervalReason::BySup => {
                format!("its SUP document tells of changes; polled every {every} all the same")
            }
            IntervalReason::ByHub => {
                format!("its hub tells of changes; polled every {every} all the same")
            }
        })?;
        if is_put_off { f.write_str("; put off by skipHours or skipDays") } else { Ok(()) }
    }
}

impl PlannedPoll {
    /// Plans a poll with a sentence as its reason.
    pub fn new(at: Time, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { at, reason: PollReason::Said(reason.into()) }
    }

    /// Puts the plan into words.
    pub fn describe(&self) -> ScheduledPoll {
        ScheduledPoll { at: self.at, reason: self.reason.to_string() }
    }
}
