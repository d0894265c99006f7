use super::*;
use crate::parse;
use tidegate_core::model::FeedDocument;

fn read(plain: &str) -> FeedDocument<'_> {
    let document = parse::document(plain, None, &Limits::default()).unwrap();
    assert!(document.flaws.is_empty(), "{:?}\n{plain}", document.warnings);
    document
}

/// The example of section 1.4.0, with its two elements closed (READINGS 1, row 34).
const POX: &str = include_str!("../../../../tests/golden/reading/collections/collection.xml");

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
fn json_has_its_limits() {
    let many = format!("{{\"sharing\":{{}},\"items\":[{}0]}}", "0,".repeat(ITEM_LIMIT));
    assert!(matches!(transcoded(&many), Err(ParseError::Limit { what: "items", .. })));
    let deep = format!("{}{}", "{\"items\":[".repeat(5000), "]}".repeat(5000));
    let refused = transcoded(&deep).unwrap_err().to_string();
    assert!(refused.contains("a member cannot be read: recursion limit exceeded"), "{refused}");
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
