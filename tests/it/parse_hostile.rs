//! Broken and hostile documents: what is whole is kept, nothing fails, and everything ends.

use std::time::Duration;
use tidegate_core::model::{Completeness, FeedDocument, Skeleton};
use tidegate_core::xml::doc::DocLimits;
use tidegate_format::parse::{Limits, ParseError, document};
use tokio::time::Instant;

fn read(text: &str) -> Result<FeedDocument<'_>, ParseError> {
    document(text, None, &Limits::default())
}

fn titles(feed: &FeedDocument<'_>) -> Vec<String> {
    feed.entries.iter().map(|e| e.title.clone().unwrap_or_default().into_owned()).collect()
}

fn rss(items: &str) -> String {
    format!("<rss version='2.0'><channel><title>c</title>{items}</channel></rss>")
}

/// What holds for every document, whatever it is: the target of the fuzzer says it.
fn check(text: &str) {
    crate::fuzz_smoke::targets::document(text.as_bytes());
}

fn salvaged(text: &str) -> (Vec<String>, String) {
    let feed = read(text).unwrap();
    check(text);
    let Completeness::Salvaged(reason) = &feed.completeness else { panic!("{text} is whole") };
    (titles(&feed), reason.clone())
}

#[test]
fn empty_feeds_are_feeds_and_have_a_place_for_entries() {
    for (text, expected) in [
        (
            "<feed xmlns='http://www.w3.org/2005/Atom'/>",
            "<feed xmlns='http://www.w3.org/2005/Atom'>|</feed>",
        ),
        ("<rss version='2.0'><channel/></rss>", "<rss version='2.0'><channel>|</channel></rss>"),
        (
            "<rss><channel><title>t</title></channel></rss>",
            "<rss><channel><title>t</title>|</channel></rss>",
        ),
    ] {
        let feed = read(text).unwrap();
        assert_eq!((feed.entries.len(), &feed.completeness), (0, &Completeness::Full));
        let mut shown = feed.skeleton.text.clone();
        shown.insert(feed.skeleton.slots.entries, '|');
        assert_eq!(shown, expected);
    }
}

#[test]
fn a_version_without_value_is_no_place_to_write_one() {
    for (root, value) in [
        ("<rss version>", None),
        ("<rss version xmlns:a='urn:a'>", None),
        ("<rss version=0.91>", Some("0.91")),
        ("<rss version='0.91'>", Some("0.91")),
        ("<rss version=''>", Some("")),
    ] {
        let text = format!("{root}<channel><item><title>t</title></item></channel></rss>");
        let Skeleton { text, slots, .. } = read(&text).unwrap().skeleton;
        assert_eq!(slots.version.map(|place| &text[place]), value, "{root}");
        assert_eq!(text.contains("version"), value.is_some(), "{root}: {text}");
    }
}

#[test]
fn soft_faults_leave_a_document_whole() {
    for item in [
        "<item><title>a</title><link>x?a=1&b=2</link></item>",
        "<item><title>a</title><description>&nbsp;&eacute;&foo; & &#0; &#x1F;</description></item>",
        "<item><title>a\u{1}\u{FFFE}</title></item>",
        "<item><title>a</title><x y='1' y='2'/></item>",
        "<item><title>a</title><x y=1 z/></item>",
        "<item><title>a</title><x y='1'z='2'/></item>",
        "<item><title>a</title><!-- a -- b --></item>",
        "<item><title>a</title>]]></item>",
        "<item><title>a</title><?php echo 1 ?><??></item>",
        "<item><title>a</title><item/></item>",
    ] {
        for text in [
            rss(item),
            format!("\n {}", rss(item)),
            format!("Warning: mysql\n<?xml version='1.0'?>{}", rss(item)),
            format!("<br /><b>Warning</b>: x<?xml version='1.0'?>{}", rss(item)),
            format!("{}\n<!-- cached -->\n<script>x</script>", rss(item)),
        ] {
            let feed = read(&text).unwrap();
            assert_eq!(feed.completeness, Completeness::Full, "{text}");
            assert_eq!(titles(&feed), ["a"], "{text}");
            check(&text);
        }
    }
}

