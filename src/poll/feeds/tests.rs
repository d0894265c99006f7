use super::*;
use tidegate_core::model::EventKind;
use tidegate_core::model::testing::{at, record};
use tidegate_status::FetchBlame;

const DAY: i64 = 86_400;

fn feed() -> FeedPolling {
    let record = record("news");
    let memory = FeedMemory::new(&record, at(0));
    FeedPolling::new(Arc::new(record), memory)
}

fn polled(entry: &mut FeedPolling, at: Time, failure: Option<&str>) {
    let (blame, status) = (FetchBlame::Upstream, None);
    let failure = failure.map(|error| PollFailure { error: error.to_owned(), blame, status });
    let failures = &mut entry.memory.state.failures;
    *failures = if failure.is_some() { *failures + 1 } else { 0 };
    let outcome = if failure.is_some() { PollEnding::Failed } else { PollEnding::Unchanged };
    let note = FinishedPoll { failure, ..FinishedPoll::new(at, outcome) };
    entry.add(note, None, false);
}

fn stands(entry: &FeedPolling) -> (Option<Time>, Option<Time>) {
    let summary = entry.summarize();
    (summary.read, summary.stale_after)
}

/// There may be a million feeds.
#[test]
fn a_feed_takes_few_bytes() {
    let sizes = [size_of::<FeedCell>(), size_of::<PlannedPoll>()];
    assert!(sizes[0] <= 880 && sizes[1] <= 32, "{sizes:?}");
}

#[test]
fn a_feed_is_stale_after_three_intervals_and_a_day_at_least() {
    let mut entry = feed();
    assert_eq!(stands(&entry), (None, None));
    entry.live.since = Some(at(0));
    entry.plan(PlannedPoll::new(at(DAY), "it is new"));
    assert_eq!(stands(&entry), (Some(at(0)), Some(at(3 * DAY))));
    polled(&mut entry, at(DAY), None);
    entry.plan(PlannedPoll::new(at(DAY + 600), "as usual"));
    assert_eq!(stands(&entry), (Some(at(DAY)), Some(at(2 * DAY))));
    // One that is put off because it fails is no less stale.
    polled(&mut entry, at(DAY + 600), Some("it does not answer"));
    entry.plan(PlannedPoll::new(at(5 * DAY), "it fails"));
    assert_eq!(stands(&entry), (Some(at(DAY)), Some(at(2 * DAY))));
    // If it failed before the start, the time of its last reading is unknown.
    let mut entry = feed();
    entry.memory.state.failures = 7;
    entry.live.since = Some(at(0));
    entry.plan(PlannedPoll::new(at(5 * DAY), "it fails"));
    assert_eq!(stands(&entry), (Some(at(0)), Some(at(DAY))));
}

#[test]
fn durations_are_counted_between_bounds() {
    let mut totals = PollTotals::default();
    for millis in [0, 50, 51, 1000, 60_000, 60_001, 9_000_000] {
        totals.add(&FinishedPoll { took: Duration::from_millis(millis), ..quiet(0) });
    }
    assert_eq!(totals.durations, [2, 1, 0, 0, 1, 0, 0, 0, 0, 1, 2]);
    assert_eq!(totals.durations.iter().sum::<u64>(), totals.polls());
}

fn quiet(n: u32) -> FinishedPoll {
    FinishedPoll {
        took: Duration::from_millis(3),
        asked_for: n.is_multiple_of(7),
        bytes: u64::from(n),
        ..FinishedPoll::new(Time::from_unix(i64::from(n)), PollEnding::NotModified)
    }
}

#[test]
fn the_newest_polls_come_back_as_they_were() {
    let mut log = PollLog::default();
    let loud = |n: u32| FinishedPoll {
        outcome: PollEnding::Changed,
        committed: true,
        is_apart: true,
        entries: Some(3),
        counts: BTreeMap::from([(EventKind::Created, 2)]),
        notes: vec![format!("note {n}")],
        ..quiet(n)
    };
    let note = |n: u32| if n.is_multiple_of(3) { loud(n) } else { quiet(n) };
    for n in 0..52 {
        log.push(note(n));
    }
    let mut expected: Vec<_> = (32..52).rev().map(note).collect();
    // Only the newest poll has its notes.
    expected.iter_mut().skip(1).for_each(|poll| poll.notes = Vec::new());
    assert_eq!(Vec::from(log.polls()), expected);
    assert_eq!(log.polls().len(), POLLS_KEPT);
}

#[test]
fn usual_polls_take_a_few_bytes_and_clocks_may_leap() {
    let mut log = PollLog::default();
    let usual = |at| FinishedPoll { at, asked_for: false, ..quiet(0) };
    (0..100).for_each(|n| log.push(usual(at(660 * n))));
    assert!(log.polls.capacity() <= 160, "{}", log.polls.capacity());
    for leap in [i64::MAX, i64::MIN, 0] {
        let took = Duration::MAX;
        log.push(FinishedPoll { bytes: u64::MAX, took, ..usual(Time::from_unix(leap)) });
        let poll = log.polls().remove(0).unwrap();
        assert_eq!((poll.at, poll.bytes), (Time::from_unix(leap), u64::MAX));
        assert_eq!(poll.took.as_millis(), u128::from(u32::MAX), "the most that is kept");
    }
}
