//! Every MUST and SHOULD of the three sharing specifications, with the tests that prove it, the
//! reading by which it is understood otherwise, or why it does not concern a gateway.
//!
//! `spec/rows.txt` has a row for each, with the number of key words that it covers: MUST, SHOULD,
//! SHALL, REQUIRED, RECOMMENDED and their negations. The specifications are not in the repository;
//! [`COUNTS`] says how many of those words each of their sections has.

use crate::support::prelude::*;
use regex::Regex;

const ROWS: &str = include_str!("spec/rows.txt");

/// The documents, as the rows call them, each with all of its key words: SSE 1.0 for Atom and RSS, FeedSync for
/// Collections (draft 2), SSE 0.91 for RSS and OPML.
const DOCUMENTS: [(&str, u32); 3] = [("1.0", 67), ("C", 66), ("0.91", 37)];

/// How many readings each section of READINGS has of which rows are cited.
const READINGS: [(u32, u32); 2] = [(1, 37), (2, 19)];

/// How many key words each section of a document has. What the conventions say of the words themselves
/// is not counted.
const COUNTS: [(&str, &str); 3] = [
    ("1.0", "2.1:11 2.2:5 2.3:2 2.4:12 2.5:6 2.6:1 3.1:4 3.2:6 3.3:4 3.4:5 4.1:4 4.2:7"),
    ("C", "2.1:12 2.2:5 2.3:2 2.4:10 2.5:6 2.6:1 3.1:4 3.2:6 3.3:4 3.4:5 4.1:4 4.2:7"),
    (
        "0.91",
        "1.2:3 2.1:1 2.3:5 2.4:5 2.5:4 3.2:5 4.1:1 4.2:1 4.3:2 4.4:2 4.4.1:3 4.4.2:2 5.1:1 5.2:2",
    ),
];

struct Row<'a> {
    documents: Vec<&'a str>,
    section: &'a str,
    words: u32,
    says: &'a str,
    reading: Option<(u32, u32)>,
    tests: Vec<&'a str>,
    not: Option<&'a str>,
}

fn rows() -> Vec<Row<'static>> {
    let lines = ROWS.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(row).collect()
}

fn row(line: &'static str) -> Row<'static> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let &[documents, section, words, says, proof] = cells.as_slice() else { panic!("{line}") };
    let (reading, proof) = match proof.strip_prefix("reading ") {
        Some(rest) => {
            let (reading, tests) = rest.split_once(':').expect(line);
            let (section, row) = reading.split_once('.').expect(line);
            (Some((section.parse().expect(line), row.parse().expect(line))), tests)
        }
        None => (None, proof),
    };
    let not = proof.strip_prefix("none:").map(str::trim);
    let tests = match not {
        Some(_) => Vec::new(),
        None => proof.split(',').map(str::trim).filter(|test| !test.is_empty()).collect(),
    };
    let words = words.parse().expect(line);
    Row { documents: documents.split(' ').collect(), section, words, says, reading, tests, not }
}

/// Either tests, which are functions of that name behind an attribute that makes them one, or a reason.
#[test]
fn every_row_has_a_proof_a_reading_or_a_reason() {
    let mut files: HashMap<PathBuf, String> = HashMap::new();
    for row in rows() {
        let what = format!("{:?} {}: {}", row.documents, row.section, row.says);
        assert!(!row.says.is_empty() && row.words > 0, "{what}");
        let mut documents = row.documents.iter();
        assert!(documents.all(|d| DOCUMENTS.iter().any(|(name, _)| name == d)), "{what}");
        assert_eq!(row.tests.is_empty(), row.not.is_some(), "either tests or a reason: {what}");
        assert!(row.not.is_none_or(|why| why.len() > 20), "{what}");
        if let Some((section, number)) = row.reading {
            let known = READINGS.iter().find(|(known, _)| *known == section);
            assert!(known.is_some_and(|(_, rows)| (1..=*rows).contains(&number)), "{what}");
        }
        for test in row.tests {
            let (file, name) = test.rsplit_once("::").expect(test);
            let text = files.entry(root(file));
            let text = text.or_insert_with_key(|path| std::fs::read_to_string(path).expect(test));
            let attributes = r"#\[(tokio::)?test\b.*\n(\s*(#|//).*\n)*";
            let is_test = Regex::new(&format!(r"{attributes}\s*(async )?fn {name}\(")).unwrap();
            assert!(is_test.is_match(text), "{test}: {}", row.says);
        }
    }
}

#[test]
fn every_key_word_has_its_row() {
    let mut found: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for row in rows() {
        for document in row.documents {
            *found.entry((document, row.section)).or_default() += row.words;
        }
    }
    let mut wanted: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for (document, sections) in COUNTS {
        for (section, words) in sections.split(' ').map(|count| count.split_once(':').unwrap()) {
            wanted.insert((document, section), words.parse().unwrap());
        }
    }
    assert_eq!(found, wanted);
    let total = |document: &str| -> u32 {
        wanted.iter().filter(|((of, _), _)| *of == document).map(|(_, words)| words).sum()
    };
    assert_eq!(DOCUMENTS.map(|(name, _)| (name, total(name))), DOCUMENTS);
}
