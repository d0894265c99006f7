use super::*;
use proptest::prelude::*;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);
/// A Friday, 16:20:05.
const NOW: Time = Time::from_unix(1_795_191_605);

fn feed() -> FeedName {
    FeedName::new("news").unwrap()
}

fn standard() -> Bounds {
    Bounds::new(5 * MINUTE, DAY)
}

fn next(rhythm: UpdateRate, hints: &UpdateHints, after: LastResult) -> PlannedPoll {
    let feed = feed();
    let bounds = standard();
    let plan =
        FeedSchedule { feed: &feed, bounds, rhythm, half_life: None, hints, freshness: None };
    plan.next(after, NOW)
}

/// Returns the interval without the feed's own spread.
fn about(next: &PlannedPoll, expected: Duration) -> bool {
    let interval = next.at.since(NOW);
    interval >= expected && interval <= expected + expected / 10
}

#[test]
fn a_new_feed_is_polled_often_and_a_quiet_one_ever_more_seldom() {
    let hints = UpdateHints::default();
    for (quiet, expected) in [
        (Duration::ZERO, 5 * MINUTE),
        (20 * MINUTE, 5 * MINUTE),
        (2 * HOUR, 30 * MINUTE),
        (DAY, 6 * HOUR),
        (30 * DAY, DAY),
    ] {
        let rhythm = UpdateRate::since(NOW.minus(quiet));
        let next = next(rhythm, &hints, LastResult::Read(None, None));
        assert!(about(&next, expected), "{quiet:?}: {next:?}");
    }
}

#[test]
fn the_usual_time_between_changes_counts_right_after_a_change() {
    let mut rhythm = UpdateRate::since(NOW.minus(8 * HOUR));
    rhythm = rhythm.after_change(NOW.minus(4 * HOUR));
    rhythm = rhythm.after_change(NOW);
    let next = next(rhythm, &UpdateHints::default(), LastResult::Read(None, None));
    assert!(about(&next, HOUR), "{next:?}");
    assert_eq!(next.reason.to_string(), "it takes about 4 h to change: every 1 h");
}

#[test]
fn a_clock_that_went_back_does_not_upset_the_rhythm() {
    let mut rhythm = UpdateRate::since(NOW.plus(DAY));
    rhythm = rhythm.after_change(NOW);
    let next = next(rhythm, &UpdateHints::default(), LastResult::Read(None, None));
    assert!(about(&next, 5 * MINUTE), "{next:?}");
}

#[test]
fn what_the_publisher_asks_for_is_honoured_up_to_the_longest_interval() {
    let quiet = UpdateRate::since(NOW);
    let ttl = UpdateHints { ttl: Some(HOUR), ..UpdateHints::default() };
    let found = next(quiet, &ttl, LastResult::Read(None, None));
    assert!(about(&found, HOUR), "{found:?}");
    assert_eq!(found.reason.to_string(), "the publisher asks for 1 h between polls (ttl)");

    let period = UpdateHints { period: Some(400 * DAY), ttl: Some(HOUR), ..UpdateHints::default() };
    let found = next(quiet, &period, LastResult::Read(None, None));
    assert_eq!(found.at, NOW.plus(DAY));
    assert!(found.reason.to_string().contains("sy:updatePeriod"), "{found:?}");

    // If a publisher permits more frequent polls, the gateway does not poll more often.
    let short = UpdateHints { ttl: Some(MINUTE), ..UpdateHints::default() };
    assert!(about(&next(quiet, &short, LastResult::Read(None, None)), 5 * MINUTE));

    let feed = feed();
    let plan = FeedSchedule {
        feed: &feed,
        bounds: standard(),
        rhythm: quiet,
        half_life: None,
        hints: &UpdateHints::default(),
        freshness: Some(2 * HOUR),
    };
    let found = plan.next(LastResult::Read(None, None), NOW);
    assert!(
        about(&found, 2 * HOUR) && found.reason.to_string().contains("Cache-Control"),
        "{found:?}"
    );
}

#[test]
fn skipped_hours_put_a_poll_off() {
    let hints = UpdateHints { skip_hours: vec![16, 17], ..UpdateHints::default() };
    let found = next(UpdateRate::since(NOW), &hints, LastResult::Read(None, None));
    assert_eq!(found.at.to_string(), "2026-11-20T18:00:00Z");
    assert!(found.reason.to_string().ends_with("; put off by skipHours or skipDays"), "{found:?}");
}

