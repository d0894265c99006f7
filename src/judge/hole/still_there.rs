use super::{HoleRule, Objection};
use crate::rules::Rule;

pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule { name: "still-there", sentence: "another entry has the item's id" },
    objects: |case, _, known| {
        let there = case.shown.contains(known.native_shown.as_str());
        there.then(|| Objection::settled("another entry bears its id"))
    },
};