#[test]
fn names_that_belong_to_xml_itself_are_bound_to_nothing_else() {
    for (declared, kept) in [
        ("xmlns:q='http://www.w3.org/2000/xmlns/'", false),
        ("xmlns:q='http://www.w3.org/XML/1998/namespace'", false),
        ("xmlns:q='http&#58;//www.w3.org/2000/xmlns/'", false),
        ("xmlns='http://www.w3.org/2000/xmlns/'", false),
        ("xmlns='http://www.w3.org/XML/1998/namespace'", false),
        ("xmlns:xmlns='urn:x'", false),
        ("xmlns:xml='urn:x'", false),
        ("xmlns:xml='http://www.w3.org/XML/1998/namespace'", true),
        ("xmlns:q='urn:x'", true),
    ] {
        let text = rss(&format!("<item><title>a</title><b {declared}>c</b></item>"));
        check(&text);
        let feed = read(&text).unwrap();
        assert_eq!(feed.entries[0].markup.contains(declared), kept, "{declared}");
    }
}

#[test]
fn repairs_are_as_small_as_they_can_be() {
    let text = rss("<item><a b=1 b='2' c='&x&lt;&eacute;'>&nbsp;&#12;x & y</a></item>");
    let feed = read(&text).unwrap();
    assert_eq!(
        feed.entries[0].markup,
        "<item><a b=\"1\"  c='&amp;x&lt;&#233;'>&#160;x &amp; y</a></item>"
    );
    check(&text);
}

#[test]
fn an_end_tag_keeps_its_name_alone() {
    for end in ["</title>", "</title \n>", "</ title>", "</title a='b'>", "</\ttitle a>"] {
        let text = rss(&format!("<item><title>a{end}<b>c</b></item>"));
        check(&text);
        let said = read(&text).unwrap().entries[0].markup.to_string();
        let whole = said.replace(char::is_whitespace, "");
        assert_eq!(whole, "<item><title>a</title><b>c</b></item>", "{end:?}");
    }
}

#[test]
fn a_broken_entry_costs_no_other() {
    let good = "<item><title>b</title></item>";
    for (bad, expected) in [
        ("<item><title>a</title><description>x</a></description></item>", vec!["a", "b"]),
        ("<item><title>a</title><description><b>x</description></item>", vec!["a", "b"]),
        ("<item><title>a</title>1 < 2</item>", vec!["a", "b"]),
        ("<item><title>a</title><d e='x>y</d></item>", vec!["a", "b"]),
        ("<item><title>a</title>", vec!["b"]),
        ("<item><title>a", vec!["b"]),
        ("<item><title>a</title><![CDATA[ no end </item>", vec!["b"]),
        ("<item><title>a</title><!-- no end </item>", vec!["b"]),
        ("<item><title>a</title><guid>x</item>", vec!["b"]),
    ] {
        let (found, reason) = salvaged(&rss(&format!("{bad}{good}")));
        assert_eq!(found, expected, "{bad}: {reason}");
    }
}

/// Where every element is closed, structure is what XML says: markup within an element is that
/// element's, though it is called like an entry and stands where none is.
#[test]
fn where_all_is_closed_nothing_is_taken_for_open() {
    let atom = "<title xmlns='http://purl.org/atom/ns#'><entry>x</entry></title>\
        <feed xmlns='http://purl.org/rss/1.0/'><link><item/><entry/></link></feed>";
    let rss_head = "<title xmlns='http://purl.org/atom/ns#'><item>x</item></title>\
        <item2><link><item/></link></item2>";
    let inside = "<id2><id><entry a='1'><id>y</id></entry></id></id2><entry>z</entry>\
        <feed xmlns='http://www.w3.org/2005/Atom'><id><entry/></id></feed>";
    let (one, old) = ("http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#");
    for text in [
        format!("<feed xmlns='{one}'>{atom}<entry><title>a</title></entry></feed>"),
        format!("<rss><channel>{rss_head}<item><title>a</title></item></channel></rss>"),
        format!("<feed xmlns='{old}'><entry><title>a</title>{inside}</entry></feed>"),
        rss("<item><title>a</title><source>x<item>y</item></source><item>z</item></item>"),
        // What follows the root is no part of it.
        rss("<item><title>a</title><item>z</item></item>") + "<script><title>",
        // Faults of other kinds leave the tags what they are.
        rss("<item><title>a</title>&nbsp; & x<item>z</item><!-- a -- b --><b c=1/></item>"),
    ] {
        let feed = read(&text).unwrap();
        assert_eq!(feed.completeness, Completeness::Full, "{text}");
        assert_eq!(titles(&feed), ["a"], "{text}");
        check(&text);
    }
}

