use super::*;
use proptest::prelude::*;
use std::sync::LazyLock;
use tidegate_core::model::testing::{NOW, name};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

static FEED: LazyLock<FeedName> = LazyLock::new(|| name("news"));

fn standard() -> Bounds {
    Bounds::new(5 * MINUTE, DAY)
}

fn plan(bounds: Bounds, rate: UpdateRate, hints: &UpdateHints) -> FeedSchedule<'_> {
    FeedSchedule { feed: &FEED, bounds, rate, overlap: Overlap::default(), hints, freshness: None }
}

fn read(rate: UpdateRate, hints: &UpdateHints) -> PlannedPoll {
    plan(standard(), rate, hints).after_reading(None, None, NOW)
}

/// The same while something can be decided at a time.
fn pending(hints: &UpdateHints, at: Time) -> PlannedPoll {
    plan(standard(), UpdateRate::since(NOW), hints).after_reading(Some(at), None, NOW)
}

fn about(next: &PlannedPoll, expected: Duration) -> bool {
    let interval = next.at.since(NOW);
    interval >= expected && interval <= expected + expected / 10
}

#[test]
fn a_new_feed_is_polled_often_and_a_quiet_one_ever_more_seldom() {
    let quiet = |time| UpdateRate::since(NOW.minus(time));
    let usual = quiet(8 * HOUR).after_change(NOW.minus(4 * HOUR)).after_change(NOW);
    for (rate, expected) in [
        (quiet(Duration::ZERO), 5 * MINUTE),
        (quiet(20 * MINUTE), 5 * MINUTE),
        (quiet(2 * HOUR), 30 * MINUTE),
        (quiet(DAY), 6 * HOUR),
        (quiet(30 * DAY), DAY),
        // Right after a change, the usual time between changes counts.
        (usual, HOUR),
        // The clock went back.
        (UpdateRate::since(NOW.plus(DAY)).after_change(NOW), 5 * MINUTE),
    ] {
        let next = read(rate, &UpdateHints::default());
        assert!(about(&next, expected), "{rate:?}: {next:?}");
    }
    // Where items were missed lately, it may be as busy again tomorrow.
    for (missed, expected) in [(None, 2 * HOUR), (Some(6 * DAY), HOUR), (Some(8 * DAY), 2 * HOUR)] {
        let last_missed = missed.map(|before| NOW.minus(before));
        let overlap = Overlap { half_life: Some(HOUR), last_missed, ..Overlap::default() };
        let hints = UpdateHints::default();
        let plan = FeedSchedule { overlap, ..plan(standard(), quiet(8 * HOUR), &hints) };
        assert!(about(&plan.after_reading(None, None, NOW), expected), "{missed:?}");
    }
    let reason = read(usual, &UpdateHints::default()).reason.to_string();
    assert_eq!(reason, "it takes about 4 h to change: every 1 h");
}

#[test]
fn what_the_publisher_asks_for_is_honoured_up_to_the_longest_interval() {
    for (ttl, period, freshness, expected, reason) in [
        (Some(HOUR), None, None, HOUR, "the publisher asks for 1 h between polls (ttl)"),
        (Some(HOUR), Some(400 * DAY), None, DAY, "sy:updatePeriod"),
        // If a publisher permits more frequent polls, the gateway does not poll more often.
        (Some(MINUTE), None, None, 5 * MINUTE, ""),
        (None, None, Some(2 * HOUR), 2 * HOUR, "Cache-Control"),
    ] {
        let hints = UpdateHints { ttl, period, ..UpdateHints::default() };
        let plan = plan(standard(), UpdateRate::since(NOW), &hints);
        let found = FeedSchedule { freshness, ..plan }.after_reading(None, None, NOW);
        assert!(about(&found, expected) && found.at <= NOW.plus(DAY), "{found:?}");
        assert!(found.reason.to_string().contains(reason), "{found:?}");
    }
}

#[test]
fn skipped_hours_put_a_poll_off() {
    let hints = UpdateHints { skip_hours: vec![16, 17], ..UpdateHints::default() };
    let found = read(UpdateRate::since(NOW), &hints);
    assert_eq!(found.at.to_string(), "2026-11-20T18:00:00Z");
    assert!(found.reason.to_string().ends_with("; put off by skipHours or skipDays"), "{found:?}");
}

#[test]
fn something_pending_brings_a_poll_forward_whatever_the_publisher_asks() {
    let hints =
        UpdateHints { ttl: Some(DAY), skip_hours: (0..23).collect(), ..UpdateHints::default() };
    let soon = NOW.plus(10 * MINUTE);
    let found = pending(&hints, soon);
    assert_eq!(found.at, soon);
    assert_eq!(found.reason.to_string(), "something pending can be decided then");
    assert_eq!(pending(&hints, NOW.plus(FLOOR)).at, NOW.plus(MIN_DECISION_PAUSE));
    // An overdue decision does not cause a poll every half minute.
    assert_eq!(pending(&hints, NOW.minus(DAY)).at, NOW.plus(5 * MINUTE));
    let late = pending(&UpdateHints::default(), NOW.plus(DAY));
    assert!(about(&late, 5 * MINUTE), "{late:?}");
}

