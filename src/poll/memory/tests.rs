use super::*;
use crate::testing::double::{hold, hub_subscription};
use crate::testing::gateway;
use tidegate_core::model::Format;
use tidegate_core::model::testing::{self, NOW};
use tidegate_net::fetch::FetchAnswer;
use tidegate_status::PollEnding;

const URL: &str = "http://news.example/feed";
const PRINTS: BodyPrints = BodyPrints { wire: 1, body: 2 };

fn record() -> FeedRecord {
    testing::record("news")
}

fn state() -> FeedState {
    let state = FeedState::untouched(Format::Rss20, NOW);
    FeedState { revision: Revision(3), wire: 10, body: 20, ..state }
}

fn fetched() -> Fetched {
    let validators = Validators { etag: Some("e".into()), ..Validators::default() };
    Fetched { validators, ..gateway::fetched(URL, FetchAnswer::Same) }
}

fn validators(memory: &mut FeedMemory, at: Time) -> Validators {
    memory.request(&record(), Some(&state()), false, at).validators
}

#[test]
fn validators_are_dropped_now_and_then_until_the_document_was_read() {
    let mut memory = FeedMemory::new(&record(), NOW);
    memory.note_unchanged(&state(), None);
    memory.note_answer(&fetched(), true, NOW);
    let soon = NOW.plus(Duration::from_secs(60));
    assert_eq!(validators(&mut memory, soon).etag.as_deref(), Some("e"));
    // A 304 that does not say how long it is fresh leaves what the document said.
    let hour = Some(Duration::from_secs(3600));
    for (answer, freshness, kept) in [
        (FetchAnswer::Same, hour, hour),
        (FetchAnswer::NotModified, None, hour),
        (FetchAnswer::Same, None, None),
    ] {
        memory.note_answer(&Fetched { answer, freshness, ..fetched() }, true, NOW);
        assert_eq!(memory.schedule(NOW).freshness, kept);
    }
    let day = NOW.plus(REFRESH_EVERY);
    for _ in 0..2 {
        // The first refresh may fail.
        assert!(validators(&mut memory, day).is_empty());
    }
    memory.note_answer(&fetched(), true, day);
    assert!(!validators(&mut memory, day).is_empty());
    let before = memory.state.clone();
    validators(&mut memory, day.plus(REFRESH_EVERY));
    memory.note_answer(&fetched(), true, NOW);
    assert!(memory.state.refreshed != before.refreshed);
    assert!(!memory.differs_from(&before, false), "a refresh alone is not written down");
}

#[test]
fn where_a_feed_is_redirected_to_is_asked_directly_for_a_day() {
    let mut memory = FeedMemory::new(&record(), NOW);
    let moved = Fetched { moved_to: Some("http://b.example/".into()), ..fetched() };
    let mut start = |hours: u32| {
        let at = NOW.plus(Duration::from_secs(3600) * hours);
        let start = memory.request(&record(), Some(&state()), false, at).start;
        memory.note_answer(&moved, true, at);
        start.is_some()
    };
    let asked: Vec<bool> = [0, 1, 12, 23, 24, 25].into_iter().map(&mut start).collect();
    assert_eq!(asked, [false, true, true, true, false, true]);
    // Either address may have died: after a failure the other one is asked, whole.
    memory.note_unchanged(&state(), None);
    memory.note_answer(&moved, true, NOW);
    for (hours, asks_there) in [(25, true), (26, false), (27, true), (50, false), (51, true)] {
        let request = memory.request(&record(), Some(&state()), false, NOW.plus(HOUR * hours));
        assert_eq!(request.start.is_some(), asks_there, "{hours}");
        assert_eq!(request.validators.is_empty(), memory.state.failures > 0, "{hours}");
        memory.note_failure("the publisher answered 404");
        assert_eq!(memory.address() == "http://b.example/", !asks_there, "{hours}");
    }
}

