//! The ledger of a feed by item and key: what a document is judged with is read, and nothing else of it.
//!
//! A ledger has an index from the first commit on that says which of its items are not settled
//! ([`tidegate_core::model::IndexUpdate`]). Until then, and after an import, it is read whole.

use super::records::Records;
use super::{ahead, conflicts, keys, read};
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::{CommitError, StoreError};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;
use tidegate_core::model::{
    Change, FeedName, FeedState, FoundItems, LedgerEntry, LedgerQuery, SettledItems, Snapshot,
    SyncId, Tick,
};

/// Whether the ledger has an index.
pub(super) fn has_index(records: &Records, feed: &FeedName) -> Result<bool, StoreError> {
    records.contains(Class::Unsettled, &keys::feed(feed))
}

/// The items outside the order that are not settled; `None` where the ledger has no index.
pub(super) fn unsettled_ids(
    records: &Records,
    feed: &FeedName,
) -> Result<Option<Vec<SyncId>>, StoreError> {
    records.record(Class::Unsettled, &keys::feed(feed))
}

/// The order and the items that are not settled; the whole ledger where it has no index.
pub(super) fn unsettled(
    records: &Records,
    feed: &FeedName,
    state: &FeedState,
    cutoff: Tick,
) -> Result<Option<Snapshot>, StoreError> {
    let Some(unsettled) = unsettled_ids(records, feed)? else {
        return read::snapshot(records, feed, state);
    };
    let order = read::order(records, feed)?;
    let ids: BTreeSet<&SyncId> = order.iter().chain(&unsettled).collect();
    let near = ahead::of_ledger(records, feed, ids.iter().copied())?;
    let entry = |id: &SyncId| near.expected(Class::Ledger, &keys::item(feed, id));
    let known: Vec<LedgerEntry> = ids.into_iter().map(entry).collect::<Result<_, _>>()?;
    let (mut living, mut tombstones) = (state.living, state.tombstones);
    for known in known.iter().filter(|known| !known.is_hidden()) {
        let count = if known.is_deleted() { &mut tombstones } else { &mut living };
        *count = count.saturating_sub(1);
    }
    let left_window = last_before(records, feed, cutoff)?;
    let settled = SettledItems { living, tombstones, left_window, after: None };
    Ok(Some(Snapshot {
        state: state.clone(),
        kept: if state.hold.is_some() { read::kept(records, feed)? } else { Vec::new() },
        // Maintenance drops archives, over the whole ledger.
        archives: Vec::new(),
        conflicts: conflicts::all(records, feed, &known)?,
        settled: Some(settled),
        unsettled: Some(unsettled),
        order,
        known,
    }))
}

/// The greatest tick of the ledger before this one.
fn last_before(records: &Records, feed: &FeedName, tick: Tick) -> Result<Option<Tick>, StoreError> {
    let begin = Bound::Included(keys::feed(feed));
    let range = (begin, Bound::Excluded(keys::from_tick(feed, tick)));
    let last = records.first(Class::ByTick, range, KeyOrder::Descending)?;
    last.map(|(key, _)| tick_of(records, feed, &key)).transpose()
}

fn tick_of(records: &Records, feed: &FeedName, key: &[u8]) -> Result<Tick, StoreError> {
    let tick = keys::by_tick_tick(feed, key);
    tick.ok_or_else(|| records.damaged(Class::ByTick, key, "it names no tick"))
}

/// The items that a query asks for.
pub(super) fn find(
    records: &Records,
    feed: &FeedName,
    query: &LedgerQuery,
) -> Result<FoundItems, StoreError> {
    let mut ids: BTreeSet<SyncId> = query.ids.iter().cloned().collect();
    for key in &query.keys {
        let found = records.entries(Class::LedgerIndex, &keys::indexed(feed, *key));
        for entry in found.take(LedgerQuery::ITEMS_OF_KEY) {
            let (key, _) = entry?;
            let unnamed = || records.damaged(Class::LedgerIndex, &key, "it names no item");
            ids.insert(keys::indexed_id(feed, &key).ok_or_else(unnamed)?);
        }
    }
    let mut oldest_to = None;
    if query.oldest > 0 {
        let all = beginning_with(&keys::feed(feed));
        for entry in records.range(Class::ByTick, all, KeyOrder::Ascending).take(query.oldest) {
            let (key, _) = entry?;
            let id = keys::by_tick_id(feed, &key);
            ids.insert(id.ok_or_else(|| records.damaged(Class::ByTick, &key, "it names no item"))?);
            // More items may have the last of them.
            let tick = tick_of(records, feed, &key)?.time();
            oldest_to = Some(Tick::at(tick.minus(Duration::from_secs(1))));
        }
    }
    let records = &ahead::of_ledger(records, feed, ids.iter())?;
    let mut items = Vec::with_capacity(ids.len());
    for id in ids {
        items.extend(records.record::<LedgerEntry>(Class::Ledger, &keys::item(feed, &id))?);
    }
    Ok(FoundItems { items, oldest_to })
}

/// Plans what a change makes of the index.
pub(super) fn plan(
    records: &Records,
    change: &Change,
    planned: &mut Writes,
) -> Result<(), CommitError> {
    let feed = &change.feed;
    for item in &change.index.items {
        let mut writes = Writes::new();
        for key in &item.removed {
            let place = keys::indexed_item(feed, *key, &item.id);
            writes.insert((Class::LedgerIndex, place), None);
        }
        for key in &item.added {
            let place = keys::indexed_item(feed, *key, &item.id);
            writes.insert((Class::LedgerIndex, place), Some(Vec::new()));
        }
        planned.extend(writes);
    }
    let mut writes = Writes::new();
    if let Some(unsettled) = &change.index.unsettled {
        records.put(&mut writes, Class::Unsettled, keys::feed(feed), unsettled)?;
    }
    planned.extend(writes);
    Ok(())
}