#[test]
fn failures_are_met_with_patience_and_never_with_giving_up() {
    let hints = UpdateHints::default();
    let plan = plan(standard(), UpdateRate::since(NOW), &hints);
    for (failures, retry, expected) in [
        (1, Retry::Backoff, 5 * MINUTE),
        (2, Retry::Backoff, 10 * MINUTE),
        (4, Retry::Backoff, 40 * MINUTE),
        (40, Retry::Backoff, DAY),
        (u32::MAX, Retry::Backoff, DAY),
        (1, Retry::Busy, 15 * MINUTE),
        (3, Retry::Busy, HOUR),
        (1, Retry::After(HOUR), HOUR),
        (9, Retry::After(HOUR), HOUR),
        (1, Retry::After(Duration::ZERO), 5 * MINUTE),
        (3, Retry::After(Duration::ZERO), 20 * MINUTE),
        (1, Retry::After(400 * DAY), DAY),
        (1, Retry::Seldom, DAY),
    ] {
        let found = plan.after_failing(failures, retry, 0, NOW);
        assert!(about(&found, expected), "{failures} {retry:?}: {found:?}");
        assert!(found.at <= NOW.plus(DAY), "{failures} {retry:?}: {found:?}");
    }
    let found = plan.after_failing(3, Retry::Seldom, 0, NOW);
    assert!(found.reason.to_string().starts_with("it failed 3 times in a row; "), "{found:?}");
}

#[test]
fn a_feed_may_have_bounds_of_its_own() {
    let of = |min: Option<Duration>, max: Option<Duration>| {
        let mut options = FeedOptions::default();
        (options.min_interval, options.max_interval) = (min, max);
        let bounds = standard().of(&options);
        (bounds.min(), bounds.max())
    };
    assert_eq!(of(None, None), (5 * MINUTE, DAY));
    assert_eq!(of(Some(MINUTE), None), (MINUTE, DAY));
    assert_eq!(of(None, Some(MINUTE)), (MINUTE, MINUTE));
    assert_eq!(of(Some(2 * DAY), None), (2 * DAY, 2 * DAY));
    assert_eq!(of(Some(Duration::ZERO), Some(Duration::ZERO)), (FLOOR, FLOOR));
}

#[test]
fn replay_chooses_what_the_gateway_would() {
    let hints = UpdateHints { ttl: Some(HOUR), ..UpdateHints::default() };
    let rate = UpdateRate::since(NOW);
    let interval = replay_interval(&FEED, standard(), rate, &hints, None, NOW);
    assert_eq!(NOW.plus(interval), read(rate, &hints).at);
}

#[test]
fn durations_are_said_in_two_units() {
    let described = [0, 59, 300, 5400, 3601, 90_061]
        .map(|seconds| describe_duration(Duration::from_secs(seconds)));
    assert_eq!(described, ["0 s", "59 s", "5 min", "1 h 30 min", "1 h", "1 d 1 h"]);
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![0u64..100, 0u64..100_000, 0u64..100_000_000].prop_map(Duration::from_secs)
}

fn retry() -> impl Strategy<Value = Retry> {
    let others = proptest::sample::select(vec![Retry::Backoff, Retry::Busy, Retry::Seldom]);
    prop_oneof![others, span().prop_map(Retry::After)]
}

proptest! {
    #[test]
    fn bounds_are_kept(
        name in "[a-z0-9]{1,12}",
        (min, max, quiet) in (span(), span(), span()),
        (ttl, period, freshness) in
            (proptest::option::of(span()), proptest::option::of(span()), proptest::option::of(span())),
        skip_hours in proptest::collection::vec(0u8..30, 0..24),
        skip_days in proptest::collection::vec(0u8..9, 0..9),
        decision_due in proptest::option::of((1u64..10_000_000).prop_map(Duration::from_secs)),
        (failures, retry) in (0u32..100, retry()),
    ) {
        let feed = FeedName::new(&name).unwrap();
        let bounds = Bounds::new(min, max);
        let rate = UpdateRate::since(NOW.minus(quiet));
        let hints =
            UpdateHints { ttl, period, skip_hours, skip_days, ..UpdateHints::default() };
        let plan = FeedSchedule { feed: &feed, freshness, ..plan(bounds, rate, &hints) };

        let read = plan.after_reading(None, None, NOW);
        prop_assert!(read.at >= NOW.plus(bounds.min()));
        prop_assert!(read.at <= NOW.plus(bounds.max()).plus(Duration::from_secs(7 * 86_400)));
        prop_assert!(!read.reason.to_string().is_empty());
        prop_assert_eq!(&plan.after_reading(None, None, NOW), &read);

        let decision_due = decision_due.map(|later| NOW.plus(later));
        let pending = plan.after_reading(decision_due, None, NOW);
        prop_assert!(pending.at <= read.at && pending.at > NOW);
        let earliest = NOW.plus(MIN_DECISION_PAUSE);
        prop_assert!(decision_due.is_none_or(|by| pending.at <= by.max(earliest)));

        let failed = plan.after_failing(failures, retry, 0, NOW);
        prop_assert!(failed.at >= NOW.plus(bounds.min()) && failed.at <= NOW.plus(bounds.max()));
        prop_assert!(!failed.reason.to_string().is_empty());

        let gone = plan.after_failing(failures, Retry::Seldom, failures, NOW);
        let most = bounds.max().max(SELDOM_EVERY);
        prop_assert!(gone.at >= NOW.plus(bounds.max()) && gone.at <= NOW.plus(most));
    }
}

