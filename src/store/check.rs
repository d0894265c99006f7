//! Checks a change before the store takes it. Pure.

use super::{CommitError, StoreError};
use std::collections::{HashMap, HashSet};
use tidegate_core::model::{
    Chain, Change, Conflicting, FeedState, LedgerEntry, NewVersion, Revision, SyncId,
};

/// Checks that a change was computed from the present state of the feed, and that it agrees with itself. `order`:
/// that of the present reader view. `stored` tells whether an item exists; every known item has bytes, since this
/// check admits none without.
pub(super) fn check(
    change: &Change,
    before: Option<&FeedState>,
    order: &[SyncId],
    stored: impl Fn(&SyncId) -> Result<bool, StoreError>,
) -> Result<(), CommitError> {
    let revision = before.map_or(Revision(0), |state| state.revision);
    if change.base != revision {
        return Err(CommitError::Conflict(revision));
    }
    let agrees = agrees_with_itself(change, before, order);
    let (known, versioned) = agrees.map_err(|what| invalid(change, what))?;

    // Items that the change does not have are looked up in the store.
    let must_be_stored = |id: &SyncId, what: &dyn Fn() -> String| match stored(id) {
        Ok(true) => Ok(()),
        Ok(false) => Err(invalid(change, what())),
        Err(error) => Err(error.into()),
    };
    for NewVersion { id, .. } in change.versions.iter().filter(|of| of.markup.is_none()) {
        must_be_stored(id, &|| format!("the version of {id} has no bytes to keep"))?;
    }
    for LedgerEntry { id, .. } in &change.evicted {
        must_be_stored(id, &|| format!("{id} leaves, which is not known"))?;
    }
    let is_lacking = |of: &&Conflicting| of.versions.iter().any(|of| of.data.is_none());
    for Conflicting { id, .. } in change.conflicts.iter().filter(is_lacking) {
        must_be_stored(id, &|| format!("a conflict of {id} has no bytes to keep"))?;
    }
    for LedgerEntry { id, .. } in change.known.iter().filter(|of| !versioned.contains(&of.id)) {
        must_be_stored(id, &|| format!("the item {id} is new without a version"))?;
    }
    let order: HashSet<&SyncId> = order.iter().collect();
    let is_new = |id: &&SyncId| !known.contains_key(*id) && !order.contains(*id);
    for id in change.order.iter().flatten().filter(is_new) {
        must_be_stored(id, &|| format!("the order names {id}, which is not known"))?;
    }
    let sealed = change.seals.iter().flat_map(|seal| &seal.items);
    for id in sealed.filter(|id| !known.contains_key(*id)) {
        must_be_stored(id, &|| format!("it seals {id}, which is not known"))?;
    }
    Ok(())
}

/// The ledger entries of a change that agrees with itself, and the items that have versions in it.
fn agrees_with_itself<'a>(
    change: &'a Change,
    before: Option<&FeedState>,
    order: &[SyncId],
) -> Result<(HashMap<&'a SyncId, &'a LedgerEntry>, HashSet<&'a SyncId>), String> {
    check_ticks(change, before)?;
    if change.state.hold.is_none() && change.kept.as_ref().is_some_and(|kept| !kept.is_empty()) {
        return Err("it keeps entries though nothing is held".to_owned());
    }
    let known = ledger(change)?;
    let versioned = versions(change, &known)?;
    latest(change, &versioned)?;
    check_redacted(change, &known)?;
    check_seals(change, before)?;
    check_touched(change, &known)?;
    check_conflicts(change, &known)?;
    check_evicted(change, order, &known)?;
    Ok((known, versioned))
}

pub(super) fn invalid(change: &Change, what: String) -> CommitError {
    CommitError::Store(StoreError::Invalid { feed: change.feed.clone(), what })
}

/// A tick comes with versions, with an announced change of the feed's head, or with a new window of the sync view,
/// and is later than the last one (CONTRACT, Words).
fn check_ticks(change: &Change, before: Option<&FeedState>) -> Result<(), String> {
    let last = before.and_then(|state| state.tick);
    let tells_head = before.is_some_and(|state| state.told.told != change.state.told.told);
    let is_empty = change.versions.is_empty() && !tells_head;
    match change.tick {
        None if !change.versions.is_empty() => Err("it has versions and no tick".to_owned()),
        Some(tick) if is_empty && change.state.window_start != Some(tick) => {
            Err(format!("it has the tick {tick} and no versions"))
        }
        Some(tick) if last.is_some_and(|last| tick <= last) => {
            Err(format!("its tick {tick} is not after the last one"))
        }
        Some(tick) if change.state.tick != Some(tick) => {
            Err(format!("its state does not bear its tick {tick}"))
        }
        None if change.state.tick != last => Err("its state moves the tick without one".to_owned()),
        _ => Ok(()),
    }
}

/// The ids, each of which must be there once.
fn once<'a>(
    what: &str,
    ids: impl Iterator<Item = &'a SyncId>,
) -> Result<HashSet<&'a SyncId>, String> {
    let mut seen = HashSet::new();
    for id in ids {
        if !seen.insert(id) {
            return Err(format!("it has two {what} {id}"));
        }
    }
    Ok(seen)
}

fn ledger(change: &Change) -> Result<HashMap<&SyncId, &LedgerEntry>, String> {
    once("ledger entries for", change.known.iter().map(|entry| &entry.id))?;
    Ok(change.known.iter().map(|entry| (&entry.id, entry)).collect())
}

