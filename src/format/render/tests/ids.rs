use super::build::{Feed, cut, item_as, read_back};
use crate::golden;

fn rss(item: &str, published: &str) -> Feed {
    let document = format!("<rss version=\"2.0\"><channel><title>T</title>{item}</channel></rss>");
    let (skeleton, mut entries) = cut(&document);
    Feed::of(skeleton, vec![item_as(entries.remove(0), published)])
}

/// One that is the published one is left alone but for white space; one that changed is replaced, and is no permalink;
/// an item whose only address it was gets a link; one without an id gets one.
#[test]
fn the_published_id_stands_where_the_own_one_stood() {
    let kept = include_str!("../../../../tests/golden/ids/kept.xml");
    let changed = include_str!("../../../../tests/golden/ids/changed.xml");
    for (name, document, published) in
        [("kept", kept, "http://a/1"), ("changed", changed, "urn:1&<")]
    {
        let (skeleton, entries) = cut(document);
        let items = entries.into_iter().map(|entry| item_as(entry, published)).collect();
        golden::same("ids", name, &Feed::of(skeleton, items).entries());
    }
}

#[test]
fn an_atom_id_keeps_its_tags() {
    let document = "<a:feed xmlns:a='http://www.w3.org/2005/Atom'><a:entry>\
                    <a:id xml:lang='en'>old</a:id><a:title>t</a:title></a:entry></a:feed>";
    let (skeleton, mut entries) = cut(document);
    let mut without = entries[0].clone();
    without.xml = "<a:entry><a:title>t</a:title></a:entry>".to_owned();
    (without.slots.id, without.slots.id_element) = (None, None);
    let items = vec![item_as(entries.remove(0), "urn:<new>"), item_as(without, "urn:2")];
    let feed = Feed::of(skeleton, items);
    let text = feed.reader();
    assert!(text.contains("<a:id xml:lang='en'>urn:&lt;new&gt;</a:id>"));
    assert!(text.contains("</sx:sync><a:id>urn:2</a:id><a:title>"));
    let ids: Vec<_> = read_back(&text).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["urn:<new>", "urn:2"]);
}

#[test]
fn slots_that_do_not_fit_cost_the_markup_and_nothing_else() {
    const ITEM: &str = "<item><title>t</title><guid isPermaLink=\"false\">g</guid></item>";
    let whole = rss(ITEM, "g");
    let text = whole.items[0].shared.winner.data.xml.clone();
    for broken in 0..text.len() + 3 {
        let mut feed = rss(ITEM, "g");
        let slots = &mut feed.items[0].shared.winner.data.slots;
        slots.attributes = broken;
        if broken != "<item".len() {
            assert_eq!(read_back(&feed.reader()), [("g".to_owned(), "t".to_owned())]);
        }
    }
    let mut feed = rss(ITEM, "g");
    feed.items[0].shared.winner.data.slots.id = Some(3..9000);
    assert!(feed.reader().contains("<guid isPermaLink=\"false\">g</guid>"));
}
