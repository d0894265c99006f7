//! Figures that are gathered for a scrape: how feeds and their polling stand, whether the store works, and what the process
//! takes.
//!
//! With several gateways, each counts the feeds that it owns: the sum over them is right. The figures of the process have
//! the names that Prometheus' own clients use; they are read from `/proc` and missing on systems without it.

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

/// Whether this gateway knows by itself how the polling of a feed stands, which it then counts.
fn is_known_here(feed: &IndexedFeed) -> bool {
    feed.is_polled_here && feed.is_served()
}

/// Whether it polls a feed.
fn is_polled(feed: &IndexedFeed) -> bool {
    is_known_here(feed)
        && feed.record.standing == FeedStanding::Active
        && feed.record.has_upstream()
}

/// How late the poll of a feed is that is due and has not begun.
fn lateness(feed: &IndexedFeed, now: Time) -> Option<Duration> {
    let due = feed.polling.next_poll.filter(|due| is_polled(feed) && *due < now)?;
    Some(now.since(due))
}

/// A figure of which it is said whether a feed counts.
type FeedCount = (&'static str, &'static str, fn(&IndexedFeed, Time) -> bool);

const FEED_COUNTS: [FeedCount; 8] = [
    ("feeds_polled", "Feeds that this gateway polls", |feed, _| is_polled(feed)),
    ("feeds_failing", "Polled feeds whose last poll failed", |feed, _| {
        is_polled(feed) && feed.is_failing()
    }),
    (
        "feeds_stale",
        "Polled feeds that were not read for three of their intervals and at least a day",
        |feed, now| is_polled(feed) && feed.polling.stale_after.is_some_and(|after| now > after),
    ),
    ("feeds_with_gaps", "Feeds whose items may have been missed within seven days", |feed, now| {
        is_known_here(feed) && feed.polling.gaps.lately(now).is_some()
    }),
    ("polls_in_flight", "Feeds that are being polled", |feed, _| {
        is_known_here(feed) && feed.polling.is_in_flight
    }),
    ("polls_waiting", "Feeds whose poll is due and has not begun", |feed, now| {
        lateness(feed, now).is_some()
    }),
    ("feeds_held", "Feeds with a document that is held back until it is confirmed", |feed, _| {
        feed.is_served() && feed.figures.held.is_some()
    }),
    ("feeds_in_conflict", "Feeds with items that have unresolved conflicts", |feed, _| {
        feed.is_served() && feed.figures.contested > 0
    }),
];

/// A figure that is the longest time of all feeds; 0 where none has any.
type FeedTime = (&'static str, &'static str, fn(&IndexedFeed, Time) -> Option<Duration>);

const FEED_TIMES: [FeedTime; 3] = [
    ("poll_lag", "How late the poll is that is late most; 0 where none is", lateness),
    (
        "oldest_read_age",
        "How long ago the polled feed was last read that was read longest ago; since the start where it was not",
        |feed, now| {
            let read = feed.polling.read.filter(|_| is_polled(feed))?;
            Some(now.since(read))
        },
    ),
    (
        "tick_lead",
        "How far the time of a feed's last change is ahead of the clock, at most; 0 below an hour",
        |feed, now| tick_lead(feed.figures.changed, now),
    ),
];

/// How feeds and their polling stand.
pub(crate) fn feed_figures<'f>(
    feeds: impl Iterator<Item = &'f IndexedFeed>,
    now: Time,
) -> Vec<Figure> {
    let mut standings =
        [FeedStanding::Active, FeedStanding::Paused, FeedStanding::Gone].map(|it| (it, 0_usize));
    let mut counts = FEED_COUNTS.map(|figure| (figure, 0_usize));
    let mut times = FEED_TIMES.map(|figure| (figure, Duration::ZERO));
    let mut items = 0_u64;
    for feed in feeds {
        for (standing, count) in &mut standings {
            *count += usize::from(feed.record.standing == *standing);
        }
        for ((_, _, is_one), count) in &mut counts {
            *count += usize::from(is_one(feed, now));
        }
        for ((_, _, time), longest) in &mut times {
            *longest = (*longest).max(time(feed, now).unwrap_or_default());
        }
        if feed.is_served() {
            items += u64::from(feed.figures.contested);
        }
    }
    let standings = standings.map(|(standing, count)| (standing.name(), whole(count)));
    let counts = counts.map(|((name, help, _), count)| gauge(name, help, count));
    let times = times
        .map(|((name, help, _), longest)| gauge(name, help, longest.as_secs()).of(Unit::Seconds));
    let others = [
        Figure::new("feeds", "Feeds by standing", ByLabel("standing", Vec::from(standings))),
        gauge("items_in_conflict", "Items with unresolved conflicts", items),
    ];
    counts.into_iter().chain(times).chain(others).collect()
}