/// The server answers 304 to any date, because its own never changes or is older than its documents.
#[test]
fn a_date_that_the_document_disproves_is_no_validator() {
    let old = "Thu, 01 Jan 1970 00:00:00 GMT";
    let at = |text: &str| Fetched {
        answer: FetchAnswer::Document(gateway::document("", PRINTS)),
        validators: Validators { last_modified: Some(text.into()), ..Validators::default() },
        ..fetched()
    };
    let take_in = |memory: &mut FeedMemory, fetched: &Fetched, newest: Option<Time>| {
        memory.note_document(PRINTS, true, false, state().revision);
        memory.compare_validators(&fetched.validators, newest, true);
        memory.note_answer(fetched, true, NOW);
        validators(memory, NOW).last_modified
    };
    let mut memory = FeedMemory::new(&record(), NOW);
    assert_eq!(take_in(&mut memory, &at(old), Some(Time::from_unix(1))), None);
    // It stays invalid when the same document is received again.
    memory.note_answer(&Fetched { answer: FetchAnswer::Same, ..at(old) }, true, NOW);
    assert_eq!(validators(&mut memory, NOW).last_modified, None);
    let mut memory = FeedMemory::new(&record(), NOW);
    assert_eq!(take_in(&mut memory, &at(old), None).as_deref(), Some(old));
    assert_eq!(take_in(&mut memory, &at(old), None), None, "it stood still");
    assert_eq!(take_in(&mut memory, &at(old), None), None);
    let new = "Fri, 02 Jan 1970 00:00:00 GMT";
    assert_eq!(take_in(&mut memory, &at(new), None).as_deref(), Some(new), "it moves again");
}

#[test]
fn an_etag_that_stays_while_the_items_change_is_no_validator() {
    let judge = |memory: &mut FeedMemory, body: u128, items_changed: bool| {
        let prints = BodyPrints { wire: body, body };
        let answer = FetchAnswer::Document(gateway::document("", prints));
        let fetched = Fetched { answer, ..fetched() };
        memory.note_document(prints, true, false, state().revision);
        memory.compare_validators(&fetched.validators, None, items_changed);
        memory.note_answer(&fetched, true, NOW);
        validators(memory, NOW).etag.is_some()
    };
    let mut memory = FeedMemory::new(&record(), NOW);
    for (body, items_changed, is_sent) in [
        (1, true, true),
        // A weak one may stay where only other bytes changed.
        (2, false, true),
        // A document that was held back is taken in.
        (2, true, true),
        (3, true, false),
        (4, false, false),
    ] {
        assert_eq!(judge(&mut memory, body, items_changed), is_sent, "{body} {items_changed}");
    }
    memory.note_answer(&Fetched { answer: FetchAnswer::NotModified, ..fetched() }, true, NOW);
    assert_eq!(validators(&mut memory, NOW).etag, None);
}

#[tokio::test]
async fn an_etag_that_stays_is_found_out_at_the_next_refresh() {
    let gateway = gateway::Gateway::with_news("one").await;
    gateway.publisher.says("two", "1");
    assert_eq!(gateway.poll().await.outcome, PollEnding::NotModified);
    gateway.clock.set(NOW.plus(REFRESH_EVERY));
    assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
    gateway.publisher.says("one", "1");
    assert_eq!(gateway.poll().await.outcome, PollEnding::Changed);
}

#[test]
fn validators_of_who_has_credentials_are_theirs_and_are_not_written_down() {
    for (credentials_id, is_written) in [(0, true), (7, false)] {
        let mut memory = FeedMemory::new(&record(), NOW);
        memory.note_unchanged(&state(), None);
        let given = Validators { credentials_id, ..fetched().validators };
        memory.note_answer(&Fetched { validators: given, ..fetched() }, true, NOW);
        let validators = validators(&mut memory, NOW);
        let sent = (validators.etag.as_deref(), validators.credentials_id);
        assert_eq!(sent, (Some("e"), credentials_id));
        let written = memory.write(NOW);
        assert_eq!((written.etag.is_some(), written.body.is_some()), (is_written, is_written));
        assert_eq!(memory.state.etag.as_deref(), Some("e"), "this program goes on with it");
    }
}

#[test]
fn refreshes_are_spread_after_a_restart() {
    let mut early = 0;
    for n in 0..200 {
        let feed = testing::record(&format!("feed{n}"));
        let mut poll = FeedMemory::new(&feed, NOW).write(NOW);
        poll.refreshed = Some(NOW.minus(REFRESH_EVERY * 30));
        poll.etag = Some("e".into());
        poll.body = Some(state().body);
        let mut memory = FeedMemory::from_stored(poll, NOW);
        let half = NOW.plus(REFRESH_EVERY / 2);
        early +=
            u32::from(memory.request(&feed, Some(&state()), false, half).validators.is_empty());
        assert!(!memory.request(&feed, Some(&state()), false, NOW).validators.is_empty());
    }
    assert!((50..150).contains(&early), "{early}");
}

