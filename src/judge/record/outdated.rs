//! Items whose fingerprints were made by another scheme than the present one: by another program, or without what an
//! operator ignored then.

use super::Observation;
use crate::news;
use crate::same_item;
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{FeedDocument, Ignore, LedgerEntry, Markup, Snapshot, SyncId};
use tidegate_format::parse;

/// The items that a document is compared with, listed or named in it, and that are fingerprinted by
/// another scheme: their kept bytes are needed first ([`refreshed`]). None where the document has the bytes
/// that they have.
pub fn outdated(observation: &Observation<'_>, document: &FeedDocument<'_>) -> Vec<SyncId> {
    let Some(snapshot) = observation.snapshot else { return Vec::new() };
    let scheme = news::scheme(&observation.options.ignore);
    let is_old = |known: &LedgerEntry| {
        known.noise.scheme != scheme && !known.is_redacted() && !known.is_evicted()
    };
    if !snapshot.known.iter().any(is_old) {
        return Vec::new();
    }
    let same: HashSet<u64> = document.entries.iter().map(news::hash_entry).collect();
    let names: HashSet<String> = document.entries.iter().map(same_item::native).collect();
    let is_compared = |known: &&LedgerEntry| {
        is_old(known)
            && !same.contains(&known.bytes)
            && (known.standing.is_listed() || names.contains(&known.native_shown))
    };
    snapshot.known.iter().filter(is_compared).map(|known| known.id.clone()).collect()
}

/// A snapshot in which the items whose kept bytes these are have fingerprints by the present scheme.
pub fn refreshed(
    snapshot: &Snapshot,
    kept: &HashMap<SyncId, Markup>,
    ignore: &[Ignore],
) -> Snapshot {
    let scheme = news::scheme(ignore);
    let mut refreshed = snapshot.clone();
    for known in &mut refreshed.known {
        let markup = kept.get(&known.id).filter(|_| known.noise.scheme != scheme);
        if let Some(entry) = markup.and_then(parse::entry_again) {
            refreshed.outdated.push((known.id.clone(), same_item::item_keys(known)));
            news::refresh(known, &entry, ignore);
        }
    }
    refreshed
}
