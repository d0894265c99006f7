use super::build::{Feed, NOW, cut, deleted, item_as, read_back};
use super::{fixtures, golden};
use crate::render::ViewKind;
use tidegate_core::model::{Card, Context, Format, Markup, Skeleton, Time};

#[test]
fn every_entry_fits_every_document() {
    // A feed that changes its format keeps its retired items.
    let everything: Vec<_> = golden::all().into_iter().flat_map(|(_, feed)| feed.items).collect();
    for (name, mut feed) in golden::all() {
        feed.items = everything.clone();
        let text = feed.render(ViewKind::Complete);
        let ids: Vec<_> = read_back(&text).into_iter().map(|(id, _)| id).collect();
        let expected: Vec<_> = everything.iter().map(|item| item.published_id.clone()).collect();
        assert_eq!(ids, expected, "{name}");
        let is_atom = feed.skeleton.format.family() == tidegate_core::model::Family::Atom;
        let other = if is_atom { ["<item>", "<item "] } else { ["<entry>", "<entry "] };
        assert!(other.iter().all(|other| !text.contains(other)), "{name}");
        feed.items = everything.iter().cloned().map(deleted).collect();
        assert_eq!(read_back(&feed.render(ViewKind::Sync)).len(), everything.len(), "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_shown_by_its_card() {
    let card = Card {
        title: "Only & title".to_owned(),
        link: Some("https://pub.example/x".to_owned()),
        published: Some(Time::from_unix(0)),
        ..Card::default()
    };
    for format in [Format::Atom03, Format::Rss10, Format::JsonFeed] {
        for (name, mut feed) in golden::all() {
            let broken = Markup {
                format,
                xml: "<broken".to_owned(),
                context: Context::default(),
                slots: Default::default(),
                card: card.clone(),
            };
            feed.items = vec![item_as(broken, "urn:1")];
            let expected = [("urn:1".to_owned(), "Only & title".to_owned())];
            assert_eq!(read_back(&feed.reader()), expected, "{name} {format:?}");
        }
        let skeleton =
            Skeleton { format, text: "<broken".to_owned(), ..golden::json_feed().skeleton };
        let feed = Feed::of(skeleton, Vec::new());
        let read = feed_rs::parser::parse(feed.reader().as_bytes()).unwrap();
        assert_eq!(read.title.map(|title| title.content).as_deref(), Some("Gulls & <terns>"));
    }
}

#[test]
fn hostile_values_stay_values() {
    let hostile = "</title><script>&\"'\u{0}\u{8}]]>";
    let json = serde_json::json!({
        "id": hostile, "title": hostile, "url": hostile, "summary": hostile,
        "tags": [hostile], "authors": [{"name": hostile, "url": hostile}],
        "attachments": [{"url": hostile, "mime_type": hostile}], "language": hostile,
        "content_html": hostile, "date_published": hostile,
    });
    let mut feed = golden::json_feed();
    let old = &feed.items[0].shared.winner.data;
    let card = Card {
        title: hostile.to_owned(),
        link: Some(hostile.to_owned()),
        author: Some(hostile.to_owned()),
        ..Card::default()
    };
    let hostile_item = Markup { xml: json.to_string(), card, ..old.clone() };
    feed.items = vec![item_as(hostile_item, hostile)];
    feed.addresses.upstream = hostile.to_owned();
    feed.addresses.hub = Some(hostile.to_owned());
    let shown = "</title><script>&\"']]>";
    let text = feed.reader();
    assert_eq!(read_back(&text), [(shown.to_owned(), shown.to_owned())]);
    assert!(!text.contains("<script"));
    feed.deleted = vec![deleted(feed.items[0].clone())];
    feed.reader();
    let (skeleton, _) = cut(fixtures::RSS20);
    feed = Feed { skeleton, ..feed };
    assert!(!feed.reader().contains("<script"));
    feed.items = feed.items.into_iter().map(deleted).collect();
    assert!(!feed.render(ViewKind::Sync).contains("<script"));
}

#[test]
fn a_tombstone_keeps_a_later_date_of_its_own_and_needs_no_title() {
    let mut feed = Feed::new(Format::Rss20, fixtures::RSS20);
    feed.items.truncate(1);
    feed.items = feed.items.into_iter().map(deleted).collect();
    let card = &mut feed.items[0].shared.winner.data.card;
    card.updated = Some(Time::from_unix(NOW + 86_400));
    card.title = " ".to_owned();
    let text = feed.render(ViewKind::Complete);
    assert!(text.contains("<pubDate>Sat, 21 Nov 2026 16:20:05 GMT</pubDate>"));
    assert!(text.contains("<title>Deleted</title>"));
    assert!(text.contains("<guid isPermaLink=\"false\">https://pub.example/1</guid>"));
    assert!(text.contains("<link>https://pub.example/1</link>"));
    // RFC 6721 section 3: an entry that says that it was updated later than it was deleted stays.
    let mut atom = Feed::new(Format::Atom10, fixtures::ATOM10);
    for (published, when) in [(None, "2026-11-21T16"), (Some(86_400 * 2), "2026-11-22T16")] {
        let card = &mut feed.items[0].shared.winner.data.card;
        card.published = published.map(|later| Time::from_unix(NOW + later));
        atom.deleted = feed.items.clone();
        let text = atom.reader();
        assert!(text.contains(&format!("ref=\"https://pub.example/1\" when=\"{when}")), "{text}");
    }
}
