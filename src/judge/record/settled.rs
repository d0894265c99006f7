//! Which items a document is judged with, and by which keys the others are found.
//!
//! A settled item is retired or deleted, an archive has its last state, and nothing of it is pending: no absence,
//! conflict or waiting change. It was made from plain entries, and no other item has its native id. A document concerns
//! a settled item only if they share a key ([`same_item::item_keys`]). So judging with the unsettled items and those
//! that [`ledger_query`] finds gives the same verdict as judging with the whole ledger; in other cases the query asks
//! for the whole ledger.

use super::draft::ChangeDraft;
use super::{Observation, Verdict, mint};
use crate::{count, same_item};
use foldhash::{HashMap, HashSet};
use std::collections::BTreeSet;
use tidegate_core::model::{
    Chain, Deletions, Entry, Event, EventKind, FeedDocument, IndexKey, IndexUpdate, ItemStatus,
    LedgerEntry, LedgerQuery, Origin, ReindexedItem, Snapshot, SyncId,
};

/// A ledger of no more items has no index, and is read whole.
const READ_WHOLE: usize = 128;

/// What judging documents needs of the items that the snapshot lacks: of the settled ones, and of those that left the
/// ledger.
pub fn ledger_query(observation: &Observation<'_>, documents: &[&FeedDocument<'_>]) -> LedgerQuery {
    let nothing = LedgerQuery::default();
    let Some(snapshot) = observation.snapshot else { return nothing };
    let has_evicted = snapshot.state.evictions.count > 0;
    if snapshot.settled.is_none() && !has_evicted {
        return nothing;
    }
    let borne: HashSet<&str> = snapshot.known.iter().map(|k| k.native_shown.as_str()).collect();
    let unmatched = documents.iter().flat_map(|document| unmatched(snapshot, document));
    let unmatched: Vec<(&Entry<'_>, String)> = unmatched.collect();
    let ids = unmatched.iter().filter_map(|(_, native)| mint::first_sync_id(observation, native));
    let ids: BTreeSet<SyncId> = ids.collect();
    let tells_deletions = observation.options.deletions != Deletions::Off;
    let deleted_ids = documents.iter().flat_map(|document| &document.tombstones);
    let deleted_ids = deleted_ids.map(|tombstone| tombstone.native_id.as_str());
    let deleted_ids: Vec<&str> =
        deleted_ids.filter(|name| tells_deletions && !borne.contains(name)).collect();
    let mut query = LedgerQuery::default();
    if has_evicted {
        let held = snapshot.kept.iter().map(|held| same_item::native(&held.entry));
        let held = held.filter(|name| !borne.contains(name.as_str()));
        let shared = documents.iter().flat_map(|document| &document.entries);
        let shared = shared.filter_map(|entry| entry.shared()).map(|incoming| incoming.id());
        let shared = shared.filter(|id| snapshot.find(id).is_none());
        let names = unmatched.iter().map(|(_, native)| native.clone()).chain(held);
        let names = names.chain(deleted_ids.iter().map(|name| (*name).to_owned()));
        let names = names.chain(shared.chain(&ids).map(SyncId::to_string));
        query.names = names.collect::<BTreeSet<_>>().into_iter().collect();
    }
    if snapshot.settled.is_none() {
        return query;
    }
    let mut keys: BTreeSet<IndexKey> = deleted_ids.into_iter().map(same_item::name_key).collect();
    let ignore = &observation.options.ignore;
    let of_entry =
        |(entry, name): &(&Entry<'_>, String)| same_item::entry_keys(entry, name, ignore);
    keys.extend(unmatched.iter().flat_map(of_entry));
    let is_shared = observation.options.sharing.local
        || documents.iter().any(|document| {
            document.sharing.is_some() || document.entries.iter().any(|e| e.sync.is_some())
        });
    // What was held is matched with everything again when the hold ends.
    query.whole = is_shared
        || snapshot.state.hold.is_some()
        || !snapshot.kept.is_empty()
        || keys.len() > LedgerQuery::KEYS_LIMIT;
    if query.whole {
        return query;
    }
    let shown = snapshot.known.iter().filter(|known| !known.is_hidden()).count();
    let unread = snapshot.size() - snapshot.known.len();
    let over = (shown + unread + unmatched.len()).saturating_sub(observation.items);
    LedgerQuery {
        keys: keys.into_iter().collect(),
        ids: ids.into_iter().collect(),
        oldest: if over == 0 { 0 } else { over.saturating_add(OLDEST_MORE).min(OLDEST_LIMIT) },
        ..query
    }
}

/// The entries, with their names, that are not for certain the one item which bears their name: others of the
/// document bear it too, or no item or several do.
fn unmatched<'d, 'a>(
    snapshot: &Snapshot,
    document: &'d FeedDocument<'a>,
) -> Vec<(&'d Entry<'a>, String)> {
    let names = same_item::natives(document);
    let known = count(snapshot.known.iter().map(|known| known.native_shown.as_str()));
    let listed = count(names.iter().map(String::as_str));
    let is_one = |name: &str| known.get(name) == Some(&1) && listed.get(name) == Some(&1);
    let is_matched: Vec<bool> = names.iter().map(|name| is_one(name)).collect();
    let all = document.entries.iter().zip(names).zip(is_matched);
    all.filter(|(_, is_matched)| !is_matched).map(|(unmatched, _)| unmatched).collect()
}

/// Of the oldest items so many more are read than are to leave, for some of them may have to stay.
const OLDEST_MORE: usize = 32;
/// The most of the oldest items that are read with a document; maintenance lets the rest leave.
const OLDEST_LIMIT: usize = 512;

/// After this many judgements of a document whose verdict needs further items, the whole ledger is read.
const MAX_JUDGEMENTS: usize = 4;

/// Returns the query for items that a verdict turned out to need and its snapshot lacks. If the query finds any, the
/// document must be judged again with them. `judgements`: the number of judgements so far; after some of them the whole
/// ledger is queried, so that this ends.
pub fn wanted_after(
    observation: &Observation<'_>,
    verdict: &Verdict,
    judgements: usize,
) -> LedgerQuery {
    let Some(snapshot) = observation.snapshot else { return LedgerQuery::default() };
    // What may be let out of a held document is compared with all that ever was, and so is what seems to be older
    // than that.
    let is_older = |event: &Event| event.kind == EventKind::Backfilled;
    // Only all that ever came says if a missing item was the newest, by which a doubt may be resolved.
    let is_doubted =
        |known: &LedgerEntry| known.absence.as_ref().is_some_and(|it| !it.doubts.is_empty());
    let is_resolved = |known: &LedgerEntry| {
        !is_doubted(known) && snapshot.find(&known.id).is_some_and(is_doubted)
    };
    let known = verdict.change.iter().flat_map(|change| &change.known);
    let is_part = snapshot.settled.is_some();
    let needs_all = judgements >= MAX_JUDGEMENTS
        || verdict.held.is_some()
        || verdict.events().iter().any(is_older)
        || known.clone().any(is_resolved);
    // No id is given out twice.
    let new = known.filter(|known| snapshot.find(&known.id).is_none());
    let mut ids: Vec<SyncId> = new.map(|known| known.id.clone()).collect();
    let has_evicted = snapshot.state.evictions.count > 0;
    let names = ids.iter().filter(|_| has_evicted).map(SyncId::to_string).collect();
    if !is_part || needs_all {
        ids.clear();
    }
    LedgerQuery { whole: is_part && needs_all, ids, names, ..LedgerQuery::default() }
}

/// Whether an item outside the order is to be seen by every document.
fn is_unsettled(known: &LedgerEntry, chain: &Chain) -> bool {
    let is_out = matches!(known.standing, ItemStatus::Retired { .. } | ItemStatus::Deleted { .. });
    !is_out
        || !chain.is_sealed(known.tick)
        || known.absence.is_some()
        || known.conflicts > 0
        || known.origin != Origin::Observed
        || known.noise.waiting.is_some()
        || known.noise.held
}

/// What a change makes of the index of its ledger. `evicted`: what leaves the ledger with it.
pub(super) fn index(draft: &ChangeDraft<'_>, evicted: &[LedgerEntry]) -> IndexUpdate {
    let snapshot = draft.snapshot;
    let left: HashSet<&SyncId> = evicted.iter().map(|stub| &stub.id).collect();
    let stays = |known: &&LedgerEntry| !known.is_evicted() && !left.contains(&known.id);
    let ledger: Vec<&LedgerEntry> = draft.ledger().filter(stays).collect();
    if snapshot.unsettled.is_none() && ledger.len() <= READ_WHOLE {
        return IndexUpdate::NONE;
    }
    let bearers = count(ledger.iter().map(|known| known.native_shown.as_str()));
    let order = draft.order.as_deref().unwrap_or(draft.old_order());
    let shown: HashSet<&SyncId> = order.iter().collect();
    // Of several with one name the document may mean any.
    let has_namesake = |known: &LedgerEntry| bearers.get(known.native_shown.as_str()) != Some(&1);
    let chain = &draft.state.archives;
    let unsettled: Vec<SyncId> = ledger
        .iter()
        .filter(|known| !shown.contains(&known.id))
        .filter(|known| is_unsettled(known, chain) || has_namesake(known))
        .map(|known| known.id.clone())
        .collect();
    let is_changed = snapshot.unsettled.as_ref() != Some(&unsettled);
    // Each item as it was and as it is; where there was no index, all of them are new to it.
    let items: Vec<(Option<&LedgerEntry>, Option<&LedgerEntry>)> = match snapshot.unsettled {
        None => ledger.iter().map(|known| (None, Some(*known))).collect(),
        Some(_) => {
            let changed = draft.known.iter();
            let changed = changed.map(|(at, known)| (snapshot.known.get(*at), Some(known)));
            changed.chain(evicted.iter().map(|stub| (snapshot.find(&stub.id), None))).collect()
        }
    };
    // The keys in the store are those of fingerprints as they were.
    let outdated: HashMap<&SyncId, &[IndexKey]> =
        snapshot.outdated.iter().map(|(id, keys)| (id, keys.as_slice())).collect();
    let old_keys = |old: &LedgerEntry| match outdated.get(&old.id) {
        Some(keys) => keys.iter().copied().collect(),
        None => keys(old),
    };
    let items = items.into_iter().filter_map(|(old, new)| {
        let id = new.or(old)?.id.clone();
        let is_same = |(old, new): (&LedgerEntry, &LedgerEntry)| {
            !old.is_evicted() && !outdated.contains_key(&id) && same_item::has_same_keys(old, new)
        };
        if old.zip(new).is_some_and(is_same) {
            return None;
        }
        reindexed(id, &old.map(old_keys).unwrap_or_default(), &new.map(keys).unwrap_or_default())
    });
    IndexUpdate { unsettled: is_changed.then_some(unsettled), items: items.collect() }
}

/// The keys of an item; one that left the ledger has none.
fn keys(known: &LedgerEntry) -> BTreeSet<IndexKey> {
    if known.is_evicted() {
        return BTreeSet::new();
    }
    same_item::item_keys(known).into_iter().collect()
}

/// What changes of the keys of an item, where anything does.
fn reindexed(
    id: SyncId,
    old: &BTreeSet<IndexKey>,
    new: &BTreeSet<IndexKey>,
) -> Option<ReindexedItem> {
    let added: Vec<IndexKey> = new.difference(old).copied().collect();
    let removed: Vec<IndexKey> = old.difference(new).copied().collect();
    let is_changed = !added.is_empty() || !removed.is_empty();
    is_changed.then_some(ReindexedItem { id, added, removed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::news;
    use crate::record::refreshed;
    use crate::testing::{read, rss, with_observation};
    use tidegate_core::model::{Format, Ignore, Time};
    use tidegate_format::parse;

    /// The index has the keys of an item by the list that was in force when it was fingerprinted.
    #[test]
    fn after_another_list_of_the_operator_the_old_keys_go_and_the_new_ones_come() {
        let note = "<guid>urn:a</guid><description>Words of a note, 7 views</description>";
        let text = rss(&format!("<item>{note}</item>"));
        let document = read(&text);
        let entry = &document.entries[0];
        let prints = news::fingerprint(entry, &[]).prints;
        let standing = ItemStatus::Current;
        let known = LedgerEntry { standing, prints, ..LedgerEntry::left("urn:a") };
        let kept =
            std::collections::HashMap::from([(known.id.clone(), parse::own(&document, entry))]);
        let ignore = [Ignore::new("description", Some("[0-9]+ views")).unwrap()];
        let now = Time::from_unix(1_767_225_600);
        let first = Snapshot::untouched(Format::Rss20, now);
        let (unsettled, known) = (Some(Vec::new()), vec![known]);
        let stored = Snapshot { unsettled, known, ..first };
        let snapshot = refreshed(&stored, &kept, &ignore);
        let update = with_observation(&snapshot, now, |observation| {
            let mut draft = ChangeDraft::new(observation, &snapshot);
            draft.change(0, |item| item.touched = 1);
            index(&draft, &[])
        });
        let [item] = update.items.as_slice() else { panic!("{update:?}") };
        let keys = |of: &Snapshot| BTreeSet::from_iter(same_item::item_keys(&of.known[0]));
        let (old, new) = (keys(&stored), keys(&snapshot));
        assert_eq!(item.removed, old.difference(&new).copied().collect::<Vec<_>>());
        assert_eq!(item.added, new.difference(&old).copied().collect::<Vec<_>>());
        assert_eq!((item.removed.len(), item.added.len()), (1, 1));
    }
}