#[test]
fn something_pending_brings_a_poll_forward_whatever_the_publisher_asks() {
    let hints =
        UpdateHints { ttl: Some(DAY), skip_hours: (0..23).collect(), ..UpdateHints::default() };
    let soon = NOW.plus(10 * MINUTE);
    let found = next(UpdateRate::since(NOW), &hints, LastResult::Read(Some(soon), None));
    assert_eq!(
        (found.at, found.reason.to_string().as_str()),
        (soon, "something pending can be decided then")
    );
    let found = next(UpdateRate::since(NOW), &hints, LastResult::Read(Some(NOW.plus(FLOOR)), None));
    assert_eq!(found.at, NOW.plus(LOOK_AGAIN_FLOOR));
    // An overdue decision does not cause a poll every half minute.
    let found = next(UpdateRate::since(NOW), &hints, LastResult::Read(Some(NOW.minus(DAY)), None));
    assert_eq!(found.at, NOW.plus(5 * MINUTE));
    let late = next(
        UpdateRate::since(NOW),
        &UpdateHints::default(),
        LastResult::Read(Some(NOW.plus(DAY)), None),
    );
    assert!(about(&late, 5 * MINUTE), "{late:?}");
}

#[test]
fn failures_are_met_with_patience_and_never_with_giving_up() {
    let quiet = UpdateRate::since(NOW);
    let hints = UpdateHints::default();
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
        (1, Retry::After(400 * DAY), DAY),
        (1, Retry::Seldom, DAY),
    ] {
        let found = next(quiet, &hints, LastResult::Failed(failures, retry));
        assert!(about(&found, expected), "{failures} {retry:?}: {found:?}");
        assert!(found.at <= NOW.plus(DAY), "{failures} {retry:?}: {found:?}");
    }
    let found = next(quiet, &hints, LastResult::Failed(3, Retry::Seldom));
    assert!(found.reason.to_string().starts_with("it failed 3 times in a row; "), "{found:?}");
}

