use super::*;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidegate_core::model::{Format, Tick, Time};
use tidegate_net::fetch::FetchBlame;
use tidegate_status::{ParsedNote, PollEnding, PollFailure, PollTotals};

const NOW: Time = Time::from_unix(1_795_191_605);

fn id(name: &str) -> SyncId {
    SyncId::new(name).unwrap()
}

fn event(kind: EventKind, name: &str) -> Event {
    Event {
        kind,
        id: id(name),
        native_id: format!("urn:{name}"),
        old_native_id: None,
        title: format!("About {name}"),
        tick: Some(Tick::at(NOW)),
        reason: "changed: title".to_owned(),
        at: NOW,
        seen_gone: None,
    }
}

fn poll(rewritten: u32, updated: u32) -> FinishedPoll {
    FinishedPoll {
        at: NOW,
        took: Duration::from_millis(3),
        outcome: PollEnding::Changed,
        asked_for: false,
        bytes: 100,
        committed: true,
        is_apart: false,
        entries: Some(4),
        rewritten,
        counts: BTreeMap::from([(EventKind::Updated, updated)]),
        failure: None,
        notes: Vec::new(),
    }
}

fn hold() -> Hold {
    Hold {
        reason: "4 of 4 items changed at once".to_owned(),
        kind: "mass-changed".to_owned(),
        since: NOW,
        row_since: NOW,
        observations: 1,
        documents: 1,
        body: 1,
        source: 0,
        kept: 0,
        decision: None,
    }
}

/// A feed of four items at its first look.
fn facts() -> FeedFacts {
    let mut polling = PollStatus::default();
    add_poll(&mut polling, poll(0, 0));
    polling.document = Some(ParsedNote { at: NOW, entries: 4, partial: None, warnings: vec![] });
    let mut state = FeedState::untouched(Format::Atom10, NOW);
    (state.living, state.current) = (4, 4);
    FeedFacts {
        polling,
        state,
        events: vec![event(EventKind::Created, "b"), event(EventKind::Created, "a")],
        contested: Vec::new(),
    }
}

fn add_poll(polling: &mut PollStatus, poll: FinishedPoll) {
    polling.totals.add(&poll);
    polling.polls.push_front(poll);
}

fn break_document(facts: &mut FeedFacts, why: Option<&str>) {
    if let Some(document) = &mut facts.polling.document {
        document.partial = why.map(str::to_owned);
        document.entries = if why.is_some() { 2 } else { 4 };
    }
}

/// A follower that has looked once.
fn follower() -> FeedFollower {
    let mut follower = FeedFollower::new(FeedName::new("news").unwrap());
    assert_eq!(follower.incidents(&facts()), [Incident::FirstRead { items: 4 }]);
    follower
}

fn item(event: Event) -> Incident {
    Incident::Item { event, versions: None }
}

#[test]
fn nothing_is_told_before_the_first_poll_and_nothing_twice() {
    let mut follower = FeedFollower::new(FeedName::new("news").unwrap());
    let mut unread = facts();
    unread.polling.totals = PollTotals::default();
    unread.polling.polls = VecDeque::new();
    assert_eq!(follower.incidents(&unread), []);
    assert_eq!(follower.incidents(&facts()), [Incident::FirstRead { items: 4 }]);
    assert_eq!(follower.incidents(&facts()), []);
}

#[test]
fn events_are_told_in_the_order_in_which_they_happened() {
    let mut follower = follower();
    let mut now = facts();
    let (deleted, created) = (event(EventKind::Deleted, "a"), event(EventKind::Created, "c"));
    now.events.insert(0, deleted.clone());
    now.events.insert(0, created.clone());
    assert_eq!(follower.incidents(&now), [item(deleted), item(created)]);
    assert_eq!(follower.incidents(&now), []);
}

#[test]
fn noise_is_what_changed_without_an_event_alone() {
    let mut follower = follower();
    let mut now = facts();
    add_poll(&mut now.polling, poll(4, 0));
    add_poll(&mut now.polling, poll(2, 0));
    assert_eq!(follower.incidents(&now), [Incident::Noise { items: 4 }]);
    // Not those of the last look again.
    assert_eq!(follower.incidents(&now), []);
    add_poll(&mut now.polling, poll(3, 1));
    assert_eq!(follower.incidents(&now), []);
    let failure =
        PollFailure { error: "it timed out".to_owned(), blame: FetchBlame::Network, status: None };
    add_poll(&mut now.polling, FinishedPoll { failure: Some(failure), ..poll(3, 0) });
    assert_eq!(follower.incidents(&now), []);
}

#[test]
fn a_part_of_a_document_is_told_when_it_comes_and_when_it_is_over() {
    let mut follower = follower();
    let mut now = facts();
    break_document(&mut now, Some("it breaks off"));
    let broken = Incident::Broken { why: "it breaks off".to_owned(), entries: 2 };
    assert_eq!(follower.incidents(&now), [broken]);
    break_document(&mut now, Some("it breaks off elsewhere"));
    assert_eq!(follower.incidents(&now), []);
    break_document(&mut now, None);
    assert_eq!(follower.incidents(&now), [Incident::Mended]);
}

#[test]
fn a_failure_is_told_when_it_comes_and_when_it_is_over() {
    let mut follower = follower();
    let mut now = facts();
    let error = "the publisher answered 500".to_owned();
    let failure =
        PollFailure { error: error.clone(), blame: FetchBlame::Upstream, status: Some(500) };
    now.polling.failure = Some(failure);
    assert_eq!(follower.incidents(&now), [Incident::Failed { error }]);
    assert_eq!(follower.incidents(&now), []);
    assert_eq!(follower.incidents(&facts()), [Incident::Recovered]);
}

#[test]
fn a_hold_ends_by_a_repair_or_by_belief() {
    let mut follower = follower();
    let mut held = facts();
    held.state.hold = Some(hold());
    let reason = hold().reason;
    assert_eq!(follower.clone().incidents(&held), [Incident::Held { reason: reason.clone() }]);
    assert_eq!(follower.incidents(&held), [Incident::Held { reason }]);
    assert_eq!(follower.incidents(&held), []);
    // What was new or edited meanwhile comes with the repair, and is told of each item.
    let mut mended = facts();
    let edit = event(EventKind::Updated, "a");
    mended.events.insert(0, edit.clone());
    let told = follower.clone().incidents(&mended);
    assert_eq!(told, [Incident::HoldOver { believed: None }, item(edit)]);
    // What was held is told at once.
    let mut released = facts();
    for name in ["a", "b", "c"] {
        released.events.insert(0, event(EventKind::Updated, name));
    }
    let new = event(EventKind::Created, "d");
    released.events.insert(0, new.clone());
    let told = follower.incidents(&released);
    assert_eq!(told, [Incident::HoldOver { believed: Some(3) }, item(new)]);
}

#[test]
fn a_conflict_is_told_in_place_of_the_edit_that_made_it() {
    let mut follower = follower();
    let mut now = facts();
    now.events.insert(0, event(EventKind::Updated, "a"));
    now.contested = vec![id("a")];
    let title = "About a".to_owned();
    let conflict = Incident::Conflict { item: id("a"), title: title.clone() };
    assert_eq!(follower.incidents(&now), [conflict]);
    assert_eq!(follower.incidents(&now), []);
    let other = event(EventKind::Updated, "b");
    now.events.insert(0, event(EventKind::Updated, "a"));
    now.events.insert(0, other.clone());
    now.contested.clear();
    assert_eq!(follower.incidents(&now), [item(other), Incident::Resolved { title }]);
}
