//! What collections say.

use super::*;
use crate::parse;
use tidegate_core::model::{Entry, EntrySync, FeedDocument, Markup, Shared};

fn read(plain: &str) -> FeedDocument<'_> {
    let document = parse::document(plain, None, &Limits::default()).unwrap();
    assert!(document.flaws.is_empty(), "{:?}\n{plain}", document.warnings);
    document
}

/// A collection of either kind as plain XML.
fn plain(text: &str) -> String {
    transcoded(text).unwrap().unwrap_or_else(|| text.to_owned())
}

fn shared(text: &str) -> Vec<Shared<Markup>> {
    let plain = plain(text);
    let document = read(&plain);
    let items = document.entries.iter();
    let shared = |entry: &Entry<'_>| {
        let said = entry.shared().unwrap();
        let winner = said.version.with(parse::own(&document, entry));
        Shared { winner, conflicts: said.conflicts.clone() }
    };
    items.map(shared).collect()
}

/// What an item says in words of Atom.
fn said(markup: &Markup) -> Vec<(String, String)> {
    let fields = parse::again(markup).unwrap().into_iter();
    let said = fields.filter(|field| !field.path.starts_with('{'));
    said.map(|field| (field.path.into_owned(), field.value.into_owned())).collect()
}

/// Whether an entry says something at a path.
fn says(markup: &Markup, path: &str, value: &str) -> bool {
    said(markup).contains(&(path.to_owned(), value.to_owned()))
}

/// The example of section 1.4.0, with its two elements closed (READINGS 1, row 34).
const POX: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>
<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\">
 <sx:sharing since=\"2005-02-13T18:30:02Z\" until=\"2005-05-23T18:30:02Z\" >
 <sx:related link=\"http://example.com/all.xml\" type=\"complete\" />
 </sx:sharing>
 <item>
 <sx:sync id=\"item_1_myapp_2005-05-21T11:43:33Z\" updates=\"3\">
 <sx:history sequence=\"3\" when=\"2005-05-21T11:43:33Z\" by=\"JEO2000\"/>
 <sx:history sequence=\"2\" when=\"2005-05-21T10:43:33Z\" by=\"REO1750\"/>
 <sx:history sequence=\"1\" when=\"2005-05-21T09:43:33Z\" by=\"REO1750\"/>
 </sx:sync>
 <subject>Item #0</subject>
 <body>Get milk, eggs, butter and bread</body>
 </item>
</collection>";

#[test]
fn the_example_of_plain_xml_is_read() {
    let items = shared(POX);
    let [item] = items.as_slice() else { panic!("{items:?}") };
    assert_eq!(item.winner.id.as_str(), "item_1_myapp_2005-05-21T11:43:33Z");
    assert_eq!((item.winner.updates.value(), item.winner.history.len()), (3, 3));
    let data = &item.winner.data;
    assert!(says(data, "title", "Item #0"));
    assert!(says(data, "content", "Get milk, eggs, butter and bread"));
    assert!(!says(data, "content@type", "html"));
    assert!(data.card.updated.is_some() && data.xml.contains("<subject>Item #0</subject>"));
    let id = "x-sync-id:item_1_myapp_2005-05-21T11%3A43%3A33Z";
    assert_eq!(read(POX).entries[0].native_id.as_deref(), Some(id));
}

/// The example of section 3.1, with quotes that JSON knows, and with numbers and booleans.
#[test]
fn the_example_of_json_is_read() {
    for (updates, sequence, deleted) in [("\"1\"", "\"1\"", "\"false\""), ("1", "1", "false")] {
        let text = format!(
            "{{ \"sharing\": {{\"since\": \"a\", \"until\": \"b\", \"related\": [{{\"link\": \
             \"http://example.com/all\", \"type\": \"complete\"}}]}}, \"items\": [\n\
             {{\"title\": \"Buy groceries\", \"description\": \"Get milk and <b>eggs</b>\", \
             \"priority\": {{\"high\": true}}, \"tags\": [\"a\", 1],\
             \"sync\": {{ \"id\": \"i\", \"updates\": {updates}, \"deleted\": {deleted}, \
             \"history\": [{{\"sequence\": {sequence}, \"when\": \"2005-05-21T09:43:33Z\", \
             \"by\": \"REO1750\"}}]}}}}]}}"
        );
        let items = shared(&text);
        let [item] = items.as_slice() else { panic!("{items:?}") };
        assert_eq!((item.winner.updates.value(), item.winner.deleted), (1, false));
        let data = &item.winner.data;
        assert!(says(data, "title", "Buy groceries"));
        assert!(says(data, "content", "Get milk and <b>eggs</b>"));
        assert!(says(data, "content@type", "html"));
        assert!(data.xml.contains("\"priority\":{\"high\":true}"), "{}", data.xml);
        assert!(says(data, "category@term", "1"), "{}", data.xml);
        assert!(
            plain(&text)
                .contains("<sx:related link=\"http://example.com/all\" type=\"complete\"/>")
        );
    }
}

