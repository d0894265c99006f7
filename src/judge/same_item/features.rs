//! What entries and items are looked up by, and who bears it.

use crate::news::{hash_text, is_a_text, texts};
use foldhash::HashMap;
use tidegate_core::model::{Entry, Ignore, ItemStatus, LedgerEntry, Time};
use tidegate_core::xml::has_units;
use tidegate_core::xml::plain_address::{
    day, is_address, numbers, path_without_query, plain_link, slug, telling_part,
};

/// Titles that say less tell nothing, in [units](has_units).
const MIN_TITLE_UNITS: usize = 2;
/// Notes without a title that say less are not told from each other, in [units](has_units).
const MIN_NOTE_UNITS: usize = 10;
/// Texts that say less tell nothing, in [units](has_units).
const MIN_TEXT_UNITS: usize = 60;
/// Texts that say as much are long, in [units](has_units).
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
    /// A long number in the address.
    Number(String),
}

/// The features of an entry but for its texts, which cost the most.
pub(super) fn without_texts(entry: &Entry<'_>, native: &str) -> Vec<Feature> {
    let title = entry.title.as_deref().unwrap_or_default();
    of_card(title, native, entry.published, entry.updated, entry.link.as_deref())
}

/// The features of an item; of its texts all, however short.
pub(super) fn of_item(known: &LedgerEntry) -> Vec<Feature> {
    let (title, native, link) = (&known.title, &known.native_shown, known.link.as_deref());
    let mut features = of_card(title, native, known.published, known.updated, link);
    features.reserve(known.prints.len());
    features.extend(known.prints.iter().copied().map(Feature::Text));
    features
}

/// Of a card there are mostly no more: a title, two dates, four forms of an address, a number.
const FEATURES_OF_CARD: usize = 8;

fn of_card(
    title: &str,
    shown: &str,
    published: Option<Time>,
    updated: Option<Time>,
    link: Option<&str>,
) -> Vec<Feature> {
    let mut features = Vec::with_capacity(FEATURES_OF_CARD);
    features.extend(plain_title(title).map(Feature::Title));
    match published {
        Some(published) => features.push(Feature::Published(published)),
        None => {
            features.extend(updated.map(Feature::Updated));
            features.extend(day(shown).map(Feature::Day));
        }
    }
    // Mostly the link is the id, or the id is no address.
    let plain_id = is_address(shown).then(|| plain_link(shown));
    let other_link = link.filter(|link| *link != shown || plain_id.is_none());
    let plain_other = other_link.map(plain_link);
    let own = plain_id.as_ref().map(|plain| (shown, plain));
    let address = own.or(other_link.zip(plain_other.as_ref()));
    let path = address.and_then(|(address, plain)| path_without_query(address, plain));
    features.extend(path.map(Feature::Path));
    let part = telling_part(shown, plain_id.as_deref());
    features.extend(part.map(|part| Feature::Hostless(part.to_owned())));
    features.extend(link.and(plain_other.or(plain_id)).map(Feature::Link));
    features.extend(slug(shown).or_else(|| slug(link?)).map(Feature::Name));
    let mut digits = numbers(shown);
    digits.extend(other_link.map(numbers).unwrap_or_default());
    digits.sort_unstable();
    digits.dedup();
    features.extend(digits.into_iter().map(Feature::Number));
    features
}

/// A text of an entry that tells it from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TellingText {
    /// The fingerprints of its path and of what it says, as an item has them.
    pub(crate) print: (u64, u64),
    /// Whether it is more than a line that a series has about itself.
    pub(super) is_long: bool,
    /// Whether it says as much as the text of an entry with a title has to.
    pub(crate) is_full: bool,
    /// Whether it is what an entry without a title says itself.
    pub(super) is_note: bool,
    /// Whether it is the title.
    pub(super) is_title: bool,
}

