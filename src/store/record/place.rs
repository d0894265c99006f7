//! Places in the list of subscriptions, on disk.

use crate::model::{Enrolment, ListFolder, ListPlace, OutlineLabel};
use serde::{Deserialize, Serialize};

/// The places of an [`Enrolment`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlacesRecord {
    places: Vec<PlaceRecord>,
    next: u32,
}

/// A [`ListPlace`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PlaceRecord {
    number: u32,
    folders: Vec<(u32, LabelRecord)>,
    position: u32,
    label: LabelRecord,
    site: Option<String>,
}

/// An [`OutlineLabel`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LabelRecord {
    text: Option<String>,
    title: Option<String>,
    description: Option<String>,
    category: Option<String>,
    language: Option<String>,
}

impl PlacesRecord {
    /// No place.
    pub(super) const NONE: Self = Self { places: Vec::new(), next: 0 };

    /// The places of a feed.
    pub(super) fn of(enrolment: &Enrolment) -> Self {
        let places = enrolment.places.iter().map(PlaceRecord::from).collect();
        Self { places, next: enrolment.next_place }
    }

    /// The places, and the number of the next one.
    pub(super) fn read(self) -> (Vec<ListPlace>, u32) {
        (self.places.into_iter().map(ListPlace::from).collect(), self.next)
    }
}

impl From<&ListPlace> for PlaceRecord {
    fn from(place: &ListPlace) -> Self {
        let ListPlace { number, folders, position, label, site } = place;
        let folders = folders.iter().map(|f| (f.position, (&f.label).into())).collect();
        let (label, site) = (label.into(), site.clone());
        Self { number: *number, folders, position: *position, label, site }
    }
}

impl From<PlaceRecord> for ListPlace {
    fn from(record: PlaceRecord) -> Self {
        let PlaceRecord { number, folders, position, label, site } = record;
        let folder = |(position, label): (u32, LabelRecord)| {
            let label = label.into();
            ListFolder { position, label }
        };
        let folders = folders.into_iter().map(folder).collect();
        Self { number, folders, position, label: label.into(), site }
    }
}

impl From<&OutlineLabel> for LabelRecord {
    fn from(label: &OutlineLabel) -> Self {
        let OutlineLabel { text, title, description, category, language } = label.clone();
        Self { text, title, description, category, language }
    }
}

impl From<LabelRecord> for OutlineLabel {
    fn from(record: LabelRecord) -> Self {
        let LabelRecord { text, title, description, category, language } = record;
        Self { text, title, description, category, language }
    }
}
