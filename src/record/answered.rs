//! What missing items' own addresses answered, to one commit.

use super::draft::Draft;
use super::{Round, Verdict, absent};
use crate::judge::probe::{Answer, Replies, answers, taken};
use crate::model::{Absence, Standing};
use std::collections::HashMap;

/// Takes in what a round of asking heard: `same` full observations were made since the last commit.
/// They count for what is concluded now, but are not kept: only different documents are, which say
/// more (a hole that many of them show needs no day). Answers about items that are not missing any more are dropped. While a document is held,
/// answers are kept and nothing is concluded.
pub fn answered(round: &Round<'_>, replies: &Replies, same: u32) -> Verdict {
    let Some(snapshot) = round.snapshot else { return Verdict::default() };
    let heard: HashMap<_, Answer> = answers(snapshot, replies).into_iter().collect();
    let missing = |absence: &Option<Absence>, standing: &Standing| {
        absence.clone().filter(|_| *standing == Standing::Current)
    };
    let mut draft = Draft::new(round, snapshot);
    let mut news = false;
    for (at, known) in snapshot.known.iter().enumerate() {
        let Some(mut absence) = missing(&known.absence, &known.standing) else { continue };
        let Some(answer) = heard.get(&known.id) else { continue };
        news = true;
        absence.probe = Some(taken(absence.probe.as_ref(), answer.clone(), round.now));
        let observations = absence.observations.saturating_add(same);
        if snapshot.state.hold.is_some()
            || !absent::conclude(&mut draft, at, &absence, observations)
        {
            draft.change(at, |item| item.absence = Some(absence));
        }
    }
    if news { draft.into_verdict(None) } else { Verdict::default() }
}
