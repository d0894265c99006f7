use super::{DocumentCase, DocumentRule, INSISTING};
use crate::rules::Rule;
use crate::same_item::Basis;

pub(super) const RULE: DocumentRule = DocumentRule {
    rule: Rule { name: "re-keyed", sentence: "in which more than half has other ids" },
    terms: INSISTING,
    holds: reason_to_hold,
};

/// Where the operator gave the feed another address, ids that differ in scheme and host alone are no surprise;
/// addresses with a parameter that changes at each poll never are.
fn reason_to_hold(case: &DocumentCase<'_>) -> Option<String> {
    let input = &case.window.input;
    let rotates = |basis: Basis| basis.is_same_but_for_query() && basis.has_title();
    let expected = |basis: Basis| input.moved && basis.is_same_but_for_host() || rotates(basis);
    let renamed = input.matching.pairs.iter();
    let renamed = renamed.filter(|p| p.basis.is_rename() && !expected(p.basis)).count();
    let reason = || format!("{renamed} of {} items have other ids at once", case.before);
    case.are_most(renamed).then(reason)
}
