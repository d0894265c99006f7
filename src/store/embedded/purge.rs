//! Forgetting a feed: first its heads in one transaction, with a note that the rest is to go, then
//! the rest, however much it is. A crash between the two is mended at the next start.

use super::keys;
use super::records::Records;
use crate::model::FeedName;
use crate::store::StoreError;
use crate::store::engine::{Class, Writes};
use crate::store::purge_mark::PurgeMark;
use crate::store::record::FloorRecord;

/// Where the rest of a feed stands.
const REST: &[Class] = &[
    Class::Skeletons,
    Class::Orders,
    Class::Ledger,
    Class::Heads,
    Class::ByTick,
    Class::Versions,
    Class::Bodies,
    Class::Latest,
    Class::Conflicts,
    Class::Stubs,
    Class::StubNames,
    Class::Events,
    Class::Kept,
    Class::Histories,
    Class::PastOrders,
    Class::PastSkeletons,
    Class::Archives,
    Class::ArchiveIds,
    Class::Segments,
];

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

/// Removes the rest. Nobody can see it any more, so it goes entry by entry.
pub(super) fn sweep(
    records: &Records,
    feed: &FeedName,
    floor: &PurgeMark,
) -> Result<(), StoreError> {
    let prefix = keys::feed(feed);
    for class in REST {
        records.engine().clear(*class, &prefix)?;
    }
    let mut writes = Writes::new();
    note(records, &mut writes, feed, floor, false)?;
    records.engine().apply(writes)
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
