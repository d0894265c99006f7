use super::*;
use std::collections::VecDeque;
use tidegate_core::model::{Format, Hold, Time};
use tidegate_net::fetch::FetchBlame;
use tidegate_status::{ParsedNote, PollEnding, PollFailure};

const NOW: Time = Time::from_unix(1_795_191_605);
const GATEWAY: &str = "http://127.0.0.1:8080";

fn feed() -> FeedName {
    FeedName::new("harbour").unwrap()
}

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

fn failure(error: &str) -> PollFailure {
    PollFailure { error: error.to_owned(), blame: FetchBlame::Network, status: None }
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
    let events = vec![event(EventKind::Created, "b"), event(EventKind::Created, "a")];
    FeedFacts { polling, state, events, versions: HashMap::new(), contested: Vec::new() }
}

/// The same, and what happened since.
fn then(change: impl FnOnce(&mut FeedFacts)) -> FeedFacts {
    let mut facts = facts();
    change(&mut facts);
    facts
}

fn happened(events: impl IntoIterator<Item = Event>) -> FeedFacts {
    then(|facts| events.into_iter().for_each(|event| facts.events.insert(0, event)))
}

fn add_poll(polling: &mut PollStatus, poll: FinishedPoll) {
    let last = polling.polls.front().map(|last| last.at);
    let at = last.map_or(NOW, |last| last.plus(Duration::from_secs(1)));
    polling.polls.push_front(FinishedPoll { at, ..poll });
}

fn broken(why: &str) -> FeedFacts {
    then(|facts| {
        let document = facts.polling.document.as_mut().unwrap();
        (document.partial, document.entries) = (Some(why.to_owned()), 2);
    })
}

/// Who has seen the feed once.
fn teller() -> Storyteller {
    let mut teller = Storyteller::new(GATEWAY.to_owned(), "0123456789abcdef".to_owned());
    let [read] = &tell(&mut teller, 0, &facts())[..] else { panic!("it is one line") };
    assert_eq!(
        read,
        "read: The gateway read harbour: it has 4 posts for feed readers. /feeds/harbour"
    );
    teller
}

/// What is told at a second: each kind, sentence and path.
fn tell(teller: &mut Storyteller, second: u64, facts: &FeedFacts) -> Vec<String> {
    let lines = teller.tell(Duration::from_secs(second), &feed(), facts);
    let words = |line: StoryLine| {
        let path = line.address.strip_prefix(GATEWAY).unwrap();
        format!("{}: {} {path}", line.kind.word, line.sentence)
    };
    lines.into_iter().map(words).collect()
}

/// What is told of the second of two looks; of a third that sees the same, nothing.
fn told(now: &FeedFacts) -> Vec<String> {
    let mut teller = teller();
    let told = tell(&mut teller, 0, now);
    assert_eq!(tell(&mut teller, 0, now), Vec::<String>::new());
    told
}

#[test]
fn nothing_is_told_before_the_first_poll() {
    let unread = then(|facts| facts.polling.polls = VecDeque::new());
    let mut teller = Storyteller::new(GATEWAY.to_owned(), String::new());
    assert_eq!(teller.tell(Duration::ZERO, &feed(), &unread), []);
}

#[test]
fn events_are_told_in_the_order_in_which_they_happened() {
    let now = happened(
        [
            EventKind::Deleted,
            EventKind::Created,
            EventKind::Updated,
            EventKind::Retired,
            EventKind::Rekeyed,
            EventKind::Returned,
            EventKind::Discarded,
        ]
        .map(|kind| event(kind, "a")),
    );
    let at = "/feeds/harbour/items/a";
    assert_eq!(
        told(&now),
        [
            format!(
                "deletion: “About a” was withdrawn from harbour (changed: title): readers lose it, subscribers \
                 get its tombstone. {at}"
            ),
            format!("new: New in harbour: “About a”. {at}"),
            format!(
                "edit: “About a” in harbour was edited (changed: title): see its versions. {at}"
            ),
            format!(
                "scroll-off: “About a” left harbour (changed: title): that is no deletion, archives and the \
                 complete view keep it. {at}"
            ),
            format!(
                "rename: The publisher gave “About a” another id (changed: title): it is one item with two \
                 names, and readers see nothing twice. {at}"
            ),
            format!("item: Again in harbour: “About a”. {at}"),
            format!("item: “About a” in harbour was discarded (changed: title). {at}"),
        ]
    );
}

