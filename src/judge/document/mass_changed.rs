//! The rule `mass-changed`.

use super::{DocumentRule, HoldTerms};
use crate::rules::Rule;

pub(super) const RULE: DocumentRule = DocumentRule {
    rule: Rule { name: "mass-changed", sentence: "in which more than half changed" },
    terms: HoldTerms::insisting(),
    holds: |case| {
        let changed = case.window.input.changed();
        let reason = || format!("{changed} of {} items changed at once", case.before);
        case.are_most(changed).then(reason)
    },
};
