#![allow(clippy::string_slice)]

use super::*;
use crate::parse::document;
use tidegate_core::model::{Completeness, EntrySync, FeedDocument, Format};
use tidegate_core::xml::ns::{OUTLINE, SSE_091};

fn opml(head: &str, outlines: &str) -> String {
    format!(
        "<?xml version='1.0'?>\n<opml version='2.0' xmlns:s='{}' xmlns:x='urn:x'>\n\
         <head><title>Ours &amp; theirs</title>{head}</head>\n<body>\n{outlines}\n</body>\n</opml>\n",
        SSE_091
    )
}

/// What is read of a list, and what was wrong.
fn of<T>(text: &str, look: impl FnOnce(&FeedDocument<'_>, &[Warning]) -> T) -> T {
    let (atom, warnings) = within(text, &Limits::default()).unwrap().unwrap();
    let document = document(&atom, None, &Limits::default()).unwrap();
    assert_eq!(document.format, Format::Opml);
    look(&document, &warnings)
}

fn said(document: &FeedDocument<'_>, at: usize) -> Vec<String> {
    let fields = document.entries[at].fields().iter();
    fields.map(|field| format!("{}={}", field.path, field.value)).collect()
}

#[test]
fn an_outline_is_an_entry() {
    let text = opml(
        "<ownerName>Ann</ownerName><dateModified>Thu, 01 Jan 2026 00:00:00 GMT</dateModified>",
        "<outline text='News'>\n<outline text='A &lt;b&gt;' type='rss' xmlUrl='http://a.example/f' \
         htmlUrl='http://a.example/' description='What A says' \
         created='Fri, 02 Jan 2026 00:00:00 GMT' x:rank='3'><x:note>n</x:note></outline></outline>",
    );
    of(&text, |document, warnings| {
        assert!(warnings.is_empty() && document.warnings.is_empty(), "{warnings:?}");
        assert!(document.head.complete && document.completeness == Completeness::Full);
        assert_eq!(document.head.title.as_deref(), Some("Ours & theirs"));
        assert_eq!(document.head.updated.map(|t| t.to_string()).unwrap(), "2026-01-01T00:00:00Z");
        let [folder, feed] = &document.entries[..] else { panic!("{}", document.text) };
        assert_eq!(folder.title.as_deref(), Some("News"));
        assert_eq!(feed.native_id.as_deref(), Some("http://a.example/f"));
        assert_eq!(feed.link.as_deref(), Some("http://a.example/"));
        assert_eq!(feed.title.as_deref(), Some("A <b>"));
        assert_eq!(feed.published.map(|t| t.to_string()).unwrap(), "2026-01-02T00:00:00Z");
        let fields = said(document, 1);
        for wanted in [
            "summary=What A says",
            "outline:outline@type=rss",
            "outline:outline@{urn:x}rank=3",
            "outline:outline/{urn:x}note=n",
        ] {
            assert!(fields.iter().any(|field| field == wanted), "{wanted} of {fields:?}");
        }
        let parent = format!("outline:parent@ref={}", folder.native_id.as_deref().unwrap());
        assert!(fields.contains(&parent), "{fields:?}");
        // Faults and reasons name the line that the outline stands in.
        let line = |text: &str| text.matches('\n').count();
        let own = &text[..text.find("A &lt;").unwrap()];
        assert_eq!(line(&document.text[..feed.span.start]), line(own));
    });
}

#[test]
fn each_id_stands_once_and_stays() {
    let feed = |name: &str| format!("<outline text='{name}' xmlUrl='http://{name}.example/f'/>");
    let ids = |outlines: &str| {
        of(&opml("", outlines), |document, _| {
            let ids = document.entries.iter().map(|e| e.native_id.clone().unwrap().into_owned());
            ids.collect::<Vec<_>>()
        })
    };
    let folder = |name: &str, inside: &str| format!("<outline text='{name}'>{inside}</outline>");
    let first = ids(&(folder("F", &(feed("a") + &feed("b"))) + &folder("G", &feed("a"))));
    let by_address = |id: &String| id == "http://a.example/f";
    assert_eq!(first.iter().filter(|id| by_address(id)).count(), 1, "{first:?}");
    assert!(first.iter().all(|id| id.starts_with("http:") || id.starts_with("x-outline:")));
    // In another order they are the same.
    let turned = ids(&(folder("G", &feed("a")) + &folder("F", &(feed("a") + &feed("b")))));
    assert_eq!((&turned[..2], &turned[2..]), (&first[3..], &first[..3]));
    // What comes in front of them changes none of them.
    let more = folder("E", &feed("c")) + &feed("d");
    let second = ids(&(more + &folder("F", &(feed("a") + &feed("b"))) + &folder("G", &feed("a"))));
    assert_eq!(second[3..], first[..]);
    // Nor does a copy at the same place.
    let twice = ids(&folder("F", &(feed("a") + &feed("a") + &feed("a"))));
    assert_eq!(twice.iter().collect::<HashSet<_>>().len(), 4);
    let texts = ids("<outline text='same'/><outline text='same'/><outline/><outline/>");
    assert_eq!(texts.iter().collect::<HashSet<_>>().len(), 4);
    // What another gateway says of it.
    let told = format!("<outline text='t' xmlns:o='{OUTLINE}' o:id='urn:own'/>");
    assert_eq!(ids(&told), ["urn:own"]);
}

const SYNC: &str = "<s:history when='Sat, 21 May 2005 09:43:33 GMT' by='REO'/>";

#[test]
fn what_is_shared_stays_what_it_is() {
    let lost = "<s:conflicts><s:conflict version='1' by='JEO' \
                when='Fri, 20 May 2005 09:43:33 GMT'><outline text='lost' \
                xmlUrl='http://l.example/'><s:sync id='x.a' version='1'><s:history by='JEO' \
                when='Fri, 20 May 2005 09:43:33 GMT'/></s:sync></outline></s:conflict></s:conflicts>";
    let text = opml(
        "<s:sharing version='0.91' since='Thu, 01 Jan 2026 00:00:00 GMT' \
         until='Fri, 02 Jan 2026 00:00:00 GMT'><s:related type='complete' link='http://x.example/all'/>\
         </s:sharing>",
        &format!(
            "<outline text='a'><s:sync id='x.a' version='2' conflict='true'>{SYNC}{lost}</s:sync>\
             </outline>\n<outline text='b'><s:sync id='x.b' version='0'>{SYNC}</s:sync></outline>\
             <outline text='c'/>"
        ),
    );
    of(&text, |document, warnings| {
        let sharing = document.sharing.as_ref().unwrap();
        assert_eq!(sharing.complete.as_deref(), Some("http://x.example/all"));
        assert!(document.lists_changes() && !document.head.complete);
        let [a, b, c] = &document.entries[..] else { panic!("{}", document.text) };
        let shared = a.shared().unwrap();
        assert_eq!(shared.id().as_str(), "x.a");
        assert_eq!(shared.version.updates.value(), 2);
        assert_eq!(shared.conflicts.len(), 1);
        assert_eq!(shared.conflicts[0].data.card.title, "lost");
        assert!(matches!(b.sync, Some(EntrySync::Invalid(_))), "{:?}", b.sync);
        assert!(c.sync.is_none());
        assert!(warnings.iter().any(|w| w.message.contains("version")), "{warnings:?}");
    });
}

#[test]
fn what_ends_early_is_told_so() {
    let whole = opml("", "<outline text='a' xmlUrl='http://a/'/><outline text='b'/>");
    for (end, entries) in [("</body>", 2), ("</opml>", 2), ("='b'", 1), ("b'/>", 1)] {
        of(&whole[..whole.find(end).unwrap()], |document, _| {
            assert!(matches!(document.completeness, Completeness::Salvaged(_)), "{end}");
            assert!(!document.head.complete);
            assert_eq!(document.entries.len(), entries, "{end}: {}", document.text);
        });
    }
}

#[test]
fn what_nobody_can_write_is_left_out_and_told() {
    let text = opml(
        "",
        "<outline text='a\u{1}' 9x='1' y:z='2' sx:id='3' s:id='4' xml:lang='de' o=\"q\" \
         xmlns:q='' q:w='5'><x:ok><z/></x:ok><x:bad></outline>",
    );
    of(&text, |document, warnings| {
        let fields = said(document, 0);
        assert!(fields.iter().any(|field| field == "outline:outline@o=q"), "{fields:?}");
        assert!(!fields.iter().any(|field| field.contains("@id") || field.contains("9x")));
        assert!(warnings.iter().any(|w| w.message.contains("none in XML")), "{warnings:?}");
        assert_eq!(document.completeness, Completeness::Full);
    });
}

/// What nobody can write costs an outline nothing else, and of two attributes that mean the same one
/// counts.
#[test]
fn attributes_are_those_of_xml() {
    let text = opml(
        "",
        "<outline text='a' xmlUrl='http://a/' \u{b5}='1' \u{aa}:k='2' \u{b7}z='3' \u{e9}='4' \
         xmlns:y='urn:x' x:n='5' y:n='6' z='7'/>",
    );
    of(&text, |document, warnings| {
        let fields = said(document, 0);
        for wanted in ["@xmlUrl=http://a/", "@\u{e9}=4", "@{urn:x}n=5", "@z=7"] {
            assert!(fields.iter().any(|field| field.ends_with(wanted)), "{wanted} of {fields:?}");
        }
        let own: Vec<_> = fields.iter().filter(|field| field.contains("outline@")).collect();
        assert_eq!(own.len(), 4, "{own:?}");
        assert!(warnings[0].message.ends_with("whose name is none in XML is left out"));
        assert!(Doc::read_flawless(document.text).is_some());
    });
}

/// A text that thousands stand in is not written thousands of times, or only until it is too much, and
/// what is wrong thousands of times is told some times.
#[test]
fn what_is_short_does_not_become_long() {
    let limits = Limits { decoded: 8 << 20, ..Limits::default() };
    let long = "A".repeat(1 << 18);
    let inside = "<outline/>".repeat(10_000);
    for (address, fits) in [
        (String::new(), true),
        ("xmlUrl='http://a/'".to_owned(), true),
        (format!("xmlUrl='http://{long}/'"), false),
    ] {
        let text = opml("", &format!("<outline text='{long}' {address}>{inside}</outline>"));
        let read = within(&text, &limits);
        match fits {
            true => assert!(read.unwrap().unwrap().0.len() < 4 << 20),
            false => assert!(matches!(read, Err(ParseError::TooLarge { .. }))),
        }
    }
    let text = opml("", &"<outline 9x='1'/>\n".repeat(10_000));
    let (_, warnings) = within(&text, &Limits::default()).unwrap().unwrap();
    assert_eq!(warnings.len(), WARNINGS + 1);
    let more = (10_000 - WARNINGS).to_string();
    assert!(warnings[WARNINGS].message.starts_with(&more), "{}", warnings[WARNINGS].message);
}

#[test]
fn other_documents_are_none() {
    for text in ["", "{}", "<rss/>", "<!-- <opml> --><feed/>", "opml", "<html><opml/></html>"] {
        assert_eq!(transcoded(text), Ok(None), "{text}");
    }
    let limits = Limits { entries: 1, ..Limits::default() };
    let many = opml("", "<outline/>\n<outline/>");
    let refused = within(&many, &limits);
    assert!(matches!(refused, Err(ParseError::Limit { what: "outlines", limit: 1, .. })));
}

proptest::proptest! {
    /// Whatever stands in a list, what comes of it is an Atom document that can be read.
    #[test]
    fn any_list_is_readable(inside in "[<>\"'=/a-c: &;!\\[\\]\\-\n]{0,120}") {
        let text = format!("<opml xmlns:a='urn:a'><body><outline {inside}");
        let atom = transcoded(&text).unwrap().unwrap();
        let ended = if atom.ends_with("</feed>") { atom.clone() } else { format!("{atom}</feed>") };
        proptest::prop_assert!(Doc::read_flawless(&ended).is_some(), "{text} became {atom}");
    }
}

fn ids_and_parents(text: &str) -> Vec<(String, String)> {
    of(text, |document, _| {
        let entries = document.entries.iter().map(|entry| {
            let parent = entry.fields().iter().find(|field| field.path == "outline:parent@ref");
            let id = entry.native_id.clone().unwrap().into_owned();
            (id, parent.unwrap().value.clone().into_owned())
        });
        entries.collect()
    })
}

/// What stands in no other says so by a word that no outline can be called.
#[test]
fn no_outline_is_called_the_root() {
    let told = format!("<outline text='t' xmlns:o='{OUTLINE}' o:id='body'/>");
    for outline in ["<outline text='t' xmlUrl='body'/>", &told] {
        let text = opml("", &format!("<outline text='a'/>{outline}"));
        let said = ids_and_parents(&text);
        assert!(said.iter().all(|(id, parent)| id != "body" && parent == "body"), "{said:?}");
    }
    // Nor as another one by the id that this one would be made.
    let made = ids_and_parents(&opml("", "<outline text='a'/>"))[0].0.clone();
    let told = format!("<outline text='t' xmlns:o='{OUTLINE}' o:id='{made}'/>");
    let said = ids_and_parents(&opml("", &format!("{told}<outline text='a'/>")));
    assert_ne!(said[0].0, said[1].0);
}

/// What is said many times of few bytes stays bounded.
#[test]
fn nothing_of_a_list_is_repeated_without_bound() {
    let much = "u".repeat(1 << 20);
    let folder = opml("", &format!("<outline text='{much}'>{}</outline>", "<outline/>".repeat(20)));
    let (atom, _) = within(&folder, &Limits::default()).unwrap().unwrap();
    assert!(atom.len() < much.len() + 10_000, "{}", atom.len());
    let inside = "<q:n/>".repeat(40);
    let named = format!("<outline text='a' xmlns:q='urn:{much}' q:a='1'>{inside}</outline>");
    let (atom, _) = within(&opml("", &named), &Limits::default()).unwrap().unwrap();
    assert!(atom.len() < 10_000, "{}", atom.len());
}

/// An outline within other markup is an entry, and no part of the one around that.
#[test]
fn outlines_in_other_markup_stand_once() {
    let inside = "<x:z><outline text='inner'/></x:z><x:n>n</x:n>";
    of(&opml("", &format!("<outline text='a'>{inside}</outline>")), |document, _| {
        assert_eq!(document.text.matches("inner").count(), 1, "{}", document.text);
        assert_eq!(document.entries.len(), 2);
        assert!(document.text.contains("<x:n"));
    });
}

/// What stands in a folder says nothing of its text: not when that changes, and not when it must go.
#[test]
fn a_folder_with_an_id_is_no_other_for_its_text() {
    let inside = |folder: &str| {
        let attributes = format!("xmlns:o='{OUTLINE}' o:id='urn:f'");
        let text = format!("<outline text='{folder}' {attributes}><outline text='a'/></outline>");
        of(&opml("", &text), |document, _| {
            let fields = said(document, 1);
            fields.into_iter().filter(|field| field.starts_with("outline:parent")).collect()
        })
    };
    let fields: Vec<String> = inside("News");
    assert_eq!(fields, ["outline:parent@ref=urn:f"]);
    assert_eq!(inside("Tidings"), fields);
}

#[test]
fn json_that_speaks_of_opml_is_no_list() {
    let text = r#"{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[
        {"id":"1","content_html":"<opml version='2.0'> is how lists of feeds begin"}]}"#;
    assert_eq!(transcoded(text).unwrap(), None);
}
