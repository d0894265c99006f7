//! The order and the document around the entries that were in force: they go to the past, as differences to
//! those that take their place.

use super::chain::{ChainHead, ORDERS, SKELETONS, Superseded, supersede};
use super::keys;
use super::records::Records;
use crate::StoreError;
use crate::engine::{Class, Writes};
use crate::record::HistoryRecord;
use tidegate_core::model::{Change, FeedState};

/// Plans the past order and document, and since when the new ones are in force.
pub(super) fn documents(
    records: &Records,
    change: &Change,
    before: Option<&FeedState>,
    (order, skeleton): (&Option<Vec<u8>>, &Option<Vec<u8>>),
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let (feed, shown) = (&change.feed, change.state.updated_at);
    let old: HistoryRecord =
        records.record(Class::Histories, &keys::feed(feed))?.unwrap_or_default();
    let past = |line: ChainHead, newer: &[u8], run: u32| match before {
        Some(state) => {
            supersede(records, feed, line, (line.since(&old, state), run), (shown, newer))
        }
        None => Ok(None),
    };
    let mut history = old;
    let mut gone = Vec::new();
    if let Some(newer) = order {
        let found = past(ORDERS, newer, old.order_run())?;
        let (since, run) = found.as_ref().map_or((shown, 0), |found| (found.since, found.run));
        history.set_order(since, run);
        gone.extend(found);
    }
    if let Some(newer) = skeleton {
        let found = past(SKELETONS, newer, old.skeleton_run())?;
        let (since, run) = found.as_ref().map_or((shown, 0), |found| (found.since, found.run));
        history.set_skeleton(since, run);
        gone.extend(found);
    }
    for Superseded { entry: (class, key, bytes), .. } in gone {
        writes.insert((class, key), Some(bytes));
    }
    if history == old {
        return Ok(());
    }
    records.put(writes, Class::Histories, keys::feed(feed), &history)
}
