//! What is in conflict with the current versions of items. Few items have any.

use super::keys;
use super::read::newest;
use super::records::Records;
use crate::StoreError;
use crate::engine::{Class, Writes};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_core::model::{Change, FeedName, LedgerEntry, Markup, SyncId, Version};

/// What is in conflict with an item's current version.
pub(super) fn of(
    records: &Records,
    feed: &FeedName,
    known: &LedgerEntry,
) -> Result<Vec<Version<Markup>>, StoreError> {
    if known.conflicts == 0 {
        return Ok(Vec::new());
    }
    let key = keys::item(feed, &known.id);
    records.expected(Class::Conflicts, &key)
}

/// The same of every item that has any.
pub(super) fn all(
    records: &Records,
    feed: &FeedName,
    known: &[LedgerEntry],
) -> Result<BTreeMap<SyncId, Vec<Version<Markup>>>, StoreError> {
    let contested = known.iter().filter(|known| known.conflicts > 0);
    contested.map(|known| Ok((known.id.clone(), of(records, feed, known)?))).collect()
}

/// The items that have any.
pub(super) fn ids(records: &Records, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
    let mut ids = Vec::new();
    for (key, _) in records.sizes(Class::Conflicts, &keys::feed(feed))? {
        let id = keys::item_id(feed, &key);
        ids.push(id.ok_or_else(|| records.damaged(Class::Conflicts, &key, "it names no item"))?);
    }
    Ok(ids)
}

/// The feeds whose items have any, those of changes that are not finished included.
pub(super) fn feeds(records: &Records) -> Result<BTreeSet<FeedName>, StoreError> {
    let mut feeds = BTreeSet::new();
    for (key, _) in records.sizes(Class::Conflicts, &[])? {
        let feed = keys::feed_of(&key);
        feeds.insert(
            feed.ok_or_else(|| records.damaged(Class::Conflicts, &key, "it names no feed"))?,
        );
    }
    Ok(feeds)
}

/// Plans what a checked change says of conflicts. Comes before anything else of the change is
/// planned that moves an item's newest bytes.
pub(super) fn plan(
    records: &Records,
    change: &Change,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let feed = &change.feed;
    for conflicting in &change.conflicts {
        let id = &conflicting.id;
        let key = keys::item(feed, id);
        if conflicting.versions.is_empty() {
            writes.insert((Class::Conflicts, key), None);
            continue;
        }
        let whole = conflicting.versions.iter().map(|version| {
            let data = match &version.data {
                Some(markup) => markup.clone(),
                None => newest(records, feed, id)?,
            };
            Ok(version.with(data))
        });
        let whole: Vec<Version<Markup>> = whole.collect::<Result<_, StoreError>>()?;
        records.put(writes, Class::Conflicts, key, &whole)?;
    }
    Ok(())
}
