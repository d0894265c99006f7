//! The brake applied: what is held, for how long, and what ends it.

use super::BodyPrints;
use super::compare::Compared;
use super::draft::Draft;
use crate::identity::Pair;
use crate::judge::{self, Scene, Window};
use crate::model::{Completeness, Decision, Hold, Noise};

/// The part of a fingerprint that is enough to tell two documents of a feed apart.
#[allow(clippy::cast_possible_truncation)]
const fn short(print: u128) -> u64 {
    print as u64
}

/// Applies the brake: the reason where the document stays held.
pub(super) fn hold(
    scene: &Scene<'_>,
    window: &Window,
    prints: BodyPrints,
    draft: &mut Draft<'_>,
) -> Option<String> {
    let body = short(prints.body);
    let before = scene.snapshot.state.hold.as_ref();
    let full = scene.document.completeness == Completeness::Full;
    // A part says nothing of what a whole document is held for, and does not go around it.
    if let (Some(before), false) = (before, full) {
        return Some(format!("{}: {}", before.kind, before.reason));
    }
    let Some(braked) = judge::brake(scene, window) else {
        if before.is_some() {
            draft.state.hold = None;
            draft.state_changed = true;
        }
        return None;
    };
    match before.and_then(|hold| hold.decision.map(|decision| (hold, decision))) {
        Some((_, Decision::Release)) => {
            draft.state.hold = None;
            draft.state_changed = true;
            return None;
        }
        Some((dropped, Decision::Drop)) if dropped.body == body => {
            return Some(format!("{}: {} (dropped by the operator)", dropped.kind, dropped.reason));
        }
        _ => {}
    }
    let same = before.filter(|hold| hold.kind == braked.kind && hold.decision.is_none());
    let another = same.is_none_or(|hold| hold.body != body);
    let hold = Hold {
        reason: braked.reason,
        kind: braked.kind.to_owned(),
        since: same.map_or(scene.now, |hold| hold.since),
        observations: same.map_or(0, |hold| hold.observations).saturating_add(1),
        documents: same.map_or(0, |hold| hold.documents).saturating_add(u32::from(another)),
        body,
        decision: None,
    };
    draft.state_changed = true;
    if judge::hold_is_ripe(&hold, scene.now) {
        draft.state.hold = None;
        return None;
    }
    let reason = format!("{}: {}", hold.kind, hold.reason);
    draft.state.hold = Some(hold);
    Some(reason)
}

/// Notes what a document that stays held teaches of how items change.
pub(super) fn learn(draft: &mut Draft<'_>, pairs: &[Pair], compared: &[Option<Compared>]) {
    for (pair, compared) in pairs.iter().zip(compared) {
        let Some(compared) = compared else { continue };
        let teaches =
            |noise: &Noise| noise.held != compared.is_sure || noise.restless != compared.restless;
        if draft.item(pair.known).is_some_and(|item| teaches(&item.noise)) {
            draft.change(pair.known, |item| {
                item.noise.held = compared.is_sure;
                item.noise.restless.clone_from(&compared.restless);
            });
        }
    }
}
