//! Feeds whose ticks are ahead of the clock, because it was ahead when they changed or is behind now.

use std::fmt;
use std::time::Duration;
use tidegate_core::model::{FeedName, Tick, Time, counted};

/// How far a tick may be ahead of the clock before it is reported: consecutive batches use one second each.
pub const TICK_LEAD_LIMIT: Duration = Duration::from_secs(3600);

/// Returns how far a tick is ahead of the clock, if that is to be reported.
pub fn tick_lead(tick: Option<Tick>, now: Time) -> Option<Duration> {
    tick.map(|tick| tick.time().since(now)).filter(|lead| *lead > TICK_LEAD_LIMIT)
}

/// The feeds whose ticks are too far ahead of the clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TicksAhead {
    feeds: usize,
    furthest: Option<(Duration, FeedName)>,
}

impl TicksAhead {
    /// Adds a feed, if its tick is too far ahead.
    pub fn note(&mut self, feed: &FeedName, tick: Option<Tick>, now: Time) {
        let Some(lead) = tick_lead(tick, now) else { return };
        self.feeds = self.feeds.saturating_add(1);
        if self.furthest.as_ref().is_none_or(|(most, _)| lead > *most) {
            self.furthest = Some((lead, feed.clone()));
        }
    }

    /// Returns the largest lead; zero if there is none.
    pub fn lead(&self) -> Duration {
        self.furthest.as_ref().map_or(Duration::ZERO, |(lead, _)| *lead)
    }

    /// Whether no feed's tick is too far ahead.
    pub const fn is_empty(&self) -> bool {
        self.furthest.is_none()
    }
}

impl fmt::Display for TicksAhead {
    /// Writes a sentence for the operator, without the final stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((lead, feed)) = &self.furthest else { return Ok(()) };
        let hours = lead.as_secs() / 3600;
        let long = match hours / 24 {
            0 | 1 => counted(hours, "hour"),
            days => counted(days, "day"),
        };
        write!(
            f,
            "{} changed at times that have still to come, {feed} {long} ahead: the clock was ahead then, or \
             is behind now; their changes go on counting from there",
            counted(self.feeds, "feed")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::testing::{NOW, name};

    #[test]
    fn what_is_far_ahead_is_told_and_what_is_a_little_is_not() {
        let mut ahead = TicksAhead::default();
        ahead.note(&name("none"), None, NOW);
        ahead.note(&name("past"), Some(Tick::at(NOW.minus(TICK_LEAD_LIMIT * 9))), NOW);
        ahead.note(&name("busy"), Some(Tick::at(NOW.plus(TICK_LEAD_LIMIT))), NOW);
        assert!(ahead.is_empty() && ahead.lead().is_zero() && ahead.to_string().is_empty());
        ahead.note(&name("a"), Some(Tick::at(NOW.plus(TICK_LEAD_LIMIT * 2))), NOW);
        let expected = "1 feed changed at times that have still to come, a 2 hours";
        assert!(ahead.to_string().starts_with(expected));
        ahead.note(&name("b"), Some(Tick::at(NOW.plus(TICK_LEAD_LIMIT * 24 * 365))), NOW);
        ahead.note(&name("c"), Some(Tick::at(NOW.plus(TICK_LEAD_LIMIT * 3))), NOW);
        assert_eq!(ahead.lead(), TICK_LEAD_LIMIT * 24 * 365);
        let said = ahead.to_string();
        assert!(said.starts_with("3 feeds changed") && said.contains("b 365 days ahead"), "{said}");
    }
}