/// The texts of an entry that tell it from others. An entry without a title has no other name, so that shorter notes
/// tell as well, but not who wrote it or what it is about.
pub(super) fn telling_texts(entry: &Entry<'_>, ignore: &[Ignore]) -> Vec<TellingText> {
    let is_untitled = entry.title.as_deref().unwrap_or_default().trim().is_empty();
    // A character of two units has three bytes or more.
    let least = if is_untitled { MIN_NOTE_UNITS } else { MIN_TEXT_UNITS };
    let mut found = Vec::new();
    for (path, text) in texts(entry, ignore, least) {
        let is_note = is_untitled && is_a_text(path) && has_units(&text, MIN_NOTE_UNITS);
        let is_full = has_units(&text, MIN_TEXT_UNITS);
        if is_full || is_note {
            let (print, is_long) = (hash_text(path, &text), has_units(&text, LONG_TEXT));
            let is_title = path == "title";
            found.push(TellingText { print, is_long, is_full, is_note, is_title });
        }
    }
    found
}

/// A title as it is compared, however spaces, quotes, dots and dashes in it are written; nothing where it says too
/// little.
pub(super) fn plain_title(title: &str) -> Option<String> {
    let is_between = |c: char| {
        c.is_whitespace()
            || matches!(c, '\'' | '"' | '.' | '-' | '«' | '»' | '\u{2000}'..='\u{206F}')
    };
    let words = || title.split(is_between).filter(|word| !word.is_empty());
    has_units(title, MIN_TITLE_UNITS).then(|| words().collect::<Vec<_>>().join(" ").to_lowercase())
}

/// Who bears a feature: groups of entries and of items that share a native id, each at most one more than
/// [`BEARERS_LIMIT`].
#[derive(Debug, Default)]
pub(super) struct Bearers {
    pub(super) entries: Vec<usize>,
    pub(super) items: Vec<usize>,
    /// Those of the items that were deleted: what took the place of one bears what it bore.
    pub(super) deleted: Vec<usize>,
}

impl Bearers {
    /// The items that may be an entry that bears it: deleted ones where no other bears it.
    pub(super) fn candidates(&self) -> &[usize] {
        if self.items.is_empty() { &self.deleted } else { &self.items }
    }

    /// Whether so many bear it that it tells none of them from the others.
    pub(super) fn are_many(&self) -> bool {
        self.entries.len() > BEARERS_LIMIT || self.candidates().len() > BEARERS_LIMIT
    }
}

/// What more share, on either side, tells none of them from the others.
const BEARERS_LIMIT: usize = 8;

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
        self.bearers.values().any(|bearers| !bearers.candidates().is_empty())
    }

    /// Adds an item of the group. Dates and texts of what is listed no more are no one's own.
    pub(super) fn add_item(&mut self, group: usize, known: &LedgerEntry, is_free: bool) {
        let is_current = known.standing.is_listed();
        for feature in of_item(known) {
            let counts = match feature {
                Feature::Text(_) => is_current,
                Feature::Published(_) | Feature::Updated(_) | Feature::Day(_) => {
                    is_free && is_current
                }
                Feature::Hostless(_) => is_free,
                _ => true,
            };
            if let Some(bearers) = self.bearers.get_mut(&feature).filter(|_| counts) {
                let is_deleted = matches!(known.standing, ItemStatus::Deleted { .. });
                push_new(if is_deleted { &mut bearers.deleted } else { &mut bearers.items }, group);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_same_however_its_quotes_dashes_dots_and_spaces_are_typed() {
        for (one, other, same) in [
            ("The boat’s “last” trip – a story…", "The boat's \"last\" trip -- A story...", true),
            ("Two\u{a0}boats ", "Two  boats.", true),
            ("Two boats", "Twoboats", false),
            ("Sailing in C++", "Sailing in C#", false),
            ("The ferry, 2019 ★★★", "The ferry, 2019 ★★", false),
        ] {
            assert_eq!(plain_title(one) == plain_title(other), same, "{one}");
        }
        assert_eq!(plain_title("“…” – 1"), None);
    }
}
