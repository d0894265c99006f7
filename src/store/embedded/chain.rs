//! What is stored as a difference to its successor: read by way of those between it and the next
//! one that is whole, and made when the successor comes.

use super::keys;
use super::records::Records;
use crate::StoreError;
use crate::engine::Class;
use crate::engine::{KeyOrder, beginning_with};
use crate::limits::{CHAIN_LIMIT, WHOLE_EVERY};
use crate::record::{HistoryRecord, Record, delta, read_fields};
use bytes::Bytes;
use std::ops::Bound;
use tidegate_core::model::{FeedName, FeedState, Markup, SyncId, Tick, Time};

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

/// What becomes of the present one when another takes its place.
pub(super) struct Superseded {
    /// The class and key that it stands at from now on, and the record.
    pub(super) entry: (Class, Vec<u8>, Vec<u8>),
    /// Since when the new one is in force.
    pub(super) since: Time,
    /// How many differences there are in a row now.
    pub(super) run: u32,
}

/// Moves the present one, in force since `since`, to the past of a feed that shows `newer` from
/// `shown` on; `None` where there is none.
pub(super) fn supersede(
    records: &Records,
    feed: &FeedName,
    line: ChainHead,
    (since, run): (Time, u32),
    (shown, newer): (Time, &[u8]),
) -> Result<Option<Superseded>, StoreError> {
    let Some(old) = records.get(line.present, &keys::feed(feed))? else { return Ok(None) };
    let next = shown.max(since.plus(std::time::Duration::from_secs(1)));
    let difference = if run + 1 < WHOLE_EVERY {
        records.difference(&old, next, newer, || format!("the past of the feed {feed}"))?
    } else {
        None
    };
    let run = if difference.is_some() { run + 1 } else { 0 };
    let entry = (line.past, keys::past(feed, since), difference.unwrap_or_else(|| old.to_vec()));
    Ok(Some(Superseded { entry, since: next, run }))
}
