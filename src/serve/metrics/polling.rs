//! How feeds and their polling stand, in a few numbers. Where several gateways poll, each counts the polling of the
//! feeds that it polls, and the one that writes what is stored of all feeds: so that the sum over them is right.

use super::Metrics;
use super::{ByLabel, ConstHistogram, Figure, counter, gauge, whole};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Unit;
use std::time::Duration;
use tidegate_core::model::{FeedRecord, FeedStanding, Time};
use tidegate_status::{FeedSummary, PollTotals, TicksAhead};

/// Sums over feeds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FeedCounts {
    pub(super) active: usize,
    pub(super) paused: usize,
    pub(super) gone: usize,
    /// Those that are active and have a publisher.
    pub(super) polled: usize,
    pub(super) failing: usize,
    pub(super) stale: usize,
    pub(super) held: usize,
    pub(super) in_conflict: usize,
    pub(super) with_gaps: usize,
    /// Items in conflict.
    pub(super) items_in_conflict: u32,
    pub(super) in_flight: usize,
    /// Those whose poll is due and has not begun.
    pub(super) waiting: usize,
    /// By how much the poll is late that is late most.
    pub(super) lag: Duration,
    /// How long ago the feed was read that was read longest ago.
    pub(super) oldest_read: Duration,
}

impl FeedCounts {
    /// Adds how a feed stands that is stored: whether a document of it is held, and how many of its items are in
    /// conflict.
    pub(crate) fn add_stored(&mut self, record: &FeedRecord, is_held: bool, contested: u32) {
        match record.standing {
            FeedStanding::Active => self.active += 1,
            FeedStanding::Paused => self.paused += 1,
            FeedStanding::Gone => {
                self.gone += 1;
                return;
            }
        }
        self.held += usize::from(is_held);
        self.in_conflict += usize::from(contested > 0);
        self.items_in_conflict = self.items_in_conflict.saturating_add(contested);
    }

    /// Adds how the polling of a feed stands that this gateway polls.
    pub(crate) fn add_polling(&mut self, record: &FeedRecord, summary: &FeedSummary, now: Time) {
        if record.standing == FeedStanding::Gone {
            return;
        }
        self.with_gaps += usize::from(summary.gaps.lately(now).is_some());
        self.in_flight += usize::from(summary.is_in_flight);
        if record.standing != FeedStanding::Active || !record.has_upstream() {
            return;
        }
        self.polled += 1;
        self.failing += usize::from(summary.is_failing(record));
        self.stale += usize::from(summary.stale_after.is_some_and(|after| now > after));
        if let Some(due) = summary.next_poll.filter(|due| *due < now) {
            self.waiting += 1;
            self.lag = self.lag.max(now.since(due));
        }
        let age = summary.read.map(|read| now.since(read));
        self.oldest_read = self.oldest_read.max(age.unwrap_or_default());
    }
}

impl Metrics {
    /// Says how the polling of the feeds that this gateway polls stands.
    pub(crate) fn polling(&self, counts: &FeedCounts) {
        let figures = vec![
            gauge("feeds_polled", "Feeds that this gateway polls", counts.polled),
            gauge("feeds_failing", "Polled feeds whose last poll failed", counts.failing),
            gauge(
                "feeds_stale",
                "Polled feeds that were not read for three of their intervals and at least a day",
                counts.stale,
            ),
            gauge(
                "feeds_with_gaps",
                "Feeds of which items may have been missed within seven days",
                counts.with_gaps,
            ),
            gauge("polls_in_flight", "Feeds that are being polled", counts.in_flight),
            gauge("polls_waiting", "Feeds whose poll is due and has not begun", counts.waiting),
            gauge(
                "poll_lag",
                "How late the poll is that is late most; 0 where none is",
                counts.lag.as_secs(),
            )
            .of(Unit::Seconds),
            gauge(
                "oldest_read_age",
                "How long ago the polled feed was last read that was read longest ago; since the start \
                 where it was not",
                counts.oldest_read.as_secs(),
            )
            .of(Unit::Seconds),
        ];
        self.figures.set("polling", figures);
    }

    /// Says how feeds stand in the store, and how far ticks are ahead of the clock.
    pub(crate) fn stored(&self, counts: &FeedCounts, ahead: &TicksAhead) {
        let standings = [
            (FeedStanding::Active, counts.active),
            (FeedStanding::Paused, counts.paused),
            (FeedStanding::Gone, counts.gone),
        ];
        let standings = standings.map(|(standing, feeds)| (standing.name(), whole(feeds)));
        let figures = vec![
            Figure::new("feeds", "Feeds by standing", ByLabel("standing", Vec::from(standings))),
            gauge(
                "feeds_held",
                "Feeds of which a document is held back until it is confirmed",
                counts.held,
            ),
            gauge(
                "tick_lead",
                "How far the time of a feed's last change is ahead of the clock, at most; 0 below an hour",
                ahead.lead().as_secs(),
            )
            .of(Unit::Seconds),
        ];
        self.figures.set("stored", figures);
    }

