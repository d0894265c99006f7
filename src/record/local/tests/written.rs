//! What is taken as an entry, and what is said of what is not.

use super::*;
use proptest::prelude::*;

const ATOM: &str = "http://www.w3.org/2005/Atom";

fn kept(entry: &Written) -> Markup {
    entry.read(Time::from_unix(NOW), crate::parse::own).unwrap()
}

#[test]
fn an_entry_is_kept_as_it_is_written() {
    let body = format!(
        "<?xml version='1.0'?>\n<a:entry xmlns:a='{ATOM}' xmlns:m='urn:m' xml:lang='de'>\
         <a:id>tag:x,2026:1</a:id><a:title type='html'>A &lt;i&gt;b&lt;/i&gt;</a:title>\
         <a:updated>2026-01-02T03:04:05Z</a:updated><m:mood>fine</m:mood></a:entry>\n"
    );
    let markup = kept(&Written::atom(&body).unwrap());
    assert_eq!(markup.card.title, "A b");
    assert_eq!(markup.card.updated, Some(Time::parse_rfc3339("2026-01-02T03:04:05Z").unwrap()));
    assert!(markup.xml.starts_with("<a:entry xmlns:a=") && markup.xml.contains("<m:mood>"));
    assert!(!markup.xml.contains("around"));
    assert_eq!(markup.xml.matches("updated>").count(), 2);
}

#[test]
fn what_bears_no_date_is_dated_in_its_own_terms() {
    for (body, dated) in [
        ("<entry><title>A</title></entry>".to_owned(), "<entry><updated>2026-"),
        (format!("<a:entry xmlns:a='{ATOM}'><a:title>A</a:title></a:entry>"), "<a:updated>2026-"),
        (
            format!("<a:entry\n xmlns='urn:x' xmlns:a='{ATOM}'><a:title>A</a:title></a:entry>"),
            "<a:updated>2026-",
        ),
    ] {
        let markup = kept(&Written::atom(&body).unwrap());
        assert!(markup.xml.contains(dated), "{}", markup.xml);
        assert_eq!(markup.card.updated, Some(Time::from_unix(NOW)));
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let said = |body: &str| Written::atom(body).unwrap_err();
    for (body, line, words) in [
        ("", None, "one Atom entry"),
        ("hello", None, "one Atom entry"),
        ("<html><body/></html>", None, "one Atom entry"),
        ("<entry/>", None, "no title"),
        ("<entry>\n<title> </title></entry>", None, "no title"),
        ("<entry><title>A</title><id>7</id></entry>", None, "no absolute address"),
        ("<entry>\n<title>A</b>\n</entry>", Some(2), ""),
        ("<entry>\n\n<title>A &nbsp; b</title></entry>", Some(3), "HTML"),
        ("<entry><title>A</title></entry><entry><title>B</title></entry>", None, "there are 2"),
        ("<entry><title>A</title></entry> and more", None, "nothing but"),
        ("more <entry><title>A</title></entry>", None, "nothing but"),
        ("<title>Mine</title><entry><title>A</title></entry>", None, "nothing but"),
        ("<item><title>A</title></item>", None, "there are 0"),
        ("<entry><title>A</title>", None, ""),
        ("</around:feed><entry><title>A</title></entry>", None, ""),
        ("<entry><title>A</title></entry></around:feed><x>", None, ""),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><entry><title>&b;</title></entry>", None, ""),
    ] {
        let error = said(body);
        assert!(error.message.contains(words), "{body:?}: {error}");
        if line.is_some() {
            assert_eq!(error.line, line, "{body:?}: {error}");
        }
        assert!(!error.to_string().contains("upstream"), "{body:?}: {error}");
    }
}

#[test]
fn fields_become_an_entry_whatever_stands_in_them() {
    let fields = Fields {
        title: "A <b> & \"c\" ]]>".to_owned(),
        content_html: Some("<p>One &amp; two</p><script>x</script>".to_owned()),
        link: Some("https://example.org/?a=1&b=\"2\"".to_owned()),
        author: Some("</name></author><id>urn:x</id>".to_owned()),
        summary: Some("short".to_owned()),
        categories: vec!["a\" scheme=\"b".to_owned()],
        published: Some(Time::from_unix(0)),
        updated: Some(Time::from_unix(60)),
        ..Fields::default()
    };
    let markup = kept(&Written::fields(&fields).unwrap());
    assert_eq!(markup.card.title, fields.title);
    assert_eq!(markup.card.author, fields.author);
    assert_eq!(markup.card.published, fields.published);
    assert!(markup.slots.id.is_none());
    let said = crate::parse::again(&markup).unwrap();
    let find = |path: &str| said.iter().find(|f| f.path == path).map(|f| f.value.to_string());
    assert_eq!(find("content").as_deref(), fields.content_html.as_deref());
    assert_eq!(find("category@term").as_deref(), Some("a\" scheme=\"b"));
    let wrong = |fields: Fields| Written::fields(&fields).unwrap_err().message;
    let title = || "A".to_owned();
    let both = Some("x".to_owned());
    assert!(wrong(Fields::default()).contains("no title"));
    assert!(
        wrong(Fields { title: title(), link: Some("javascript:x".into()), ..Fields::default() })
            .contains("no http")
    );
    assert!(
        wrong(Fields { title: title(), id: Some("seven".into()), ..Fields::default() })
            .contains("no absolute")
    );
    let two =
        Fields { title: title(), content: both.clone(), content_html: both, ..Fields::default() };
    assert!(wrong(two).contains("not both"));
    let control = Fields { title: "A\u{0}b".to_owned(), ..Fields::default() };
    assert!(Written::fields(&control).is_err(), "what XML cannot hold is not dropped in silence");
}

proptest! {
    /// Whatever is sent: what is taken can be read, is one entry, and says what was sent.
    #[test]
    fn no_body_is_too_strange(body in "(<|>|entry|/|title|id|=|'|\\PC| |\n|&|;){0,60}") {
        if let Ok(entry) = Written::atom(&body) {
            prop_assert!(!kept(&entry).card.title.trim().is_empty());
        }
    }

    #[test]
    fn no_text_leaves_its_field(title in "\\PC{1,40}", text in "\\PC{0,60}") {
        let fields =
            Fields { title: title.clone(), content: Some(text.clone()), ..Fields::default() };
        if let Ok(entry) = Written::fields(&fields) {
            let said = crate::parse::again(&kept(&entry)).unwrap();
            let names: Vec<&str> = said.iter().map(|field| field.path.as_ref()).collect();
            prop_assert!(names.iter().all(|n| ["title", "content", "content@type", "updated"].contains(n)), "{:?}", names);
        }
    }
}
