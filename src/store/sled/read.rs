//! Answers from the trees. Whoever calls holds the gate of what is read.

use super::archives;
use super::conflicts;
use super::keys;
use super::trees::{Class, Trees};
use crate::model::{
    Attempt, EndpointId, Event, FeedName, FeedRecord, FeedState, HeldEntry, Item, LedgerEntry,
    Markup, PollState, Skeleton, Snapshot, SyncId, Time,
};
use crate::store::limits::TAIL_LIMIT;
use crate::store::purge_mark;
use crate::store::record::{FloorRecord, HeadRecord, Record, SubscriptionRecord, decode};
use crate::store::{
    ClosedEpoch, Epoch, LoggedChange, Select, StoreError, VersionNote, View, assemble,
};
use crate::websub::Subscription;

/// Reads all values of a class whose keys begin with `prefix`.
fn values<T: Record>(
    trees: &Trees,
    class: Class,
    prefix: Vec<u8>,
) -> impl DoubleEndedIterator<Item = Result<T, StoreError>> {
    trees.scan(class, prefix).map(|entry| entry.map(|(_, value)| value))
}

/// All feeds, by name.
pub(super) fn feeds(trees: &Trees) -> Result<Vec<FeedRecord>, StoreError> {
    values(trees, Class::Feeds, Vec::new()).collect()
}

/// All poll states.
pub(super) fn poll_states(trees: &Trees) -> Result<Vec<PollState>, StoreError> {
    values(trees, Class::Polls, Vec::new()).collect()
}

/// All large documents that are being taken in.
pub(super) fn attempts(trees: &Trees) -> Result<Vec<Attempt>, StoreError> {
    values(trees, Class::Attempts, Vec::new()).collect()
}

/// All subscriptions of the hub.
pub(super) fn subscriptions(trees: &Trees) -> Result<Vec<Subscription>, StoreError> {
    let class = Class::Subscriptions;
    let subscriptions = trees.scan::<SubscriptionRecord>(class, Vec::new()).map(|entry| {
        let (key, record) = entry?;
        Subscription::try_from(record).map_err(|error| trees.damaged(class, &key, error))
    });
    subscriptions.collect()
}

/// The updates of the item that was updated most often, as [`purge_mark::most_updates`] counts them. What
/// cannot be read does not count: it is about to go.
pub(super) fn most_updates(trees: &Trees, feed: &FeedName, own: Option<&EndpointId>) -> u32 {
    let known = values::<LedgerEntry>(trees, Class::Ledger, keys::feed(feed)).flatten();
    known.map(|known| purge_mark::most_updates(std::iter::once(&known), own)).max().unwrap_or(0)
}

/// What the purged feed of a name noted of them.
pub(super) fn purged_updates(trees: &Trees, feed: &FeedName) -> Result<u32, StoreError> {
    let floor: Option<FloorRecord> = trees.record(Class::Floors, &keys::feed(feed))?;
    Ok(floor.map_or(0, |record| record.floor.updates))
}

/// Everything that judging a document needs.
pub(super) fn snapshot(
    trees: &Trees,
    feed: &FeedName,
    state: &FeedState,
) -> Result<Option<Snapshot>, StoreError> {
    let known = values(trees, Class::Ledger, keys::feed(feed));
    let known: Vec<LedgerEntry> = known.collect::<Result<_, _>>()?;
    Ok(Some(Snapshot {
        state: state.clone(),
        order: order(trees, feed)?,
        kept: if state.hold.is_some() { kept(trees, feed)? } else { Vec::new() },
        archives: archives::oldest(trees, feed, state)?,
        conflicts: conflicts::all(trees, feed, &known)?,
        known,
    }))
}

pub(super) fn kept(trees: &Trees, feed: &FeedName) -> Result<Vec<HeldEntry>, StoreError> {
    let key = keys::feed(feed);
    Ok(trees.record(Class::Kept, &key)?.unwrap_or_default())
}

/// The document around the entries, where there is one.
pub(super) fn skeleton(trees: &Trees, feed: &FeedName) -> Result<Option<Skeleton>, StoreError> {
    let key = keys::feed(feed);
    trees.record(Class::Skeletons, &key)
}

fn order(trees: &Trees, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
    let key = keys::feed(feed);
    Ok(trees.record(Class::Orders, &key)?.unwrap_or_default())
}

