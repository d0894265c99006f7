//! What is read at once where the database is reached by the network: the records that a change is planned with, and
//! those of the next items of a view. No answer depends on it: what was not read ahead is read when it is asked for.

use super::keys;
use super::records::Records;
use crate::StoreError;
use crate::engine::{Class, RecordKey};
use crate::limits::WHOLE_EVERY;
use crate::record::HeadRecord;
use std::collections::{BTreeSet, HashMap, HashSet};
use tidegate_core::model::{Change, FeedName, Markup, SyncId};

/// The most items whose records are read at once.
pub(super) const ITEMS: usize = 256;
/// The items of a view whose records are read at once while their size is not known: most views are no longer.
pub(super) const FIRST_ITEMS: usize = 64;
/// The most items of a change whose records are read ahead.
const ITEMS_OF_CHANGE: usize = 4096;

/// With the records that a change is checked and planned with.
pub(super) fn of_change(records: &Records, change: &Change) -> Result<Records, StoreError> {
    if !records.is_far() {
        return Ok(records.clone());
    }
    let feed = &change.feed;
    let versions = change.versions.iter().map(|version| (&version.id, version.markup.as_ref()));
    let versions: HashMap<&SyncId, Option<&Markup>> = versions.collect();
    let (sealed, kept) = (sealed_as_stored(change, &versions), kept_as_stored(change));

    let mut wanted: BTreeSet<RecordKey> = of_feed(change).collect();
    let heads = change.known.iter().map(|known| &known.id);
    let heads = heads.chain(change.evicted.iter().map(|stub| &stub.id));
    let heads =
        heads.chain(sealed.iter().chain(&kept).copied()).chain(change.order.iter().flatten());
    let mut seen = HashSet::new();
    let heads = heads.filter(|id| seen.insert(*id)).take(ITEMS_OF_CHANGE);
    wanted.extend(heads.map(|id| (Class::Heads, keys::item(feed, id))));
    wanted.extend(sealed.iter().map(|id| (Class::Ledger, keys::item(feed, id))));
    let records = records.ahead(wanted)?;

    let mut wanted = BTreeSet::new();
    for id in sealed.into_iter().chain(kept) {
        wanted.extend(newest(&records, feed, id)?);
    }
    for known in change.known.iter().take(ITEMS_OF_CHANGE) {
        let Some(markup) = versions.get(&known.id) else { continue };
        let key = keys::item(feed, &known.id);
        let Some(head) = records.record::<HeadRecord>(Class::Heads, &key)? else { continue };
        let old = keys::version(feed, &known.id, head.body);
        match markup {
            // The bytes before it become a difference, unless they stay whole.
            Some(_) if known.updates.value() % WHOLE_EVERY != 0 => {
                wanted.insert((Class::Bodies, old.clone()));
            }
            Some(_) => {}
            None if head.latest && !known.is_deleted() => {
                wanted.insert((Class::Latest, key));
            }
            None => continue,
        }
        wanted.insert((Class::Versions, old));
    }
    records.ahead(wanted)
}

/// What a feed has one of and this change is planned with.
fn of_feed(change: &Change) -> impl Iterator<Item = RecordKey> {
    let skeleton = change.skeleton.is_some() || !change.seals.is_empty();
    let read = [
        (Class::Floors, true),
        (Class::Histories, true),
        (Class::Orders, change.order.is_some()),
        (Class::Skeletons, skeleton),
    ];
    let read = read.into_iter().filter(|(_, is_read)| *is_read);
    let ids = change.seals.iter().map(|seal| keys::archive_id(&change.feed, &seal.id));
    read.map(|(class, _)| (class, keys::feed(&change.feed)))
        .chain(ids.map(|id| (Class::ArchiveIds, id)))
}

/// The items that a change seals with the bytes that are stored.
fn sealed_as_stored<'a>(
    change: &'a Change,
    versions: &HashMap<&SyncId, Option<&Markup>>,
) -> Vec<&'a SyncId> {
    let latest: HashSet<&SyncId> = change.latest.iter().map(|(id, _)| id).collect();
    let is_stored = |id: &&SyncId| {
        !latest.contains(*id) && versions.get(*id).is_none_or(|markup| markup.is_none())
    };
    let sealed = change.seals.iter().flat_map(|seal| &seal.items);
    sealed.filter(is_stored).take(ITEMS_OF_CHANGE).collect()
}

/// The items whose stored bytes are in conflict from now on.
fn kept_as_stored(change: &Change) -> Vec<&SyncId> {
    let kept = change.conflicts.iter();
    let kept = kept.filter(|item| item.versions.iter().any(|version| version.data.is_none()));
    kept.map(|item| &item.id).take(ITEMS_OF_CHANGE).collect()
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
        wanted.extend(newest(&records, feed, id)?);
    }
    records.ahead(wanted)
}

/// The record that has the newest bytes of an item.
fn newest(
    records: &Records,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<RecordKey>, StoreError> {
    let key = keys::item(feed, id);
    let head = records.record::<HeadRecord>(Class::Heads, &key)?;
    Ok(head.map(|head| match head.latest {
        true => (Class::Latest, key),
        false => (Class::Bodies, keys::version(feed, id, head.body)),
    }))
}
