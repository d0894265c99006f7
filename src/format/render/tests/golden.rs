//! Golden documents of each format and view, in `tests/golden`.

use super::build::{Feed, deleted};
use super::fixtures;
use crate::golden;
use crate::parse::{self, Limits};
use crate::render::{HistoryPlace, ViewKind};
use tidegate_core::model::{Format, Time};

/// The JSON Feed of the fixtures.
pub fn json_feed() -> Feed {
    Feed::new(Format::JsonFeed, fixtures::JSON)
}

/// The feed of every format.
pub fn all() -> Vec<(&'static str, Feed)> {
    vec![
        ("atom10", Feed::new(Format::Atom10, fixtures::ATOM10)),
        ("rss20", Feed::new(Format::Rss20, fixtures::RSS20)),
        ("rss091", Feed::new(Format::Rss09x, fixtures::RSS091)),
        ("rss10", Feed::new(Format::Rss10, fixtures::RSS10)),
        ("rss090", Feed::new(Format::Rss090, fixtures::RSS090)),
        ("atom03", Feed::new(Format::Atom03, fixtures::ATOM03)),
        ("json", json_feed()),
    ]
}

/// What readers have of a feed with archives; the sync view; the complete view of a feed that lists all that it has;
/// and an archive between two others. The last item was deleted, and a hub is told of everything.
#[test]
fn every_format_and_view() {
    for (name, mut feed) in all() {
        feed.addresses.hub = Some("https://gate.example/websub".to_owned());
        let gone = deleted(feed.items.pop().unwrap());
        feed.items.push(gone.clone());
        feed.deleted = vec![gone];
        let older = HistoryPlace { archive: None, ..super::history::place() };
        let whole = HistoryPlace { complete: true, ..HistoryPlace::default() };
        for (view, kind, history) in [
            ("reader", ViewKind::Reader, older),
            ("sync", ViewKind::Sync, HistoryPlace::default()),
            ("complete", ViewKind::Complete, whole),
            ("archive", ViewKind::Reader, super::history::place()),
        ] {
            feed.history = history;
            let text = feed.render(kind);
            // What we say is what we believe of others.
            let read = parse::document(&text, None, &Limits::default()).unwrap();
            assert_eq!(read.head.complete, view == "complete", "{name}");
            golden::same("", &format!("{name}-{view}"), &text);
        }
    }
}

#[test]
fn nothing_depends_on_anything_but_the_page() {
    for (_, mut feed) in all() {
        let before = feed.reader();
        // What is known of an entry spares a look, and changes nothing.
        let slots = feed.items.iter_mut().map(|item| &mut item.shared.winner.data.slots);
        slots.for_each(|slots| slots.is_absolute = false);
        assert_eq!(feed.reader(), before);
        feed.state.updated_at = Time::from_unix(super::build::NOW + 1);
        let after = feed.reader();
        let differ = before.bytes().zip(after.bytes()).filter(|(a, b)| a != b).count();
        assert_eq!((before.len(), differ), (after.len(), 1));
    }
}
