//! What follows from what an item's own address said, beside the evidence of the documents.

use super::super::confirm::{self, Conclusion};
use super::answer::silence;
use super::{APART, ASKED_MOST, ProbeVerdict};
use std::time::Duration;
use tidegate_core::model::{Absence, Deletions, Evidence, Probe, ProbeAnswer, Time};

/// How often a document must have shown that an unplaced item is missing.
const OBSERVATIONS: u32 = 2;
/// How long a second answer is waited for.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);

/// What follows from evidence that has stood for `observations` full observations until `now`, and
/// from what the item's own address said:
///
/// - 404 or 410 confirms a hole, and what a complete document does not list, at once;
/// - the same, heard twice an hour apart, makes a deletion of what is missing from no certain
///   place, once two observations have shown it;
/// - 200 makes a retirement of the deletion that a hole would become.
///
/// Everything else is left to the evidence of the documents, and so is all where deletions are off.
pub fn conclude(
    absence: &Absence,
    observations: u32,
    deletions: Deletions,
    now: Time,
) -> Conclusion {
    let ordinary = confirm::conclude(absence, observations, deletions, now);
    let Some(heard) = heard(absence, deletions) else { return ordinary };
    match absence.evidence {
        Evidence::Hole | Evidence::Complete if heard.gone => Conclusion::Delete,
        Evidence::Hole if ordinary == Conclusion::Delete => Conclusion::Retire,
        Evidence::Unplaced if heard.gone && is_confirmed(heard) => {
            if observations >= OBSERVATIONS {
                Conclusion::Delete
            } else {
                Conclusion::Wait
            }
        }
        Evidence::Unplaced if heard.gone && is_awaited(absence, heard, now) => Conclusion::Wait,
        _ => ordinary,
    }
}

/// The earliest time at which the evidence can have stood long enough, or another answer of the
/// item's own address can be had that decides.
pub fn ripens(absence: &Absence, deletions: Deletions) -> Time {
    let asked = absence.probe.as_ref().map_or(absence.since, |probe| probe.last);
    ripens_from(absence, deletions, asked)
}

/// The same as it stands at `now`, when another answer may be waited for no more.
pub fn ripens_from(absence: &Absence, deletions: Deletions, now: Time) -> Time {
    let ordinary = confirm::ripens(absence, deletions);
    match (heard(absence, deletions), &absence.probe) {
        (Some(heard), Some(probe))
            if heard.gone
                && absence.evidence == Evidence::Unplaced
                && !is_confirmed(heard)
                && is_awaited(absence, heard, now) =>
        {
            probe.last.plus(APART).min(heard.first.plus(PATIENCE))
        }
        _ => ordinary,
    }
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
    asked < ASKED_MOST && now.since(heard.first) < PATIENCE
}

/// What is known after another answer.
pub fn taken(before: Option<&Probe>, answer: ProbeVerdict, now: Time) -> Probe {
    let earlier = before.and_then(|probe| probe.heard);
    let (said, silence) = match answer {
        ProbeVerdict::Gone(status) => (Some((true, status)), None),
        ProbeVerdict::There(status) => (Some((false, status)), None),
        ProbeVerdict::Nothing(why) => (None, Some(silence(&why))),
    };
    let heard = match said {
        Some((gone, status)) => {
            let agreeing = earlier.filter(|heard| heard.gone == gone);
            let first = agreeing.map_or(now, |heard| heard.first);
            Some(ProbeAnswer { gone, status, first, last: now })
        }
        None => earlier,
    };
    let asked = before.map_or(0, |probe| probe.asked).saturating_add(1);
    Probe { asked, last: now, heard, silence }
}

/// The longest address that a reason names, in bytes.
const SHOWN: usize = 200;

/// What an item's own address said, in words.
pub fn describe_probe(probe: &Probe, link: Option<&str>) -> String {
    let link = link.filter(|link| link.len() <= SHOWN).map(|link| format!(", {link},"));
    let address = format!("its own address{}", link.unwrap_or_default());
    match (&probe.heard, &probe.silence) {
        (Some(heard), _) if heard.first < heard.last => {
            format!("{address} answered {} at {} and {}", heard.status, heard.first, heard.last)
        }
        (Some(heard), _) => format!("{address} answered {} at {}", heard.status, heard.last),
        (None, Some(silence)) => format!("{address} says nothing: {silence}"),
        (None, None) => format!("{address} says nothing"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::Doubts;

    const HOUR: i64 = 3600;

    fn at(seconds: i64) -> Time {
        Time::from_unix(seconds)
    }

    fn absence(evidence: Evidence, answers: &[(i64, ProbeVerdict)]) -> Absence {
        let taken = |probe: Option<Probe>, (when, answer): &(i64, ProbeVerdict)| {
            Some(taken(probe.as_ref(), answer.clone(), at(*when)))
        };
        let probe = answers.iter().fold(None, taken);
        Absence {
            evidence,
            since: at(0),
            observations: 1,
            doubts: Doubts::NONE,
            seen: String::new(),
            probe,
        }
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
        let year = confirm::ripens(&once, Deletions::Safe);
        assert!(year > at(300 * 24 * HOUR));
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
    fn a_probe_is_told_with_address_status_and_time() {
        let probe =
            |answers: &[(i64, ProbeVerdict)]| absence(Evidence::Hole, answers).probe.unwrap();
        let link = Some("https://e.org/a");
        let gone = probe(&[(0, ProbeVerdict::Gone(404))]);
        let said = "its own address, https://e.org/a, answered 404 at 1970-01-01T00:00:00Z";
        assert_eq!(describe_probe(&gone, link), said);
        let twice = probe(&[(0, ProbeVerdict::Gone(404)), (HOUR, ProbeVerdict::Gone(410))]);
        let said = "its own address, https://e.org/a, answered 410 at 1970-01-01T00:00:00Z and \
                    1970-01-01T01:00:00Z";
        assert_eq!(describe_probe(&twice, link), said);
        let silent = probe(&[(0, ProbeVerdict::Nothing("it answered 503".to_owned()))]);
        assert_eq!(describe_probe(&silent, None), "its own address says nothing: it answered 503");
        let long = probe(&[(0, ProbeVerdict::Nothing("ä".repeat(500)))]);
        assert!(long.silence.unwrap().len() <= Probe::SILENCE_LIMIT);
    }
}
