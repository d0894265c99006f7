//! The published id, wherever the native one stands.

use super::build::{Feed, cut, item_as, read_back};

fn rss(item: &str, published: &str) -> Feed {
    let document = format!("<rss version=\"2.0\"><channel><title>T</title>{item}</channel></rss>");
    let (skeleton, mut entries) = cut(&document);
    Feed::of(skeleton, vec![item_as(entries.remove(0), published)])
}

/// The items as rendered, without `sx:sync`.
fn shown(feed: &Feed) -> String {
    let text = feed.entries();
    let start = text.find("<sx:sync ").unwrap();
    let end = text.find("</sx:sync>").unwrap() + "</sx:sync>".len();
    format!("{}{}", &text[..start], &text[end..])
}

/// One that is the published one is left alone; one that changed is replaced, and is no permalink; an item
/// whose only address it was gets a link; one without an id gets one.
#[test]
fn the_published_id_stands_where_the_own_one_stood() {
    let bare = "<guid isPermaLink=\"false\">urn:1&amp;&lt;</guid>";
    let given = |open: &str, rest: &str| format!("{open}{bare}{rest}</item>");
    for same in [
        "<item><guid>http://a/1</guid></item>",
        "<item><guid isPermaLink='true'><![CDATA[http://a/1]]></guid><x/></item>",
        "<item>\n <title>x</title>\n <guid>http&#58;//a/1</guid>\n</item>",
    ] {
        assert_eq!(shown(&rss(same, "http://a/1")), same);
    }
    let padded = rss("<item><guid>\n http://a/1 </guid></item>", "http://a/1");
    assert_eq!(
        shown(&padded),
        "<item><guid>http://a/1</guid></item>",
        "white space is never shown"
    );
    for (item, expected) in [
        (
            "<item><link>http://a/2</link><guid>http://a/2</guid></item>",
            given("<item><link>http://a/2</link>", ""),
        ),
        (
            "<item><guid isPermaLink='true' x='1'>http://a/2</guid><link>l</link></item>",
            "<item><guid isPermaLink='false' x='1'>urn:1&amp;&lt;</guid><link>l</link></item>"
                .into(),
        ),
        (
            "<item><guid isPermaLink='false'>2</guid></item>",
            "<item><guid isPermaLink='false'>urn:1&amp;&lt;</guid></item>".into(),
        ),
        (
            "<item><guid>http://a/2?x=1&amp;y</guid></item>",
            given("<item>", "<link>http://a/2?x=1&amp;y</link>"),
        ),
        ("<item><a/></item>", given("<item>", "<a/>")),
        ("<item/>", given("<item>", "")),
        ("<item x='1' />", given("<item x='1' >", "")),
        ("<item></item>", given("<item>", "")),
    ] {
        assert_eq!(shown(&rss(item, "urn:1&<")), expected);
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
