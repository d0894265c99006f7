use super::build::{Feed, deleted, read_back};
use super::fixtures;
use crate::golden;
use crate::parse::{self, Limits};
use crate::render::{ArchiveDocument, HistoryPlace, LinkForms, ViewKind};
use tidegate_core::model::Format;
use tidegate_core::xml::ns::HISTORY;

pub fn json_feed() -> Feed {
    Feed::new(Format::JsonFeed, fixtures::JSON)
}

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

const AT: &str = "https://gate.example/feeds/news";

/// The place of an archive between two others.
fn place() -> HistoryPlace {
    HistoryPlace {
        previous: Some(format!("{AT}/archive/b")),
        archive: Some(ArchiveDocument {
            own: format!("{AT}/archive/c"),
            next: Some(format!("{AT}/archive/d")),
        }),
        ..HistoryPlace::default()
    }
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
        let older = HistoryPlace { archive: None, ..place() };
        let whole = HistoryPlace { complete: true, ..HistoryPlace::default() };
        for (view, kind, history) in [
            ("reader", ViewKind::Reader, older),
            ("sync", ViewKind::Sync, HistoryPlace::default()),
            ("complete", ViewKind::Complete, whole),
            ("archive", ViewKind::Reader, place()),
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
fn every_format_has_its_edges() {
    for (name, mut feed) in all() {
        // What is known of an entry spares a look and changes nothing.
        let before = feed.reader();
        let slots = feed.items.iter_mut().map(|item| &mut item.shared.winner.data.slots);
        slots.for_each(|slots| slots.is_absolute = false);
        assert_eq!(feed.reader(), before, "{name}");
        feed.items.clear();
        assert!(read_back(&feed.reader()).is_empty(), "{name}");
        // A publisher may have bound our namespace to no prefix, and our customary prefixes to something else.
        let bindings = [("", HISTORY), ("fh", "urn:other"), ("fh1", "urn:more")];
        let bindings = bindings.map(|(prefix, name)| (prefix.to_owned(), name.to_owned()));
        feed.skeleton.context.namespaces.splice(..0, bindings);
        feed.history = place();
        assert!(feed.render_unchecked(ViewKind::Reader).contains("<fh2:archive/>"), "{name}");
    }
}

#[test]
fn each_form_has_its_links() {
    let archive = ArchiveDocument { own: "o".to_owned(), next: Some("n".to_owned()) };
    let mut place = HistoryPlace { previous: Some("p".to_owned()), ..HistoryPlace::default() };
    assert_eq!(place.links("c"), [("prev-archive", "p"), ("previous", "p")]);
    assert_eq!(place.mark(), None);
    place.archive = Some(archive);
    let all = [("current", "c"), ("prev-archive", "p"), ("previous", "p"), ("next-archive", "n")];
    assert_eq!(place.links("c"), all);
    assert_eq!(place.mark(), Some("archive"));
    place.forms = LinkForms { draft05: true, rfc5005: false };
    assert_eq!(place.links("c"), [("current", "c"), ("previous", "p")]);
    place.forms = LinkForms { draft05: false, rfc5005: true };
    assert_eq!(place.links("c"), [("current", "c"), ("prev-archive", "p"), ("next-archive", "n")]);
    place.forms = LinkForms { draft05: false, rfc5005: false };
    assert_eq!(place.links("c"), [("current", "c")], "an archive leads to its feed");
    let complete = HistoryPlace { complete: true, ..HistoryPlace::default() };
    assert!(complete.links("c").is_empty(), "no archive links beside fh:complete");
    assert_eq!(complete.mark(), Some("complete"));
}
