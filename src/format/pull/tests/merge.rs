use super::*;
use crate::golden;
use crate::parse::{self, Limits};
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

/// What comes of each pair of feeds, which is the same when it is merged once more, or why nothing does.
#[test]
fn every_pair_is_merged_or_refused_as_it_was() {
    golden::each("merge", 41, |pair| {
        let (local, incoming) = golden::pair(pair, "incoming");
        match printed_with_warnings(local, incoming) {
            Ok((merged, warned)) => {
                let again = printed_with_warnings(merged.as_bytes(), incoming);
                assert_eq!(again.map(|(again, _)| again).as_ref(), Ok(&merged));
                format!("{merged}\n=== warned\n{warned}")
            }
            Err(fault) => fault,
        }
    });
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
    let pairs = |bare| [(atom, bare), (bare, atom), (bare, bare)];
    for (local, incoming) in ["", " xmlns=''"].into_iter().flat_map(pairs) {
        for known in [&[][..], &["i"]] {
            let incoming = feed(incoming, &["i", "j"]);
            let merged = printed(&feed(local, known), &incoming).unwrap();
            assert_eq!(merged.replacen("  ", " ", 1), feed(atom, &["i", "j"]));
            assert_eq!(printed(&merged, &incoming), Ok(merged));
        }
    }
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
