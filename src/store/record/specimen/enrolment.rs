//! What the list of subscriptions has of a feed, in every shape.

use super::{count, text, update};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use tidegate_core::model::*;

pub(super) fn any_enrolment() -> impl Strategy<Value = Enrolment> {
    let stamps = vec(update().prop_map(|update| update.stamp), 0..4);
    let places = (vec(place(), 0..3), any::<u32>());
    (of(text()), count(), stamps, places).prop_map(
        |(title, version, history, (places, next_place))| Enrolment {
            title,
            version,
            history,
            places,
            next_place,
        },
    )
}

fn label() -> impl Strategy<Value = OutlineLabel> {
    let names = (of(text()), of(text()), of(text()), of(text()), of(text()));
    names.prop_map(|(text, title, description, category, language)| OutlineLabel {
        text,
        title,
        description,
        category,
        language,
    })
}

fn place() -> impl Strategy<Value = ListPlace> {
    let folder = (any::<u32>(), label());
    let folder = folder.prop_map(|(position, label)| ListFolder { position, label });
    (any::<u32>(), vec(folder, 0..3), any::<u32>(), label(), of(text())).prop_map(
        |(number, folders, position, label, site)| ListPlace {
            number,
            folders,
            position,
            label,
            site,
        },
    )
}
