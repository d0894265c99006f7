//! What publishers write in each format that few do.

use tidegate_core::model::{Completeness, Entry, FeedDocument, Skeleton};
use tidegate_format::parse::{Limits, document};
use url::Url;

fn parsed<'a>(text: &'a str, url: &str) -> FeedDocument<'a> {
    let url = Url::parse(url).unwrap();
    document(text, Some(&url), &Limits::default()).unwrap()
}

fn fields<'e>(entry: &'e Entry<'_>) -> Vec<(&'e str, &'e str)> {
    entry.fields().iter().map(|f| (f.path.as_ref(), f.value.as_ref())).collect()
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
    let found = fields(&feed.entries[0]);
    assert_eq!(found, [("media:thumbnail@url", "a"), ("{urn:undeclared:odd}x", "y")]);
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
        let found = own.iter().map(|(prefix, name)| (prefix.as_str(), name.as_str()));
        assert_eq!(found.collect::<Vec<_>>(), namespaces, "{text}");
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
        let Skeleton { text, slots, .. } = parsed(&text, "https://e.example/").skeleton;
        assert_eq!(slots.version.map(|place| &text[place]), value, "{root}");
        assert_eq!(text.contains("version"), value.is_some(), "{root}: {text}");
    }
}