#[test]
fn the_states_own_prints_count_once_somebody_else_has_decided() {
    let mut state = state();
    let mut memory = FeedMemory::new(&record(), NOW);
    assert_eq!(memory.prints(URL, None), None);
    assert_eq!(memory.prints(URL, Some(&state)).map(|p| p.body), Some(20));
    memory.note_document(PRINTS, true, false, state.revision);
    assert_eq!(memory.prints(URL, Some(&state)), Some(PRINTS));
    state.revision.0 += 1;
    assert_eq!(memory.prints(URL, Some(&state)).map(|p| p.body), Some(20));
}

#[test]
fn equal_observations_are_counted_since_the_last_commit() {
    let mut state = state();
    let mut memory = FeedMemory::new(&record(), NOW);
    memory.note_document(PRINTS, true, false, state.revision);
    assert_eq!(memory.note_unchanged(&state, None), Some(1));
    assert_eq!(memory.note_unchanged(&state, None), Some(2));
    // A judgement without a commit counts as an unchanged observation.
    memory.note_document(PRINTS, true, false, state.revision);
    assert_eq!(memory.note_unchanged(&state, None), Some(4));
    state.revision.0 += 1;
    assert_eq!(memory.note_unchanged(&state, None), Some(1));
    memory.restart_observations(state.revision);
    assert_eq!(memory.note_unchanged(&state, None), Some(1));
    memory.note_document(PRINTS, false, false, state.revision);
    assert_eq!(memory.note_unchanged(&state, None), None);
}

#[test]
fn only_what_a_restart_should_know_is_written() {
    let mut memory = FeedMemory::new(&record(), NOW);
    memory.note_poll_end(None, NOW);
    let before = memory.state.clone();
    memory.note_answer(&fetched(), true, NOW);
    memory.note_poll_end(None, NOW.plus(WRITE_EVERY));
    assert!(!memory.differs_from(&before, false));
    assert!(memory.differs_from(&before, true), "of a document that was committed");
    // Of a hundred equal failures, only a few are stored.
    let written = (0..100)
        .filter(|_| {
            let before = memory.state.clone();
            memory.note_failure("no answer");
            memory.differs_from(&before, false)
        })
        .count();
    assert_eq!(written, 7);
    let before = memory.state.clone();
    memory.note_success(NOW);
    assert!(memory.differs_from(&before, false));
}

#[test]
fn the_times_of_polls_are_written_once_an_hour_or_in_a_quarter_of_an_interval() {
    let (minute, day) = (Duration::from_secs(60), Duration::from_secs(86_400));
    let mut memory = FeedMemory::new(&record(), NOW);
    assert!(!memory.is_unwritten(NOW.plus(minute), NOW) && !memory.is_behind(), "there was none");
    memory.note_poll_end(None, NOW);
    assert!(memory.is_unwritten(NOW.plus(minute), NOW) && memory.is_behind());
    memory.write(NOW);
    for (interval, within) in [(minute, WRITE_EVERY), (day, day / 4)] {
        let is_due = |memory: &FeedMemory, now: Time| memory.is_unwritten(now.plus(interval), now);
        memory.note_poll_end(None, NOW.plus(within));
        assert!(!is_due(&memory, NOW.plus(within)) && memory.is_behind());
        memory.note_poll_end(None, NOW.plus(within + minute));
        assert!(is_due(&memory, NOW.plus(within + minute)));
        // The clock was set back meanwhile.
        assert!(is_due(&memory, NOW.minus(minute)));
    }
}

#[test]
fn polls_in_a_row_that_say_that_a_feed_is_gone_are_counted() {
    let mut memory = FeedMemory::new(&record(), NOW);
    for _ in 0..40 {
        memory.note_failure("the publisher answered 500");
    }
    let mut counted = |asked_for| {
        memory.note_gone("the publisher answered 410", asked_for);
        (memory.state.gone, memory.state.failures)
    };
    // All of them count as failures.
    assert_eq!([counted(true), counted(true)], [(1, 41), (1, 42)]);
    assert_eq!([counted(false), counted(false)], [(2, 43), (3, 44)]);
    // The counts survive a restart.
    let mut memory = FeedMemory::from_stored(memory.write(NOW), NOW);
    memory.note_gone("the publisher answered 410", false);
    assert_eq!((memory.state.gone, memory.state.failures), (4, 45));
    memory.note_failure("the publisher answered 500");
    assert_eq!((memory.state.gone, memory.state.failures), (0, 46));
    memory.note_gone("the publisher answered 410", false);
    assert_eq!((memory.state.gone, memory.state.failures), (1, 47));
    memory.note_success(NOW);
    assert_eq!((memory.state.gone, memory.state.failures), (0, 0));
}

