use super::*;
use tidegate_core::model::Format;
use tidegate_core::model::testing::{NOW, name};
use tidegate_poll::testing::double;
use tidegate_status::{ParsedNote, PollEnding};

const GATEWAY: &str = "http://127.0.0.1:8080";

fn feed() -> FeedName {
    name("harbour")
}

fn event(kind: EventKind, name: &str) -> Event {
    Event {
        id: SyncId::new(name).unwrap(),
        native_id: format!("urn:{name}"),
        title: format!("About {name}"),
        reason: "changed: title".to_owned(),
        at: NOW,
        ..double::event(kind, Some(Tick::at(NOW)))
    }
}

fn poll(rewritten: u32, updated: u32) -> FinishedPoll {
    FinishedPoll {
        took: Duration::from_millis(3),
        bytes: 100,
        committed: true,
        entries: Some(4),
        rewritten,
        counts: BTreeMap::from([(EventKind::Updated, updated)]),
        ..FinishedPoll::new(NOW, PollEnding::Changed)
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
fn happened(events: impl IntoIterator<Item = Event>) -> FeedFacts {
    let mut facts = facts();
    events.into_iter().for_each(|event| facts.events.insert(0, event));
    facts
}

fn add_poll(polling: &mut PollStatus, poll: FinishedPoll) {
    let last = polling.polls.front().map(|last| last.at);
    let at = last.map_or(NOW, |last| last.plus(Duration::from_secs(1)));
    polling.polls.push_front(FinishedPoll { at, ..poll });
}

/// Who has seen the feed once.
fn teller() -> Storyteller {
    let mut teller = Storyteller::new(GATEWAY.to_owned(), "0123456789abcdef".to_owned());
    let [read] = &tell(&mut teller, 0, &facts())[..] else { panic!("it is one line") };
    let expected =
        "read: The gateway read harbour: it has 4 posts for feed readers. /feeds/harbour";
    assert_eq!(read, expected);
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

#[test]
fn events_are_told_in_the_order_in_which_they_happened() {
    use EventKind::{Created, Deleted, Discarded, Rekeyed, Retired, Returned, Updated};
    let kinds = [Deleted, Created, Updated, Retired, Rekeyed, Returned, Discarded];
    let now = happened(kinds.map(|kind| event(kind, "a")));
    let mut teller = teller();
    insta::assert_snapshot!(tell(&mut teller, 0, &now).join("\n"));
    assert_eq!(tell(&mut teller, 0, &now), Vec::<String>::new(), "who sees the same again");
}

#[test]
fn what_happens_all_the_time_is_told_once_a_minute_of_each_feed() {
    let mut teller = teller();
    let other = name("lighthouse");
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
fn a_title_cannot_paint_the_terminal_nor_fill_it() {
    let mut hostile = event(EventKind::Created, "c");
    hostile.title = format!("\x1b[2J\nA\u{9b}31m{}", "é".repeat(500));
    let [line] = &teller().tell(Duration::ZERO, &feed(), &happened([hostile]))[..] else {
        panic!("it is one line");
    };
    let printed = line.print(false);
    assert!(!printed.contains(char::is_control), "{printed:?}");
    assert!(printed.contains("ééé…”") && printed.len() < 300, "{printed}");
    // Colour marks the kind and nothing else.
    let deleted = happened([event(EventKind::Deleted, "c")]);
    let [line] = &teller().tell(Duration::from_secs(64), &feed(), &deleted)[..] else {
        panic!("it is one line");
    };
    let (plain, coloured) = (line.print(false), line.print(true));
    assert!(plain.starts_with(" 1:04  deletion    “About c”"), "{plain}");
    assert!(coloured.starts_with(" 1:04  \x1b[31mdeletion  \x1b[0m  “About c”"), "{coloured:?}");
    assert_eq!(coloured.replace("\x1b[31m", "").replace("\x1b[0m", ""), plain);
}