#[test]
fn a_feed_may_have_bounds_of_its_own() {
    let of = |min: Option<Duration>, max: Option<Duration>| {
        let options =
            FeedOptions { min_interval: min, max_interval: max, ..FeedOptions::default() };
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
    let rhythm = UpdateRate::since(NOW);
    let interval = replay_interval(&feed(), standard(), rhythm, &hints, None, NOW);
    assert_eq!(NOW.plus(interval), next(rhythm, &hints, LastResult::Read(None, None)).at);
}

#[test]
fn durations_are_said_in_two_units() {
    for (seconds, expected) in [
        (0, "0 s"),
        (59, "59 s"),
        (300, "5 min"),
        (5400, "1 h 30 min"),
        (3601, "1 h"),
        (90_061, "1 d 1 h"),
    ] {
        assert_eq!(describe_duration(Duration::from_secs(seconds)), expected);
    }
}

fn span() -> impl Strategy<Value = Duration> {
    prop_oneof![0u64..100, 0u64..100_000, 0u64..100_000_000].prop_map(Duration::from_secs)
}

fn retry() -> impl Strategy<Value = Retry> {
    prop_oneof![
        Just(Retry::Backoff),
        Just(Retry::Busy),
        Just(Retry::Seldom),
        span().prop_map(Retry::After)
    ]
}

proptest! {
    /// The guarantees of the schedule, for any feed and publisher.
    #[test]
    fn bounds_are_kept(
        name in "[a-z0-9]{1,12}",
        (min, max, quiet) in (span(), span(), span()),
        (ttl, period, freshness) in
            (proptest::option::of(span()), proptest::option::of(span()), proptest::option::of(span())),
        skip_hours in proptest::collection::vec(0u8..24, 0..24),
        look_again in proptest::option::of((1u64..10_000_000).prop_map(Duration::from_secs)),
        (failures, retry) in (0u32..100, retry()),
    ) {
        let feed = FeedName::new(&name).unwrap();
        let bounds = Bounds::new(min, max);
        let rhythm = UpdateRate::since(NOW.minus(quiet));
        let hints = UpdateHints { ttl, period, skip_hours, ..UpdateHints::default() };
        let (hints, half_life) = (&hints, None);
        let plan = FeedSchedule { feed: &feed, bounds, rhythm, half_life, hints, freshness };

        let read = plan.next(LastResult::Read(None, None), NOW);
        prop_assert!(read.at >= NOW.plus(bounds.min()));
        prop_assert!(read.at <= NOW.plus(bounds.max()).plus(Duration::from_secs(7 * 86_400)));
        prop_assert!(!read.reason.to_string().is_empty());
        prop_assert_eq!(&plan.next(LastResult::Read(None, None), NOW), &read);

        let look_again = look_again.map(|later| NOW.plus(later));
        let pending = plan.next(LastResult::Read(look_again, None), NOW);
        prop_assert!(pending.at <= read.at && pending.at > NOW);
        prop_assert!(look_again.is_none_or(|by| pending.at <= by.max(NOW.plus(LOOK_AGAIN_FLOOR))));

        let failed = plan.next(LastResult::Failed(failures, retry), NOW);
        prop_assert!(failed.at >= NOW.plus(bounds.min()) && failed.at <= NOW.plus(bounds.max()));
        prop_assert!(!failed.reason.to_string().is_empty());

        let gone = plan.next(LastResult::Gone { failures, row: failures }, NOW);
        let most = bounds.max().max(SELDOM_EVERY);
        prop_assert!(gone.at >= NOW.plus(bounds.max()) && gone.at <= NOW.plus(most));
    }
}

#[test]
fn a_feed_whose_changes_are_told_of_is_polled_a_quarter_as_often() {
    let hints = UpdateHints::default();
    let told = |source| LastResult::Read(None, Some(source));
    let often = next(UpdateRate::since(NOW), &hints, told(IntervalReason::BySup));
    assert!(about(&often, 20 * MINUTE), "{often:?}");
    assert_eq!(
        often.reason.to_string(),
        "its SUP document tells of changes; polled every 20 min all the same"
    );
    let day = UpdateRate::since(NOW.minus(DAY));
    let by_hub = next(day, &hints, told(IntervalReason::ByHub));
    assert!(about(&by_hub, SAFETY_EVERY), "{by_hub:?}");
    assert_eq!(
        by_hub.reason.to_string(),
        "its hub tells of changes; polled every 6 h all the same"
    );
    // The interval is never shorter than without announcements, and its reason says so.
    let seldom = next(UpdateRate::since(NOW.minus(30 * DAY)), &hints, told(IntervalReason::BySup));
    assert!(about(&seldom, DAY), "{seldom:?}");
    // A pending decision is polled for as usual.
    let pending = next(
        UpdateRate::since(NOW),
        &hints,
        LastResult::Read(Some(NOW.plus(10 * MINUTE)), Some(IntervalReason::BySup)),
    );
    assert_eq!(pending.at, NOW.plus(10 * MINUTE));
}

/// SSE 1.0 section 2.2: a subscriber should read before `expires`.
#[test]
fn a_feed_is_read_before_it_expires() {
    let rhythm = UpdateRate::since(NOW.minus(30 * DAY));
    for (expires, expected) in [
        (NOW.plus(10 * HOUR), 9 * HOUR),
        (NOW.plus(MINUTE), 5 * MINUTE),
        (NOW.plus(30 * DAY), DAY),
        (NOW.minus(HOUR), DAY),
    ] {
        let hints = UpdateHints { expires: Some(expires), ..UpdateHints::default() };
        let next = next(rhythm, &hints, LastResult::Read(None, None));
        assert!(about(&next, expected), "{expires}: {next:?}");
        assert_eq!(next.reason.to_string().contains("expires"), expected < DAY, "{next:?}");
    }
}

#[test]
fn a_feed_that_is_gone_is_asked_weekly_after_a_month() {
    let (feed, hints) = (feed(), UpdateHints::default());
    let wait = |max, after| {
        let bounds = Bounds::new(5 * MINUTE, max);
        let rhythm = UpdateRate::since(NOW);
        let (hints, half_life, freshness) = (&hints, None, None);
        let plan = FeedSchedule { feed: &feed, bounds, rhythm, half_life, hints, freshness };
        plan.next(after, NOW).at.since(NOW)
    };
    // Earlier failures of other kinds do not count.
    let gone = |row: u32| LastResult::Gone { failures: row.saturating_add(10_000), row };
    assert_eq!(wait(DAY, gone(1)), DAY);
    assert_eq!(wait(DAY, gone(30)), DAY);
    assert_eq!(wait(DAY, gone(31)), 7 * DAY);
    // Over a month, a short interval has many polls and a fortnight's few.
    assert_eq!(wait(HOUR, gone(30 * 24)), HOUR);
    assert_eq!(wait(HOUR, gone(30 * 24 + 1)), 7 * DAY);
    assert_eq!(wait(14 * DAY, gone(u32::MAX)), 14 * DAY);
    // A refused or otherwise failing feed does not count as gone.
    assert_eq!(wait(DAY, LastResult::Failed(10_000, Retry::Seldom)), DAY);
    assert_eq!(wait(DAY, LastResult::Failed(10_000, Retry::Backoff)), DAY);
}
