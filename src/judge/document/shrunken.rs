use super::{DocumentCase, DocumentRule, HoldTerms, LONG_HOLD};
use crate::rules::Rule;

pub(super) const RULE: DocumentRule = DocumentRule {
    rule: Rule {
        name: "shrunken",
        sentence: "in which more than half is gone and less than half of that came in its place",
    },
    terms: HoldTerms { least: LONG_HOLD, documents: None },
    holds: reason_to_hold,
};

/// Of fewer items than this, what is gone is no share.
const LEAST_SHOWN: usize = 3;

fn reason_to_hold(case: &DocumentCase<'_>) -> Option<String> {
    let DocumentCase { window, before } = case;
    let (gone, came) = (window.outgoing + window.below_gone.len(), window.incoming.len());
    let is_most = window.outgoing * 2 > window.old.len() && gone * 2 > *before;
    (is_most && came * 2 < gone && *before >= LEAST_SHOWN).then(|| {
        format!("{gone} of {before} items are gone at once and only {came} came in their place")
    })
}
