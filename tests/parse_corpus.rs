//! Real documents, where `TIDEGATE_CORPUS` names the folder that holds them unpacked (`replay/` and
//! `single/`). Nothing is checked where it is not set.

use std::path::{Path, PathBuf};
use tidegate::model::{Completeness, FeedDocument};
use tidegate::parse::{Limits, decode, document, own, pieces};

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

/// Checks what must hold for every document that parses.
fn check(path: &Path, parsed: &FeedDocument<'_>) {
    let whole: String = pieces(parsed).collect();
    assert!(whole == parsed.text, "{} does not come back", path.display());
    let skeleton = &parsed.skeleton;
    assert!(skeleton.text.is_char_boundary(skeleton.slots.entries), "{}", path.display());
    for entry in &parsed.entries {
        let markup = own(parsed, entry);
        let place = |at: usize| markup.xml.is_char_boundary(at);
        assert!(place(markup.slots.attributes), "{}", path.display());
        for range in [markup.slots.id, markup.slots.id_element].into_iter().flatten() {
            assert!(markup.xml.get(range).is_some(), "{}", path.display());
        }
    }
}

#[test]
fn every_document_parses_or_says_why_and_comes_back_whole() {
    let Some(corpus) = corpus() else { return };
    let mut paths = Vec::new();
    files(&corpus.join("replay"), &mut paths);
    files(&corpus.join("single"), &mut paths);
    paths.sort();
    assert!(paths.len() > 100, "the corpus is not there");
    let mut report = String::new();
    for path in &paths {
        let bytes = std::fs::read(path).unwrap();
        let limits = Limits::default();
        let name = path.strip_prefix(&corpus).unwrap().display();
        let line = match decode(&bytes, None, &limits) {
            Err(error) => format!("{name}\tERR\t0\t{error}\n"),
            Ok(decoded) => match document(&decoded.text, None, &limits) {
                Err(error) => format!("{name}\tERR\t0\t{error}\n"),
                Ok(parsed) => {
                    check(path, &parsed);
                    let warnings: Vec<_> = parsed.warnings.iter().map(|w| &w.message).collect();
                    format!(
                        "{name}\t{}\t{}\t{}\t{:?}\t{}\t{warnings:?}\n",
                        parsed.format.name(),
                        parsed.entries.len(),
                        decoded.encoding,
                        decoded.found,
                        match &parsed.completeness {
                            Completeness::Salvaged(reason) => reason.as_str(),
                            _ => "full",
                        },
                    )
                }
            },
        };
        report.push_str(&line);
    }
    if let Some(file) = std::env::var_os("TIDEGATE_CORPUS_REPORT") {
        std::fs::write(file, report).unwrap();
    }
}
