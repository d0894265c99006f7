//! What is read at once where the database is reached by the network: the records that a change is planned with,
//! and those of the next items of a view. No answer depends on it: what was not read ahead is read when it is
//! asked for.

use super::keys;
use super::records::Records;
use crate::model::{Change, FeedName, SyncId};
use crate::store::StoreError;
use crate::store::engine::{Class, RecordKey};
use crate::store::record::HeadRecord;
use std::collections::BTreeSet;

/// The most items whose records are read at once.
pub(super) const ITEMS: usize = 256;
/// The most items of a change whose records are read ahead.
const ITEMS_OF_CHANGE: usize = 4096;
/// What a feed has one of and a change is planned with.
const OF_FEED: [Class; 7] = [
    Class::Floors,
    Class::Unfinished,
    Class::Skeletons,
    Class::Orders,
    Class::Kept,
    Class::Histories,
    Class::Unsettled,
];

/// With the records that a change is checked and planned with.
pub(super) fn of_change(records: &Records, change: &Change) -> Result<Records, StoreError> {
    if !records.is_far() {
        return Ok(records.clone());
    }
    let feed = &change.feed;
    let changed: BTreeSet<&SyncId> = change.known.iter().map(|known| &known.id).collect();
    let named = change.order.iter().flatten().filter(|id| !changed.contains(id));
    let all = changed.iter().copied().chain(named).take(ITEMS_OF_CHANGE);
    let mut wanted: BTreeSet<RecordKey> = OF_FEED.map(|class| (class, keys::feed(feed))).into();
    wanted.extend(all.map(|id| (Class::Heads, keys::item(feed, id))));
    wanted.extend(
        change.seals.iter().map(|seal| (Class::ArchiveIds, keys::archive_id(feed, &seal.id))),
    );
    let records = records.ahead(wanted)?;
    let mut wanted = BTreeSet::new();
    for id in changed.into_iter().take(ITEMS_OF_CHANGE) {
        if let Some(head) = records.record::<HeadRecord>(Class::Heads, &keys::item(feed, id))? {
            wanted.insert((Class::Versions, keys::version(feed, id, head.body)));
            wanted.insert((Class::Bodies, keys::version(feed, id, head.body)));
            wanted.extend(head.latest.then(|| (Class::Latest, keys::item(feed, id))));
        }
    }
    records.ahead(wanted)
}

/// With the ledger entries of these items.
pub(super) fn of_ledger<'a>(
    records: &Records,
    feed: &FeedName,
    ids: impl Iterator<Item = &'a SyncId>,
) -> Result<Records, StoreError> {
    if !records.is_far() {
        return Ok(records.clone());
    }
    records.ahead(ids.map(|id| (Class::Ledger, keys::item(feed, id))).collect())
}

/// With the ledger entries and the newest bytes of these items.
pub(super) fn of_items(
    records: &Records,
    feed: &FeedName,
    ids: &[SyncId],
) -> Result<Records, StoreError> {
    if !records.is_far() {
        return Ok(records.clone());
    }
    let of = |id| [Class::Ledger, Class::Heads].map(|class| (class, keys::item(feed, id)));
    let records = records.ahead(ids.iter().flat_map(of).collect())?;
    let mut wanted = BTreeSet::new();
    for id in ids {
        match records.record::<HeadRecord>(Class::Heads, &keys::item(feed, id))? {
            Some(head) if head.latest => wanted.insert((Class::Latest, keys::item(feed, id))),
            Some(head) => wanted.insert((Class::Bodies, keys::version(feed, id, head.body))),
            None => false,
        };
    }
    records.ahead(wanted)
}
