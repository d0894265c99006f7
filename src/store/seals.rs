//! What a commit does to a feed's archives; the same for every store.

use std::collections::HashSet;
use std::time::Duration;
use tidegate_core::model::{Archive, ArchiveNote, Chain, Change, FeedState, Seal, SyncId, Time};

/// What is noted of a segment that a change seals and that takes `bytes`.
pub(super) fn note(seal: &Seal, archive: &Archive, state: &FeedState, bytes: u64) -> ArchiveNote {
    let count = |length| u32::try_from(length).unwrap_or(u32::MAX);
    // Each has a second of its own, before that of the feed: what is newer says so.
    let behind = Duration::from_secs(state.archives.next.saturating_sub(seal.number));
    ArchiveNote {
        number: seal.number,
        id: seal.id.clone(),
        previous: seal.previous.clone(),
        sealed: state.updated_at.minus(behind),
        until: state.archives.sealed.unwrap_or(tidegate_core::model::Tick::at(Time::MIN)),
        entries: count(archive.items.len()),
        deletions: count(archive.deleted.len()),
        bytes,
        redacted: None,
        dropped: false,
    }
}

/// What is noted of an archive that text was taken out of at `when`, and that takes `bytes` now.
pub(super) fn redacted(
    old: &ArchiveNote,
    archive: &Archive,
    when: Time,
    bytes: u64,
) -> ArchiveNote {
    let count = |length| u32::try_from(length).unwrap_or(u32::MAX);
    ArchiveNote {
        entries: count(archive.items.len()),
        deletions: count(archive.deleted.len()),
        bytes,
        redacted: Some(when),
        ..old.clone()
    }
}

/// Checks that what a change seals and drops follows the chain as it stands.
pub(super) fn check(change: &Change, before: Option<&FeedState>) -> Result<(), String> {
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
