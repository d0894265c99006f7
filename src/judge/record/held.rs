//! The brake applied: what is held, for how long, and what ends it.

use super::compare::ChangedEntry;
use super::draft::ChangeDraft;
use super::{Observation, Verdict};
use crate::document::{Braked, LONGEST_HOLD, OTHER_FEED, find_brake, hold_is_ripe};
use crate::same_item::{self, MatchedEntry};
use crate::window::WindowShift;
use tidegate_core::model::{
    BodyPrints, Completeness, Decision, FeedDocument, HeldEntry, Hold, ItemStatus, LedgerEntry,
    Noise, Origin, Snapshot,
};

/// What the brake makes of a document.
pub(super) enum HoldDecision {
    /// The document passes without a hold. It disproves earlier held documents, so the entries kept of them are
    /// dropped.
    Free,
    /// The document is believed, which ends a hold; the entries kept of held documents are released. `theirs`: the hold
    /// was `other-feed`, so entries kept as another feed's are released as well.
    Ends { theirs: bool },
    /// The document is held, for this reason. `keeps`: whether its new entries are kept.
    Held { reason: String, keeps: bool },
}

/// Whether what was held before came from another address.
pub(super) fn has_moved(draft: &ChangeDraft<'_>) -> bool {
    let source = draft.observation.source();
    let before = draft.snapshot.state.hold.as_ref().map_or(0, |hold| hold.source);
    before != 0 && source != 0 && before != source
}

/// Applies the brake. `beside`: why the complete feed must be held, if so; used if the document itself passes.
pub(super) fn hold(
    window: &WindowShift<'_>,
    prints: BodyPrints,
    draft: &mut ChangeDraft<'_>,
    beside: Option<Braked>,
) -> HoldDecision {
    let input = &window.input;
    let body = prints.short();
    let before = input.snapshot.state.hold.as_ref();
    let full = input.document.completeness == Completeness::Full;
    // A part says nothing of what a whole document is held for, and does not go around it.
    if let (Some(before), false) = (before, full) {
        return HoldDecision::Held { reason: before.describe(), keeps: true };
    }
    let Some(braked) = find_brake(window).or(beside) else {
        draft.state.hold = None;
        // Nothing is there from before the hold, and something that held documents brought: it goes on from them.
        let is_kept = |kept: &HeldEntry| {
            !kept.foreign && input.matching.names.contains(&same_item::native(&kept.entry))
        };
        let goes_on = window.outgoing == window.old.len()
            && !has_moved(draft)
            && input.snapshot.kept.iter().any(is_kept);
        return if goes_on { HoldDecision::Ends { theirs: false } } else { HoldDecision::Free };
    };
    // What another address sent, and what was decided about it, says nothing of this document.
    let before = before.filter(|_| !has_moved(draft));
    let theirs = braked.kind == OTHER_FEED;
    match before.and_then(|hold| hold.decision.map(|decision| (hold, decision))) {
        Some((_, Decision::Release)) => {
            draft.state.hold = None;
            return HoldDecision::Ends { theirs };
        }
        Some((dropped, Decision::Drop)) if dropped.body == body => {
            let reason = format!("{} (dropped by the operator)", dropped.describe());
            return HoldDecision::Held { reason, keeps: false };
        }
        _ => {}
    }
    let same = before.filter(|hold| hold.kind == braked.kind && hold.decision.is_none());
    let another = same.is_none_or(|hold| hold.body != body);
    // What is wrong in one way after the other is still wrong: the day counts from the first.
    let first = before.filter(|hold| hold.decision.is_none());
    let is_overdue = |hold: &Hold| input.now.since(hold.since) >= LONGEST_HOLD;
    let seen = same.or(first.filter(|hold| is_overdue(hold)));
    let row = input.snapshot.state.hold.as_ref();
    let hold = Hold {
        reason: braked.reason,
        kind: braked.kind.to_owned(),
        since: first.map_or(input.now, |hold| hold.since),
        row_since: row.map_or(input.now, |hold| hold.row_since),
        observations: seen.map_or(0, |hold| hold.observations).saturating_add(1),
        documents: same.map_or(0, |hold| hold.documents).saturating_add(u32::from(another)),
        body,
        source: draft.observation.source(),
        kept: before.map_or(0, |hold| hold.kept),
        decision: None,
    };
    if hold_is_ripe(&hold, input.now) {
        draft.state.hold = None;
        return HoldDecision::Ends { theirs };
    }
    let reason = hold.describe();
    draft.state.hold = Some(hold);
    HoldDecision::Held { reason, keeps: true }
}

/// A document that shares nothing, of a feed that did: where it lists nothing of what that had, it is
/// held like that of a plain feed (a login page's feed, a parked address, an accident).
pub(super) fn hold_whole(
    observation: &Observation<'_>,
    snapshot: &Snapshot,
    document: &FeedDocument<'_>,
    prints: BodyPrints,
) -> Option<Verdict> {
    let shares = document.sharing.is_some() || document.entries.iter().any(|e| e.sync.is_some());
    let shared = |known: &LedgerEntry| {
        known.origin == Origin::Upstream && known.standing == ItemStatus::Current
    };
    if shares || observation.options.sharing.local || !snapshot.known.iter().any(shared) {
        return None;
    }
    let matching = same_item::matching(snapshot, document, observation.options);
    if !matching.pairs.is_empty() {
        return None;
    }
    let window = WindowShift::new(observation.judge_input(snapshot, document, &matching, &[]));
    let mut draft = ChangeDraft::new(observation, snapshot);
    match hold(&window, prints, &mut draft, None) {
        HoldDecision::Held { reason, .. } => Some(draft.into_verdict(Some(reason))),
        _ => None,
    }
}

/// Notes what a document that stays held teaches of how items change.
pub(super) fn learn(
    draft: &mut ChangeDraft<'_>,
    pairs: &[(MatchedEntry, Option<ChangedEntry<'_>>)],
) {
    for (pair, compared) in pairs {
        let Some(ChangedEntry { learned, .. }) = compared else { continue };
        let teaches =
            |noise: &Noise| noise.held != learned.is_sure || noise.restless != learned.restless;
        if draft.item(pair.known).is_some_and(|item| teaches(&item.noise)) {
            draft.change(pair.known, |item| {
                item.noise.held = learned.is_sure;
                item.noise.restless.clone_from(&learned.restless);
            });
        }
    }
}