fn versions<'a>(
    change: &'a Change,
    known: &HashMap<&SyncId, &LedgerEntry>,
) -> Result<HashSet<&'a SyncId>, String> {
    for NewVersion { id, .. } in &change.versions {
        let Some(entry) = known.get(id) else {
            return Err(format!("it has a version of {id} and no ledger entry for it"));
        };
        if Some(entry.tick) != change.tick {
            return Err(format!("the version of {id} bears another tick than the change"));
        }
    }
    once("versions of", change.versions.iter().map(|version| &version.id))
}

/// A redaction must not leave an item without bytes to show.
fn check_redacted(change: &Change, known: &HashMap<&SyncId, &LedgerEntry>) -> Result<(), String> {
    for id in &change.redacted {
        if known.get(id).is_none_or(|known| !known.is_redacted()) {
            return Err(format!("it redacts {id} and does not say so in the ledger"));
        }
        let version = change.versions.iter().find(|version| version.id == *id);
        let latest = change.latest.iter().any(|(latest, _)| latest == id);
        if !latest && version.is_none_or(|version| version.markup.is_none()) {
            return Err(format!("it redacts {id} and has no bytes to stand in"));
        }
    }
    Ok(())
}

/// Readers of an earlier document learn the changes of this one by these fields.
fn check_touched(change: &Change, known: &HashMap<&SyncId, &LedgerEntry>) -> Result<(), String> {
    let versions = change.versions.iter().map(|version| &version.id);
    for id in versions.chain(change.latest.iter().map(|(id, _)| id)) {
        let Some(entry) = known.get(id) else {
            return Err(format!("it has newest bytes of {id} and no ledger entry for it"));
        };
        if entry.touched != change.state.render_revision {
            let (found, render) = (entry.touched, change.state.render_revision);
            return Err(format!("{id} is shown anew since {render} and says since {found}"));
        }
    }
    Ok(())
}

/// The ledger says how many conflicts an item has, and they are versions of that item.
fn check_conflicts(change: &Change, known: &HashMap<&SyncId, &LedgerEntry>) -> Result<(), String> {
    once("lists of conflicts of", change.conflicts.iter().map(|of| &of.id))?;
    for Conflicting { id, versions } in &change.conflicts {
        let noted = known.get(id).map(|known| known.conflicts);
        if noted.and_then(|noted| usize::try_from(noted).ok()) != Some(versions.len()) {
            return Err(format!("the ledger does not bear the conflicts of {id}"));
        }
        if versions.len() > Conflicting::LIMIT {
            return Err(format!("{id} has more than {} conflicts", Conflicting::LIMIT));
        }
        if versions.iter().any(|version| version.id != *id) {
            return Err(format!("another item's version is in conflict with {id}"));
        }
    }
    Ok(())
}

/// An item that leaves the ledger changes in no other way, and one that comes back has bytes.
fn check_evicted(
    change: &Change,
    order: &[SyncId],
    known: &HashMap<&SyncId, &LedgerEntry>,
) -> Result<(), String> {
    let shown = change.order.as_deref().unwrap_or(order).iter();
    let sealed = change.seals.iter().flat_map(|seal| &seal.items);
    let mut used: HashSet<&SyncId> = if change.evicted.is_empty() {
        HashSet::new()
    } else {
        shown.chain(sealed).chain(known.keys().copied()).collect()
    };
    for LedgerEntry { id, .. } in &change.evicted {
        if !used.insert(id) {
            return Err(format!("{id} leaves the ledger and changes, or leaves twice"));
        }
    }
    for id in &change.reinstated {
        let version = change.versions.iter().find(|version| version.id == *id);
        if version.is_none_or(|version| version.markup.is_none()) {
            return Err(format!("{id} comes back to the ledger without a version and its bytes"));
        }
    }
    match known.values().find(|known| known.is_evicted()) {
        Some(known) => Err(format!("the ledger says of {} that it left", known.id)),
        None => Ok(()),
    }
}

fn latest(change: &Change, versioned: &HashSet<&SyncId>) -> Result<(), String> {
    let latest = once("newest bytes of", change.latest.iter().map(|(id, _)| id))?;
    match latest.intersection(versioned).next() {
        Some(id) => Err(format!("it has a version of {id} and newest bytes beside it")),
        None => Ok(()),
    }
}

/// Checks that what a change seals and drops follows the chain as it stands.
fn check_seals(change: &Change, before: Option<&FeedState>) -> Result<(), String> {
    let nothing = Chain::default();
    let old = before.map_or(&nothing, |state| &state.archives);
    let new = &change.state.archives;
    let mut last = old.newest.as_ref();
    for (number, seal) in (old.next..).zip(&change.seals) {
        if seal.number != number || seal.previous.as_ref() != last {
            return Err(format!("the archive {} does not follow the last one", seal.id));
        }
        let once: HashSet<&SyncId> = seal.items.iter().collect();
        if seal.items.is_empty() || once.len() != seal.items.len() {
            return Err(format!("the archive {} lists nothing, or something twice", seal.id));
        }
        last = Some(&seal.id);
    }
    let sealed = u64::try_from(change.seals.len()).unwrap_or(u64::MAX);
    if new.newest.as_ref() != last || new.next != old.next.saturating_add(sealed) {
        return Err("its chain of archives does not end with its seals".to_owned());
    }
    if !(old.first..=old.next).contains(&new.first) {
        return Err("it drops archives that are not there".to_owned());
    }
    if new.sealed < old.sealed || new.sealed > change.state.tick {
        return Err("it seals up to a tick that its feed has not reached or had left".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