impl Metrics {
    /// Says how feeds and their polling stand.
    pub(crate) fn feeds(&self, figures: Vec<Figure>) {
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
        let (free, min_free) =
            condition.space.free.map_or((0, 0), |space| (space.bytes, space.limit));
        let max_size = condition.space.taken.map_or(0, |taken| taken.limit);
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
                condition.space.used.unwrap_or_default(),
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
    use crate::tests::at;
    use std::sync::Arc;
    use tidegate_core::model::{FeedName, FeedRecord, FeedSource};
    use tidegate_status::{FeedSummary, PollGaps};

    const URL: &str = "https://site.example/feed";

    /// A feed, whether a document of it is held, and how many of its items are in conflict.
    fn feed(
        (standing, url): (FeedStanding, &str),
        polling: &FeedSummary,
        (is_held, contested): (bool, u32),
    ) -> IndexedFeed {
        let record = FeedRecord::new(FeedName::new("a").unwrap(), url, FeedSource::Api);
        let mut feed = IndexedFeed::new(&Arc::new(FeedRecord { standing, ..record }), false);
        feed.figures.held = is_held.then(|| "empty".into());
        feed.figures.contested = contested;
        (feed.polling, feed.is_polled_here) = (polling.clone(), true);
        feed
    }

    /// Checks the figures of feeds that are not 0, without the prefix of their names.
    fn assert_counted(feeds: &[IndexedFeed], expected: &str) {
        let metrics = Metrics::new();
        metrics.feeds(feed_figures(feeds.iter(), at(0)));
        let text = metrics.text(MetricsFormat::OpenMetrics).unwrap();
        let figures = text.lines().filter_map(|line| line.strip_prefix("tidegate_"));
        let names = ["feeds", "poll", "items_in", "oldest", "tick"];
        let of_feeds = figures.filter(|line| names.iter().any(|name| line.starts_with(name)));
        let mut told: Vec<&str> = of_feeds.filter(|line| !line.ends_with(" 0")).collect();
        told.sort_unstable();
        assert_eq!(told.join(", "), expected);
    }

    #[test]
    fn everything_that_is_wrong_with_a_feed_counts() {
        // Read an hour ago, and not due yet.
        let well = FeedSummary {
            next_poll: Some(at(60)),
            read: Some(at(-3600)),
            stale_after: Some(at(0)),
            ..FeedSummary::default()
        };
        let ill = FeedSummary {
            next_poll: Some(at(-90)),
            read: Some(at(-200_000)),
            stale_after: Some(at(-1)),
            failures: 3,
            gaps: PollGaps { count: 1, last: Some(at(-86_400)) },
            ..FeedSummary::default()
        };
        let asked = FeedSummary { next_poll: None, is_in_flight: true, ..well.clone() };
        let late = FeedSummary { next_poll: Some(at(-30)), ..well.clone() };
        let active = (FeedStanding::Active, URL);
        let of_well = "feeds_polled 1, feeds{standing=\"active\"} 1, oldest_read_age_seconds 3600";
        assert_counted(&[feed(active, &well, (false, 0))], of_well);
        let feeds = [(&ill, (true, 2)), (&asked, (false, 0)), (&late, (false, 1))];
        let feeds = feeds.map(|(polling, figures)| feed(active, polling, figures));
        assert_counted(
            &feeds,
            "feeds_failing 1, feeds_held 1, feeds_in_conflict 2, feeds_polled 3, feeds_stale 1, \
             feeds_with_gaps 1, feeds{standing=\"active\"} 3, items_in_conflict 3, \
             oldest_read_age_seconds 200000, poll_lag_seconds 90, polls_in_flight 1, \
             polls_waiting 2",
        );
        // A feed that nobody polls fails in nothing.
        let gaps = PollGaps { count: 1, last: Some(at(-8 * 86_400)) };
        let (read, stale_after) = (Some(at(-900_000)), Some(at(-800_000)));
        let old = FeedSummary { read, stale_after, gaps, ..ill.clone() };
        let feeds = [
            feed((FeedStanding::Paused, URL), &old, (true, 1)),
            feed((FeedStanding::Gone, URL), &old, (true, 1)),
            feed((FeedStanding::Active, ""), &old, (false, 0)),
        ];
        assert_counted(
            &feeds,
            "feeds_held 1, feeds_in_conflict 1, feeds{standing=\"active\"} 1, \
             feeds{standing=\"gone\"} 1, feeds{standing=\"paused\"} 1, items_in_conflict 1",
        );
    }

    const STAT: &str = "4242 (tide) gate (x) S 1 4242 4242 0 -1 4194560 9000 0 12 0 1234 266 0 0 20 0 9 0 \
                        360050 2147483648 25600 18446744073709551615 1 1 0";
    const SYSTEM: &str = "cpu  1 2 3\ncpu0 1 2 3\nbtime 1795000000\nprocesses 9\n";
    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units\n\
                          Max open files            1024                 524288               files\n";

    /// What is told of these texts, where so many ticks are a second.
    fn told(texts: [&str; 3], ticks: u64) -> Option<String> {
        let metrics = Metrics::new();
        metrics.process.set("process", parse_process(texts, 17, (ticks, 4096))?);
        metrics.text(MetricsFormat::OpenMetrics).ok()
    }

    #[test]
    fn figures_are_read_behind_a_name_with_parentheses_and_what_is_not_as_expected_is_left_out() {
        let said = told([STAT, SYSTEM, LIMITS], 100).unwrap();
        let figures = "process_cpu_seconds_total 15.0, process_start_time_seconds 1795003600.5, \
                       process_virtual_memory_bytes 2147483648, process_open_fds 17, \
                       process_resident_memory_bytes 104857600, process_max_fds 1024";
        for line in figures.split(", ") {
            assert!(said.lines().any(|found| found == line), "no {line} in {said}");
        }
        let endless = LIMITS.replace("1024", "unlimited");
        assert!(!told([STAT, SYSTEM, &endless], 100).unwrap().contains("max_fds"));
        let short = STAT.split_at(80).0;
        let cases = [("", SYSTEM, 100), (short, SYSTEM, 100), (STAT, "", 100), (STAT, SYSTEM, 0)];
        for (stat, system, ticks) in cases {
            assert_eq!(told([stat, system, LIMITS], ticks), None, "{stat:?} {system:?}");
        }
    }
}
