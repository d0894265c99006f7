//! Computes when a feed is polled next, and why. Pure.
//!
//! A feed is polled about [`POLLS_PER_CHANGE`] times per change, and before more than half of its document is replaced,
//! within the operator's bounds. It is polled less often if its publisher asks for that, and sooner if a pending
//! decision is due. A failing feed is polled ever less often, but never given up.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedOptions, Overlap, Time, UpdateHints};
use tidegate_core::pause::GrowingPause;
use tidegate_net::fetch::Retry;
use xxhash_rust::xxh3::xxh3_64;

/// Builds the reason of an interval from the seconds that a publisher asks for.
type ReasonOfSeconds = fn(u32) -> IntervalReason;

/// How many polls there are per change of a feed.
pub const POLLS_PER_CHANGE: u32 = 4;
/// The shortest interval that can be configured.
pub const FLOOR: Duration = Duration::from_secs(1);
/// The shortest pause before a poll for a pending decision.
pub const MIN_DECISION_PAUSE: Duration = Duration::from_secs(30);
/// The first pause for a publisher that is overloaded and names no time.
pub const BUSY_PAUSE: Duration = Duration::from_secs(15 * 60);
/// After being gone (410) for this long, a feed is polled only once per [`SELDOM_EVERY`]. Such polls are one longest
/// interval apart, so that their count tells the time.
pub const SELDOM_AFTER: Duration = Duration::from_secs(30 * 86_400);
/// See [`SELDOM_AFTER`].
pub const SELDOM_EVERY: Duration = Duration::from_secs(7 * 86_400);
/// The longest interval of a feed whose changes are announced by a hub or a SUP document.
pub const SAFETY_EVERY: Duration = Duration::from_secs(6 * 3600);
/// For this long after items may have been missed, a feed is polled as often when it is quiet: it may be busy by day
/// and quiet by night.
const MISSED_LATELY: Duration = Duration::from_secs(7 * 86_400);

/// The shortest and longest interval of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bounds {
    min: Duration,
    max: Duration,
}

impl Bounds {
    /// Creates bounds: `min` is raised to `FLOOR`, `max` to `min`.
    pub fn new(min: Duration, max: Duration) -> Self {
        let min = min.max(FLOOR);
        Self { min, max: max.max(min) }
    }

    /// Returns the bounds of a feed with these options.
    pub fn of(self, options: &FeedOptions) -> Self {
        let min = options.min_interval.unwrap_or(self.min);
        // The longest interval of a feed's options takes precedence over the gateway's shortest one.
        let max = options.max_interval.unwrap_or(self.max);
        Self::new(if options.min_interval.is_none() { min.min(max) } else { min }, max)
    }

    pub const fn min(self) -> Duration {
        self.min
    }

    pub const fn max(self) -> Duration {
        self.max
    }

    fn clamp(self, interval: Duration) -> Duration {
        interval.clamp(self.min, self.max)
    }
}

/// The longest gap between two changes that counts. Longer ones say nothing more, and a gap due to a clock jump is
/// forgotten after a few changes.
const GAP_LIMIT: Duration = Duration::from_secs(30 * 24 * 3600);

/// How often a feed changes, as observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UpdateRate {
    pub last_change: Time,
    /// The usual time between two changes; recent gaps weigh most.
    pub gap: Option<Duration>,
}

impl UpdateRate {
    /// Creates the rate of a feed that last changed at `time`; for a new feed, now.
    pub const fn since(time: Time) -> Self {
        Self { last_change: time, gap: None }
    }

    /// Returns the rate after an observed change at `now`.
    #[must_use]
    pub fn after_change(self, now: Time) -> Self {
        let latest = now.since(self.last_change).min(GAP_LIMIT);
        let gap = self.gap.map_or(latest, |gap| (gap.min(GAP_LIMIT) + latest) / 2);
        Self { last_change: now, gap: Some(gap) }
    }
}

/// The basis for computing a feed's next poll.
#[derive(Debug, Clone, Copy)]
pub struct FeedSchedule<'a> {
    pub feed: &'a FeedName,
    pub bounds: Bounds,
    pub rate: UpdateRate,
    /// How its documents overlap.
    pub overlap: Overlap,
    /// The update hints of its document.
    pub hints: &'a UpdateHints,
    /// How long the last answer is fresh (`Cache-Control`, `Expires`).
    pub freshness: Option<Duration>,
}

