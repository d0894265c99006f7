//! The operator's word that a missing item was deleted by its publisher.

use super::draft::{ChangeDraft, EventDetails};
use super::{Observation, Verdict};
use tidegate_core::model::{EventKind, ItemStatus, Origin, SyncId};

/// Why a missing item was not deleted.
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
/// `None` where it is a tombstone already.
pub fn delete_missing(
    round: &Observation<'_>,
    id: &SyncId,
) -> Result<Option<Verdict>, DeletionError> {
    let snapshot = round.snapshot.ok_or(DeletionError::Unknown)?;
    let at = snapshot.position(id).ok_or(DeletionError::Unknown)?;
    let known = snapshot.known.get(at).ok_or(DeletionError::Unknown)?;
    if known.origin != Origin::Observed || round.options.sharing.local {
        return Err(DeletionError::NotObserved);
    }
    let (since, seen_gone) = match (&known.standing, &known.absence) {
        (ItemStatus::Current, Some(absence)) => {
            let since = absence.since.by_another_clock(round.aged, round.now);
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
    let said = EventDetails { seen_gone, ..EventDetails::new(EventKind::Deleted, why) };
    let mut draft = ChangeDraft::new(round, snapshot);
    if !draft.delete(at, said) {
        return Err(DeletionError::Full);
    }
    draft.take_out_of_view(id);
    Ok(Some(draft.into_verdict(None)))
}
