//! Figures that are gathered for a scrape: how feeds and their polling stand, whether the store works, and what the process
//! takes.
//!
//! Where several gateways poll, each counts the polling of the feeds that it polls, and the one that writes what is stored of
//! all feeds: so that the sum over them is right. What the process takes has the names that Prometheus' own clients give it.
//! Linux says so in `/proc`; elsewhere nothing is told.

use super::{ByLabel, ConstHistogram, Figure, Metrics, counter, gauge, whole};
use crate::IndexedFeed;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use std::fs;
use std::time::Duration;
use tidegate_core::model::{FeedStanding, Time};
use tidegate_status::{PollTotals, tick_lead};
use tidegate_store::StoreCondition;

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
    /// How far the tick is ahead of the clock that is ahead most, where that is much.
    pub(super) tick_lead: Duration,
}

impl FeedCounts {
    /// Adds a feed. How its polling stands counts where this gateway polls it.
    pub(crate) fn add(&mut self, feed: &IndexedFeed, now: Time) {
        let IndexedFeed { record, figures, polling, .. } = feed;
        self.tick_lead = self.tick_lead.max(tick_lead(figures.changed, now).unwrap_or_default());
        match record.standing {
            FeedStanding::Active => self.active += 1,
            FeedStanding::Paused => self.paused += 1,
            FeedStanding::Gone => {
                self.gone += 1;
                return;
            }
        }
        self.held += usize::from(figures.held.is_some());
        self.in_conflict += usize::from(figures.contested > 0);
        self.items_in_conflict = self.items_in_conflict.saturating_add(figures.contested);
        if !feed.is_polled_here {
            return;
        }
        self.with_gaps += usize::from(polling.gaps.lately(now).is_some());
        self.in_flight += usize::from(polling.is_in_flight);
        if record.standing != FeedStanding::Active || !record.has_upstream() {
            return;
        }
        self.polled += 1;
        self.failing += usize::from(feed.is_failing());
        self.stale += usize::from(polling.stale_after.is_some_and(|after| now > after));
        if let Some(due) = polling.next_poll.filter(|due| *due < now) {
            self.waiting += 1;
            self.lag = self.lag.max(now.since(due));
        }
        let age = polling.read.map(|read| now.since(read));
        self.oldest_read = self.oldest_read.max(age.unwrap_or_default());
    }
}

