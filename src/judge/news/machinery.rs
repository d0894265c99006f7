use super::NewsRule;
use super::field::FieldKind;
use crate::rules::Rule;
use tidegate_core::model::NoiseClass;

pub(super) const RULE: NewsRule = NewsRule {
    rule: Rule {
        name: "machinery",
        sentence: "what programs tell programs: feeds of comments, generators, sizes, links to edit \
                   an entry",
    },
    class: NoiseClass::Machinery,
    is_noise: |field, _| match field.kind {
        FieldKind::Link => !FOLLOWED.contains(&field.path),
        FieldKind::Outline => field.is_outline(&OUTLINE_SETTINGS),
        FieldKind::Element if field.element.starts_with("wfw:") => true,
        _ => ELEMENTS.iter().any(|names| names.contains(&field.name)),
    },
};

const ELEMENTS: [&[&str]; 2] = [
    &["comments", "generator", "docs", "source", "feedburner:origLink"],
    &["media:hash", "media:rating", "media:keywords"],
];
/// Relations of Atom links that a reader can follow to content.
const FOLLOWED: [&str; 4] =
    ["link[alternate]@href", "link[enclosure]@href", "link[via]@href", "link[related]@href"];
const OUTLINE_SETTINGS: [&str; 4] = ["isopen", "isbreakpoint", "icon", "favicon"];
