//! The samples of the authors of SSE 0.91 under `tests/fixtures/sse-0.91`, merged by section 4.4 of
//! that specification through the `merge` command.

use crate::conformance_merge::{command, shown};
use crate::support::prelude::*;
use crate::support::shared_items;
use tidegate_format::parse::{self, Limits};

fn path(name: &str) -> PathBuf {
    root("tests/fixtures/sse-0.91").join(name)
}

/// The states of items, everything but the spelling; conflicts with the whole state of the loser.
fn items(text: &str) -> Vec<String> {
    let document = parse::document(text, None, &Limits::default()).unwrap();
    let version = |version: &Version<Markup>| {
        let said = parse::again(&version.data).unwrap();
        let said = said.iter().map(|field| format!("{}={}", field.path, field.value));
        let said: Vec<_> = said.collect();
        let Version { id, updates, deleted, history, .. } = version;
        format!("{id} {} {deleted} {history:?} {said:?}", updates.value())
    };
    let items = document.entries.iter().map(|entry| {
        let item = shared_items::shared(&document, entry).unwrap();
        let conflict = entry.shared().unwrap().sse091.unwrap();
        let mut conflicts: Vec<String> = item.conflicts.iter().map(version).collect();
        conflicts.sort();
        format!("{} {conflict} {conflicts:?}", version(&item.winner))
    });
    let mut items: Vec<String> = items.collect();
    items.sort();
    items
}

/// Merging once more, and a feed with itself, prints what was there, byte for byte.
#[test]
fn the_endpoints_of_each_step_merge_into_the_next_state() {
    let folder = tempfile::tempdir().unwrap();
    let once = folder.path().join("once.xml");
    for step in ["1a", "1b", "2a", "3a", "4a", "5a"] {
        let [one, two] = [1, 2].map(|endpoint| path(&format!("ep/ep{endpoint}_v{step}.xml")));
        let number: u32 = step.trim_end_matches(['a', 'b']).parse().unwrap();
        let next = std::fs::read_to_string(path(&format!("v/v{}.xml", number + 1))).unwrap();
        let mut wanted = items(&next);
        if step == "1a" {
            // The first endpoint feeds of step 1 have one new item each, the second ones two.
            wanted.retain(|item| !item.starts_with("ep1.101") && !item.starts_with("ep2.101"));
        }
        for (local, incoming) in [(&one, &two), (&two, &one)] {
            let merged = command(local, incoming);
            assert_eq!(items(&merged), wanted, "step {step}\n{merged}");
            std::fs::write(&once, &merged).unwrap();
            assert_eq!(command(&once, incoming), merged, "step {step}");
            assert_eq!(command(local, local), std::fs::read_to_string(local).unwrap());
        }
    }
}

const OLD: &str = "http://www.microsoft.com/schemas/rss/sse";
const NEW: &str = "http://www.microsoft.com/schemas/sse";

/// READINGS 2, its last sentence: a mixed pair is merged in SSE 1.0, and comes out as LOCAL is written.
#[test]
fn a_pair_of_both_kinds_is_converted_and_merged() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let old = format!(
        "<rss version=\"2.0\" xmlns:sx=\"{OLD}\"><channel><title>t</title><item><title>first</title>\
         <sx:sync id=\"i\" version=\"2\"><sx:history when=\"Tue, 24 May 2005 09:43:33 GMT\" by=\"A\">\
         <sx:update when=\"Mon, 23 May 2005 09:43:33 GMT\" by=\"A\"/></sx:history></sx:sync></item>\
         </channel></rss>"
    );
    let new = format!(
        "<rss version=\"2.0\" xmlns:sx=\"{NEW}\"><channel><title>t</title><item><title>other</title>\
         <sx:sync id=\"i\" updates=\"2\"><sx:history sequence=\"2\" when=\"2005-05-25T09:43:33Z\" \
         by=\"B\"/><sx:history sequence=\"1\" when=\"2005-05-23T09:43:33Z\" by=\"A\"/></sx:sync></item>\
         <item><title>more</title><sx:sync id=\"j\" updates=\"1\"><sx:history sequence=\"1\" by=\"B\"/>\
         </sx:sync></item></channel></rss>"
    );
    let (old, new) = (written("old.xml", &old), written("new.xml", &new));
    let into_old = command(&old, &new);
    let into_new = command(&new, &old);
    // In SSE 1.0, whatever dialect a document is written in.
    assert_eq!(shown(&into_old), shown(&into_new));
    let item = &shown(&into_old)["i"];
    assert_eq!((&item["data"], &item["conflicts"][0]["data"]), (&json!("other"), &json!("first")));
    assert!(into_old.contains("version=\"2\" deleted=\"false\" conflict=\"true\""), "{into_old}");
    assert!(!into_old.contains("updates=") && !into_old.contains(NEW), "{into_old}");
    assert!(into_new.contains("updates=\"2\"") && !into_new.contains(OLD), "{into_new}");
    // Again it changes nothing.
    let again = written("again.xml", &into_old);
    assert_eq!(command(&again, &new), into_old);
}
