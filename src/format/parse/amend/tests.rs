//! What an amended entry says.

use super::*;
use crate::parse::{Limits, document, own};

fn markup(text: &str) -> Markup {
    let document = document(text, None, &Limits::default()).unwrap();
    own(&document, &document.entries[0])
}

fn new() -> Amendment {
    Amendment {
        title: Some("New & \"title\"".to_owned()),
        text: Some(("<p>new</p>".to_owned(), true)),
        updated: Some(Time::from_unix(1_000_000_000)),
        ..Amendment::default()
    }
}

#[test]
fn all_that_is_not_amended_stays_in_every_format() {
    let rest = "<m:x xmlns:m='urn:m' a='b'><m:y/></m:x>";
    let atom = format!(
        "<a:feed xmlns:a='http://www.w3.org/2005/Atom' xml:lang='de' xml:base='http://h/d/'>\
         <a:entry k='v'><a:id>urn:1</a:id><a:title xml:lang='fr'>old</a:title><a:link href='p'/>\
         <a:link rel='enclosure' href='e.mp3' length='3' type='audio/mpeg'/><a:category term='c'/>\
         <a:contributor><a:name>n</a:name></a:contributor>{rest}<a:updated>2000-01-01T00:00:00Z\
         </a:updated><a:content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>old</div>\
         </a:content></a:entry></a:feed>"
    );
    let before = markup(&atom);
    let after = amended_markup(&before, &new()).unwrap();
    assert_eq!(after.format, before.format);
    assert_eq!(
        (&after.context.base, &after.context.lang),
        (&before.context.base, &before.context.lang)
    );
    assert_eq!(after.card.link.as_deref(), Some("http://h/d/p"));
    assert_eq!(after.card.title, "New & \"title\"");
    assert_eq!(after.card.updated, new().updated);
    for kept in [
        "k='v'",
        rest,
        "href='e.mp3' length='3' type='audio/mpeg'",
        "term='c'",
        "<a:name>n</a:name>",
        "<a:title xml:lang=\"fr\">New &amp; ",
        "<a:content type=\"html\">&lt;p&gt;new&lt;/p&gt;</a:content>",
    ] {
        assert!(after.xml.contains(kept), "{kept}: {}", after.xml);
    }
    let rss = format!(
        "<rss version='2.0' xmlns='http://backend.userland.com/rss2' \
         xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel><item><title>old</title>\
         <description>short</description><content:encoded>old</content:encoded><category>c</category>\
         <enclosure url='http://h/e' length='3' type='audio/mpeg'/>{rest}</item></channel></rss>"
    );
    let before = markup(&rss);
    let after = amended_markup(&before, &new()).unwrap();
    assert_eq!(after.format, Format::Rss20);
    for kept in [
        rest,
        "<description>short</description>",
        "<category>c</category>",
        "url='http://h/e'",
        "<content:encoded>&lt;p&gt;new&lt;/p&gt;</content:encoded>",
    ] {
        assert!(after.xml.contains(kept), "{kept}: {}", after.xml);
    }
    // Once more, from what came of it.
    let again = Amendment { text: Some(("a < b".to_owned(), false)), ..Amendment::default() };
    let again = amended_markup(&after, &again).unwrap();
    assert!(again.xml.contains("<content:encoded>a &amp;lt; b</content:encoded>"), "{}", again.xml);
    let json = "{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"t\",\"items\":[{\"id\":\
                \"1\",\"title\":\"old\",\"content_text\":\"old\",\"tags\":[\"c\"],\"_mine\":{\"a\":1},\
                \"attachments\":[{\"url\":\"http://h/e\",\"mime_type\":\"audio/mpeg\"}]}]}";
    let after = amended_markup(&markup(json), &new()).unwrap();
    let item: Value = serde_json::from_str(&after.xml).unwrap();
    assert_eq!(
        (&item["content_html"], &item["content_text"]),
        (&"<p>new</p>".into(), &Value::Null)
    );
    assert_eq!((&item["tags"][0], &item["_mine"]["a"]), (&"c".into(), &1.into()));
    assert_eq!(item["attachments"][0]["url"], "http://h/e");
}

#[test]
fn an_outline_stays_one() {
    let list = "<opml version='2.0'><head/><body><outline text='Old' title='Old' type='rss' \
                xmlUrl='http://h/feed' htmlUrl='http://h/' category='/a,/b' x='y'/></body></opml>";
    let before = markup(&crate::parse::opml::transcoded(list).unwrap().unwrap());
    let amendment = Amendment {
        title: Some("New".to_owned()),
        link: Some("http://h/new".to_owned()),
        summary: Some("what it is".to_owned()),
        ..Amendment::default()
    };
    let after = amended_markup(&before, &amendment).unwrap();
    assert_eq!((before.format, after.format), (Format::Opml, Format::Opml));
    assert_eq!(
        (after.card.title.as_str(), after.card.link.as_deref()),
        ("New", Some("http://h/new"))
    );
    for kept in [
        "xmlUrl=\"http://h/feed\"",
        "category=\"/a,/b\"",
        "x=\"y\"",
        "title=\"New\"",
        "<summary>what it is</summary>",
        "outline:parent",
    ] {
        assert!(after.xml.contains(kept), "{kept}: {}", after.xml);
    }
    assert!(!after.xml.contains("Old"), "{}", after.xml);
}
