//! Prunes the past of feeds and the change log.

use super::feed::{FeedRecords, ITEMS_AT_ONCE};
use super::read::logged;
use super::records::Records;
use super::{keys, open};
use crate::engine::{Class, KeyOrder, PORTION_BYTES, Writes};
use crate::limits::{LOG_EPOCHS, TRIM_LIMIT};
use crate::record::{ItemRecord, TextRecord};
use crate::retention::{PastEntry, PastLine, surplus};
use crate::{Epoch, Pruned, Retention, StoreError};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;
use tidegate_core::model::{Tick, Time};

/// A version or frame that may be removed.
#[derive(Clone, Copy)]
enum PastKey {
    /// A version of an item: the place of its key in [`FeedPast::items`].
    Version(usize, Tick),
    Frame(Time),
}

/// The past of a feed: keys and sizes alone.
struct FeedPast {
    /// The keys of the items.
    items: Vec<Vec<u8>>,
    /// A line for each item, in the order of their keys, with its versions; then one of the frames.
    lines: Vec<PastLine<PastKey>>,
}

/// The writes that remove what `retention` does not keep, and the counts of what they remove.
pub(super) fn prune(
    feed: &FeedRecords,
    retention: &Retention,
    now: Time,
) -> Result<(Writes, Pruned), StoreError> {
    let mut past = FeedPast::read(feed, retention)?;
    // Most often nothing is to be removed, even if texts without a version are counted.
    if surplus(&past.lines, retention, now).0.is_empty() {
        return Ok((Writes::new(), Pruned::default()));
    }
    past.leave_bare_texts(feed)?;
    let (gone, more) = surplus(&past.lines, retention, now);
    let (mut writes, mut pruned) = (Writes::new(), Pruned { more, ..Pruned::default() });
    let item = |key: &PastKey| match key {
        PastKey::Version(item, _) => Some((*item, past.items.get(*item)?)),
        PastKey::Frame(_) => None,
    };
    let changed: BTreeMap<usize, &Vec<u8>> = gone.iter().filter_map(item).collect();
    let records: Vec<ItemRecord> =
        feed.records.expect_all(Class::Items, changed.values().copied().cloned())?;
    let mut items: BTreeMap<usize, ItemRecord> = changed.into_keys().zip(records).collect();
    let mut bytes = 0;
    for past_key in gone {
        // Bytes that stay without their version are written again.
        if bytes >= PORTION_BYTES {
            pruned.more = true;
            break;
        }
        let (item, tick) = match past_key {
            PastKey::Version(item, tick) => (item, tick),
            PastKey::Frame(since) => {
                pruned.documents += 1;
                writes.insert((Class::Past, keys::past(&feed.name, since)), None);
                continue;
            }
        };
        pruned.versions += 1;
        let Some(item) = items.get_mut(&item) else { continue };
        let key = keys::version(&feed.name, &item.known.id, tick);
        item.kept = item.kept.saturating_sub(1);
        // The version may have the newest bytes of the item, which stay.
        if tick == item.body {
            let text = feed.records.text(&key)?.unwrap_or_default();
            let text = TextRecord { note: None, ..text };
            bytes += text.body.as_ref().map_or(0, |body| body.len());
            feed.records.put_text(&mut writes, key, &text)?;
        } else {
            writes.insert((Class::Texts, key), None);
        }
        let key = keys::item(&feed.name, &item.known.id);
        feed.records.put(&mut writes, Class::Items, key, item)?;
    }
    Ok((writes, pruned))
}

impl FeedPast {
    fn read(feed: &FeedRecords, retention: &Retention) -> Result<Self, StoreError> {
        let mut past = Self { items: Vec::new(), lines: Vec::new() };
        for entry in feed.records.sizes(Class::Texts, &keys::feed(&feed.name)) {
            let (key, size) = entry?;
            let (item, tick) = feed.records.read_key(Class::Texts, &key, keys::split_text(&key))?;
            let Some(tick) = tick else { continue };
            if past.items.last().is_none_or(|last| last != item) {
                past.items.push(item.to_vec());
                past.lines.push(PastLine::of_versions(Vec::new(), retention));
            }
            let place = past.items.len().saturating_sub(1);
            let key = PastKey::Version(place, tick);
            let entry = PastEntry { key, from: tick.time(), size };
            if let Some(line) = past.lines.last_mut() {
                line.entries.push(entry);
            }
        }
        let frames = feed.past_frames()?.into_iter();
        let frame = |(since, size)| PastEntry { key: PastKey::Frame(since), from: since, size };
        let ended = feed.frame()?.map(|present| present.since);
        let frames = frames.map(frame).collect();
        past.lines.push(PastLine { entries: frames, ended, limit: usize::MAX });
        Ok(past)
    }

    /// Leaves out bytes that stayed when their version went: they are older than all versions.
    fn leave_bare_texts(&mut self, feed: &FeedRecords) -> Result<(), StoreError> {
        let lines = self.items.iter().zip(&mut self.lines);
        let mut several: Vec<_> = lines.filter(|(_, line)| line.entries.len() > 1).collect();
        for some in several.chunks_mut(ITEMS_AT_ONCE) {
            let keys: Vec<Vec<u8>> = some.iter().map(|(key, _)| key.to_vec()).collect();
            let items: Vec<ItemRecord> = feed.records.expect_all(Class::Items, keys)?;
            for ((_, line), item) in some.iter_mut().zip(items) {
                if line.entries.len() > item.kept as usize {
                    line.entries.retain(|entry| entry.from != item.body.time());
                }
            }
        }
        Ok(())
    }
}

/// The writes that remove epochs of at least this age from the change log, and the number of epochs.
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
        // Only whole epochs are removed, so that no reader sees a part of one.
        if begins && writes.len() >= TRIM_LIMIT {
            break;
        }
        epochs += usize::from(begins);
        last = Some(epoch);
        writes.insert((Class::Log, key), None);
    }
    Ok((writes, epochs))
}
