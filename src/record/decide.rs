//! What an operator decides about a held document.

use super::draft::Draft;
use super::{Round, Verdict};
use crate::model::Decision;

/// Notes the decision; the next look at the document obeys it. Nothing where nothing is held.
pub fn decide(round: &Round<'_>, decision: Decision) -> Verdict {
    let Some(snapshot) = round.snapshot else { return Verdict::default() };
    let mut draft = Draft::new(round, snapshot);
    let Some(hold) = draft.state.hold.as_mut() else { return Verdict::default() };
    hold.decision = Some(decision);
    let held = (decision == Decision::Drop).then(|| hold.reason.clone());
    draft.state_changed = true;
    draft.into_verdict(held)
}