#[test]
fn an_edit_leads_to_the_difference_where_both_versions_are_kept() {
    let mut now = happened([event(EventKind::Updated, "a")]);
    let teller = teller();
    let new = teller.new_events(&feed(), &now.events);
    assert_eq!(new.iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::Updated]);
    let two = Count::new(2).unwrap();
    now.versions.insert((id("a"), Some(Tick::at(NOW))), (Count::ONE, two));
    let expected = "edit: “About a” in harbour was edited (changed: title): see the difference. \
                    /feeds/harbour/items/a?diff=1..2";
    assert_eq!(told(&now), [expected]);
}

#[test]
fn noise_is_what_changed_without_an_event_alone() {
    let now = then(|facts| {
        add_poll(&mut facts.polling, poll(4, 0));
        add_poll(&mut facts.polling, poll(2, 0));
    });
    let expected = "noise: 4 posts of harbour changed in what no reader sees, such as build date and comment counts: \
                    no new version, readers see nothing new. /feeds/harbour/about";
    assert_eq!(told(&now), [expected]);
    let edited = then(|facts| add_poll(&mut facts.polling, poll(3, 1)));
    assert_eq!(told(&edited), Vec::<String>::new());
    let failed = then(|facts| {
        let failure = Some(failure("it timed out"));
        add_poll(&mut facts.polling, FinishedPoll { failure, ..poll(3, 0) });
    });
    assert_eq!(told(&failed), Vec::<String>::new());
}

#[test]
fn troubles_of_the_publisher_are_told_when_they_come_and_when_they_are_over() {
    let mut teller = teller();
    let about = "/feeds/harbour/about";
    let cut = tell(&mut teller, 0, &broken("the document is cut (byte 12)"));
    let expected = format!(
        "broken: The publisher broke harbour (the document is cut; 2 posts are left): the others are not taken for \
         deleted, readers keep what was last good. {about}"
    );
    assert_eq!(cut, [expected]);
    assert!(tell(&mut teller, 0, &broken("it is cut elsewhere")).is_empty());
    let mended = tell(&mut teller, 0, &facts());
    assert_eq!(
        mended,
        [format!("mended: The publisher mended harbour: it is whole again. {about}")]
    );
    let fails = then(|facts| facts.polling.failure = Some(failure("the publisher answered 500")));
    let expected = format!(
        "broken: harbour could not be read (the publisher answered 500): readers keep what was last good. {about}"
    );
    assert_eq!(tell(&mut teller, 0, &fails), [expected]);
    assert!(tell(&mut teller, 0, &fails).is_empty());
    let over = format!("mended: The publisher answers for harbour again. {about}");
    assert_eq!(tell(&mut teller, 0, &facts()), [over]);
}

#[test]
fn a_hold_ends_by_a_repair_or_by_belief() {
    let held = then(|facts| facts.state.hold = Some(hold()));
    let mut teller = teller();
    let [line] = &teller.tell(Duration::ZERO, &feed(), &held)[..] else { panic!("it is one line") };
    let sentence = "The new harbour is held (4 of 4 items changed at once): readers keep what was last good until \
                    the publisher repairs it or you release it.";
    assert_eq!((line.kind, line.sentence.as_str()), (StoryKind::HELD, sentence));
    let command = "to believe it all the same: curl -X POST -H \"Authorization: Bearer 0123456789abcdef\" -d \
                   '{\"action\":\"release\"}' http://127.0.0.1:8080/api/v1/feeds/harbour/hold";
    assert_eq!(line.command.as_deref(), Some(command));
    assert!(line.print(false).ends_with(command));
    assert!(tell(&mut teller, 0, &held).is_empty());
    // What was new or edited meanwhile comes with the repair, and is told of each item.
    let mended = tell(&mut teller.clone(), 0, &happened([event(EventKind::Updated, "a")]));
    let expected = "hold over: The publisher repaired harbour: the hold is over, and no reader saw the broken posts. \
                    /feeds/harbour/about";
    assert_eq!((mended.len(), mended[0].as_str()), (2, expected));
    assert!(mended[1].starts_with("edit: “About a”"), "{mended:?}");
    // What was held is told at once.
    let edits = ["a", "b", "c"].map(|name| event(EventKind::Updated, name));
    let released = happened(edits.into_iter().chain([event(EventKind::Created, "d")]));
    let told = tell(&mut teller, 0, &released);
    assert_eq!(
        told,
        [
            "hold over: The held harbour was believed: 3 posts were edited. /feeds/harbour/about",
            "new: New in harbour: “About d”. /feeds/harbour/items/d",
        ]
    );
}

