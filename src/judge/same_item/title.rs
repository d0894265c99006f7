use super::features::{Feature, plain_title};
use super::pairs::{CandidatePair, DISTINCTIVE_WEIGHT, UNIQUE_WEIGHT};
use crate::rules::Rule;
use tidegate_core::xml::has_units;

pub(super) const RULE: Rule = Rule { name: "title", sentence: "the same title" };

/// Titles of so many units name one post.
const LONG_TITLE: usize = 20;

pub(super) fn weigh(candidate: &CandidatePair<'_>) -> u8 {
    let Some(title) = plain_title(candidate.title()) else { return 0 };
    let own = if has_units(&title, LONG_TITLE) { DISTINCTIVE_WEIGHT } else { UNIQUE_WEIGHT };
    candidate.weigh_feature(&Feature::Title(title), own)
}
