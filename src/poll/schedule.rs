//! When a feed is polled next, and why. Pure.
//!
//! A feed is polled about [`POLLS_PER_CHANGE`] times in the time that it takes to change, and before
//! more than half of its document is replaced, within the operator's bounds; not more often than its publisher asks for; sooner where something that
//! is pending can be decided; and ever more seldom, but for ever, while it fails.

use super::reason::{IntervalReason, PlannedPoll, PollReason, whole_seconds};
use super::skip::allowed_from;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedOptions, Time, UpdateHints};
use tidegate_core::pause::GrowingPause;
use tidegate_net::fetch::Retry;
use xxhash_rust::xxh3::xxh3_64;

/// Makes the reason of an interval from the seconds that a publisher asks for.
type ReasonOfSeconds = fn(u32) -> IntervalReason;

/// How many polls there are to one change.
pub const POLLS_PER_CHANGE: u32 = 4;
/// The shortest interval that can be configured.
pub const FLOOR: Duration = Duration::from_secs(1);
/// The soonest poll to decide something that is pending.
pub const LOOK_AGAIN_FLOOR: Duration = Duration::from_secs(30);
/// The first pause for a publisher that is overloaded and does not say for how long.
pub const BUSY_PAUSE: Duration = Duration::from_secs(15 * 60);
/// A feed that was gone for good at every poll for so long is asked once in [`SELDOM_EVERY`] only. These
/// polls are as far apart as its longest interval, so that to count them tells how long it is.
pub const SELDOM_AFTER: Duration = Duration::from_secs(30 * 86_400);
/// See [`SELDOM_AFTER`].
pub const SELDOM_EVERY: Duration = Duration::from_secs(7 * 86_400);
/// How often it is looked at at least.
pub const SAFETY_EVERY: Duration = Duration::from_secs(6 * 3600);

/// Between which bounds a feed is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    min: Duration,
    max: Duration,
}

impl Bounds {
    /// Bounds; the upper one is raised to the lower one, and that to `FLOOR`.
    pub fn new(min: Duration, max: Duration) -> Self {
        let min = min.max(FLOOR);
        Self { min, max: max.max(min) }
    }

    /// The bounds of one feed.
    pub fn of(self, options: &FeedOptions) -> Self {
        let min = options.min_interval.unwrap_or(self.min);
        // A feed that is to be polled at least as often as every hour is so even where the
        // gateway's own lower bound is a day.
        let max = options.max_interval.unwrap_or(self.max);
        Self::new(if options.min_interval.is_none() { min.min(max) } else { min }, max)
    }

    /// The shortest interval.
    pub const fn min(self) -> Duration {
        self.min
    }

    /// The longest interval.
    pub const fn max(self) -> Duration {
        self.max
    }

    fn hold(self, interval: Duration) -> Duration {
        interval.clamp(self.min, self.max)
    }
}

/// The longest time between two changes that counts: a longer one says nothing more, and one that a leap of
/// the clock made is forgotten within some changes.
const GAP_LIMIT: Duration = Duration::from_secs(30 * 24 * 3600);

/// How often a feed was seen to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UpdateRate {
    last_change: Time,
    /// The usual time between two changes, recent ones counting most.
    gap: Option<Duration>,
}

impl UpdateRate {
    /// The rhythm of a feed that last changed at `time`: one that is new changes now.
    pub const fn since(time: Time) -> Self {
        Self { last_change: time, gap: None }
    }

    /// The rhythm that was written down ([`UpdateRate::parts`]); a time that has still to come is now.
    pub fn from_last_change(last_change: Time, gap: Option<Duration>, now: Time) -> Self {
        Self { last_change: last_change.min(now), gap }
    }

    /// The last change, and the usual time between two.
    pub const fn parts(self) -> (Time, Option<Duration>) {
        (self.last_change, self.gap)
    }

    /// The rate once the feed was seen to have changed.
    #[must_use]
    pub fn after_change(self, now: Time) -> Self {
        let latest = now.since(self.last_change).min(GAP_LIMIT);
        let gap = self.gap.map_or(latest, |gap| (gap.min(GAP_LIMIT) + latest) / 2);
        Self { last_change: now, gap: Some(gap) }
    }

