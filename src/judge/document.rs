//! Is the document believed? Documents that say too much at once are held until they are confirmed or heal.

mod empty;
mod let_in;
mod mass_changed;
mod other_feed;
mod re_keyed;
mod shrunken;

pub(crate) use let_in::entries_to_let_in;
pub(crate) use other_feed::OTHER_FEED;

use crate::DAY;
use crate::rules::Rule;
use crate::window::WindowShift;
use std::time::Duration;
use tidegate_core::model::{Completeness, Hold, Time};

/// A way in which a document says too much.
pub(crate) struct DocumentRule {
    pub(crate) rule: Rule,
    terms: HoldTerms,
    /// Why a document is held, in words; nothing where it is not.
    holds: fn(&DocumentCase<'_>) -> Option<String>,
}

/// The rules, in the order in which they are asked.
pub(crate) const RULES: [DocumentRule; 5] =
    [empty::RULE, other_feed::RULE, shrunken::RULE, re_keyed::RULE, mass_changed::RULE];

/// A document against the last one.
struct DocumentCase<'a> {
    window: &'a WindowShift<'a>,
    /// How many items are known of the last document, those that readers are not shown among them.
    before: usize,
}

impl DocumentCase<'_> {
    const fn found(&self) -> usize {
        self.window.input.document.entries.len()
    }

    /// Whether so many are more than half of the items, and enough to say something.
    const fn are_most(&self, share: usize) -> bool {
        share * 2 > self.before && share >= LEAST_SHARE
    }
}

/// Why a document is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Braked {
    pub(crate) kind: &'static str,
    /// The evidence in words.
    pub(crate) reason: String,
}

/// Fewer items than this never count as a majority.
const LEAST_SHARE: usize = 4;
/// How often a held document must be observed before it is believed, once it was held for the time of its rule.
pub const HOLD_LOOKS: u32 = 3;
/// The shortest hold.
const SHORT_HOLD: Duration = Duration::from_secs(30 * 60);
/// The shortest hold of a document that removes items.
const LONG_HOLD: Duration = Duration::from_secs(6 * 3600);
/// After this time any held document is believed that was observed twice.
pub(crate) const LONGEST_HOLD: Duration = DAY;
/// How soon a held feed is polled again.
const HOLD_POLL: Duration = Duration::from_secs(15 * 60);

/// Returns the first rule by which the document must be held, and why. A partial document is held only if it comes from
/// a new address and has none of the last items (`other-feed`).
pub(crate) fn find_brake(window: &WindowShift<'_>) -> Option<Braked> {
    let input = &window.input;
    if window.old.is_empty() {
        return None;
    }
    let before = window.old.len() + window.below.len() + window.below_gone.len();
    let case = DocumentCase { window, before };
    let is_whole = input.document.completeness == Completeness::Full;
    let asked = RULES.iter().filter(|DocumentRule { rule, .. }| {
        !input.options.without.has(rule.name) && (is_whole || rule.name == OTHER_FEED)
    });
    asked
        .into_iter()
        .find_map(|asked| Some(Braked { kind: asked.rule.name, reason: (asked.holds)(&case)? }))
}

/// What a held document waits for, besides looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldTerms {
    /// How long it must have stood, at least.
    pub least: Duration,
    /// So many different documents in a row that say the same are believed at once.
    pub documents: Option<u32>,
}

/// The terms of rules that a publisher overrules by continuing: several different documents that say the same.
const INSISTING: HoldTerms = HoldTerms { least: SHORT_HOLD, documents: Some(3) };

/// The terms of a rule; of a kind that no rule has, the shortest.
pub fn hold_terms(kind: &str) -> HoldTerms {
    let rule = RULES.iter().find(|rule| rule.rule.name == kind);
    rule.map_or(HoldTerms { least: SHORT_HOLD, documents: None }, |rule| rule.terms)
}

/// Whether a hold has been confirmed: seen often enough for long enough.
pub(crate) fn hold_is_ripe(hold: &Hold, now: Time) -> bool {
    let terms = hold_terms(&hold.kind);
    let stood = now.since(hold.since);
    terms.documents.is_some_and(|enough| hold.documents >= enough)
        || (stood >= LONGEST_HOLD && hold.observations > 1)
        || (stood >= terms.least && hold.observations >= HOLD_LOOKS)
}

/// When a held feed is polled again.
pub(crate) fn next_poll_of_held(now: Time) -> Time {
    now.plus(HOLD_POLL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_of_an_unknown_kind_ends_by_looks_alone() {
        let terms = hold_terms("of-a-newer-program");
        assert_eq!((terms.least.as_secs(), terms.documents), (30 * 60, None));
        assert_eq!(hold_terms("mass-changed").documents, Some(3));
    }
}
