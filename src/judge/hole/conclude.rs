//! When evidence of absence has stood long enough, and what follows from it and from what the item's own address
//! said.

use crate::probe::{APART, ASKED_MOST};
use std::time::Duration;
use tidegate_core::model::{Absence, Deletions, Evidence, ProbeAnswer, Time};

/// What a missing item has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    /// Nothing yet.
    Wait,
    /// It slid off: retired, not deleted.
    #[serde(rename = "retired")]
    Retire,
    /// Its publisher took it away.
    #[serde(rename = "deleted")]
    Delete,
}

/// How long and how often evidence must stand.
struct Patience {
    time: Duration,
    observations: u32,
}

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
/// Accidents in hand-edited feeds are mended within a version or two.
const HOLE: Patience = Patience { time: DAY, observations: 3 };
const COMPLETE: Patience = Patience { time: Duration::from_secs(12 * 3600), observations: 3 };
/// A publisher that came out with so many different documents without the item means it, …
const INSISTING_DOCUMENTS: u32 = 6;
/// … where the first of them is this old.
const INSISTING_TIME: Duration = HOUR;
/// How long a doubt stays open: feeds of few posts are learned slowly.
const DOUBTFUL: Patience = Patience { time: Duration::from_secs(365 * 24 * 3600), observations: 2 };
/// Nothing is published of it, so it need not be sure.
const UNPLACED: Patience = Patience { time: HOUR, observations: 2 };
/// How often a document must have shown that an unplaced item is missing whose address says the same.
const CONFIRMED_OBSERVATIONS: u32 = 2;
/// How long a second answer of its address is waited for.
const ANSWER_AWAITED: Duration = Duration::from_secs(6 * 3600);

fn patience(absence: &Absence, deletions: Deletions) -> Option<Patience> {
    match (absence.evidence, deletions) {
        (Evidence::Aged | Evidence::Said | Evidence::Passed, _) => None,
        (Evidence::Unplaced, _) if absence.doubts.is_empty() => Some(UNPLACED),
        (Evidence::Unplaced, _) => Some(DOUBTFUL),
        (_, Deletions::Eager | Deletions::Off) => None,
        (Evidence::Hole, Deletions::Safe) => Some(HOLE),
        (Evidence::Complete, Deletions::Safe) => Some(COMPLETE),
    }
}

/// Whether the publisher has said it in so many different documents that time adds nothing.
fn is_insisted_on(absence: &Absence, stood: Duration) -> bool {
    // Where its address was asked, looks at the same document are among them.
    absence.evidence == Evidence::Hole
        && absence.probe.is_none()
        && absence.observations >= INSISTING_DOCUMENTS
        && stood >= INSISTING_TIME
}

/// What follows from evidence that has stood for `observations` full observations until `now`, and
/// from what the item's own address said:
///
/// - 404 or 410 confirms a hole, and what a complete document does not list, at once;
/// - the same, heard twice an hour apart, makes a deletion of what is missing from no certain
///   place, once two observations have shown it;
/// - 200 makes a retirement of the deletion that a hole would become.
///
/// Everything else is left to the evidence of the documents, and so is all where deletions are off.
pub(crate) fn conclude(
    absence: &Absence,
    observations: u32,
    deletions: Deletions,
    now: Time,
) -> Conclusion {
    let by_documents = conclude_by_documents(absence, observations, deletions, now);
    let Some(heard) = heard(absence, deletions) else { return by_documents };
    match absence.evidence {
        Evidence::Hole | Evidence::Complete if heard.gone => Conclusion::Delete,
        Evidence::Hole if by_documents == Conclusion::Delete => Conclusion::Retire,
        Evidence::Unplaced if heard.gone && is_confirmed(heard) => {
            let is_seen = observations >= CONFIRMED_OBSERVATIONS;
            if is_seen { Conclusion::Delete } else { Conclusion::Wait }
        }
        Evidence::Unplaced if heard.gone && is_awaited(absence, heard, now) => Conclusion::Wait,
        _ => by_documents,
    }
}

fn conclude_by_documents(
    absence: &Absence,
    observations: u32,
    deletions: Deletions,
    now: Time,
) -> Conclusion {
    if let Some(patience) = patience(absence, deletions) {
        let stood = now.since(absence.since);
        let enough = stood >= patience.time && observations >= patience.observations;
        if !enough && !is_insisted_on(absence, stood) {
            return Conclusion::Wait;
        }
    }
    match (absence.evidence, deletions) {
        (Evidence::Aged | Evidence::Unplaced, _) | (_, Deletions::Off) => Conclusion::Retire,
        _ => Conclusion::Delete,
    }
}

/// The earliest time at which the evidence can have stood long enough, or another answer of the
/// item's own address can be had that decides.
pub(crate) fn ripens(absence: &Absence, deletions: Deletions) -> Time {
    let asked = absence.probe.as_ref().map_or(absence.since, |probe| probe.last);
    ripens_from(absence, deletions, asked)
}

