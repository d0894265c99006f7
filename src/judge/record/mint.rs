//! New sync ids and published ids.

use super::Observation;
use super::draft::ChangeDraft;
use super::newcomer::newcomer;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{EndpointId, Entry, FeedName, LedgerEntry, SyncId, ValueError};
use tidegate_core::short_hash::{ID_BYTES, base32};

/// Mints the sync id of a new item: `<endpoint>.<base32 of a hash of (feed, identity, ordinal)>`
/// (READINGS 1, row 22). The ordinal counts the ids minted from this identity in this feed, so that
/// an id that is used again by another post gets its own; `used` holds every id of the feed.
fn sync_id(
    endpoint: &EndpointId,
    feed: &FeedName,
    native: &str,
    used: &HashSet<SyncId>,
) -> Result<SyncId, ValueError> {
    let mut ordinal: u64 = 0;
    // One of the first `used.len() + 1` ordinals is free.
    loop {
        let id = SyncId::new(&format!("{endpoint}.{}", hash(feed, native, ordinal)))?;
        if !used.contains(&id) || ordinal > used.len() as u64 {
            return Ok(id);
        }
        ordinal += 1;
    }
}

/// The sync id that a new item of this native identity gets where none of the feed has it.
pub(super) fn first_sync_id(round: &Observation<'_>, native: &str) -> Option<SyncId> {
    sync_id(round.endpoint, round.feed, native, &HashSet::new()).ok()
}

/// What new items of a feed may be called.
pub(super) struct NewIds {
    /// The ledger keys in use, and how far each identity has been numbered.
    keys: HashSet<String>,
    numbered: HashMap<String, u64>,
    used: HashSet<SyncId>,
    /// Ids that an item was first published with and does not go by any more.
    left: HashSet<String>,
}

impl NewIds {
    /// By what the ledger has, as it was and as it stands in a draft.
    pub(super) fn new(draft: &ChangeDraft<'_>) -> Self {
        let all = draft.snapshot.known.iter().chain(draft.ledger());
        let left = draft.ledger().filter(|known| known.published_id != known.native_shown);
        Self {
            keys: all.map(|known| known.native.clone()).collect(),
            numbered: HashMap::new(),
            used: draft.ledger().map(|known| known.id.clone()).collect(),
            left: left.map(|known| known.published_id.clone()).collect(),
        }
    }

    /// Takes a key for an entry: its native identity where that is free, else with the link, else
    /// with the title, else with a number.
    pub(super) fn key(&mut self, entry: &Entry<'_>, native: &str) -> String {
        let with = |suffix: &str| format!("{native}##{suffix}");
        let link = entry.link.as_deref().map(with);
        let title = entry.title.as_deref().map(with);
        let candidates = [Some(native.to_owned()), link, title].into_iter().flatten();
        let mut key = candidates.into_iter().find(|key| !self.keys.contains(key));
        let number = self.numbered.entry(native.to_owned()).or_insert(1);
        loop {
            // Ends: there are more numbers than keys in use.
            let free = key.take().unwrap_or_else(|| {
                *number += 1;
                with(&number.to_string())
            });
            if self.keys.insert(free.clone()) {
                return free;
            }
        }
    }

    /// The item that an entry becomes, under ids of its own.
    pub(super) fn newcomer(
        &mut self,
        draft: &ChangeDraft<'_>,
        entry: &Entry<'_>,
        native: &str,
    ) -> Result<LedgerEntry, ValueError> {
        let key = self.key(entry, native);
        let id = sync_id(draft.round.endpoint, draft.round.feed, &key, &self.used)?;
        self.used.insert(id.clone());
        Ok(newcomer(entry, native, &key, id, |id| self.left.contains(id), draft))
    }
}

fn hash(feed: &FeedName, native: &str, ordinal: u64) -> String {
    let mut sha = Sha256::new();
    for part in [feed.as_str().as_bytes(), native.as_bytes(), &ordinal.to_be_bytes()] {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part);
    }
    base32(sha, ID_BYTES)
}

/// The id that an entry is published with, for ever: its own, else one made of its sync id
/// (CONTRACT, Words).
///
/// `taken` says whether an item that goes by another id now was first published with it: readers
/// would take the two for one.
pub fn published_id(entry: &Entry<'_>, id: &SyncId, taken: impl Fn(&str) -> bool) -> String {
    match entry.native_id.as_deref().map(str::trim).filter(|id| !id.is_empty()) {
        Some(native) if !taken(native) => native.to_owned(),
        _ => made_id(id),
    }
}

/// The id that an item is published with which has none of its own.
pub(super) fn made_id(id: &SyncId) -> String {
    format!("urn:x-tidegate:{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_that_is_used_again_gets_its_own_id() {
        let endpoint = EndpointId::own("gate.example").unwrap();
        let feed = FeedName::new("news").unwrap();
        let mut used = HashSet::new();
        let first = sync_id(&endpoint, &feed, "urn:1", &used).unwrap();
        assert_eq!(sync_id(&endpoint, &feed, "urn:1", &used).unwrap(), first);
        used.insert(first.clone());
        let second = sync_id(&endpoint, &feed, "urn:1", &used).unwrap();
        assert_ne!(first, second);
        let (by, hash) = first.as_str().rsplit_once('.').unwrap();
        assert_eq!(by, "gate.example");
        assert_eq!(hash.len(), 32);
        assert!(hash.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()));
    }

    #[test]
    fn two_gateways_and_two_feeds_mint_unequal_ids() {
        let used = HashSet::new();
        let mint = |endpoint: &str, feed: &str| {
            let endpoint = EndpointId::own(endpoint).unwrap();
            sync_id(&endpoint, &FeedName::new(feed).unwrap(), "urn:1", &used).unwrap()
        };
        assert_ne!(mint("a", "news"), mint("b", "news"));
        assert_ne!(mint("a", "news"), mint("a", "other"));
    }
}
