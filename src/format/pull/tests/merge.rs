//! Two feeds become one.

use super::*;
use crate::parse::{self, FeedFrame, Limits};
use tidegate_core::sync_markup::Dialect;
use tidegate_core::xml::doc::Doc;

const SSE: &str = "xmlns:sx=\"http://www.microsoft.com/schemas/sse\"";

/// What comes of a merge; a fault is in a file called like its side.
fn printed(local: &str, incoming: &str) -> Result<String, String> {
    printed_with_warnings(local.as_bytes(), incoming.as_bytes()).map(|(merged, _)| merged)
}

/// The same, with what is warned of.
fn printed_with_warnings(local: &[u8], incoming: &[u8]) -> Result<(String, String), String> {
    let said = |(side, fault): &(Side, FeedFault)| match side {
        Side::Local => format!("local: {fault}\n"),
        Side::Incoming => format!("incoming: {fault}\n"),
    };
    match merged(local, incoming) {
        Ok(merged) => Ok((merged.text, merged.warnings.iter().map(said).collect())),
        Err(fault) => Err(said(&fault).trim_end().to_owned()),
    }
}

fn sync(id: &str, updates: u32, by: &str) -> String {
    format!(
        "<sx:sync id=\"{id}\" updates=\"{updates}\">\
         <sx:history sequence=\"{updates}\" when=\"2005-05-21T09:43:33Z\" by=\"{by}\"/></sx:sync>"
    )
}

fn rss(items: &str) -> String {
    format!("<rss version=\"2.0\" {SSE}><channel><title>t</title>{items}</channel></rss>")
}

#[test]
fn what_is_not_concerned_stays_byte_for_byte() {
    let local = format!(
        "<?xml version='1.0'?>\n<!-- kept --><rss version='2.0' {SSE} xmlns:x=\"urn:x\">\n\
         <channel x:a='1'><title><![CDATA[a & b]]></title>\n  <x:y/>\n  <item>plain</item>\n  \
         <item x:b='2'>\n    {}\n    <title>one</title></item>\n  <item>{}<title>two</title></item>\
         \n  <!-- end --></channel></rss>\n",
        sync("one", 1, "A"),
        sync("two", 1, "A"),
    );
    let incoming = rss(&format!(
        "<item><title>newer</title>{}</item><item>{}<title>three</title></item><item>x</item>",
        sync("two", 2, "A"),
        sync("three", 1, "B"),
    ));
    let expected = local.replace(
        &format!("<item>{}<title>two</title></item>", sync("two", 1, "A")),
        &format!(
            "<item>{}<title>newer</title></item>\n  <item>{}<title>three</title></item>",
            sync("two", 2, "A"),
            sync("three", 1, "B"),
        ),
    );
    assert_eq!(printed(&local, &incoming), Ok(expected));
}

#[test]
fn items_bring_the_bindings_and_the_base_that_they_need() {
    let local = "<a:feed xmlns:a=\"http://www.w3.org/2005/Atom\" xmlns:m=\"urn:other\" \
                 xmlns:s=\"http://feedsync.org/2007/feedsync\" xml:lang=\"de\"></a:feed>";
    let incoming = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" {SSE} xmlns:m=\"urn:m\" xmlns:u=\"urn:u\" \
         xml:base=\"http://b/\"><entry>{}<title>t</title><m:x/></entry></feed>",
        sync("i", 1, "A")
    );
    let expected = "<entry xmlns=\"http://www.w3.org/2005/Atom\" xmlns:m=\"urn:m\" \
                    xml:lang=\"\" xml:base=\"http://b/\"><s:sync id=\"i\" updates=\"1\">\
                    <s:history sequence=\"1\" when=\"2005-05-21T09:43:33Z\" by=\"A\"/></s:sync>\
                    <title>t</title><m:x/></entry></a:feed>";
    let merged = printed(local, &incoming).unwrap();
    assert!(merged.ends_with(expected), "{merged}");
}

