use super::NewsRule;
use super::addresses::OUTLINE_ADDRESSES;
use super::field::FieldKind;
use crate::rules::Rule;
use tidegate_core::model::NoiseClass;

pub(super) const RULE: NewsRule = NewsRule {
    rule: Rule {
        name: "counters",
        sentence: "how often it was seen, shared, answered, liked and so on",
    },
    class: NoiseClass::Counters,
    is_noise: |field, value| match field.kind {
        FieldKind::Outline if field.is_outline(&OUTLINE_ADDRESSES) => false,
        FieldKind::Element if field.element.starts_with(COMMUNITY) => true,
        FieldKind::Attribute(_) => field.element.contains(COMMUNITY),
        // A country is no count.
        _ => {
            COUNTERS.iter().any(|parts| field.is_called(parts))
                && value
                    .trim_start_matches(|c: char| !c.is_alphanumeric())
                    .starts_with(char::is_numeric)
        }
    },
};

const COMMUNITY: &str = "media:community";
/// Parts of names that tell of a counter.
const COUNTERS: [&[&str]; 3] = [
    &["statistics", "starrating", "score", "rank", "count"],
    &["views", "comments", "total", "votes", "likes"],
    &["favorites", "shares", "downloads", "replies"],
];
