//! Forgetting a feed: first its heads in one transaction, with a note that the rest is to go, then the rest
//! in portions, however much it is. A crash between them is mended at the next start.

use super::keys;
use super::records::Records;
use crate::StoreError;
use crate::engine::{Class, Writes};
use crate::purge_mark::PurgeMark;
use crate::record::FloorRecord;
use tidegate_core::model::FeedName;

/// What makes the feed unknown at once. `floor`: the marks that it leaves, where it had commits.
pub(super) fn forget(
    records: &Records,
    feed: &FeedName,
    floor: Option<&PurgeMark>,
) -> Result<Writes, StoreError> {
    let mut writes = Writes::new();
    for class in [Class::Feeds, Class::States, Class::Polls] {
        writes.insert((class, keys::feed(feed)), None);
    }
    writes.insert((Class::Marks, keys::of_kind(keys::ATTEMPT, feed)), None);
    if let Some(floor) = floor {
        let record = FloorRecord { floor: *floor, sweeping: true };
        records.put(&mut writes, Class::Marks, keys::of_kind(keys::PURGED, feed), &record)?;
    }
    Ok(writes)
}

/// Removes a portion of the rest; whether that is all.
pub(super) fn sweep(
    records: &Records,
    feed: &FeedName,
    floor: &PurgeMark,
) -> Result<bool, StoreError> {
    let redo = [keys::REDO, keys::UNFINISHED].map(|kind| (Class::Marks, keys::of_kind(kind, feed)));
    for (class, prefix) in content(feed).chain(redo) {
        if records.clear(class, &prefix)? {
            return Ok(false);
        }
    }
    let (mut writes, record) = (Writes::new(), FloorRecord { floor: *floor, sweeping: false });
    records.put(&mut writes, Class::Marks, keys::of_kind(keys::PURGED, feed), &record)?;
    records.engine().apply(writes)?;
    Ok(true)
}

/// Where the content of a feed is: classes, and what its keys begin with there.
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
