//! What is taken out of the past of a feed and of the change log.

use super::chain::{self, ChainHead, ORDERS, SKELETONS};
use super::past::tick_of;
use super::read::logged;
use super::records::Records;
use super::{keys, open};
use crate::engine::KeyOrder;
use crate::engine::{Class, Writes};
use crate::limits::{LOG_EPOCHS, TRIM_LIMIT};
use crate::record::HeadRecord;
use crate::retention::{Succession, Thing, surplus};
use crate::{Epoch, Pruned, Retention, StoreError, VersionNote};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedState, Time};

/// What is to go, and the answer once it has.
pub(super) struct PruneList {
    entries: Vec<(Class, Vec<u8>)>,
    /// The answer.
    pub(super) pruned: Pruned,
}

impl PruneList {
    /// Whether nothing is to go.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Lists what goes.
pub(super) fn list(
    records: &Records,
    feed: &FeedName,
    state: &FeedState,
    retention: &Retention,
    now: Time,
) -> Result<PruneList, StoreError> {
    let mut lines: Vec<Succession<(Class, Vec<u8>)>> = Vec::new();
    let mut item: Option<Vec<u8>> = None;
    let mut things = Vec::new();
    let bodies: HashMap<Vec<u8>, u64> =
        records.sizes(Class::Bodies, &keys::feed(feed))?.into_iter().collect();
    for entry in records.scan::<VersionNote>(Class::Versions, &keys::feed(feed)) {
        let (key, note) = entry?;
        let size = bodies.get(&key).copied().unwrap_or(0);
        let of = keys::version_item(&key).map(<[u8]>::to_vec);
        if of != item {
            lines.push(Succession::of_versions(std::mem::take(&mut things), retention));
            item = of;
        }
        things.push(Thing { key: (Class::Versions, key), from: note.shown, size });
    }
    lines.push(Succession::of_versions(things, retention));
    let history = chain::history(records, feed)?;
    for line in [ORDERS, SKELETONS] {
        lines.push(documents(records, feed, line, line.since(&history, state))?);
    }
    let (entries, more) = surplus(lines, retention, now);
    let versions = entries.iter().filter(|(class, _)| *class == Class::Versions).count();
    let pruned = Pruned { versions, documents: entries.len() - versions, more };
    Ok(PruneList { entries, pruned })
}

fn documents(
    records: &Records,
    feed: &FeedName,
    line: ChainHead,
    ended: Time,
) -> Result<Succession<(Class, Vec<u8>)>, StoreError> {
    let sizes = records.sizes(line.past, &keys::feed(feed))?.into_iter();
    let things = sizes.map(|(key, size)| {
        let from = keys::past_since(&key).unwrap_or(Time::MIN);
        Thing { key: (line.past, key), from, size }
    });
    Ok(Succession { things: things.collect(), ended: Some(ended), most: usize::MAX })
}

/// The writes that take out what was listed.
pub(super) fn remove(records: &Records, gone: &PruneList) -> Result<Writes, StoreError> {
    let mut writes = Writes::new();
    let mut heads: BTreeMap<Vec<u8>, HeadRecord> = BTreeMap::new();
    for (class, key) in &gone.entries {
        if *class != Class::Versions {
            writes.insert((*class, key.clone()), None);
            continue;
        }
        let Some(item) = keys::version_item(key) else { continue };
        if !records.contains(*class, key)? {
            continue;
        }
        if !heads.contains_key(item) {
            heads.insert(item.to_vec(), records.expected(Class::Heads, item)?);
        }
        let Some(head) = heads.get_mut(item) else { continue };
        let tick = tick_of(records, *class, key)?;
        if tick == head.tick {
            continue;
        }
        writes.insert((Class::Versions, key.clone()), None);
        // Its bytes may still be the newest that the item has.
        if tick != head.body {
            writes.insert((Class::Bodies, key.clone()), None);
        }
        head.kept = head.kept.saturating_sub(1);
    }
    for (item, head) in heads {
        records.put(&mut writes, Class::Heads, item, &head)?;
    }
    Ok(writes)
}

/// The writes that take epochs that are at least so old out of the log, and how many go.
pub(super) fn trim(
    records: &Records,
    age: Duration,
    newest: Epoch,
) -> Result<(Writes, usize), StoreError> {
    let mut writes = Writes::new();
    let (mut last, mut epochs) = (None, 0);
    let Some(old) = open::log_ages(records)?.older_than(age) else { return Ok((writes, 0)) };
    let end = keys::log(old.0.min(newest.0.saturating_sub(LOG_EPOCHS)), u32::MAX);
    let range = (Bound::Unbounded, Bound::Included(end));
    for entry in records.range(Class::Log, range, KeyOrder::Ascending) {
        let (key, value) = entry?;
        let (epoch, ..) = logged(records, &key, &value)?;
        let begins = last != Some(epoch);
        // Only whole epochs go, so that none is ever seen in part.
        if begins && writes.len() >= TRIM_LIMIT {
            break;
        }
        epochs += usize::from(begins);
        last = Some(epoch);
        writes.insert((Class::Log, key), None);
    }
    Ok((writes, epochs))
}
