#![allow(clippy::string_slice)]

use super::*;
use crate::golden;

fn list(text: &str) -> OutlineList {
    read(text).unwrap()
}

fn body(outlines: &str) -> String {
    format!("<opml version=\"2.0\"><head><title>T</title></head><body>{outlines}</body></opml>")
}

/// What is ill-formed is read and named, with its line.
#[test]
fn every_list_is_read_for_all_it_says_and_what_is_not_closed_hides_nothing() {
    golden::each("lists", 28, |text| {
        let text = std::str::from_utf8(text).unwrap();
        let list = list(text);
        let outlines = list.outlines.iter().map(|outline| {
            let (folder, kind, name) = (list.folder(outline), outline.kind(), outline.type_name());
            let own = [outline.text(), outline.title(), outline.site(), name];
            let other: Vec<_> = outline.other.iter().map(|place| &text[place.clone()]).collect();
            format!("{folder:?} {kind:?} {own:?} {other:?}\n")
        });
        format!("{}{list:#?}\n{}", outlines.collect::<String>(), &text[list.body.clone()])
    });
}

#[test]
fn other_things_are_no_lists() {
    for (text, what) in [
        ("<!DOCTYPE html><html><body>x</body></html>", "a web page"),
        ("<rss><channel/></rss>", "a feed"),
        ("", "no XML"),
        ("{\"a\":1}", "no XML"),
    ] {
        assert!(read(text).unwrap_err().contains(what), "{text}");
    }
    // An empty list is a list.
    assert!(list("<opml><body/></opml>").outlines.is_empty());
}

#[test]
fn limits_are_named() {
    let refused = |text: &str| read(text).unwrap_err();
    let many = refused(&body(&"<outline/>".repeat(100_001)));
    assert_eq!(many, "line 1: there are more than 100000 outlines, which is the limit");
    assert!(refused(&body(&"<outline>".repeat(257))).contains("256 outlines inside each other"));
    assert!(refused(&"x".repeat(BYTES_LIMIT + 1)).contains("33554433 bytes"));
    let deep = format!("<opml><outline>{}", "<p>".repeat(600));
    assert!(refused(&deep).contains("elements inside each other"));
    let many = list(&body(&"<outline a=&/>".repeat(1_009)));
    assert_eq!(many.problems.len(), 1_000);
    assert!(many.unnamed >= 9);
    let text = body(&format!("<outline>{}<outline/></outline>", "<x/>".repeat(100_001)));
    let list = list(&text);
    assert_eq!((list.outlines.len(), list.outlines[0].other.len()), (2, 100_000));
}

/// Work is bounded by the length of the text, whatever it is made of: these took hours if it were
/// not.
#[test]
fn hostile_texts_are_answered() {
    let pieces = "<!-- |<![CDATA[|<?a |<!a[|<outline a=\"x>|<outline a='x |<a b=|<|</outline>|<outline |&|\
        \"|<title>|<sx:sync>|<sx:conflict>|a=\"b\"";
    for piece in pieces.split('|') {
        let text = piece.repeat(2_000_000 / piece.len());
        let _ = (read(&text).is_ok(), read(&format!("<opml><outline {text}")).is_ok());
    }
}
