//! Real documents, where `TIDEGATE_CORPUS` names the folder that holds them unpacked (`replay/` and
//! `single/`). Nothing is checked where it is not set.

use crate::support::corpus;
use std::path::Path;
use tidegate_core::model::{Completeness, FeedDocument, Format};
use tidegate_format::parse::{Limits, decode, document, own};

/// Checks what must hold for every document that parses.
fn check(path: &Path, parsed: &FeedDocument<'_>) {
    let skeleton = &parsed.skeleton;
    assert!(skeleton.text.is_char_boundary(skeleton.slots.entries), "{}", path.display());
    if parsed.format != Format::JsonFeed {
        spliced(path, parsed);
    }
    for entry in &parsed.entries {
        let markup = own(parsed, entry);
        let place = |at: usize| markup.xml.is_char_boundary(at);
        assert!(place(markup.slots.attributes), "{}", path.display());
        for range in [markup.slots.id, markup.slots.id_element].into_iter().flatten() {
            assert!(markup.xml.get(range).is_some(), "{}", path.display());
        }
    }
}

/// The repaired entries put back into the skeleton are a document without faults that says the same.
fn spliced(path: &Path, parsed: &FeedDocument<'_>) {
    let name = path.display();
    let (before, behind) = parsed.skeleton.text.split_at(parsed.skeleton.slots.entries);
    let entries: String = parsed.entries.iter().map(|entry| entry.markup.as_ref()).collect();
    let text = format!("{before}{entries}{behind}");
    let limits = Limits::default();
    let again = document(&text, None, &limits).unwrap_or_else(|error| panic!("{name}: {error}"));
    let said: Vec<_> =
        again.warnings.iter().filter(|w| !w.message.contains("no namespace")).collect();
    assert!(said.is_empty(), "{name}: {said:?}");
    assert_eq!(again.completeness, Completeness::Full, "{name}");
    assert_eq!(again.entries.len(), parsed.entries.len(), "{name}");
    for (one, other) in again.entries.iter().zip(&parsed.entries) {
        assert_eq!(one.fields(), other.fields(), "{name}");
        assert_eq!(one.markup, other.markup, "{name}");
        assert_eq!(one.native_id, other.native_id, "{name}");
    }
    assert_eq!(again.skeleton.text, parsed.skeleton.text, "{name}");
    assert_eq!(again.skeleton.slots, parsed.skeleton.slots, "{name}");
}

#[test]
fn every_document_parses_or_says_why_and_comes_back_whole() {
    let (Some(replayed), Some(single)) = (corpus("replay"), corpus("single")) else { return };
    assert!(replayed.len() + single.len() > 100, "the corpus is not there");
    for path in replayed.iter().chain(&single) {
        let bytes = std::fs::read(path).unwrap();
        let limits = Limits::default();
        let Ok(decoded) = decode(&bytes, None, &limits) else { continue };
        if let Ok(parsed) = document(&decoded.text, None, &limits) {
            check(path, &parsed);
        }
    }
}

/// Every item of a well-formed document is found. Items inside others (in conflicts of sharing
/// feeds) are none of the feed's own.
#[test]
fn well_formed_documents_give_all_their_items() {
    let Some(single) = std::env::var_os("TIDEGATE_CORPUS") else { return };
    let single = Path::new(&single).join("single");
    let manifest = std::fs::read_to_string(single.join("manifest.jsonl")).unwrap();
    for line in manifest.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        if line["wellformed"] != true {
            continue;
        }
        let file = line["file"].as_str().unwrap();
        let bytes = std::fs::read(single.join(file)).unwrap();
        let limits = Limits::default();
        let decoded = decode(&bytes, None, &limits).unwrap();
        let parsed = document(&decoded.text, None, &limits).unwrap();
        assert_eq!(parsed.completeness, Completeness::Full, "{file}");
        let items = usize::try_from(line["items"].as_u64().unwrap()).unwrap();
        let nested = decoded.text.matches("<sx:conflict ").count();
        let found = parsed.entries.len();
        assert!(found == items || (nested > 0 && found + nested == items), "{file}: {found}");
    }
}
