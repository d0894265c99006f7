use super::*;
use tidegate_core::model::UpdateHints;

const START: Time = Time::from_unix(1_795_191_605);
const HOUR: u64 = 3600;

fn after(seconds: u64) -> Time {
    START.plus(Duration::from_secs(seconds))
}

fn bounds() -> Bounds {
    Bounds::new(Duration::from_secs(300), Duration::from_secs(24 * HOUR))
}

/// A feed that was polled at `START`, changed ten minutes before, and asks for an hour.
fn hourly() -> PollSchedule {
    PollSchedule {
        noted: START,
        polled: START,
        hints: UpdateHints { ttl: Some(Duration::from_secs(HOUR)), ..UpdateHints::default() },
        freshness: None,
        last_change: START.minus(Duration::from_secs(600)),
        gap: Some(Duration::from_secs(600)),
        retry: None,
    }
}

fn next(schedule: &PollSchedule, alive: u64, now: u64) -> PlannedPoll {
    let feed = FeedName::new("news").unwrap();
    let saved = Saved { feed: &feed, bounds: bounds(), schedule, pending: None, half_life: None };
    saved.next(PolledUntil::Noted(after(alive)), after(now))
}

fn strays(schedule: &PollSchedule, current: &PollSchedule, due: Time, now: u64) -> bool {
    let feed = FeedName::new("news").unwrap();
    let saved = Saved { feed: &feed, bounds: bounds(), schedule, pending: None, half_life: None };
    saved.strays(current, due, after(now))
}

#[test]
fn what_is_not_due_keeps_its_time_and_its_reason() {
    let schedule = hourly();
    let found = next(&schedule, 0, 60);
    assert!(found.at >= after(HOUR) && found.at <= after(HOUR + 400), "{found:?}");
    assert!(found.reason.to_string().contains("ttl"), "{found:?}");
    // Skipped hours are heeded too. START is 16:20 UTC.
    let mut skips = hourly();
    skips.hints.skip_hours = vec![17, 18, 19];
    assert_eq!(next(&skips, 0, 60).at.to_string(), "2026-11-20T20:00:00Z");
    let mut fresh = hourly();
    (fresh.hints, fresh.freshness) = (UpdateHints::default(), Some(Duration::from_secs(2 * HOUR)));
    let found = next(&fresh, 0, 60);
    assert!(
        found.at >= after(2 * HOUR) && found.reason.to_string().contains("Cache-Control"),
        "{found:?}"
    );
}

#[test]
fn polls_that_were_not_written_down_follow_from_the_interval() {
    let schedule = hourly();
    let interval = next(&schedule, 0, 0).at.since(START).as_secs();
    // It was polled at each interval while the gateway was alive.
    assert_eq!(next(&schedule, 2 * interval + 7, 2 * interval + 8).at, after(3 * interval));
    // What came due while it was off is due.
    assert_eq!(next(&schedule, interval - 1, 90 * interval).at, after(interval));
    // Far beyond what is followed, it has a place within its interval.
    let far = next(&schedule, 5000 * interval, 5000 * interval).at;
    assert!(far >= after(5000 * interval), "{far:?}");
    assert!(far <= after(5000 * interval + 25 * HOUR), "{far:?}");
}

/// A gateway that was killed had written down nothing since the poll of `START`.
#[test]
fn what_may_have_strayed_is_polled_once_more_rather_than_once_less() {
    let (feed, schedule) = (FeedName::new("news").unwrap(), hourly());
    let saved = Saved {
        feed: &feed,
        bounds: bounds(),
        schedule: &schedule,
        pending: None,
        half_life: None,
    };
    let interval = next(&schedule, 0, 0).at.since(START);
    let first = START.plus(interval);
    let after_first = |since: Duration, now: Duration| {
        let seen = PolledUntil::Seen(first.plus(since));
        saved.next(seen, first.plus(now)).at
    };
    let most = may_stray(interval);
    assert!(most >= Duration::from_secs(300), "{most:?}");
    assert_eq!(after_first(Duration::ZERO, most), first);
    assert_eq!(after_first(most - Duration::from_secs(1), most), first);
    assert_eq!(after_first(most, most), first.plus(interval));
    // What came due since nobody polled it is due, however long that was.
    let days = Duration::from_secs(72 * HOUR);
    assert_eq!(after_first(Duration::from_secs(600), days), first.plus(interval));
    assert_eq!(saved.next(PolledUntil::Seen(Time::MIN), first.plus(days)).at, first);
}

#[test]
fn a_pause_after_failures_is_kept_and_a_wrong_clock_stops_nothing() {
    let mut failing = hourly();
    failing.retry = Some((after(9 * HOUR), "it failed 7 times in a row".to_owned()));
    assert_eq!(next(&failing, 0, 60).at, after(9 * HOUR));
    assert_eq!(next(&failing, 0, 60).reason.to_string(), "it failed 7 times in a row");
    failing.retry = Some((after(90_000 * HOUR), String::new()));
    assert_eq!(next(&failing, 0, 60).at, after(60 + 7 * 24 * HOUR));
    let ahead = PollSchedule {
        polled: after(90_000 * HOUR),
        last_change: after(90_000 * HOUR),
        ..hourly()
    };
    assert!(next(&ahead, 0, 60).at < after(2 * HOUR));
}

#[test]
fn an_ordinary_row_of_unchanged_polls_is_never_written() {
    let schedule = hourly();
    let mut last = 0;
    for _ in 0..50 {
        let due = next(&schedule, last, last).at;
        assert!(!strays(&schedule, &schedule, due, last));
        // Each poll takes a second.
        last = due.since(START).as_secs() + 1;
    }
    let later = after(2 * HOUR);
    assert!(strays(&schedule, &schedule, later, 0));
    let mut failing = hourly();
    failing.retry = Some((later, String::new()));
    assert!(strays(&schedule, &failing, later, 0));
    assert!(!strays(&failing, &failing, later, 0));
}

#[test]
fn what_asks_for_intervals_is_written_when_it_changes() {
    let same = |change: fn(&mut PollSchedule)| {
        let mut other = hourly();
        change(&mut other);
        same_in_substance(Some(&hourly()), Some(&other))
    };
    assert!(same(|it| it.polled = after(HOUR)));
    assert!(!same(|it| it.hints.ttl = None));
    assert!(!same(|it| it.hints.skip_days = vec![1]));
    assert!(!same(|it| it.gap = None));
    assert!(!same(|it| it.freshness = Some(Duration::from_secs(60))));
    assert!(!same_in_substance(None, Some(&hourly())));
    // An age that grows with the answer is no news.
    let fresh =
        |seconds| Some(PollSchedule { freshness: Some(Duration::from_secs(seconds)), ..hourly() });
    assert!(same_in_substance(fresh(599).as_ref(), fresh(601).as_ref()));
}
