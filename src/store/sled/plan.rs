//! From a change to the entries it sets and removes.

use super::archives::{self, Segment};
use super::shared::StoreShared;
use super::supersede::{SupersededRecords, older};
use super::trees::{Class, Trees, Writes};
use super::{conflicts, keys, redact};
use crate::model::{
    Change, Event, FeedName, FeedState, LedgerEntry, Markup, NewVersion, Revision, SyncId, Time,
};
use crate::store::limits::{EVENTS_KEPT, VERSIONS_LIMIT};
use crate::store::record::{HeadRecord, Record, StateRecord, encode};
use crate::store::{LoggedChange, StoreError, VersionNote, note};
use std::collections::HashMap;

/// A change whose large values are encoded already, off the committer's thread.
pub(super) struct Prepared {
    /// The change; its bytes are still there but no longer needed.
    pub(super) change: Change,
    kept: Option<Vec<u8>>,
    pub(super) skeleton: Option<Vec<u8>>,
    pub(super) order: Option<Vec<u8>>,
    pub(super) bodies: HashMap<SyncId, Vec<u8>>,
    latest: HashMap<SyncId, Vec<u8>>,
    /// What becomes of that which these take the place of.
    older: SupersededRecords,
    /// The archives that the change seals or takes text out of.
    pub(super) segments: Vec<Segment>,
}

/// Encodes and compresses the large values of a change, and what they take the place of.
pub(super) fn prepare(
    trees: &Trees,
    shared: &StoreShared,
    change: Change,
) -> Result<Prepared, StoreError> {
    let segments = archives::prepare(trees, shared, &change)?;
    let body = |id: &SyncId, markup: &Markup| {
        let what = || format!("the item {id} of the feed {}", change.feed);
        Ok::<_, StoreError>((id.clone(), encoded(trees, markup, what)?))
    };
    let bodies = change
        .versions
        .iter()
        .filter_map(|version| version.markup.as_ref().map(|markup| body(&version.id, markup)))
        .collect::<Result<_, _>>()?;
    let latest =
        change.latest.iter().map(|(id, markup)| body(id, markup)).collect::<Result<_, _>>()?;
    let skeleton = change
        .skeleton
        .as_ref()
        .map(|skeleton| {
            let what = || format!("the document around the entries of {}", change.feed);
            encoded(trees, skeleton, what)
        })
        .transpose()?;
    let order = change
        .order
        .as_ref()
        .map(|order| {
            let what = || format!("the order of the feed {}", change.feed);
            encoded(trees, order, what)
        })
        .transpose()?;
    let kept = change
        .kept
        .as_ref()
        .map(|kept| {
            let what = || format!("what is kept of held documents of the feed {}", change.feed);
            encoded(trees, kept, what)
        })
        .transpose()?;
    let older = SupersededRecords::default();
    let mut prepared = Prepared { change, skeleton, order, kept, bodies, latest, older, segments };
    let found = shared.reading(&prepared.change.feed, |state| {
        // A change over another revision is refused, whatever is prepared for it.
        let agrees = state.revision == prepared.change.base;
        if agrees { self::older(trees, &prepared, state).map(Some) } else { Ok(None) }
    })?;
    prepared.older = found.unwrap_or_default();
    Ok(prepared)
}

/// Where a change goes: what the committer decides.
pub(super) struct ChangeTarget {
    /// The feed's revision after it.
    pub(super) revision: Revision,
    /// The number of the feed's next event.
    pub(super) next_event: u64,
    /// The open epoch, and the next free place in it.
    pub(super) epoch: (u64, u32),
    /// When that epoch is closed.
    pub(super) at: Time,
}

