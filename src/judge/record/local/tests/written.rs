//! What is taken as an entry, and what is said of what is not.

use super::*;
use proptest::prelude::*;
use tidegate_core::xml::ns::{ATOM, FEED_SYNC, SSE, XHTML};

fn kept(entry: &CheckedEntry) -> Markup {
    entry.read(Time::from_unix(NOW), tidegate_format::parse::markup_of).unwrap()
}

#[test]
fn an_entry_is_kept_as_it_is_written() {
    let body = format!(
        "<?xml version='1.0'?>\n<a:entry xmlns:a='{ATOM}' xmlns:m='urn:m' xml:lang='de'>\
         <a:id>tag:x,2026:1</a:id><a:title type='html'>A &lt;i&gt;b&lt;/i&gt;</a:title>\
         <a:updated>2026-01-02T03:04:05Z</a:updated><m:mood>fine</m:mood></a:entry>\n"
    );
    let markup = kept(&CheckedEntry::atom(&body).unwrap());
    assert_eq!(markup.card.title, "A b");
    assert_eq!(markup.card.updated, Some(Time::parse_rfc3339("2026-01-02T03:04:05Z").unwrap()));
    assert!(markup.xml.starts_with("<a:entry xmlns:a=") && markup.xml.contains("<m:mood>"));
    assert!(!markup.xml.contains("around"));
    assert_eq!(markup.xml.matches("updated>").count(), 2);
}

