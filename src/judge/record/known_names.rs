//! The names by which items are known where nothing else says which entry is which: in an older document of the
//! publisher, in an ill-formed one, or after an item was redacted.

use crate::same_item;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{Entry, LedgerEntry};
use tidegate_core::short_hash::{ID_BYTES, base32};
use tidegate_core::xml::plain_address::{hostless, plain_link};

/// The ids that some items of a ledger bear or bore, and their links.
#[derive(Debug, Default)]
pub(super) struct KnownNames {
    ids: HashSet<String>,
    /// By their links, how many of the items and how many others have each.
    links: HashMap<String, (u32, u32)>,
}

impl KnownNames {
    /// The names of the items for which `is_meant` holds.
    pub(super) fn new<'a>(
        ledger: impl Iterator<Item = &'a LedgerEntry> + Clone,
        is_meant: impl Fn(&LedgerEntry) -> bool,
    ) -> Self {
        let mut all = Self::default();
        for known in ledger.clone().filter(|known| is_meant(known)) {
            let names = known.aliases.iter().chain([&known.native_shown, &known.published_id]);
            all.ids.extend(names.flat_map(|name| spellings(name)));
        }
        if all.is_empty() {
            return all;
        }
        for known in ledger {
            if let Some(link) = &known.link {
                let (meant, others) = all.links.entry(plain_link(link)).or_default();
                *(if is_meant(known) { meant } else { others }) += 1;
            }
        }
        all
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether one of the items bears or bore the id of an entry, maybe with another scheme and host.
    pub(super) fn has_id(&self, entry: &Entry<'_>) -> bool {
        spellings(&same_item::native(entry)).any(|id| self.ids.contains(&id))
    }

    /// How many of the items have the link of an entry; none where others have it too.
    pub(super) fn with_link(&self, entry: &Entry<'_>) -> u32 {
        let bearers = entry.link.as_deref().and_then(|link| self.links.get(&plain_link(link)));
        bearers.filter(|(_, others)| *others == 0).map_or(0, |(meant, _)| *meant)
    }
}

/// A name that tells nothing of the one it stands for, and is always the same for it.
pub(super) fn veiled(name: &str) -> String {
    format!("redacted:{}", base32(Sha256::new_with_prefix(name), ID_BYTES))
}

/// An id as it is, without scheme or host, and, where it is made of a title, veiled.
fn spellings(id: &str) -> impl Iterator<Item = String> {
    let veiled = id.starts_with("title:").then(|| veiled(id));
    [Some(id.to_owned()), Some(plain_link(id)), hostless(id), veiled].into_iter().flatten()
}
