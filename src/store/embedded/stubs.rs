//! What is left of items that left the ledger: a record for each, found by its sync id and its names. A snapshot never reads them.

use super::keys;
use super::records::Records;
use crate::engine::{Class, Writes};
use crate::record::HeadRecord;
use crate::{CommitError, StoreError};
use std::collections::BTreeMap;
use tidegate_core::model::{Change, FeedName, LedgerEntry, SyncId};

/// The most stubs that are answered of one name that is not their sync id. Native ids that many items bore
/// are no names.
const OF_A_NAME: usize = 64;

/// The stubs whose sync id, native id, former native ids or published id is among these, in the order of
/// their sync ids.
pub(super) fn find(
    records: &Records,
    feed: &FeedName,
    names: &[String],
) -> Result<Vec<LedgerEntry>, StoreError> {
    let mut found: BTreeMap<SyncId, LedgerEntry> = BTreeMap::new();
    for name in names {
        let prefix = keys::stub_names(feed, name);
        let mut others = 0;
        for entry in records.entries(Class::StubNames, &prefix) {
            let (key, _) = entry?;
            let cut_off = || records.damaged(Class::StubNames, &key, "it is cut off");
            let (tick, id) = keys::stub_named(feed, &key).ok_or_else(cut_off)?;
            // Whatever others are called, a stub is found by its sync id.
            if id.as_str() != name {
                others += 1;
                if others > OF_A_NAME {
                    continue;
                }
            }
            let stub: LedgerEntry = records.expected(Class::Stubs, &keys::stub(feed, tick, &id))?;
            // Two names may have one hash.
            if stub.names().any(|of| of == name) {
                found.insert(id, stub);
            }
        }
    }
    Ok(found.into_values().collect())
}

/// The entries that a change of a feed's ledger sets and removes for what leaves it and what comes back.
pub(super) fn plan(
    records: &Records,
    change: &Change,
    planned: &mut Writes,
) -> Result<(), CommitError> {
    let feed = &change.feed;
    for stub in &change.evicted {
        let mut writes = Writes::new();
        forget_item(records, feed, &stub.id, &mut writes)?;
        put(records, feed, stub, &mut writes)?;
        planned.extend(writes);
    }
    for id in &change.reinstated {
        let mut writes = Writes::new();
        let stub = find(records, feed, &[id.to_string()])?.into_iter().find(|stub| stub.id == *id);
        let key = keys::item(feed, id);
        let stub = stub.ok_or_else(|| records.damaged(Class::Stubs, &key, "it is missing"))?;
        for name in stub.names() {
            let key = keys::stub_name(feed, name, stub.tick, id);
            writes.insert((Class::StubNames, key), None);
        }
        writes.insert((Class::Stubs, keys::stub(feed, stub.tick, id)), None);
        planned.extend(writes);
    }
    Ok(())
}

/// The entries of a stub.
pub(super) fn put(
    records: &Records,
    feed: &FeedName,
    stub: &LedgerEntry,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    for name in stub.names() {
        let key = keys::stub_name(feed, name, stub.tick, &stub.id);
        writes.insert((Class::StubNames, key), Some(Vec::new()));
    }
    records.put(writes, Class::Stubs, keys::stub(feed, stub.tick, &stub.id), stub)
}

/// Takes out everything that is kept of an item but what archives have.
fn forget_item(
    records: &Records,
    feed: &FeedName,
    id: &SyncId,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let key = keys::item(feed, id);
    let head: HeadRecord = records.expected(Class::Heads, &key)?;
    writes.insert((Class::ByTick, keys::by_tick(feed, head.tick, id)), None);
    for class in [Class::Versions, Class::Bodies] {
        for (version, _) in records.sizes(class, &key)? {
            writes.insert((class, version), None);
        }
    }
    for class in [Class::Ledger, Class::Heads, Class::Latest, Class::Conflicts] {
        writes.insert((class, key.clone()), None);
    }
    Ok(())
}
