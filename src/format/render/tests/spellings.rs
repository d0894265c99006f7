//! Namespaces in other spellings mean the same, and what leaves has the canonical one.

use super::build::Feed;
use crate::render::{Container, ViewKind};
use serde_json::Value;

const RSS: &str = r#"<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content" xmlns:dc="https://purl.org/dc/elements/1.0/" xmlns:media="http://search.yahoo.com/mrss" xmlns:itunes=http://www.itunes.com/DTDs/Podcast-1.0.dtd>
<channel><title>T</title><link>https://pub.example/</link><description>D</description>
  <item><title>One</title><guid>1</guid><description>Short</description>
    <content:encoded>The whole</content:encoded><dc:creator>Ann</dc:creator>
    <enclosure url="https://pub.example/1.mp3" type="audio/mpeg"/>
    <m:thumbnail xmlns:m="https://www.rssboard.org/media-rss/" url="https://pub.example/1.png"/>
    <itunes:duration>1:02:03</itunes:duration></item>
</channel></rss>"#;

const CANONICAL: [(&str, &str); 4] = [
    ("content", "http://purl.org/rss/1.0/modules/content/"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("media", "http://search.yahoo.com/mrss/"),
    ("itunes", "http://www.itunes.com/dtds/podcast-1.0.dtd"),
];

fn shown(feed: &mut Feed, container: Container) -> String {
    feed.container = Some(container);
    match container {
        Container::JsonFeed => feed.render_unchecked(ViewKind::Reader),
        _ => feed.render(ViewKind::Reader),
    }
}

#[test]
fn modules_are_declared_as_their_specifications_spell_them() {
    let mut feed = Feed::read(RSS);
    let rss = shown(&mut feed, Container::Rss);
    for (prefix, uri) in CANONICAL {
        assert!(rss.contains(&format!(" xmlns:{prefix}=\"{uri}\"")), "{prefix} in\n{rss}");
    }
    assert!(rss.contains("<m:thumbnail xmlns:m=\"http://search.yahoo.com/mrss/\" url="), "{rss}");
}

#[test]
fn what_modules_say_is_converted() {
    let mut feed = Feed::read(RSS);
    let atom = shown(&mut feed, Container::Atom);
    for wanted in [
        "<content type=\"html\">The whole</content>",
        "<author><name>Ann</name></author>",
        "xmlns:itunes=\"http://www.itunes.com/dtds/podcast-1.0.dtd\"",
        "xmlns:m=\"http://search.yahoo.com/mrss/\"",
    ] {
        assert!(atom.contains(wanted), "no {wanted} in\n{atom}");
    }
    let json: Value = serde_json::from_str(&shown(&mut feed, Container::JsonFeed)).unwrap();
    let item = &json["items"][0];
    assert_eq!(item["content_html"], "The whole");
    assert_eq!(item["authors"][0]["name"], "Ann");
    assert_eq!(item["image"], "https://pub.example/1.png");
    assert_eq!(item["attachments"][0]["duration_in_seconds"], 3723);
}

#[test]
fn atom_is_in_its_own_namespace() {
    let mut feed = Feed::read(
        "<a:feed xmlns:a='HTTPS://www.w3.org/2005/Atom/'><a:title>T</a:title><a:id>urn:f</a:id>\
         <a:entry><a:id>urn:1</a:id><a:title>Hello</a:title><a:content type='xhtml'>\
         <div xmlns='https://www.w3.org/1999/xhtml'>Hello there</div></a:content></a:entry></a:feed>",
    );
    let atom = shown(&mut feed, Container::Atom);
    assert!(atom.contains("<a:feed") && atom.contains("<a:title>Hello</a:title>"), "{atom}");
    assert!(atom.contains(" xmlns:a='http://www.w3.org/2005/Atom'"), "{atom}");
    assert!(atom.contains("<div xmlns='http://www.w3.org/1999/xhtml'>Hello there"), "{atom}");
    assert!(!atom.to_ascii_lowercase().contains("https://www.w3.org"), "{atom}");
    let rss = shown(&mut feed, Container::Rss);
    assert!(rss.contains("<title>Hello</title>") && rss.contains("Hello there"), "{rss}");
}
