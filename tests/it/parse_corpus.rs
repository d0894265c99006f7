//! Real documents, where `TIDEGATE_CORPUS` names the folder that holds them unpacked (`replay/` and
//! `single/`). Nothing is checked where it is not set.

use crate::fuzz_smoke::targets;
use crate::support;
use std::path::{Path, PathBuf};
use tidegate_core::model::Completeness;
use tidegate_format::parse::{Limits, decode, document};

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "xml" || e == "json") {
            out.push(path);
        }
    }
}

fn corpus() -> Option<PathBuf> {
    std::env::var_os("TIDEGATE_CORPUS").map(PathBuf::from)
}

#[test]
fn every_document_parses_or_says_why_and_comes_back_whole() {
    let Some(corpus) = corpus() else { return };
    let mut paths = Vec::new();
    files(&corpus.join("replay"), &mut paths);
    files(&corpus.join("single"), &mut paths);
    paths.sort();
    assert!(paths.len() > 100, "the corpus is not there");
    for path in support::sample(&paths, 4) {
        // What must hold of whatever is read, the target of the fuzzer says.
        println!("{}", path.display());
        targets::document(&std::fs::read(path).unwrap());
    }
}

/// Every item of a well-formed document is found. Items inside others (in conflicts of sharing
/// feeds) are none of the feed's own.
#[test]
fn well_formed_documents_give_all_their_items() {
    let Some(corpus) = corpus() else { return };
    let single = corpus.join("single");
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
