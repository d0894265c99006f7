use super::*;
use crate::parse::document;
use tidegate_core::model::Format;
use tidegate_core::xml::ns::OUTLINE;

fn opml(outlines: &str) -> String {
    format!("<opml version='2.0' xmlns:x='urn:x'><head/>\n<body>\n{outlines}\n</body></opml>")
}

/// Of each outline its id and that of what it stands in.
fn ids_and_parents(outlines: &str) -> Vec<(String, String)> {
    let (atom, _) = within(&opml(outlines), &Limits::default()).unwrap().unwrap();
    let document = document(&atom, None, &Limits::default()).unwrap();
    assert_eq!(document.format, Format::Opml);
    let entries = document.entries.iter().map(|entry| {
        let parent = entry.fields().iter().find(|field| field.path == "outline:parent@ref");
        (entry.native_id.as_deref().unwrap().to_owned(), parent.unwrap().value.to_string())
    });
    entries.collect()
}

#[test]
fn each_id_stands_once_and_stays() {
    let feed = |name: &str| format!("<outline text='{name}' xmlUrl='http://{name}.example/f'/>");
    let ids = |outlines: &str| -> Vec<String> {
        ids_and_parents(outlines).into_iter().map(|(id, _)| id).collect()
    };
    let folder = |name: &str, inside: &str| format!("<outline text='{name}'>{inside}</outline>");
    let first = ids(&(folder("F", &(feed("a") + &feed("b"))) + &folder("G", &feed("a"))));
    let by_address = |id: &String| id == "http://a.example/f";
    assert_eq!(first.iter().filter(|id| by_address(id)).count(), 1, "{first:?}");
    assert!(first.iter().all(|id| id.starts_with("http:") || id.starts_with("x-outline:")));
    // In another order they are the same.
    let turned = ids(&(folder("G", &feed("a")) + &folder("F", &(feed("a") + &feed("b")))));
    assert_eq!((&turned[..2], &turned[2..]), (&first[3..], &first[..3]));
    // What comes in front of them changes none of them.
    let more = folder("E", &feed("c")) + &feed("d");
    let second = ids(&(more + &folder("F", &(feed("a") + &feed("b"))) + &folder("G", &feed("a"))));
    assert_eq!(second[3..], first[..]);
    // Nor does a copy at the same place.
    let twice = ids(&folder("F", &(feed("a") + &feed("a") + &feed("a"))));
    assert_eq!(twice.iter().collect::<HashSet<_>>().len(), 4);
    let texts = ids("<outline text='same'/><outline text='same'/><outline/><outline/>");
    assert_eq!(texts.iter().collect::<HashSet<_>>().len(), 4);
    // What another gateway says of it.
    let told = format!("<outline text='t' xmlns:o='{OUTLINE}' o:id='urn:own'/>");
    assert_eq!(ids(&told), ["urn:own"]);
}

/// A text that thousands stand in is not written thousands of times, or only until it is too much, and
/// what is wrong thousands of times is told some times.
#[test]
fn what_is_short_does_not_become_long() {
    let limits = Limits { decoded: 8 << 20, ..Limits::default() };
    let long = "A".repeat(1 << 18);
    let inside = "<outline/>".repeat(10_000);
    for (address, fits) in [
        (String::new(), true),
        ("xmlUrl='http://a/'".to_owned(), true),
        (format!("xmlUrl='http://{long}/'"), false),
    ] {
        let text = opml(&format!("<outline text='{long}' {address}>{inside}</outline>"));
        let read = within(&text, &limits);
        match fits {
            true => assert!(read.unwrap().unwrap().0.len() < 4 << 20),
            false => assert!(matches!(read, Err(ParseError::TooLarge { .. }))),
        }
    }
    let names = format!("xmlns:q='urn:{}' q:a='1'", "u".repeat(1 << 20));
    let named = opml(&format!("<outline text='a' {names}>{}</outline>", "<q:n/>".repeat(40)));
    assert!(within(&named, &Limits::default()).unwrap().unwrap().0.len() < 10_000);
    let text = opml(&"<outline 9x='1'/>\n".repeat(10_000));
    let (_, warnings) = within(&text, &Limits::default()).unwrap().unwrap();
    assert_eq!(warnings.len(), WARNINGS + 1);
    let more = (10_000 - WARNINGS).to_string();
    assert!(warnings[WARNINGS].message.starts_with(&more), "{}", warnings[WARNINGS].message);
}

#[test]
fn other_documents_are_none() {
    let json = r#"{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[
        {"id":"1","content_html":"<opml version='2.0'> is how lists of feeds begin"}]}"#;
    for text in ["", json, "<rss/>", "<!-- <opml> --><feed/>", "opml", "<html><opml/></html>"] {
        assert_eq!(transcoded(text), Ok(None), "{text}");
    }
    let limits = Limits { entries: 1, ..Limits::default() };
    let many = opml("<outline/>\n<outline/>");
    let refused = within(&many, &limits);
    assert!(matches!(refused, Err(ParseError::Limit { what: "outlines", limit: 1, .. })));
}

proptest::proptest! {
    /// Whatever stands in a list, what comes of it is an Atom document that can be read.
    #[test]
    fn any_list_is_readable(inside in "[<>\"'=/a-c: &;!\\[\\]\\-\n]{0,120}") {
        let text = format!("<opml xmlns:a='urn:a'><body><outline {inside}");
        let atom = transcoded(&text).unwrap().unwrap();
        let ended = if atom.ends_with("</feed>") { atom.clone() } else { format!("{atom}</feed>") };
        proptest::prop_assert!(Doc::read_flawless(&ended).is_some(), "{text} became {atom}");
    }
}

/// What stands in no other says so by a word that no outline can be called.
#[test]
fn no_outline_is_called_the_root() {
    let told = format!("<outline text='t' xmlns:o='{OUTLINE}' o:id='body'/>");
    for outline in ["<outline text='t' xmlUrl='body'/>", &told] {
        let said = ids_and_parents(&format!("<outline text='a'/>{outline}"));
        assert!(said.iter().all(|(id, parent)| id != "body" && parent == "body"), "{said:?}");
    }
    // Nor as another one by the id that this one would be made.
    let made = ids_and_parents("<outline text='a'/>")[0].0.clone();
    let told = format!("<outline text='t' xmlns:o='{OUTLINE}' o:id='{made}'/>");
    let said = ids_and_parents(&format!("{told}<outline text='a'/>"));
    assert_ne!(said[0].0, said[1].0);
}