#[test]
fn a_conflict_keeps_both_sides_whole() {
    let local = rss(&format!("<item>{}<title>a</title></item>", sync("i", 2, "A")));
    let incoming = format!(
        "<rss xmlns:q=\"urn:q\" xmlns:sx=\"http://feedsync.org/2007/feedsync\"><channel>\
         <item q:z=\"1\"><title>b</title>{}</item></channel></rss>",
        sync("i", 2, "B")
    );
    let merged = printed(&local, &incoming).unwrap();
    let winner = sync("i", 2, "B").replace("</sx:sync>", "");
    let expected = rss(&format!(
        "<item xmlns:q=\"urn:q\" q:z=\"1\">{winner}<sx:conflicts>\
         <item>{}<title>a</title></item></sx:conflicts></sx:sync><title>b</title></item>",
        sync("i", 2, "A")
    ));
    assert_eq!(merged, expected);
    let back = printed(&incoming, &local).unwrap();
    assert!(back.contains("<title>b</title>") && back.contains("<title>a</title>"), "{back}");
    assert!(back.contains("feedsync") && !back.contains("schemas/sse"), "{back}");
}

#[test]
fn a_local_feed_without_sync_markup_declares_it_where_it_is_needed() {
    let local = "<rss><channel><item><title>plain</title></item></channel></rss>";
    let incoming = rss(&format!("<item>{}</item>", sync("i", 1, "A")));
    let expected = format!(
        "<rss><channel><item><title>plain</title></item><item>{}</item></channel></rss>",
        sync("i", 1, "A").replacen("<sx:sync", &format!("<sx:sync {SSE}"), 1)
    );
    assert_eq!(printed(local, &incoming), Ok(expected));
}

#[test]
fn an_atom_entry_becomes_an_item_and_an_item_an_entry() {
    let atom = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" {SSE}><entry>{}<title>a &amp;amp; b</title>\
         <id>urn:i</id><updated>2005-05-21T09:43:33Z</updated><author><name>n</name></author>\
         <link rel=\"self\" href=\"http://no\"/><link href=\"http://x/?a&amp;b\"/>\
         <summary>s</summary><content>1 &lt; 2</content></entry></feed>",
        sync("i", 1, "A")
    );
    let item = format!(
        "<item xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\">{}\
         <guid isPermaLink=\"false\">urn:i</guid><title>a &amp;amp; b</title>\
         <link>http://x/?a&amp;b</link><pubDate>Sat, 21 May 2005 09:43:33 GMT</pubDate>\
         <dc:creator>n</dc:creator><description>s</description>\
         <content:encoded>1 &amp;lt; 2</content:encoded></item>",
        sync("i", 1, "A")
    );
    let merged = printed(&rss(""), &atom).unwrap();
    assert_eq!(merged, rss(&item));
    // The title of an item is HTML.
    let feed = format!("<feed xmlns=\"http://www.w3.org/2005/Atom\" {SSE}><title/></feed>");
    let entry = format!(
        "<entry>{}<id>urn:i</id><title>a &amp; b</title><link rel=\"alternate\" href=\"http://x/?a&amp;b\"/>\
         <updated>2005-05-21T09:43:33Z</updated><published>2005-05-21T09:43:33Z</published>\
         <author><name>n</name></author><summary type=\"html\">s</summary><content type=\"html\">1 &amp;lt; 2</content></entry>",
        sync("i", 1, "A")
    );
    assert_eq!(printed(&feed, &merged), Ok(feed.replace("</feed>", &format!("{entry}</feed>"))));
}

