//! Real subscription lists: every address that another lenient way of looking finds is found.
//!
//! Runs over the folder `opml/` of the corpus that `TIDEGATE_CORPUS` names, where it is set; the
//! other way is `tests/scripts/opml_addresses.py`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate::parse::opml::{OpmlLimits, OutlineKind, read};
use tidegate::parse::{Limits, decode};

/// The fewest lists, and the fewest of them that are ill-formed.
const LISTS_WANTED: usize = 48;
const ILL_FORMED_WANTED: usize = 14;

fn lists() -> Option<Vec<PathBuf>> {
    let Some(corpus) = std::env::var_os("TIDEGATE_CORPUS") else {
        println!("skipped: TIDEGATE_CORPUS is not set");
        return None;
    };
    let folder = PathBuf::from(corpus).join("opml");
    let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut lists: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "opml")).collect();
    lists.sort();
    Some(lists)
}

/// The addresses by list, as the script finds them.
fn elsewhere(lists: &[PathBuf]) -> BTreeMap<String, Vec<String>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/opml_addresses.py");
    let run = Command::new("python3").arg(script).args(lists).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8(run.stdout).unwrap().lines() {
        let (file, address) = line.split_once('\t').unwrap();
        found.entry(file.to_owned()).or_default().push(address.to_owned());
    }
    found
}

#[test]
fn every_address_is_found() {
    let Some(lists) = lists() else { return };
    assert!(lists.len() >= LISTS_WANTED);
    let elsewhere = elsewhere(&lists);
    let (mut addresses, mut ill_formed, mut problems) = (0, 0, 0);
    for path in &lists {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(path).unwrap();
        let decoded = decode(&bytes, None, &Limits::default()).unwrap();
        let list = read(&decoded.text, &OpmlLimits::default()).unwrap();
        let mut found: Vec<String> = Vec::new();
        for outline in &list.outlines {
            if let OutlineKind::Feed(address) = outline.kind() {
                found.push(address.to_owned());
            }
            assert!(outline.line >= 1 && outline.line <= decoded.text.lines().count());
        }
        let wanted = elsewhere.get(&name).cloned().unwrap_or_default();
        assert_eq!(found, wanted, "{name}");
        addresses += found.len();
        ill_formed += usize::from(!list.problems.is_empty());
        problems += list.problems.len() + list.unnamed;
        for problem in &list.problems {
            assert!(problem.line >= 1 && !problem.message.is_empty());
        }
    }
    assert!(ill_formed >= ILL_FORMED_WANTED, "{ill_formed} lists have problems");
    println!(
        "{} lists, {addresses} addresses, {problems} problems in {ill_formed} lists",
        lists.len()
    );
}
