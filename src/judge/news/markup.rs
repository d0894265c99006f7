//! The rule `markup`.

use super::NewsRule;
use super::addresses::FOLLOWED_ATTRIBUTES;
use super::field::FieldKind;
use crate::rules::Rule;
use tidegate_core::model::NoiseClass;
use tidegate_core::sync_markup::collection_item::{JSON, NAMESPACE};

pub(super) const RULE: NewsRule = NewsRule {
    rule: Rule {
        name: "markup",
        sentence: "attributes that are neither read nor followed; what plain XML of a collection \
                   says twice",
    },
    class: NoiseClass::Markup,
    is_noise: |field, _| match field.kind {
        _ if is_said_twice(field.path) => true,
        FieldKind::Attribute(name) => {
            !READ_ATTRIBUTES.contains(&name) && !FOLLOWED_ATTRIBUTES.contains(&name)
        }
        _ => false,
    },
};

/// Attributes that a reader reads.
const READ_ATTRIBUTES: [&str; 3] = ["term", "label", "text"];

/// Whether a field is one of the item of a collection that an entry was made from, but for an item in JSON: that is
/// one text with all its members. An item of plain XML says nothing that other elements of the entry do not.
fn is_said_twice(path: &str) -> bool {
    let item = path.strip_prefix('{').and_then(|path| path.strip_prefix(NAMESPACE));
    item.and_then(|path| path.strip_prefix('}')).is_some_and(|name| name != JSON)
}
