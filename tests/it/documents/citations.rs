//! What the source cites, and whether it is there: rows of `tests/it/spec/READINGS.md` ("READINGS 1,
//! row 34", numbers by section), sections of the other documents of `docs/design` ("CONTRACT, Words"),
//! and documents by their path.

use super::read;
use crate::walls::sources;
use std::collections::{BTreeMap, BTreeSet};

/// Names that cite a section of a document, and the document.
const DOCUMENTS: [(&str, &str); 3] = [
    ("CONTRACT", "docs/design/contract.md"),
    ("JUDGEMENT", "docs/design/judgement.md"),
    ("STORE", "docs/design/store.md"),
];
/// Names of what is not in the repository.
const ELSEWHERE: [&str; 3] = ["DESIGN", "FACTS", "LANGUAGE"];
/// What a row is cited by.
const ROWS: &str = "READINGS";
/// Where documents are that are cited by their path.
const FOLDER: &str = "docs/";

/// The numbers of the rows of each section of the readings.
type Rows = BTreeMap<u32, BTreeSet<u32>>;

/// The rows of the tables below headings `## 1. …`, by what stands in their first column.
fn rows(readings: &str) -> Rows {
    let mut rows = Rows::new();
    let mut section = 0;
    for line in readings.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = number(heading).map_or(0, |(found, _)| found);
            rows.entry(section).or_default();
        }
        let first = line.strip_prefix("| ").and_then(number);
        if let Some((row, _)) = first.filter(|(_, rest)| rest.starts_with(" |")) {
            assert!(rows.entry(section).or_default().insert(row), "row {row} stands twice");
        }
    }
    rows
}

/// The headings of a document, without their signs.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix('#'));
    lines.map(|line| line.trim_start_matches('#').trim().to_owned()).collect()
}

/// The text of a source file as one line, without the signs of comments: citations may be broken.
fn flat(text: &str) -> String {
    let bare = |line: &str| {
        let line = line.trim_start();
        let comment = ["///", "//!", "//"].iter().find_map(|sign| line.strip_prefix(sign));
        comment.unwrap_or(line).trim().to_owned()
    };
    text.lines().map(bare).collect::<Vec<_>>().join(" ")
}

/// The number at the start of a text, and what follows it.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// What follows each occurrence of a word that stands alone.
fn after<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let alone = |at: &usize| {
        !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    };
    let found = text.match_indices(word).map(|(at, _)| at).filter(alone);
    found.map(|at| &text[at + word.len()..]).collect()
}

/// What a file cites that is not there, in words.
fn unresolved(
    text: &str,
    rows: &Rows,
    headings: &BTreeMap<&str, BTreeSet<String>>,
    is_there: impl Fn(&str) -> bool,
) -> Vec<String> {
    let text = flat(text);
    let mut found = Vec::new();
    for word in ELSEWHERE {
        if !after(&text, word).is_empty() {
            found.push(format!("{word} is no document of the repository"));
        }
    }
    for rest in after(&text, ROWS) {
        let Some((section, rest)) = rest.strip_prefix(' ').and_then(number) else { continue };
        let Some(known) = rows.get(&section) else {
            found.push(format!("{ROWS} has no section {section}"));
            continue;
        };
        let rest = rest.trim_start_matches([',', ' ']);
        let rest = rest.strip_prefix("rows ").or_else(|| rest.strip_prefix("row "));
        let mut next = rest.and_then(number);
        while let Some((row, rest)) = next {
            if !known.contains(&row) {
                found.push(format!("{ROWS} {section} has no row {row}"));
            }
            let more = [" and ", " to ", ", "].iter().find_map(|sign| rest.strip_prefix(sign));
            next = more.and_then(number);
        }
    }
    for (word, headings) in headings {
        for rest in after(&text, word) {
            let Some(cited) = rest.strip_prefix(", ") else { continue };
            let cited = cited.trim_start_matches(['"', '`']);
            // What is cited in code of its own is an address or a command, which the section has.
            let is_code = rest.starts_with(", `");
            if !is_code && !headings.iter().any(|heading| cited.starts_with(heading.as_str())) {
                let cited: String = cited.chars().take(30).collect();
                found.push(format!("{word} has no section {cited:?}"));
            }
        }
    }
    for (at, _) in text.match_indices(FOLDER) {
        let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
        let end = text[at..].find(|c| !is_path(c)).map_or(text.len(), |end| at + end);
        let path = text[at..end].trim_end_matches('.');
        let begins = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
        if begins && path.ends_with(".md") && !is_there(path) {
            found.push(format!("there is no {path}"));
        }
    }
    found
}

#[test]
fn every_citation_leads_to_its_place() {
    let rows = rows(&read("tests/it/spec/READINGS.md"));
    let headings: BTreeMap<_, _> =
        DOCUMENTS.iter().map(|(word, path)| (*word, headings(&read(path)))).collect();
    let mut files: Vec<(String, String)> = Vec::new();
    for folder in ["src", "tests", "benches"] {
        let below = sources(folder).into_iter();
        files.extend(below.map(|(path, text)| (format!("{folder}/{path}"), text)));
    }
    // It cites what is not there, to be found.
    files.retain(|(path, _)| path != "tests/it/documents/citations.rs");
    files.push(("tests/it/spec/TABLE.md".to_owned(), read("tests/it/spec/TABLE.md")));
    let is_there = |path: &str| super::root().join(path).exists();
    let mut broken = Vec::new();
    for (path, text) in files {
        let found = unresolved(&text, &rows, &headings, is_there);
        broken.extend(found.into_iter().map(|what| format!("{path}: {what}")));
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn what_is_not_there_is_found() {
    let rows =
        rows("## 1. One\n| # | a |\n|---|---|\n| 1 | x |\n| 2 | y |\n## 2. Two\n| 1 | z |\n");
    let headings = BTreeMap::from([("CONTRACT", headings("# C\n\n## Words\n"))]);
    let said = |text: &str| unresolved(text, &rows, &headings, |path| path == "docs/a.md");
    for good in [
        "// READINGS 1, row 2",
        "/// (READINGS 1,\n    /// rows 1 and 2)",
        "//! READINGS 2, its last sentence; CONTRACT, Words; `docs/a.md`",
        "const READINGS: u8 = 7; const DESIGNER: u8 = 1;",
        "/// (CONTRACT, `POST /api/v1/feeds/NAME/poll`)",
    ] {
        assert_eq!(said(good), [""; 0], "{good}");
    }
    for bad in [
        "// READINGS 1, row 3",
        "// READINGS 1, rows 1 to 9",
        "// READINGS 2 row 2",
        "// READINGS 3",
        "// CONTRACT, Wards",
        "// DESIGN section 4",
        "//! docs/b.md",
    ] {
        assert_eq!(said(bad).len(), 1, "{bad}");
    }
}