#[test]
fn a_broken_head_costs_no_entry() {
    let editor = "<managingEditor><a></managingEditor>";
    for head in ["<title>x", "</b>", "<image><url>y</image>", editor] {
        let text = format!("<rss><channel>{head}<item><title>a</title></item></channel></rss>");
        assert_eq!(salvaged(&text).0, ["a"], "{head}");
    }
    let text = rss("<item><title>a</title></item>") + "<item><title>b</title></item>";
    assert_eq!(salvaged(&text).0, ["a"]);
}

#[test]
fn every_cut_of_a_feed_ends_well() {
    for name in ["atom10.xml", "rss20.xml", "rss10.xml", "feed11.json", "atom03.xml"] {
        let text = std::fs::read_to_string(format!("tests/fixtures/feeds/{name}")).unwrap();
        let whole = read(&text).unwrap().entries.len();
        let mut most = 0;
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            let cut = &text[..at];
            if at % 9 == 0 {
                check(cut);
            }
            if let Ok(feed) = read(cut) {
                // Only white space may be missing from a document that passes for whole.
                let full = feed.completeness == Completeness::Full;
                assert!(!full || text[at..].trim().is_empty(), "{name} cut at {at}");
                assert!(feed.entries.len() >= most && feed.entries.len() <= whole);
                most = feed.entries.len();
            } else {
                assert_eq!(most, 0, "{name} cut at {at}");
            }
        }
        assert_eq!(most, whole, "{name}");
    }
}

#[test]
fn what_is_no_feed_says_what_it_is() {
    let message = |text: &str| read(text).map(|_| ()).unwrap_err().to_string();
    assert_eq!(read(""), Err(ParseError::Empty));
    assert_eq!(read(" \n\u{FEFF}\0"), Err(ParseError::Empty));
    for page in [
        "<!DOCTYPE html><html><head><title>Log in &amp; go</title></head><body><br></html>",
        "<html xmlns='http://www.w3.org/1999/xhtml'><title>Log in &amp; go</title></html>",
    ] {
        let said = message(page);
        assert!(said.contains("an HTML page titled \"Log in & go\""), "{said}");
    }
    let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><x/></rdf:RDF>";
    for (text, what) in [
        ("<opml version='2.0'><body/></opml>", "OPML"),
        ("<urlset/>", "a sitemap"),
        ("<entry xmlns='http://www.w3.org/2005/Atom'/>", "a single Atom entry"),
        ("<svg/>", "another kind (<svg>)"),
        ("hello", "plain text"),
        ("[1,2]", "a JSON list"),
        ("{\"a\":1}", "no JSON Feed"),
        ("<!-- x -->", "without any element"),
        (rdf, "nothing of a feed"),
        ("<rss version='2.0'/>", "nothing of a feed"),
        ("<feed/>", "nothing of a feed"),
    ] {
        let said = message(text);
        assert!(said.contains(what), "{text}: {said}");
    }
    for text in [
        "<rss><channel><item><title>a",
        "<rss><channel><title>x</title></channel",
        "<rss><chan",
        "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":[{\"id\":\"1\"",
    ] {
        assert!(matches!(read(text), Err(ParseError::NothingWhole { .. })), "{text}");
    }
}

#[test]
fn entities_are_not_expanded() {
    let lol = |n: usize| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10));
    let bomb: String = (1..20).map(lol).collect();
    let text = format!(
        "<!DOCTYPE rss [<!ENTITY l0 \"lol\">{bomb}]>{}",
        rss("<item><title>&l19;</title></item>")
    );
    let feed = read(&text).unwrap();
    assert_eq!(titles(&feed), ["&l19;"]);
    assert!(!feed.skeleton.text.contains("ENTITY"));
    check(&text);
}