/// Items with their bytes; `None` before the first skeleton.
pub(super) fn view(
    trees: &Trees,
    feed: &FeedName,
    state: &FeedState,
    select: Select,
) -> Result<Option<View>, StoreError> {
    let Some(skeleton) = skeleton(trees, feed)? else { return Ok(None) };
    let ids = match select {
        Select::Current => order(trees, feed)?,
        Select::After(tick) => by_tick(trees, feed, keys::after_tick(feed, tick))?,
        Select::All => by_tick(trees, feed, keys::feed(feed))?,
    };
    let mut items = Vec::with_capacity(ids.len());
    for id in &ids {
        let key = keys::item(feed, id);
        let known: LedgerEntry = trees.expected(Class::Ledger, &key)?;
        if known.is_discarded() {
            continue;
        }
        items.push(with_bytes(trees, feed, id, known)?);
    }
    Ok(Some(View { state: state.clone(), skeleton, items }))
}

/// The ids in the index by tick from the key `from` on, within the feed.
fn by_tick(trees: &Trees, feed: &FeedName, from: Vec<u8>) -> Result<Vec<SyncId>, StoreError> {
    let prefix = keys::feed(feed);
    let mut ids = Vec::new();
    for key in trees.tree(Class::ByTick).range(from..).keys() {
        let key = key.map_err(|error| trees.failed("read", error))?;
        if !key.starts_with(&prefix) {
            break;
        }
        let id = keys::by_tick_id(feed, &key);
        ids.push(id.ok_or_else(|| trees.damaged(Class::ByTick, &key, "it names no item"))?);
    }
    Ok(ids)
}

/// One item.
pub(super) fn item(
    trees: &Trees,
    feed: &FeedName,
    id: &SyncId,
) -> Result<Option<Item>, StoreError> {
    match trees.record(Class::Ledger, &keys::item(feed, id))? {
        Some(known) => with_bytes(trees, feed, id, known).map(Some),
        None => Ok(None),
    }
}

fn with_bytes(
    trees: &Trees,
    feed: &FeedName,
    id: &SyncId,
    known: LedgerEntry,
) -> Result<Item, StoreError> {
    let conflicts = conflicts::of(trees, feed, &known)?;
    Ok(assemble(known, newest(trees, feed, id)?, conflicts))
}

/// The newest bytes of an item.
pub(super) fn newest(trees: &Trees, feed: &FeedName, id: &SyncId) -> Result<Markup, StoreError> {
    let key = keys::item(feed, id);
    let head: HeadRecord = trees.expected(Class::Heads, &key)?;
    if head.latest {
        markup(trees, Class::Latest, &key)
    } else {
        markup(trees, Class::Bodies, &keys::version(feed, id, head.body))
    }
}

fn markup(trees: &Trees, class: Class, key: &[u8]) -> Result<Markup, StoreError> {
    trees.expected(class, key)
}

/// An item's versions, newest first.
pub(super) fn versions(
    trees: &Trees,
    feed: &FeedName,
    id: &SyncId,
    limit: usize,
) -> Result<Vec<VersionNote>, StoreError> {
    let notes = values(trees, Class::Versions, keys::item(feed, id));
    notes.rev().take(limit).collect()
}

/// A feed's events, newest first.
pub(super) fn events(
    trees: &Trees,
    feed: &FeedName,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let events = values(trees, Class::Events, keys::feed(feed));
    events.rev().take(limit).collect()
}

/// Closed epochs after `after` up to `newest`, oldest first.
pub(super) fn epochs_after(
    trees: &Trees,
    after: Epoch,
    newest: Epoch,
    limit: usize,
) -> Result<Vec<ClosedEpoch>, StoreError> {
    let mut epochs: Vec<ClosedEpoch> = Vec::new();
    if after >= newest {
        return Ok(epochs);
    }
    let (begin, end) = (keys::log(after.0 + 1, 0), keys::log(newest.0, u32::MAX));
    for entry in trees.tree(Class::Log).range(begin..=end) {
        let (key, root) = entry.map_err(|error| trees.failed("read", error))?;
        let (epoch, at, announced) = logged(trees, &key, &root)?;
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
    trees: &Trees,
    key: &[u8],
    root: &[u8],
) -> Result<(Epoch, Time, LoggedChange), StoreError> {
    let damaged = |what: &str| trees.damaged(Class::Log, key, what);
    let epoch = keys::log_epoch(key).ok_or_else(|| damaged("its key names no epoch"))?;
    let value = trees.whole(Class::Log, key, root)?;
    let (at, announced) = decode::<(Time, LoggedChange)>(&value)
        .map_err(|error| trees.damaged(Class::Log, key, error))?;
    Ok((Epoch(epoch), at, announced))
}

/// The last change of the log, where there is one.
pub(super) fn last_logged(trees: &Trees) -> Result<Option<(Epoch, Time)>, StoreError> {
    match trees.tree(Class::Log).last().map_err(|error| trees.failed("read", error))? {
        Some((key, root)) => logged(trees, &key, &root).map(|(epoch, at, _)| Some((epoch, at))),
        None => Ok(None),
    }
}
