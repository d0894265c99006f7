//! Every container and dialect, read back: what is published is what is stored.

use super::build::{Feed, NOW, cut, deleted, item_as, version};
use super::fixtures;
use crate::golden;
use crate::parse::collection::transcoded;
use crate::parse::{self, Limits};
use crate::render::{Container, Dialect, ViewKind};
use proptest::prelude::*;
use serde_json::Value;
use tidegate_core::model::{
    Count, EndpointId, Format, History, Item, Markup, Shared, Stamp, SyncId, Time, Update, Version,
};
use tidegate_core::sync::{history_of_091, updates_of_091};

const DIALECTS: [Dialect; 3] = [Dialect::Sse, Dialect::FeedSync, Dialect::Sse091];
/// The containers that sync markup is written in.
const CONTAINERS: [Container; 4] =
    [Container::Atom, Container::Rss, Container::Pox, Container::Json];

/// A document; of a collection as JSON what it says in plain XML.
fn plain(text: &str) -> String {
    let plain = transcoded(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    plain.unwrap_or_else(|| text.to_owned())
}

/// The items of a document, read by `parse`.
fn back(text: &str) -> Vec<Shared<Markup>> {
    let plain = plain(text);
    let document = parse::document(&plain, None, &Limits::default()).unwrap();
    assert!(document.flaws.is_empty(), "{:?}\n{text}\n{plain}", document.warnings);
    let shared = document.entries.iter().map(|entry| {
        let said = entry.shared().unwrap_or_else(|| panic!("{:?}\n{plain}", entry.sync));
        let winner = said.version.with(parse::own(&document, entry));
        Shared { winner, conflicts: said.conflicts.clone() }
    });
    shared.collect()
}

/// Gives each item an id of its own, for one may stand once in a feed.
pub(super) fn numbered(mut feed: Feed) -> Feed {
    for (item, n) in feed.items.iter_mut().zip(1..) {
        let shared = &mut item.shared;
        for version in shared.conflicts.iter_mut().chain([&mut shared.winner]) {
            version.id = SyncId::new(&format!("gate.example.x{n}")).unwrap();
        }
    }
    feed
}

/// An item without what it says.
fn bares<D>(shared: &Shared<D>) -> Shared<()> {
    let conflicts = shared.conflicts.iter().map(|lost| lost.with(())).collect();
    Shared { winner: shared.winner.with(()), conflicts }
}

/// What of an item survives a dialect (READINGS 2, its last sentence).
fn surviving(shared: Shared<()>, dialect: Dialect, container: Container) -> Shared<()> {
    // JSON has one dialect only.
    if dialect != Dialect::Sse091 || container == Container::Json {
        return shared;
    }
    let line = |version: Version<()>| {
        let before = updates_of_091(&version).cloned().collect();
        let last = version.history.topmost().stamp.clone();
        let history = history_of_091(version.updates, last, before);
        Version { history, noconflicts: None, ..version }
    };
    let conflicts = shared.conflicts.into_iter().map(line).collect();
    Shared { winner: line(shared.winner), conflicts }
}

/// An update of numbers and times near each other, or of any.
fn update() -> impl Strategy<Value = Update> {
    let sequence = prop_oneof![3 => 1..9_u32, 1 => 1..=Count::MAX.value()];
    let name = prop_oneof![Just("A".to_owned()), Just("B&\"<".to_owned()), "[^\\p{C}\\s]{1,8}"];
    let seconds = prop_oneof![NOW..NOW + 1000, 0..4_000_000_000_i64];
    (sequence, 0..3_usize, name, seconds).prop_map(|(sequence, kind, name, seconds)| {
        let (by, when) = (EndpointId::new(&name).unwrap(), Time::from_unix(seconds));
        let stamp = match kind {
            0 => Stamp::Both { when, by },
            1 => Stamp::By(by),
            _ => Stamp::When(when),
        };
        Update { sequence: Count::new(sequence).unwrap(), stamp }
    })
}

fn any_version(markup: Markup, id: SyncId) -> impl Strategy<Value = Version<Markup>> {
    let updates = prop_oneof![3 => 1..9_u32, 1 => 1..=Count::MAX.value()];
    let flags = (any::<bool>(), any::<Option<bool>>());
    (updates, flags, proptest::collection::vec(update(), 1..9)).prop_map(
        move |(updates, (deleted, noconflicts), history)| Version {
            id: id.clone(),
            updates: Count::new(updates).unwrap(),
            deleted,
            noconflicts,
            history: History::from_newest_first(history).unwrap(),
            data: markup.clone(),
        },
    )
}

/// An item with any sync markup. A loser may have come from a feed of another format.
fn any_item(markup: Markup, number: usize) -> impl Strategy<Value = Item> {
    let other = cut(fixtures::ATOM10).1.remove(0);
    "[^\\p{C}\\s]{0,20}".prop_flat_map(move |text| {
        let id = SyncId::new(&format!("{number}{text}")).unwrap();
        let losers = proptest::collection::vec(any_version(other.clone(), id.clone()), 0..4);
        (any_version(markup.clone(), id), losers).prop_map(move |(winner, conflicts)| {
            let mut item = item_as(winner.data.clone(), &format!("urn:{number}"));
            item.shared = Shared { winner, conflicts };
            item
        })
    })
}

fn any_feed() -> impl Strategy<Value = Feed> {
    let formats = vec![fixtures::ATOM10, fixtures::RSS20, fixtures::RSS10];
    proptest::sample::select(formats).prop_flat_map(|text| {
        let (skeleton, entries) = cut(text);
        let items: Vec<_> = entries.into_iter().zip(0..).map(|(m, n)| any_item(m, n)).collect();
        items.prop_map(move |items| Feed::of(skeleton.clone(), items))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn items_and_histories_come_back_from_every_container_and_dialect(mut feed in any_feed()) {
        for container in CONTAINERS {
            feed.container = Some(container);
            for dialect in DIALECTS {
                feed.dialect = dialect;
                let text = feed.render_unchecked(ViewKind::Complete);
                let read: Vec<_> = back(&text).iter().map(bares).collect();
                let stored = feed.items.iter().map(|item| bares(&item.shared));
                let wanted: Vec<_> =
                    stored.map(|shared| surviving(shared, dialect, container)).collect();
                prop_assert_eq!(read, wanted, "{:?} {:?}\n{}", container, dialect, text);
            }
        }
    }
}

fn contested() -> Feed {
    let mut feed = Feed::new(Format::Rss20, fixtures::RSS20);
    let loser = cut(fixtures::ATOM10).1.remove(1);
    feed.items[0].shared.conflicts.push(version(3, loser));
    feed
}

#[test]
fn conflicts_stand_in_the_sync_and_the_complete_view_in_the_documents_family() {
    let mut feed = numbered(contested());
    for container in CONTAINERS {
        feed.container = Some(container);
        let reader = feed.render_unchecked(ViewKind::Reader);
        assert!(!reader.contains("conflict"), "{container:?}: {reader}");
        for kind in [ViewKind::Sync, ViewKind::Complete] {
            let read = back(&feed.render_unchecked(kind));
            let [lost] = read[0].conflicts.as_slice() else { panic!("{container:?}") };
            assert_eq!(lost.data.card.title, "Two", "{container:?}");
            assert_eq!(lost.data.format.family(), read[0].winner.data.format.family());
        }
    }
}

/// SSE 0.91 section 2.3: a conflict of which nothing is kept, or which the view does not show, is said.
#[test]
fn the_markup_of_sse_091_is_as_it_was_specified() {
    let mut feed = contested();
    feed.dialect = Dialect::Sse091;
    feed.items.truncate(1);
    feed.items[0].shared.winner = version(2, feed.items[0].shared.winner.data.clone());
    golden::same("", "sse091-sync", &feed.render(ViewKind::Sync));
    let reader = feed.reader();
    assert!(reader.contains("<sx:sharing version=\"0.91\"><sx:related "), "{reader}");
    assert!(reader.contains(" conflict=\"true\""), "{reader}");
    feed.items[0].shared.conflicts.clear();
    assert!(feed.render(ViewKind::Sync).contains(" conflict=\"false\""));
    feed.items[0].sse091 = Some(true);
    for kind in [ViewKind::Reader, ViewKind::Sync, ViewKind::Complete] {
        assert!(feed.render(kind).contains(" conflict=\"true\""), "{kind:?}");
    }
}

#[test]
fn a_json_feed_is_for_readers() {
    let mut feed = contested();
    feed.items[1] = deleted(feed.items.remove(1));
    feed.addresses.hub = Some("https://gate.example/websub".to_owned());
    feed.history.previous = Some("https://gate.example/feeds/news/archive/x".to_owned());
    feed.container = Some(Container::JsonFeed);
    for kind in [ViewKind::Reader, ViewKind::Sync, ViewKind::Complete] {
        let text = feed.render_unchecked(kind);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["next_url"], "https://gate.example/feeds/news/archive/x");
        assert_eq!(json["hubs"][0]["type"], "WebSub");
        let [item] = json["items"].as_array().unwrap().as_slice() else { panic!("no tombstones") };
        assert_eq!(item["id"], *feed.items[0].published_id);
        assert_eq!(item["content_html"], "<p>It came & went</p>");
        assert_eq!(item["_sharing"]["id"], "gate.example.x1");
        assert!(item["_sharing"].get("conflicts").is_none());
        // It is read as a JSON Feed, not as a collection.
        assert_eq!(transcoded(&text), Ok(None));
        let read = parse::document(&text, None, &Limits::default()).unwrap();
        assert_eq!((read.format, read.entries.len()), (Format::JsonFeed, 1));
    }
}

#[test]
fn items_of_collections_come_back_in_their_own_terms() {
    let json = include_str!("../../../../tests/golden/crossing/collection-own.json");
    let pox = include_str!("../../../../tests/golden/crossing/collection-own.xml");
    let written = |feed: &mut Feed, container| {
        feed.container = Some(container);
        feed.render_unchecked(ViewKind::Complete)
    };
    let object = |text: &str| {
        let mut item = serde_json::from_str::<Value>(text).unwrap()["items"][0].take();
        item.as_object_mut().unwrap().remove("sync");
        item
    };
    let (mut from_json, mut from_pox) = (Feed::read(json), Feed::read(pox));
    assert_eq!(object(&written(&mut from_json, Container::Json)), object(json));
    // So does what RSS has no words for.
    let rss = written(&mut from_json, Container::Rss);
    let members = object(&written(&mut Feed::read(&rss), Container::Json));
    assert_eq!((&members["title"], &members["rank"]), (&"s".into(), &7.into()));
    // A collection of the other kind takes along what it has no words for.
    let elements = written(&mut from_json, Container::Pox);
    assert_eq!(object(&written(&mut Feed::read(&elements), Container::Json)), object(json));
    let members = written(&mut from_pox, Container::Json);
    let back = written(&mut Feed::read(&members), Container::Pox);
    let own = pox.split_once("</sx:sync>").unwrap().1.split_once("</item>").unwrap().0;
    assert!(back.contains(own), "{back}");
    // What was edited, in plain XML or here, is said so, and all that it has no words for stays.
    let edited = elements.replace("<subject>s<", "<subject>edited<");
    let elsewhere = object(&written(&mut Feed::read(&edited), Container::Json));
    for feed in [&mut from_json, &mut from_pox] {
        let data = &mut feed.items[0].shared.winner.data;
        let amendment = parse::Amendment { title: Some("edited".to_owned()), ..Default::default() };
        *data = parse::amended_markup(data, &amendment).unwrap();
    }
    for members in [elsewhere, object(&written(&mut from_json, Container::Json))] {
        assert_eq!((&members["title"], &members["rank"]), (&"edited".into(), &7.into()));
        assert_eq!(members["categories"][1], "b");
        assert_eq!(members["more"]["deep"], true);
        assert!(members.get("subject").is_none() && members.get("tags").is_none(), "{members}");
    }
    let elements = written(&mut from_pox, Container::Pox);
    for wanted in ["<atom:title>edited</atom:title>", "<rank unit=\"m\">7</rank>", "<tag>y</tag>"] {
        assert!(elements.contains(wanted), "{wanted}: {elements}");
    }
}