    /// The usual time between changes, or the time that it has been quiet if that is longer.
    fn pace(self, now: Time) -> Duration {
        self.gap.unwrap_or_default().max(now.since(self.last_change))
    }
}

/// How the last poll went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LastResult {
    /// The feed was read; by then something that is pending can be decided, and who tells of what changes.
    Read(Option<Time>, Option<IntervalReason>),
    /// It was not: so many failures in a row, and what the last one asks for.
    Failed(u32, Retry),
    /// It is gone for good (410).
    Gone {
        /// Failures in a row.
        failures: u32,
        /// The last of them that said so.
        row: u32,
    },
}

/// What the schedule of a feed is made of.
#[derive(Debug, Clone, Copy)]
pub struct FeedSchedule<'a> {
    pub feed: &'a FeedName,
    pub bounds: Bounds,
    pub rhythm: UpdateRate,
    /// The usual time in which half of its document is replaced.
    pub half_life: Option<Duration>,
    /// What its document asks for.
    pub hints: &'a UpdateHints,
    /// How long the last answer stays fresh (`Cache-Control`, `Expires`).
    pub freshness: Option<Duration>,
}

impl FeedSchedule<'_> {
    /// The poll after one that was answered, or failed, at `now`.
    pub fn next(&self, after: LastResult, now: Time) -> PlannedPoll {
        match after {
            LastResult::Read(look_again, told_by) => self.after_reading(look_again, told_by, now),
            LastResult::Failed(failures, retry) => {
                self.after_failing(failures, retry, self.bounds.max, now)
            }
            LastResult::Gone { failures, row } => {
                let gone = self.bounds.max.saturating_mul(row);
                let seldom = if gone > SELDOM_AFTER { SELDOM_EVERY } else { Duration::ZERO };
                self.after_failing(failures, Retry::Seldom, self.bounds.max.max(seldom), now)
            }
        }
    }

    /// `told_by`: who tells of its changes.
    fn after_reading(
        &self,
        look_again: Option<Time>,
        told_by: Option<IntervalReason>,
        now: Time,
    ) -> PlannedPoll {
        let pace = self.rhythm.pace(now);
        let (steady, turnover) = (pace / POLLS_PER_CHANGE, self.turnover(now));
        let own = self.bounds.hold(steady.min(turnover));
        let wish = self.wish().map(|(wish, place)| (wish.min(self.bounds.max), wish, place));
        let (mut interval, mut because) = if let Some((asked, wish, place)) = wish
            && asked > own
        {
            (asked, place(whole_seconds(wish)))
        } else if own == self.bounds.min {
            (own, IntervalReason::Shortest)
        } else if own == self.bounds.max {
            (own, IntervalReason::Longest)
        } else if turnover < steady {
            (own, IntervalReason::Turnover)
        } else {
            (own, IntervalReason::Pace(whole_seconds(pace)))
        };
        if let Some(by) = told_by {
            let longer = interval.saturating_mul(4).min(SAFETY_EVERY);
            interval = self.bounds.hold(longer).max(interval);
            because = by;
        }
        let planned = now.plus(self.spread(interval).min(self.bounds.max));
        let at = allowed_from(planned, self.hints);
        let (every, is_put_off) = (whole_seconds(interval), at > planned);
        let reason = PollReason::Interval { every, because, is_put_off };
        let mut next = PlannedPoll { at, reason };
        if let Some(expires) = self.hints.expires.filter(|expires| *expires > now) {
            let rest = expires.since(now);
            // A tenth is left for a poll that fails or comes late.
            let wanted = now.plus((rest - rest / 10).max(self.bounds.min));
            if wanted < next.at {
                let reason = "the publisher asks to be read by then (sx:sharing/@expires)";
                next = PlannedPoll::new(wanted, reason);
            }
        }
        if let Some(look_again) = look_again {
            // What should have been decided by now and was not waits for an ordinary interval.
            let is_overdue = look_again <= now;
            let soonest = if is_overdue { Duration::MAX } else { LOOK_AGAIN_FLOOR };
            let wanted = before(look_again, now).max(now.plus(soonest.min(self.bounds.min)));
            if wanted < next.at {
                next = PlannedPoll::new(wanted, "something pending can be decided then");
            }
        }
        next
    }

    /// The longest interval in which no more than half of the document is replaced, as far as is known;
    /// a feed that is quiet for long is in no hurry.
    fn turnover(&self, now: Time) -> Duration {
        let quiet = now.since(self.rhythm.last_change) / POLLS_PER_CHANGE;
        self.half_life.map_or(Duration::MAX, |half_life| half_life.max(quiet))
    }

    /// The longest pause that the publisher asks for, and where.
    fn wish(&self) -> Option<(Duration, ReasonOfSeconds)> {
        let wishes: [(_, ReasonOfSeconds); 3] = [
            (self.hints.ttl, IntervalReason::Ttl),
            (self.hints.period, IntervalReason::UpdatePeriod),
            (self.freshness, IntervalReason::Freshness),
        ];
        let stated = wishes.into_iter().filter_map(|(wish, place)| Some((wish?, place)));
        stated.max_by_key(|(wish, _)| *wish)
    }

    /// `most`: the longest pause.
    fn after_failing(&self, failures: u32, retry: Retry, most: Duration, now: Time) -> PlannedPoll {
        let failures = failures.max(1);
        let doubled = |first: Duration| {
            let pause = GrowingPause::doubling(first, self.bounds.max.max(first));
            self.bounds.hold(pause.after(failures))
        };
        let (interval, why) = match retry {
            Retry::Backoff => (doubled(self.bounds.min), "the pause grows with each"),
            Retry::Busy => (doubled(self.bounds.min.max(BUSY_PAUSE)), "the publisher is busy"),
            Retry::After(wait) => (self.bounds.hold(wait), "the publisher said when (Retry-After)"),
            Retry::Seldom => (most, "it will hardly come back, so that it is asked seldom"),
        };
        // What the publisher said is not stretched, only never cut short.
        let interval = self.spread(interval).min(most);
        let times =
            if failures == 1 { "once".into() } else { format!("{failures} times in a row") };
        let again = describe_duration(interval);
        PlannedPoll::new(now.plus(interval), format!("it failed {times}; {why}: again in {again}"))
    }

    /// Stretches an interval by a share that is the feed's own, so that feeds do not fall into
    /// step, and the same whenever it is computed.
    fn spread(&self, interval: Duration) -> Duration {
        // At most a tenth of it.
        let share = phase(self.feed) % 101;
        let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX / 2);
        Duration::from_millis(millis.saturating_add(millis / 1000 * share))
    }
}

