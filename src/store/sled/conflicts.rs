//! What is in conflict with the current versions of items. Few items have any.

use super::keys;
use super::plan::encoded;
use super::read::newest;
use super::trees::{Class, Trees, Writes};
use crate::model::{Change, FeedName, LedgerEntry, Markup, SyncId, Version};
use crate::store::StoreError;
use std::collections::BTreeMap;

/// What is in conflict with an item's current version.
pub(super) fn of(
    trees: &Trees,
    feed: &FeedName,
    known: &LedgerEntry,
) -> Result<Vec<Version<Markup>>, StoreError> {
    if known.conflicts == 0 {
        return Ok(Vec::new());
    }
    let key = keys::item(feed, &known.id);
    trees.expected(Class::Conflicts, &key)
}

/// The same of every item that has any.
pub(super) fn all(
    trees: &Trees,
    feed: &FeedName,
    known: &[LedgerEntry],
) -> Result<BTreeMap<SyncId, Vec<Version<Markup>>>, StoreError> {
    let contested = known.iter().filter(|known| known.conflicts > 0);
    contested.map(|known| Ok((known.id.clone(), of(trees, feed, known)?))).collect()
}

/// The items that have any.
pub(super) fn ids(trees: &Trees, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
    let mut ids = Vec::new();
    for key in trees.tree(Class::Conflicts).scan_prefix(keys::feed(feed)).keys() {
        let key = key.map_err(|error| trees.failed("read", error))?;
        let id = keys::item_id(feed, &key);
        ids.push(id.ok_or_else(|| trees.damaged(Class::Conflicts, &key, "it names no item"))?);
    }
    Ok(ids)
}

/// Plans what a checked change says of conflicts. Comes before anything else of the change is
/// planned that moves an item's newest bytes.
pub(super) fn plan(trees: &Trees, change: &Change, writes: &mut Writes) -> Result<(), StoreError> {
    let feed = &change.feed;
    for conflicting in &change.conflicts {
        let id = &conflicting.id;
        let key = keys::item(feed, id);
        if conflicting.versions.is_empty() {
            trees.remove(writes, Class::Conflicts, key)?;
            continue;
        }
        let whole = conflicting.versions.iter().map(|version| {
            let data = match &version.data {
                Some(markup) => markup.clone(),
                None => newest(trees, feed, id)?,
            };
            Ok(version.with(data))
        });
        let whole: Vec<Version<Markup>> = whole.collect::<Result<_, StoreError>>()?;
        let what = || format!("what is in conflict with {id} in the feed {feed}");
        let record = encoded(trees, &whole, what)?;
        trees.put(writes, Class::Conflicts, key, &record)?;
    }
    Ok(())
}
