//! What is stored as a difference to its successor: read by way of those between it and the next
//! one that is whole, and made when the successor comes.

use super::keys;
use super::records::Records;
use crate::StoreError;
use crate::engine::{Class, KeyOrder, Writes, beginning_with};
use crate::limits::{CHAIN_LIMIT, WHOLE_EVERY};
use crate::record::{HistoryRecord, Record, delta, read_fields};
use bytes::Bytes;
use std::ops::Bound;
use tidegate_core::model::{Change, FeedName, FeedState, Markup, SyncId, Tick, Time};

/// Reads the record `bytes` that stands at `key`. `base`: the record at a time that another is a
/// difference to.
fn read<T: Record>(
    records: &Records,
    (class, key): (Class, &[u8]),
    bytes: Bytes,
    base: impl Fn(Time) -> Result<Option<Bytes>, StoreError>,
) -> Result<T, StoreError> {
    let damaged = |what: &dyn std::fmt::Display| records.damaged(class, key, what);
    let mut chain = vec![bytes];
    while let Some(last) = chain.last()
        && let Some(at) = delta::base(last).map_err(|error| damaged(&error))?
    {
        if chain.len() > CHAIN_LIMIT {
            return Err(damaged(&format!("it is more than {CHAIN_LIMIT} differences away")));
        }
        let next = base(at)?;
        chain
            .push(next.ok_or_else(|| damaged(&format!("what it differs from, {at}, is missing")))?);
    }
    let mut payload: Option<Vec<u8>> = None;
    for bytes in chain.iter().rev() {
        let opened = delta::payload(bytes, payload.as_deref()).map_err(|error| damaged(&error))?;
        payload = Some(opened.into_owned());
    }
    let payload = payload.ok_or_else(|| damaged(&"it is empty"))?;
    read_fields(&payload).map_err(|error| damaged(&error))
}

/// The bytes that a version came with, where it has any of its own.
pub(super) fn body(
    records: &Records,
    feed: &FeedName,
    id: &SyncId,
    tick: Tick,
) -> Result<Option<Markup>, StoreError> {
    let key = keys::version(feed, id, tick);
    let Some(bytes) = records.get(Class::Bodies, &key)? else { return Ok(None) };
    let place = (Class::Bodies, key.as_slice());
    let newer = |at| records.get(Class::Bodies, &keys::version(feed, id, Tick::at(at)));
    read(records, place, bytes, newer).map(Some)
}

/// Something of which a feed has one at a time, and where its past stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainHead {
    /// The present one.
    pub(super) present: Class,
    /// Those before it.
    pub(super) past: Class,
}

/// The order of the reader view.
pub(super) const ORDERS: ChainHead = ChainHead { present: Class::Orders, past: Class::PastOrders };
/// The document around the entries.
pub(super) const SKELETONS: ChainHead =
    ChainHead { present: Class::Skeletons, past: Class::PastSkeletons };

impl ChainHead {
    /// Since when the present one is in force; where there is none, since the last change of what is shown.
    pub(super) fn since(self, history: &HistoryRecord, state: &FeedState) -> Time {
        let noted = match self.present {
            Class::Orders => history.order(),
            _ => history.skeleton(),
        };
        noted.unwrap_or(state.updated_at)
    }

    /// What was in force at `at`, and since when; `None` where that is not kept.
    pub(super) fn at<T: Record>(
        self,
        records: &Records,
        feed: &FeedName,
        since: Time,
        at: Time,
    ) -> Result<Option<(Time, T)>, StoreError> {
        if at >= since {
            let present = records.record(self.present, &keys::feed(feed))?;
            return Ok(present.map(|present| (since, present)));
        }
        let begin = Bound::Included(keys::past(feed, Time::MIN));
        let range = (begin, Bound::Included(keys::past(feed, at)));
        let found = records.first(self.past, range, KeyOrder::Descending)?;
        let Some((key, bytes)) = found else { return Ok(None) };
        let from = keys::past_since(&key);
        let from = from.ok_or_else(|| records.damaged(self.past, &key, "its key has no time"))?;
        let record = read(records, (self.past, &key), bytes, |at| {
            match records.get(self.past, &keys::past(feed, at))? {
                None if at == since => records.get(self.present, &keys::feed(feed)),
                found => Ok(found),
            }
        })?;
        Ok(Some((from, record)))
    }

    /// Since when the oldest one that is kept was in force.
    pub(super) fn oldest(
        self,
        records: &Records,
        feed: &FeedName,
        since: Time,
    ) -> Result<Time, StoreError> {
        let all = beginning_with(&keys::feed(feed));
        let first = records.first(self.past, all, KeyOrder::Ascending)?;
        Ok(first.and_then(|(key, _)| keys::past_since(&key)).unwrap_or(since))
    }
}

/// Since when the present order and skeleton of a feed are in force.
pub(super) fn history(records: &Records, feed: &FeedName) -> Result<HistoryRecord, StoreError> {
    Ok(records.record(Class::Histories, &keys::feed(feed))?.unwrap_or_default())
}

/// What is stored of `old`, after `run` differences, which `newer` takes the place of: a difference where that saves
/// something, and the run then. `what` it is, for the message where it cannot be written.
pub(super) fn against(
    records: &Records,
    old: &[u8],
    (at, newer): (Time, &[u8]),
    run: u32,
    what: impl FnOnce() -> String,
) -> Result<(Vec<u8>, u32), StoreError> {
    let difference = match run + 1 < WHOLE_EVERY {
        true => records.difference(old, at, newer, what)?,
        false => None,
    };
    Ok(difference.map_or_else(|| (old.to_vec(), 0), |difference| (difference, run + 1)))
}

/// Plans the past order and document, and since when the new ones are in force.
pub(super) fn supersede(
    records: &Records,
    change: &Change,
    before: Option<&FeedState>,
    (order, skeleton): (&Option<Vec<u8>>, &Option<Vec<u8>>),
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let (feed, shown) = (&change.feed, change.state.updated_at);
    let old = history(records, feed)?;
    // Since when the newer one is in force, and how many differences lead to it.
    let mut past = |line: ChainHead, newer: &[u8], run: u32| {
        let stored = records.get(line.present, &keys::feed(feed))?;
        let Some((state, stored)) = before.zip(stored) else { return Ok((shown, 0)) };
        let since = line.since(&old, state);
        // Two are never in force since the same time.
        let next = shown.max(since.plus(std::time::Duration::from_secs(1)));
        let what = || format!("the past of the feed {feed}");
        let (stored, run) = against(records, &stored, (next, newer), run, what)?;
        writes.insert((line.past, keys::past(feed, since)), Some(stored));
        Ok::<_, StoreError>((next, run))
    };
    let mut history = old;
    if let Some(newer) = order {
        let (since, run) = past(ORDERS, newer, old.order_run())?;
        history.set_order(since, run);
    }
    if let Some(newer) = skeleton {
        let (since, run) = past(SKELETONS, newer, old.skeleton_run())?;
        history.set_skeleton(since, run);
    }
    if history == old {
        return Ok(());
    }
    records.put(writes, Class::Histories, keys::feed(feed), &history)
}
