//! What a change must hold before any store takes it. Pure; both stores ask the same questions.

use super::limits::VALUE_LIMIT;
use super::{CommitError, StoreError};
use crate::model::{Change, FeedState, Known, Revision, SyncId, Tick};
use std::collections::{HashMap, HashSet};

/// Checks that a change was computed from the feed's state as it stands, and that it agrees with
/// itself. `exists` says whether an item is known already; every known item has bytes, since this
/// check lets none in without.
pub(super) fn check(
    change: &Change,
    before: Option<&FeedState>,
    mut exists: impl FnMut(&SyncId) -> Result<bool, StoreError>,
) -> Result<(), CommitError> {
    let revision = before.map_or(Revision(0), |state| state.revision);
    if change.base != revision {
        return Err(CommitError::Conflict(revision));
    }
    ticks(change, before.and_then(|state| state.tick)).map_err(|what| invalid(change, what))?;
    if change.state.hold.is_none() && change.kept.as_ref().is_some_and(|kept| !kept.is_empty()) {
        return Err(invalid(change, "it keeps entries though nothing is held".to_owned()));
    }
    sizes(change)?;
    let known = ledger(change).map_err(|what| invalid(change, what))?;
    let versioned = versions(change, &known).map_err(|what| invalid(change, what))?;
    latest(change, &versioned).map_err(|what| invalid(change, what))?;

    // What the change itself does not answer is asked of the store, each item once.
    let mut asked = HashMap::new();
    let mut stored = |id: &SyncId| -> Result<bool, CommitError> {
        if let Some(answer) = asked.get(id) {
            return Ok(*answer);
        }
        let answer = exists(id)?;
        asked.insert(id.clone(), answer);
        Ok(answer)
    };
    for version in change.versions.iter().filter(|version| version.markup.is_none()) {
        if !stored(&version.id)? {
            let what = format!("the version of {} has no bytes to keep", version.id);
            return Err(invalid(change, what));
        }
    }
    for entry in change.known.iter().filter(|entry| !versioned.contains(&entry.id)) {
        if !stored(&entry.id)? {
            return Err(invalid(change, format!("the item {} is new without a version", entry.id)));
        }
    }
    for (id, _) in &change.latest {
        if !stored(id)? {
            return Err(invalid(change, format!("newest bytes of {id}, which is not known")));
        }
    }
    for id in change.order.iter().flatten() {
        if !known.contains_key(id) && !stored(id)? {
            return Err(invalid(change, format!("the order names {id}, which is not known")));
        }
    }
    Ok(())
}

fn invalid(change: &Change, what: String) -> CommitError {
    CommitError::Store(StoreError::Invalid { feed: change.feed.clone(), what })
}

/// Bytes that no store takes, however they are kept.
fn sizes(change: &Change) -> Result<(), StoreError> {
    let feed = &change.feed;
    let versions = change.versions.iter();
    let versions = versions.filter_map(|version| Some((&version.id, version.markup.as_ref()?)));
    let latest = change.latest.iter().map(|(id, markup)| (id, markup));
    for (id, markup) in versions.chain(latest) {
        bounded(markup.xml.len(), || format!("the item {id} of the feed {feed}"))?;
    }
    let skeleton = change.skeleton.as_ref().map_or(0, |skeleton| skeleton.text.len());
    bounded(skeleton, || format!("the document around the entries of {feed}"))
}

fn bounded(size: usize, what: impl FnOnce() -> String) -> Result<(), StoreError> {
    if size > VALUE_LIMIT {
        Err(StoreError::TooLarge { what: what(), size, limit: VALUE_LIMIT })
    } else {
        Ok(())
    }
}

/// A tick comes with versions only, and later than the last one (CONTRACT, Words).
fn ticks(change: &Change, last: Option<Tick>) -> Result<(), String> {
    match change.tick {
        None if !change.versions.is_empty() => Err("it has versions and no tick".to_owned()),
        Some(tick) if change.versions.is_empty() => {
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

fn ledger(change: &Change) -> Result<HashMap<&SyncId, &Known>, String> {
    let mut known = HashMap::with_capacity(change.known.len());
    for entry in &change.known {
        if known.insert(&entry.id, entry).is_some() {
            return Err(format!("it has two ledger entries for {}", entry.id));
        }
    }
    Ok(known)
}

fn versions<'a>(
    change: &'a Change,
    known: &HashMap<&SyncId, &Known>,
) -> Result<HashSet<&'a SyncId>, String> {
    let mut seen = HashSet::with_capacity(change.versions.len());
    for version in &change.versions {
        let id = &version.id;
        if !seen.insert(id) {
            return Err(format!("it has two versions of {id}"));
        }
        let Some(entry) = known.get(id) else {
            return Err(format!("it has a version of {id} and no ledger entry for it"));
        };
        if Some(entry.tick) != change.tick {
            return Err(format!("the version of {id} bears another tick than the change"));
        }
    }
    Ok(seen)
}

fn latest(change: &Change, versioned: &HashSet<&SyncId>) -> Result<(), String> {
    let mut seen = HashSet::with_capacity(change.latest.len());
    for (id, _) in &change.latest {
        if versioned.contains(id) {
            return Err(format!("it has a version of {id} and newest bytes beside it"));
        }
        if !seen.insert(id) {
            return Err(format!("it has newest bytes of {id} twice"));
        }
    }
    Ok(())
}
