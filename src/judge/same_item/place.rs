use super::pairs::{CandidatePair, SHARED_WEIGHT, UNIQUE_WEIGHT};
use super::signs::Signs;
use crate::rules::Rule;

pub(super) const RULE: Rule = Rule {
    name: "place",
    sentence: "next to words that are the same: between the same neighbours",
};

/// Weighs the place between the same neighbours, as far as they are paired by now. Dates that are far apart make
/// it say nothing.
pub(super) fn weigh(candidate: &CandidatePair<'_>, signs: &Signs) -> u8 {
    let has_words = signs.title.max(signs.wording).max(signs.text) >= UNIQUE_WEIGHT;
    let counts = has_words && signs.against == 0;
    if counts && candidate.sides.same_slot(candidate.at, candidate.known) {
        SHARED_WEIGHT
    } else {
        0
    }
}
