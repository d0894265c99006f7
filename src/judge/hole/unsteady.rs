use super::{HoleCase, HoleRule, Objection};
use crate::rules::Rule;
use crate::window::Direction;
use tidegate_core::model::{Character, Doubt, LedgerEntry, Order};

pub(super) const RULE: HoleRule = HoleRule {
    rule: Rule {
        name: "unsteady",
        sentence: "the order says nothing of age, or changes; too little of the feed is known; \
                   the item was at the top and nothing says which end is the old one",
    },
    objects,
};

/// With fewer documents, too little is known of how the feed works.
const YOUNG: u32 = 3;
/// The same for a feed whose new end is unknown: with fewer documents it may still show.
const TELLING: u32 = 6;
/// If the feed grew at the weaker end more than once per this many times at the other, neither is the new end.
const MIXED_PART: u32 = 4;
/// How often the feed must have grown at one end to count as ordered.
const ORDERLY_GROWTH: u32 = 2;
/// How often the feed must have grown at one end for its order to outweigh dates that contradict it.
const TELLING_GROWTH: u32 = 4;

/// Ranked and hand-ordered lists have no middle.
fn objects(case: &HoleCase<'_>, place: usize, _: &LedgerEntry) -> Option<Objection> {
    let (window, character) = (case.window, case.character());
    if window.input.options.order == Order::None {
        let why = "the order of its items says nothing of their age, as configured";
        return Some(Objection::settled(why));
    }
    if window.ordered {
        return None;
    }
    if is_restless(character) {
        return Some(Objection::settled("the order of its items changes often"));
    }
    let unsteady = |why: &str| Some(Objection::Open(Doubt::Unsteady, why.to_owned()));
    if !window.is_steady() {
        return unsteady("the items that stayed changed their order");
    }
    if window.direction == Direction::None && window.stood_at_head(place) {
        let why = "it stood at the top, and nothing says yet which end is the old one";
        return Some(Objection::Open(Doubt::Top, why.to_owned()));
    }
    if is_orderly(case) {
        return None;
    }
    let (most, least) = growth(character);
    if window.has_dates || least.saturating_mul(MIXED_PART) > most {
        return unsteady("its items are in no order that says which is older");
    }
    let enough = if window.direction == Direction::None { TELLING } else { YOUNG };
    if character.documents < enough {
        return unsteady("too little is known of this feed and its dates are in no order");
    }
    None
}

const fn is_restless(character: &Character) -> bool {
    character.reordered > character.kept_order / 3
}

/// How often the feed grew on the side where it did more often, and on the other.
fn growth(character: &Character) -> (u32, u32) {
    let (above, below) = (character.grew_above, character.grew_below);
    (above.max(below), above.min(below))
}

/// Whether the document runs in an order that says which item is older: that of the dates, or one
/// that was kept while new items came on one side.
pub(super) fn is_orderly(case: &HoleCase<'_>) -> bool {
    let (window, character) = (case.window, case.character());
    let (most, least) = growth(character);
    let grows = most >= ORDERLY_GROWTH && least.saturating_mul(MIXED_PART) <= most;
    let agrees = window.mostly_dated || !window.has_dates || most >= TELLING_GROWTH;
    window.ordered
        || (grows
            && agrees
            && window.is_steady()
            && window.direction != Direction::None
            && character.documents >= YOUNG
            && !is_restless(character))
}