/// SSE 1.0 section 2.1.8.
#[test]
fn what_sse_does_not_know_comes_along() {
    let extended = |id: &str, updates: u32| {
        sync(id, updates, "B")
            .replace("<sx:sync ", "<sx:sync xmlns:e=\"urn:e\" e:a=\"1\" ")
            .replace("\"/></sx:sync>", "\"><e:in/></sx:history><e:m>&eacute;</e:m></sx:sync>")
    };
    let local = rss(&format!("<item>{}<title>two</title></item>", sync("two", 1, "A")));
    let incoming = rss(&format!(
        "<item>{}<title>newer</title></item><item>{}<title>three</title></item>",
        extended("two", 2),
        extended("three", 1),
    ));
    let merged = printed(&local, &incoming).unwrap();
    for (wanted, times) in
        [(":a=\"1\"", 2), ("<e:in xmlns:e=\"urn:e\"/></sx:history>", 2), (">é</e:m>", 2)]
    {
        assert_eq!(merged.matches(wanted).count(), times, "{wanted}: {merged}");
    }
    // It is read again, and nothing is added by merging once more.
    assert_eq!(printed(&merged, &incoming).unwrap(), merged);
    // A version that lost has none.
    let contested = rss(&format!("<item>{}<title>mine</title></item>", sync("two", 2, "A")));
    let merged = printed(&contested, &incoming).unwrap();
    let (_, conflicts) = merged.split_once("<sx:conflicts>").unwrap();
    let (conflicts, _) = conflicts.split_once("</sx:conflicts>").unwrap();
    assert!(!conflicts.contains("urn:e"), "{merged}");
}

#[test]
fn an_id_that_is_no_iri_is_not_made_one_by_force() {
    let item = rss(&format!("<item>{}<guid>7</guid></item>", sync("a b", 1, "A")));
    let feed = format!("<feed xmlns=\"http://www.w3.org/2005/Atom\" {SSE}><title/></feed>");
    let merged = printed(&feed, &item).unwrap();
    assert!(merged.contains("<id>x-sync-id:a%20b</id>"), "{merged}");
}

#[test]
fn faults_name_the_side_and_the_line() {
    let good = rss(&format!("<item>{}</item>", sync("i", 1, "A")));
    let bad = rss("\n<item>\n<sx:sync id=\"i\" updates=\"x\"/></item>");
    let wanted = "sx:sync has updates=\"x\"; an integer from 1 to 2147483647 must be there";
    assert_eq!(printed(&bad, &good), Err(format!("local: line 3: {wanted}")));
    assert_eq!(printed(&good, &bad), Err(format!("incoming: line 3: {wanted}")));
    let twice = rss(&format!("<item>{0}</item>\n<item>{0}</item>", sync("i", 1, "A")));
    let wanted = "the sync id \"i\" is that of line 1 again; an id may stand once in a feed";
    assert_eq!(printed(&good, &twice), Err(format!("incoming: line 2: {wanted}")));
    for (broken, wanted) in [
        (
            rss("\n\n").replace("</channel></rss>", "</cha"),
            "line 3: the document is not well-formed: ",
        ),
        (good.replace("<item", "\n\n<item a=1"), "line 3: the item is not well-formed, so that "),
    ] {
        let found = printed(&broken, &good).unwrap_err();
        assert!(found.starts_with(&format!("local: {wanted}")), "{found}");
    }
}

/// What leaves is in the canonical namespace, and is known when it comes again.
#[test]
fn a_feed_in_no_namespace_is_merged_as_atom() {
    let feed = |declared: &str, ids: &[&str]| {
        let entry = |id: &&str| format!("<entry>{}<id>urn:{id}</id></entry>", sync(id, 1, "A"));
        let entries: String = ids.iter().map(entry).collect();
        format!("<feed{declared} {SSE}><title>t</title>{entries}</feed>")
    };
    let atom = " xmlns=\"http://www.w3.org/2005/Atom\"";
    let roots = ["", " xmlns=''"];
    for (local, incoming) in
        roots.iter().flat_map(|bare| [(atom, *bare), (*bare, atom), (*bare, *bare)])
    {
        for known in [&[][..], &["i"]] {
            let incoming = feed(incoming, &["i", "j"]);
            let merged = printed(&feed(local, known), &incoming).unwrap();
            assert_eq!(merged.replacen("  ", " ", 1), feed(atom, &["i", "j"]));
            assert_eq!(printed(&merged, &incoming), Ok(merged));
        }
    }
}

/// One document never mixes dialects (READINGS 1, row 1).
#[test]
fn a_local_item_in_another_dialect_is_written_in_the_documents() {
    let other = "xmlns:sx=\"http://feedsync.org/2007/feedsync\"";
    let local = rss(&format!(
        "<item>{}</item><item {other}>{}</item>",
        sync("i", 1, "A"),
        sync("j", 1, "A")
    ));
    let merged = printed(&local, &rss("")).unwrap();
    let frame = FeedFrame::read(&merged).unwrap();
    let dialects: Vec<_> = frame.items.iter().map(|(_, dialect)| *dialect).collect();
    assert_eq!(dialects, [Some(Dialect::Sse), Some(Dialect::Sse)]);
}