/// The interval that a running gateway would choose after a poll at `now` that read the feed: for
/// replay, where there is no network and nothing fails.
pub fn replay_interval(
    feed: &FeedName,
    bounds: Bounds,
    rhythm: UpdateRate,
    hints: &UpdateHints,
    look_again: Option<Time>,
    now: Time,
) -> Duration {
    let plan = FeedSchedule { feed, bounds, rhythm, half_life: None, hints, freshness: None };
    plan.next(LastResult::Read(look_again, None), now).at.since(now)
}

/// When to look next at what can be decided at `by`. What is far is looked at once more on half of the way: what
/// must be confirmed by several polls is then confirmed in time, however seldom a feed is polled.
fn before(by: Time, now: Time) -> Time {
    let rest = by.since(now);
    if rest > Duration::from_secs(12 * 3600) { now.plus(rest / 2) } else { by }
}

/// A number that belongs to a feed: its place in everything that is spread out.
pub fn phase(feed: &FeedName) -> u64 {
    xxh3_64(feed.as_str().as_bytes())
}

/// A duration as people say it, in its two greatest units.
pub fn describe_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    let mut left = seconds;
    let mut parts = Vec::new();
    for (unit, name) in units {
        if left >= unit && parts.len() < 2 {
            parts.push(format!("{} {name}", left / unit));
            left %= unit;
        } else if !parts.is_empty() {
            break;
        }
    }
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests;
