//! Archive documents, the links between them, and `fh:complete`.

use super::build::{deleted, read_back};
use super::golden::all;
use crate::render::{ArchiveDocument, HistoryPlace, LinkForms, ViewKind};
use tidegate_core::model::Family;

const AT: &str = "https://gate.example/feeds/news";

/// The place of an archive between two others.
pub(super) fn place() -> HistoryPlace {
    HistoryPlace {
        previous: Some(format!("{AT}/archive/b")),
        archive: Some(ArchiveDocument {
            own: format!("{AT}/archive/c"),
            next: Some(format!("{AT}/archive/d")),
        }),
        ..HistoryPlace::default()
    }
}

/// The links of a document as relation and address, as a foreign reader sees them.
fn links(text: &str) -> Vec<(String, String)> {
    let read = feed_rs::parser::parse(text.as_bytes()).unwrap();
    let links = read.links.into_iter();
    links.map(|link| (link.rel.unwrap_or_default(), link.href)).collect()
}

fn link<'a>(links: &'a [(String, String)], relation: &str) -> Vec<&'a str> {
    let found = links.iter().filter(|(rel, _)| rel == relation);
    found.map(|(_, address)| address.as_str()).collect()
}

#[test]
fn an_archive_says_so_and_leads_on() {
    for (name, mut feed) in all() {
        feed.history = place();
        let gone = feed.items.pop().unwrap();
        feed.deleted = vec![deleted(gone)];
        let text = feed.reader();
        assert_eq!(text.matches("<fh:archive/>").count(), 1, "{name}: {text}");
        assert!(text.contains("xmlns:fh=\"http://purl.org/syndication/history/1.0\""), "{name}");
        assert!(!text.contains("fh:complete"), "{name}");
        let links = links(&text);
        for (relation, path) in [
            ("self", "/archive/c"),
            ("current", ""),
            ("prev-archive", "/archive/b"),
            ("previous", "/archive/b"),
            ("next-archive", "/archive/d"),
        ] {
            assert_eq!(link(&links, relation), [format!("{AT}{path}")], "{name} {relation}");
        }
        // Nothing to subscribe to, and no paging.
        for relation in ["hub", "http://api.friendfeed.com/2008/03#sup", "next", "first", "last"] {
            assert!(link(&links, relation).is_empty(), "{name} {relation}");
        }
        let is_atom = feed.skeleton.format.family() == Family::Atom;
        assert_eq!(text.contains("<at:deleted-entry "), is_atom, "{name}");
        assert_eq!(text.matches("<sx:sync ").count(), feed.items.len(), "{name}");
        assert_eq!(read_back(&text).len(), feed.items.len(), "{name}");
    }
}

#[test]
fn the_links_are_of_the_forms_that_are_asked_for() {
    for (name, mut feed) in all() {
        feed.history = place();
        feed.history.forms = LinkForms { draft05: true, rfc5005: false };
        let draft = links(&feed.reader());
        assert_eq!(link(&draft, "previous").len(), 1, "{name}");
        assert!(link(&draft, "prev-archive").is_empty() && link(&draft, "next-archive").is_empty());
        feed.history.forms = LinkForms { draft05: false, rfc5005: true };
        let rfc = links(&feed.reader());
        assert!(link(&rfc, "previous").is_empty(), "{name}");
        assert_eq!((link(&rfc, "prev-archive").len(), link(&rfc, "next-archive").len()), (1, 1));
        assert_eq!((link(&rfc, "current").len(), link(&draft, "current").len()), (1, 1));
    }
}

#[test]
fn the_reader_view_leads_to_the_newest_archive() {
    for (name, mut feed) in all() {
        feed.history = HistoryPlace { archive: None, ..place() };
        let text = feed.reader();
        assert!(!text.contains("fh:archive"), "{name}");
        let links = links(&text);
        assert_eq!(link(&links, "self"), [AT], "{name}");
        assert_eq!(link(&links, "prev-archive"), [format!("{AT}/archive/b")], "{name}");
        assert_eq!(link(&links, "previous"), [format!("{AT}/archive/b")], "{name}");
        assert!(link(&links, "current").is_empty() && link(&links, "next-archive").is_empty());
    }
}

#[test]
fn a_complete_feed_says_so_without_links_to_archives() {
    for (name, mut feed) in all() {
        feed.history = HistoryPlace { complete: true, ..HistoryPlace::default() };
        let text = feed.render(ViewKind::Complete);
        assert_eq!(text.matches("<fh:complete/>").count(), 1, "{name}");
        let links = links(&text);
        for relation in ["current", "prev-archive", "next-archive", "previous", "next"] {
            assert!(link(&links, relation).is_empty(), "{name} {relation}");
        }
        // What we say is what we believe of others.
        let limits = crate::parse::Limits::default();
        let read = crate::parse::document(&text, None, &limits).unwrap();
        assert!(read.head.complete, "{name}");
    }
}

/// A publisher may have bound our customary prefix to something else.
#[test]
fn a_prefix_that_is_taken_is_left_alone() {
    for (name, mut feed) in all() {
        let bound = ("fh".to_owned(), "urn:other".to_owned());
        feed.skeleton.context.namespaces.push(bound);
        feed.history = place();
        let text = feed.render_unchecked(ViewKind::Reader);
        assert!(text.contains("<fh1:archive/>"), "{name}");
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