impl FeedSchedule<'_> {
    /// Computes the poll after one that was answered at `now`. `decision_due`: when a pending decision is due;
    /// `announced_by`: what announces the feed's changes.
    pub fn after_reading(
        &self,
        decision_due: Option<Time>,
        announced_by: Option<IntervalReason>,
        now: Time,
    ) -> PlannedPoll {
        let UpdateRate { last_change, gap } = self.rate;
        let between_changes = gap.unwrap_or_default().max(now.since(last_change));
        let (steady, turnover) = (between_changes / POLLS_PER_CHANGE, self.turnover(now));
        let own = self.bounds.clamp(steady.min(turnover));
        let requested = self
            .requested_interval()
            .map(|(requested, reason_of)| (requested.min(self.bounds.max), requested, reason_of));
        let (mut interval, mut because) = if let Some((asked, requested, reason_of)) = requested
            && asked > own
        {
            (asked, reason_of(whole_seconds(requested)))
        } else if own == self.bounds.min {
            (own, IntervalReason::Shortest)
        } else if own == self.bounds.max {
            (own, IntervalReason::Longest)
        } else if turnover < steady {
            (own, IntervalReason::Turnover)
        } else {
            (own, IntervalReason::ChangeRate(whole_seconds(between_changes)))
        };
        if let Some(by) = announced_by {
            let longer = interval.saturating_mul(4).min(SAFETY_EVERY);
            interval = self.bounds.clamp(longer).max(interval);
            because = by;
        }
        let planned = now.plus(self.add_jitter(interval).min(self.bounds.max));
        let at = allowed_from(planned, self.hints);
        let (every, is_put_off) = (whole_seconds(interval), at > planned);
        let reason = PollReason::Interval { every, because, is_put_off };
        let mut next = PlannedPoll { at, reason };
        if let Some(expires) = self.hints.expires.filter(|expires| *expires > now) {
            let rest = expires.since(now);
            // Leave a tenth for a poll that fails or comes late.
            let wanted = now.plus((rest - rest / 10).max(self.bounds.min));
            if wanted < next.at {
                let reason = "the publisher asks to be read by then (sx:sharing/@expires)";
                next = PlannedPoll::new(wanted, reason);
            }
        }
        if let Some(decision_due) = decision_due {
            // An overdue decision waits for an ordinary interval.
            let is_overdue = decision_due <= now;
            let soonest = if is_overdue { Duration::MAX } else { MIN_DECISION_PAUSE };
            let wanted = before(decision_due, now).max(now.plus(soonest.min(self.bounds.min)));
            if wanted < next.at {
                next = PlannedPoll::new(wanted, "something pending can be decided then");
            }
        }
        next
    }

    /// Returns the longest interval in which at most half of the document is replaced; longer for a feed that has been
    /// quiet and missed nothing lately.
    fn turnover(&self, now: Time) -> Duration {
        let Overlap { half_life, last_missed, .. } = self.overlap;
        let has_missed = last_missed.is_some_and(|at| now.since(at) < MISSED_LATELY);
        let quiet = now.since(self.rate.last_change) / POLLS_PER_CHANGE;
        let quiet = if has_missed { Duration::ZERO } else { quiet };
        half_life.map_or(Duration::MAX, |half_life| half_life.max(quiet))
    }

    /// Returns the longest interval that the publisher asks for, with its reason.
    fn requested_interval(&self) -> Option<(Duration, ReasonOfSeconds)> {
        let requests: [(_, ReasonOfSeconds); 3] = [
            (self.hints.ttl, IntervalReason::Ttl),
            (self.hints.period, IntervalReason::UpdatePeriod),
            (self.freshness, IntervalReason::Freshness),
        ];
        let stated =
            requests.into_iter().filter_map(|(requested, reason_of)| Some((requested?, reason_of)));
        stated.max_by_key(|(requested, _)| *requested)
    }

    /// Computes the poll after `failures` consecutive ones. `gone`: how many of the most recent ones were 410.
    pub fn after_failing(&self, failures: u32, retry: Retry, gone: u32, now: Time) -> PlannedPoll {
        let failures = failures.max(1);
        let is_long_gone = self.bounds.max.saturating_mul(gone) > SELDOM_AFTER;
        let seldom = if is_long_gone { SELDOM_EVERY } else { Duration::ZERO };
        let most = self.bounds.max.max(seldom);
        let doubled = |first: Duration| {
            let pause = GrowingPause::doubling(first, self.bounds.max.max(first));
            self.bounds.clamp(pause.after(failures))
        };
        let (interval, why) = match retry {
            Retry::Backoff => (doubled(self.bounds.min), "the pause grows with each"),
            Retry::After(wait) if wait < self.bounds.min => (
                doubled(self.bounds.min),
                "the publisher named a short time (Retry-After), and the pause grows with each",
            ),
            Retry::Busy => (doubled(self.bounds.min.max(BUSY_PAUSE)), "the publisher is busy"),
            Retry::After(wait) => {
                (self.bounds.clamp(wait), "the publisher said when (Retry-After)")
            }
            Retry::Seldom => (most, "it will hardly come back, so that it is asked seldom"),
        };
        // `Retry-After` is never cut short; the jitter only lengthens it.
        let interval = self.add_jitter(interval).min(most);
        let times =
            if failures == 1 { "once".into() } else { format!("{failures} times in a row") };
        let again = describe_duration(interval);
        PlannedPoll::new(now.plus(interval), format!("it failed {times}; {why}: again in {again}"))
    }

    /// Adds jitter to an interval: a share that is fixed for the feed, so that the result is reproducible.
    fn add_jitter(&self, interval: Duration) -> Duration {
        // A share of 0 to 10 percent.
        let share = phase(self.feed) % 101;
        let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX / 2);
        Duration::from_millis(millis.saturating_add(millis / 1000 * share))
    }
}

