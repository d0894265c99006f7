//! Items whose fingerprints were made by another scheme than the program's.

use crate::diff;
use crate::identity;
use crate::model::{FeedDocument, Ignore, ItemStatus, Markup, Snapshot, SyncId};
use crate::parse;
use std::collections::{HashMap, HashSet};

/// The items that a document may be compared with and that are fingerprinted by another scheme: their
/// kept bytes are needed first ([`refreshed`]). None where the document has the bytes that they have.
pub fn outdated(snapshot: Option<&Snapshot>, document: &FeedDocument<'_>) -> Vec<SyncId> {
    let Some(snapshot) = snapshot else { return Vec::new() };
    let old = snapshot.known.iter().filter(|known| known.noise.scheme != diff::SCHEME);
    let mut old = old.filter(|known| !known.is_redacted() && !known.is_evicted()).peekable();
    if old.peek().is_none() {
        return Vec::new();
    }
    let same: HashSet<u64> = document.entries.iter().map(diff::bytes_print).collect();
    let names = identity::natives(document);
    let listed: HashSet<&str> = names.iter().map(|name| name.shown.as_str()).collect();
    // What comes back under another id has its title.
    let titles: HashSet<&str> = document
        .entries
        .iter()
        .filter_map(|e| e.title.as_deref())
        .filter(|title| !title.is_empty())
        .collect();
    old.filter(|known| !same.contains(&known.bytes))
        .filter(|known| {
            known.standing == ItemStatus::Current
                || listed.contains(known.native_shown.as_str())
                || known.aliases.iter().any(|alias| listed.contains(alias.as_str()))
                || titles.contains(known.title.as_str())
        })
        .map(|known| known.id.clone())
        .collect()
}

/// A snapshot in which the items whose kept bytes these are have fingerprints by the present scheme.
pub fn refreshed(
    snapshot: &Snapshot,
    kept: &HashMap<SyncId, Markup>,
    ignore: &[Ignore],
) -> Snapshot {
    let mut refreshed = snapshot.clone();
    for known in &mut refreshed.known {
        let markup = kept.get(&known.id).filter(|_| known.noise.scheme != diff::SCHEME);
        if let Some(entry) = markup.and_then(parse::entry_again) {
            diff::refresh(known, &entry, ignore);
        }
    }
    refreshed
}
