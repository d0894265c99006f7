//! What an operator decides about a held document.

use super::draft::ChangeDraft;
use super::{Observation, Verdict};
use tidegate_core::model::Decision;

/// Notes the decision; the next look at the document obeys it. Nothing where nothing is held.
/// Dropping a document drops the entries that were seen only while it was held.
pub fn decide(round: &Observation<'_>, decision: Decision) -> Verdict {
    let Some(snapshot) = round.snapshot else { return Verdict::default() };
    let mut draft = ChangeDraft::new(round, snapshot);
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
