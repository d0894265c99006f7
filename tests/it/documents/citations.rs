//! What the source cites, and whether it is there: rows of `tests/it/spec/READINGS.md` ("READINGS 1,
//! row 34", numbers by section), sections of the other documents of `docs/design` ("CONTRACT, Words"),
//! and documents by their path.

use super::read;
use crate::support::prelude::*;
use crate::walls::sources;
use regex::Regex;
use std::sync::LazyLock;

/// Names that cite a section of a document, and the document.
const DOCUMENTS: [(&str, &str); 3] = [
    ("CONTRACT", "docs/design/contract.md"),
    ("JUDGEMENT", "docs/design/judgement.md"),
    ("STORE", "docs/design/store.md"),
];
static ELSEWHERE: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(DESIGN|FACTS|LANGUAGE)\b"));
/// A section of the readings, and its rows if any are named.
static ROWS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"\bREADINGS (\d+)(?:[, ]*rows? (\d+(?:(?: and | to |, )\d+)*))?"));
/// Where a section of a document is named.
static SECTION: LazyLock<Regex> = LazyLock::new(|| regex(r#"\b(CONTRACT|JUDGEMENT|STORE), "?"#));
static PATH: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:^|[^A-Za-z0-9/])(docs/[A-Za-z0-9/._-]*\.md)\b"));
/// Where lines meet, with the sign of a comment: citations may be broken.
static BREAK: LazyLock<Regex> = LazyLock::new(|| regex(r"\s*\n\s*(?://[/!]?)?\s*"));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap()
}

fn rows(readings: &str) -> BTreeSet<String> {
    let (mut rows, mut section) = (BTreeSet::new(), "");
    for found in regex(r"(?m)^## (\d*)|^\| (\d+) \|").captures_iter(readings) {
        if let Some(row) = found.get(2).map(|row| format!("{section}, row {}", row.as_str())) {
            assert!(rows.insert(row), "a row stands twice: {}", &found[0]);
        } else {
            section = found.get(1).unwrap().as_str();
            rows.insert(section.to_owned());
        }
    }
    rows
}

fn headings(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    lines.map(|line| line.trim_start_matches('#').trim().to_owned()).collect()
}

/// What a text cites that is not there, and how many rows, sections and paths it cites.
fn unresolved(
    text: &str,
    rows: &BTreeSet<String>,
    headings: &BTreeMap<&str, Vec<String>>,
) -> (Vec<String>, [usize; 3]) {
    let flat = BREAK.replace_all(text, " ");
    let mut wrong: Vec<_> =
        ELSEWHERE.find_iter(&flat).map(|word| word.as_str().to_owned()).collect();
    let mut count = [0; 3];
    for cited in ROWS.captures_iter(&flat) {
        let numbers = cited.get(2).map_or("", |numbers| numbers.as_str());
        let numbers = numbers.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
        let mut places = vec![cited[1].to_owned()];
        places.extend(numbers.map(|number| format!("{}, row {number}", &cited[1])));
        count[0] += places.len();
        wrong.extend(places.into_iter().filter(|place| !rows.contains(place)));
    }
    for cited in SECTION.captures_iter(&flat) {
        let section = &flat[cited.get(0).unwrap().end()..];
        // What is cited in code of its own is an address or a command, which the section has.
        let is_known = |heading: &String| section.starts_with(heading);
        if !section.starts_with('`') && !headings[&cited[1]].iter().any(is_known) {
            wrong.push(cited[1].to_owned() + ", " + section.get(..30).unwrap_or(section));
        }
        count[1] += 1;
    }
    for cited in PATH.captures_iter(text) {
        wrong.extend(Some(cited[1].to_owned()).filter(|path| !root(path).exists()));
        count[2] += 1;
    }
    (wrong, count)
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
    // Its patterns name what is not there.
    files.retain(|(path, _)| path != "tests/it/documents/citations.rs");
    let mut broken = Vec::new();
    let mut counts = [0; 3];
    for (path, text) in files {
        let (found, cited) = unresolved(&text, &rows, &headings);
        broken.extend(found.into_iter().map(|what| format!("{path}: {what}")));
        counts.iter_mut().zip(cited).for_each(|(all, more)| *all += more);
    }
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
    let least = [60, 15, 5];
    assert!(counts.iter().zip(least).all(|(count, least)| *count >= least), "{counts:?} citations");
}
