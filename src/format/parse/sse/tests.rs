//! Feed files good and bad.

use super::*;
use tidegate_core::model::Family;
use tidegate_core::sync::Canonical;
use tidegate_core::sync_markup::sx::sync_element;

/// An RSS feed with one item on line 3, whose `sx:sync` is as given.
fn with_sync(sync: &str) -> String {
    format!(
        "<rss version=\"2.0\" xmlns:sx=\"http://www.microsoft.com/schemas/sse\">\n<channel>\n\
         <item>\n{sync}<title>t</title></item></channel></rss>"
    )
}

/// What is said of that item's sync markup.
fn said(sync: &str) -> String {
    let text = with_sync(sync);
    let feed = read(&text).unwrap();
    match &feed.items[0].shared {
        Some(Err(error)) => error.to_string(),
        other => panic!("{sync} was taken: {other:?}"),
    }
}

/// What is said of a document that is refused.
fn refused(text: &str) -> String {
    read(text).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn every_fault_is_named_with_its_line() {
    let history = "<sx:history sequence=\"1\" by=\"A\"/>";
    for (sync, wanted) in [
        (format!("<sx:sync updates=\"1\">{history}</sx:sync>"), "line 4: sx:sync has no attribute \"id\"; it is required"),
        (format!("<sx:sync id=\"i\">{history}</sx:sync>"), "line 4: sx:sync has no attribute \"updates\"; it is required"),
        (format!("<sx:sync id=\"\" updates=\"1\">{history}</sx:sync>"), "line 4: sx:sync has id=\"\"; "),
        (format!("<sx:sync id=\"i\" updates=\"0\">{history}</sx:sync>"), "line 4: sx:sync has updates=\"0\"; "),
        (format!("<sx:sync id=\"i\" updates=\"-1\">{history}</sx:sync>"), "line 4: sx:sync has updates=\"-1\"; "),
        (format!("<sx:sync id=\"i\" updates=\"2147483648\">{history}</sx:sync>"), "line 4: sx:sync has updates=\"2147483648\"; "),
        (format!("<sx:sync id=\"i\" updates=\"1\" deleted=\"TRUE\">{history}</sx:sync>"), "line 4: sx:sync has deleted=\"TRUE\"; it must be \"true\" or \"false\""),
        (format!("<sx:sync id=\"i\" updates=\"1\" noconflicts=\"\">{history}</sx:sync>"), "line 4: sx:sync has noconflicts=\"\"; "),
        ("<sx:sync id=\"i\" updates=\"1\"/>".to_owned(), "line 4: sx:sync has no sx:history; there must be at least one"),
        ("<sx:sync id=\"i\" updates=\"1\">\n<sx:history sequence=\"1\"/></sx:sync>".to_owned(), "line 5: sx:history has neither \"when\" nor \"by\"; one of them must be there"),
        ("<sx:sync id=\"i\" updates=\"1\">\n<sx:history by=\"A\"/></sx:sync>".to_owned(), "line 5: sx:history has no attribute \"sequence\"; it is required"),
        ("<sx:sync id=\"i\" updates=\"1\">\n<sx:history sequence=\"x\" by=\"A\"/></sx:sync>".to_owned(), "line 5: sx:history has sequence=\"x\"; "),
        ("<sx:sync id=\"i\" updates=\"1\">\n<sx:history sequence=\"1\" by=\"A\" when=\"Fri, 6 Jan 2006 19:24:09 GMT\"/></sx:sync>".to_owned(), "line 5: sx:history has when=\"Fri, 6 Jan 2006 19:24:09 GMT\"; "),
        ("<sx:sync id=\"i\" updates=\"1\">\n<sx:history sequence=\"1\" by=\"\"/></sx:sync>".to_owned(), "line 5: sx:history has by=\"\"; "),
        (format!("<sx:sync id=\"i\" updates=\"1\">{history}</sx:sync>\n<sx:sync id=\"i\" updates=\"1\">{history}</sx:sync>"), "line 5: the item has more than one sx:sync"),
        (format!("<sx:sync id=\"i\" updates=\"1\">{history}<sx:conflicts>\n<item/></sx:conflicts></sx:sync>"), "line 5: an item in sx:conflicts has no sx:sync"),
        (format!("<sx:sync id=\"i\" updates=\"1\">{history}<sx:conflicts>\n<item><sx:sync id=\"j\" updates=\"1\">{history}</sx:sync></item></sx:conflicts></sx:sync>"), "line 5: the conflict has the id \"j\", its item has \"i\"; they must be the same"),
    ] {
        let said = said(&sync);
        assert!(said.starts_with(wanted), "{said}\nis not\n{wanted}");
    }
}

#[test]
fn documents_that_are_no_feeds_are_refused_with_their_line() {
    for (text, wanted) in [
        (
            "",
            "line 1: the document is neither Atom 1.0, RSS nor a collection: there is no element in it",
        ),
        (
            "\n<html/>",
            "line 2: the document is neither Atom 1.0, RSS nor a collection: its root element is \"html\"",
        ),
        ("<feed><entry/></feed>", "line 1: the document is neither"),
        (
            "<rss/>",
            "line 1: the document is neither Atom 1.0, RSS nor a collection: there is nothing in its",
        ),
        (
            "<rss>\n<channel>",
            "line 2: the document is not well-formed: the element \"channel\" is not closed",
        ),
        ("<rss>\n<channel></rss>", "line 2: the document is not well-formed: "),
        ("<rss>\n<channel a='1' a='2'/></rss>", "line 2: the document is not well-formed: "),
        (
            "<rss>\n<channel xmlns:s:x='urn:a'/></rss>",
            "line 2: the document is not well-formed: \"xmlns:s:x\" is no name in XML with",
        ),
        (
            "<rss>\n<channel>\u{FFFE}</channel></rss>",
            "line 2: the document is not well-formed: the character U+FFFE may not stand in XML",
        ),
        ("<rss>\n<channel>&#1;</channel></rss>", "line 2: the document is not well-formed: "),
        ("<rss>\n<channel a='&#xFFFF;'/></rss>", "line 2: the document is not well-formed: "),
        ("<rss>\n<x:y:channel/></rss>", "line 2: the document is not well-formed: "),
        ("<rss>\n<x:channel/></rss>", "line 2: the prefix \"x\" is not declared"),
        ("<rss>\n<channel x:a=''/></rss>", "line 2: the prefix \"x\" is not declared"),
        ("<rss><channel></channel></rss>\n<rss/>", "line 2: the document is not well-formed: "),
        ("<rss><channel></channel></rss>\nx", "line 1: the document is not well-formed: "),
        (
            "<rss>\n<channel>&#xffffffff;</channel></rss>",
            "line 2: the document is not well-formed: ",
        ),
    ] {
        let said = refused(text);
        assert!(said.starts_with(wanted), "{text}\nsaid {said}");
    }
}

#[test]
fn the_limits_hold() {
    let deep = format!("{}{}", "<a>".repeat(DEPTH_LIMIT + 1), "</a>".repeat(DEPTH_LIMIT + 1));
    assert!(refused(&deep).contains("more than 256 elements in each other"));
    let attributes: String = (0..=ATTRIBUTE_LIMIT).map(|n| format!(" a{n}=''")).collect();
    assert!(refused(&format!("<rss{attributes}/>")).contains("more than 256 attributes"));
    let half: String = (0..200).map(|n| format!(" xmlns:a{n}='u'")).collect();
    let declared = format!("<rss{half}><channel{half}></channel></rss>");
    assert!(refused(&declared).contains("more than 256 namespace declarations"));
    let elements = "<a/>".repeat(1_000_000);
    let attributes = "<a b='' c='' d='' e='' f=''/>".repeat(400_000);
    for many in [elements, attributes] {
        let said = refused(&format!("<rss>{many}</rss>"));
        assert!(said.contains("more than 100663296 bytes in elements and attributes"), "{said}");
    }
    let items = "<item/>".repeat(ITEM_LIMIT + 1);
    assert!(refused(&format!("<rss><channel>{items}</channel></rss>")).contains("100000 items"));
    assert!(refused(&" ".repeat(BYTES_LIMIT + 1)).contains("more than 33554432 bytes"));
    let update = "<sx:history sequence=\"1\" by=\"A\"/>";
    let many = update.repeat(UPDATE_LIMIT + 1);
    let sync = format!("<sx:sync id=\"i\" updates=\"1\">{many}</sx:sync>");
    assert!(said(&sync).contains("more than 1000 sx:history in one sx:sync"));
    let own = format!("<item><sx:sync id=\"i\" updates=\"1\">{update}</sx:sync></item>");
    let many = own.repeat(CONFLICT_LIMIT + 1);
    let sync = format!(
        "<sx:sync id=\"i\" updates=\"1\">{update}<sx:conflicts>{many}</sx:conflicts></sx:sync>"
    );
    assert!(said(&sync).contains("more than 100 conflicts in one item"));
}

#[test]
fn one_bad_item_costs_no_other_its_sync() {
    let text = "<feed xmlns=\"http://www.w3.org/2005/Atom\" \
                xmlns:f=\"http://feedsync.org/2007/feedsync\"><title>t</title>\
                <entry><f:sync id=\"a\" updates=\"0\"/></entry><entry><title>plain</title></entry>\
                <entry><f:sync id=\"b\" updates=\"2\" deleted=\"true\" noconflicts=\"false\">\
                <f:history sequence=\"2\" when=\"2005-05-21T12:43:33.9+01:00\"/>\
                <f:conflicts/></f:sync></entry></feed>";
    let feed = read(text).unwrap();
    assert_eq!((feed.family, feed.dialect), (Family::Atom, Some(SseDialect::FeedSync)));
    assert!(matches!(feed.items[0].shared, Some(Err(_))));
    assert!(feed.items[1].shared.is_none() && feed.items[1].dialect.is_none());
    let shared = feed.items[2].shared.clone().unwrap().unwrap();
    assert!(shared.winner.deleted && shared.conflicts.is_empty());
    assert_eq!(shared.winner.noconflicts, Some(false));
    let when = shared.winner.history.topmost().stamp.when().unwrap();
    assert_eq!(when.to_string(), "2005-05-21T11:43:33Z");
    for item in &feed.items {
        let slice = feed.tree.slice(item.span.clone());
        assert!(slice.starts_with("<entry>") && slice.ends_with("</entry>"));
    }
}

/// READINGS 1, row 20.
#[test]
fn conflicts_in_conflicts_are_conflicts_of_the_item() {
    let nested = |by: &str, inside: &str| {
        format!(
            "<item><title>{by}</title><sx:sync id=\"i\" updates=\"1\">\
             <sx:history sequence=\"1\" by=\"{by}\"/><sx:conflicts>{inside}</sx:conflicts>\
             </sx:sync></item>"
        )
    };
    let text = with_sync(&format!(
        "<sx:sync id=\"i\" updates=\"1\"><sx:history sequence=\"1\" by=\"A\"/><sx:conflicts>{}{}\
         </sx:conflicts></sx:sync>",
        nested("B", &nested("C", "")),
        nested("D", ""),
    ));
    let feed = read(&text).unwrap();
    let shared = feed.items[0].shared.clone().unwrap().unwrap();
    let mut titles: Vec<_> =
        shared.conflicts.iter().filter_map(|c| c.data.values.title.as_deref()).collect();
    titles.sort_unstable();
    assert_eq!(titles, ["B", "C", "D"]);
    assert!(shared.conflicts.iter().all(|c| !c.data.xml.contains("sync")));
}

/// Prefixes, quotes, CDATA, attribute order and white space between elements say nothing.
#[test]
fn payloads_are_equal_where_a_reader_sees_the_same() {
    let payload = |item: &str| {
        let text = format!(
            "<rss xmlns:sx=\"http://www.microsoft.com/schemas/sse\" xmlns:m=\"urn:m\" \
             xmlns:n=\"urn:m\"><channel>{}</channel></rss>",
            item.replace(
                "SYNC",
                "<sx:sync id=\"i\" updates=\"1\"><sx:history sequence=\"1\" by=\"A\"/></sx:sync>"
            )
        );
        read(&text).unwrap().items[0].shared.clone().unwrap().unwrap().winner.data
    };
    let one = payload("<item>SYNC<title>a &amp; b</title><m:x y=\"1\" m:z='2'/></item>");
    let other = payload(
        "<item>\n <title><![CDATA[a & b]]></title>\n <n:x n:z=\"2\" y='1'></n:x>SYNC<!-- c --></item>",
    );
    assert_eq!(one, other);
    assert_eq!(one.canonical(), other.canonical());
    assert_ne!(one, payload("<item>SYNC<title>a &amp; c</title><m:x y=\"1\" m:z='2'/></item>"));
    assert_ne!(one, payload("<item>SYNC<title>a &amp; b</title><m:x y=\"1\" z='2'/></item>"));
    assert_eq!(one.needs, [(String::new(), String::new()), ("m".to_owned(), "urn:m".to_owned())]);
}

#[test]
fn the_dialects_are_told_by_their_namespaces() {
    for (namespace, dialect) in [
        ("http://www.microsoft.com/schemas/sse", Some(SseDialect::Sse)),
        ("http://feedsync.org/2007/feedsync", Some(SseDialect::FeedSync)),
        ("http://www.microsoft.com/schemas/rss/sse", Some(SseDialect::Sse091)),
        ("https://www.microsoft.com/schemas/rss/sse", Some(SseDialect::Sse091)),
        ("http://www.microsoft.com/schemas/sse/", Some(SseDialect::Sse)),
    ] {
        let text = format!("<rss xmlns:s=\"{namespace}\"><channel><item/></channel></rss>");
        let feed = read(&text).unwrap();
        assert_eq!(feed.dialect, dialect, "{namespace}");
    }
}

/// Section 2.1.8: what others say in `sx:sync` and `sx:history` comes out as it went in.
#[test]
fn what_sse_does_not_know_is_kept() {
    let text = |sync: &str| {
        format!(
            "<rss version=\"2.0\" xmlns:sx=\"http://www.microsoft.com/schemas/sse\" \
             xmlns:ext=\"urn:e\"><channel><item><title>A</title>{sync}</item></channel></rss>"
        )
    };
    let written = text(
        "<sx:sync id=\"a\" updates=\"2\" ext:a=\"1 &amp; 2\" later=\"x\"><sx:history \
         sequence=\"2\" by=\"A\" ext:b=\"y\"><ext:note>hi</ext:note></sx:history><sx:history \
         sequence=\"1\" by=\"A\"/><ext:more/><other xmlns=\"urn:o\"/></sx:sync>",
    );
    let first = |text: &str| {
        let mut items = read(text).unwrap().items;
        let item = items.remove(0);
        (item.shared.unwrap().unwrap().winner, item.extras.unwrap())
    };
    let (winner, extras) = first(&written);
    assert_eq!((extras.sync.attributes.len(), extras.updates.len()), (2, 1));
    let mut out = String::new();
    sync_element(&mut out, "sx", None, &winner, Some(&extras), None);
    assert!(
        out.contains("<ext:more xmlns:ext=\"urn:e\"/><other xmlns=\"urn:o\"/></sx:sync>"),
        "{out}"
    );
    let (again, same) = first(&text(&out));
    assert_eq!((again.history, same), (winner.history, extras));
    let (_, none) = first(&text(
        "<sx:sync id=\"a\" updates=\"1\"><sx:history sequence=\"1\" by=\"A\"/></sx:sync>",
    ));
    assert!(none.is_empty());
}

/// Whatever is written reads back as it was (SSE 1.0 sections 2.4 and 2.5).
mod round_trip {
    use super::*;
    use proptest::prelude::*;
    use tidegate_core::model::{
        Count, EndpointId, History, Shared, Stamp, SyncId, Time, Update, Version,
    };
    use tidegate_core::sync_markup::{Dialect, sx};

    fn update() -> impl Strategy<Value = Update> {
        let by = "[^\\p{C}\\s]{1,8}".prop_map(|text| EndpointId::new(&text).unwrap());
        let when = (0..4_000_000_000_i64).prop_map(Time::from_unix);
        let stamp = prop_oneof![
            (when.clone(), by.clone()).prop_map(|(when, by)| Stamp::Both { when, by }),
            when.prop_map(Stamp::When),
            by.prop_map(Stamp::By),
        ];
        (1..=Count::MAX.value(), stamp)
            .prop_map(|(n, stamp)| Update { sequence: Count::new(n).unwrap(), stamp })
    }

    fn version() -> impl Strategy<Value = Version<()>> {
        let history = proptest::collection::vec(update(), 1..9);
        let rest = (1..=Count::MAX.value(), any::<bool>(), any::<Option<bool>>());
        ("[^\\p{C}\\s]{1,20}", rest, history).prop_map(|(id, rest, history)| Version {
            id: SyncId::new(&id).unwrap(),
            updates: Count::new(rest.0).unwrap(),
            deleted: rest.1,
            noconflicts: rest.2,
            history: History::from_newest_first(history).unwrap(),
            data: (),
        })
    }

    fn bare(version: &Version<Payload>) -> Version<()> {
        Version {
            id: version.id.clone(),
            updates: version.updates,
            deleted: version.deleted,
            noconflicts: version.noconflicts,
            history: version.history.clone(),
            data: (),
        }
    }

    proptest! {
        #[test]
        fn sync_markup_reads_back(
            winner in version(),
            mut conflicts in proptest::collection::vec(version(), 0..4),
        ) {
            for dialect in [Dialect::Sse, Dialect::FeedSync] {
                let mut out = String::from("<rss><channel><item>");
                let namespace = Some(sx::namespace(dialect));
                for conflict in &mut conflicts {
                    conflict.id = winner.id.clone();
                }
                let mut nested = |out: &mut String| {
                    for conflict in &conflicts {
                        out.push_str("<item>");
                        sx::sync_element(out, "x", None, conflict, None, None);
                        out.push_str("</item>");
                    }
                };
                let nested: Option<&mut dyn FnMut(&mut String)> =
                    if conflicts.is_empty() { None } else { Some(&mut nested) };
                sx::sync_element(&mut out, "x", namespace, &winner, None, nested);
                out.push_str("</item></channel></rss>");
                let feed = read(&out).unwrap();
                let Shared { winner: read, conflicts: list } =
                    feed.items[0].shared.clone().unwrap().unwrap();
                prop_assert_eq!(bare(&read), winner.clone());
                prop_assert_eq!(list.iter().map(bare).collect::<Vec<_>>(), conflicts.clone());
            }
        }

        /// Nothing that comes from outside makes it panic, and every error has a line of the text.
        #[test]
        fn pieces_in_any_order_are_read_or_refused(
            pieces in proptest::collection::vec(0..PIECES.len(), 0..24),
            cut in any::<proptest::sample::Index>(),
        ) {
            let text: String = pieces.iter().map(|n| PIECES[*n]).collect();
            let mut text = format!("<rss xmlns:sx=\"http://www.microsoft.com/schemas/sse\"><channel>{text}");
            if cut.index(3) > 0 {
                text.push_str("</channel></rss>");
            }
            match read(&text) {
                Ok(feed) => for item in &feed.items {
                    prop_assert!(feed.tree.slice(item.span.clone()).starts_with("<item"));
                },
                Err(error) => prop_assert!((1..=text.lines().count() + 1).contains(&error.line)),
            }
        }
    }

    const PIECES: [&str; 16] = [
        "<item>",
        "</item>",
        "<item/>",
        "<sx:sync id=\"i\" updates=\"1\">",
        "</sx:sync>",
        "<sx:history sequence=\"1\" by=\"A\"/>",
        "<sx:conflicts>",
        "</sx:conflicts>",
        "<!--",
        "-->",
        "<![CDATA[",
        "]]>",
        "&amp;",
        "&#0;",
        "\n<é a='",
        "<!DOCTYPE x [<!ENTITY y 'z'>]>",
    ];
}
