use super::testing::{UNITS, check, read, repaired};
use super::*;
use crate::model::Flaw;
use proptest::prelude::*;

/// What stands in an entry, a piece in each line: plain ones, and behind them what has to be repaired.
const PIECES: &str = include_str!("../../../../tests/fixtures/pieces.txt");

fn pieces() -> Vec<&'static str> {
    let odd = ["<a>\u{1}\u{FFFE}</a>", "<a>\u{FEFF}</a>", "text of the entry ", "\r\n\t "];
    PIECES.lines().filter(|line| !line.is_empty()).chain(odd).collect()
}

fn document(format: usize, entries: &[Vec<usize>]) -> String {
    let names = "xmlns:dc=\"http://purl.org/dc/elements/1.1/\" xmlns:media=\"http://search.yahoo.com/mrss/\" \
                 xmlns:content=\"http://purl.org/rss/1.0/modules/content/\"";
    let based = "<feed xmlns=\"http://www.w3.org/2005/Atom\" xml:base=\"https://e.org/x/\" xml:lang=\"en\" NAMES>";
    let rdf = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" \
               xmlns=\"http://purl.org/rss/1.0/\" NAMES><channel rdf:about=\"urn:c\"><title>F</title></channel>";
    // What it begins with, and the entry.
    let (begin, entry) = match format {
        0 => ("<rss version=\"2.0\" NAMES><channel><title>F</title>", "item"),
        1 => (based, "entry"),
        2 => ("<a:feed xmlns:a=\"http://www.w3.org/2005/Atom\" xmlns=\"urn:d\" NAMES>", "a:entry"),
        3 => (rdf, "item rdf:about=\"urn:i\""),
        4 => ("<rss version=\"2.0\" xmlns=\"urn:odd\" NAMES><channel>", "item"),
        _ => ("<feed NAMES>", "entry xml:base=\"/own/\" n='1'"),
    };
    let name = entry.split(' ').next().unwrap_or_default();
    let pieces = pieces();
    let mut text = begin.replace("NAMES", names);
    for inside in entries {
        let inside: String = inside.iter().map(|at| pieces[*at]).collect();
        text.push_str(&format!("<{entry}>{inside}</{name}>\n"));
    }
    let root = begin.split([' ', '<']).nth(1).unwrap_or_default();
    let channel = if root == "rss" { "</channel>" } else { "" };
    format!("{text}{channel}</{root}>")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn documents_are_read_as_they_are_or_repaired(
        format in 0..6_usize,
        entries in proptest::collection::vec(
            proptest::collection::vec(0..pieces().len(), 0..6), 0..5,
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
        check(&text);
    }
}

/// Found by the fuzz target `tree`: text behind an entry that is given up, a byte order mark behind a stray `<`, a
/// namespace with a line end before it, an element that is named like a declaration; and
/// what is dropped in the middle of a `]]>`.
#[test]
fn what_fuzzing_found_is_read_as_it_is_repaired() {
    let given_up = ["<l><<item><item \"\">", "<l><item><b><item>a</l>z"];
    let marked = ["<\u{feff}<e>", "<?m?><\u{feff}<e>", "<e><\u{feff}a</e>"];
    let named = ["<a:e xmlns:a=\"\nurn:a\"/>", "<xmlns:s>", "<e><xmlns:s a='1'>b</xmlns:s></e>"];
    let joined = [
        "<r>]]\x1E></r>",
        "<r>]]&#1;\x01></r>",
        "<r>]]<!-- -- -->></r>",
        "<r><![CDATA[]\x01]>a]]></r>",
        "<?t ?\0>?><r/>",
        "<r><!-- -\x01-> --></r>",
    ];
    for text in given_up.into_iter().chain(marked).chain(named).chain(joined) {
        check(text);
    }
}

#[test]
fn what_is_plain_has_no_flaw() {
    for (at, piece) in PIECES.lines().take_while(|line| !line.is_empty()).enumerate() {
        let text = document(0, &[vec![at]]);
        let built = read(&text);
        assert!(built.findings.flaws.is_empty(), "{piece}: {:?}", built.findings);
        assert_eq!(built.units.len(), 1);
        check(&text);
    }
}

#[test]
fn each_flaw_has_its_kind() {
    let flaws = [
        ("<a>\u{1}</a>", Flaw::Characters),
        ("<a>R&D</a>", Flaw::References),
        ("<a b=1/>", Flaw::Tags),
        ("<a><b></a>", Flaw::Tags),
        ("<z:a/>", Flaw::Prefixes),
        ("<!-- a --><?xml version='1.0'?><a/>", Flaw::Around),
        ("<a b='1'c='2'/>", Flaw::Tags),
        ("<a b='1'xmlns:c='urn:c'/>", Flaw::Tags),
    ];
    for (text, kind) in flaws {
        let flaws = read(text).findings.flaws;
        let found: Vec<_> = Flaw::ALL.into_iter().filter(|flaw| flaws.contains(*flaw)).collect();
        assert_eq!(found, [kind], "{text}");
    }
}

#[test]
fn an_element_takes_little_memory() {
    assert!(size_of::<DocNode>() <= 40 && size_of::<DocAttributeSpan>() <= 20);
    assert!(size_of::<Repair>() <= 32);
}

#[test]
fn bases_and_languages_are_those_of_the_nearest_element() {
    let text =
        "<a xml:base='http://e.org/x/' xml:lang='de'><b xml:base='y/'><c/></b><d xml:lang=''/></a>";
    let built = read(text);
    let root = built.doc.root().unwrap();
    let element = |local: &str| root.descendants().find(|e| e.local() == local);
    let c = element("c").unwrap();
    assert_eq!(c.base().unwrap().as_str(), "http://e.org/x/y/");
    assert_eq!((c.lang().as_deref(), element("d").unwrap().lang()), (Some("de"), None));
    assert_eq!(element("d").unwrap().base_spelled().as_deref(), Some("http://e.org/x/"));
}

#[test]
fn a_base_or_language_that_is_written_long_is_passed_over() {
    let (lang, base) = ("x".repeat(65), format!("b{}/", "&#47;..".repeat(600)));
    let text = format!(
        "<a xml:base='http://e.org/x/' xml:lang='de'><item xml:base='{base}' xml:lang='{lang}'><c/></item></a>"
    );
    let built = read(&text);
    let c = built.doc.root().unwrap().descendants().last().unwrap();
    assert_eq!(c.base_spelled().as_deref(), Some("http://e.org/x/"));
    assert_eq!(c.lang().as_deref(), Some("de"));
    assert_eq!(built.findings.warnings.len(), 1);
}

#[test]
fn a_declaration_is_given_its_canonical_spelling() {
    let text = "<feed xmlns='https://www.w3.org/2005/atom/'><title/></feed>";
    let built = read(text);
    let uri = |doc: &Doc<'_>| doc.root().unwrap().scope();
    let canonical = [(String::new(), ns::ATOM.to_owned())];
    assert_eq!(uri(&built.doc), canonical);
    assert!(built.findings.flaws.is_empty());
    let whole = repaired(&built);
    assert_eq!(whole, "<feed xmlns='http://www.w3.org/2005/Atom'><title/></feed>");
    assert_eq!(uri(&read(&whole).doc), canonical);
}

#[test]
fn a_line_end_in_a_value_stays_where_it_is_a_reference() {
    let built = read("<a b='1\n2&#10;3'/>");
    assert_eq!(built.doc.root().unwrap().attribute("b").as_deref(), Some("1 2\n3"));
}

#[test]
fn weight_is_limited() {
    let limits = DocLimits { weight: 4000, ..DocLimits::default() };
    let many = "<x/>".repeat(200);
    let read =
        |text: &str| Doc::read(text, 0, None, &limits, &UNITS).map(|built| built.units.len());
    assert_eq!(read(&format!("<r><c><item>{many}</item><item/></c></r>")), Ok(1));
    assert!(read(&format!("<r>{many}</r>")).is_err());
}

#[test]
fn an_element_of_another_namespace_begins_no_entry() {
    let torn = |inner: &str| {
        let text = format!("<r><c><item>{inner}</item><item/><b></c></r>");
        let built = read(&text);
        assert!(built.findings.fault.is_some() && built.units.len() == 2, "{text}");
        built.dropped.len()
    };
    assert_eq!(torn("<item xmlns=\"urn:x\"><a/></item>"), 0);
    assert_eq!(torn("<title xmlns='urn:x'><item><a/></item></title>"), 0);
    assert_eq!(torn("<item><a/>"), 1);
    assert_eq!(torn("<item xmlns=''><a/>"), 1);
}
