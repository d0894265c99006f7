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
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;
use tidegate_core::model::{Tick, Time};

/// Something that may go.
#[derive(Clone, Copy)]
enum PastThing {
    /// A version of an item: the place of its key in [`FeedPast::items`].
    Version(usize, Tick),
    Frame(Time),
}

/// What is kept of the past of a feed; none of it is read.
struct FeedPast {
    /// The keys of the items.
    items: Vec<Vec<u8>>,
    /// The texts of each item that are of a version, or were, in the order of the keys; then the frames.
    lines: Vec<Succession<PastThing>>,
}

/// The writes that take out what `retention` does not keep, and what that comes to.
pub(super) fn prune(
    feed: &FeedRecords,
    retention: &Retention,
    now: Time,
) -> Result<(Writes, Pruned), StoreError> {
    let mut past = FeedPast::read(feed, retention)?;
    // Most often nothing goes, whichever of the texts are versions.
    if surplus(&past.lines, retention, now).0.is_empty() {
        return Ok((Writes::new(), Pruned::default()));
    }
    past.leave_bare_texts(feed)?;
    let (gone, more) = surplus(&past.lines, retention, now);
    let (mut writes, mut pruned) = (Writes::new(), Pruned { more, ..Pruned::default() });
    let item = |thing: &PastThing| match thing {
        PastThing::Version(item, _) => Some((*item, past.items.get(*item)?)),
        PastThing::Frame(_) => None,
    };
    let changed: BTreeMap<usize, &Vec<u8>> = gone.iter().filter_map(item).collect();
    let records: Vec<ItemRecord> =
        feed.records.expect_all(Class::Items, changed.values().copied().cloned())?;
    let mut items: BTreeMap<usize, ItemRecord> = changed.into_keys().zip(records).collect();
    let mut bytes = 0;
    for thing in gone {
        // Bytes that stay are written anew.
        if bytes >= PORTION_BYTES {
            pruned.more = true;
            break;
        }
        let (item, tick) = match thing {
            PastThing::Version(item, tick) => (item, tick),
            PastThing::Frame(since) => {
                pruned.documents += 1;
                writes.insert((Class::Past, keys::past(&feed.name, since)), None);
                continue;
            }
        };
        pruned.versions += 1;
        let Some(item) = items.get_mut(&item) else { continue };
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
            let (item, tick) = feed.records.of_key(Class::Texts, &key, keys::split_text(&key))?;
            let Some(tick) = tick else { continue };
            if past.items.last().is_none_or(|last| last != item) {
                past.items.push(item.to_vec());
                past.lines.push(Succession::of_versions(Vec::new(), retention));
            }
            let place = past.items.len().saturating_sub(1);
            let key = PastThing::Version(place, tick);
            let thing = Thing { key, from: tick.time(), size };
            if let Some(line) = past.lines.last_mut() {
                line.things.push(thing);
            }
        }
        let frames = feed.past_frames()?.into_iter();
        let frame = |(since, size)| Thing { key: PastThing::Frame(since), from: since, size };
        let ended = feed.frame()?.map(|present| present.since);
        let frames = frames.map(frame).collect();
        past.lines.push(Succession { things: frames, ended, most: usize::MAX });
        Ok(past)
    }

    /// Leaves out bytes whose version went, which stay. They are older than all versions that are kept.
    fn leave_bare_texts(&mut self, feed: &FeedRecords) -> Result<(), StoreError> {
        let lines = self.items.iter().zip(&mut self.lines);
        let mut several: Vec<_> = lines.filter(|(_, line)| line.things.len() > 1).collect();
        for some in several.chunks_mut(ITEMS_AT_ONCE) {
            let keys: Vec<Vec<u8>> = some.iter().map(|(key, _)| key.to_vec()).collect();
            let items: Vec<ItemRecord> = feed.records.expect_all(Class::Items, keys)?;
            for ((_, line), item) in some.iter_mut().zip(items) {
                if line.things.len() > item.kept as usize {
                    line.things.retain(|thing| thing.from != item.body.time());
                }
            }
        }
        Ok(())
    }
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
