use super::features::Feature;
use super::pairs::{CandidatePair, SHARED_WEIGHT, UNIQUE_WEIGHT};
use super::signs::Signs;
use crate::rules::Rule;
use tidegate_core::xml::plain_address::day;

pub(super) const RULE: Rule = Rule {
    name: "date",
    sentence: "the same second of publication (or of the update), or the same day in both ids",
};

/// Weighs the date, to the second or the day, that no other which is unmatched bears.
pub(super) fn weigh(candidate: &CandidatePair<'_>, signs: &Signs) -> u8 {
    let CandidatePair { new, old, shown, sides, .. } = candidate;
    let id_day = day(shown).filter(|own| day(&old.native_shown).as_ref() == Some(own));
    let (feature, is_coarse) = match (new.published, old.published) {
        (Some(a), Some(b)) if a == b => (Feature::Published(a), sides.is_day(a)),
        (None, None) => match (new.updated, old.updated, &id_day) {
            (Some(a), Some(b), _) if a == b => (Feature::Updated(a), sides.is_day(a)),
            (_, _, Some(day)) => (Feature::Day(day.clone()), true),
            _ => return 0,
        },
        _ => return 0,
    };
    match (candidate.is_borne_by_others(&feature), is_coarse) {
        (true, true) if signs.text == 0 => 0,
        (true, _) => SHARED_WEIGHT,
        // On a raster of days, words that are like each other may be of two posts.
        (false, true) if signs.wording > 0 && id_day.is_none() => SHARED_WEIGHT,
        (false, _) => UNIQUE_WEIGHT,
    }
}