#[test]
fn what_bears_no_date_is_dated_in_its_own_terms() {
    let named = |more| format!("<a:entry{more} xmlns:a='{ATOM}'><a:title>A</a:title></a:entry>");
    for (body, dated) in [
        ("<entry><title>A</title></entry>".to_owned(), "<entry><updated>2026-"),
        (named(""), "<a:updated>2026-"),
        (named("\n xmlns='urn:x'"), "<a:updated>2026-"),
    ] {
        let markup = kept(&CheckedEntry::atom(&body).unwrap());
        assert!(markup.xml.contains(dated), "{}", markup.xml);
        assert_eq!(markup.card.updated, Some(Time::from_unix(NOW)));
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let said = |body: &str| CheckedEntry::atom(body).unwrap_err();
    for (body, line, words) in [
        ("", Some(1), "root must be an Atom entry"),
        ("<html><body/></html>", Some(1), "root must be an Atom entry"),
        ("<entry>\n<title> </title></entry>", None, "no title"),
        ("<entry><title>A</title><id>7</id></entry>", None, "no absolute address"),
        ("<entry>\n<title>A</b>\n</entry>", Some(2), ""),
        ("<entry>\n\n<title>A &nbsp; b</title></entry>", Some(3), "HTML"),
        ("<entry><title>A</title></entry><entry><title>B</title></entry>", None, "there are 2"),
        ("<entry><title>A</title></entry> and more", None, "nothing but"),
        ("more <entry><title>A</title></entry>", Some(1), "nothing but"),
        ("<title>Mine</title><entry><title>A</title></entry>", Some(1), "the root is <title>"),
        ("<foo/>", Some(1), "the root is <foo>; the root must be an Atom entry"),
        ("{\"title\":1}", Some(1), "no XML; the root must be an Atom entry"),
        ("<entry xmlns='urn:x'><title>A</title></entry>", Some(1), "another namespace"),
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
        for never in ["upstream", "around", "taken for", "byte"] {
            assert!(!error.to_string().contains(never), "{body:?}: {error}");
        }
    }
}

#[test]
fn what_xml_or_rfc_4287_forbids_is_refused_at_its_line() {
    let date = "2026-01-02T03:04:05Z";
    let dated = |name: &str, date: &str| format!("<{name}>{date}</{name}>");
    let twice = |one: &str| format!("<content/>\n{one}{one}");
    let sync = |namespace: &str| format!("<s:sync xmlns:s='{namespace}'/>");
    for (inner, line, words) in [
        ("<title>B</title>".to_owned(), 3, "one <title>"),
        (twice("<id>urn:x</id>"), 4, "one <id>"),
        (twice(&dated("updated", date)), 4, "one <updated>"),
        (twice("<summary>A</summary>"), 4, "one <summary>"),
        (twice(""), 0, ""),
        (format!("{0}{0}", "<content>A</content>"), 3, "one <content>"),
        (dated("updated", "yesterday"), 3, "such as 2026-11-20T16:20:05Z"),
        (dated("published", "2026-13-02T03:04:05Z"), 3, "such as"),
        (dated("updated", ""), 3, "such as"),
        (dated("updated", "2026-01-02T03:04:05.25+01:00"), 0, ""),
        (dated("published", "2026-01-02T03:04:&#48;5Z"), 0, ""),
        ("<id> </id>".to_owned(), 3, "<id> is empty"),
        ("<link href=' '/>".to_owned(), 3, "href"),
        ("<link href='javascript:x'/>".to_owned(), 3, "http or https"),
        ("<link href='java&#10;script:x'/>".to_owned(), 3, "http or https"),
        ("<link href='/there'/><link href='https://example.org/'/>".to_owned(), 0, ""),
        ("<author><email>a@b.c</email></author>".to_owned(), 3, "one <name>"),
        ("<author><name> </name></author>".to_owned(), 3, "one <name>"),
        ("<author><name>A</name></author>".to_owned(), 0, ""),
        ("<category label='x'/>".to_owned(), 3, "term"),
        ("<category term='x'/>".to_owned(), 0, ""),
        ("<summary type='text/plain'>A</summary>".to_owned(), 3, "text, html or xhtml"),
        ("<content type='markdown'>A</content>".to_owned(), 3, "or a media type"),
        ("<content type='text/markdown'>A</content>".to_owned(), 0, ""),
        ("<content type='image/svg+xml'><svg xmlns='urn:s'/></content>".to_owned(), 0, ""),
        ("<content type='html'><p>A</p></content>".to_owned(), 3, "&lt;"),
        ("<content type='xhtml'>A</content>".to_owned(), 3, "<div"),
        ("<content type='xhtml'><div>A</div></content>".to_owned(), 3, "<div"),
        (format!("<content type='xhtml'>\n<div xmlns='{XHTML}'><b>A</b></div> </content>"), 0, ""),
        ("<content src='javascript:x'/>".to_owned(), 3, "src"),
        ("<content src='/a.png' type='image/png'>A</content>".to_owned(), 3, "src"),
        ("<content src='/a.png' type='image/png'/>".to_owned(), 0, ""),
        ("and this".to_owned(), 3, "between the elements"),
        (sync(SSE), 3, "leave sx:sync out: it is made here"),
        (sync(FEED_SYNC), 3, "leave sx:sync out: it is made here"),
        // What is no XML.
        ("<summary>A & B</summary>".to_owned(), 3, "write it as &amp;"),
        ("<summary>A < B</summary>".to_owned(), 3, "write it as &lt;"),
        ("<summary>A ]]> B</summary>".to_owned(), 3, "]]&gt;"),
        ("<summary>A &nbsp; B</summary>".to_owned(), 3, "&#160;"),
        ("<summary>A \u{1} B</summary>".to_owned(), 3, "take it out"),
        ("<category term=x/>".to_owned(), 3, "quotes"),
        ("<category term='x' term='y'/>".to_owned(), 3, "twice"),
        ("<category term='x'label='y'/>".to_owned(), 3, "put a space there"),
        ("<m:mood>fine</m:mood>".to_owned(), 3, "declare it with xmlns"),
        ("<summary>A</summary></p>".to_owned(), 3, ""),
    ] {
        let entry = format!("<entry>\n<title>A</title>\n{inner}\n</entry>");
        match (CheckedEntry::atom(&entry), line) {
            (Ok(entry), 0) => assert!(kept(&entry).xml.matches("<updated>").count() == 1),
            (Ok(_), _) => panic!("{inner} is taken"),
            (Err(error), _) => {
                assert_eq!(error.line, Some(line), "{inner}: {error}");
                assert!(error.message.contains(words), "{inner}: {error}");
                // The advice about XHTML has a word of the document around the entry.
                let said = error.to_string().replace("a <div> around them", "a <div>");
                assert!(said.matches("line ").count() <= 1, "{said}");
                for never in ["taken for", "plain one", "upstream", "around"] {
                    assert!(!said.contains(never), "{said}");
                }
            }
        }
    }
}

#[test]
fn fields_become_an_entry_whatever_stands_in_them() {
    let fields = EntryFields {
        title: "A <b> & \"c\" ]]>".to_owned(),
        content_html: Some("<p>One &amp; two</p><script>x</script>".to_owned()),
        link: Some("https://example.org/?a=1&b=\"2\"".to_owned()),
        author: Some("</name></author><id>urn:x</id>".to_owned()),
        summary: Some("short".to_owned()),
        categories: vec!["a\" scheme=\"b".to_owned()],
        published: Some(Time::from_unix(0)),
        updated: Some(Time::from_unix(60)),
        ..EntryFields::default()
    };
    let markup = kept(&CheckedEntry::fields(&fields).unwrap());
    assert_eq!(markup.card.title, fields.title);
    assert_eq!(markup.card.author, fields.author);
    assert_eq!(markup.card.published, fields.published);
    assert!(markup.slots.id.is_none());
    let said = tidegate_format::parse::again(&markup).unwrap();
    let find = |path: &str| said.iter().find(|f| f.path == path).map(|f| f.value.to_string());
    assert_eq!(find("content").as_deref(), fields.content_html.as_deref());
    assert_eq!(find("category@term").as_deref(), Some("a\" scheme=\"b"));
    let titled = || EntryFields { title: "A".to_owned(), ..EntryFields::default() };
    let (link, id) = (Some("javascript:x".to_owned()), Some("seven".to_owned()));
    let (content, content_html) = (Some("x".to_owned()), Some("x".to_owned()));
    for (fields, why) in [
        (EntryFields::default(), "no title"),
        (EntryFields { link, ..titled() }, "no http"),
        (EntryFields { id, ..titled() }, "no absolute"),
        (EntryFields { content_html, content, ..titled() }, "not both"),
        // What XML cannot hold is not dropped in silence.
        (EntryFields { title: "A\u{0}b".to_owned(), ..EntryFields::default() }, ""),
    ] {
        let error = CheckedEntry::fields(&fields).unwrap_err();
        assert!(error.message.contains(why), "{error}");
    }
}

proptest! {
    /// Whatever is sent: what is taken can be read, is one entry, and says what was sent.
    #[test]
    fn no_body_is_too_strange(body in "(<|>|entry|/|title|id|=|'|\\PC| |\n|&|;){0,60}") {
        if let Ok(entry) = CheckedEntry::atom(&body) {
            prop_assert!(!kept(&entry).card.title.trim().is_empty());
        }
    }

    #[test]
    fn no_text_leaves_its_field(title in "\\PC{1,40}", text in "\\PC{0,60}") {
        let fields = EntryFields { title, content: Some(text), ..EntryFields::default() };
        if let Ok(entry) = CheckedEntry::fields(&fields) {
            let said = tidegate_format::parse::again(&kept(&entry)).unwrap();
            let mut names = said.iter().map(|field| field.path.as_ref());
            prop_assert!(names.all(|n| ["title", "content", "content@type", "updated"].contains(&n)), "{said:?}");
        }
    }
}
