//! Lists as OPML: what they say and where it stands.

use super::build::{Feed, NOW, version};
use crate::parse::opml::{Outline, OutlineList, read};
use crate::parse::{self, Limits};
use crate::render::ViewKind;
use tidegate_core::model::{Item, ItemStatus, OUTLINE_DEPTH, Shared, SyncId, Tick, Time, Version};

/// A feed of what a list says, each item by the sync id `x.` and its text.
fn feed(outlines: &str) -> Feed {
    let text = format!(
        "<opml version='2.0'><head><title>Ours</title><ownerId>http://me.example/</ownerId></head>\
         <body>{outlines}</body></opml>"
    );
    let mut feed = Feed::read(&text);
    for item in &mut feed.items {
        item.shared.winner.id = id(&item.shared.winner.data.card.title);
    }
    feed
}

fn id(text: &str) -> SyncId {
    SyncId::new(&format!("x.{text}")).unwrap()
}

fn shown(feed: &Feed, kind: ViewKind) -> OutlineList {
    let text = feed.render(kind);
    let list = read(&text).unwrap();
    assert!(list.problems.is_empty() && list.is_whole, "{:?} in {text}", list.problems);
    list
}

/// Texts under those that they stand in, `!` for a conflict and `x` for what is deleted.
fn tree(list: &OutlineList) -> String {
    let name = |outline: &Outline| {
        let sync = outline.sync.as_ref().unwrap();
        let mark = if outline.is_deleted() { "x" } else { "" };
        let conflict = if sync.conflict { "!" } else { "" };
        let folder: String = list.folder(outline).iter().map(|text| format!("{text}/")).collect();
        format!("{folder}{}{mark}{conflict}", outline.text().unwrap())
    };
    list.outlines.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[test]
fn outlines_stand_where_they_stood() {
    let feed = feed(
        "<outline text='f'><outline text='a' xmlUrl='http://a/'/><outline text='g'><outline \
         text='b' xmlUrl='http://b/'/></outline></outline><outline text='c' type='link'/>",
    );
    for kind in [ViewKind::Reader, ViewKind::Sync, ViewKind::Complete] {
        let list = shown(&feed, kind);
        assert_eq!(tree(&list), "f f/a f/g f/g/b c");
        let sharing = list.sharing.unwrap();
        let has_since = kind != ViewKind::Reader;
        assert_eq!((sharing.version.as_str(), sharing.since.is_some()), ("0.91", has_since));
    }
}

/// What stands in a folder that is deleted stands at the root.
#[test]
fn a_tombstone_has_nothing_in_it() {
    let mut feed = feed("<outline text='f'><outline text='a'/></outline><outline text='b'/>");
    feed.items[0].shared.winner.deleted = true;
    feed.items[0].standing = ItemStatus::Deleted { since: Time::from_unix(NOW) };
    let list = shown(&feed, ViewKind::Complete);
    assert_eq!(tree(&list), "fx a b");
    assert!(
        list.outlines[0].attributes.iter().all(|(name, _)| name == "text" || name.contains(':'))
    );
    assert_eq!(tree(&shown(&feed, ViewKind::Reader)), "a b");
}

/// SSE 0.91 section 4.4.2: of what stands in itself the item of the lowest id comes to the root and is
/// in conflict; nothing is lost.
#[test]
fn what_stands_in_itself_is_brought_to_the_root() {
    let feed = |outlines: &str| {
        let mut all = outlines.to_owned();
        for name in ["a", "b", "c"] {
            all = all.replace(
                &format!("'{name}'"),
                &format!("'{name}' xmlUrl='http://{name}.example/'"),
            );
        }
        feed(&all)
    };
    let mut one = feed("<outline text='b'><outline text='c'/></outline>");
    let other = feed("<outline text='c'><outline text='a'><outline text='b'/></outline></outline>");
    let b = other.items.iter().find(|item| item.shared.winner.id == id("b")).unwrap();
    one.items[0] = b.clone();
    one.items.push(other.items[1].clone());
    let list = shown(&one, ViewKind::Complete);
    assert_eq!(tree(&list), "a! a/b a/b/c");
}

#[test]
fn versions_in_conflict_are_kept_whole() {
    let mut feed = feed("<outline text='f'><outline text='a' xmlUrl='http://a/'/></outline>");
    let lost =
        feed_item("<outline text='f'><outline text='lost' xmlUrl='http://l/' z='1'/></outline>", 1);
    let lost = Version { id: id("a"), ..lost.shared.winner };
    feed.items[1].shared = Shared {
        winner: Version { id: id("a"), ..version(2, feed.items[1].shared.winner.data.clone()) },
        conflicts: vec![lost],
    };
    let text = feed.render(ViewKind::Complete);
    assert_eq!(tree(&shown(&feed, ViewKind::Complete)), "f f/a!");
    assert!(!text.contains("outline:id=\"\""), "{text}");
    // Read again, it is the same item with the same version in conflict, in the same place.
    let decoded = parse::decode(text.as_bytes(), None, &Limits::default()).unwrap();
    let document = parse::document(&decoded.text, None, &Limits::default()).unwrap();
    let shared = document.entries[1].shared().unwrap();
    assert_eq!(shared.conflicts.len(), 1, "{text}");
    let markup = &shared.conflicts[0].data;
    assert_eq!(markup.card.title, "lost");
    assert!(markup.xml.contains("z=\"1\""), "{}", markup.xml);
    let parent = |xml: &str| {
        xml.split_once("parent ref=\"").unwrap().1.split_once('"').unwrap().0.to_owned()
    };
    assert_eq!(parent(&markup.xml), parent(&document.entries[1].markup));
    assert_eq!(
        tree(&shown(&feed, ViewKind::Reader)),
        "f f/a!",
        "readers are shown that there is one, and none of it"
    );
}

/// Folders of one name stand apart in an aggregate of two lists.
#[test]
fn folders_of_two_lists_do_not_mix() {
    let lists = ["one", "two"].map(|name| {
        let mut list = feed(&format!(
            "<outline text='f'><outline text='{name}' xmlUrl='http://{name}/'/></outline>"
        ));
        for item in &mut list.items {
            let source = format!("<source><id>http://{name}.example/</id></source></entry>");
            let data = &mut item.shared.winner.data;
            data.xml = data.xml.replace("</entry>", &source);
        }
        list.items[0].shared.winner.id = id(&format!("f.{name}"));
        list
    });
    let [mut both, two] = lists;
    both.items.extend(two.items);
    assert_eq!(tree(&shown(&both, ViewKind::Reader)), "f f/one f f/two");
    let folder = |at: usize| {
        let list = shown(&both, ViewKind::Reader);
        let around = list.outlines[at].parent.unwrap();
        list.outlines[around].sync.as_ref().unwrap().item.winner.id.clone()
    };
    assert_eq!((folder(1), folder(3)), (id("f.one"), id("f.two")));
}

#[test]
fn attributes_that_mean_the_same_stand_once() {
    let mut feed = feed("<outline text='a' xmlns:x='urn:x' x:n='1'/>");
    let data = &mut feed.items[0].shared.winner.data;
    data.xml = data.xml.replace(" x:n=", " xmlns:y=\"urn:x\" y:n=\"2\" x:n=");
    let text = feed.render(ViewKind::Reader);
    assert_eq!(text.matches(":n=").count(), 1, "{text}");
}

fn feed_item(outlines: &str, at: usize) -> Item {
    feed(outlines).items.remove(at)
}

#[test]
fn what_stands_too_deep_stands_beside() {
    let mut feed = feed("<outline text='0'/>");
    let mut items = Vec::new();
    let mut parent = String::from("body");
    for at in 0..OUTLINE_DEPTH + 20 {
        let mut item = feed_item("<outline text='0'/>", 0);
        let own = format!("x-outline:{at}");
        let xml = item.shared.winner.data.xml.replace("ref=\"body\"", &format!("ref=\"{parent}\""));
        item.shared.winner.data.xml = xml;
        item.shared.winner.id = id(&at.to_string());
        item.published_id.clone_from(&own);
        item.tick = Tick::at(Time::from_unix(NOW));
        parent = own;
        items.push(item);
    }
    feed.items = items;
    let list = read(&feed.render_unchecked(ViewKind::Reader)).unwrap();
    assert!(list.problems.is_empty() && list.is_whole, "{:?}", list.problems);
    assert_eq!(list.outlines.len(), OUTLINE_DEPTH + 20);
}

/// A publisher of entries can say anything: it makes no outline of what nobody listed.
#[test]
fn an_entry_is_one_outline_and_stands_where_it_says() {
    let mut feed = feed("<outline text='a'><outline text='b'/></outline><outline text='c'/>");
    feed.items[0].published_id = "body".to_owned();
    let markup = &mut feed.items[2].shared.winner.data;
    let extra = "<z xmlns=''><outline text='y'/></z><outline xmlns='' text='z'/></outline:outline>";
    markup.xml = markup.xml.replace("</outline:outline>", extra);
    let list = shown(&feed, ViewKind::Reader);
    assert_eq!(tree(&list), "a a/b c");
}
