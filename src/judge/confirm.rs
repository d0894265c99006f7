//! When evidence of absence has stood long enough, and what follows.

use std::time::Duration;
use tidegate_core::model::{Absence, Deletions, Evidence, Time};

/// What a missing item has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conclusion {
    /// Nothing yet.
    Wait,
    /// It slid off: retired, not deleted.
    Retire,
    /// Its publisher took it away.
    Delete,
}

/// How long and how often evidence must stand.
struct Patience {
    time: Duration,
    observations: u32,
}

const HOUR: Duration = Duration::from_secs(3600);
/// Accidents in hand-edited feeds are mended within a version or two.
const HOLE: Patience = Patience { time: Duration::from_secs(24 * 3600), observations: 3 };
const COMPLETE: Patience = Patience { time: Duration::from_secs(12 * 3600), observations: 3 };
/// A publisher that came out with so many different documents without the item means it, …
const INSISTING_DOCUMENTS: u32 = 6;
/// … where the first of them is this old.
const INSISTING_TIME: Duration = HOUR;
/// How long a doubt stays open: feeds of few posts are learned slowly.
const DOUBTFUL: Patience = Patience { time: Duration::from_secs(365 * 24 * 3600), observations: 2 };
/// Nothing is published of it, so it need not be sure.
const UNPLACED: Patience = Patience { time: HOUR, observations: 2 };

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

/// What follows from evidence that has stood for `observations` full observations until `now`.
pub fn conclude(
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
        (Evidence::Hole | Evidence::Passed | Evidence::Complete | Evidence::Said, _) => {
            Conclusion::Delete
        }
    }
}

/// The earliest time at which the evidence can have stood long enough.
pub fn ripens(absence: &Absence, deletions: Deletions) -> Time {
    let wait = patience(absence, deletions).map_or(Duration::ZERO, |p| p.time);
    absence.since.plus(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::Doubts;

    fn absence(evidence: Evidence) -> Absence {
        let since = Time::from_unix(0);
        Absence {
            evidence,
            since,
            observations: 1,
            doubts: Doubts::NONE,
            seen: String::new(),
            probe: None,
        }
    }

    #[test]
    fn a_hole_needs_time_and_observations() {
        let hole = absence(Evidence::Hole);
        let day = Time::from_unix(24 * 3600);
        let at = |observations, now| conclude(&hole, observations, Deletions::Safe, now);
        assert_eq!(at(3, day), Conclusion::Delete);
        assert_eq!(at(2, day), Conclusion::Wait);
        assert_eq!(at(9, Time::from_unix(24 * 3600 - 1)), Conclusion::Wait);
        assert_eq!(ripens(&hole, Deletions::Safe), day);
    }

    #[test]
    fn the_modes_of_deletion() {
        let now = Time::from_unix(0);
        let of = |evidence, mode| conclude(&absence(evidence), 1, mode, now);
        assert_eq!(of(Evidence::Hole, Deletions::Eager), Conclusion::Delete);
        assert_eq!(of(Evidence::Hole, Deletions::Off), Conclusion::Retire);
        assert_eq!(of(Evidence::Said, Deletions::Off), Conclusion::Retire);
        assert_eq!(of(Evidence::Said, Deletions::Safe), Conclusion::Delete);
        assert_eq!(of(Evidence::Aged, Deletions::Eager), Conclusion::Retire);
        assert_eq!(of(Evidence::Unplaced, Deletions::Eager), Conclusion::Wait);
    }
}
