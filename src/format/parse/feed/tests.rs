//! What is skimmed is read as what is walked through, to the last field.

use super::*;
use crate::parse;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

/// Compares a document that was skimmed where that could be done with one that was walked through, and
/// counts its entries and those that were skimmed.
fn compared(text: &str, limits: &Limits) -> (usize, usize) {
    let url = Url::parse("https://example.org/feed.xml").ok();
    let start = memchr::memchr(b'<', text.as_bytes()).unwrap_or(0);
    let skimmed = read(text, start, url.as_ref(), limits);
    let walked = walk(text, start, url.as_ref(), limits, false);
    assert_eq!(skimmed, walked);
    let (Ok(skimmed), Ok(walked)) = (skimmed, walked) else { return (0, 0) };
    let on_demand = |entry: &Entry<'_>| format!("{:?}", entry.projection).contains("OnDemand");
    let count = skimmed.entries.iter().filter(|entry| on_demand(entry)).count();
    for (one, other) in skimmed.entries.iter().zip(&walked.entries) {
        assert_eq!(one.fields(), other.fields(), "{}", one.markup);
    }
    (walked.entries.len(), count)
}

/// The files in a folder and all below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

fn all_below(folder: &Path) -> (usize, usize) {
    let limits = Limits::default();
    let mut counts = (0, 0);
    for path in files(folder) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let Ok(decoded) = parse::decode(&bytes, None, &limits) else { continue };
        if !decoded.text.trim_start().starts_with('<') {
            continue;
        }
        let (entries, skimmed) = compared(&decoded.text, &limits);
        counts = (counts.0 + entries, counts.1 + skimmed);
    }
    counts
}

