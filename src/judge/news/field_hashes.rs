//! Fingerprints of an entry's fields, and what differs between two sets of them.

use super::field::{FieldWeight, element_name, is_core_text, weight};
use super::fingerprint::{Fingerprint, without};
use super::visible::{counted, visible};
use std::collections::BTreeSet;
use tidegate_core::model::{Context, Entry, Ignore, Markup};
use tidegate_core::xml::has_units;
use xxhash_rust::xxh3::xxh3_64;

/// The most changed fields that a reason names.
const NAMED_FIELDS: usize = 6;

/// The fingerprint of a path.
pub fn path_print(path: &str) -> u64 {
    xxh3_64(path.as_bytes())
}

/// The fingerprint of an entry's bytes and what they inherit.
pub fn bytes_print(entry: &Entry<'_>) -> u64 {
    print(&entry.markup, &entry.context)
}

/// The same of an entry that stands alone.
pub fn markup_print(markup: &Markup) -> u64 {
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

/// The fingerprints of the entry's texts that have so many [`units`](tidegate_core::xml::units) or more, of those in elements that
/// `is_meant` takes by their path: of what an operator does not ignore, as [`Fingerprint::prints`] are.
pub fn text_prints(
    entry: &Entry<'_>,
    ignore: &[Ignore],
    least: usize,
    is_meant: impl Fn(&str) -> bool,
) -> Vec<(u64, u64)> {
    // A character of two units has three bytes or more.
    let long = entry.fields().iter().filter(|f| f.value.len() >= least && is_meant(&f.path));
    long.filter(|f| weight(&f.path, &f.value) == FieldWeight::Text)
        .filter_map(|f| {
            let covering = || ignore.iter().filter(|ignore| ignore.covers(&f.path));
            if covering().any(|ignore| ignore.regex().is_none()) {
                return None;
            }
            let text = visible(&f.value);
            let text = counted(&f.value, &text).unwrap_or(text);
            let rest = without(&text, covering().filter_map(Ignore::regex));
            Some((path_print(&f.path), rest.unwrap_or(text)))
        })
        .filter(|(_, text)| has_units(text, least))
        .map(|(path, text)| (path, xxh3_64(text.as_bytes())))
        .collect()
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

/// The core texts of an entry that its item did not have, where the two come from documents of
/// different formats: formats call the same things by different names, so only what is said counts.
pub fn changed_across_formats(fingerprint: &Fingerprint<'_>, old: &[(u64, u64)]) -> BTreeSet<u64> {
    let before: BTreeSet<u64> = old.iter().map(|(_, value)| *value).collect();
    let core = fingerprint.seen.iter().filter(|seen| is_core_text(element_name(seen.path)));
    core.map(|seen| seen.print).filter(|p| !before.contains(&p.1)).map(|p| p.0).collect()
}
