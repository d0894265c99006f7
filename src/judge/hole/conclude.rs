//! When evidence of absence has stood long enough, and what follows from it and from what the item's own address
//! said.

use crate::probe::{CONFIRM_AFTER, MAX_PROBES};
use crate::{DAY, HOUR};
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

/// Accidents in hand-edited feeds are mended within a version or two.
const HOLE: Patience = Patience { time: DAY, observations: 3 };
const COMPLETE: Patience = Patience { time: Duration::from_secs(12 * 3600), observations: 3 };
/// The number of different documents without an item that confirm a hole before its usual time.
const INSISTING_DOCUMENTS: u32 = 6;
/// The least age of the first of these documents.
const INSISTING_TIME: Duration = HOUR;
/// How long a doubt stays open: feeds of few posts are learned slowly.
const DOUBTFUL: Patience = Patience { time: Duration::from_secs(365 * 24 * 3600), observations: 2 };
/// Retiring an item makes no tombstone, so that little certainty is enough.
const UNPLACED: Patience = Patience { time: HOUR, observations: 2 };
/// How often an unplaced item must have been observed missing before its own address (404 or 410) decides.
const CONFIRMED_OBSERVATIONS: u32 = 2;
/// How long a second answer of the item's own address is awaited.
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

/// Whether so many different documents lack the item that waiting longer proves nothing more.
fn is_insisted_on(absence: &Absence, stood: Duration) -> bool {
    // After a probe the count includes observations of one and the same document.
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
        return probe.last.plus(CONFIRM_AFTER).min(heard.first.plus(ANSWER_AWAITED));
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
    heard.last.since(heard.first) >= CONFIRM_AFTER
}

/// Whether a second answer is still to be had.
fn is_awaited(absence: &Absence, heard: &ProbeAnswer, now: Time) -> bool {
    let asked = absence.probe.as_ref().map_or(0, |probe| probe.asked);
    asked < MAX_PROBES && now.since(heard.first) < ANSWER_AWAITED
}

#[cfg(test)]
mod tests {
    use super::Conclusion::*;
    use super::*;
    use crate::probe::{ProbeVerdict, note_answer};
    use tidegate_core::model::{Doubts, Probe};

    fn minute(minutes: i64) -> Time {
        Time::from_unix(minutes * 60)
    }

    /// `answers`: minutes, each with what the item's address said then: `-` that it is gone, `+` that it is there, `?`
    /// nothing.
    fn absence(evidence: Evidence, answers: &str) -> Absence {
        let note = |probe: Option<Probe>, word: &str| {
            let (minutes, said) = word.split_at(word.len() - 1);
            let answer = match said {
                "-" => ProbeVerdict::Gone(404),
                "+" => ProbeVerdict::There(200),
                _ => ProbeVerdict::Nothing("it answered 503".to_owned()),
            };
            Some(note_answer(probe.as_ref(), answer, minute(minutes.parse().unwrap())))
        };
        let probe = answers.split_whitespace().fold(None, note);
        Absence { probe, ..Absence::seen_once(evidence, minute(0)) }
    }

    fn of(absence: &Absence, observations: u32, minutes: i64) -> Conclusion {
        conclude(absence, observations, Deletions::Safe, minute(minutes))
    }

    #[test]
    fn evidence_needs_time_observations_or_answers() {
        use Evidence::*;
        for (evidence, answers, observations, minutes, expected) in [
            // A hole needs a day and three observations.
            (Hole, "", 3, 1440, Delete),
            (Hole, "", 2, 1440, Wait),
            (Hole, "", 9, 1439, Wait),
            // Gone confirms a hole and what a list lacks at once.
            (Hole, "1-", 1, 1, Delete),
            (Complete, "1-", 1, 1, Delete),
            (Hole, "", 1, 1, Wait),
            (Complete, "", 1, 1, Wait),
            // What has no place needs two answers an hour apart, and two documents. The second answer is not waited for
            // for ever.
            (Unplaced, "1-", 5, 180, Wait),
            (Unplaced, "1-", 5, 420, Retire),
            (Unplaced, "1- 60-", 5, 120, Wait),
            (Unplaced, "1- 61-", 2, 61, Delete),
            (Unplaced, "1- 61-", 1, 61, Wait),
            // An answer between them that says nothing takes nothing away, and one to the contrary does.
            (Unplaced, "0- 60? 120-", 2, 120, Delete),
            (Unplaced, "0- 60+ 120?", 2, 120, Retire),
            (Unplaced, "0+ 60- 61-", 2, 120, Wait),
            // An item that is there is retired in its time: it may come back without a trace.
            (Hole, "1+", 2, 120, Wait),
            (Hole, "1+", 3, 1440, Retire),
            (Complete, "1+", 3, 1440, Delete),
            (Said, "1+", 3, 1440, Delete),
            (Aged, "1-", 1, 1, Retire),
        ] {
            let found = of(&absence(evidence, answers), observations, minutes);
            assert_eq!(found, expected, "{evidence:?} {answers:?} {observations} {minutes}");
        }
        for evidence in [Hole, Complete, Unplaced, Aged, Said] {
            for (observations, minutes) in [(1, 1), (3, 60), (3, 780), (3, 1500)] {
                let plain = of(&absence(evidence, ""), observations, minutes);
                assert_eq!(of(&absence(evidence, "1?"), observations, minutes), plain, "nothing");
            }
        }
    }

    #[test]
    fn when_it_ripens() {
        let ripe = |absence: &Absence| ripens(absence, Deletions::Safe);
        assert_eq!(ripe(&absence(Evidence::Hole, "")), minute(1440));
        let once = absence(Evidence::Unplaced, "1-");
        assert_eq!(ripe(&once), minute(61));
        assert_eq!(ripens_from(&once, Deletions::Safe, minute(420)), minute(60), "as without it");
        // What waits for the feed to show how it works is decided sooner by two answers.
        let doubtful = |answers| Absence {
            doubts: Doubts::from_bits(1),
            ..absence(Evidence::Unplaced, answers)
        };
        let year = minute(365 * 1440);
        assert_eq!(ripe(&doubtful("1-")), minute(61));
        assert_eq!(ripens_from(&doubtful("1-"), Deletions::Safe, minute(420)), year);
        assert_eq!((of(&doubtful("1-"), 5, 420), of(&doubtful("1- 61-"), 2, 61)), (Wait, Delete));
        assert_eq!((of(&doubtful("1+"), 5, 420), ripe(&doubtful("1+"))), (Wait, year));
    }

    #[test]
    fn the_modes_of_deletion() {
        for (evidence, answers, mode, expected) in [
            (Evidence::Hole, "", Deletions::Eager, Delete),
            (Evidence::Hole, "", Deletions::Off, Retire),
            (Evidence::Said, "", Deletions::Off, Retire),
            (Evidence::Said, "", Deletions::Safe, Delete),
            (Evidence::Aged, "", Deletions::Eager, Retire),
            (Evidence::Unplaced, "", Deletions::Eager, Wait),
            (Evidence::Hole, "0- 60-", Deletions::Off, Retire),
            (Evidence::Complete, "0- 60-", Deletions::Off, Retire),
        ] {
            let found = conclude(&absence(evidence, answers), 1, mode, minute(0));
            assert_eq!(found, expected, "{evidence:?} {answers:?} {mode:?}");
        }
        let gone = absence(Evidence::Unplaced, "0- 60-");
        assert_eq!(conclude(&gone, 9, Deletions::Off, minute(2880)), Retire);
    }
}