    /// Says which feeds have items in conflict.
    pub(crate) fn in_conflict(&self, counts: &FeedCounts) {
        let figures = vec![
            gauge(
                "feeds_in_conflict",
                "Feeds with items that have unresolved conflicts",
                counts.in_conflict,
            ),
            gauge("items_in_conflict", "Items with unresolved conflicts", counts.items_in_conflict),
        ];
        self.figures.set("conflicts", figures);
    }

    /// Takes over what the operator's side counted since the start.
    pub(crate) fn totals(&self, totals: PollTotals) {
        let bounds = PollTotals::DURATIONS.iter().map(Duration::as_secs_f64);
        let durations = bounds.chain([f64::INFINITY]).zip(totals.durations).collect();
        let sum = Duration::from_millis(totals.millis).as_secs_f64();
        let outcomes = [
            ("changed", totals.changed),
            ("unchanged", totals.unchanged),
            ("not_modified", totals.not_modified),
            ("failed", totals.failed),
        ];
        let outcomes = outcomes.map(|(outcome, polls)| (outcome, ConstCounter::new(polls)));
        let figures = vec![
            Figure::new("polls", "Polls by outcome", ByLabel("outcome", Vec::from(outcomes))),
            counter("commits", "Commits to the store", totals.commits),
            counter(
                "fetched",
                "Bytes read from upstreams, as they came over the wire",
                totals.bytes,
            )
            .of(Unit::Bytes),
            counter(
                "feed_gaps",
                "Documents that had no item in common with the one before: items may have been missed",
                totals.apart,
            ),
            Figure::new(
                "poll_duration",
                "How long polls took, from the request until what came of it was durable",
                ConstHistogram(sum, durations),
            )
            .of(Unit::Seconds),
        ];
        self.figures.set("polls", figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{FeedName, FeedSource};
    use tidegate_status::PollGaps;

    const NOW: i64 = 1_795_000_000;

    fn at(seconds: i64) -> Time {
        Time::from_unix(NOW + seconds)
    }

    fn record(standing: FeedStanding, url: &str) -> FeedRecord {
        FeedRecord {
            standing,
            ..FeedRecord::new(FeedName::new("a").unwrap(), url, FeedSource::Api)
        }
    }

    fn counted(feeds: &[(FeedStanding, &str, FeedSummary, (bool, u32))]) -> FeedCounts {
        let mut counts = FeedCounts::default();
        for (standing, url, summary, more) in feeds {
            let (record, (is_held, contested)) = (record(*standing, url), *more);
            counts.add_stored(&record, is_held, contested);
            counts.add_polling(&record, summary, at(0));
        }
        counts
    }

    /// Read an hour ago, and not due yet.
    fn well() -> FeedSummary {
        FeedSummary {
            next_poll: Some(at(60)),
            read: Some(at(-3600)),
            stale_after: Some(at(0)),
            ..FeedSummary::default()
        }
    }

    const URL: &str = "https://site.example/feed";

    #[test]
    fn a_feed_that_is_well_is_active_and_polled() {
        let expected = FeedCounts {
            active: 1,
            polled: 1,
            oldest_read: Duration::from_secs(3600),
            ..FeedCounts::default()
        };
        assert_eq!(counted(&[(FeedStanding::Active, URL, well(), (false, 0))]), expected);
    }

    #[test]
    fn everything_that_is_wrong_with_a_feed_counts() {
        let ill = FeedSummary {
            next_poll: Some(at(-90)),
            read: Some(at(-200_000)),
            stale_after: Some(at(-1)),
            failures: 3,
            gaps: PollGaps { count: 1, last: Some(at(-86_400)) },
            ..FeedSummary::default()
        };
        let asked = FeedSummary { next_poll: None, is_in_flight: true, ..well() };
        let late = FeedSummary { next_poll: Some(at(-30)), ..well() };
        let counts = counted(&[
            (FeedStanding::Active, URL, ill, (true, 2)),
            (FeedStanding::Active, URL, asked, (false, 0)),
            (FeedStanding::Active, URL, late, (false, 1)),
        ]);
        let expected = FeedCounts {
            active: 3,
            polled: 3,
            failing: 1,
            stale: 1,
            held: 1,
            in_conflict: 2,
            with_gaps: 1,
            items_in_conflict: 3,
            in_flight: 1,
            waiting: 2,
            lag: Duration::from_secs(90),
            oldest_read: Duration::from_secs(200_000),
            ..FeedCounts::default()
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_feed_that_nobody_polls_fails_in_nothing() {
        let old = FeedSummary {
            next_poll: Some(at(-90)),
            read: Some(at(-900_000)),
            stale_after: Some(at(-800_000)),
            failures: 3,
            gaps: PollGaps { count: 1, last: Some(at(-8 * 86_400)) },
            ..FeedSummary::default()
        };
        let counts = counted(&[
            (FeedStanding::Paused, URL, old.clone(), (true, 1)),
            (FeedStanding::Gone, URL, old.clone(), (true, 1)),
            (FeedStanding::Active, "", old, (false, 0)),
        ]);
        let expected = FeedCounts {
            active: 1,
            paused: 1,
            gone: 1,
            held: 1,
            in_conflict: 1,
            items_in_conflict: 1,
            ..FeedCounts::default()
        };
        assert_eq!(counts, expected);
    }
}
