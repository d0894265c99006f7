use super::*;
use crate::parse::{Limits, document};
use tidegate_core::model::FeedDocument;
use tidegate_core::sync_markup::sx::sync_element;
use tidegate_core::xml::ns;

const FEED: &str = "<feed xmlns='http://www.w3.org/2005/Atom'";
const HISTORY: &str = "<sx:history sequence=\"1\" by=\"A\"/>";

/// An RSS feed with these items, whose root has these declarations.
fn rss(declarations: &str, items: &str) -> String {
    let root = format!("rss version=\"2.0\" xmlns:sx=\"{}\"{declarations}", ns::SSE);
    format!("<{root}><channel>{items}</channel></rss>")
}

fn read(text: &str) -> FeedDocument<'_> {
    document(text, None, &Limits::default()).unwrap()
}

/// What the first entry of a document shares.
fn shared(text: &str) -> Incoming {
    let document = read(text);
    let shared = document.entries[0].shared();
    (**shared.unwrap_or_else(|| panic!("{text}: {:?}", document.warnings))).clone()
}

/// Whether each entry has sync markup, and whether that is valid.
fn validity(document: &FeedDocument<'_>) -> Vec<Option<bool>> {
    let of = |sync: &EntrySync| matches!(sync, EntrySync::Valid(_));
    document.entries.iter().map(|entry| entry.sync.as_ref().map(of)).collect()
}

#[test]
fn the_limits_hold() {
    let begin = format!("<sx:sync id=\"i\" updates=\"1\">{HISTORY}");
    let sync = |inside: &str| format!("{begin}{inside}</sx:sync>");
    let own = format!("<item>{}</item>", sync(""));
    let conflicts = format!("<sx:conflicts>{}</sx:conflicts>", own.repeat(CONFLICT_LIMIT + 1));
    for (many, wanted) in [
        (HISTORY.repeat(UPDATE_LIMIT), "more than 1000 sx:history in one sx:sync"),
        (conflicts, "more than 100 conflicts in one item"),
    ] {
        let text = rss("", &format!("<item>{}<title>t</title></item>", sync(&many)));
        let document = read(&text);
        assert_eq!(validity(&document), [Some(false)]);
        let said = &document.warnings[0].message;
        assert!(said.contains(wanted), "{said}");
    }
}

/// Section 2.1.8: what others say in `sx:sync` and `sx:history` comes out as it went in.
#[test]
fn what_sse_does_not_know_is_kept() {
    let text = |sync: &str| rss(" xmlns:ext=\"urn:e\"", &format!("<item>{sync}</item>"));
    let written = text(
        "<sx:sync id=\"a\" updates=\"2\" ext:a=\"1 &amp; 2\" later=\"x\"><sx:history \
         sequence=\"2\" by=\"A\" ext:b=\"y\"><ext:note>hi</ext:note></sx:history><sx:history \
         sequence=\"1\" by=\"A\"/><ext:more/><other xmlns=\"urn:o\"/></sx:sync>",
    );
    let first = shared(&written);
    assert_eq!((first.extras.sync.attributes.len(), first.extras.updates.len()), (2, 1));
    let mut out = String::new();
    sync_element(&mut out, "sx", None, &first.version, Some(&first.extras), None);
    let kept = "<ext:more xmlns:ext=\"urn:e\"/><other xmlns=\"urn:o\"/></sx:sync>";
    assert!(out.contains(kept), "{out}");
    assert_eq!(shared(&text(&out)), first);
}

/// The extras of the one item of a feed, whose root has those declarations.
fn extras(declarations: &str, sync: &str) -> SyncExtras {
    let sync = format!("<sx:sync id=\"a\" updates=\"1\"{sync}</sx:sync>");
    shared(&rss(declarations, &format!("<item>{sync}</item>"))).extras
}

#[test]
fn what_is_too_much_is_not_gathered() {
    let long = format!(" xmlns:e=\"urn:{}\"", "x".repeat(1_000));
    for (times, is_kept) in [(7, true), (9, false)] {
        let (element, extended) =
            (format!("<a>{}</a>", "x".repeat(1_000)), HISTORY.replace("/>", " e:b=\"x\"/>"));
        for sync in [
            format!(">{HISTORY}{}", "<e:a/>".repeat(times)),
            format!(">{HISTORY}{}", element.repeat(times)),
            format!(">{}", extended.repeat(times)),
        ] {
            assert_eq!(!extras(&long, &sync).is_empty(), is_kept, "{sync}");
        }
    }
}

/// What conflicts inherit counts for each of them, and costs those entries alone that are too much.
#[test]
fn conflicts_take_no_more_than_a_bound() {
    let uri = "x".repeat(1_000);
    let declared: String = (0..10).map(|n| format!(" xmlns:p{n}=\"{n}{uri}\"")).collect();
    let used: String = (0..10).map(|n| format!("<p{n}:a/>")).collect();
    let sync = |id: usize, inside: &str| {
        format!("<sx:sync id=\"i{id}\" updates=\"1\">{HISTORY}{inside}</sx:sync>")
    };
    let item = |id: usize, conflicts: usize| {
        let conflict = format!("<item>{used}{}</item>", sync(id, ""));
        let list = format!("<sx:conflicts>{}</sx:conflicts>", conflict.repeat(conflicts));
        format!("<item>{}</item>", sync(id, &list))
    };
    let items = [item(0, 4), item(1, 6), item(2, 5), item(3, 0)].concat();
    let text = rss(&declared, &items);
    let limits = Limits { sync: 100_000, ..Limits::default() };
    let document = document(&text, None, &limits).unwrap();
    assert_eq!(validity(&document), [Some(true), Some(false), Some(true), Some(true)]);
    assert!(document.warnings[0].message.contains("more than 100000 bytes in the conflicts"));
}

#[cfg(target_os = "linux")]
#[test]
fn sync_markup_costs_a_document_no_more_than_its_size() {
    use crate::memory;
    let name = "sync_markup_costs_a_document_no_more_than_its_size";
    if !memory::is_alone(&format!("parse::sync_markup::tests::{name}")) {
        return;
    }
    const SIZE: usize = 4 << 20;
    for piece in ["<a/>", "<a b='' c='' d='' e='' f=''/>", "<a>x</a>", "&lt;\n", "\n"] {
        let content = piece.repeat(SIZE / piece.len());
        let taken = |head: &str| {
            let entry = "<entry><id>e</id></entry>";
            let text = format!("{FEED} xmlns:s='{}'>{head}{entry}<x>{content}</x></feed>", ns::SSE);
            memory::peak(|| document(&text, None, &Limits::default()).map(drop)).1
        };
        let (without, with) = (taken(""), taken("<s:sharing/>"));
        assert!(with < without + SIZE, "{piece:?}: {with} bytes, {without} without sync markup");
    }
}