#[test]
fn what_shares_nothing_and_broken_json_are_named() {
    let shared = rss(&format!("<item>{}<title>a</title></item>", sync("i", 1, "A")));
    let plain = rss("<item><title>a</title></item>");
    let said = "incoming: line 1: nothing in it is shared: no item has sx:sync, and there is no \
                sx:sharing";
    assert_eq!(printed(&shared, &plain), Err(said.to_owned()));
    assert_eq!(printed(&plain, &plain), Err(said.to_owned()));
    // A feed that begins to share, and one that has no items yet.
    assert!(printed(&plain, &shared).unwrap().contains("<sx:sync id=\"i\""));
    assert_eq!(printed(&shared, &rss("")), Ok(shared.clone()));
    for (json, said) in [
        (
            "{\n\"items\": [{\"sync\": ",
            "line 2: the document is not well-formed: it is broken JSON: EOF",
        ),
        (
            "{}",
            "line 1: the document is neither Atom 1.0, RSS nor a collection: it is JSON without",
        ),
        (
            "[1]",
            "line 1: the document is neither Atom 1.0, RSS nor a collection: it is JSON without",
        ),
        (
            "{\"items\":[{\"title\":\"a\",\"sync\":{\"id\":\"i\",\"updates\":\"1\",\"history\":\
             [{\"sequence\":\"1\",\"by\":\"A\"}]}},",
            "line 1: the document is not well-formed: the collection is broken or ends early",
        ),
        // What stands behind a collection cannot be kept, so it is not dropped in silence either.
        (
            "{\"items\":[]}\n]",
            "line 2: the document is not well-formed: it is broken JSON: trailing characters",
        ),
    ] {
        let found = printed(&shared, json).unwrap_err();
        assert!(found.starts_with(&format!("incoming: {said}")), "{found}");
    }
    let found = printed("{\"items\":[]} x", &shared).unwrap_err();
    assert!(found.contains("broken JSON: trailing characters"), "{found}");
}

/// Namespaces that RSS is put in now and then: an item is the same in each of them.
#[test]
fn rss_in_a_namespace_of_its_own_is_merged_once() {
    const RSS2: &str = "xmlns=\"http://backend.userland.com/rss2\"";
    let item = |title: &str, updates| {
        let (guid, sync) = ("<guid>g</guid>", sync("i", updates, "A"));
        format!("<item>{sync}<title>{title}</title>{guid}<x:y xmlns:x=\"urn:x\"/></item>")
    };
    let plain = |items: &str| rss(items);
    let spaced = |items: &str| rss(items).replacen("<rss ", &format!("<rss {RSS2} "), 1);
    let prefixed = |items: &str| {
        let text = spaced(items).replace("xmlns=", "xmlns:r=");
        let names = ["rss", "channel", "item", "title", "guid"];
        names.into_iter().fold(text, |text, name| {
            let text = text.replace(&format!("<{name}"), &format!("<r:{name}"));
            text.replace(&format!("</{name}"), &format!("</r:{name}"))
        })
    };
    let forms: [&dyn Fn(&str) -> String; 3] = [&plain, &spaced, &prefixed];
    for local in forms {
        for incoming in forms {
            let theirs = incoming(&item("new", 2));
            // What is there in another namespace stays as it is.
            let same = local(&item("new", 2));
            assert_eq!(printed(&same, &theirs).as_ref(), Ok(&same));
            for ours in [local(""), local(&item("old", 1))] {
                let once = printed(&ours, &theirs).unwrap();
                let document = parse::document(&once, None, &Limits::default()).unwrap();
                let [only] = document.entries.as_slice() else { panic!("{once}") };
                assert_eq!(only.title.as_deref(), Some("new"), "{once}");
                assert!(once.contains("<x:y"), "{once}");
                // In the namespace of the feed's own elements.
                let doc = Doc::read_whole(&once).unwrap();
                let item = doc.root().unwrap().descendants().find(|e| e.local() == "item").unwrap();
                let title = item.children().find(|e| e.local() == "title").unwrap();
                assert_eq!([item.ns(), title.ns()], [doc.root().unwrap().ns(); 2], "{once}");
                assert_eq!(printed(&once, &theirs), Ok(once));
            }
        }
    }
}

