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
#[derive(Clone, Copy)]
enum PastThing<'a> {
    /// A version of the item at the key.
    Version(&'a [u8], Tick),
    Frame(Time),
}

/// The writes that take out what `retention` does not keep, and what that comes to.
pub(super) fn prune(
    feed: &FeedRecords,
    retention: &Retention,
    now: Time,
) -> Result<(Writes, Pruned), StoreError> {
    let mut past = FeedPast::read(feed)?;
    // Most often nothing goes, whichever of the texts are versions.
    if surplus(past.lines(retention), retention, now).0.is_empty() {
        return Ok((Writes::new(), Pruned::default()));
    }
    past.leave_bare_texts(feed)?;
    let (gone, more) = surplus(past.lines(retention), retention, now);
    let (mut writes, mut pruned) = (Writes::new(), Pruned { more, ..Pruned::default() });
    let changed = gone.iter().filter_map(|thing| match thing {
        PastThing::Version(item, _) => Some(*item),
        PastThing::Frame(_) => None,
    });
    let changed: BTreeSet<&[u8]> = changed.collect();
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
        let Some(item) = items.get_mut(item) else { continue };
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

/// What is kept of the past of a feed; no version is read.
struct FeedPast {
    /// By the keys of the items, their texts that are of a version, or were, and what these take; oldest first.
    texts: BTreeMap<Vec<u8>, Vec<(Tick, u64)>>,
    /// Since when each frame was in force, and what it takes; oldest first.
    frames: Vec<(Time, u64)>,
    /// Since when the present frame is in force.
    present: Option<Time>,
}

impl FeedPast {
    fn read(feed: &FeedRecords) -> Result<Self, StoreError> {
        let mut texts: BTreeMap<Vec<u8>, Vec<(Tick, u64)>> = BTreeMap::new();
        for (key, size) in feed.records.sizes(Class::Texts, &keys::feed(&feed.name))? {
            let (item, tick) = feed.records.of_key(Class::Texts, &key, keys::split_text(&key))?;
            let Some(tick) = tick else { continue };
            texts.entry(item.to_vec()).or_default().push((tick, size));
        }
        let present = feed.frame()?.map(|present| present.since);
        Ok(Self { texts, frames: feed.past_frames()?, present })
    }

    /// Leaves out bytes whose version went, which stay. They are older than all versions that are kept.
    fn leave_bare_texts(&mut self, feed: &FeedRecords) -> Result<(), StoreError> {
        let several = self.texts.iter_mut().filter(|(_, texts)| texts.len() > 1);
        let mut several: Vec<_> = several.collect();
        for some in several.chunks_mut(ITEMS_AT_ONCE) {
            let keys: Vec<Vec<u8>> = some.iter().map(|(key, _)| key.to_vec()).collect();
            let items: Vec<ItemRecord> = feed.records.expect_all(Class::Items, keys)?;
            for ((_, texts), item) in some.iter_mut().zip(items) {
                if texts.len() > item.kept as usize {
                    texts.retain(|(tick, _)| *tick != item.body);
                }
            }
        }
        Ok(())
    }

    /// The versions of each item, and the frames.
    fn lines(&self, retention: &Retention) -> Vec<Succession<PastThing<'_>>> {
        let lines = self.texts.iter().map(|(item, texts)| {
            let things = texts.iter().map(|(tick, size)| Thing {
                key: PastThing::Version(item, *tick),
                from: tick.time(),
                size: *size,
            });
            Succession::of_versions(things.collect(), retention)
        });
        let frames = self.frames.iter();
        let things = frames.map(|(since, size)| Thing {
            key: PastThing::Frame(*since),
            from: *since,
            size: *size,
        });
        let things = things.collect();
        let frames = Succession { things, ended: self.present, most: usize::MAX };
        lines.chain([frames]).collect()
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
