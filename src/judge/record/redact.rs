//! The operator's word that an item's text must go: a tombstone without a text, and no way back.

use super::draft::{ChangeDraft, EventDetails};
use super::redacted_filter::{KeptOut, veiled};
use super::{Observation, Verdict, stand_in};
use tidegate_core::model::{EventKind, ItemStatus, LedgerEntry, SyncId};

/// What came of the wish to redact an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redaction {
    /// The feed has no such item.
    Unknown,
    /// It was redacted before.
    Before,
    /// This is to be committed.
    Commit(Box<Verdict>),
}

/// Redacts an item: what lives becomes a tombstone (SSE 1.0 section 3.2), what is one already stays
/// one, and the ledger forgets what the item said. It remembers the ids and the link, by which the
/// item is kept out while its publisher still lists it. `why` is the reason to be shown.
pub fn redact(round: &Observation<'_>, id: &SyncId, why: &str) -> Redaction {
    let Some(snapshot) = round.snapshot else { return Redaction::Unknown };
    let Some(at) = snapshot.position(id) else { return Redaction::Unknown };
    if snapshot.known.get(at).is_some_and(LedgerEntry::is_redacted) {
        return Redaction::Before;
    }
    let mut draft = ChangeDraft::new(round, snapshot);
    forget_in(&mut draft, at, why);
    Redaction::Commit(Box::new(draft.into_verdict(None)))
}

/// Redacts the item that stands at `at`.
pub(super) fn forget_in(draft: &mut ChangeDraft<'_>, at: usize, why: &str) {
    let Some(known) = draft.item(at).cloned() else { return };
    let id = &known.id;
    draft.change(at, forget);
    let standing = ItemStatus::Redacted { since: draft.round.now };
    let stand_in = stand_in::nothing(draft.state.format);
    let said = EventDetails::new(EventKind::Deleted, why);
    let is_version =
        !known.is_tombstone() && draft.update(at, standing.clone(), Some(stand_in.clone()), said);
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
    item.native = veiled(&item.native);
    for name in item.aliases.iter_mut().chain([&mut item.native_shown]) {
        // The identity of an item without id and link is made of its title.
        if name.starts_with("title:") {
            *name = veiled(name);
        }
    }
    item.title.clear();
    item.enclosure = None;
    item.absence = None;
    item.prints.clear();
    item.bytes = 0;
    item.extras = None;
}