#[test]
fn conflicts_are_entries_in_both() {
    let version = |title: &str, by: &str, more: &str| {
        format!(
            "<item><title>{title}</title><sx:sync id=\"i\" updates=\"2\"><sx:history \
             sequence=\"2\" by=\"{by}\"/>{more}</sx:sync></item>"
        )
    };
    let inner = format!("<sx:conflicts>{}</sx:conflicts>", version("lost", "A", ""));
    let pox = format!(
        "<collection xmlns:sx=\"http://www.microsoft.com/schemas/sse\">{}</collection>",
        version("won", "B", &inner)
    );
    let json = "{\"items\":[{\"title\":\"won\",\"sync\":{\"id\":\"i\",\"updates\":2,\"history\":\
                {\"sequence\":2,\"by\":\"B\"},\"conflicts\":[{\"title\":\"lost\",\"sync\":{\"id\":\
                \"i\",\"updates\":2,\"history\":[{\"sequence\":2,\"by\":\"A\"}]}}]}}]}";
    let (pox, json) = (shared(&pox), shared(json));
    // What differs is what each came as.
    let versions = |items: &[Shared<Markup>]| -> Vec<_> {
        let versions = items.iter().flat_map(|item| item.conflicts.iter().chain([&item.winner]));
        versions.map(|v| (v.history.clone(), v.updates, said(&v.data))).collect()
    };
    assert_eq!(versions(&pox), versions(&json));
    let [item] = pox.as_slice() else { panic!("{pox:?}") };
    assert_eq!(item.winner.data.card.title, "won");
    let [lost] = item.conflicts.as_slice() else { panic!("{item:?}") };
    assert_eq!(lost.data.card.title, "lost");
}

#[test]
fn what_means_the_same_in_atom_becomes_that_and_the_rest_is_kept() {
    let text = "<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\" xmlns:x=\"urn:x\">\
                <title>t</title><x:head/><item x:a=\"1\"><guid>http://h/1</guid><title>one</title>\
                <pubDate>Sat, 21 May 2005 09:43:33 GMT</pubDate><category>c</category>\
                <enclosure url=\"http://h/a\" type=\"audio/mpeg\" length=\"3\"/><rank>7</rank>\
                <description>d &lt;b&gt;</description><x:y><x:z/></x:y>\
                <title xmlns=\"http://www.w3.org/2005/Atom\">atom</title></item></collection>";
    let document = read(text);
    let head = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><x:head xmlns:x=\"urn:x\"/><title>t</title>\
                <author><name>t</name></author></feed>";
    let root = tree::read(&document.skeleton.text, &Context::default()).unwrap();
    let mut written = String::new();
    tree::write(&mut written, &feed(&root), &mut Vec::new());
    assert_eq!(written, head);
    let item = parse::own(&document, &document.entries[0]);
    assert!(text.contains(&item.xml.replace(" xmlns:x=\"urn:x\"", "")), "{}", item.xml);
    let wanted = "<entry xmlns:x=\"urn:x\" x:a=\"1\"><rank xmlns=\"\">7</rank>\
                  <x:y><x:z/></x:y><title>atom</title>\
                  <id>http://h/1</id><link rel=\"alternate\" href=\"http://h/1\"/>\
                  <published>2005-05-21T09:43:33Z</published>\
                  <updated>2005-05-21T09:43:33Z</updated><category term=\"c\"/>\
                  <link rel=\"enclosure\" href=\"http://h/a\" type=\"audio/mpeg\" length=\"3\"/>\
                  <content type=\"html\">d &lt;b&gt;</content></entry>";
    assert_eq!(as_atom(&item, None, None).unwrap().xml, wanted);
    assert_eq!(document.entries[0].native_id.as_deref(), Some("http://h/1"));
}