#[test]
fn what_the_other_family_has_words_for_is_said_in_them() {
    let atom = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" {SSE} xmlns:m=\"urn:m\" \
         xml:base=\"http://h/a/\"><entry xml:base=\"b/\">{}<title>t</title><id>urn:i</id>\
         <updated>2006-05-21T09:43:33Z</updated><published>2005-05-21T09:43:33Z</published>\
         <link href=\"../c?d\"/><category term=\"k\"/>\
         <link rel=\"enclosure\" href=\"http://h/e\" type=\"audio/mpeg\" length=\"3\"/>\
         <content type=\"html\">&lt;a href=\"e\"&gt;</content><m:x y=\"z\"/></entry></feed>",
        sync("i", 1, "A")
    );
    let merged = printed(&rss(""), &atom).unwrap();
    for wanted in [
        "<link>http://h/a/c?d</link>",
        "<pubDate>Sat, 21 May 2005 09:43:33 GMT</pubDate>",
        "xml:base=\"http://h/a/b/\"",
        "<category>k</category>",
        "<enclosure url=\"http://h/e\" type=\"audio/mpeg\" length=\"3\"/>",
        "<m:x y=\"z\"/>",
        "<guid isPermaLink=\"false\">urn:i</guid>",
    ] {
        assert!(merged.contains(wanted), "{wanted}\n{merged}");
    }
    assert_eq!(printed(&merged, &atom).as_ref(), Ok(&merged));
    let feed = format!("<feed xmlns=\"http://www.w3.org/2005/Atom\" {SSE}><title/></feed>");
    let back = printed(&feed, &merged).unwrap();
    for wanted in ["<published>2005-05-21T09:43:33Z</published>", "<m:x y=\"z\"/>", "term=\"k\""] {
        assert!(back.contains(wanted), "{wanted}\n{back}");
    }
}

#[test]
fn json_is_merged_into_plain_xml_and_keeps_its_members() {
    let json = "{\"items\":[{\"subject\":\"s\",\"description\":\"d\",\"rank\":7,\"sync\":{\"id\":\"i\",\
                \"updates\":1,\"history\":[{\"sequence\":1,\"by\":\"A\"}]}}]}";
    let empty = "<collection xmlns:sx=\"http://feedsync.org/2007/feedsync\"/>";
    let merged = printed(empty, json).unwrap();
    for wanted in
        ["<subject>s</subject>", "<description>d</description>", "\"rank\":7", "</collection>"]
    {
        assert!(merged.contains(wanted), "{wanted}: {merged}");
    }
    assert_eq!(printed(&merged, json).as_ref(), Ok(&merged));
    let into_json = printed("{\"items\":[]}", json).unwrap();
    assert!(
        into_json.contains("\"rank\":7") && into_json.contains("\"subject\":\"s\""),
        "{into_json}"
    );
}

#[test]
fn a_collection_that_shares_nothing_yet_begins_to() {
    let plain = "<collection><item><subject>plain</subject></item></collection>";
    let shared = format!(
        "<collection {SSE}><item>{}<subject>shared</subject></item></collection>",
        sync("i", 1, "A")
    );
    let merged = printed(plain, &shared).unwrap();
    assert!(merged.starts_with(plain.strip_suffix("</collection>").unwrap()), "{merged}");
    assert!(merged.contains("<subject>shared</subject>"), "{merged}");
    assert_eq!(printed(&merged, &shared).as_ref(), Ok(&merged));
    let said = printed(&shared, plain).unwrap_err();
    assert!(said.starts_with("incoming: line 1: nothing in it is shared"), "{said}");
}

