//! One document of each format, read for all it says.

use std::time::Duration;
use tidegate_core::model::{Completeness, Entry, FeedDocument, Format};
use tidegate_format::parse::{Limits, decode, document, own};
use url::Url;

fn parsed<'a>(text: &'a str, url: &str) -> FeedDocument<'a> {
    let url = Url::parse(url).unwrap();
    document(text, Some(&url), &Limits::default()).unwrap()
}

fn fixture(name: &str) -> String {
    let bytes = std::fs::read(format!("tests/fixtures/feeds/{name}")).unwrap();
    decode(&bytes, None, &Limits::default()).unwrap().text.into_owned()
}

fn fields<'e>(entry: &'e Entry<'_>) -> Vec<(&'e str, &'e str)> {
    entry.fields().iter().map(|f| (f.path.as_ref(), f.value.as_ref())).collect()
}

fn date(time: Option<tidegate_core::model::Time>) -> String {
    time.map(|t| t.to_string()).unwrap_or_default()
}

#[test]
fn atom_1_0() {
    let text = fixture("atom10.xml");
    let feed = parsed(&text, "https://harbour.example/feed.atom");
    assert_eq!(feed.format, Format::Atom10);
    assert_eq!(feed.completeness, Completeness::Full);
    let head = &feed.head;
    assert_eq!(head.title.as_deref(), Some("Harbour News & Tides"));
    assert_eq!(head.id.as_deref(), Some("tag:harbour.example,2026:news"));
    assert_eq!(head.link.as_deref(), Some("https://harbour.example/news/"));
    assert_eq!(head.generator.as_deref(), Some("Tool & Co"));
    assert_eq!(date(head.updated), "2026-11-20T08:30:00Z");
    assert_eq!(head.links.own.as_deref(), Some("https://harbour.example/news/feed.atom"));
    assert_eq!(head.links.hubs, ["https://hub.example/one", "https://hub.example/two"]);
    assert_eq!(head.links.sup.as_deref(), Some("https://harbour.example/sup#abc"));
    assert_eq!(head.links.prev_archive.as_deref(), Some("https://harbour.example/news/archive/7"));
    assert_eq!(head.links.next.as_deref(), Some("https://harbour.example/news/?page=2"));
    assert!(head.complete);
    assert_eq!(feed.tombstones.len(), 1);
    assert_eq!(feed.tombstones[0].native_id, "tag:harbour.example,2026:gone");
    assert_eq!(date(feed.tombstones[0].when), "2026-11-19T10:00:00Z");

    let [first, second] = feed.entries.as_slice() else { panic!("two entries") };
    assert_eq!(&text[first.span.clone()][..6], "<entry");
    assert!(text[first.span.clone()].ends_with("</entry>"));
    assert_eq!(first.native_id.as_deref(), Some("tag:harbour.example,2026:1"));
    assert_eq!(first.link.as_deref(), Some("https://harbour.example/news/1.html"));
    assert_eq!(first.title.as_deref(), Some("Tom & Jerry\u{A0}sail &bogus; out"));
    assert_eq!(first.author.as_deref(), Some("Ada L."));
    assert_eq!(date(first.published), "2026-11-18T09:00:00Z");
    assert_eq!(date(first.updated), "2026-11-19T09:00:00Z");
    assert_eq!(first.enclosures, ["https://harbour.example/news/a.mp3"]);
    assert_eq!(second.title.as_deref(), Some("Low tide"));
    assert_eq!(
        fields(first),
        [
            ("@xml:lang", "de"),
            ("id", "tag:harbour.example,2026:1"),
            ("title", "Tom & Jerry\u{A0}sail &bogus; out"),
            ("link[enclosure]@type", "audio/mpeg"),
            ("link[enclosure]@length", "12"),
            ("link[enclosure]@href", "a.mp3"),
            ("link[alternate]@type", "text/html"),
            ("link[alternate]@href", "1.html"),
            ("published", "2026-11-18T10:00:00+01:00"),
            ("updated", "2026-11-19T10:00:00+01:00"),
            ("author/name", "Ada L."),
            ("author/email", "ada@harbour.example"),
            ("category@term", "boats"),
            ("content@type", "xhtml"),
            ("content", "<div><p class=\"a\" id=\"b\">One &amp; <i>two</i></p><p>three</p></div>"),
            ("media:thumbnail@url", "t.png"),
            ("media:thumbnail@width", "10"),
            ("{urn:example:x}rating@value", "5"),
            ("{urn:example:x}rating", "good"),
        ]
    );
    // Repairs: no sx, entities XML does not know as numbers or as text; all else as it was.
    let markup = own(&feed, first);
    assert!(!markup.xml.contains("sx:"));
    assert!(markup.xml.contains("Jerry&#160;sail &amp;bogus; out"), "{}", markup.xml);
    assert_eq!(&markup.xml[markup.slots.id.clone().unwrap()], "tag:harbour.example,2026:1");
    assert_eq!(
        &markup.xml[markup.slots.id_element.clone().unwrap()],
        "<id>tag:harbour.example,2026:1</id>"
    );
    assert_eq!(&markup.xml[..markup.slots.attributes], "<entry");
    assert_eq!(&markup.xml[..markup.slots.inner.unwrap()], "<entry xml:lang=\"de\">");
    assert_eq!(markup.context.base.as_deref(), Some("https://harbour.example/news/"));
    assert_eq!(markup.context.lang.as_deref(), Some("en"));
    let uses = |m: &tidegate_core::model::Markup| -> Vec<String> {
        m.context.namespaces.iter().map(|(prefix, _)| prefix.clone()).collect()
    };
    assert_eq!(uses(&markup), ["", "m"], "what was taken out uses nothing");
    assert_eq!(uses(&own(&feed, second)), [""]);
    assert_eq!(second.markup, text[second.span.clone()]);

    let skeleton = &feed.skeleton;
    for gone in [
        "DOCTYPE",
        "ENTITY",
        "sx:sharing",
        "fh:complete",
        "deleted-entry",
        "hub.example",
        "rel=\"self\"",
        "prev-archive",
        "page=2",
        "#sup",
    ] {
        assert!(!skeleton.text.contains(gone), "{gone} is in {}", skeleton.text);
    }
    assert!(skeleton.text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<?xml-style"));
    let slots = &skeleton.slots;
    assert_eq!(&skeleton.text[slots.updated.clone().unwrap()], "2026-11-20T08:30:00Z");
    assert_eq!(&skeleton.text[slots.id.clone().unwrap()], "tag:harbour.example,2026:news");
    assert!(skeleton.text[..slots.root_attributes].ends_with("<feed"));
    assert_eq!(skeleton.text[slots.entries..].trim(), "</feed>");
    assert_eq!(skeleton.context.lang.as_deref(), Some("en"));
    assert_eq!(skeleton.title, "Harbour News & Tides");
}

#[test]
fn atom_0_3() {
    let text = fixture("atom03.xml");
    let feed = parsed(&text, "https://lamps.example/atom.xml");
    assert_eq!(feed.format, Format::Atom03);
    assert_eq!(feed.head.title.as_deref(), Some("Old Lamps"));
    assert_eq!(date(feed.head.updated), "2004-05-06T07:08:09Z");
    let entry = &feed.entries[0];
    assert_eq!(entry.native_id.as_deref(), Some("tag:lamps.example,2004:1"));
    assert_eq!(date(entry.published), "2004-05-05T07:08:09Z");
    assert_eq!(date(entry.updated), "2004-05-06T07:08:09Z");
    assert!(fields(entry).contains(&("content", "<p>Brass.</p>")));
    assert_eq!(&feed.skeleton.text[feed.skeleton.slots.updated.unwrap()], "2004-05-06T07:08:09Z");
}

#[test]
fn rss_2_0() {
    let text = fixture("rss20.xml");
    let feed = parsed(&text, "https://bread.example/feed.rss");
    assert_eq!(feed.format, Format::Rss20);
    assert_eq!(feed.completeness, Completeness::Full);
    let head = &feed.head;
    assert_eq!(head.title.as_deref(), Some("Bread & Butter"));
    assert_eq!(head.link.as_deref(), Some("https://bread.example/"));
    assert_eq!(head.links.own.as_deref(), Some("https://bread.example/feed.rss"));
    assert_eq!(head.hints.ttl, Some(Duration::from_secs(5400)));
    assert_eq!(head.hints.period, Some(Duration::from_secs(1800)));
    assert_eq!(head.hints.skip_hours, [0, 3]);
    assert_eq!(head.hints.skip_days, [0, 6]);
    assert_eq!(date(head.updated), "2026-11-20T16:20:05Z");

    let [rye, oats, bare] = feed.entries.as_slice() else { panic!("three items") };
    assert_eq!(rye.title.as_deref(), Some("Rye bread & Vec<T>"));
    assert_eq!(rye.native_id.as_deref(), Some("https://bread.example/rye"));
    assert!(rye.id_is_permalink);
    assert_eq!(rye.link.as_deref(), Some("https://bread.example/rye?a=1&b=2"));
    assert_eq!(rye.author.as_deref(), Some("Ida"));
    assert_eq!(date(rye.published), "2026-11-19T11:00:00Z");
    assert_eq!(rye.enclosures, ["https://bread.example/rye.mp3"]);
    let said = fields(rye);
    for expected in [
        ("description", "Dark, étoile, and heavy."),
        ("content:encoded", "<p>Rye.</p>"),
        ("dc:creator", "Ida"),
        ("enclosure@url", "/rye.mp3"),
        ("category@domain", "grain"),
        ("category", "rye"),
        ("pubDate", "Thu, 19 Nov 2026 06:00 EST"),
    ] {
        assert!(said.contains(&expected), "{expected:?} is not in {said:?}");
    }
    assert!(rye.markup.contains("?a=1&amp;b=2") && rye.markup.contains("&#233;toile"));
    assert_eq!(oats.native_id.as_deref(), Some("oats-7"));
    assert!(!oats.id_is_permalink);
    assert_eq!((oats.link.as_deref(), oats.author.as_deref()), (None, Some("Ida B.")));
    // An empty guid is no id, but its place is kept.
    assert_eq!((&bare.native_id, &bare.title), (&None, &None));
    assert!(bare.markup.ends_with("<guid></guid></item>"));
    let (id, element) = (bare.slots.id.clone().unwrap(), bare.slots.id_element.clone().unwrap());
    assert_eq!((&bare.markup[id.clone()], &bare.markup[element]), ("", "<guid></guid>"));
    assert!(bare.markup[..id.start].ends_with("<guid>"));

    let skeleton = &feed.skeleton;
    assert_eq!(&skeleton.text[skeleton.slots.version.clone().unwrap()], "2.0");
    assert!(!skeleton.text.contains("cloud") && !skeleton.text.contains("a10:link"));
    assert_eq!(skeleton.text[skeleton.slots.entries..].trim(), "</channel>\n</rss>");
    assert!(skeleton.text.contains("<image><url>"));
}

#[test]
fn rss_0_91() {
    let text = fixture("rss091.xml");
    let feed = parsed(&text, "https://ads.example/rss");
    assert_eq!(feed.format, Format::Rss09x);
    let titles: Vec<_> = feed.entries.iter().map(|e| e.title.as_deref().unwrap()).collect();
    assert_eq!(titles, ["A chair", "A table"]);
    assert!(!feed.skeleton.text.contains("DOCTYPE"));
    assert_eq!(&feed.skeleton.text[feed.skeleton.slots.version.unwrap()], "0.91");
    // White space between entries is no part of the skeleton: what stands before the first is.
    assert_eq!(feed.skeleton.text.matches("\n    \n").count(), 1);
}

#[test]
fn rss_1_0_and_0_90() {
    let text = fixture("rss10.xml");
    let feed = parsed(&text, "https://stars.example/rss");
    assert_eq!(feed.format, Format::Rss10);
    assert_eq!(feed.head.id.as_deref(), Some("https://stars.example/rss"));
    let entry = &feed.entries[0];
    assert_eq!(entry.native_id.as_deref(), Some("https://stars.example/1"));
    assert!(entry.id_is_permalink);
    assert_eq!(entry.slots.id, None);
    assert_eq!(date(entry.published), "2026-11-20T00:00:00Z");
    assert_eq!(fields(entry)[0], ("@rdf:about", "https://stars.example/1"));
    let skeleton = &feed.skeleton;
    assert!(!skeleton.text.contains("Seq") && skeleton.text.contains("<textinput"));
    assert!(skeleton.text.contains("<image r:about"));
    assert!(skeleton.text[skeleton.slots.entries..].starts_with("</channel>"));

    let text = fixture("rss090.xml");
    let feed = parsed(&text, "https://ports.example/rss");
    assert_eq!((feed.format, feed.entries.len()), (Format::Rss090, 1));
    assert_eq!(feed.entries[0].native_id, None);
    assert_eq!(feed.entries[0].link.as_deref(), Some("https://ports.example/cranes"));
}

#[test]
fn json_feed() {
    let text = fixture("feed11.json");
    let feed = parsed(&text, "https://trees.example/feed.json");
    assert_eq!(feed.format, Format::JsonFeed);
    assert_eq!(feed.head.title.as_deref(), Some("Trees \"and\" more"));
    assert_eq!(feed.head.links.next.as_deref(), Some("https://trees.example/feed.json?page=2"));
    assert_eq!(feed.head.links.hubs, ["https://hub.example/"]);
    let [oak, second] = feed.entries.as_slice() else { panic!("two items") };
    assert!(oak.markup.starts_with("{\"id\"") && oak.markup.ends_with("}}"));
    assert_eq!(oak.link.as_deref(), Some("https://trees.example/oak"));
    assert_eq!(oak.author.as_deref(), Some("Eve"));
    assert_eq!(oak.enclosures, ["https://trees.example/oak.mp3"]);
    assert_eq!(date(oak.published), "2026-11-18T09:00:00Z");
    assert_eq!(
        fields(oak),
        [
            ("id", "https://trees.example/oak"),
            ("url", "/oak"),
            ("title", "Oak tree"),
            ("content_html", "<p>Oak é</p>"),
            ("date_published", "2026-11-18T10:00:00+01:00"),
            ("authors/name", "Eve"),
            ("tags", "wood"),
            ("tags", "big"),
            ("attachments/url", "/oak.mp3"),
            ("attachments/mime_type", "audio/mpeg"),
            ("_odd/deep", "1"),
            ("_odd/deep", "true"),
        ]
    );
    assert_eq!(second.native_id.as_deref(), Some("17"));
    assert_eq!(second.author.as_deref(), Some("Old Eve"));
    let skeleton: serde_json::Value = serde_json::from_str(&feed.skeleton.text).unwrap();
    assert_eq!(skeleton["items"], serde_json::json!([]));
    assert_eq!(skeleton["hubs"][0]["type"], "WebSub");

    let text = fixture("feed10.json");
    let feed = parsed(&text, "https://trees.example/feed.json");
    assert_eq!((feed.entries.len(), &feed.completeness), (0, &Completeness::Full));
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
        let feed = parsed(text, "https://e.example/");
        assert_eq!((feed.entries.len(), &feed.completeness), (0, &Completeness::Full));
        let mut shown = feed.skeleton.text.clone();
        shown.insert(feed.skeleton.slots.entries, '|');
        assert_eq!(shown, expected);
    }
}