#[test]
fn a_feed_whose_changes_are_told_of_is_polled_a_quarter_as_often() {
    use IntervalReason::{ByHub, BySup};
    let hints = UpdateHints::default();
    let (new, soon) = (Duration::ZERO, Some(NOW.plus(10 * MINUTE)));
    for (quiet, announced_by, decision_due, expected, reason) in [
        (new, BySup, None, 20 * MINUTE, "SUP document tells of changes; polled every 20 min"),
        (DAY, ByHub, None, SAFETY_EVERY, "its hub tells of changes; polled every 6 h all the same"),
        // The interval is never shorter than without announcements.
        (30 * DAY, BySup, None, DAY, ""),
        // A pending decision is polled for as usual.
        (new, BySup, soon, 10 * MINUTE, "something pending can be decided then"),
    ] {
        let plan = plan(standard(), UpdateRate::since(NOW.minus(quiet)), &hints);
        let found = plan.after_reading(decision_due, Some(announced_by), NOW);
        assert!(about(&found, expected), "{found:?}");
        assert!(found.reason.to_string().contains(reason), "{found:?}");
    }
}

/// SSE 1.0 section 2.2: a subscriber should read before `expires`.
#[test]
fn a_feed_is_read_before_it_expires() {
    let rate = UpdateRate::since(NOW.minus(30 * DAY));
    for (expires, expected) in [
        (NOW.plus(10 * HOUR), 9 * HOUR),
        (NOW.plus(MINUTE), 5 * MINUTE),
        (NOW.plus(30 * DAY), DAY),
        (NOW.minus(HOUR), DAY),
    ] {
        let hints = UpdateHints { expires: Some(expires), ..UpdateHints::default() };
        let next = read(rate, &hints);
        assert!(about(&next, expected), "{expires}: {next:?}");
        assert_eq!(next.reason.to_string().contains("expires"), expected < DAY, "{next:?}");
    }
}

#[test]
fn a_feed_that_is_gone_is_asked_weekly_after_a_month() {
    let hints = UpdateHints::default();
    // Earlier failures of other kinds do not count.
    let wait = |max, row: u32, retry| {
        let plan = plan(Bounds::new(5 * MINUTE, max), UpdateRate::since(NOW), &hints);
        plan.after_failing(row.saturating_add(10_000), retry, row, NOW).at.since(NOW)
    };
    for (max, row, expected) in [
        (DAY, 1, DAY),
        (DAY, 30, DAY),
        (DAY, 31, 7 * DAY),
        // Over a month, a short interval has many polls and a fortnight's few.
        (HOUR, 30 * 24, HOUR),
        (HOUR, 30 * 24 + 1, 7 * DAY),
        (14 * DAY, u32::MAX, 14 * DAY),
    ] {
        assert_eq!(wait(max, row, Retry::Seldom), expected, "{row}");
    }
    // A refused or otherwise failing feed does not count as gone.
    assert_eq!([Retry::Seldom, Retry::Backoff].map(|retry| wait(DAY, 0, retry)), [DAY; 2]);
}

fn from(at: &str, hours: &[u8], days: &[u8]) -> String {
    let (skip_hours, skip_days) = (hours.to_vec(), days.to_vec());
    let hints = UpdateHints { skip_hours, skip_days, ..UpdateHints::default() };
    allowed_from(Time::parse_rfc3339(at).unwrap(), &hints).to_string()
}

#[test]
fn the_first_allowed_time_is_found() {
    // 20 November 2026 is a Friday.
    let friday = "2026-11-20T16:20:05Z";
    let all: Vec<u8> = (0..24).collect();
    assert_eq!(from(friday, &[], &[]), friday);
    assert_eq!(from(friday, &[15, 17], &[]), friday);
    assert_eq!(from(friday, &[16], &[]), "2026-11-20T17:00:00Z");
    assert_eq!(from(friday, &[16, 17, 18], &[]), "2026-11-20T19:00:00Z");
    assert_eq!(from(friday, &[], &[4]), "2026-11-21T00:00:00Z");
    assert_eq!(from(friday, &[0], &[4, 5, 6]), "2026-11-23T01:00:00Z");
    assert_eq!(from(friday, &all[..23], &[]), "2026-11-20T23:00:00Z");
    assert_eq!(from(friday, &all, &[]), friday);
    assert_eq!(from(friday, &[], &[0, 1, 2, 3, 4, 5, 6]), friday);
}