/// The same as it stands at `now`, when another answer may be waited for no more.
pub(crate) fn ripens_from(absence: &Absence, deletions: Deletions, now: Time) -> Time {
    if let (Some(heard), Some(probe)) = (heard(absence, deletions), &absence.probe)
        && heard.gone
        && absence.evidence == Evidence::Unplaced
        && !is_confirmed(heard)
        && is_awaited(absence, heard, now)
    {
        return probe.last.plus(APART).min(heard.first.plus(ANSWER_AWAITED));
    }
    let wait = patience(absence, deletions).map_or(Duration::ZERO, |patience| patience.time);
    absence.since.plus(wait)
}

fn heard(absence: &Absence, deletions: Deletions) -> Option<&ProbeAnswer> {
    let probe = absence.probe.as_ref().filter(|_| deletions != Deletions::Off)?;
    probe.heard.as_ref()
}

/// Whether it was said twice, far enough apart.
fn is_confirmed(heard: &ProbeAnswer) -> bool {
    heard.last.since(heard.first) >= APART
}

/// Whether a second answer is still to be had.
fn is_awaited(absence: &Absence, heard: &ProbeAnswer, now: Time) -> bool {
    let asked = absence.probe.as_ref().map_or(0, |probe| probe.asked);
    asked < ASKED_MOST && now.since(heard.first) < ANSWER_AWAITED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{ProbeVerdict, note_answer};
    use tidegate_core::model::{Doubts, Probe};

    const HOUR: i64 = 3600;

    fn at(seconds: i64) -> Time {
        Time::from_unix(seconds)
    }

    fn absence(evidence: Evidence, answers: &[(i64, ProbeVerdict)]) -> Absence {
        let taken = |probe: Option<Probe>, (when, answer): &(i64, ProbeVerdict)| {
            Some(note_answer(probe.as_ref(), answer.clone(), at(*when)))
        };
        let probe = answers.iter().fold(None, taken);
        Absence { probe, ..Absence::seen_once(evidence, at(0)) }
    }

    fn of(absence: &Absence, observations: u32, now: i64) -> Conclusion {
        conclude(absence, observations, Deletions::Safe, at(now))
    }

    #[test]
    fn gone_confirms_a_hole_and_what_a_list_lacks_at_once() {
        for evidence in [Evidence::Hole, Evidence::Complete] {
            for status in [404, 410] {
                let found = absence(evidence, &[(60, ProbeVerdict::Gone(status))]);
                assert_eq!(of(&found, 1, 60), Conclusion::Delete);
            }
            assert_eq!(of(&absence(evidence, &[]), 1, 60), Conclusion::Wait);
        }
    }

    #[test]
    fn what_has_no_place_needs_two_answers_an_hour_apart() {
        let once = absence(Evidence::Unplaced, &[(60, ProbeVerdict::Gone(404))]);
        assert_eq!(of(&once, 5, 3 * HOUR), Conclusion::Wait, "the second answer is waited for");
        assert_eq!(of(&once, 5, 7 * HOUR), Conclusion::Retire, "but not for ever");
        assert_eq!(ripens(&once, Deletions::Safe), at(60 + HOUR));
        assert_eq!(ripens_from(&once, Deletions::Safe, at(7 * HOUR)), at(HOUR), "as without it");

        let soon = [(60, ProbeVerdict::Gone(404)), (60 + HOUR - 1, ProbeVerdict::Gone(404))];
        assert_eq!(of(&absence(Evidence::Unplaced, &soon), 5, 2 * HOUR), Conclusion::Wait);

        let twice = [(60, ProbeVerdict::Gone(404)), (60 + HOUR, ProbeVerdict::Gone(410))];
        let twice = absence(Evidence::Unplaced, &twice);
        assert_eq!(of(&twice, 2, 60 + HOUR), Conclusion::Delete);
        assert_eq!(of(&twice, 1, 60 + HOUR), Conclusion::Wait, "one document is not enough");
    }

    /// What waits for the feed to show how it works is decided sooner by two answers.
    #[test]
    fn a_doubt_gives_way_to_two_answers() {
        let doubtful = |answers: &[(i64, ProbeVerdict)]| Absence {
            doubts: Doubts::from_bits(1),
            ..absence(Evidence::Unplaced, answers)
        };
        let once = doubtful(&[(60, ProbeVerdict::Gone(404))]);
        assert_eq!(ripens(&once, Deletions::Safe), at(60 + HOUR));
        assert_eq!(of(&once, 5, 7 * HOUR), Conclusion::Wait);
        let year = at(365 * 24 * HOUR);
        assert_eq!(ripens_from(&once, Deletions::Safe, at(7 * HOUR)), year);
        let twice =
            doubtful(&[(60, ProbeVerdict::Gone(404)), (60 + HOUR, ProbeVerdict::Gone(404))]);
        assert_eq!(of(&twice, 2, 60 + HOUR), Conclusion::Delete);
        let there = doubtful(&[(60, ProbeVerdict::There(200))]);
        assert_eq!(
            (of(&there, 5, 7 * HOUR), ripens(&there, Deletions::Safe)),
            (Conclusion::Wait, year)
        );
    }

    #[test]
    fn an_answer_between_that_says_nothing_takes_nothing_away() {
        let silent = || ProbeVerdict::Nothing("it answered 503".to_owned());
        let answers =
            [(0, ProbeVerdict::Gone(404)), (HOUR, silent()), (2 * HOUR, ProbeVerdict::Gone(404))];
        let found = absence(Evidence::Unplaced, &answers);
        assert_eq!(of(&found, 2, 2 * HOUR), Conclusion::Delete);
        // One to the contrary does.
        let answers =
            [(0, ProbeVerdict::Gone(404)), (HOUR, ProbeVerdict::There(200)), (2 * HOUR, silent())];
        assert_eq!(of(&absence(Evidence::Unplaced, &answers), 2, 2 * HOUR), Conclusion::Retire);
        let answers = [
            (0, ProbeVerdict::There(200)),
            (HOUR, ProbeVerdict::Gone(404)),
            (HOUR + 60, ProbeVerdict::Gone(404)),
        ];
        assert_eq!(of(&absence(Evidence::Unplaced, &answers), 2, 2 * HOUR), Conclusion::Wait);
    }

    #[test]
    fn an_item_that_is_there_is_retired_in_its_time_and_not_deleted() {
        let there = [(60, ProbeVerdict::There(200))];
        let hole = absence(Evidence::Hole, &there);
        assert_eq!(of(&hole, 2, 2 * HOUR), Conclusion::Wait, "it may come back without a trace");
        assert_eq!(of(&hole, 3, 24 * HOUR), Conclusion::Retire);
        assert_eq!(of(&absence(Evidence::Hole, &[]), 3, 24 * HOUR), Conclusion::Delete);
        for evidence in [Evidence::Complete, Evidence::Said] {
            assert_eq!(of(&absence(evidence, &there), 3, 24 * HOUR), Conclusion::Delete);
        }
    }

    #[test]
    fn what_says_nothing_changes_nothing() {
        for evidence in
            [Evidence::Hole, Evidence::Complete, Evidence::Unplaced, Evidence::Aged, Evidence::Said]
        {
            let silent =
                absence(evidence, &[(60, ProbeVerdict::Nothing("it answered 500".to_owned()))]);
            for (observations, now) in [(1, 60), (3, HOUR), (3, 13 * HOUR), (3, 25 * HOUR)] {
                let plain = of(&absence(evidence, &[]), observations, now);
                assert_eq!(of(&silent, observations, now), plain, "{evidence:?} {now}");
            }
        }
    }

    #[test]
    fn off_is_off_and_what_slid_off_is_not_asked_for() {
        for evidence in [Evidence::Hole, Evidence::Complete, Evidence::Unplaced] {
            let gone = [(0, ProbeVerdict::Gone(404)), (HOUR, ProbeVerdict::Gone(404))];
            let found = absence(evidence, &gone);
            let concluded = conclude(&found, 9, Deletions::Off, at(48 * HOUR));
            assert_eq!(concluded, Conclusion::Retire);
        }
        let aged = absence(Evidence::Aged, &[(0, ProbeVerdict::Gone(404))]);
        assert_eq!(of(&aged, 1, 60), Conclusion::Retire);
    }

    #[test]
    fn a_hole_needs_time_and_observations() {
        let hole = absence(Evidence::Hole, &[]);
        let day = Time::from_unix(24 * 3600);
        let conclude = |observations, now| conclude(&hole, observations, Deletions::Safe, now);
        assert_eq!(conclude(3, day), Conclusion::Delete);
        assert_eq!(conclude(2, day), Conclusion::Wait);
        assert_eq!(conclude(9, Time::from_unix(24 * 3600 - 1)), Conclusion::Wait);
        assert_eq!(ripens(&hole, Deletions::Safe), day);
    }

    #[test]
    fn the_modes_of_deletion() {
        let now = Time::from_unix(0);
        let of = |evidence, mode| conclude(&absence(evidence, &[]), 1, mode, now);
        assert_eq!(of(Evidence::Hole, Deletions::Eager), Conclusion::Delete);
        assert_eq!(of(Evidence::Hole, Deletions::Off), Conclusion::Retire);
        assert_eq!(of(Evidence::Said, Deletions::Off), Conclusion::Retire);
        assert_eq!(of(Evidence::Said, Deletions::Safe), Conclusion::Delete);
        assert_eq!(of(Evidence::Aged, Deletions::Eager), Conclusion::Retire);
        assert_eq!(of(Evidence::Unplaced, Deletions::Eager), Conclusion::Wait);
    }
}
