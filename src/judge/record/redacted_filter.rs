//! Entries of a document that are redacted items: they are taken out before anything is judged, as
//! if their publisher did not list them any more.

use super::known_names::KnownNames;
use crate::news;
use crate::same_item;
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{Entry, FeedDocument, Incoming, LedgerEntry, Markup, Snapshot};
use tidegate_core::xml::plain_address::plain_link;

/// The document without the entries that are redacted items; `None` where it has none.
///
/// Such an entry bears the item's id, or one that it had before, or differs from it in scheme and
/// host only; or its link, which no other item and no other entry bears; or it repeats such an entry
/// byte for byte. One that bears the id of another item too is told apart when it is matched.
pub(super) fn without<'a>(
    snapshot: &Snapshot,
    document: &FeedDocument<'a>,
) -> Option<FeedDocument<'a>> {
    let redacted = KnownNames::new(snapshot.known.iter(), LedgerEntry::is_redacted);
    if redacted.is_empty() {
        return None;
    }
    let others = snapshot.known.iter().filter(|known| !known.is_redacted());
    let others: HashSet<&str> = others.map(|known| known.native_shown.as_str()).collect();
    let mut links: HashMap<String, usize> = HashMap::new();
    for link in document.entries.iter().filter_map(|entry| entry.link.as_deref()) {
        *links.entry(plain_link(link)).or_default() += 1;
    }
    let has_link_alone = |entry: &Entry<'_>| {
        let link = entry.link.as_deref().and_then(|link| links.get(&plain_link(link)));
        link == Some(&1) && redacted.with_link(entry) == 1
    };
    let is_out = |entry: &&Entry<'a>| {
        (redacted.has_id(entry) || has_link_alone(entry))
            && !others.contains(same_item::native(entry).as_str())
    };
    let out: HashSet<u64> = document.entries.iter().filter(is_out).map(news::bytes_print).collect();
    let rest = document.entries.iter().filter(|entry| !out.contains(&news::bytes_print(entry)));
    (!out.is_empty()).then(|| document.with_entries(rest.cloned().collect()))
}

/// Whether a version's entry is one of the redacted items. What cannot be read says nothing of it.
pub(super) fn is_redacted(redacted: &KnownNames, markup: &Markup) -> bool {
    let entry = || tidegate_format::parse::entry_again(markup);
    !redacted.is_empty()
        && entry().is_some_and(|entry| redacted.has_id(&entry) || redacted.with_link(&entry) > 0)
}

/// What an entry says of its item, without the conflicts that are redacted items; `None` where it has
/// none of these.
pub(super) fn without_redacted(redacted: &KnownNames, said: &Incoming) -> Option<Incoming> {
    let mut conflicts = said.conflicts.clone();
    conflicts.retain(|version| !is_redacted(redacted, &version.data));
    (conflicts.len() < said.conflicts.len()).then(|| Incoming { conflicts, ..said.clone() })
}
