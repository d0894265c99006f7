//! When a feed is polled next after a restart. Pure.
//!
//! Due times follow from the last poll that was written down and from the intervals since, so that
//! a poll that finds nothing new needs not be written: what asks for the intervals is, when it
//! changes. What has strayed from that is written together with others, now and then and when
//! polling stops.

use super::reason::PlannedPoll;
use super::schedule::{Bounds, FeedSchedule, LastResult, SELDOM_EVERY, UpdateRate, phase};
use super::skip::allowed_from;
use std::time::Duration;
use tidegate_core::model::{FeedName, PollSchedule, Time};

/// How often it is looked at which schedules have strayed from what is written down of them.
pub const NOTE_EVERY: Duration = Duration::from_secs(3600);
/// How many polls since the one that was written down are followed; beyond them, the feed has a
/// place of its own within its interval.
const MAX_STEPS: usize = 64;
/// Of its interval, the part by which a schedule may stray before it is written down anew.
const STRAY_PART: u32 = 10;
/// Straying by less than this is never written down.
const STRAY_LEAST: Duration = Duration::from_secs(60);

/// Until when a feed was polled for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolledUntil {
    /// What had strayed was written down then.
    Noted(Time),
    /// A gateway polled it then, which may have ended before it wrote down what had strayed.
    Seen(Time),
}

/// What is written down of a feed's schedule, and what else its next poll depends on.
#[derive(Debug, Clone, Copy)]
pub struct Saved<'a> {
    pub feed: &'a FeedName,
    pub bounds: Bounds,
    /// What is written down.
    pub schedule: &'a PollSchedule,
    /// When something that is pending can be decided.
    pub pending: Option<Time>,
    /// The usual time in which half of its document is replaced.
    pub half_life: Option<Duration>,
}

impl Saved<'_> {
    /// The next poll: what was due while the feed was polled was polled then.
    pub fn next(&self, polled: PolledUntil, now: Time) -> PlannedPoll {
        let mut next = match &self.schedule.retry {
            Some((at, reason)) => PlannedPoll::new(*at, reason.clone()),
            None => self.follow(polled, now).0,
        };
        // A clock that was wrong when this was written must not stop the feed.
        let failing = self.schedule.retry.is_some();
        let most = if failing { self.bounds.max().max(SELDOM_EVERY) } else { self.bounds.max() };
        let latest = now.plus(most);
        if next.at > latest {
            next.at = allowed_from(latest, &self.schedule.hints).min(next.at);
        }
        next
    }

    /// Whether this leads to quite another time than `due`, which follows from `current`.
    pub fn strays(&self, current: &PollSchedule, due: Time, now: Time) -> bool {
        let (found, wanted, interval) = match (&self.schedule.retry, &current.retry) {
            (Some((before, _)), Some((after, _))) => (*before, *after, Duration::ZERO),
            (None, None) => {
                let (next, interval) = self.follow(PolledUntil::Noted(now), now);
                (next.at, due, interval)
            }
            _ => return true,
        };
        let strays = found.since(wanted).max(wanted.since(found));
        strays > may_stray(interval)
    }

    /// The first poll that may not have been made, and the interval that led to it.
    fn follow(&self, polled: PolledUntil, now: Time) -> (PlannedPoll, Duration) {
        let (PolledUntil::Noted(alive) | PolledUntil::Seen(alive)) = polled;
        let alive = alive.min(now);
        let schedule = self.schedule;
        let plan = FeedSchedule {
            feed: self.feed,
            bounds: self.bounds,
            rhythm: UpdateRate::from_last_change(schedule.last_change, schedule.gap, now),
            half_life: self.half_life,
            hints: &schedule.hints,
            freshness: schedule.freshness,
        };
        let mut last = schedule.polled.min(now);
        let mut next = plan.next(LastResult::Read(self.pending), last);
        for _ in 0..MAX_STEPS {
            let interval = next.at.since(last);
            let late = match polled {
                PolledUntil::Noted(_) => Duration::ZERO,
                PolledUntil::Seen(_) => may_stray(interval),
            };
            if next.at.plus(late) > alive {
                return (next, interval);
            }
            last = next.at;
            next = plan.next(LastResult::Read(self.pending), last);
        }
        let interval = next.at.since(last);
        let place = Duration::from_secs(phase(self.feed) % interval.as_secs().max(1));
        next.at = allowed_from(alive.plus(place), &schedule.hints);
        (next, interval)
    }
}

/// By how much a schedule of this interval may stray before it is written down anew.
fn may_stray(interval: Duration) -> Duration {
    (interval / STRAY_PART).max(STRAY_LEAST)
}

/// Whether two schedules ask for the same intervals. How long an answer stays fresh often differs a
/// little with each one.
pub fn same_in_substance(old: Option<&PollSchedule>, new: Option<&PollSchedule>) -> bool {
    let size = |time: Option<Duration>| time.and_then(|time| time.as_secs().checked_ilog2());
    match (old, new) {
        (Some(old), Some(new)) => {
            old.hints == new.hints
                && size(old.freshness) == size(new.freshness)
                && (old.last_change, old.gap) == (new.last_change, new.gap)
        }
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
