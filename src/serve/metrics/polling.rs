//! How feeds and their polling stand, in a few numbers. Where several gateways poll, each counts the polling of the
//! feeds that it polls, and the one that writes what is stored of all feeds: so that the sum over them is right.

use super::{Label, Metrics, signed};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_core::model::{FeedRecord, FeedStanding, Time};
use tidegate_status::{FeedSummary, PollTotals};

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

/// The label of the feeds that stand so.
fn labelled(standing: FeedStanding) -> Label {
    [("standing", standing.name())]
}

impl Metrics {
    /// Says how the polling of the feeds that this gateway polls stands.
    pub(crate) fn polling(&self, counts: &FeedCounts) {
        let meters = &self.meters;
        for (gauge, feeds) in [
            (&meters.polled, counts.polled),
            (&meters.failing, counts.failing),
            (&meters.stale, counts.stale),
            (&meters.with_gaps, counts.with_gaps),
            (&meters.in_flight, counts.in_flight),
            (&meters.waiting, counts.waiting),
        ] {
            gauge.set(signed(feeds));
        }
        meters.lag.set(signed(counts.lag.as_secs()));
        meters.oldest_read.set(signed(counts.oldest_read.as_secs()));
    }

    /// Says how feeds stand in the store.
    pub(crate) fn stored(&self, counts: &FeedCounts) {
        let meters = &self.meters;
        for (standing, feeds) in [
            (FeedStanding::Active, counts.active),
            (FeedStanding::Paused, counts.paused),
            (FeedStanding::Gone, counts.gone),
        ] {
            meters.feeds.get_or_create(&labelled(standing)).set(signed(feeds));
        }
        meters.held.set(signed(counts.held));
    }

    /// Says which feeds have items in conflict.
    pub(crate) fn in_conflict(&self, counts: &FeedCounts) {
        let meters = &self.meters;
        meters.in_conflict.set(signed(counts.in_conflict));
        meters.contested.set(i64::from(counts.items_in_conflict));
    }

    /// Whether it was ever said how feeds stand in the store.
    pub(crate) fn has_stored(&self) -> bool {
        self.meters.feeds.get(&labelled(FeedStanding::Active)).is_some()
    }
}

/// How long polls took, as a histogram over what was counted last.
#[derive(Debug, Clone, Default)]
pub(super) struct PollDurations(Arc<Mutex<PollTotals>>);

impl PollDurations {
    /// Takes over what was counted.
    pub(super) fn set(&self, totals: PollTotals) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = totals;
    }
}

impl EncodeMetric for PollDurations {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let totals = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bounds = PollTotals::DURATIONS.iter().map(Duration::as_secs_f64);
        let counts = bounds.chain([f64::INFINITY]).zip(totals.durations);
        let sum = Duration::from_millis(totals.millis).as_secs_f64();
        let counts: Vec<(f64, u64)> = counts.collect();
        encoder.encode_histogram::<NoLabelSet>(sum, totals.durations.iter().sum(), &counts, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
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
