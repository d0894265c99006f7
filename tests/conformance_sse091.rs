//! The samples of the authors of SSE 0.91 under `tests/fixtures/sse-0.91`, merged by section 4.4 of
//! that specification through the `merge` command.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::{Path, PathBuf};
use tidegate::cli::merge::merge as merge_command;
use tidegate::parse::sse::{self, Kept, Payload};
use tidegate::sync::{Canonical, Item091};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sse-0.91").join(name)
}

fn command(local: &Path, incoming: &Path) -> String {
    let mut out = Vec::new();
    merge_command(local, incoming, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The state of an item, everything but the spelling; conflicts with the whole state of the loser.
fn shown(item: &Item091<Payload, Kept>) -> String {
    let data = String::from_utf8(item.data.canonical().to_vec()).unwrap();
    let mut conflicts: Vec<String> = item
        .conflicts
        .iter()
        .map(|conflict| match &conflict.data {
            Kept::Markup { xml, .. } => {
                let text = format!(
                    "<rss xmlns:sx=\"http://www.microsoft.com/schemas/rss/sse\"><channel>{xml}\
                     </channel></rss>"
                );
                format!("{} {:?} {:?}", conflict.version.value(), conflict.edit, items(&text))
            }
            Kept::Item(_) => panic!("a feed that was read has markup"),
        })
        .collect();
    conflicts.sort();
    format!(
        "{} {} {} {} {:?} {:?} {conflicts:?} {data}",
        item.id,
        item.version.value(),
        item.deleted,
        item.conflict,
        item.last,
        item.updates
    )
}

fn items(text: &str) -> Vec<String> {
    let feed = sse::read(text).unwrap();
    let mut items: Vec<String> = feed
        .items
        .iter()
        .map(|item| shown(item.shared_091.as_ref().unwrap().as_ref().unwrap()))
        .collect();
    items.sort();
    items
}

#[test]
fn the_endpoints_of_each_step_merge_into_the_next_state() {
    for step in ["1a", "1b", "2a", "3a", "4a", "5a"] {
        let (one, two) =
            (path(&format!("ep/ep1_v{step}.xml")), path(&format!("ep/ep2_v{step}.xml")));
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
        }
    }
}

#[test]
fn what_does_not_change_stays_byte_for_byte() {
    for step in ["1b", "2a", "3a", "4a", "5a"] {
        let own = path(&format!("ep/ep1_v{step}.xml"));
        let text = std::fs::read_to_string(&own).unwrap();
        assert_eq!(command(&own, &own), text);
        let folder = tempfile::tempdir().unwrap();
        let once = folder.path().join("once.xml");
        let other = path(&format!("ep/ep2_v{step}.xml"));
        let merged = command(&own, &other);
        std::fs::write(&once, &merged).unwrap();
        assert_eq!(command(&once, &other), merged);
    }
}

#[test]
fn a_pair_of_both_kinds_is_refused_with_file_and_line() {
    let old = path("v/v1.xml");
    let new = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/merge/000/local.xml");
    let said = merge_command(&old, &new, &mut Vec::new()).unwrap_err().to_string();
    assert!(said.contains("local.xml: line 1: the item has sync markup of SSE 1.0"), "{said}");
    let said = merge_command(&new, &old, &mut Vec::new()).unwrap_err().to_string();
    assert!(said.contains("v1.xml: line 8: the item has sync markup of SSE 0.91"), "{said}");
}
