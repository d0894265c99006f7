//! What is taken out of the past of a feed and of the change log.

use super::feed::FeedRecords;
use super::read::logged;
use super::records::Records;
use super::{keys, open};
use crate::engine::{Class, KeyOrder, Writes};
use crate::limits::{LOG_EPOCHS, TRIM_LIMIT};
use crate::record::{ItemRecord, TextRecord};
use crate::retention::{Succession, Thing, surplus};
use crate::{Epoch, Pruned, Retention, StoreError};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;
use tidegate_core::model::{Tick, Time};

/// Something that may go.
enum PastThing {
    /// A version of the item at the key.
    Version(Vec<u8>, Tick),
    Frame(Time),
}

/// The writes that take out what `retention` does not keep, and what that comes to.
pub(super) fn prune(
    feed: &FeedRecords,
    retention: &Retention,
    now: Time,
) -> Result<(Writes, Pruned), StoreError> {
    let (gone, more) = surplus(lines(feed, retention)?, retention, now);
    let (mut writes, mut pruned) = (Writes::new(), Pruned { more, ..Pruned::default() });
    let mut items: BTreeMap<Vec<u8>, ItemRecord> = BTreeMap::new();
    for thing in gone {
        let (key, tick) = match thing {
            PastThing::Version(item, tick) => (item, tick),
            PastThing::Frame(since) => {
                pruned.documents += 1;
                writes.insert((Class::Past, keys::past(&feed.name, since)), None);
                continue;
            }
        };
        pruned.versions += 1;
        if !items.contains_key(&key) {
            items.insert(key.clone(), feed.records.expected(Class::Items, &key)?);
        }
        let Some(item) = items.get_mut(&key) else { continue };
        let key = keys::version(&feed.name, &item.known.id, tick);
        item.kept = item.kept.saturating_sub(1);
        // Its bytes may still be the newest that the item has.
        if tick == item.body {
            let text = feed.records.text(&key)?.unwrap_or_default();
            let text = TextRecord { note: None, ..text };
            feed.records.put_text(&mut writes, key, &text)?;
        } else {
            writes.insert((Class::Texts, key), None);
        }
    }
    for (key, item) in items {
        feed.records.put(&mut writes, Class::Items, key, &item)?;
    }
    Ok((writes, pruned))
}

/// The versions of each item, and the frames. Of an item with one version that is in force, what is noted is not read.
fn lines(
    feed: &FeedRecords,
    retention: &Retention,
) -> Result<Vec<Succession<PastThing>>, StoreError> {
    let mut texts: BTreeMap<Vec<u8>, Vec<(Tick, u64)>> = BTreeMap::new();
    for (key, size) in feed.records.sizes(Class::Texts, &keys::feed(&feed.name))? {
        let (item, tick) = feed.records.of_key(Class::Texts, &key, keys::split_text(&key))?;
        let Some(tick) = tick else { continue };
        texts.entry(item.to_vec()).or_default().push((tick, size));
    }
    let key = |item: &[u8], tick| [item, &keys::tick_bytes(tick)].concat();
    let several = texts.iter().filter(|(_, texts)| texts.len() > 1);
    let several = several.flat_map(|(item, texts)| texts.iter().map(move |of| (item, of.0)));
    let feed = feed.ahead(several.map(|(item, tick)| (Class::Texts, key(item, tick))))?;
    let mut lines = Vec::new();
    for (item, texts) in texts {
        let (is_one, mut things) = (texts.len() == 1, Vec::new());
        for (tick, size) in texts {
            let key = key(&item, tick);
            let from = match is_one {
                true => Some(Time::MIN),
                false => feed.records.text(&key)?.and_then(|text| text.note).map(|note| note.shown),
            };
            // Bytes whose version went stay.
            let Some(from) = from else { continue };
            things.push(Thing { key: PastThing::Version(item.clone(), tick), from, size });
        }
        lines.push(Succession::of_versions(things, retention));
    }
    let frames = feed.past_frames()?.into_iter();
    let things = frames.map(|(from, size)| Thing { key: PastThing::Frame(from), from, size });
    let ended = feed.frame()?.map(|present| present.since);
    lines.push(Succession { things: things.collect(), ended, most: usize::MAX });
    Ok(lines)
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
