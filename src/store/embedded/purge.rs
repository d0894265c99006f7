//! Forgetting a feed: first its heads in one transaction, with a note that the rest is to go, then the rest
//! in portions, however much it is. A crash between them is mended at the next start.

use super::keys;
use super::records::Records;
use super::redo::PORTION;
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
    for class in [Class::Feeds, Class::States, Class::Polls, Class::Attempts] {
        writes.insert((class, keys::feed(feed)), None);
    }
    if let Some(floor) = floor {
        note(records, &mut writes, feed, floor, true)?;
    }
    Ok(writes)
}

/// Removes a portion of the rest; whether that is all. Nobody can see it any more, so it goes entry by
/// entry.
pub(super) fn sweep(
    records: &Records,
    feed: &FeedName,
    floor: &PurgeMark,
) -> Result<bool, StoreError> {
    let prefix = keys::feed(feed);
    for class in Class::CONTENT.iter().chain(&[Class::Redo, Class::Unfinished]) {
        if records.engine().clear(*class, &prefix, PORTION)? {
            return Ok(false);
        }
    }
    let mut writes = Writes::new();
    note(records, &mut writes, feed, floor, false)?;
    records.engine().apply(writes)?;
    Ok(true)
}

fn note(
    records: &Records,
    writes: &mut Writes,
    feed: &FeedName,
    floor: &PurgeMark,
    sweeping: bool,
) -> Result<(), StoreError> {
    records.put(writes, Class::Floors, keys::feed(feed), &FloorRecord { floor: *floor, sweeping })
}
