//! Taking the text of an item out of everything that is kept of it.

use super::keys;
use super::records::Records;
use crate::assemble::{redact_event, redact_note};
use crate::engine::{Class, Writes};
use crate::{StoreError, VersionNote};
use tidegate_core::model::{Change, Event, LedgerEntry, SyncId};

/// Adds to what a change writes what its redactions take out. The entries that the change itself
/// sets or removes stay as it has them.
pub(super) fn redact(
    records: &Records,
    change: &Change,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    for id in &change.redacted {
        versions(records, change, id, writes)?;
        if let Some(known) = change.known.iter().find(|known| known.id == *id) {
            events(records, change, known, writes)?;
        }
    }
    Ok(())
}

fn versions(
    records: &Records,
    change: &Change,
    id: &SyncId,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let item = keys::item(&change.feed, id);
    for entry in records.scan::<VersionNote>(Class::Versions, &item) {
        let (key, mut note) = entry?;
        if writes.contains_key(&(Class::Versions, key.clone())) {
            continue;
        }
        redact_note(&mut note);
        records.put(writes, Class::Versions, key, &note)?;
    }
    for (key, _) in records.sizes(Class::Bodies, &item)? {
        if !writes.contains_key(&(Class::Bodies, key.clone())) {
            writes.insert((Class::Bodies, key), None);
        }
    }
    Ok(())
}

fn events(
    records: &Records,
    change: &Change,
    known: &LedgerEntry,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    for entry in records.scan::<Event>(Class::Events, &keys::feed(&change.feed)) {
        let (key, mut event) = entry?;
        if event.id != known.id || writes.contains_key(&(Class::Events, key.clone())) {
            continue;
        }
        redact_event(&mut event, &known.native_shown);
        records.put(writes, Class::Events, key, &event)?;
    }
    Ok(())
}
