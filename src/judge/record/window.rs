//! What leaves a feed with time.

use super::draft::ChangeDraft;
use super::{Observation, Verdict};

/// Lets items leave the window and the ledger, and drops archives, of a feed that did not change
/// otherwise; a change without a tick.
pub fn age(round: &Observation<'_>) -> Verdict {
    let Some(snapshot) = round.snapshot else { return Verdict::default() };
    let mut draft = ChangeDraft::new(round, snapshot);
    draft.shown_changed = draft.advance_window() | draft.has_surplus();
    // Archives grow old too.
    let drops_archives = draft.drop_archives(snapshot.state.archives.next);
    if !draft.shown_changed && !drops_archives {
        return Verdict::default();
    }
    draft.into_verdict(None)
}
