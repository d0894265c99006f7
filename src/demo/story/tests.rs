use super::*;
use crate::demo::Incident;
use std::collections::BTreeSet;
use tidegate_core::model::{Count, Event, EventKind, FeedName, SyncId, Tick, Time};

const TOKEN: &str = "0123456789abcdef";

fn feed() -> FeedName {
    FeedName::new("harbour").unwrap()
}

fn teller() -> Storyteller {
    Storyteller::new("http://127.0.0.1:8080".to_owned(), TOKEN.to_owned())
}

fn item(kind: EventKind) -> Incident {
    let now = Time::from_unix(1_795_191_605);
    let event = Event {
        kind,
        id: SyncId::new("x.1").unwrap(),
        native_id: "notice-1@harbour.example".to_owned(),
        old_native_id: Some("old-1@harbour.example".to_owned()),
        title: "Gulls".to_owned(),
        tick: Some(Tick::at(now)),
        reason: "changed: title".to_owned(),
        at: now,
        seen_gone: None,
    };
    Incident::Item { event, versions: None }
}

/// An incident of each kind, and what is told of it by who has told nothing before but a new post.
fn incidents() -> Vec<Incident> {
    let text = |text: &str| text.to_owned();
    let mut edit = item(EventKind::Updated);
    if let Incident::Item { versions, .. } = &mut edit {
        *versions = Some((Count::ONE, Count::new(2).unwrap()));
    }
    vec![
        Incident::FirstRead { items: 10 },
        item(EventKind::Created),
        edit,
        item(EventKind::Updated),
        item(EventKind::Deleted),
        item(EventKind::Retired),
        item(EventKind::Rekeyed),
        item(EventKind::Returned),
        item(EventKind::Discarded),
        Incident::Noise { items: 9 },
        Incident::Broken { why: text("the document is cut (byte 12)"), entries: 4 },
        Incident::Mended,
        Incident::Failed { error: text("the publisher answered 500") },
        Incident::Recovered,
        Incident::Held { reason: text("10 of 10 items changed at once") },
        Incident::HoldOver { believed: None },
        Incident::HoldOver { believed: Some(10) },
        Incident::Conflict { item: SyncId::new("x.1").unwrap(), title: text("Tides") },
        Incident::Resolved { title: text("Tides") },
        Incident::Logged { epoch: 7 },
        Incident::Logged { epoch: 8 },
    ]
}

#[test]
fn each_incident_is_a_sentence_and_an_address() {
    let mut teller = teller();
    let lines: Vec<String> = (1..)
        .zip(incidents())
        .flat_map(|(second, incident)| {
            teller.tell(Duration::from_secs(second * 7), &feed(), &incident)
        })
        .map(|line| line.print(false))
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn when_everything_was_told_that_is_told_once() {
    let mut teller = teller();
    let mut told = Vec::new();
    for incident in incidents().into_iter().chain(incidents()) {
        told.extend(teller.tell(Duration::ZERO, &feed(), &incident));
    }
    let all = told.iter().filter(|line| line.kind == StoryKind::All);
    assert_eq!(all.count(), 1);
    let kinds: BTreeSet<StoryKind> = told.iter().map(|line| line.kind).collect();
    assert!(StoryKind::PROMISED.iter().all(|kind| kinds.contains(kind)));
}

#[test]
fn what_happens_all_the_time_is_told_once_a_minute_of_each_feed() {
    let mut teller = teller();
    let other = FeedName::new("lighthouse").unwrap();
    let noise = Incident::Noise { items: 1 };
    let mut count = |second: u64, feed: &FeedName, incident: &Incident| {
        teller.tell(Duration::from_secs(second), feed, incident).len()
    };
    assert_eq!(count(0, &feed(), &noise), 1);
    assert_eq!(count(59, &feed(), &noise), 0);
    assert_eq!(count(59, &other, &noise), 1);
    assert_eq!(count(60, &feed(), &noise), 1);
    // Each post that comes is news.
    assert_eq!(count(60, &feed(), &item(EventKind::Created)), 1);
    assert_eq!(count(60, &feed(), &item(EventKind::Created)), 1);
}

#[test]
fn listeners_are_spoken_of_after_something_that_people_see() {
    let mut teller = teller();
    let logged = Incident::Logged { epoch: 1 };
    assert_eq!(teller.tell(Duration::ZERO, &feed(), &logged), []);
    teller.tell(Duration::ZERO, &feed(), &item(EventKind::Created));
    let kinds: Vec<StoryKind> = (0..3)
        .flat_map(|_| teller.tell(Duration::ZERO, &feed(), &logged))
        .map(|line| line.kind)
        .collect();
    assert_eq!(kinds, [StoryKind::Events, StoryKind::Sup]);
}

#[test]
fn a_title_cannot_paint_the_terminal_nor_fill_it() {
    let mut hostile = item(EventKind::Created);
    if let Incident::Item { event, .. } = &mut hostile {
        event.title = format!("\x1b[2J\nA\u{9b}31m{}", "é".repeat(500));
    }
    let [line] = &teller().tell(Duration::ZERO, &feed(), &hostile)[..] else {
        panic!("it is one line");
    };
    let printed = line.print(false);
    assert!(!printed.contains(char::is_control), "{printed:?}");
    assert!(printed.contains("ééé…”") && printed.len() < 300, "{printed}");
}

#[test]
fn colour_marks_the_kind_and_nothing_else() {
    let [line] = &teller().tell(Duration::from_secs(64), &feed(), &item(EventKind::Deleted))[..]
    else {
        panic!("it is one line");
    };
    let (plain, coloured) = (line.print(false), line.print(true));
    assert!(plain.starts_with(" 1:04  deletion    “Gulls”"), "{plain}");
    assert!(coloured.starts_with(" 1:04  \x1b[31mdeletion  \x1b[0m  “Gulls”"), "{coloured:?}");
    assert_eq!(coloured.replace("\x1b[31m", "").replace("\x1b[0m", ""), plain);
}
