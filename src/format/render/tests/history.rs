//! Archive documents, the links between them, and `fh:complete`.

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
