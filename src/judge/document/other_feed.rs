use super::{DocumentCase, DocumentRule, HoldTerms, LEAST_SHARE, LONG_HOLD};
use crate::JudgeInput;
use crate::rules::Rule;
use crate::window::{date_of, dated};
use tidegate_core::model::{Completeness, Time};
use tidegate_core::xml::plain_address::plain_link;

pub(super) const RULE: DocumentRule = DocumentRule {
    rule: Rule {
        name: OTHER_FEED,
        sentence: "that has none of the last items and is of another site, from a new address, or \
                   older",
    },
    terms: HoldTerms { least: LONG_HOLD, documents: None },
    holds: reason_to_hold,
};

pub(crate) const OTHER_FEED: &str = "other-feed";

fn reason_to_hold(case: &DocumentCase<'_>) -> Option<String> {
    let DocumentCase { window, before } = case;
    let input = &window.input;
    let has_none = window.outgoing == window.old.len() && window.below.is_empty();
    // What the gateway has seen of it before shows that a new address or site is that of the same feed.
    let is_strange = input.matching.pairs.len() * 2 < case.found();
    let is_whole = input.document.completeness == Completeness::Full;
    let is_elsewhere = || is_strange && (input.moved || is_whole && is_another_site(input));
    let is_other = || is_elsewhere() || is_whole && has_other_past(case);
    if !(has_none && is_other()) {
        return None;
    }
    let from = if is_another_site(input) {
        let site = input.document.head.link.as_deref();
        format!("those that are come from {}", site.unwrap_or("another feed"))
    } else if input.moved {
        "the address is a new one".to_owned()
    } else {
        "those that are come from before".to_owned()
    };
    Some(format!("none of the last {before} items is in it, and {from}"))
}

/// Whether the document's items are older than those of the last one, none of which it has: a busy feed that turns
/// over its whole window moves on, if only to other posts of the same day; another feed has a past of its own. Fewer
/// than [`LEAST_SHARE`] items say nothing of either.
fn has_other_past(case: &DocumentCase<'_>) -> bool {
    let input = &case.window.input;
    let known = |at: &usize| input.snapshot.known.get(*at).and_then(date_of);
    let newest = case.window.old.iter().filter_map(known).max();
    let dates: Vec<Time> = input.document.entries.iter().filter_map(dated).collect();
    let moved_on = |newest: Time| dates.iter().filter(|date| **date >= newest).count();
    let are_enough = dates.len().min(case.before) >= LEAST_SHARE;
    newest.is_some_and(|newest| are_enough && moved_on(newest) * 2 < dates.len())
}

/// Whether the document says that it belongs to another site than the last one.
fn is_another_site(input: &JudgeInput<'_>) -> bool {
    let host = |address: &str| plain_link(address).split(['/', '?', '#']).next().map(str::to_owned);
    let head = &input.document.head;
    let site = head.link.as_deref().or(head.id.as_deref()).and_then(host);
    let before = input.snapshot.state.site.as_deref().and_then(host);
    matches!((site, before), (Some(now), Some(before)) if now != before)
}
