//! Answers from the records. Whoever calls holds the gate of what is read.

use super::ahead;
use super::archives;
use super::conflicts;
use super::keys;
use super::ledger;
use super::records::Records;
use crate::engine::Class;
use crate::engine::{KeyOrder, beginning_with};
use crate::limits::TAIL_LIMIT;
use crate::purge_mark;
use crate::record::{FloorRecord, HeadRecord, Record};
use crate::{
    ClosedEpoch, Epoch, LoggedChange, RemainingItems, Select, StoreError, VersionNote, View,
    assemble,
};
use std::collections::BTreeSet;
use std::ops::Bound;
use tidegate_core::model::{
    Attempt, EndpointId, Event, FeedName, FeedRecord, FeedState, HeldEntry, Item, LedgerEntry,
    Markup, PollState, Skeleton, Snapshot, SyncId, Time,
};
use tidegate_core::websub::Subscription;

/// How many items of a view are read at a time.
const PORTION_ITEMS: usize = if cfg!(test) { 3 } else { 1024 };
/// The bytes of items that are read at a time; the last one may be beyond.
const PORTION_BYTES: usize = 4 << 20;
/// Of more feeds than this, the poll states are looked for among all that there are.
const STATES_BY_KEY: usize = if cfg!(test) { 2 } else { 4096 };

/// Reads all values of a class whose keys begin with `prefix`.
fn values<'a, T: Record>(
    records: &'a Records,
    class: Class,
    prefix: &[u8],
) -> impl Iterator<Item = Result<T, StoreError>> + use<'a, T> {
    records.scan(class, prefix).map(|entry| entry.map(|(_, value)| value))
}

/// All feeds, by name.
pub(super) fn feeds(records: &Records) -> Result<Vec<FeedRecord>, StoreError> {
    values(records, Class::Feeds, &[]).collect()
}

/// All poll states.
pub(super) fn poll_states(records: &Records) -> Result<Vec<PollState>, StoreError> {
    values(records, Class::Polls, &[]).collect()
}

/// The poll states of some feeds, as far as there are any.
pub(super) fn poll_states_of(
    records: &Records,
    feeds: &BTreeSet<FeedName>,
) -> Result<Vec<PollState>, StoreError> {
    if feeds.len() > STATES_BY_KEY {
        let is_of_them = |state: &PollState| feeds.contains(&state.feed);
        let all = values(records, Class::Polls, &[]);
        return all.filter(|state| state.as_ref().map_or(true, is_of_them)).collect();
    }
    let mut found = Vec::with_capacity(feeds.len());
    let feeds: Vec<&FeedName> = feeds.iter().collect();
    for some in feeds.chunks(ahead::ITEMS) {
        let keys = || some.iter().map(|feed| keys::feed(feed));
        let records = match records.is_far() {
            true => &records.ahead(keys().map(|key| (Class::Polls, key)).collect())?,
            false => records,
        };
        for key in keys() {
            found.extend(records.record(Class::Polls, &key)?);
        }
    }
    Ok(found)
}

/// All large documents that are being taken in.
pub(super) fn attempts(records: &Records) -> Result<Vec<Attempt>, StoreError> {
    values(records, Class::Attempts, &[]).collect()
}

/// All subscriptions of the hub.
pub(super) fn subscriptions(records: &Records) -> Result<Vec<Subscription>, StoreError> {
    values(records, Class::Subscriptions, &[]).collect()
}

