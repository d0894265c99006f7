//! What becomes of items that are missing.

use super::draft::{ChangeDraft, EventDetails};
use super::{Observation, Verdict, head, rate_limited};
use crate::JudgeInput;
use crate::hole::Conclusion;
use crate::probe::{Replies, answers, note_answer};
use tidegate_core::model::{
    Absence, Doubts, EventKind, Evidence, ItemStatus, LedgerEntry, Markup, Time,
};

/// Looks again at what is pending when a poll found the document unchanged: `same` such full
/// observations were made since the last commit, this one included.
pub fn decide_pending(observation: &Observation<'_>, same: u32) -> Verdict {
    let Some(snapshot) = observation.snapshot else { return Verdict::default() };
    let mut draft = ChangeDraft::new(observation, snapshot);
    for (at, known) in snapshot.known.iter().enumerate() {
        if let Some(absence) = known.pending_absence() {
            conclude(&mut draft, at, absence, absence.observations.saturating_add(same));
        }
    }
    rate_limited::publish_waiting(&mut draft, snapshot);
    head::tell(&mut draft);
    draft.advance_window();
    draft.into_verdict(None)
}

/// Takes in what a round of asking missing items' own addresses heard: `same` full observations were made since the
/// last commit. Items that were asked about keep them; all others start again at zero. Answers about items that are
/// not missing any more are dropped. While a document is held, answers are kept and nothing is concluded.
pub fn judge_replies(observation: &Observation<'_>, replies: &Replies, same: u32) -> Verdict {
    let Some(snapshot) = observation.snapshot else { return Verdict::default() };
    let mut draft = ChangeDraft::new(observation, snapshot);
    for (id, answer) in answers(snapshot, replies) {
        let Some(at) = snapshot.position(&id) else { continue };
        let absence = snapshot.known.get(at).and_then(LedgerEntry::pending_absence);
        let Some(absence) = absence else { continue };
        let probe = Some(note_answer(absence.probe.as_ref(), answer, observation.running_now));
        let observations = absence.observations.saturating_add(same);
        let absence = Absence { probe, observations, ..absence.clone() };
        let is_held = snapshot.state.hold.is_some();
        if is_held || !conclude(&mut draft, at, &absence, observations) {
            draft.change(at, |item| item.absence = Some(absence));
        }
    }
    if draft.known.is_empty() { Verdict::default() } else { draft.into_verdict(None) }
}

/// Concludes from an item's absence; false where it is too early.
pub(super) fn conclude(
    draft: &mut ChangeDraft<'_>,
    at: usize,
    absence: &Absence,
    observations: u32,
) -> bool {
    let running_now = draft.observation.running_now;
    let conclusion = crate::hole::conclude(
        absence,
        observations,
        draft.observation.options.deletions,
        running_now,
    );
    let stood = running_now.since(absence.since).as_secs() / 3600;
    let seen = absence.seen.as_str();
    let mut words = if stood > 0 {
        format!("{seen}; so for {stood} hours in {observations} observations")
    } else {
        seen.to_owned()
    };
    if let Some(probe) = &absence.probe {
        let link = draft.item(at).and_then(|item| item.link.as_deref());
        words = format!("{words}; {}", crate::probe::describe_probe(probe, link));
    }
    match conclusion {
        Conclusion::Wait => return false,
        Conclusion::Retire => {
            if let Some(details) = rate_limited::due(draft, at, true) {
                draft.publish_waiting(at, details);
            }
            draft.retire(at, words);
        }
        Conclusion::Delete => {
            let details = EventDetails {
                seen_gone: Some(absence.since),
                ..EventDetails::new(EventKind::Deleted, words)
            };
            draft.delete(at, details);
        }
    }
    true
}

/// Makes an item of an entry that was seen only while the feed was held, and is not in the document
/// that ended the hold. It slid off meanwhile: it is retired at once. Where the document lists every
/// item it was taken away, which is confirmed as always, or not told at all.
pub(super) fn seen_while_held(
    draft: &mut ChangeDraft<'_>,
    input: &JudgeInput<'_>,
    known: LedgerEntry,
    markup: Markup,
    since: Time,
) {
    let (now, running_now) = (draft.observation.now, draft.observation.running_now);
    let (evidence, gone) = if input.is_complete() {
        (Evidence::Complete, "the document lists every item and not this one")
    } else {
        (Evidence::Aged, "it slid off the end of the document while the feed was held")
    };
    let seen = gone.to_owned();
    let doubts = Doubts::NONE;
    let absence =
        Absence { evidence, since: running_now, observations: 1, doubts, seen, probe: None };
    let conclusion =
        crate::hole::conclude(&absence, 1, draft.observation.options.deletions, running_now);
    let (standing, absence) = match conclusion {
        Conclusion::Wait => (ItemStatus::Current, Some(absence)),
        Conclusion::Retire => (ItemStatus::Retired { since: now }, None),
        Conclusion::Delete => return,
    };
    let retired = absence.is_none();
    let reason = format!("seen at {since} while the feed was held, and gone from it since");
    let known = LedgerEntry { standing, absence, ..known };
    let at = draft.create(known, markup, EventDetails::new(EventKind::Created, reason));
    if retired {
        draft.event(at, EventDetails::new(EventKind::Retired, gone));
    }
}