impl Metrics {
    /// Says how feeds and their polling stand.
    pub(crate) fn feeds(&self, counts: &FeedCounts) {
        let standings = [
            (FeedStanding::Active, counts.active),
            (FeedStanding::Paused, counts.paused),
            (FeedStanding::Gone, counts.gone),
        ];
        let standings = standings.map(|(standing, feeds)| (standing.name(), whole(feeds)));
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
            Figure::new("feeds", "Feeds by standing", ByLabel("standing", Vec::from(standings))),
            gauge(
                "feeds_held",
                "Feeds of which a document is held back until it is confirmed",
                counts.held,
            ),
            gauge(
                "tick_lead",
                "How far the time of a feed's last change is ahead of the clock, at most; 0 below an hour",
                counts.tick_lead.as_secs(),
            )
            .of(Unit::Seconds),
            gauge(
                "feeds_in_conflict",
                "Feeds with items that have unresolved conflicts",
                counts.in_conflict,
            ),
            gauge("items_in_conflict", "Items with unresolved conflicts", counts.items_in_conflict),
        ];
        self.figures.set("feeds", figures);
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

/// The most open files that are counted.
const FILES_LIMIT: usize = 1 << 20;

/// What the process takes; nothing where the system does not say. Blocks.
pub(super) fn process_figures() -> Vec<Figure> {
    let open_files = fs::read_dir("/proc/self/fd").map_or(0, |all| all.take(FILES_LIMIT).count());
    let texts = ["/proc/self/stat", "/proc/stat", "/proc/self/limits"].map(fs::read_to_string);
    let texts = texts.each_ref().map(|text| text.as_deref().unwrap_or_default());
    let page_size = u64::try_from(rustix::param::page_size()).unwrap_or(u64::MAX);
    let units = (rustix::param::clock_ticks_per_second(), page_size);
    parse_process(texts, open_files, units).unwrap_or_default()
}

/// The same of `/proc/self/stat`, `/proc/stat` and `/proc/self/limits` (proc(5)); `None` where they are not as expected.
/// `ticks`: so many are a second.
fn parse_process(
    [stat, system, limits]: [&str; 3],
    open_files: usize,
    (ticks, page_size): (u64, u64),
) -> Option<Vec<Figure>> {
    // The name of the program may have spaces and parentheses.
    let (_, after) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    // The field behind the name is number 3.
    let field = |number: usize| fields.get(number.checked_sub(3)?)?.parse::<u64>().ok();
    let time =
        |count: u64| count.saturating_mul(1000).checked_div(ticks).map(Duration::from_millis);
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?;
    let boot = Duration::from_secs(boot.trim().parse().ok()?);
    let most = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    // It may be unlimited.
    let most = most.split_ascii_whitespace().next().and_then(|soft| soft.parse::<u64>().ok());
    let cpu = time(field(14)?.saturating_add(field(15)?))?.as_secs_f64();
    let start = boot.saturating_add(time(field(22)?)?).as_secs_f64();
    let resident = field(24)?.saturating_mul(page_size);
    let about_cpu = "Time on a processor, in user and in system mode";
    let about_start = "When the process started, since 1970";
    let mut figures = vec![
        Figure::new("process_cpu", about_cpu, ConstCounter::new(cpu)).of(Unit::Seconds),
        Figure::new("process_start_time", about_start, ConstGauge::new(start)).of(Unit::Seconds),
        gauge("process_resident_memory", "Memory that the system gave it", resident)
            .of(Unit::Bytes),
        gauge("process_virtual_memory", "Addresses that it has reserved", field(23)?)
            .of(Unit::Bytes),
        gauge("process_open_fds", "Open files and connections", open_files),
    ];
    figures.extend(
        most.map(|most| gauge("process_max_fds", "Files and connections it may open", most)),
    );
    Some(figures)
}

impl Metrics {
    /// Says whether the store works and how much space it has.
    pub(crate) fn store(&self, condition: &StoreCondition) {
        // That another gateway takes documents in is no shortage.
        let takes_in = condition.check_intake().is_ok() && condition.unanswered.is_none();
        let difference = Duration::from_millis(condition.clock_ahead.unsigned_abs()).as_secs_f64();
        let difference = if condition.clock_ahead < 0 { -difference } else { difference };
        let (free, min_free) = condition.space.map_or((0, 0), |space| (space.free, space.limit));
        let max_size = condition.taken.map_or(0, |taken| taken.limit);
        let figures = vec![
            gauge(
                "store_up",
                "1 while the store is open, 0 while it is opened again after a failure",
                condition.stop.is_none(),
            ),
            gauge(
                "store_takes_in",
                "1 while new documents are taken in, 0 while the store is closed, space is low or the database silent",
                takes_in,
            ),
            gauge(
                "settings_differ",
                "Other gateways over the same store whose settings are others than this one's",
                condition.differences().count(),
            ),
            Figure::new(
                "clock_difference",
                "How far this machine's clock is ahead of the database's, at least; below 0: behind it",
                ConstGauge::new(difference),
            )
            .of(Unit::Seconds),
            gauge("store_free", "Bytes that are free on the file system of the data folder", free)
                .of(Unit::Bytes),
            gauge(
                "store_min_free",
                "Bytes of it that must stay free for anything new to be taken in",
                min_free,
            )
            .of(Unit::Bytes),
            gauge(
                "store_size",
                "Bytes that the files of the data folder take on disk; counted once a minute",
                condition.used.unwrap_or_default(),
            )
            .of(Unit::Bytes),
            gauge(
                "store_max_size",
                "Bytes that they may take for anything new to be taken in; 0 where there is no limit",
                max_size,
            )
            .of(Unit::Bytes),
        ];
        self.figures.set("store", figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MetricsFormat;
    use std::sync::Arc;
    use tidegate_core::model::{FeedName, FeedRecord, FeedSource};
    use tidegate_status::{FeedSummary, PollGaps};

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
        for (standing, url, polling, (is_held, contested)) in feeds {
            let mut feed = IndexedFeed::new(&Arc::new(record(*standing, url)), false);
            feed.figures.held = is_held.then(|| "empty".into());
            feed.figures.contested = *contested;
            (feed.polling, feed.is_polled_here) = (polling.clone(), true);
            counts.add(&feed, at(0));
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

    const STAT: &str = "4242 (tide) gate (x) S 1 4242 4242 0 -1 4194560 9000 0 12 0 1234 266 0 0 20 0 9 0 \
                        360050 2147483648 25600 18446744073709551615 1 1 0";
    const SYSTEM: &str = "cpu  1 2 3\ncpu0 1 2 3\nbtime 1795000000\nprocesses 9\n";
    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
                          Max open files            1024                 524288               files\n";
    const UNITS: (u64, u64) = (100, 4096);

    /// What is told of these texts.
    fn told(texts: [&str; 3], units: (u64, u64)) -> Option<String> {
        let metrics = Metrics::new();
        metrics.process.set("process", parse_process(texts, 17, units)?);
        metrics.text(MetricsFormat::OpenMetrics).ok()
    }

    #[test]
    fn figures_are_read_behind_a_name_with_parentheses() {
        let said = told([STAT, SYSTEM, LIMITS], UNITS).unwrap();
        for line in [
            "process_cpu_seconds_total 15.0",
            "process_start_time_seconds 1795003600.5",
            "process_virtual_memory_bytes 2147483648",
            "process_resident_memory_bytes 104857600",
            "process_open_fds 17",
            "process_max_fds 1024",
        ] {
            assert!(said.lines().any(|found| found == line), "no {line} in {said}");
        }
        let endless = LIMITS.replace("1024", "unlimited");
        assert!(!told([STAT, SYSTEM, &endless], UNITS).unwrap().contains("max_fds"));
    }

    #[test]
    fn what_is_not_as_expected_is_left_out() {
        let short = STAT.split_at(80).0;
        for texts in [["", SYSTEM, LIMITS], [short, SYSTEM, LIMITS], [STAT, "", LIMITS]] {
            assert_eq!(told(texts, UNITS), None, "{texts:?}");
        }
        assert_eq!(told([STAT, SYSTEM, LIMITS], (0, 4096)), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_as_the_system_says() {
        assert!(process_figures().len() >= 5);
    }
}