/// The entries that a checked change sets and removes, and the number of the feed's next event.
pub(super) fn plan(
    trees: &Trees,
    prepared: &mut Prepared,
    before: Option<&FeedState>,
    place: &ChangeTarget,
) -> Result<(Writes, u64), StoreError> {
    let mut writes = Writes::new();
    let Prepared { change, segments, .. } = prepared;
    archives::plan(trees, change, segments, before, &mut writes)?;
    let prepared = &*prepared;
    let change = &prepared.change;
    let feed = &change.feed;
    let single = [
        (Class::Skeletons, &prepared.skeleton),
        (Class::Orders, &prepared.order),
        (Class::Kept, &prepared.kept),
    ];
    for (class, value) in single {
        if let Some(value) = value {
            trees.put(&mut writes, class, keys::feed(feed), value)?;
        }
    }
    if change.state.hold.is_none() {
        trees.remove(&mut writes, Class::Kept, keys::feed(feed))?;
    }
    prepared.older.plan(trees, change, &mut writes)?;
    conflicts::plan(trees, change, &mut writes)?;
    items(trees, prepared, &mut writes)?;
    redact::redact(trees, change, &mut writes)?;
    let next_event = events(trees, feed, &change.events, place.next_event, &mut writes)?;
    let state = StateRecord { state: change.state.clone(), next_event };
    let what = || format!("the state of the feed {feed}");
    trees.put(&mut writes, Class::States, keys::feed(feed), &encoded(trees, &state, what)?)?;
    if let Some(tick) = change.tick {
        let announced = LoggedChange {
            feed: feed.clone(),
            tick,
            revision: place.revision,
            versions: u32::try_from(change.versions.len()).unwrap_or(u32::MAX),
        };
        let record = encoded(trees, &(place.at, announced), || "a change".into())?;
        trees.put(&mut writes, Class::Log, keys::log(place.epoch.0, place.epoch.1), &record)?;
    }
    Ok((writes, next_event))
}

/// Ledger entries, versions, newest bytes and the index by tick.
fn items(trees: &Trees, prepared: &Prepared, writes: &mut Writes) -> Result<(), StoreError> {
    let change = &prepared.change;
    let feed = &change.feed;
    let mut heads: HashMap<&SyncId, HeadRecord> = HashMap::new();
    let versions: HashMap<&SyncId, &NewVersion> =
        change.versions.iter().map(|version| (&version.id, version)).collect();

    for known in &change.known {
        let key = keys::item(feed, &known.id);
        let what = || format!("the ledger entry of {} in the feed {feed}", known.id);
        let record = encoded(trees, known, what)?;
        trees.put(writes, Class::Ledger, key.clone(), &record)?;

        let old: Option<HeadRecord> = trees.record(Class::Heads, &key)?;
        let new = versions.get(&known.id);
        let moved = old.as_ref().is_none_or(|old| old.tick != known.tick);
        if new.is_none() && !moved {
            continue;
        }
        if let Some(old) = &old {
            writes.insert((Class::ByTick, keys::by_tick(feed, old.tick, &known.id)), None);
        }
        let place = (Class::ByTick, keys::by_tick(feed, known.tick, &known.id));
        writes.insert(place, Some(Vec::new()));
        let mut head = old.unwrap_or_else(|| HeadRecord::new(known.tick));
        head.tick = known.tick;
        if let Some(new) = new {
            let note = note(known, new, change.state.updated_at);
            version(trees, feed, known, &note, &mut head, writes)?;
            if let Some(body) = prepared.bodies.get(&known.id) {
                new_body(trees, prepared, known, body, &mut head, writes)?;
            } else if head.latest && !known.is_deleted() {
                // What waited for its version: the newest bytes become that version's.
                let newest = trees.get(Class::Latest, &key)?;
                let newest =
                    newest.ok_or_else(|| trees.damaged(Class::Latest, &key, "it is missing"))?;
                new_body(trees, prepared, known, &newest, &mut head, writes)?;
            }
        }
        heads.insert(&known.id, head);
    }
    for (id, body) in &prepared.latest {
        let key = keys::item(feed, id);
        let mut head = match heads.remove(id) {
            Some(head) => head,
            None => trees.expected(Class::Heads, &key)?,
        };
        trees.put(writes, Class::Latest, key, body)?;
        head.latest = true;
        heads.insert(id, head);
    }
    for (id, head) in heads {
        let record = encoded(trees, &head, || format!("the head of {id}"))?;
        trees.put(writes, Class::Heads, keys::item(feed, id), &record)?;
    }
    Ok(())
}