/// Returns the interval that a running gateway would choose after a successful poll at `now`. For replay, which has no
/// network and no failures.
pub fn replay_interval(
    feed: &FeedName,
    bounds: Bounds,
    rate: UpdateRate,
    hints: &UpdateHints,
    decision_due: Option<Time>,
    now: Time,
) -> Duration {
    let plan =
        FeedSchedule { feed, bounds, rate, overlap: Overlap::default(), hints, freshness: None };
    plan.after_reading(decision_due, None, now).at.since(now)
}

/// Returns when to poll for a decision due at `by`. A distant decision is also polled for half-way, so that changes
/// that need several observations are confirmed in time.
fn before(by: Time, now: Time) -> Time {
    let rest = by.since(now);
    if rest > Duration::from_secs(12 * 3600) { now.plus(rest / 2) } else { by }
}

/// Returns a number that is fixed for a feed: its phase in everything that is spread over time.
pub fn phase(feed: &FeedName) -> u64 {
    xxh3_64(feed.as_str().as_bytes())
}

/// Formats a duration in its two largest units.
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

/// The seconds of an hour, and the hours of a day.
const HOUR: i64 = 3600;
const DAY_HOURS: i64 = 24;

/// Returns the first time from `at` on that no skip rule of RSS (`skipHours`, `skipDays`) covers; `at` if the rules
/// cover all times, because they cannot be meant.
pub fn allowed_from(at: Time, hints: &UpdateHints) -> Time {
    if hints.skip_hours.is_empty() && hints.skip_days.is_empty() {
        return at;
    }
    let start = at.unix().div_euclid(HOUR);
    // The rules repeat every week.
    for hour in start..=start + 7 * DAY_HOURS {
        if !covered(hour, hints) {
            return at.max(Time::from_unix(hour.saturating_mul(HOUR)));
        }
    }
    at
}

/// Whether a rule covers this hour, counted from 1970.
fn covered(hour: i64, hints: &UpdateHints) -> bool {
    let of_day = hour.rem_euclid(DAY_HOURS);
    // 1970-01-01 was a Thursday, day 3 of a week that begins on Monday.
    let of_week = (hour.div_euclid(DAY_HOURS) + 3).rem_euclid(7);
    hints.skip_hours.iter().any(|skipped| i64::from(*skipped) == of_day)
        || hints.skip_days.iter().any(|skipped| i64::from(*skipped) == of_week)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedPoll {
    pub at: Time,
    pub reason: PollReason,
}

/// Why a poll is planned for its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollReason {
    /// A sentence for the operator.
    Text(Cow<'static, str>),
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
    ChangeRate(u32),
    /// During a longer interval more than half of the document would be replaced.
    Turnover,
    /// Changes are announced by a SUP document or a hub.
    BySup,
    ByHub,
}

impl IntervalReason {
    /// Whether the publisher's hub or SUP document tells of changes meanwhile.
    pub const fn is_announced(self) -> bool {
        matches!(self, Self::BySup | Self::ByHub)
    }
}

/// Returns the duration in whole seconds, at most `u32::MAX`.
pub fn whole_seconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_secs()).unwrap_or(u32::MAX)
}

impl fmt::Display for PollReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (every, because, is_put_off) = match self {
            Self::Text(words) => return f.write_str(words),
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
            IntervalReason::ChangeRate(between_changes) => {
                format!("it takes about {} to change: every {every}", told(between_changes))
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
        Self { at, reason: PollReason::Text(reason.into()) }
    }
}

#[cfg(test)]
mod tests;
