//! Entries of a document that are redacted items: they are taken out before anything is judged, as
//! if their publisher did not list them any more.

use super::Observation;
use crate::{news, same_item};
use foldhash::HashSet;
use sha2::{Digest, Sha256};
use tidegate_core::model::{FeedDocument, FeedOptions, Incoming, LedgerEntry, Markup, Snapshot};
use tidegate_core::short_hash::{ID_BYTES, base32};
use tidegate_core::xml::plain_address::plain_link;

/// A name that tells nothing of the one it stands for, and is always the same for it.
pub(super) fn veiled(name: &str) -> String {
    format!("redacted:{}", base32(Sha256::new_with_prefix(name), ID_BYTES))
}

/// The document without the entries that are redacted items; `None` if it has none.
///
/// Such an entry bears the item's id, or one that it had before, or differs from it in scheme and
/// host only; or its link, which no other item, redacted or not, and no other entry bears; or it repeats such an entry
/// byte for byte.
pub(super) fn without<'a>(
    observation: &Observation<'_>,
    snapshot: &Snapshot,
    document: &FeedDocument<'a>,
) -> Option<FeedDocument<'a>> {
    if !snapshot.known.iter().any(LedgerEntry::is_redacted) {
        return None;
    }
    // Rules that are switched off count here.
    let ignore = observation.options.ignore.clone();
    let options = FeedOptions { ignore, ..FeedOptions::default() };
    let matching = same_item::matching(snapshot, document, &options);
    let is_redacted = |at: usize| snapshot.known.get(at).is_some_and(LedgerEntry::is_redacted);
    let mut out: HashSet<usize> =
        matching.pairs.iter().filter(|p| is_redacted(p.known)).map(|p| p.entry).collect();
    let kept_out = KeptOut::new(snapshot.known.iter(), LedgerEntry::is_redacted);
    let link_of = |at: usize| document.entries.get(at)?.link.as_deref().map(plain_link);
    let redacted = snapshot.known.iter().filter(|known| known.is_redacted());
    let of_items = crate::count(redacted.filter_map(|it| it.link.as_deref()).map(plain_link));
    let of_entries = crate::count((0..document.entries.len()).filter_map(link_of));
    let is_single =
        |link: &String| [&of_items, &of_entries].map(|of| of.get(link)) == [Some(&1); 2];
    out.extend(matching.fresh.iter().copied().filter(|at| {
        // An id tells apart what the matching told apart; a title that stands for one was veiled.
        let title = matching.names.get(*at).filter(|name| name.starts_with("title:"));
        let link = link_of(*at).filter(is_single);
        title.is_some_and(|title| kept_out.has_name(title))
            || link.is_some_and(|link| kept_out.links.contains(&link))
    }));
    if out.is_empty() {
        return None;
    }
    let print = |at: &usize| document.entries.get(*at).map(news::hash_entry);
    let prints: HashSet<u64> = out.iter().filter_map(print).collect();
    let rest = document.entries.iter().enumerate();
    let rest =
        rest.filter(|(at, entry)| !out.contains(at) && !prints.contains(&news::hash_entry(entry)));
    Some(document.with_entries(rest.map(|(_, entry)| entry.clone()).collect()))
}

/// The names and links of redacted items, by which unmatched entries and versions in conflict are recognized as them.
#[derive(Debug, Default)]
pub(super) struct KeptOut {
    /// The ids that they bear or bore, and these without what changes while a page stays.
    names: HashSet<String>,
    /// Their links, where no other item bears them.
    links: HashSet<String>,
}

impl KeptOut {
    /// The items of a ledger for which `wanted` holds.
    pub(super) fn new<'a>(
        ledger: impl Iterator<Item = &'a LedgerEntry> + Clone,
        wanted: impl Fn(&LedgerEntry) -> bool,
    ) -> Self {
        let mut all = Self::default();
        for known in ledger.clone().filter(|known| wanted(known)) {
            let names = known.aliases.iter().chain([&known.native_shown, &known.published_id]);
            all.names.extend(names.flat_map(|name| spellings(name)));
            all.links.extend(known.link.as_deref().map(plain_link));
        }
        if !all.links.is_empty() {
            for known in ledger.filter(|known| !wanted(known)) {
                let link = known.link.as_deref().map(plain_link);
                link.map(|link| all.links.remove(&link));
            }
        }
        all
    }

    /// Whether a version's entry is one of them. What cannot be read says nothing of it.
    pub(super) fn is(&self, markup: &Markup) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let Some(entry) = tidegate_format::parse::entry_again(markup) else { return false };
        let link = entry.link.as_deref().map(plain_link);
        self.has_name(&same_item::native(&entry))
            || link.is_some_and(|link| self.links.contains(&link))
    }

    /// Whether one of them bears or bore an id.
    fn has_name(&self, name: &str) -> bool {
        spellings(name).any(|name| self.names.contains(&name))
    }

    /// What an entry says of its item, without the conflicts that are one of them; `None` if it has
    /// none of these.
    pub(super) fn out_of(&self, incoming: &Incoming) -> Option<Incoming> {
        if !incoming.conflicts.iter().any(|version| self.is(&version.data)) {
            return None;
        }
        let kept = incoming.conflicts.iter().filter(|version| !self.is(&version.data));
        Some(Incoming {
            version: incoming.version.clone(),
            conflicts: kept.cloned().collect(),
            sse091: incoming.sse091,
            extras: incoming.extras.clone(),
        })
    }
}

/// A name as it is, without scheme and the like, and, where it is made of a title, veiled.
fn spellings(name: &str) -> impl Iterator<Item = String> {
    let veiled = name.starts_with("title:").then(|| veiled(name));
    [Some(name.to_owned()), Some(plain_link(name)), veiled].into_iter().flatten()
}