/// What was read; `None` where it is damaged. Other errors are passed on: a database that does not answer for a
/// moment has it all the same.
pub(super) fn undamaged<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(StoreError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The updates of the item that was updated most often, as [`purge_mark::most_updates`] counts them. What
/// is damaged does not count: it is about to go.
pub(super) fn most_updates(
    records: &Records,
    feed: &FeedName,
    own: Option<&EndpointId>,
) -> Result<u32, StoreError> {
    let known = values::<LedgerEntry>(records, Class::Ledger, &keys::feed(feed));
    let left = values::<LedgerEntry>(records, Class::Stubs, &keys::feed(feed));
    let mut most = 0;
    for entry in known.chain(left) {
        if let Some(entry) = undamaged(entry)? {
            most = most.max(purge_mark::most_updates(std::iter::once(&entry), own));
        }
    }
    Ok(most)
}

/// What the purged feed of a name noted of them.
pub(super) fn purged_updates(records: &Records, feed: &FeedName) -> Result<u32, StoreError> {
    let floor: Option<FloorRecord> = records.record(Class::Floors, &keys::feed(feed))?;
    Ok(floor.map_or(0, |record| record.floor.updates))
}

/// Everything that judging a document needs.
pub(super) fn snapshot(
    records: &Records,
    feed: &FeedName,
    state: &FeedState,
) -> Result<Option<Snapshot>, StoreError> {
    let known = values(records, Class::Ledger, &keys::feed(feed));
    let known: Vec<LedgerEntry> = known.collect::<Result<_, _>>()?;
    Ok(Some(Snapshot {
        state: state.clone(),
        order: order(records, feed)?,
        kept: if state.hold.is_some() { kept(records, feed)? } else { Vec::new() },
        archives: archives::oldest(records, feed, state)?,
        conflicts: conflicts::all(records, feed, &known)?,
        settled: None,
        unsettled: ledger::unsettled_ids(records, feed)?,
        known,
    }))
}

pub(super) fn kept(records: &Records, feed: &FeedName) -> Result<Vec<HeldEntry>, StoreError> {
    let key = keys::feed(feed);
    Ok(records.record(Class::Kept, &key)?.unwrap_or_default())
}

/// The document around the entries, where there is one.
pub(super) fn skeleton(records: &Records, feed: &FeedName) -> Result<Option<Skeleton>, StoreError> {
    let key = keys::feed(feed);
    records.record(Class::Skeletons, &key)
}

pub(super) fn order(records: &Records, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
    let key = keys::feed(feed);
    Ok(records.record(Class::Orders, &key)?.unwrap_or_default())
}

/// The first items of a view with their bytes, and which follow; `None` before the first skeleton.
pub(super) fn begin_view(
    records: &Records,
    feed: &FeedName,
    state: &FeedState,
    select: Select,
) -> Result<Option<(View, RemainingItems)>, StoreError> {
    let Some(skeleton) = skeleton(records, feed)? else { return Ok(None) };
    let ids = match select {
        Select::Current => order(records, feed)?,
        Select::After(tick) => by_tick(records, feed, keys::after_tick(feed, tick))?,
        Select::All => ledger(records, feed)?,
    };
    let (items, remaining) = next_items(records, feed, RemainingItems::new(ids))?;
    Ok(Some((View { state: state.clone(), skeleton, items }, remaining)))
}

/// The next items with their bytes, and which follow. There are some, unless nothing follows.
pub(super) fn next_items(
    records: &Records,
    feed: &FeedName,
    remaining: RemainingItems,
) -> Result<(Vec<Item>, RemainingItems), StoreError> {
    let (mut items, mut bytes, mut read) = (Vec::new(), 0, 0);
    while items.len() < PORTION_ITEMS && bytes < PORTION_BYTES {
        let left = remaining.ids().get(read..).unwrap_or_default();
        let most = fitting(items.len(), bytes).min(PORTION_ITEMS - items.len());
        let ids = left.get(..most).unwrap_or(left);
        if ids.is_empty() {
            break;
        }
        let records = &ahead::of_items(records, feed, ids)?;
        for id in ids {
            if bytes >= PORTION_BYTES {
                break;
            }
            read += 1;
            let known: LedgerEntry = records.expected(Class::Ledger, &keys::item(feed, id))?;
            if known.is_discarded() {
                continue;
            }
            let item = with_bytes(records, feed, id, known)?;
            bytes += item.shared.winner.data.xml.len();
            items.push(item);
        }
    }
    Ok((items, remaining.after(read)))
}

/// How many items are read ahead for a portion that has so many with so many bytes: those that are likely to be
/// in it, for the others are read again for the next one.
fn fitting(items: usize, bytes: usize) -> usize {
    let likely = match bytes.checked_div(items) {
        None => ahead::FIRST_ITEMS,
        Some(size) => PORTION_BYTES.saturating_sub(bytes) / size.max(1) + 1,
    };
    likely.clamp(1, ahead::ITEMS)
}

/// All items of the ledger, by tick and then sync id.
pub(super) fn ledger(records: &Records, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
    by_tick(records, feed, keys::feed(feed))
}

/// What the ledger has of an item.
pub(super) fn known(
    records: &Records,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<LedgerEntry>, StoreError> {
    records.record(Class::Ledger, &keys::item(feed, id))
}

/// The ids in the index by tick from the key `from` on, within the feed.
fn by_tick(records: &Records, feed: &FeedName, from: Vec<u8>) -> Result<Vec<SyncId>, StoreError> {
    let prefix = keys::feed(feed);
    let mut ids = Vec::new();
    let range = (Bound::Included(from), beginning_with(&prefix).1);
    for entry in records.range(Class::ByTick, range, KeyOrder::Ascending) {
        let (key, _) = entry?;
        let id = keys::by_tick_id(feed, &key);
        ids.push(id.ok_or_else(|| records.damaged(Class::ByTick, &key, "it names no item"))?);
    }
    Ok(ids)
}

/// One item.
pub(super) fn item(
    records: &Records,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<Item>, StoreError> {
    let known = known(records, feed, id)?;
    known.map(|known| with_bytes(records, feed, id, known)).transpose()
}

fn with_bytes(
    records: &Records,
    feed: &FeedName,
    id: &SyncId,
    known: LedgerEntry,
) -> Result<Item, StoreError> {
    let conflicts = conflicts::of(records, feed, &known)?;
    Ok(assemble(known, newest(records, feed, id)?, conflicts))
}

/// The newest bytes of an item.
pub(super) fn newest(
    records: &Records,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Markup, StoreError> {
    let key = keys::item(feed, id);
    let head: HeadRecord = records.expected(Class::Heads, &key)?;
    if head.latest {
        markup(records, Class::Latest, &key)
    } else {
        markup(records, Class::Bodies, &keys::version(feed, id, head.body))
    }
}

fn markup(records: &Records, class: Class, key: &[u8]) -> Result<Markup, StoreError> {
    records.expected(class, key)
}

/// An item's versions, newest first.
pub(super) fn notes<'a>(
    records: &'a Records,
    feed: &FeedName,
    id: &SyncId,
) -> impl Iterator<Item = Result<VersionNote, StoreError>> + use<'a> {
    records.scan_back(Class::Versions, &keys::item(feed, id)).map(|entry| Ok(entry?.1))
}

/// A feed's events, newest first.
pub(super) fn events(
    records: &Records,
    feed: &FeedName,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let events = records.scan_back(Class::Events, &keys::feed(feed));
    events.take(limit).map(|entry| Ok(entry?.1)).collect()
}

/// Closed epochs after `after` up to `newest`, oldest first.
pub(super) fn epochs_after(
    records: &Records,
    after: Epoch,
    newest: Epoch,
    limit: usize,
) -> Result<Vec<ClosedEpoch>, StoreError> {
    let mut epochs: Vec<ClosedEpoch> = Vec::new();
    if after >= newest {
        return Ok(epochs);
    }
    let (begin, end) = (keys::log(after.0 + 1, 0), keys::log(newest.0, u32::MAX));
    let range = (Bound::Included(begin), Bound::Included(end));
    for entry in records.range(Class::Log, range, KeyOrder::Ascending) {
        let (key, value) = entry?;
        let (epoch, at, announced) = logged(records, &key, &value)?;
        if let Some(last) = epochs.last_mut()
            && last.epoch == epoch
        {
            last.changes.push(announced);
            continue;
        }
        if epochs.len() >= limit.min(TAIL_LIMIT) {
            break;
        }
        epochs.push(ClosedEpoch { epoch, at, changes: vec![announced] });
    }
    Ok(epochs)
}

/// A change in the log: its epoch, when that was closed, and the change.
pub(super) fn logged(
    records: &Records,
    key: &[u8],
    value: &[u8],
) -> Result<(Epoch, Time, LoggedChange), StoreError> {
    let damaged = |what: &str| records.damaged(Class::Log, key, what);
    let epoch = keys::log_epoch(key).ok_or_else(|| damaged("its key names no epoch"))?;
    let (at, value) = value.split_first_chunk().ok_or_else(|| damaged("it is cut off"))?;
    let announced = records.decode::<LoggedChange>(Class::Log, key, value)?;
    Ok((Epoch(epoch), Time::from_unix(i64::from_be_bytes(*at)), announced))
}

/// The last change of the log, where there is one.
pub(super) fn last_logged(records: &Records) -> Result<Option<(Epoch, Time)>, StoreError> {
    match records.first(Class::Log, beginning_with(&[]), KeyOrder::Descending)? {
        Some((key, value)) => logged(records, &key, &value).map(|(epoch, at, _)| Some((epoch, at))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_ahead_ends_about_where_the_portion_does() {
        let (small, large) = (4 << 10, 100 << 10);
        assert_eq!(fitting(0, 0), ahead::FIRST_ITEMS);
        assert_eq!(fitting(64, 64 * small), ahead::ITEMS, "a portion has a thousand of these");
        assert_eq!(fitting(1000, 1000 * small), 25);
        assert_eq!(fitting(30, 30 * large), 11);
        assert_eq!(fitting(1, PORTION_BYTES - 1), 1);
        assert_eq!(fitting(3, 0), ahead::ITEMS, "items without bytes");
    }
}
