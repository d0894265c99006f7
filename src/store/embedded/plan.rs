//! From a change to the entries it sets and removes.

use super::records::Records;
use super::{ahead, archives, chain, conflicts, keys, ledger, redact, stubs};
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::limits::{EVENTS_KEPT, VERSIONS_LIMIT, WHOLE_EVERY};
use crate::record::{FloorRecord, HeadRecord, StateRecord};
use crate::{CommitError, StoreError, VersionNote, check, lineage, note};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use tidegate_core::model::{
    Change, Event, FeedName, FeedState, LedgerEntry, Markup, NewVersion, Revision, SyncId, Tick,
};

/// By how much a document may have been asked for before another one and be older: no poll takes that long. What is
/// further ahead was asked for by a clock that was wrong.
const OVERTAKEN_LIMIT: Duration = Duration::from_secs(3600);

/// A change that is ready to be committed: what is left to write, and what its commit notes.
pub(super) struct PlannedCommit {
    pub(super) feed: FeedName,
    pub(super) writes: Writes,
    /// The feed as it was: its revision and the number of its last write.
    pub(super) base: (Revision, u64),
    /// The feed as it is afterwards.
    pub(super) head: StateRecord,
    pub(super) tick: Option<Tick>,
    /// How many versions it makes.
    pub(super) versions: u32,
    /// Whether a purged feed of the name has left its marks.
    pub(super) has_floor: bool,
}

/// Checks a change to a feed that stands as `before` says, and plans its entries. Whoever calls is the only
/// one who changes the feed.
pub(super) fn plan(
    records: &Records,
    before: Option<&StateRecord>,
    mark: u32,
    mut change: Change,
) -> Result<PlannedCommit, CommitError> {
    let asked_at = before.and_then(|head| head.asked_at);
    if let Some((asked, last)) = change.asked_at.zip(asked_at)
        && last > asked
        && last.since(asked) <= OVERTAKEN_LIMIT
    {
        return Err(CommitError::Overtaken);
    }
    let asked_at = change.asked_at.or(asked_at);
    let state = before.map(|head| &head.state);
    let feed = change.feed.clone();
    let records = &ahead::of_change(records, &change)?;
    check::check(&change, state, |id| records.contains(Class::Heads, &keys::item(&feed, id)))?;
    if archives::is_given(records, &change)? {
        let what = "it gives an archive an id that another has".to_owned();
        return Err(check::invalid(&change, what));
    }
    let mut base = change.base;
    let floor: Option<FloorRecord> = records.record(Class::Floors, &keys::feed(&feed))?;
    if let Some(FloorRecord { floor, .. }) = &floor {
        if state.is_none() {
            base = floor.revision;
        }
        floor.lift(&mut change, state.is_none());
    }
    change.state.revision = Revision(base.0 + 1);
    lineage::go_on(&mut change, state, mark);

    let mut writes = Writes::new();
    change.state.archives.bytes = archives::plan(records, &change, state, &mut writes)?;
    let change = &change;
    documents(records, change, state, &mut writes)?;
    let next_event = before.map_or(0, |head| head.next_event);
    let next_event = events(records, &feed, &change.events, next_event, &mut writes)?;
    items(records, change, &mut writes)?;
    ledger::plan(records, change, &mut writes)?;
    redact::redact(records, change, &mut writes)?;
    stubs::plan(records, change, &mut writes)?;
    let write = before.map_or(0, |head| head.write);
    Ok(PlannedCommit {
        writes,
        base: (state.map_or(Revision(0), |state| state.revision), write),
        head: StateRecord { state: change.state.clone(), next_event, write: write + 1, asked_at },
        tick: change.tick,
        versions: u32::try_from(change.versions.len()).unwrap_or(u32::MAX),
        has_floor: floor.is_some(),
        feed,
    })
}

/// What a feed has one of, and those before it.
fn documents(
    records: &Records,
    change: &Change,
    before: Option<&FeedState>,
    planned: &mut Writes,
) -> Result<(), CommitError> {
    let feed = &change.feed;
    let mut writes = Writes::new();
    let skeleton = change.skeleton.as_ref().map(|skeleton| {
        records.encoded(skeleton, || format!("the document around the entries of {feed}"))
    });
    let order = change
        .order
        .as_ref()
        .map(|order| records.encoded(order, || format!("the order of the feed {feed}")));
    let kept = change.kept.as_ref().filter(|_| change.state.hold.is_some()).map(|kept| {
        records.encoded(kept, || format!("what is kept of held documents of the feed {feed}"))
    });
    let (skeleton, order) = (skeleton.transpose()?, order.transpose()?);
    chain::supersede(records, change, before, (&order, &skeleton), &mut writes)?;
    let single =
        [(Class::Skeletons, skeleton), (Class::Orders, order), (Class::Kept, kept.transpose()?)];
    for (class, value) in single {
        if let Some(value) = value {
            writes.insert((class, keys::feed(feed)), Some(value));
        }
    }
    if change.state.hold.is_none() {
        writes.insert((Class::Kept, keys::feed(feed)), None);
    }
    conflicts::plan(records, change, &mut writes)?;
    planned.extend(writes);
    Ok(())
}

