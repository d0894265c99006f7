use super::features::{Feature, of_item, without_texts};
use super::pairs::{CandidatePair, DISTINCTIVE_WEIGHT, SHARED_WEIGHT, UNIQUE_WEIGHT};
use super::signs::AddressSign;
use crate::rules::Rule;
use foldhash::HashSet;
use tidegate_core::xml::plain_address::plain_link;

pub(super) const RULE: Rule = Rule {
    name: "address",
    sentence: "the id but for scheme and host; the id or link but for its query; the link; a number \
               of five digits or more in it; the last part of the path if it is a name",
};

/// Words in the last part of an address that together name one post.
const TELLING_WORDS: usize = 3;

/// In what way the addresses are the same, and how much that says. A title and a name that was made of it are one
/// sign.
pub(super) fn weigh(candidate: &CandidatePair<'_>, has_title: bool) -> Option<(AddressSign, u8)> {
    let of_old: HashSet<Feature> = of_item(candidate.old).into_iter().collect();
    let shared = without_texts(candidate.new, candidate.shown).into_iter();
    let weigh = |feature: Feature| {
        let (sign, own) = match &feature {
            Feature::Hostless(_) => (AddressSign::Hostless, DISTINCTIVE_WEIGHT),
            Feature::Path(_) if differ_in_query(candidate) => {
                (AddressSign::Path, DISTINCTIVE_WEIGHT)
            }
            Feature::Link(_) => (AddressSign::Link, DISTINCTIVE_WEIGHT),
            Feature::Number(_) => (AddressSign::Number, UNIQUE_WEIGHT),
            Feature::Name(name) if !has_title => {
                let tells = name.split(['-', '_', '+']).count() >= TELLING_WORDS;
                (AddressSign::Name, if tells { UNIQUE_WEIGHT } else { SHARED_WEIGHT })
            }
            _ => return None,
        };
        let counts = candidate.is_own(&feature)? || sign == AddressSign::Hostless;
        counts.then_some((sign, own))
    };
    let shared = shared.filter(|feature| of_old.contains(feature)).filter_map(weigh);
    shared.max_by_key(|(sign, weight)| (*weight, *sign))
}

/// Whether the address of an entry has another query than that of the item.
fn differ_in_query(candidate: &CandidatePair<'_>) -> bool {
    let CandidatePair { new, old, shown, .. } = candidate;
    let is_another = |new: &str, old: &str| plain_link(new) != plain_link(old);
    let links = new.link.as_deref().zip(old.link.as_deref());
    is_another(shown, &old.native_shown)
        && (shown.contains('?') || links.is_some_and(|(new, old)| is_another(new, old)))
}
