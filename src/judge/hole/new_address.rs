use super::{HoleRule, Objection};
use crate::rules::Rule;

pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule {
        name: "new-address",
        sentence: "the feed has a new address, which may list other items",
    },
    objects: |case, _, _| {
        let why = "the feed has a new address, which may list other items";
        case.window.input.moved.then(|| Objection::settled(why))
    },
};
