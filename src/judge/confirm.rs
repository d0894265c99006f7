//! When evidence of absence has stood long enough, and what follows.

use crate::model::{Absence, Deletions, Evidence, Time};
use std::time::Duration;

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
/// Nothing is published of it, so it need not be sure.
const UNPLACED: Patience = Patience { time: HOUR, observations: 2 };

fn patience(evidence: Evidence, deletions: Deletions) -> Option<Patience> {
    match (evidence, deletions) {
        (Evidence::Aged | Evidence::Said, _) => None,
        (Evidence::Unplaced, _) => Some(UNPLACED),
        (_, Deletions::Eager | Deletions::Off) => None,
        (Evidence::Hole, Deletions::Safe) => Some(HOLE),
        (Evidence::Complete, Deletions::Safe) => Some(COMPLETE),
    }
}

/// What follows from evidence that has stood for `observations` full observations until `now`.
pub fn conclude(
    absence: &Absence,
    observations: u32,
    deletions: Deletions,
    now: Time,
) -> Conclusion {
    if let Some(patience) = patience(absence.evidence, deletions) {
        let stood = now.since(absence.since);
        if stood < patience.time || observations < patience.observations {
            return Conclusion::Wait;
        }
    }
    match (absence.evidence, deletions) {
        (Evidence::Aged | Evidence::Unplaced, _) | (_, Deletions::Off) => Conclusion::Retire,
        (Evidence::Hole | Evidence::Complete | Evidence::Said, _) => Conclusion::Delete,
    }
}

/// The earliest time at which the evidence can have stood long enough.
pub fn ripens(absence: &Absence, deletions: Deletions) -> Time {
    let wait = patience(absence.evidence, deletions).map_or(Duration::ZERO, |p| p.time);
    absence.since.plus(wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absence(evidence: Evidence) -> Absence {
        let since = Time::from_unix(0);
        let seen = String::new();
        Absence { evidence, since, observations: 1, backfilled: false, seen, probe: None }
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
