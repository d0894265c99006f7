//! Real documents, where `TIDEGATE_CORPUS` names the folder that holds them unpacked (`replay/` and
//! `single/`). Nothing is checked where it is not set.

use crate::fuzz_smoke::targets;
use crate::support::corpus;
use crate::support::prelude::*;
use tidegate_format::parse::{Limits, decode, document};

#[test]
fn every_document_parses_or_says_why_and_comes_back_whole() {
    let (Some(replayed), Some(single)) = (corpus("replay"), corpus("single")) else { return };
    assert!(replayed.len() + single.len() > 100, "the corpus is not there");
    for path in replayed.iter().chain(&single) {
        // Shown with what fails.
        println!("{}", path.display());
        let (bytes, limits) = (std::fs::read(path).unwrap(), Limits::default());
        let Ok(decoded) = decode(&bytes, None, &limits) else { continue };
        let Ok(feed) = document(&decoded.text, None, &limits) else { continue };
        targets::has_its_places(&feed);
        if feed.format != Format::JsonFeed {
            let text = targets::comes_back_whole(&feed);
            let again = document(&text, None, &limits).unwrap();
            let mut faults = again.warnings.iter().map(|warning| &warning.message);
            assert!(faults.all(|it| it.contains("no namespace")), "{:?}", again.warnings);
            for (one, other) in again.entries.iter().zip(&feed.entries) {
                assert_eq!((one.fields(), &one.markup), (other.fields(), &other.markup));
                assert_eq!(one.native_id, other.native_id);
            }
            let (one, other) = (&again.skeleton, &feed.skeleton);
            assert_eq!((&one.text, &one.slots), (&other.text, &other.slots));
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