/// What stands in an `sx:conflict` is for each application to say (SSE 0.91 section 5.2).
#[test]
fn conflicts_without_an_item_are_kept_when_their_item_is_written_anew() {
    const OLD: &str = "xmlns:sx=\"http://www.microsoft.com/schemas/rss/sse\"";
    let item = |version: u32, by: &str, conflicts: &str| {
        format!(
            "<r:item><sx:sync id=\"i\" version=\"{version}\"><sx:history by=\"{by}\"/>{conflicts}\
             </sx:sync><r:title>{version} {by}</r:title></r:item>"
        )
    };
    let old = |items: &str| {
        format!(
            "<r:rss version=\"2.0\" xmlns:r=\"http://backend.userland.com/rss2\" {OLD}><r:channel>{items}\
             </r:channel></r:rss>"
        )
    };
    let conflicts = "<sx:conflicts><sx:conflict version=\"2\" by=\"X\"><r:title>lost</r:title>\
                     <d:ata xmlns:d=\"urn:d\">1 &amp; 2</d:ata></sx:conflict>\
                     <sx:conflict version=\"2\" by=\"Y\"/></sx:conflicts>";
    let local = old(&item(3, "A", conflicts));
    let newer = rss(&format!("<item>{}<title>new</title></item>", sync("i", 3, "B")));
    for incoming in [old(&item(3, "B", "")), newer] {
        let merged = printed(&local, &incoming).unwrap();
        for wanted in [
            "<sx:conflict version=\"2\" by=\"X\">",
            "<sx:conflict version=\"2\" by=\"Y\">",
            "<r:title>lost</r:title><d:ata xmlns:d=\"urn:d\">1 &amp; 2</d:ata></r:item></sx:conflict>",
            ">3 A<",
        ] {
            assert!(merged.contains(wanted), "{wanted}\n{merged}");
        }
        assert_eq!(printed(&merged, &incoming).as_ref(), Ok(&merged));
    }
    // In the conflicts of SSE 1.0 they are items as well.
    let merged = printed(&rss(""), &local).unwrap();
    for wanted in ["<sx:history sequence=\"2\" by=\"Y\"/>", "<title>lost</title>", ">1 &amp; 2<"] {
        assert!(merged.contains(wanted), "{wanted}\n{merged}");
    }
}

/// What the gateway takes is merged, and what was wrong with it is said.
#[test]
fn what_is_not_quite_well_formed_is_merged() {
    let good = rss(&format!("<item>{}<title>i</title></item>", sync("i", 1, "A")));
    let odd =
        rss(&format!("\n<item>{}<title>R&D &foo; &eacute;</title></item>", sync("o", 1, "A")));
    let (merged, warned) = printed_with_warnings(odd.as_bytes(), good.as_bytes()).unwrap();
    assert!(merged.starts_with(odd.split("</channel>").next().unwrap()), "byte for byte: {merged}");
    assert!(warned.contains("local: line 2: a bare '&' is taken"), "{warned}");
    let (merged, warned) = printed_with_warnings(good.as_bytes(), odd.as_bytes()).unwrap();
    assert!(merged.contains("<title>R&amp;D &amp;foo; &#233;</title>"), "{merged}");
    assert!(warned.contains("incoming: line 2: "), "{warned}");
    // Bytes whose charset nothing names, and one that is broken.
    let bytes =
        |text: &str| -> Vec<u8> { text.chars().map(|c| u8::try_from(c).unwrap()).collect() };
    for (title, read, said) in [
        ("L'\u{e9}t\u{e9} \u{e0} la plage", "L'été à la plage", "is guessed to be windows-1252"),
        ("\u{c3}\u{a9}t\u{c3}\u{a9} \u{ff}", "été \u{fffd}", "some bytes are malformed UTF-8"),
    ] {
        let odd = rss(&format!("\n<item>{}<title>{title}</title></item>", sync("o", 1, "A")));
        let (merged, warned) = printed_with_warnings(good.as_bytes(), &bytes(&odd)).unwrap();
        assert!(merged.contains(&format!("<title>{read}</title>")), "{merged}");
        assert!(warned.contains(said), "{warned}");
    }
}