/// Notes a version, and drops the oldest one where too many are kept.
fn version(
    trees: &Trees,
    feed: &FeedName,
    known: &LedgerEntry,
    note: &VersionNote,
    head: &mut HeadRecord,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let what = || format!("a version of {} in the feed {feed}", known.id);
    let record = encoded(trees, note, what)?;
    trees.put(writes, Class::Versions, keys::version(feed, &known.id, known.tick), &record)?;
    head.kept = head.kept.saturating_add(1);
    if usize::try_from(head.kept).unwrap_or(usize::MAX) <= VERSIONS_LIMIT {
        return Ok(());
    }
    let prefix = keys::item(feed, &known.id);
    let oldest = trees.tree(Class::Versions).scan_prefix(&prefix).keys().next();
    let Some(oldest) = oldest.transpose().map_err(|error| trees.failed("read", error))? else {
        return Err(trees.damaged(Class::Versions, &prefix, "its versions are missing"));
    };
    trees.remove(writes, Class::Versions, oldest.to_vec())?;
    head.kept -= 1;
    // The bytes of the oldest version may still be the newest that the item has.
    if keys::version_tick(&oldest) != Some(head.body) {
        trees.remove(writes, Class::Bodies, oldest.to_vec())?;
    }
    Ok(())
}

/// Sets the newest bytes of an item, which came with a version.
fn new_body(
    trees: &Trees,
    prepared: &Prepared,
    known: &LedgerEntry,
    body: &[u8],
    head: &mut HeadRecord,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let feed = &prepared.change.feed;
    let old = keys::version(feed, &known.id, head.body);
    let place = (Class::Versions, old);
    let dropped = match writes.get(&place) {
        Some(planned) => planned.is_none(),
        None => !trees
            .tree(Class::Versions)
            .contains_key(&place.1)
            .map_err(|error| trees.failed("read", error))?,
    };
    if dropped {
        trees.remove(writes, Class::Bodies, place.1)?;
    } else if let Some(bytes) = prepared.older.body(&known.id, head.body) {
        trees.put(writes, Class::Bodies, place.1, bytes)?;
    }
    trees.put(writes, Class::Bodies, keys::version(feed, &known.id, known.tick), body)?;
    head.body = known.tick;
    if head.latest {
        trees.remove(writes, Class::Latest, keys::item(feed, &known.id))?;
        head.latest = false;
    }
    Ok(())
}

/// Adds events and drops the oldest ones. Answers the number of the next event.
fn events(
    trees: &Trees,
    feed: &FeedName,
    events: &[Event],
    next: u64,
    writes: &mut Writes,
) -> Result<u64, StoreError> {
    let kept = u64::try_from(EVENTS_KEPT).unwrap_or(u64::MAX);
    let end = next.saturating_add(u64::try_from(events.len()).unwrap_or(u64::MAX));
    let first = end.saturating_sub(kept);
    for number in next.saturating_sub(kept)..first.min(next) {
        trees.remove(writes, Class::Events, keys::event(feed, number))?;
    }
    for (number, event) in (next..end).zip(events).filter(|(number, _)| *number >= first) {
        let what = || format!("an event of the feed {feed}");
        let record = encoded(trees, event, what)?;
        trees.put(writes, Class::Events, keys::event(feed, number), &record)?;
    }
    Ok(end)
}

/// A record as it is written; `what` it is, for the message where it is too large.
pub(super) fn encoded<T: Record>(
    trees: &Trees,
    record: &T,
    what: impl FnOnce() -> String,
) -> Result<Vec<u8>, StoreError> {
    encode(record).map_err(|error| trees.unwritable(what(), error))
}
