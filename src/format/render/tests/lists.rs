use super::build::{Feed, NOW, version};
use crate::parse::opml::{Outline, OutlineList, read};
use crate::parse::{self, Limits};
use crate::render::ViewKind;
use tidegate_core::model::{ItemStatus, OUTLINE_DEPTH, Shared, SyncId, Time, Version};

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
    let mut names = list.outlines[0].attributes.iter().map(|(name, _)| name);
    assert!(names.all(|name| name == "text" || name.contains(':')));
    assert_eq!(tree(&shown(&feed, ViewKind::Reader)), "a b");
}

#[test]
fn what_stands_in_itself_is_brought_to_the_root() {
    let outline = |name: &str, inside: &str| {
        format!("<outline text='{name}' xmlUrl='http://{name}.example/'>{inside}</outline>")
    };
    let mut one = feed(&outline("b", &outline("c", "")));
    let other = feed(&outline("c", &outline("a", &outline("b", ""))));
    let b = other.items.iter().find(|item| item.shared.winner.id == id("b")).unwrap();
    one.items[0] = b.clone();
    one.items.push(other.items[1].clone());
    assert_eq!(tree(&shown(&one, ViewKind::Complete)), "a! a/b a/b/c");
}

#[test]
fn versions_in_conflict_are_kept_whole() {
    let folder = |inside: &str| feed(&format!("<outline text='f'>{inside}</outline>"));
    let mut feed = folder("<outline text='a' xmlUrl='http://a/'/>");
    let lost = folder("<outline text='lost' xmlUrl='http://l/' z='1'/>").items.remove(1);
    let lost = Version { id: id("a"), ..lost.shared.winner };
    feed.items[1].shared = Shared {
        winner: Version { id: id("a"), ..version(2, feed.items[1].shared.winner.data.clone()) },
        conflicts: vec![lost],
    };
    let text = feed.render(ViewKind::Complete);
    // Readers are shown that there is one, and none of it.
    for kind in [ViewKind::Complete, ViewKind::Reader] {
        assert_eq!(tree(&shown(&feed, kind)), "f f/a!");
    }
    assert!(!text.contains("outline:id=\"\""), "{text}");
    // Read again, it is the same item with the same version in conflict, in the same place.
    let decoded = parse::decode(text.as_bytes(), None, &Limits::default()).unwrap();
    let document = parse::document(&decoded.text, None, &Limits::default()).unwrap();
    let shared = document.entries[1].shared().unwrap();
    let [lost] = shared.conflicts.as_slice() else { panic!("{text}") };
    assert_eq!(lost.data.card.title, "lost");
    assert!(lost.data.xml.contains("z=\"1\""), "{}", lost.data.xml);
    let parent =
        |xml: &str| xml.split("parent ref=\"").nth(1).unwrap().split('"').next().map(str::to_owned);
    assert_eq!(parent(&lost.data.xml), parent(&document.entries[1].markup));
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
fn what_stands_too_deep_stands_beside() {
    let mut feed = feed("<outline text='0'/>");
    let first = feed.items.remove(0);
    let mut parent = String::from("body");
    for at in 0..OUTLINE_DEPTH + 20 {
        let mut item = first.clone();
        let own = format!("x-outline:{at}");
        let data = &mut item.shared.winner.data;
        data.xml = data.xml.replace("ref=\"body\"", &format!("ref=\"{parent}\""));
        item.shared.winner.id = id(&at.to_string());
        item.published_id.clone_from(&own);
        parent = own;
        feed.items.push(item);
    }
    let list = read(&feed.render_unchecked(ViewKind::Reader)).unwrap();
    assert!(list.problems.is_empty() && list.is_whole, "{:?}", list.problems);
    assert_eq!(list.outlines.len(), OUTLINE_DEPTH + 20);
}

/// A publisher of entries can say anything: it makes no outline of what nobody listed.
#[test]
fn an_entry_is_one_outline_and_stands_where_it_says() {
    let mut feed = feed(
        "<outline text='a'><outline text='b'/></outline><outline text='c' xmlns:x='urn:x' x:n='1'/>",
    );
    feed.items[0].published_id = "body".to_owned();
    let markup = &mut feed.items[2].shared.winner.data;
    let extra = "<z xmlns=''><outline text='y'/></z><outline xmlns='' text='z'/></outline:outline>";
    markup.xml = markup.xml.replace("</outline:outline>", extra);
    // Attributes that mean the same stand once.
    markup.xml = markup.xml.replace(" x:n=", " xmlns:y=\"urn:x\" y:n=\"2\" x:n=");
    assert_eq!(feed.reader().matches(":n=").count(), 1);
    let list = shown(&feed, ViewKind::Reader);
    assert_eq!(tree(&list), "a a/b c");
}
