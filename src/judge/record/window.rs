//! The sync view's window: which changes have been in it long enough (SSE 1.0 section 4.2.4).

use super::draft::ChangeDraft;
use super::{Observation, Verdict};
use std::time::Duration;
use tidegate_core::model::{FeedState, LedgerEntry, Tick};

/// Moves the window's start to the greatest tick that has left it; says whether it moved. The
/// last tick never leaves, so that `since` never passes `until`. `settled`: the greatest tick of the items
/// that were not read which has left it.
pub(super) fn advance<'a>(
    state: &mut FeedState,
    known: impl Iterator<Item = &'a LedgerEntry>,
    settled: Option<Tick>,
    now: tidegate_core::model::Time,
    window: Duration,
) -> bool {
    let cutoff = Tick::at(now.minus(window));
    let left = known.map(|k| k.tick).chain(settled).filter(|t| *t < cutoff).max();
    match (left, state.window_start) {
        (Some(left), Some(start)) if left > start => {
            state.window_start = Some(left);
            true
        }
        _ => false,
    }
}

/// Lets items leave the window and the ledger, and drops archives, of a feed that did not change
/// otherwise; a change without a tick.
pub fn age(round: &Observation<'_>) -> Verdict {
    let Some(snapshot) = round.snapshot else { return Verdict::default() };
    let mut draft = ChangeDraft::new(round, snapshot);
    draft.shown_changed = draft.advance_window() | draft.has_surplus();
    // Archives grow old too.
    draft.state_changed = draft.drop_archives(snapshot.state.archives.next);
    if !draft.shown_changed && !draft.state_changed {
        return Verdict::default();
    }
    draft.into_verdict(None)
}
