//! From a change to the entries it sets and removes.

use super::archives::{self, Segment};
use super::records::Records;
use super::shared::StoreShared;
use super::supersede::{SupersededRecords, older};
use super::{conflicts, keys, redact, stubs};
use crate::model::{
    Change, Event, FeedName, FeedState, LedgerEntry, Markup, NewVersion, Revision, SyncId, Time,
};
use crate::store::engine::{Class, Writes};
use crate::store::engine::{KeyOrder, beginning_with};
use crate::store::limits::{EVENTS_KEPT, VERSIONS_LIMIT};
use crate::store::record::{HeadRecord, StateRecord};
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
    records: &Records,
    shared: &StoreShared,
    change: Change,
) -> Result<Prepared, StoreError> {
    let segments = archives::prepare(records, shared, &change)?;
    let body = |id: &SyncId, markup: &Markup| {
        let what = || format!("the item {id} of the feed {}", change.feed);
        Ok::<_, StoreError>((id.clone(), records.encoded(markup, what)?))
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
            records.encoded(skeleton, what)
        })
        .transpose()?;
    let order = change
        .order
        .as_ref()
        .map(|order| {
            let what = || format!("the order of the feed {}", change.feed);
            records.encoded(order, what)
        })
        .transpose()?;
    let kept = change
        .kept
        .as_ref()
        .map(|kept| {
            let what = || format!("what is kept of held documents of the feed {}", change.feed);
            records.encoded(kept, what)
        })
        .transpose()?;
    let older = SupersededRecords::default();
    let mut prepared = Prepared { change, skeleton, order, kept, bodies, latest, older, segments };
    let found = shared.reading(&prepared.change.feed, |state| {
        // A change over another revision is refused, whatever is prepared for it.
        let agrees = state.revision == prepared.change.base;
        if agrees { self::older(records, &prepared, state).map(Some) } else { Ok(None) }
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
    records: &Records,
    prepared: &mut Prepared,
    before: Option<&FeedState>,
    place: &ChangeTarget,
) -> Result<(Writes, u64), StoreError> {
    let mut writes = Writes::new();
    let Prepared { change, segments, .. } = prepared;
    archives::plan(records, change, segments, before, &mut writes)?;
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
            writes.insert((class, keys::feed(feed)), Some(value.clone()));
        }
    }
    if change.state.hold.is_none() {
        writes.insert((Class::Kept, keys::feed(feed)), None);
    }
    prepared.older.plan(records, change, &mut writes)?;
    conflicts::plan(records, change, &mut writes)?;
    items(records, prepared, &mut writes)?;
    redact::redact(records, change, &mut writes)?;
    stubs::plan(records, change, &mut writes)?;
    let next_event = events(records, feed, &change.events, place.next_event, &mut writes)?;
    let state = StateRecord { state: change.state.clone(), next_event };
    records.put(&mut writes, Class::States, keys::feed(feed), &state)?;
    if let Some(tick) = change.tick {
        let announced = LoggedChange {
            feed: feed.clone(),
            tick,
            revision: place.revision,
            versions: u32::try_from(change.versions.len()).unwrap_or(u32::MAX),
        };
        let key = keys::log(place.epoch.0, place.epoch.1);
        records.put(&mut writes, Class::Log, key, &(place.at, announced))?;
    }
    Ok((writes, next_event))
}

/// Ledger entries, versions, newest bytes and the index by tick.
fn items(records: &Records, prepared: &Prepared, writes: &mut Writes) -> Result<(), StoreError> {
    let change = &prepared.change;
    let feed = &change.feed;
    let mut heads: HashMap<&SyncId, HeadRecord> = HashMap::new();
    let versions: HashMap<&SyncId, &NewVersion> =
        change.versions.iter().map(|version| (&version.id, version)).collect();

    for known in &change.known {
        let key = keys::item(feed, &known.id);
        records.put(writes, Class::Ledger, key.clone(), known)?;

        let old: Option<HeadRecord> = records.record(Class::Heads, &key)?;
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
            version(records, feed, known, &note, &mut head, writes)?;
            if let Some(body) = prepared.bodies.get(&known.id) {
                new_body(records, prepared, known, body, &mut head, writes)?;
            } else if head.latest && !known.is_deleted() {
                // What waited for its version: the newest bytes become that version's.
                let newest = records.get(Class::Latest, &key)?;
                let newest =
                    newest.ok_or_else(|| records.damaged(Class::Latest, &key, "it is missing"))?;
                new_body(records, prepared, known, &newest, &mut head, writes)?;
            }
        }
        heads.insert(&known.id, head);
    }
    for (id, body) in &prepared.latest {
        let key = keys::item(feed, id);
        let mut head = match heads.remove(id) {
            Some(head) => head,
            None => records.expected(Class::Heads, &key)?,
        };
        writes.insert((Class::Latest, key), Some(body.clone()));
        head.latest = true;
        heads.insert(id, head);
    }
    for (id, head) in heads {
        records.put(writes, Class::Heads, keys::item(feed, id), &head)?;
    }
    Ok(())
}

/// Notes a version, and drops the oldest one where too many are kept.
fn version(
    records: &Records,
    feed: &FeedName,
    known: &LedgerEntry,
    note: &VersionNote,
    head: &mut HeadRecord,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    records.put(writes, Class::Versions, keys::version(feed, &known.id, known.tick), note)?;
    head.kept = head.kept.saturating_add(1);
    if usize::try_from(head.kept).unwrap_or(usize::MAX) <= VERSIONS_LIMIT {
        return Ok(());
    }
    let prefix = keys::item(feed, &known.id);
    let all = beginning_with(&prefix);
    let oldest = records.first(Class::Versions, all, KeyOrder::Ascending)?;
    let Some((oldest, _)) = oldest else {
        return Err(records.damaged(Class::Versions, &prefix, "its versions are missing"));
    };
    writes.insert((Class::Versions, oldest.clone()), None);
    head.kept -= 1;
    // The bytes of the oldest version may still be the newest that the item has.
    if keys::version_tick(&oldest) != Some(head.body) {
        writes.insert((Class::Bodies, oldest), None);
    }
    Ok(())
}

/// Sets the newest bytes of an item, which came with a version.
fn new_body(
    records: &Records,
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
        None => !records.contains(Class::Versions, &place.1)?,
    };
    if dropped {
        writes.insert((Class::Bodies, place.1), None);
    } else if let Some(bytes) = prepared.older.body(&known.id, head.body) {
        writes.insert((Class::Bodies, place.1), Some(bytes.to_vec()));
    }
    let new = (Class::Bodies, keys::version(feed, &known.id, known.tick));
    writes.insert(new, Some(body.to_vec()));
    head.body = known.tick;
    if head.latest {
        writes.insert((Class::Latest, keys::item(feed, &known.id)), None);
        head.latest = false;
    }
    Ok(())
}

/// Adds events and drops the oldest ones. Answers the number of the next event.
fn events(
    records: &Records,
    feed: &FeedName,
    events: &[Event],
    next: u64,
    writes: &mut Writes,
) -> Result<u64, StoreError> {
    let kept = u64::try_from(EVENTS_KEPT).unwrap_or(u64::MAX);
    let end = next.saturating_add(u64::try_from(events.len()).unwrap_or(u64::MAX));
    let first = end.saturating_sub(kept);
    for number in next.saturating_sub(kept)..first.min(next) {
        writes.insert((Class::Events, keys::event(feed, number)), None);
    }
    for (number, event) in (next..end).zip(events).filter(|(number, _)| *number >= first) {
        records.put(writes, Class::Events, keys::event(feed, number), event)?;
    }
    Ok(end)
}