#[test]
fn rss_may_stand_in_a_namespace_and_atom_in_none() {
    for text in [
        "<rss version='2.0' xmlns='http://backend.userland.com/rss2'><channel><item><title>t</title></item></channel></rss>",
        "<r:rss version='2.0' xmlns:r='urn:any'><r:channel><r:item><r:title>t</r:title></r:item></r:channel></r:rss>",
        "<feed><title>x</title><entry><title>t</title></entry></feed>",
        "<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:entry><a:title>t</a:title></a:entry></a:feed>",
        "<rss version='2.0'><channel></channel><item><title>t</title></item></rss>",
    ] {
        let feed = parsed(text, "https://e.example/");
        assert_eq!(fields(&feed.entries[0]), [("title", "t")], "{text}");
        assert_eq!(feed.completeness, Completeness::Full);
    }
}

#[test]
fn all_four_namespaces_of_sharing_are_taken_out() {
    for uri in [
        "http://www.microsoft.com/schemas/sse",
        "http://www.microsoft.com/schemas/rss/sse",
        "https://www.microsoft.com/schemas/rss/sse",
        "http://feedsync.org/2007/feedsync",
    ] {
        let text = format!(
            "<rss version='2.0' xmlns:q='{uri}'><q:sharing/><channel><q:sharing/><item><q:sync>\
             <q:conflicts><item><title>no</title></item></q:conflicts></q:sync><title>t</title>\
             </item></channel></rss>"
        );
        let feed = parsed(&text, "https://e.example/");
        assert_eq!(feed.entries[0].markup, "<item><title>t</title></item>");
        assert_eq!(fields(&feed.entries[0]), [("title", "t")]);
        assert!(!feed.skeleton.text.contains("q:sharing"));
        assert_eq!(feed.completeness, Completeness::Full);
    }
}