#[test]
fn a_restart_makes_a_pending_decision_in_time() {
    let bounds = Bounds::new(Duration::from_secs(3600), Duration::from_secs(86_400));
    let mut memory = FeedMemory::new(&record(), NOW);
    memory.note_poll_end(None, NOW);
    let soon = NOW.plus(Duration::from_secs(1800));
    assert_eq!(memory.resume(bounds, Some(soon), NOW).unwrap().at, soon);
    assert!(memory.resume(bounds, None, NOW).unwrap().at > soon);
    // A push whose poll was not made yet causes it now.
    let keys = crate::subscribe::mint(&record().name).unwrap();
    memory.state.subscription = Some(Box::new(hub_subscription("news", keys)));
    for (pushed, is_due) in [(None, false), (Some(NOW), false), (Some(soon), true)] {
        memory.state.subscription.as_mut().unwrap().last_push = pushed;
        assert_eq!(memory.resume(bounds, None, soon).unwrap().at == soon, is_due);
    }
}

/// A feed never read before counts as new, however long it failed.
#[test]
fn failures_before_the_first_document_say_nothing_of_how_often_it_changes() {
    let mut memory = FeedMemory::new(&record(), NOW);
    memory.note_failure("no answer");
    memory.note_poll_end(None, NOW);
    let later = NOW.plus(Duration::from_secs(86_400 * 30));
    memory.update_rate(true, None, later);
    let schedule = memory.state.schedule.unwrap();
    assert_eq!((schedule.last_change, schedule.gap), (later, None));
}

const HOUR: Duration = Duration::from_secs(3600);

fn state_of(current: u32) -> FeedState {
    FeedState { current, ..state() }
}

fn created(count: u32) -> EventCounts {
    [(EventKind::Created, count), (EventKind::Retired, 3)].into()
}

#[test]
fn a_document_without_an_item_of_the_last_one_is_whole_where_it_says_anything_of_items_between() {
    for (came, is_whole) in [(0, None), (4, Some(false)), (10, Some(true))] {
        let turnover = Turnover::between(&state_of(10), &state_of(10), &created(came));
        assert_eq!(turnover.map(Turnover::is_whole), is_whole);
    }
    let counts = created(10);
    let hold = Some(hold(NOW));
    for (before, after) in [
        (state_of(0), state_of(10)),
        (state_of(10), FeedState { says_complete: true, ..state_of(10) }),
        (state_of(10), FeedState { upstream_until: Some("x".to_owned()), ..state_of(10) }),
        (state_of(10), FeedState { source: 7, ..state_of(10) }),
        (FeedState { hold: hold.clone(), ..state_of(10) }, state_of(10)),
        (state_of(10), FeedState { hold, ..state_of(10) }),
    ] {
        assert_eq!(Turnover::between(&before, &after, &counts), None);
    }
}

#[test]
fn half_of_the_window_at_the_pace_of_the_last_documents() {
    let tenth = Turnover { came: 1, items: 10 };
    let known = update_overlap(Overlap::default(), tenth, HOUR, NOW);
    assert_eq!(known, Overlap { half_life: Some(5 * HOUR), missed: 0, last_missed: None });
    // First half of it at once, then gradually longer.
    let known = update_overlap(known, Turnover { came: 5, items: 10 }, HOUR, NOW);
    assert_eq!(known.half_life, Some(HOUR));
    assert_eq!(update_overlap(known, tenth, HOUR, NOW).half_life, Some(3 * HOUR));
    let later = NOW.plus(HOUR);
    let missed = update_overlap(known, Turnover { came: 12, items: 10 }, HOUR, later);
    assert_eq!((missed.half_life, missed.missed), (Some(HOUR / 2), 1));
    assert_eq!(missed.last_missed, Some(later));
    assert_eq!(update_overlap(missed, tenth, HOUR, later.plus(HOUR)).last_missed, Some(later));
}