/// What a change says of an item.
struct ChangedItem<'a> {
    known: &'a LedgerEntry,
    version: Option<&'a NewVersion>,
    latest: Option<&'a Markup>,
    is_redacted: bool,
}

/// Ledger entries, versions, newest bytes and the index by tick.
fn items(records: &Records, change: &Change, planned: &mut Writes) -> Result<(), CommitError> {
    let versions: HashMap<&SyncId, &NewVersion> =
        change.versions.iter().map(|version| (&version.id, version)).collect();
    let latest: HashMap<&SyncId, &Markup> =
        change.latest.iter().map(|(id, markup)| (id, markup)).collect();
    let redacted: HashSet<&SyncId> = change.redacted.iter().collect();
    for known in &change.known {
        let id = &known.id;
        let (version, latest) = (versions.get(id).copied(), latest.get(id).copied());
        let item = ChangedItem { known, version, latest, is_redacted: redacted.contains(id) };
        planned.extend(self::item(records, change, &item)?);
    }
    Ok(())
}

fn item(records: &Records, change: &Change, item: &ChangedItem<'_>) -> Result<Writes, StoreError> {
    let ChangedItem { known, version, latest, .. } = item;
    let (feed, mut writes) = (&change.feed, Writes::new());
    let key = keys::item(feed, &known.id);
    records.put(&mut writes, Class::Ledger, key.clone(), *known)?;

    let old: Option<HeadRecord> = records.record(Class::Heads, &key)?;
    let is_moved = old.as_ref().is_none_or(|old| old.tick != known.tick);
    if version.is_none() && latest.is_none() && !is_moved {
        return Ok(writes);
    }
    if is_moved {
        if let Some(old) = &old {
            writes.insert((Class::ByTick, keys::by_tick(feed, old.tick, &known.id)), None);
        }
        let place = (Class::ByTick, keys::by_tick(feed, known.tick, &known.id));
        writes.insert(place, Some(Vec::new()));
    }
    let mut head = old.unwrap_or_else(|| HeadRecord::new(known.tick));
    head.tick = known.tick;
    let what = || format!("the item {} of the feed {feed}", known.id);
    if let Some(new) = version {
        let note = note(known, new, change.state.updated_at);
        self::version(records, feed, known, &note, &mut head, &mut writes)?;
        if let Some(markup) = &new.markup {
            let body = records.encoded(markup, what)?;
            let is_difference = known.updates.value() % WHOLE_EVERY != 0 && !item.is_redacted;
            new_body(records, (feed, known), (body, is_difference), &mut head, &mut writes)?;
        } else if head.latest && !known.is_deleted() {
            // What waited for its version: the newest bytes become that version's.
            let newest = records.get(Class::Latest, &key)?;
            let newest =
                newest.ok_or_else(|| records.damaged(Class::Latest, &key, "it is missing"))?;
            new_body(records, (feed, known), (newest.to_vec(), false), &mut head, &mut writes)?;
        }
    }
    if let Some(markup) = latest {
        let newest = records.encoded(*markup, what)?;
        writes.insert((Class::Latest, key.clone()), Some(newest));
        head.latest = true;
    }
    records.put(&mut writes, Class::Heads, key, &head)?;
    Ok(writes)
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

/// Sets the newest bytes of an item, which came with a version. Those before, which a new item does not have,
/// become a difference to them, unless every so many are to be whole, so that no chain is long.
fn new_body(
    records: &Records,
    (feed, known): (&FeedName, &LedgerEntry),
    (body, is_difference): (Vec<u8>, bool),
    head: &mut HeadRecord,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let old = (Class::Versions, keys::version(feed, &known.id, head.body));
    let is_dropped = match writes.get(&old) {
        Some(planned) => planned.is_none(),
        None => !records.contains(Class::Versions, &old.1)?,
    };
    if is_dropped {
        writes.insert((Class::Bodies, old.1), None);
    } else if is_difference
        && head.body != known.tick
        && let Some(whole) = records.get(Class::Bodies, &old.1)?
    {
        let what = || format!("the item {} of the feed {feed}", known.id);
        let packed = records.difference(&whole, known.tick.time(), &body, what)?;
        if let Some(packed) = packed {
            writes.insert((Class::Bodies, old.1), Some(packed));
        }
    }
    writes.insert((Class::Bodies, keys::version(feed, &known.id, known.tick)), Some(body));
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
