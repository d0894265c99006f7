//! What missing items' own addresses answered, to one commit.

use super::draft::ChangeDraft;
use super::{Observation, Verdict, confirm_absence};
use crate::probe::{ProbeVerdict, Replies, answers, note_answer};
use std::collections::HashMap;
use tidegate_core::model::{Absence, ItemStatus};

/// Takes in what a round of asking heard: `same` full observations were made since the last commit.
/// Those who were asked about keep them; the others begin a new count. Answers about items that are not missing any more are dropped. While a document is held,
/// answers are kept and nothing is concluded.
pub fn answered(round: &Observation<'_>, replies: &Replies, same: u32) -> Verdict {
    let Some(snapshot) = round.snapshot else { return Verdict::default() };
    let heard: HashMap<_, ProbeVerdict> = answers(snapshot, replies).into_iter().collect();
    let missing = |absence: &Option<Absence>, standing: &ItemStatus| {
        absence.clone().filter(|_| *standing == ItemStatus::Current)
    };
    let mut draft = ChangeDraft::new(round, snapshot);
    let mut news = false;
    for (at, known) in snapshot.known.iter().enumerate() {
        let Some(mut absence) = missing(&known.absence, &known.standing) else { continue };
        let Some(answer) = heard.get(&known.id) else { continue };
        news = true;
        absence.probe = Some(note_answer(absence.probe.as_ref(), answer.clone(), round.aged));
        absence.observations = absence.observations.saturating_add(same);
        let observations = absence.observations;
        if snapshot.state.hold.is_some()
            || !confirm_absence::conclude(&mut draft, at, &absence, observations)
        {
            draft.change(at, |item| item.absence = Some(absence));
        }
    }
    if news { draft.into_verdict(None) } else { Verdict::default() }
}