#[test]
fn the_fixtures_are_read_alike() {
    let (entries, skimmed) =
        all_below(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures")));
    // Most of them share their items, or are broken on purpose.
    assert!(skimmed > 0 && skimmed < entries, "{skimmed} of {entries}");
}

/// Recorded documents: with `TIDEGATE_CORPUS` set to a folder of them.
#[test]
fn recorded_documents_are_read_alike() {
    let Some(corpus) = std::env::var_os("TIDEGATE_CORPUS") else { return };
    let (entries, skimmed) = all_below(Path::new(&corpus));
    println!("{skimmed} of {entries} entries are skimmed");
    assert!(skimmed * 2 > entries, "{skimmed} of {entries}");
}

/// What stands in an entry: plain, and what makes the walk say a word.
const PIECES: &[&str] = &[
    "<title>A &amp; B</title>",
    "<title type=\"html\">&lt;b&gt;A&lt;/b&gt; &#xe9;</title>",
    "<title>A <b>bold</b> one</title>",
    "<guid isPermaLink=\"false\">g1</guid>",
    "<guid/>",
    "<id>urn:1</id>",
    "<id> urn:2 </id>",
    "<link>https://example.org/a?b=1&amp;c=2</link>",
    "<link rel=\"alternate\" href=\"/b?x=1&amp;y=2\" type=\"text/html\"/>",
    "<link rel='enclosure' href='c.mp3' length='1'/>",
    "<enclosure url=\"https://example.org/c.mp3\" type=\"audio/mpeg\" length=\"12\"/>",
    "<pubDate>Fri, 20 Nov 2026 16:20:05 GMT</pubDate>",
    "<updated>2026-11-20T16:20:05Z</updated>",
    "<dc:creator>Ada</dc:creator>",
    "<dc:date>2026-11-20</dc:date>",
    "<author><name>Ada</name><uri>https://example.org/ada</uri></author>",
    "<author>ada@example.org (Ada)</author>",
    "<author><name>A <i>B</i></name></author>",
    "<description><![CDATA[<p>One &nbsp; ]] two</p>]]></description>",
    "<description>&lt;p&gt;One&lt;/p&gt; ]] two</description>",
    "<content type=\"xhtml\"><div xmlns=\"http://www.w3.org/1999/xhtml\"><p>One <br/> two</p></div></content>",
    "<content:encoded><![CDATA[]]></content:encoded>",
    "<media:group><media:content url=\"a\" medium='image'/><media:title>T</media:title></media:group>",
    "<x:odd xmlns:x=\"urn:x\" x:a=\"1\" a=\"2\">o<x:in/></x:odd>",
    "<category term='a'/>",
    "<category>a</category>",
    "<source><title>Other</title><id>urn:s</id></source>",
    "<!-- a comment -->",
    "<!-- a -- comment -->",
    "<!---->",
    "<!-->",
    "<?php echo 1 ?>",
    "<summary xml:lang=\"de\">s</summary>",
    "<summary xml:base=\"/deep/\">s</summary>",
    "<undeclared:a>1</undeclared:a>",
    "<a b=1>bare</a>",
    "<a b=\"1\" b=\"2\">twice</a>",
    "<a dc:b=\"1\" z:b=\"2\" xmlns:z=\"http://purl.org/dc/elements/1.1/\">twice</a>",
    "<a b=\"1\"c=\"2\"/>",
    "<a b = \"1\" />",
    "<a>&nbsp; &copy;</a>",
    "<a>R&D</a>",
    "<a title=\"R&D &nbsp;\"/>",
    "<a>&#0; &#x1F;</a>",
    "<a>]]></a>",
    "<a>\u{1}\u{FFFE}</a>",
    "<a>\u{FEFF}</a>",
    "<a><b></a>",
    "</b>",
    "<a ></a >",
    "<a/ >",
    "<3",
    "< a>",
    "<item>",
    "<entry>",
    "<item><title>in</title></item>",
    "<a:item xmlns:a=\"urn:a\">x</a:item>",
    "<sx:sync xmlns:sx=\"http://www.microsoft.com/schemas/sse\" id=\"a\" updates=\"1\"><sx:history sequence=\"1\" by=\"b\"/></sx:sync>",
    "<p xmlns=\"\">none</p>",
    "<p xmlns:dc=\"urn:other\"><dc:creator>Eve</dc:creator></p>",
    "text of the entry ",
    "\r\n\t ",
    "ünïcödé",
    "<élan>é</élan>",
];

fn document(format: usize, entries: &[Vec<usize>]) -> String {
    let names = "xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:media=\"http://search.yahoo.com/mrss/\" \
                 xmlns:content=\"http://purl.org/rss/1.0/modules/content/\"";
    let (before, entry, after) = match format {
        0 => (
            format!("<rss version=\"2.0\" {names}><channel><title>F</title>"),
            "item",
            "</channel></rss>",
        ),
        1 => (
            format!(
                "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"https://e.org/x/\" xml:lang=\"en\" {names}>"
            ),
            "entry",
            "</feed>",
        ),
        2 => (
            format!("<a:feed xmlns:a=\"http://www.w3.org/2005/Atom\" xmlns=\"urn:d\" {names}>"),
            "a:entry",
            "</a:feed>",
        ),
        3 => (
            format!(
                "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns=\"http://purl.org/rss/1.0/\" {names}><channel rdf:about=\"urn:c\"><title>F</title></channel>"
            ),
            "item rdf:about=\"urn:i\"",
            "</rdf:RDF>",
        ),
        4 => (
            format!("<rss version=\"2.0\" xmlns=\"urn:odd\" {names}><channel>"),
            "item",
            "</channel></rss>",
        ),
        _ => (format!("<feed {names}>"), "entry xml:base=\"/own/\" n='1'", "</feed>"),
    };
    let name = entry.split(' ').next().unwrap_or_default();
    let mut text = before;
    for pieces in entries {
        text.push_str(&format!("<{entry}>"));
        for at in pieces {
            text.push_str(PIECES[*at]);
        }
        text.push_str(&format!("</{name}>\n"));
    }
    text + after
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn invented_documents_are_read_alike(
        format in 0..6_usize,
        entries in proptest::collection::vec(
            proptest::collection::vec(0..PIECES.len(), 0..6), 0..5,
        ),
        // Something is put in anywhere, over some of what is there.
        edits in proptest::collection::vec(
            (0.0..1.0_f64, 0..4_usize, proptest::sample::select(vec![
                "", "<", ">", "&", ";", "\"", "'", "/", "]]>", "<![CDATA[", "--", "x", " ", "=",
            ])),
            0..3,
        ),
        is_edited: bool,
    ) {
        let mut text = document(format, &entries);
        for (place, length, with) in edits.iter().filter(|_| is_edited) {
            let mut chars: Vec<char> = text.chars().collect();
            let at = (chars.len() as f64 * place) as usize;
            let end = (at + length).min(chars.len());
            chars.splice(at..end, with.chars());
            text = chars.into_iter().collect();
        }
        compared(&text, &Limits::default());
    }

    #[test]
    fn limits_are_met_alike(
        entries in proptest::collection::vec(
            proptest::collection::vec(0..PIECES.len(), 0..6), 0..5,
        ),
        (fields, path, projection, depth) in (1..12_usize, 4..40_usize, 64..2000_usize, 2..7_usize),
    ) {
        let mut limits = Limits { fields, path, projection, ..Limits::default() };
        limits.walk.depth = depth;
        compared(&document(0, &entries), &limits);
    }
}

#[test]
fn fields_are_those_of_the_walk() {
    let text = document(0, &[vec![0, 3, 7, 18, 22]]);
    assert_eq!(compared(&text, &Limits::default()), (1, 1));
    let read = parse::document(&text, None, &Limits::default()).unwrap();
    let fields: Vec<_> = read.entries[0].fields().to_vec();
    assert_eq!(fields.len(), 8, "{fields:?}");
}

#[test]
fn completeness_is_said_by_the_feed_itself() {
    let mark = "<fh:complete xmlns:fh='http://purl.org/syndication/history/1.0'/>";
    let is_complete = |text: &str| {
        let start = memchr::memchr(b'<', text.as_bytes()).unwrap();
        read(text, start, None, &Limits::default()).unwrap().head.complete
    };
    let rss = |head: &str| format!("<rss version='2.0'>{head}</rss>");
    assert!(is_complete(&rss(&format!("<channel>{mark}</channel>"))));
    assert!(!is_complete(&rss(&format!("<channel><image>{mark}</image></channel>"))));
    assert!(!is_complete(&rss(&format!("{mark}<channel><title>T</title></channel>"))));
    let atom = |head: &str| format!("<feed xmlns='http://www.w3.org/2005/Atom'>{head}</feed>");
    assert!(is_complete(&atom(mark)));
    assert!(!is_complete(&atom(&format!("<author>{mark}</author>"))));
}
