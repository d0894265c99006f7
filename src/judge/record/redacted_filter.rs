//! Entries of a document that are redacted items: they are taken out before anything is judged, as
//! if their publisher did not list them any more.

use crate::diff;
use crate::identity;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{Entry, FeedDocument, Incoming, LedgerEntry, Markup, Snapshot, Time};
use tidegate_core::short_hash::{ID_BYTES, base32};
use tidegate_core::xml::plain_address::{hostless, plain_link};

/// A name that tells nothing of the one it stands for, and is always the same for it.
pub(super) fn veiled(name: &str) -> String {
    format!("redacted:{}", base32(Sha256::new_with_prefix(name), ID_BYTES))
}

/// The document without the entries that are redacted items; `None` where it has none.
///
/// Such an entry bears the item's id, or one that it had before, or one that differs from it in scheme, or
/// in scheme and host with the same date; or its link, which no other item and no other entry bears; or it repeats such an entry
/// byte for byte.
pub(super) fn without<'a>(
    snapshot: &Snapshot,
    document: &FeedDocument<'a>,
) -> Option<FeedDocument<'a>> {
    let mut kept_out = KnownNames::new(snapshot.known.iter(), LedgerEntry::is_redacted);
    if kept_out.is_empty() {
        return None;
    }
    let mut links: HashSet<String> = HashSet::new();
    for link in document.entries.iter().filter_map(|entry| entry.link.as_deref()) {
        let link = plain_link(link);
        if links.contains(&link) {
            kept_out.links.remove(&link);
        }
        links.insert(link);
    }
    let out = document.entries.iter().filter(|entry| kept_out.has(entry));
    let prints: HashSet<u64> = out.map(diff::bytes_print).collect();
    let rest = document.entries.iter().filter(|entry| !prints.contains(&diff::bytes_print(entry)));
    (!prints.is_empty()).then(|| document.with_entries(rest.cloned().collect()))
}

/// By what items are known in a document, and in a version that is in conflict with another item.
#[derive(Debug, Default)]
pub(super) struct KnownNames {
    /// The ids that they bear or bore, and these without what changes while a page stays.
    names: HashSet<String>,
    links: HashSet<String>,
}

impl KnownNames {
    /// Of the items of a ledger for which `wanted` holds: the names that no other item bears, and the links
    /// that one item alone bears.
    pub(super) fn new<'a>(
        ledger: impl Iterator<Item = &'a LedgerEntry> + Clone,
        wanted: impl Fn(&LedgerEntry) -> bool,
    ) -> Self {
        if !ledger.clone().any(&wanted) {
            return Self::default();
        }
        let (mut names, mut others) = (HashSet::new(), HashSet::new());
        let mut bearers: HashMap<String, (usize, bool)> = HashMap::new();
        for known in ledger {
            let is_wanted = wanted(known);
            let all = known.aliases.iter().chain([&known.native_shown, &known.published_id]);
            let side = if is_wanted { &mut names } else { &mut others };
            side.extend(all.flat_map(|name| spellings(name, known.published)));
            if let Some(link) = &known.link {
                let (count, has_wanted) = bearers.entry(plain_link(link)).or_default();
                *count += 1;
                *has_wanted |= is_wanted;
            }
        }
        names.retain(|name| !others.contains(name));
        bearers.retain(|_, (count, has_wanted)| *count == 1 && *has_wanted);
        Self { names, links: bearers.into_keys().collect() }
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.links.is_empty()
    }

    /// Whether an entry is one of them.
    pub(super) fn has(&self, entry: &Entry<'_>) -> bool {
        let link = entry.link.as_deref().map(plain_link);
        spellings(&identity::native(entry), entry.published).any(|name| self.names.contains(&name))
            || link.is_some_and(|link| self.links.contains(&link))
    }

    /// Whether a version's entry is one of them. What cannot be read says nothing of it.
    pub(super) fn is(&self, markup: &Markup) -> bool {
        let read = || tidegate_format::parse::entry_again(markup);
        !self.is_empty() && read().is_some_and(|entry| self.has(&entry))
    }

    /// What an entry says of its item, without the conflicts that are one of them; `None` where it has
    /// none of these.
    pub(super) fn out_of(&self, said: &Incoming) -> Option<Incoming> {
        if !said.conflicts.iter().any(|version| self.is(&version.data)) {
            return None;
        }
        let kept = said.conflicts.iter().filter(|version| !self.is(&version.data));
        Some(Incoming {
            version: said.version.clone(),
            conflicts: kept.cloned().collect(),
            sse091: said.sse091,
            extras: said.extras.clone(),
        })
    }
}

/// A name as it is, without scheme, without host but with the date, and, where it is made of a title, veiled.
fn spellings(name: &str, published: Option<Time>) -> impl Iterator<Item = String> {
    let veiled = name.starts_with("title:").then(|| veiled(name));
    // Posts of two sites may have one path.
    let dated = hostless(name).map(|path| format!("{path} {published:?}"));
    [Some(name.to_owned()), Some(plain_link(name)), dated, veiled].into_iter().flatten()
}