#[test]
fn limits_cost_an_entry_inside_and_the_document_outside() {
    let good = "<item><title>b</title></item>";
    let deep = "<x>".repeat(1000);
    let wide: String = (0..100_000).map(|n| format!(" a{n}='1'")).collect();
    let spaces: String = (0..1000).map(|n| format!(" xmlns:a{n}='urn:{n}'")).collect();
    let many = "<x>1</x>".repeat(20_000);
    let closed = "</x>".repeat(1000);
    for bad in [
        format!("<item>{deep}{closed}</item>"),
        format!("<item>{deep}</item>"),
        format!("<item><x{wide}/></item>"),
        format!("<item><x{spaces}/></item>"),
        format!("<item>{many}</item>"),
        format!("<item><{}/></item>", "x".repeat(5000)),
        format!("<item><title>{}</title></item>", "x".repeat(9 << 20)),
    ] {
        let text = rss(&format!("{bad}{good}"));
        let feed = read(&text).unwrap();
        assert_eq!(titles(&feed), ["b"]);
        assert!(matches!(feed.completeness, Completeness::Salvaged(_)));
    }
    for bad in [format!("{deep}{closed}"), format!("<x{wide}/>")] {
        let refused = read(&rss(&bad)).map(|_| ());
        assert!(matches!(refused, Err(ParseError::Limit { .. })), "{refused:?}");
    }
    let entries = Limits { entries: 2, ..Limits::default() };
    let refused = document(&rss(&good.repeat(3)), None, &entries).map(|_| ());
    assert!(matches!(refused, Err(ParseError::Limit { what: "entries", limit: 2, .. })));
    let small = Limits { decoded: 10, ..Limits::default() };
    assert!(matches!(document(&rss(good), None, &small), Err(ParseError::TooLarge { .. })));
    let markup = DocLimits { repairs: 5, ..DocLimits::default() };
    let repairs = Limits { markup, ..Limits::default() };
    let bare = "& ".repeat(9);
    let refused = document(&rss(&bare), None, &repairs).map(|_| ());
    assert!(matches!(refused, Err(ParseError::Limit { what: "repairs", .. })));
    let text =
        rss(&format!("{good}<item><title>a</title>{bare}</item><item><title>c</title></item>"));
    let feed = document(&text, None, &repairs).unwrap();
    assert_eq!(titles(&feed), ["b", "c"]);
    assert!(matches!(feed.completeness, Completeness::Salvaged(_)));
    // Warnings beyond their limit cost nothing.
    let text = rss(&format!("<item><title>a</title>{}</item>", "& ".repeat(10_000)));
    let feed = read(&text).unwrap();
    assert_eq!(feed.warnings.len(), Limits::default().markup.warnings);
    assert_eq!(feed.completeness, Completeness::Full);
}

#[test]
fn tombstones_beyond_their_limit_cost_nothing_else() {
    let limits = Limits { head_values: 2, ..Limits::default() };
    let gone = |n: usize| format!("<at:deleted-entry ref='urn:{n}' when='2026-11-20T16:20:05Z'/>");
    let gone: String = (0..5).map(gone).collect();
    let text = format!(
        "<feed xmlns='http://www.w3.org/2005/Atom' xmlns:at='http://purl.org/atompub/tombstones/1.0'>\
         <title>f</title>{gone}<entry><id>urn:e</id></entry></feed>"
    );
    let feed = document(&text, None, &limits).unwrap();
    assert_eq!((feed.tombstones.len(), feed.entries.len()), (2, 1));
    assert!(feed.warnings.iter().any(|w| w.message.contains("tombstones beyond 2")));
    assert_eq!(feed.completeness, Completeness::Full);
}

#[test]
fn completeness_is_said_by_the_feed_itself() {
    let mark = "<fh:complete xmlns:fh='http://purl.org/syndication/history/1.0'/>";
    let is_complete = |text: &str| read(text).unwrap().head.complete;
    let rss = |head: &str| format!("<rss version='2.0'>{head}</rss>");
    assert!(is_complete(&rss(&format!("<channel>{mark}</channel>"))));
    assert!(!is_complete(&rss(&format!("<channel><image>{mark}</image></channel>"))));
    assert!(!is_complete(&rss(&format!("{mark}<channel><title>T</title></channel>"))));
    let atom = |head: &str| format!("<feed xmlns='http://www.w3.org/2005/Atom'>{head}</feed>");
    assert!(is_complete(&atom(mark)));
    assert!(!is_complete(&atom(&format!("<author>{mark}</author>"))));
}

/// Documents that make a careless parser read the same bytes again and again.
#[test]
fn repeated_breaks_are_read_once() {
    let pieces =
        "<item><!--|<item><![CDATA[|<item><a b=\"|<3|</x>|<item><?a|<a>|<!DOCTYPE [|&|<item>";
    for piece in pieces.split('|') {
        let text = rss(&piece.repeat((1 << 20) / piece.len()));
        let began = Instant::now();
        let _ = read(&text);
        // It takes half a second.
        assert!(began.elapsed() < Duration::from_secs(10), "{piece}: {:?}", began.elapsed());
    }
    let json = "{\"version\":\"https://jsonfeed.org/version/1\",\"items\":".to_owned();
    assert!(read(&(json + &"[".repeat(1 << 20))).is_err());
}
