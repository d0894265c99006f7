//! Fingerprints of an entry's fields, and what differs between two sets of them.

use super::noise::{Weight, address, weight};
use super::visible::visible;
use crate::model::{Entry, Field};
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_64;

/// The most changed fields that a reason names.
const NAMED_FIELDS: usize = 6;

/// Texts shorter than this say too little to know an item by, in bytes.
const TELLING_TEXT: usize = 80;

/// The fingerprint of a path.
pub fn path_print(path: &str) -> u64 {
    xxh3_64(path.as_bytes())
}

/// The fingerprint of an entry's bytes and what they inherit.
pub fn bytes_print(entry: &Entry<'_>) -> u64 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    hash.update(entry.markup.as_bytes());
    for (prefix, namespace) in &entry.context.namespaces {
        hash.update(prefix.as_bytes());
        hash.update(&[1]);
        hash.update(namespace.as_bytes());
        hash.update(&[2]);
    }
    hash.update(entry.context.base.as_deref().unwrap_or_default().as_bytes());
    hash.update(&[3]);
    hash.update(entry.context.lang.as_deref().unwrap_or_default().as_bytes());
    hash.digest()
}

/// What a field says to a reader; nothing where it is noise.
fn said(field: &Field<'_>) -> Option<String> {
    let said = match weight(&field.path, &field.value) {
        Weight::Text => visible(&field.value),
        Weight::Address => address(&field.value).into_owned(),
        Weight::None => return None,
    };
    (!said.is_empty()).then_some(said)
}

/// The fingerprints of what a reader would see of an entry: (path, value), sorted. An order of
/// elements leaves no trace.
pub fn prints(entry: &Entry<'_>) -> Vec<(u64, u64)> {
    let mut prints: Vec<(u64, u64)> = entry
        .fields
        .iter()
        .filter_map(|f| Some((path_print(&f.path), xxh3_64(said(f)?.as_bytes()))))
        .collect();
    prints.sort_unstable();
    prints.dedup();
    prints
}

/// The fingerprints of the entry's longer texts alone.
pub fn text_prints(entry: &Entry<'_>) -> Vec<(u64, u64)> {
    let long = entry.fields.iter().filter(|f| f.value.len() >= TELLING_TEXT);
    long.filter(|f| weight(&f.path, &f.value) == Weight::Text)
        .filter_map(|f| Some((path_print(&f.path), xxh3_64(said(f)?.as_bytes()))))
        .collect()
}

/// Which fields differ, by name, in order; `an element` stands for one that is gone. Empty where
/// nothing differs.
pub fn changes(entry: &Entry<'_>, old: &[(u64, u64)], new: &[(u64, u64)]) -> Vec<String> {
    let mut changed: BTreeSet<u64> = BTreeSet::new();
    changed.extend(new.iter().filter(|p| old.binary_search(p).is_err()).map(|p| p.0));
    changed.extend(old.iter().filter(|p| new.binary_search(p).is_err()).map(|p| p.0));
    let mut names: Vec<String> = Vec::new();
    for field in &entry.fields {
        if changed.remove(&path_print(&field.path)) {
            names.push(field.path.clone().into_owned());
        }
    }
    if !changed.is_empty() {
        names.push("an element that is gone".to_owned());
    }
    if names.len() > NAMED_FIELDS {
        let more = names.len() - NAMED_FIELDS;
        names.truncate(NAMED_FIELDS);
        names.push(format!("{more} more"));
    }
    names
}

/// What an entry says that its item did not say, by name, where the two come from documents of
/// different formats: formats call the same things by different names, so only what is said counts.
pub fn changes_across_formats(entry: &Entry<'_>, old: &[(u64, u64)]) -> Vec<String> {
    let before: BTreeSet<u64> = old.iter().map(|(_, value)| *value).collect();
    let core = |f: &&Field<'_>| {
        let last = f.path.rsplit('/').next().unwrap_or(&f.path);
        matches!(last, "title" | "description" | "summary" | "content" | "content:encoded")
    };
    let told = entry.fields.iter().filter(core);
    told.filter(|f| said(f).is_some_and(|said| !before.contains(&xxh3_64(said.as_bytes()))))
        .map(|f| f.path.clone().into_owned())
        .collect()
}
