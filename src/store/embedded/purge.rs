//! Purges a feed: first its heads in one transaction, with a note that its content is to be removed, then the content
//! in portions. The next opening finishes what a crash interrupts.

use super::keys;
use super::records::Records;
use crate::StoreError;
use crate::engine::{Class, Writes};
use crate::purge_mark::PurgeMark;
use crate::record::PurgeRecord;
use tidegate_core::model::FeedName;

/// The writes that remove the heads of a feed. `mark`: its purge mark, where it had commits.
pub(super) fn forget(
    records: &Records,
    feed: &FeedName,
    mark: Option<&PurgeMark>,
) -> Result<Writes, StoreError> {
    let mut writes = Writes::new();
    for class in [Class::Feeds, Class::States, Class::Polls] {
        writes.insert((class, keys::feed(feed)), None);
    }
    writes.insert((Class::Marks, keys::of_kind(keys::ATTEMPT, feed)), None);
    if let Some(mark) = mark {
        let record = PurgeRecord { mark: *mark, sweeping: true };
        records.put(&mut writes, Class::Marks, keys::of_kind(keys::PURGED, feed), &record)?;
    }
    Ok(writes)
}

/// Removes a portion of the content; answers whether that was all.
pub(super) fn sweep(
    records: &Records,
    feed: &FeedName,
    mark: &PurgeMark,
) -> Result<bool, StoreError> {
    let redo = [keys::REDO, keys::UNFINISHED].map(|kind| (Class::Marks, keys::of_kind(kind, feed)));
    for (class, prefix) in content(feed).chain(redo) {
        if records.clear(class, &prefix)? {
            return Ok(false);
        }
    }
    let (mut writes, record) = (Writes::new(), PurgeRecord { mark: *mark, sweeping: false });
    records.put(&mut writes, Class::Marks, keys::of_kind(keys::PURGED, feed), &record)?;
    records.engine().apply(writes)?;
    Ok(true)
}

/// The content of a feed: classes, and the prefix of its keys there.
pub(super) fn content(feed: &FeedName) -> impl Iterator<Item = (Class, Vec<u8>)> {
    let classes = [
        Class::Frames,
        Class::Past,
        Class::Items,
        Class::Texts,
        Class::Events,
        Class::Archives,
        Class::Segments,
        Class::Stubs,
    ];
    let index = keys::INDEX.map(|kind| (Class::Index, keys::of_kind(kind, feed)));
    classes.map(|class| (class, keys::feed(feed))).into_iter().chain(index)
}
