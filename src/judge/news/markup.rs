use super::NewsRule;
use super::addresses::FOLLOWED_ATTRIBUTES;
use super::field::FieldKind;
use crate::rules::Rule;
use tidegate_core::model::NoiseClass;

pub(super) const RULE: NewsRule = NewsRule {
    rule: Rule { name: "markup", sentence: "attributes that are neither read nor followed" },
    class: NoiseClass::Markup,
    is_noise: |field, _| match field.kind {
        FieldKind::Attribute(name) => {
            !READ_ATTRIBUTES.contains(&name) && !FOLLOWED_ATTRIBUTES.contains(&name)
        }
        _ => false,
    },
};

const READ_ATTRIBUTES: [&str; 3] = ["term", "label", "text"];
