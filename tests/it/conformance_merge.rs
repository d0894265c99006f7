//! The merge cases under `tests/fixtures/merge`: two feeds and what SSE 1.0 section 3.3 makes of
//! them, through the `merge` command.

use crate::support::prelude::*;
use crate::support::shared_items;
use tidegate::cli::merge::merge as merge_command;

fn cases() -> Vec<PathBuf> {
    let cases: Vec<_> =
        (0..48).map(|case| root(&format!("tests/fixtures/merge/{case:03}"))).collect();
    assert_eq!(std::fs::read_dir(root("tests/fixtures/merge")).unwrap().count(), cases.len());
    cases
}

/// The items of a document by id in the form of `expected.json`, conflicts in an order of their own.
pub fn shown(text: &str) -> Value {
    let items = shared_items::items(text).into_iter().map(|Shared { winner, conflicts }| {
        (winner.id.to_string(), shown_version(&winner, &conflicts))
    });
    ordered(json!(items.collect::<BTreeMap<_, _>>()))
}

fn shown_version(version: &Version<Markup>, conflicts: &[Version<Markup>]) -> Value {
    let history: Vec<Value> = version
        .history
        .iter()
        .map(|update| {
            let when = update.stamp.when().map(|when| when.to_string()).unwrap_or_default();
            let by = update.stamp.by().map(ToString::to_string).unwrap_or_default();
            json!([update.sequence.value(), when, by])
        })
        .collect();
    let conflicts: Vec<Value> =
        conflicts.iter().map(|conflict| shown_version(conflict, &[])).collect();
    json!({
        "id": version.id.as_str(),
        "updates": version.updates.value(),
        "deleted": version.deleted,
        "noconflicts": version.noconflicts.unwrap_or(false),
        "data": version.data.card.title,
        "history": history,
        "conflicts": conflicts,
    })
}

fn ordered(mut items: Value) -> Value {
    for item in items.as_object_mut().unwrap().values_mut() {
        item["conflicts"].as_array_mut().unwrap().sort_by_key(Value::to_string);
    }
    items
}

pub fn command(local: &Path, incoming: &Path) -> String {
    let mut out = Vec::new();
    merge_command(local, incoming, &mut out, &mut Vec::new()).unwrap();
    String::from_utf8(out).unwrap()
}

/// In both directions the same winners and the same conflicts come of each case, although plain SSE 1.0 updates can break
/// that law (READINGS 1, row 3). Merging once more, and a feed with itself, prints what was there, byte for byte.
#[test]
fn the_command_merges_all_cases() {
    let folder = tempfile::tempdir().unwrap();
    let again = folder.path().join("once.xml");
    for case in cases() {
        let expected = std::fs::read_to_string(case.join("expected.json")).unwrap();
        let expected = ordered(serde_json::from_str(&expected).unwrap());
        let (local, incoming) = (case.join("local.xml"), case.join("incoming.xml"));
        for (own, other) in [(&local, &incoming), (&incoming, &local)] {
            let once = command(own, other);
            assert_eq!(shown(&once), expected, "{}\n{once}", case.display());
            std::fs::write(&again, &once).unwrap();
            assert_eq!(command(&again, other), once, "{}", case.display());
            assert_eq!(command(own, own), std::fs::read_to_string(own).unwrap());
        }
    }
}
