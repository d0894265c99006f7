//! What an operator decides: about a held document, that a missing item was deleted by its publisher, and that an
//! item's text must go.

use super::draft::{ChangeDraft, EventDetails};
use super::redacted_filter::{KeptOut, veiled};
use super::{Observation, Verdict, stand_in};
use tidegate_core::model::{Decision, EventKind, ItemStatus, LedgerEntry, Origin, SyncId};

/// Notes the decision; the next look at the document obeys it. Nothing where nothing is held.
/// Dropping a document drops the entries that were seen only while it was held.
pub fn decide(observation: &Observation<'_>, decision: Decision) -> Verdict {
    let Some(snapshot) = observation.snapshot else { return Verdict::default() };
    let mut draft = ChangeDraft::new(observation, snapshot);
    let Some(hold) = draft.state.hold.as_mut() else { return Verdict::default() };
    hold.decision = Some(decision);
    let mut held = None;
    if decision == Decision::Drop {
        held = Some(hold.reason.clone());
        hold.kept = 0;
        draft.kept = Some(Vec::new());
    }
    draft.into_verdict(held)
}

/// Why an item was not deleted, or not redacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DeletionError {
    #[error("the feed has no item of that sync id")]
    Unknown,
    #[error(
        "the item was not made by this gateway from what a publisher lists: it is deleted where it is \
         made"
    )]
    NotObserved,
    #[error(
        "the publisher's newest document lists the item; only what is missing from it can be deleted \
         here, and `redact` takes out what it lists"
    )]
    Listed,
    #[error(
        "the publisher's newest document is held and its items are not judged: release or drop it first"
    )]
    Held,
    #[error("the item was updated as often as SSE can count, so it can be deleted no more")]
    Full,
}

/// Deletes an item that is missing from its publisher's document: one that is retired, or about whose
/// absence nothing is decided yet (SSE 1.0 section 3.2). It is undeleted where it is listed again.
/// `None` if it is a tombstone already.
pub fn delete_missing(
    observation: &Observation<'_>,
    id: &SyncId,
) -> Result<Option<Verdict>, DeletionError> {
    let snapshot = observation.snapshot.ok_or(DeletionError::Unknown)?;
    let at = snapshot.position(id).ok_or(DeletionError::Unknown)?;
    let known = snapshot.known.get(at).ok_or(DeletionError::Unknown)?;
    if known.origin != Origin::Observed || observation.options.sharing.local {
        return Err(DeletionError::NotObserved);
    }
    let (since, seen_gone) = match (&known.standing, &known.absence) {
        (ItemStatus::Current, Some(absence)) => {
            let since = absence.since.by_another_clock(observation.running_now, observation.now);
            (format!("missing since {since}; {}", absence.seen), Some(since))
        }
        (ItemStatus::Retired { since }, _) => (format!("retired since {since}"), None),
        (ItemStatus::Evicted { since, deleted: false }, _) => {
            (format!("in archives alone since {since}"), None)
        }
        (ItemStatus::Deleted { .. } | ItemStatus::Redacted { .. }, _)
        | (ItemStatus::Evicted { deleted: true, .. }, _) => return Ok(None),
        (ItemStatus::Discarded { .. }, _) => return Err(DeletionError::NotObserved),
        (ItemStatus::Current, None) if snapshot.state.hold.is_some() => {
            return Err(DeletionError::Held);
        }
        (ItemStatus::Current, None) | (ItemStatus::Older { .. }, _) => {
            return Err(DeletionError::Listed);
        }
    };
    let why = format!("deleted by the operator: it is {since}");
    let details = EventDetails { seen_gone, ..EventDetails::new(EventKind::Deleted, why) };
    let mut draft = ChangeDraft::new(observation, snapshot);
    if !draft.delete(at, details) {
        return Err(DeletionError::Full);
    }
    draft.take_out_of_view(id);
    Ok(Some(draft.into_verdict(None)))
}

/// Redacts an item: what lives becomes a tombstone (SSE 1.0 section 3.2), what is one already stays
/// one, and the ledger forgets what the item said. It remembers the ids and the link, by which the
/// item is kept out while its publisher still lists it. `why` is the reason to be shown. `None` if it was
/// redacted before.
pub fn redact(
    observation: &Observation<'_>,
    id: &SyncId,
    why: &str,
) -> Result<Option<Verdict>, DeletionError> {
    let snapshot = observation.snapshot.ok_or(DeletionError::Unknown)?;
    let at = snapshot.position(id).ok_or(DeletionError::Unknown)?;
    if snapshot.known.get(at).is_some_and(LedgerEntry::is_redacted) {
        return Ok(None);
    }
    let mut draft = ChangeDraft::new(observation, snapshot);
    forget_in(&mut draft, at, why);
    Ok(Some(draft.into_verdict(None)))
}

/// Redacts the item that stands at `at`.
pub(super) fn forget_in(draft: &mut ChangeDraft<'_>, at: usize, why: &str) {
    let Some(known) = draft.item(at).cloned() else { return };
    let id = &known.id;
    draft.change(at, forget);
    let standing = ItemStatus::Redacted { since: draft.observation.now };
    let stand_in = stand_in::nothing(draft.state.format);
    let details = EventDetails::new(EventKind::Deleted, why);
    let is_version = !known.is_tombstone()
        && draft.update(at, standing.clone(), Some(stand_in.clone()), details);
    if !is_version {
        draft.change(at, |item| item.standing = standing);
        draft.keep_latest(id.clone(), stand_in);
    }
    draft.take_out_of_view(id);
    draft.set_conflicts(at, Vec::new());
    forget_in_conflicts(draft, &known);
    draft.redacted.push(id.clone());
    draft.shown_changed = true;
}

/// Drops what is in conflict with other items and is a redacted one under another sync id: whoever
/// resolves such a conflict would bring its text back.
fn forget_in_conflicts(draft: &mut ChangeDraft<'_>, redacted: &LedgerEntry) {
    let contested = draft.positions(|known| known.conflicts > 0 && known.id != redacted.id);
    if contested.is_empty() {
        return;
    }
    let others: Vec<&LedgerEntry> = draft.ledger().filter(|k| k.id != redacted.id).collect();
    let all = others.into_iter().chain([redacted]);
    let kept_out = KeptOut::new(all, |known| known.id == redacted.id);
    for at in contested {
        let Some(id) = draft.item(at).map(|known| known.id.clone()) else { continue };
        let mut versions = draft.conflicts_of(&id);
        let before = versions.len();
        versions.retain(|version| !version.data.as_ref().is_some_and(|data| kept_out.is(data)));
        if versions.len() < before {
            draft.set_conflicts(at, versions);
        }
    }
}

/// Takes out of a ledger entry what the item said.
fn forget(item: &mut LedgerEntry) {
    for name in item.aliases.iter_mut().chain([&mut item.native_shown]) {
        // The identity of an item without id and link is made of its title.
        if name.starts_with("title:") {
            *name = veiled(name);
        }
    }
    item.title.clear();
    item.absence = None;
    item.prints.clear();
    item.bytes = 0;
    item.extras = None;
}
