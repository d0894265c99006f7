//! New sync ids and published ids.

use super::Observation;
use super::draft::ChangeDraft;
use super::newcomer::newcomer;
use foldhash::{HashMap, HashMapExt as _, HashSet};
use sha2::{Digest, Sha256};
use std::cell::OnceCell;
use tidegate_core::model::{EndpointId, Entry, FeedName, LedgerEntry, SyncId, ValueError};
use tidegate_core::short_hash::{ID_BYTES, base32};

/// The sync id of a new item: `<endpoint>.<base32 of a hash of (feed, identity, ordinal)>` (READINGS 1, row 22). The
/// ordinal counts the ids minted from this identity in this feed, so that an id that is used again by another post gets
/// its own.
fn sync_id(
    endpoint: &EndpointId,
    feed: &FeedName,
    native: &str,
    ordinal: u64,
) -> Result<SyncId, ValueError> {
    let mut sha = Sha256::new();
    for part in [feed.as_str().as_bytes(), native.as_bytes(), &ordinal.to_be_bytes()] {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part);
    }
    SyncId::new(&format!("{endpoint}.{}", base32(sha, ID_BYTES)))
}

/// The sync id that a new item of this native identity gets where none of the feed has it.
pub(super) fn first_sync_id(observation: &Observation<'_>, native: &str) -> Option<SyncId> {
    sync_id(observation.endpoint, observation.feed, native, 0).ok()
}

/// What new items of a feed may be called.
pub(super) struct NewIds {
    /// How far each identity has been numbered.
    numbered: HashMap<String, u64>,
    /// How many items of the ledger bear each identity; counted once an identity is used again.
    bearers: OnceCell<HashMap<String, u64>>,
    used: HashSet<SyncId>,
    /// Ids that an item was first published with and does not go by any more.
    left: HashSet<String>,
}

impl NewIds {
    /// By what the ledger has in a draft.
    pub(super) fn new(draft: &ChangeDraft<'_>) -> Self {
        let left = draft.ledger().filter(|known| known.published_id != known.native_shown);
        Self {
            numbered: HashMap::new(),
            bearers: OnceCell::new(),
            used: draft.ledger().map(|known| known.id.clone()).collect(),
            left: left.map(|known| known.published_id.clone()).collect(),
        }
    }

    /// The item that an entry becomes, under ids of its own.
    pub(super) fn newcomer(
        &mut self,
        draft: &ChangeDraft<'_>,
        entry: &Entry<'_>,
        native: &str,
    ) -> Result<LedgerEntry, ValueError> {
        let Observation { endpoint, feed, .. } = draft.observation;
        let ordinal = self.numbered.entry(native.to_owned()).or_default();
        // Ends: there are more ordinals than ids in use.
        let id = loop {
            let id = sync_id(endpoint, feed, native, *ordinal)?;
            *ordinal += 1;
            if self.used.insert(id.clone()) {
                break id;
            }
            // If an ordinal is taken, each item with this identity may have taken one: continue after their number.
            let names = || draft.ledger().map(|known| known.native_shown.clone());
            let bearers = self.bearers.get_or_init(|| crate::count(names()));
            *ordinal = bearers.get(native).map_or(*ordinal, |count| (*ordinal).max(*count));
        };
        Ok(newcomer(entry, native, id, |id| self.left.contains(id), draft))
    }
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
    fn an_identity_that_is_used_again_or_elsewhere_gets_another_id() {
        let mint = |endpoint: &str, feed: &str, ordinal| {
            let endpoint = EndpointId::own(endpoint).unwrap();
            sync_id(&endpoint, &FeedName::new(feed).unwrap(), "urn:1", ordinal).unwrap()
        };
        let first = mint("gate.example", "news", 0);
        assert_eq!(mint("gate.example", "news", 0), first);
        for other in [
            mint("gate.example", "news", 1),
            mint("b", "news", 0),
            mint("gate.example", "other", 0),
        ] {
            assert_ne!(other, first);
        }
        let (by, hash) = first.as_str().rsplit_once('.').unwrap();
        assert_eq!((by, hash.len()), ("gate.example", 32));
        assert!(hash.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()));
    }
}
