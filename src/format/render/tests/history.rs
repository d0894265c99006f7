//! Archive documents, the links between them, and `fh:complete`.

use super::build::read_back;
use super::golden::all;
use crate::render::{ArchiveDocument, HistoryPlace, LinkForms, ViewKind};

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

/// An archive between two others, which is nothing to subscribe to; what readers read of a feed with
/// archives; a feed that lists all that it has.
#[test]
fn a_document_says_where_it_stands() {
    let whole = HistoryPlace { complete: true, ..HistoryPlace::default() };
    let newest = HistoryPlace { archive: None, ..place() };
    let older = [("prev-archive", "/archive/b"), ("previous", "/archive/b")];
    let around = [("self", "/archive/c"), ("current", ""), ("next-archive", "/archive/d")];
    for (history, kind, mark, leads) in [
        (place(), ViewKind::Reader, Some("archive"), [&around[..], &older].concat()),
        (newest, ViewKind::Reader, None, [&[("self", "")][..], &older].concat()),
        (whole, ViewKind::Complete, Some("complete"), vec![("self", "/complete")]),
    ] {
        for (name, mut feed) in all() {
            feed.history = history.clone();
            feed.addresses.hub = Some("https://gate.example/websub".to_owned());
            let text = feed.render(kind);
            for known in ["archive", "complete"] {
                let marks = text.matches(&format!("<fh:{known}/>")).count();
                assert_eq!(marks, usize::from(mark == Some(known)), "{name}: {text}");
            }
            let links = links(&text);
            let relations = around.into_iter().chain(older).map(|(relation, _)| relation);
            for relation in relations.chain(["next", "first", "last"]) {
                let leads = leads.iter().filter(|(other, _)| *other == relation);
                let wanted: Vec<_> = leads.map(|(_, path)| format!("{AT}{path}")).collect();
                assert_eq!(link(&links, relation), wanted, "{name} {relation}");
            }
            for relation in ["hub", "http://api.friendfeed.com/2008/03#sup"] {
                let is_archive = mark == Some("archive");
                assert_eq!(link(&links, relation).is_empty(), is_archive, "{name} {relation}");
            }
            assert_eq!(read_back(&text).len(), feed.items.len(), "{name}");
            // What we say is what we believe of others.
            let limits = crate::parse::Limits::default();
            let read = crate::parse::document(&text, None, &limits).unwrap();
            assert_eq!(read.head.complete, mark == Some("complete"), "{name}");
        }
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
