//! What a change takes the place of: the bodies that its versions outdate, and the order and the
//! skeleton that were in force. They are packed as differences, off the committer's thread.

use super::chain::{ChainHead, ORDERS, SKELETONS, Superseded, supersede};
use super::keys;
use super::plan::Prepared;
use super::records::Records;
use crate::model::{Change, FeedState, SyncId, Tick};
use crate::store::StoreError;
use crate::store::engine::{Class, Writes};
use crate::store::limits::WHOLE_EVERY;
use crate::store::record::{HeadRecord, HistoryRecord};
use std::collections::{HashMap, HashSet};

/// What a change outdates.
#[derive(Default)]
pub(super) struct SupersededRecords {
    /// Outdated bodies by item, each with its tick and as it is stored from now on.
    bodies: HashMap<SyncId, (Tick, Vec<u8>)>,
    order: Option<Superseded>,
    skeleton: Option<Superseded>,
    history: HistoryRecord,
}

/// What a change over `state` outdates. Whoever calls holds the feed's gate.
pub(super) fn older(
    records: &Records,
    prepared: &Prepared,
    state: &FeedState,
) -> Result<SupersededRecords, StoreError> {
    let change = &prepared.change;
    let history: HistoryRecord =
        records.record(Class::Histories, &keys::feed(&change.feed))?.unwrap_or_default();
    let document = |line: ChainHead, newer: Option<&Vec<u8>>, run: u32| {
        let Some(newer) = newer else { return Ok(None) };
        let before = (line.since(&history, state), run);
        supersede(records, &change.feed, line, before, (change.state.updated_at, newer))
    };
    Ok(SupersededRecords {
        bodies: bodies(records, prepared)?,
        order: document(ORDERS, prepared.order.as_ref(), history.order_run())?,
        skeleton: document(SKELETONS, prepared.skeleton.as_ref(), history.skeleton_run())?,
        history,
    })
}

fn bodies(
    records: &Records,
    prepared: &Prepared,
) -> Result<HashMap<SyncId, (Tick, Vec<u8>)>, StoreError> {
    let change = &prepared.change;
    let redacted: HashSet<&SyncId> = change.redacted.iter().collect();
    let mut bodies = HashMap::new();
    for known in &change.known {
        let Some(newer) = prepared.bodies.get(&known.id) else { continue };
        // Every so many are whole, so that no chain is long.
        if known.updates.value() % WHOLE_EVERY == 0 || redacted.contains(&known.id) {
            continue;
        }
        let key = keys::item(&change.feed, &known.id);
        let Some(head) = records.record::<HeadRecord>(Class::Heads, &key)? else { continue };
        let place = keys::version_of(&key, head.body);
        let Some(old) = records.get(Class::Bodies, &place)? else { continue };
        let what = || format!("the item {} of the feed {}", known.id, change.feed);
        let packed = records.difference(&old, known.tick.time(), newer, what)?;
        if let Some(packed) = packed {
            bodies.insert(known.id.clone(), (head.body, packed));
        }
    }
    Ok(bodies)
}

impl SupersededRecords {
    /// How the body of an item's version at `tick` is stored from now on, where that changes.
    pub(super) fn body(&self, id: &SyncId, tick: Tick) -> Option<&[u8]> {
        let (of, bytes) = self.bodies.get(id)?;
        (*of == tick).then_some(bytes.as_slice())
    }

    /// Plans the past order and skeleton, and since when the new ones are in force.
    pub(super) fn plan(
        &self,
        records: &Records,
        change: &Change,
        writes: &mut Writes,
    ) -> Result<(), StoreError> {
        let mut history = self.history;
        let shown = change.state.updated_at;
        if change.order.is_some() {
            let (since, run) = self.order.as_ref().map_or((shown, 0), |s| (s.since, s.run));
            history.set_order(since, run);
        }
        if change.skeleton.is_some() {
            let (since, run) = self.skeleton.as_ref().map_or((shown, 0), |s| (s.since, s.run));
            history.set_skeleton(since, run);
        }
        for Superseded { entry: (class, key, bytes), .. } in
            [&self.order, &self.skeleton].into_iter().flatten()
        {
            writes.insert((*class, key.clone()), Some(bytes.clone()));
        }
        if history == self.history {
            return Ok(());
        }
        records.put(writes, Class::Histories, keys::feed(&change.feed), &history)
    }
}