#[test]
fn a_conflict_is_told_in_place_of_the_edit_that_made_it() {
    let mut now = happened([event(EventKind::Updated, "a")]);
    now.contested = vec![id("a")];
    let mut teller = teller();
    let conflict = "conflict: “About a” was changed here and by another endpoint, neither knowing of the other: both \
                    versions are kept, and you can decide. /feeds/harbour/conflicts";
    assert_eq!(tell(&mut teller, 0, &now), [conflict]);
    assert!(tell(&mut teller, 0, &now).is_empty());
    now.events.insert(0, event(EventKind::Updated, "b"));
    now.contested.clear();
    let told = tell(&mut teller, 0, &now);
    let resolved = "resolved: “About a” is in conflict no more. /feeds/harbour/conflicts";
    assert!(told.len() == 2 && told[0].starts_with("edit: “About b”"), "{told:?}");
    assert_eq!(told[1], resolved);
}

#[test]
fn when_everything_was_told_that_is_told_once() {
    let mut teller = teller();
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let all = [
            then(|facts| facts.state.hold = Some(hold())),
            broken("it is cut"),
            then(|facts| {
                add_poll(&mut facts.polling, poll(4, 0));
                facts.contested = vec![id("x")];
            }),
            happened(
                [
                    EventKind::Created,
                    EventKind::Updated,
                    EventKind::Rekeyed,
                    EventKind::Retired,
                    EventKind::Deleted,
                ]
                .map(|kind| event(kind, "a")),
            ),
        ];
        for facts in &all {
            kinds.extend(teller.tell(Duration::ZERO, &feed(), facts).iter().map(|it| it.kind));
        }
        for epoch in 1..3 {
            let lines = teller.tell_of_log(Duration::ZERO, &feed(), epoch);
            kinds.extend(lines.iter().map(|it| it.kind));
        }
    }
    assert_eq!(kinds.iter().filter(|kind| **kind == StoryKind::ALL).count(), 1, "{kinds:?}");
    let promised: BTreeSet<&StoryKind> = kinds.iter().filter(|kind| kind.is_promised).collect();
    assert_eq!(promised.len(), StoryKind::PROMISED);
}

#[test]
fn what_happens_all_the_time_is_told_once_a_minute_of_each_feed() {
    let mut teller = teller();
    let other = FeedName::new("lighthouse").unwrap();
    teller.tell(Duration::ZERO, &other, &facts());
    let mut polled = facts();
    let mut count = |second: u64, feed: &FeedName| {
        add_poll(&mut polled.polling, poll(1, 0));
        teller.tell(Duration::from_secs(second), feed, &polled).len()
    };
    assert_eq!(count(0, &feed()), 1);
    assert_eq!(count(59, &feed()), 0);
    assert_eq!(count(59, &other), 1);
    assert_eq!(count(60, &feed()), 1);
}

#[test]
fn listeners_are_spoken_of_after_something_that_people_see() {
    let mut teller = teller();
    let log = |teller: &mut Storyteller| {
        let lines = teller.tell_of_log(Duration::ZERO, &feed(), 7);
        lines.into_iter().map(|line| (line.kind, line.sentence, line.address)).next()
    };
    assert_eq!(log(&mut teller), None);
    tell(&mut teller, 0, &happened([event(EventKind::Created, "c")]));
    let events = "Whoever listens was told at once that harbour changed (change 7 of the log); listen with curl -N.";
    let sup = "Whoever asks once a minute finds harbour among the feeds that changed, in one small SUP document.";
    for (kind, sentence, path) in
        [(StoryKind::EVENTS, events, "/events"), (StoryKind::SUP, sup, "/sup.json")]
    {
        let expected = (kind, sentence.to_owned(), format!("{GATEWAY}{path}"));
        assert_eq!(log(&mut teller), Some(expected));
    }
    assert_eq!(log(&mut teller), None);
}

#[test]
fn a_title_cannot_paint_the_terminal_nor_fill_it() {
    let mut hostile = event(EventKind::Created, "c");
    hostile.title = format!("\x1b[2J\nA\u{9b}31m{}", "é".repeat(500));
    let [line] = &teller().tell(Duration::ZERO, &feed(), &happened([hostile]))[..] else {
        panic!("it is one line");
    };
    let printed = line.print(false);
    assert!(!printed.contains(char::is_control), "{printed:?}");
    assert!(printed.contains("ééé…”") && printed.len() < 300, "{printed}");
}

#[test]
fn colour_marks_the_kind_and_nothing_else() {
    let deleted = happened([event(EventKind::Deleted, "c")]);
    let [line] = &teller().tell(Duration::from_secs(64), &feed(), &deleted)[..] else {
        panic!("it is one line");
    };
    let (plain, coloured) = (line.print(false), line.print(true));
    assert!(plain.starts_with(" 1:04  deletion    “About c”"), "{plain}");
    assert!(coloured.starts_with(" 1:04  \x1b[31mdeletion  \x1b[0m  “About c”"), "{coloured:?}");
    assert_eq!(coloured.replace("\x1b[31m", "").replace("\x1b[0m", ""), plain);
}
