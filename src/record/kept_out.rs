//! Entries of a document that are redacted items: they are taken out before anything is judged, as
//! if their publisher did not list them any more.

use crate::diff;
use crate::identity;
use crate::model::{FeedDocument, Known, Snapshot, Without};
use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};

/// How much of the SHA-256 stands for a name, in bytes.
const HASH_BYTES: usize = 20;

/// A name that tells nothing of the one it stands for, and is always the same for it.
pub(super) fn veiled(name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let digest: &[u8] = digest.as_ref();
    let hash = BASE32_NOPAD.encode(digest.get(..HASH_BYTES).unwrap_or(digest)).to_lowercase();
    format!("redacted:{hash}")
}

/// The document without the entries that are redacted items; `None` where it has none.
///
/// Such an entry bears the item's id, or one that it had before, or differs from it in scheme and
/// host only; or its link, which no other item and no other entry bears; or it repeats such an entry
/// byte for byte.
pub(super) fn without<'a>(
    snapshot: &Snapshot,
    document: &FeedDocument<'a>,
) -> Option<FeedDocument<'a>> {
    if !snapshot.known.iter().any(Known::is_redacted) {
        return None;
    }
    let names = identity::natives(document);
    let matching = identity::matching(snapshot, document, &names, &Without::default());
    let is_redacted = |at: usize| snapshot.known.get(at).is_some_and(Known::is_redacted);
    let mut out: HashSet<usize> =
        matching.pairs.iter().filter(|p| is_redacted(p.known)).map(|p| p.entry).collect();
    let links = links(snapshot, document);
    let redacted: HashSet<&str> = snapshot
        .known
        .iter()
        .filter(|known| known.is_redacted())
        .flat_map(|known| known.aliases.iter().chain([&known.native_shown]))
        .map(String::as_str)
        .collect();
    for at in &matching.fresh {
        let (Some(entry), Some(name)) = (document.entries.get(*at), names.get(*at)) else {
            continue;
        };
        let link = entry.link.as_deref().map(identity::plain_link);
        let by_title =
            name.shown.starts_with("title:") && redacted.contains(veiled(&name.shown).as_str());
        if by_title || link.is_some_and(|link| links.contains(&link)) {
            out.insert(*at);
        }
    }
    if out.is_empty() {
        return None;
    }
    let print = |at: &usize| document.entries.get(*at).map(diff::bytes_print);
    let prints: HashSet<u64> = out.iter().filter_map(print).collect();
    let rest = document.entries.iter().enumerate();
    let rest =
        rest.filter(|(at, entry)| !out.contains(at) && !prints.contains(&diff::bytes_print(entry)));
    Some(document.with_entries(rest.map(|(_, entry)| entry.clone()).collect()))
}

/// Links that one redacted item bears, no other item, and at most one entry.
fn links(snapshot: &Snapshot, document: &FeedDocument<'_>) -> HashSet<String> {
    let mut bearers: HashMap<String, (usize, usize)> = HashMap::new();
    for known in &snapshot.known {
        let Some(link) = &known.link else { continue };
        let (redacted, others) = bearers.entry(identity::plain_link(link)).or_default();
        *(if known.is_redacted() { redacted } else { others }) += 1;
    }
    let mut entries: HashMap<String, usize> = HashMap::new();
    for link in document.entries.iter().filter_map(|entry| entry.link.as_deref()) {
        *entries.entry(identity::plain_link(link)).or_default() += 1;
    }
    bearers.retain(|link, (redacted, others)| {
        *redacted == 1 && *others == 0 && entries.get(link).copied() == Some(1)
    });
    bearers.into_keys().collect()
}
