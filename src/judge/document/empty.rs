use super::{DocumentRule, HoldTerms, LONGEST_HOLD};
use crate::rules::Rule;

pub(super) const RULE: DocumentRule = DocumentRule {
    rule: Rule { name: "empty", sentence: "that is empty, after one that was not" },
    terms: HoldTerms { least: LONGEST_HOLD, documents: None },
    holds: |case| {
        let reason = || format!("the document is empty, the last one had {} items", case.before);
        (case.found() == 0).then(reason)
    },
};
