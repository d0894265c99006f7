//! What each view says of itself (CONTRACT, Addresses), and tombstones.

use super::build::{Feed, deleted};
use super::fixtures;
use super::golden::all;
use crate::render::{Dialect, ViewKind};
use tidegate_core::model::{Format, Time};

#[test]
fn the_dialect_changes_the_namespace_only() {
    let mut feed = Feed::new(Format::Rss20, fixtures::RSS20);
    let sse = feed.reader();
    feed.dialect = Dialect::FeedSync;
    let other = feed.reader();
    assert!(sse.contains("xmlns:sx=\"http://www.microsoft.com/schemas/sse\""));
    let sse_as_other =
        sse.replace("http://www.microsoft.com/schemas/sse", "http://feedsync.org/2007/feedsync");
    assert_eq!(sse_as_other, other);
}

#[test]
fn a_tombstone_keeps_a_later_date_of_its_own_and_needs_no_title() {
    let mut feed = Feed::new(Format::Rss20, fixtures::RSS20);
    feed.items.truncate(1);
    feed.items = feed.items.into_iter().map(deleted).collect();
    let card = &mut feed.items[0].shared.winner.data.card;
    card.updated = Some(Time::from_unix(super::build::NOW + 86_400));
    card.title = " ".to_owned();
    let text = feed.render(ViewKind::Complete);
    assert!(text.contains("<pubDate>Sat, 21 Nov 2026 16:20:05 GMT</pubDate>"));
    assert!(text.contains("<title>Deleted</title>"));
    assert!(text.contains("<guid isPermaLink=\"false\">https://pub.example/1</guid>"));
    assert!(text.contains("<link>https://pub.example/1</link>"));
}

#[test]
fn an_empty_feed_is_a_feed() {
    for (name, mut feed) in all() {
        feed.items.clear();
        assert!(super::build::read_back(&feed.reader()).is_empty(), "{name}");
    }
}
