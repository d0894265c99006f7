//! What entries and items are looked up by, and who bears it.

use super::Native;
use crate::diff::{is_a_text, is_image, text_prints};
use std::collections::HashMap;
use tidegate_core::model::{Entry, ItemStatus, LedgerEntry, Time};
use tidegate_core::xml::plain_address::{day, hostless, path_without_query, plain_link, slug};
use tidegate_core::xml::units;

/// Titles that say less tell nothing, in [`units`].
pub(super) const TELLING_TITLE: usize = 2;
/// Notes without a title that say less are not told from each other, in [`units`].
const TELLING_NOTE: usize = 10;
/// Texts that say less tell nothing, in [`units`].
const TELLING_TEXT: usize = 60;
/// Texts that say as much are more than a line that a series has about itself, in [`units`].
const LONG_TEXT: usize = 200;

/// Something by which an entry and an item may be known to be the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Feature {
    Title(String),
    Published(Time),
    Updated(Time),
    /// The day in the id of what has no date of publication.
    Day(String),
    /// A path and what stands there.
    Text((u64, u64)),
    Link(String),
    /// The address without its query.
    Path(String),
    /// The id without scheme and host.
    Hostless(String),
    /// The last part of the address.
    Name(String),
    /// The first enclosure, which is no picture.
    Sound(String),
}

/// The features of an entry; its texts only where they are wanted, since they cost the most.
pub(super) fn of_entry(entry: &Entry<'_>, native: &Native, has_texts: bool) -> Vec<Feature> {
    let title = entry.title.as_deref().unwrap_or_default();
    let dates = (entry.published, entry.updated);
    let enclosure = entry.enclosures.first().map(|address| &**address);
    let mut features = Vec::new();
    of_card((title, &native.shown), dates, (entry.link.as_deref(), enclosure), &mut features);
    if has_texts {
        features.extend(telling_texts(entry).into_iter().map(Feature::Text));
    }
    features
}

/// The features of an item; of its texts all, however short.
pub(super) fn of_item(known: &LedgerEntry) -> Vec<Feature> {
    let dates = (known.published, known.updated);
    let addresses = (known.link.as_deref(), known.enclosure.as_deref());
    let mut features = Vec::new();
    of_card((&known.title, &known.native_shown), dates, addresses, &mut features);
    features.extend(known.prints.iter().copied().map(Feature::Text));
    features
}

/// The texts of an entry that say enough to tell it from others.
pub fn telling_texts(entry: &Entry<'_>) -> Vec<(u64, u64)> {
    text_prints(entry, TELLING_TEXT, |_| true)
}

/// The long texts of an entry.
pub(super) fn long_texts(entry: &Entry<'_>) -> Vec<(u64, u64)> {
    text_prints(entry, LONG_TEXT, |_| true)
}

/// What an entry without a title says itself, which is neither who wrote it nor what it is about.
pub(super) fn note_texts(entry: &Entry<'_>) -> Vec<(u64, u64)> {
    text_prints(entry, TELLING_NOTE, is_a_text)
}

/// A title as it is compared; nothing where it says too little.
pub(super) fn plain_title(title: &str) -> Option<String> {
    (units(title) >= TELLING_TITLE).then(|| title.trim().to_lowercase())
}

/// The last part of the address, where it is a name.
pub(super) fn name(shown: &str, link: Option<&str>) -> Option<String> {
    slug(shown).or_else(|| slug(link?))
}

fn of_card(
    (title, shown): (&str, &str),
    (published, updated): (Option<Time>, Option<Time>),
    (link, enclosure): (Option<&str>, Option<&str>),
    features: &mut Vec<Feature>,
) {
    features.extend(plain_title(title).map(Feature::Title));
    match published {
        Some(published) => features.push(Feature::Published(published)),
        None => {
            features.extend(updated.map(Feature::Updated));
            features.extend(day(shown).map(Feature::Day));
        }
    }
    features.extend(link.map(|link| Feature::Link(plain_link(link))));
    features.extend(path_without_query(shown, link).map(Feature::Path));
    features.extend(hostless(shown).map(Feature::Hostless));
    features.extend(name(shown, link).map(Feature::Name));
    let sound = enclosure.filter(|address| is_file(address));
    features.extend(sound.map(|address| Feature::Sound(plain_link(address))));
}

/// Whether an address is that of a file other than a picture, by its ending.
fn is_file(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or(address);
    let last = path.rsplit('/').next().unwrap_or(path);
    last.contains('.') && !is_image(address)
}

/// Who bears a feature: groups of entries and of items that share a native id.
#[derive(Debug, Default)]
pub(super) struct Bearers {
    pub(super) entries: Vec<usize>,
    pub(super) items: Vec<usize>,
    /// Those of the items that were deleted: what took the place of one bears what it bore.
    pub(super) deleted: Vec<usize>,
}

impl Bearers {
    /// The only entry and the only item, where there are no others; of the deleted ones where no other
    /// item bears it.
    pub(super) fn only(&self) -> Option<(usize, usize)> {
        let [entry] = self.entries.as_slice() else { return None };
        match (self.items.as_slice(), self.deleted.as_slice()) {
            ([item], _) | ([], [item]) => Some((*entry, *item)),
            _ => None,
        }
    }

    /// All items that bear it.
    pub(super) fn all_items(&self) -> impl Iterator<Item = usize> {
        self.items.iter().chain(&self.deleted).copied()
    }
}

/// What more share, on either side, tells none of them from the others.
pub(super) const BEARERS_LIMIT: usize = 32;

/// Adds a group once; of those over the limit, one.
fn push_new(groups: &mut Vec<usize>, group: usize) {
    if groups.len() <= BEARERS_LIMIT && !groups.contains(&group) {
        groups.push(group);
    }
}

/// The bearers of each feature that an unmatched entry bears.
#[derive(Debug, Default)]
pub(super) struct FeatureIndex {
    pub(super) bearers: HashMap<Feature, Bearers>,
}

impl FeatureIndex {
    /// Adds an entry of the group; of one that is matched already only what is there counts.
    pub(super) fn add_entry(&mut self, group: usize, features: Vec<Feature>, is_free: bool) {
        for feature in features {
            let bearers = match is_free {
                true => Some(self.bearers.entry(feature).or_default()),
                false => self.bearers.get_mut(&feature),
            };
            if let Some(bearers) = bearers {
                push_new(&mut bearers.entries, group);
            }
        }
    }

    /// Whether an item bears any of them.
    pub(super) fn have_items(&self) -> bool {
        self.bearers.values().any(|bearers| bearers.all_items().next().is_some())
    }

    /// Adds an item of the group where it counts as a bearer.
    pub(super) fn add_item(
        &mut self,
        group: usize,
        known: &LedgerEntry,
        counts: impl Fn(&Feature) -> bool,
    ) {
        for feature in of_item(known) {
            if let Some(bearers) = self.bearers.get_mut(&feature).filter(|_| counts(&feature)) {
                let is_deleted = matches!(known.standing, ItemStatus::Deleted { .. });
                push_new(if is_deleted { &mut bearers.deleted } else { &mut bearers.items }, group);
            }
        }
    }
}
