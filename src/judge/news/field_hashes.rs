//! Fingerprints of an entry's fields, and what differs between two sets of them.

use super::field::{FieldWeight, element_name, is_core_text, weight};
use super::fingerprint::{Fingerprint, without};
use super::visible::comparable;
use std::collections::BTreeSet;
use tidegate_core::model::{Context, Entry, Ignore, Markup};
use xxhash_rust::xxh3::xxh3_64;

/// The most changed fields that a reason names.
const NAMED_FIELDS: usize = 6;

pub fn hash_path(path: &str) -> u64 {
    xxh3_64(path.as_bytes())
}

/// The fingerprint of an entry's bytes and what they inherit.
pub fn hash_entry(entry: &Entry<'_>) -> u64 {
    print(&entry.markup, &entry.context)
}

/// The same of an entry that stands alone.
pub fn hash_markup(markup: &Markup) -> u64 {
    print(&markup.xml, &markup.context)
}

fn print(xml: &str, context: &Context) -> u64 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    hash.update(xml.as_bytes());
    for (prefix, namespace) in &context.namespaces {
        hash.update(prefix.as_bytes());
        hash.update(&[1]);
        hash.update(namespace.as_bytes());
        hash.update(&[2]);
    }
    hash.update(context.base.as_deref().unwrap_or_default().as_bytes());
    hash.update(&[3]);
    hash.update(context.lang.as_deref().unwrap_or_default().as_bytes());
    hash.digest()
}

/// The texts of an entry of so many bytes or more with their paths, but for what an operator ignores: what
/// [`Fingerprint::prints`] are the fingerprints of.
pub fn texts<'e>(
    entry: &'e Entry<'_>,
    ignore: &'e [Ignore],
    least: usize,
) -> impl Iterator<Item = (&'e str, String)> {
    let long = entry.fields().iter().filter(move |field| field.value.len() >= least);
    let texts = long.filter(|field| weight(&field.path, &field.value) == FieldWeight::Text);
    texts.filter_map(move |field| {
        let covering = || ignore.iter().filter(|ignore| ignore.covers(&field.path));
        if covering().any(|ignore| ignore.regex().is_none()) {
            return None;
        }
        let text = comparable(&field.value);
        let rest = without(&text, covering().filter_map(Ignore::regex));
        Some((&*field.path, rest.unwrap_or(text)))
    })
}

/// The fingerprints of a text and of the path where it stands.
pub fn hash_text(path: &str, text: &str) -> (u64, u64) {
    (hash_path(path), xxh3_64(text.as_bytes()))
}

/// The fingerprints of the paths of which something came or went.
pub fn changed(old: &[(u64, u64)], new: &[(u64, u64)]) -> BTreeSet<u64> {
    let mut changed: BTreeSet<u64> = BTreeSet::new();
    changed.extend(new.iter().filter(|p| old.binary_search(p).is_err()).map(|p| p.0));
    changed.extend(old.iter().filter(|p| new.binary_search(p).is_err()).map(|p| p.0));
    changed
}

/// The names of the changed fields of an entry, in order; `an element` stands for one that is gone.
pub fn names(entry: &Entry<'_>, mut changed: BTreeSet<u64>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in entry.fields() {
        if changed.remove(&hash_path(&field.path)) {
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

/// The core texts of an entry that its item did not have, where the two come from documents of
/// different formats: formats call the same things by different names, so only what is said counts.
pub fn changed_across_formats(fingerprint: &Fingerprint<'_>, old: &[(u64, u64)]) -> BTreeSet<u64> {
    let before: BTreeSet<u64> = old.iter().map(|(_, value)| *value).collect();
    let core = fingerprint.seen.iter().filter(|seen| is_core_text(element_name(seen.path)));
    core.map(|seen| seen.print).filter(|p| !before.contains(&p.1)).map(|p| p.0).collect()
}
