use super::{DocumentRule, INSISTING};
use crate::rules::Rule;

pub(super) const RULE: DocumentRule = DocumentRule {
    rule: Rule { name: "mass-changed", sentence: "in which more than half changed" },
    terms: INSISTING,
    holds: |case| {
        let changed = case.window.input.changed();
        let reason = || format!("{changed} of {} items changed at once", case.before);
        case.are_most(changed).then(reason)
    },
};