#[test]
fn whatever_is_no_collection_is_left_alone() {
    for text in [
        "",
        "x",
        "{",
        "{}",
        "{\"items\":[{\"title\":\"x\"}]}",
        "{\"items\":{\"sync\":{}}}",
        "{\"version\":\"https://jsonfeed.org/version/1.1\",\"items\":[{\"sync\":{}}]}",
        POX,
    ] {
        assert_eq!(within(text, &Limits::default()), Ok(None), "{text}");
    }
    let other = parse::document("<collection><book/></collection>", None, &Limits::default());
    assert!(matches!(other, Err(ParseError::NotAFeed { .. })), "{other:?}");
    // One may share nothing yet.
    assert_eq!(read("<collection><item/></collection>").entries.len(), 1);
    // Its items would be taken for plain ones.
    let torn = transcoded("{\"sharing\":{},\"items\":[{\"sync\":{}}");
    assert!(matches!(torn, Err(ParseError::NothingWhole { at: 34, .. })), "{torn:?}");
    let empty = transcoded("{\"sharing\":{},\"items\":[]}").unwrap().unwrap();
    assert!(read(&empty).entries.is_empty());
}

#[test]
fn faults_have_a_place() {
    let broken = POX.replace("</subject>", "");
    let document = parse::document(&broken, None, &Limits::default()).unwrap();
    let before = document.broken_at.and_then(|at| broken.get(..at)).unwrap();
    assert_eq!(before.matches('\n').count() + 1, 14, "{:?}", document.completeness);
    assert!(matches!(document.entries[0].sync, Some(EntrySync::Invalid(_))));
    // Invalid sync markup costs the item its sync, and is named with its line.
    let bad = POX.replace("updates=\"3\"", "updates=\"x\"");
    let document = read(&bad);
    let [fault] = document.warnings.as_slice() else { panic!("{:?}", document.warnings) };
    let before = bad.get(..fault.offset).unwrap();
    assert_eq!(before.matches('\n').count() + 1, 7, "{fault:?}");
    let many = format!("{{\"sharing\":{{}},\"items\":[{}0]}}", "0,".repeat(ITEM_LIMIT));
    assert!(matches!(transcoded(&many), Err(ParseError::Limit { what: "items", .. })));
    let deep = format!("{}{}", "{\"items\":[".repeat(5000), "]}".repeat(5000));
    assert!(transcoded(&deep).is_ok() || transcoded(&deep).is_err());
}

/// What stands behind the limit is broken, and nobody sees it.
#[test]
fn json_is_read_up_to_a_limit_and_no_further() {
    let limits = Limits { entries: 2, head_values: 2, ..Limits::default() };
    let many = within("{\"sharing\":{},\"items\":[0,0,0,?", &limits);
    assert!(matches!(many, Err(ParseError::Limit { what: "items", limit: 2, at: 27 })), "{many:?}");
    let sharing = "{\"sharing\":{},\"b\":1,\"items\":[]";
    assert!(within(&format!("{sharing}}}"), &limits).unwrap().is_some());
    assert_eq!(within(&format!("{sharing},\"c\":1,?"), &limits), Ok(None));
    let feed = "{\"version\":\"https:\\/\\/jsonfeed.org\\/version\\/1\",\"items\":[{\"sync\":{}},?";
    assert_eq!(within(feed, &limits), Ok(None));
}

#[test]
fn a_broken_collection_is_told_from_a_broken_json_feed_by_its_members() {
    let limits = Limits::default();
    let mentions = "{\"items\":[{\"sync\":{},\"url\":\"https://jsonfeed.org/version/\"},";
    assert!(matches!(within(mentions, &limits), Err(ParseError::NothingWhole { .. })));
    let feed = "{\"title\":\"F\",\"items\":[{\"id\":\"1\",\"_x\":{\"sync\":{},\"sharing\":{}}},";
    assert_eq!(within(feed, &limits), Ok(None));
}

proptest::proptest! {
    #[test]
    fn any_text_is_answered(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\">", "</collection>",
                "<item>", "</item>", "<sx:sync id=\"i\"", " updates=\"1\">", "</sx:sync>",
                "<sx:conflicts>", "</sx:conflicts>", "<title>", "</title>", "&amp;", "\n", "x",
                "{\"items\":[", "]}", "{\"sync\":{", "}}", "\"id\":1", ",", "\"conflicts\":[", "]",
            ]),
            0..30,
        ),
    ) {
        let text = pieces.concat();
        let _ = parse::document(&text, None, &Limits::default());
        if let Ok(Some(plain)) = transcoded(&text) {
            proptest::prop_assert!(read(&plain).text == plain, "{text}\n{plain}");
        }
    }
}

