use super::{HoleCase, HoleRule, Objection};
use crate::rules::Rule;

pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule { name: "habit", sentence: "the feed loses items from the middle often" },
    objects: |case, _, _| {
        let why = "items of this feed often go from the middle";
        is_habit(case).then(|| Objection::settled(why))
    },
};

/// So many transitions with a loss from the middle may be deletions, in any feed.
const HABIT_LEAST: u32 = 4;
/// Beyond that, one document in so many that brings something new and loses from the middle …
const SWAPS_PART: u32 = 3;
/// … or in so many that lose from there at all.
const LOSSES_PART: u32 = 2;

/// Where items go from the middle all the time, it is how the feed works.
pub(super) fn is_habit(case: &HoleCase<'_>) -> bool {
    let character = case.character();
    let now = u32::from(case.holes > 0);
    let swaps = character.came_swapping.saturating_add(now);
    let all = character.left_middle.saturating_add(now);
    let often = |times: u32, part: u32| {
        times >= HABIT_LEAST && times.saturating_mul(part) > character.documents
    };
    (often(swaps, SWAPS_PART) || (often(all, LOSSES_PART) && !case.window.dated))
        && !case.window.input.options.without.has(RULE.rule.name)
}
