//! Nothing that an entry says is lost from one family to the other, and nothing leads elsewhere.

use super::build::{Feed, cut, item_as, read_back};
use super::containers::numbered;
use crate::golden;
use crate::render::{Container, ViewKind};
use serde_json::Value;
use tidegate_core::model::Format;

/// What the reader view has in a container; members of JSON on lines of their own.
fn shown(feed: &mut Feed, container: Container) -> String {
    feed.container = Some(container);
    let text = feed.render_unchecked(ViewKind::Reader);
    if matches!(container, Container::Json | Container::JsonFeed) {
        let json: Value = serde_json::from_str(&text).unwrap();
        return serde_json::to_string_pretty(&json).unwrap();
    }
    assert_eq!(feed.reader(), text);
    if !matches!(container, Container::Pox | Container::Opml) {
        let ids: Vec<_> = read_back(&text).into_iter().map(|(id, _)| id).collect();
        assert!(ids.iter().eq(feed.items.iter().map(|item| &item.published_id)), "{ids:?}");
    }
    text
}

/// What each document says in every container, and with `absolute`, which reaches the reader view and nothing else,
/// and changes no id and no title.
#[test]
fn every_document_says_the_same_in_every_container() {
    golden::each("crossing", 47, |text| {
        let mut feed = numbered(Feed::read(std::str::from_utf8(text).unwrap()));
        let (own, sync) = (feed.reader(), feed.render(ViewKind::Sync));
        let mut all = String::new();
        let xml = [Container::Atom, Container::Rss, Container::Pox, Container::Opml];
        for container in xml.into_iter().chain([Container::Json, Container::JsonFeed]) {
            all += &format!("=== {container:?}\n{}\n", shown(&mut feed, container));
        }
        (feed.container, feed.addresses.absolute) = (None, true);
        let absolute = feed.reader();
        assert_eq!(feed.render(ViewKind::Sync), sync);
        if feed.skeleton.format != Format::Opml {
            assert_eq!(read_back(&absolute), read_back(&own));
        }
        all + "=== absolute\n" + &absolute
    });
}

#[test]
fn only_addresses_stand_where_addresses_are_wanted() {
    let rss = "<rss version='2.0'><channel><title>T</title><item><title>x</title><guid>7</guid>\
               <link>not an address</link><category domain='no iri'>c</category></item></channel></rss>";
    let (skeleton, mut entries) = cut(rss);
    entries[0].card.link = None;
    let mut feed = Feed::of(skeleton, vec![item_as(entries.remove(0), "7")]);
    feed.container = Some(Container::Atom);
    let text = feed.entries();
    assert!(text.contains("<category term=\"c\"/>") && text.contains("<id>7</id>"), "{text}");
    assert!(!text.contains("not an address") && !text.contains("no iri"), "{text}");
}

#[test]
fn the_publishers_word_that_its_feed_moved_leads_here() {
    let rss = "<rss version='2.0' xmlns:p='http://www.itunes.com/dtds/podcast-1.0.dtd'><channel>\
               <title>T</title><p:new-feed-url>https://new.example/</p:new-feed-url></channel></rss>";
    for container in [Container::Rss, Container::Atom] {
        let mut feed = Feed::read(rss);
        let ours = shown(&mut feed, container);
        assert!(ours.contains(">https://gate.example/feeds/news</p:new-feed-url>"), "{ours}");
        feed.addresses.keeps_new_feed_url = true;
        let theirs = shown(&mut feed, container);
        assert!(theirs.contains(">https://new.example/</p:new-feed-url>"), "{theirs}");
    }
}

/// RFC 4287 section 4.1.3: a media type may have parameters, and all of `text/` but XML is a text.
#[test]
fn a_text_is_told_whatever_its_media_type_says_beside() {
    let (atom, atom03) = ("http://www.w3.org/2005/Atom", "http://purl.org/atom/ns#");
    let itunes = "http://www.itunes.com/dtds/podcast-1.0.dtd";
    let podcast = format!("<i:summary xmlns:i='{itunes}'>a b</i:summary>");
    for (space, entry, told) in [
        (atom, "<content type='Text/HTML ; charset=utf-8'>a &lt;b></content>", "html\": \"a <b>\""),
        (
            atom03,
            "<content type='text/html;a=b' mode='escaped'>a &lt;b></content>",
            "html\": \"a <b>\"",
        ),
        (atom, "<content type='text/plain;a=b'>a b</content>", "text\": \"a b\""),
        (atom, "<content type='text/markdown'>a b</content>", "text\": \"a b\""),
        (atom, "<content type='text/xml'><a>a b</a></content>", "text\": \"t\""),
        // The last to stand in for a text is the summary of a podcast.
        (atom, &podcast, "text\": \"a b\""),
    ] {
        let entry = format!("<entry><id>urn:i</id><title>t</title>{entry}</entry>");
        let mut feed = Feed::read(&format!("<feed xmlns='{space}'><title>f</title>{entry}</feed>"));
        let text = shown(&mut feed, Container::JsonFeed);
        assert!(text.contains(&format!("\"content_{told}")), "{entry}: {text}");
    }
}