#[test]
fn a_prefix_without_a_declaration_is_given_one() {
    let text = "<rss version='2.0'><channel><item><media:thumbnail url='a'/><odd:x>y</odd:x></item></channel></rss>";
    let feed = parsed(text, "https://e.example/");
    assert_eq!(
        fields(&feed.entries[0]),
        [("media:thumbnail@url", "a"), ("{urn:undeclared:odd}x", "y")]
    );
    let declared = &feed.entries[0].context.namespaces;
    assert_eq!(declared[0], ("media".to_owned(), "http://search.yahoo.com/mrss/".to_owned()));
    assert_eq!(declared[1], ("odd".to_owned(), "urn:undeclared:odd".to_owned()));
    assert!(feed.skeleton.text.starts_with("<rss xmlns:media="));
    assert_eq!(feed.completeness, Completeness::Full);
    assert_eq!(feed.warnings.len(), 2);
}

#[test]
fn an_entry_brings_along_what_its_own_tag_uses() {
    const ATOM: &str = "http://www.w3.org/2005/Atom";
    for (text, namespaces) in [
        (format!("<feed xmlns='{ATOM}'><entry/></feed>"), vec![("", ATOM)]),
        (format!("<feed xmlns='{ATOM}'><entry>text</entry></feed>"), vec![("", ATOM)]),
        (format!("<a:feed xmlns:a='{ATOM}'><a:entry/></a:feed>"), vec![("a", ATOM)]),
        (
            format!("<feed xmlns='{ATOM}' xmlns:x='urn:x' xmlns:y='urn:y'><entry x:a='1'/></feed>"),
            vec![("", ATOM), ("x", "urn:x")],
        ),
    ] {
        let feed = document(&text, None, &Limits::default()).unwrap();
        let own = &feed.entries[0].context.namespaces;
        let found: Vec<(&str, &str)> =
            own.iter().map(|(prefix, name)| (prefix.as_str(), name.as_str())).collect();
        assert_eq!(found, namespaces, "{text}");
    }
}

#[test]
fn a_version_without_value_is_no_place_to_write_one() {
    for root in ["<rss version>", "<rss version xmlns:a='urn:a'>"] {
        let text = format!("{root}<channel><item><title>t</title></item></channel></rss>");
        let feed = document(&text, None, &Limits::default()).unwrap();
        assert_eq!(feed.skeleton.slots.version, None);
        assert!(!feed.skeleton.text.contains("version"), "{}", feed.skeleton.text);
    }
    for root in ["<rss version=0.91>", "<rss version='0.91'>", "<rss version=''>"] {
        let text = format!("{root}<channel><item><title>t</title></item></channel></rss>");
        let feed = document(&text, None, &Limits::default()).unwrap();
        let place = feed.skeleton.slots.version.clone().unwrap();
        let value = &feed.skeleton.text[place];
        assert!(value.is_empty() || value == "0.91", "{root} has {value:?}");
    }
}