/// A collection that is cut on its way is no JSON Feed, whose items nobody shares.
#[test]
fn a_collection_that_ends_early_is_refused() {
    let item = r#"{"title": "A", "sync": {"id": "a", "updates": "1", "history": [{"sequence": "1",
                   "by": "x"}]}}"#;
    for whole in [
        format!(r#"{{"sharing": {{"since": "a", "until": "b"}}, "items": [{item}, {item}]}}"#),
        format!(r#"{{"items": [{item}, {item}], "more": 1}}"#),
    ] {
        assert!(transcoded(&whole).unwrap().is_some());
        let first = whole.find(item).unwrap() + item.len();
        for end in first..whole.len() {
            let said = transcoded(whole.get(..end).unwrap());
            assert!(matches!(said, Err(ParseError::NothingWhole { .. })), "{end}: {said:?}");
        }
    }
}

#[test]
fn a_collection_that_has_nothing_yet_is_one() {
    for text in [
        "<collection/>",
        "<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\"/>",
        "<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\"><sx:sharing since=\"a\" \
         until=\"b\"/></collection>",
        "{\"items\":[]}",
        "{\"sharing\":{\"since\":\"a\",\"until\":\"b\"}}",
        "{\"sharing\":{},\"items\":[]}",
    ] {
        let plain = plain(text);
        let document = read(&plain);
        assert!(document.entries.is_empty(), "{text}");
        assert_eq!(document.skeleton.title, "Collection", "{text}");
    }
}

/// What the specification leaves open may be called like what it does not.
#[test]
fn an_item_may_have_a_child_that_is_called_entry() {
    let history = "\"history\":[{\"sequence\":1,\"when\":\"2005-05-21T09:43:33Z\",\"by\":\"A\"}]";
    let json = |more: &str| {
        format!(
            "{{\"items\":[{{\"title\":\"t\",\"description\":\"d\",{more},\"sync\":{{\"id\":\"i\",\
             \"updates\":1,{history}}}}}]}}"
        )
    };
    let pox = |more: &str| {
        format!(
            "<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\" xmlns:a=\
             \"http://www.w3.org/2005/Atom\"><item><title>t</title><description>d</description>{more}\
             <sx:sync id=\"i\" updates=\"1\"><sx:history sequence=\"1\" when=\
             \"2005-05-21T09:43:33Z\" by=\"A\"/></sx:sync></item></collection>"
        )
    };
    for text in [
        json("\"entry\":\"5\""),
        json("\"entry\":{\"a\":1}"),
        json("\"entry\":\"<entry/>\""),
        json("\"entry\":\"<entry><entry/><b/></entry>\""),
        json("\"item\":{\"item\":[1]}"),
        pox("<entry>5</entry>"),
        pox("<entry><title>x</title></entry>"),
        pox("<item><title>x</title></item>"),
        pox("<a:entry><a:title>x</a:title></a:entry>"),
        pox("<feed/><a:feed/><channel><item/></channel>"),
    ] {
        let items = shared(&text);
        let [item] = items.as_slice() else { panic!("{text}: {items:?}") };
        assert_eq!(item.winner.data.card.title, "t", "{text}");
        assert!(item.winner.data.card.updated.is_some(), "{text}");
        let plain = plain(&text);
        let document = read(&plain);
        assert_eq!(document.entries.len(), 1, "{text}\n{plain}");
        assert!(document.entries[0].sync.is_some(), "{text}\n{plain}");
        assert!(document.warnings.is_empty(), "{:?}\n{plain}", document.warnings);
        assert_eq!(document.completeness, tidegate_core::model::Completeness::Full, "{plain}");
    }
}

/// What an item in JSON says in plain XML as well is no reason to refuse a collection.
#[test]
fn a_collection_may_be_as_large_as_any_document() {
    let words = "w ".repeat(400);
    let item = |n: usize| format!("{{\"id\":\"urn:{n}\",\"title\":\"t\",\"content\":\"{words}\"}}");
    let items: Vec<String> = (0..50).map(item).collect();
    let json = format!("{{\"sharing\":{{}},\"items\":[{}]}}", items.join(","));
    let limits = Limits { decoded: json.len() * 5 / 4, ..Limits::default() };
    assert_eq!(within(&json, &limits).unwrap().unwrap().matches("<item>").count(), 50);
    let limits = Limits { decoded: json.len() / 2, ..Limits::default() };
    assert!(matches!(within(&json, &limits), Err(ParseError::TooLarge { .. })));
}
