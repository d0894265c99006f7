//! Taking the text of an item out of everything that is kept of it.

use super::keys;
use super::plan::encoded;
use super::trees::{Class, Trees, Writes};
use crate::model::{Change, Event, LedgerEntry, SyncId};
use crate::store::assemble::{redact_event, redact_note};
use crate::store::{StoreError, VersionNote};

/// Adds to what a change writes what its redactions take out. The entries that the change itself
/// sets or removes stay as it has them.
pub(super) fn redact(
    trees: &Trees,
    change: &Change,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    for id in &change.redacted {
        versions(trees, change, id, writes)?;
        if let Some(known) = change.known.iter().find(|known| known.id == *id) {
            events(trees, change, known, writes)?;
        }
    }
    Ok(())
}

fn versions(
    trees: &Trees,
    change: &Change,
    id: &SyncId,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    let item = keys::item(&change.feed, id);
    for entry in trees.scan::<VersionNote>(Class::Versions, item.clone()) {
        let (key, mut note) = entry?;
        if writes.contains_key(&(Class::Versions, key.clone())) {
            continue;
        }
        redact_note(&mut note);
        let what = || format!("a version of {id} in the feed {}", change.feed);
        let record = encoded(trees, &note, what)?;
        trees.put(writes, Class::Versions, key, &record)?;
    }
    for key in trees.tree(Class::Bodies).scan_prefix(&item).keys() {
        let key = key.map_err(|error| trees.failed("read", error))?.to_vec();
        if !writes.contains_key(&(Class::Bodies, key.clone())) {
            trees.remove(writes, Class::Bodies, key)?;
        }
    }
    Ok(())
}

fn events(
    trees: &Trees,
    change: &Change,
    known: &LedgerEntry,
    writes: &mut Writes,
) -> Result<(), StoreError> {
    for entry in trees.scan::<Event>(Class::Events, keys::feed(&change.feed)) {
        let (key, mut event) = entry?;
        if event.id != known.id || writes.contains_key(&(Class::Events, key.clone())) {
            continue;
        }
        redact_event(&mut event, &known.native_shown);
        let what = || format!("an event of the feed {}", change.feed);
        let record = encoded(trees, &event, what)?;
        trees.put(writes, Class::Events, key, &record)?;
    }
    Ok(())
}
