//! What is taken out of the past of a feed and of the change log.

use super::feed::{FeedRecords, ITEMS_AT_ONCE};
use super::read::logged;
use super::records::Records;
use super::{keys, open};
use crate::engine::{Class, KeyOrder, PORTION_BYTES, Writes};
use crate::limits::{LOG_EPOCHS, TRIM_LIMIT};
use crate::record::{ItemRecord, TextRecord};
use crate::retention::{Succession, Thing, surplus};
use crate::{Epoch, Pruned, Retention, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;
use tidegate_core::model::{Tick, Time};

/// Something that may go.
#[derive(Clone)]
enum PastThing {
    /// A version of the item at the key.
    Version(Vec<u8>, Tick),
    Frame(Time),
}

impl PastThing {
    /// The key of its item.
    fn item(&self) -> Option<&[u8]> {
        match self {
            Self::Version(item, _) => Some(item),
            Self::Frame(_) => None,
        }
    }
}

/// The writes that take out what `retention` does not keep, and what that comes to.
pub(super) fn prune(
    feed: &FeedRecords,
    retention: &Retention,
    now: Time,
) -> Result<(Writes, Pruned), StoreError> {
    let mut past = past_of(feed, retention)?;
    // Most often nothing goes, whichever of the texts are versions.
    if surplus(past.clone(), retention, now).0.is_empty() {
        return Ok((Writes::new(), Pruned::default()));
    }
    leave_bare_texts(&mut past, feed)?;
    let (gone, more) = surplus(past, retention, now);
    let (mut writes, mut pruned) = (Writes::new(), Pruned { more, ..Pruned::default() });
    let changed: BTreeSet<&[u8]> = gone.iter().filter_map(PastThing::item).collect();
    let records: Vec<ItemRecord> =
        feed.records.expect_all(Class::Items, changed.iter().map(|key| key.to_vec()))?;
    let mut items: BTreeMap<&[u8], ItemRecord> = changed.into_iter().zip(records).collect();
    let mut bytes = 0;
    for thing in &gone {
        // Bytes that stay are written anew.
        if bytes >= PORTION_BYTES {
            pruned.more = true;
            break;
        }
        let (item, tick) = match thing {
            PastThing::Version(item, tick) => (item, *tick),
            PastThing::Frame(since) => {
                pruned.documents += 1;
                writes.insert((Class::Past, keys::past(&feed.name, *since)), None);
                continue;
            }
        };
        pruned.versions += 1;
        let Some(item) = items.get_mut(&item[..]) else { continue };
        let key = keys::version(&feed.name, &item.known.id, tick);
        item.kept = item.kept.saturating_sub(1);
        // Its bytes may still be the newest that the item has.
        if tick == item.body {
            let text = feed.records.text(&key)?.unwrap_or_default();
            let text = TextRecord { note: None, ..text };
            bytes += text.body.as_ref().map_or(0, |body| body.len());
            feed.records.put_text(&mut writes, key, &text)?;
        } else {
            writes.insert((Class::Texts, key), None);
        }
        feed.records.put(
            &mut writes,
            Class::Items,
            keys::item(&feed.name, &item.known.id),
            item,
        )?;
    }
    Ok((writes, pruned))
}

/// What is kept of the past of a feed: the texts of each item that are of a version, or were, and the frames. None is read.
fn past_of(
    feed: &FeedRecords,
    retention: &Retention,
) -> Result<Vec<Succession<PastThing>>, StoreError> {
    let mut lines: Vec<Succession<PastThing>> = Vec::new();
    for entry in feed.records.sizes(Class::Texts, &keys::feed(&feed.name)) {
        let (key, size) = entry?;
        let (item, tick) = feed.records.of_key(Class::Texts, &key, keys::split_text(&key))?;
        let Some(tick) = tick else { continue };
        let key = PastThing::Version(item.to_vec(), tick);
        let thing = Thing { key, from: tick.time(), size };
        let is_of_item = |line: &&mut Succession<PastThing>| {
            line.things.last().and_then(|last| last.key.item()) == Some(item)
        };
        match lines.last_mut().filter(is_of_item) {
            Some(line) => line.things.push(thing),
            None => lines.push(Succession::of_versions(vec![thing], retention)),
        }
    }
    let frames = feed.past_frames()?.into_iter();
    let frame = |(since, size)| Thing { key: PastThing::Frame(since), from: since, size };
    let ended = feed.frame()?.map(|present| present.since);
    lines.push(Succession { things: frames.map(frame).collect(), ended, most: usize::MAX });
    Ok(lines)
}

/// Leaves out bytes whose version went, which stay. They are older than all versions that are kept.
fn leave_bare_texts(
    past: &mut [Succession<PastThing>],
    feed: &FeedRecords,
) -> Result<(), StoreError> {
    let mut several: Vec<_> = past.iter_mut().filter(|line| line.things.len() > 1).collect();
    for some in several.chunks_mut(ITEMS_AT_ONCE) {
        let keys = some.iter().filter_map(|line| line.things.first()?.key.item());
        let keys: Vec<Vec<u8>> = keys.map(<[u8]>::to_vec).collect();
        let items: Vec<ItemRecord> = feed.records.expect_all(Class::Items, keys)?;
        let lines =
            some.iter_mut().filter(|line| line.things.iter().any(|it| it.key.item().is_some()));
        for (line, item) in lines.zip(items) {
            if line.things.len() > item.kept as usize {
                line.things.retain(|thing| thing.from != item.body.time());
            }
        }
    }
    Ok(())
}

/// The writes that take epochs that are at least so old out of the log, and how many go.
pub(super) fn trim(
    records: &Records,
    age: Duration,
    newest: Epoch,
) -> Result<(Writes, usize), StoreError> {
    let mut writes = Writes::new();
    let (mut last, mut epochs) = (None, 0);
    let old = open::identity(records)?.and_then(|identity| identity.log_ages.older_than(age));
    let Some(old) = old else { return Ok((writes, 0)) };
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
