//! Where a feed stands in the list of subscriptions that its reader brought along, and what it is
//! called there.
//!
//! A place is a path: the folders from the outermost one inwards, each with its position among
//! those that it stands with, and the feed's own position at the end. So the list is put together
//! from its feeds alone, and one more feed or folder moves none of the others. A folder is there
//! because a feed stands in it: an empty one is no subscription, and is not kept.

use super::{FeedRecord, ShownAddress};
use crate::short_hash::{ID_BYTES, base32};
use crate::xml;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use url::Url;

/// What an outline is called, in the reader's own words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct OutlineLabel {
    pub text: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    /// Its `category`: paths with slashes, separated by commas (OPML 2.0).
    pub category: Option<String>,
    pub language: Option<String>,
}

impl OutlineLabel {
    /// The longest `text` and `title`, in bytes; the rest is cut off, as of all of these.
    pub const NAME_LIMIT: usize = 500;
    /// The longest `description`, in bytes.
    pub const DESCRIPTION_LIMIT: usize = 1_000;
    /// The longest `category`, in bytes.
    pub const CATEGORY_LIMIT: usize = 500;
    /// The longest `language`, in bytes.
    pub const LANGUAGE_LIMIT: usize = 40;

    /// A label as it is kept, of what an outline says: the value of the attribute of each name.
    pub fn new<'a>(attribute: impl Fn(&str) -> Option<&'a str>) -> Self {
        let kept = |name, limit| attribute(name).and_then(|value| shortened(value, limit));
        Self {
            text: kept("text", Self::NAME_LIMIT),
            title: kept("title", Self::NAME_LIMIT),
            description: kept("description", Self::DESCRIPTION_LIMIT),
            category: kept("category", Self::CATEGORY_LIMIT),
            language: kept("language", Self::LANGUAGE_LIMIT),
        }
    }

    /// What it is called: its `text`, else its `title`.
    pub fn name(&self) -> Option<&str> {
        self.text.as_deref().or(self.title.as_deref())
    }

    /// Its `title`, else its `text`.
    pub fn heading(&self) -> Option<&str> {
        self.title.as_deref().or(self.text.as_deref())
    }
}

/// A text without the space around it, cut to a number of bytes; `None` where nothing is left.
pub(super) fn shortened(text: &str, limit: usize) -> Option<String> {
    let kept = xml::shortened(text.trim(), limit).trim_end();
    (!kept.is_empty()).then(|| kept.to_owned())
}

/// A folder of the list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListFolder {
    /// Its position among those that it stands with.
    pub position: u32,
    /// What it is called.
    pub label: OutlineLabel,
}

/// A place in the list of subscriptions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ListPlace {
    /// Which of the feed's places it is: the number never means another one.
    pub number: u32,
    /// The folders around it, outermost first, at most [`ListPlace::DEPTH`].
    pub folders: Vec<ListFolder>,
    /// Its position in the innermost of them.
    pub position: u32,
    /// What the feed is called there.
    pub label: OutlineLabel,
    /// The address of the feed's page, as the list has it.
    pub site: Option<String>,
}

impl ListPlace {
    /// The most folders around a feed. One that stands deeper stands in the last of them.
    pub const DEPTH: usize = 16;
    /// The most places of one feed.
    pub const MOST: usize = 16;
    /// The longest address of a page, in bytes; a longer one is not kept.
    pub const SITE_LIMIT: usize = 2_000;

    /// The address of a page as it is kept.
    pub fn site(address: &str) -> Option<String> {
        let address = address.trim();
        let fits = !address.is_empty() && address.len() <= Self::SITE_LIMIT;
        fits.then(|| address.to_owned())
    }

    /// The way to it: the positions of its folders, and its own.
    pub fn path(&self) -> impl Iterator<Item = u32> {
        self.folders.iter().map(|folder| folder.position).chain([self.position])
    }

    /// Whether it stands in the outline at another place: another feed may have feeds in it.
    pub fn is_within(&self, other: &Self) -> bool {
        let mut folders = self.folders.iter().map(|folder| folder.position);
        other.path().all(|position| folders.next() == Some(position))
    }
}

/// The feeds of a list in its order, each with its place: one behind the other as they are read,
/// those in folders included. A feed that stands in several folders comes several times, and those
/// without a place come at the end, in the order in which they are given.
pub fn listed<'a>(
    records: impl IntoIterator<Item = &'a FeedRecord>,
) -> Vec<(&'a FeedRecord, Option<&'a ListPlace>)> {
    let mut all = Vec::new();
    for record in records {
        all.extend(record.enrolment.places.iter().map(|place| (record, Some(place))));
        if record.enrolment.places.is_empty() {
            all.push((record, None));
        }
    }
    // Stable: what stands at one place by mistake stays in the order of the names.
    all.sort_by(|(_, one), (_, other)| match (one, other) {
        (Some(one), Some(other)) => one.path().cmp(other.path()),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    all
}

/// A text of a list as anybody may see it: where it is an address, with its keys masked. Programs
/// that know no title write the address of the feed in its place.
pub fn shown_text(text: &str, secret: Option<bool>) -> String {
    match Url::parse(text.trim()) {
        Ok(url) if !url.cannot_be_a_base() => {
            ShownAddress::new(text.trim(), secret).text().to_owned()
        }
        _ => text.to_owned(),
    }
}

impl FeedRecord {
    /// The label of one of its places, as the list of subscriptions shows it. What the reader does
    /// not call it, its own title or its name does.
    pub fn shown_label(&self, place: Option<&ListPlace>) -> OutlineLabel {
        let own = place.map(|place| place.label.clone()).unwrap_or_default();
        let otherwise = || self.enrolment.title.clone().unwrap_or_else(|| self.name.to_string());
        let text = own.name().map_or_else(otherwise, str::to_owned);
        let title = own.title.clone().unwrap_or_else(|| text.clone());
        let shown = |text: String| self.shown_text(&text);
        OutlineLabel {
            text: Some(shown(text)),
            title: Some(shown(title)),
            description: own.description.map(shown),
            category: own.category.map(shown),
            language: own.language.map(shown),
        }
    }

    /// What pages call it: as the reader does where its list has it first, as its publisher does,
    /// or its name.
    pub fn shown_title(&self) -> String {
        let label = self.shown_label(self.enrolment.places.first());
        label.text.unwrap_or_else(|| self.name.to_string())
    }

    /// A text that a list has of this feed, as anybody may see it.
    fn shown_text(&self, text: &str) -> String {
        let shown = self.shown();
        let text = shown_text(text, self.options.secret);
        if shown.is_masked() && self.has_upstream() {
            text.replace(&self.url, shown.text())
        } else {
            text
        }
    }
}

// How an outline of a subscription list stands among the entries of feeds: an Atom entry with an
// element that bears what Atom has no words for.

/// The attribute of an outline that says the SUP id of its feed, in the namespace
/// [`OUTLINE`](crate::xml::ns::OUTLINE).
pub const OUTLINE_SUP: &str = "sup";

/// What an outline is said to stand in that stands in no other. No outline bears it as its id.
pub const OUTLINE_ROOT: &str = "body";

/// How deep outlines stand in each other, in lists that are read and in those that are written.
pub const OUTLINE_DEPTH: usize = 256;

/// The way to an outline: the texts of those around it, outermost first, and its own. Each step
/// costs what its own text is long.
#[derive(Debug, Clone, Default)]
pub struct OutlinePath(Sha256);

impl OutlinePath {
    /// The way to one of these texts in this outline.
    #[must_use]
    pub fn with(&self, text: &str) -> Self {
        let mut hash = self.0.clone();
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
        Self(hash)
    }

    /// The id of the outline, where it has no address. It gives none of the texts away. `ordinal`
    /// tells apart those of the same texts.
    pub fn id(&self, ordinal: u64) -> String {
        let mut hash = self.0.clone();
        hash.update(ordinal.to_be_bytes());
        format!("x-outline:{}", base32(hash, ID_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Enrolment, testing};
    use std::collections::BTreeSet;

    fn label(text: &str) -> OutlineLabel {
        OutlineLabel::new(|name| (name == "text").then_some(text))
    }

    fn place(folders: &[u32], position: u32) -> ListPlace {
        let folder = |position: &u32| ListFolder { position: *position, label: label("F") };
        let folders = folders.iter().map(folder).collect();
        ListPlace { number: 0, folders, position, label: label("own"), site: None }
    }

    fn record(name: &str, places: Vec<ListPlace>) -> FeedRecord {
        FeedRecord {
            enrolment: Enrolment { places, ..Enrolment::default() },
            url: format!("https://h.example/{name}?token=0123456789abcdef0123456789abcdef"),
            ..testing::record(name)
        }
    }

    #[test]
    fn feeds_come_in_the_order_of_the_list() {
        let records = [
            record("a", vec![place(&[2, 0], 1), place(&[], 0)]),
            record("b", vec![]),
            record("c", vec![place(&[2], 0), place(&[], 2)]),
            record("d", vec![place(&[2, 0], 0)]),
        ];
        let names: Vec<_> =
            listed(&records).iter().map(|(record, _)| record.name.as_str()).collect();
        assert_eq!(names, ["a", "c", "c", "d", "a", "b"]);
        let (inner, outer) = (place(&[2], 0), place(&[], 2));
        assert!(inner.is_within(&outer));
        assert!(!inner.is_within(&inner) && !outer.is_within(&inner));
    }

    #[test]
    fn labels_are_cut_and_keys_in_them_masked() {
        assert_eq!(label(&"é".repeat(400)).text.map(|text| text.len()), Some(500));
        assert_eq!(label("  "), OutlineLabel::default());
        // What is cut is cut once.
        let cut = label(&format!("{} b", "a".repeat(499))).text.unwrap();
        assert_eq!(label(&cut).text, Some(cut));
        let record = record("a", vec![]);
        let own = |text: &str| {
            let place = ListPlace { label: label(text), ..place(&[], 0) };
            record.shown_label(Some(&place)).text.unwrap()
        };
        assert_eq!(own("<Mine> & co"), "<Mine> & co");
        for text in [record.url.clone(), format!("see {}", record.url)] {
            assert!(!own(&text).contains("0123456789"), "{}", own(&text));
        }
        assert_eq!(record.shown_label(None).text.as_deref(), Some("a"));
    }

    #[test]
    fn ids_are_those_of_their_place() {
        let id = |path: &[&str], ordinal| {
            path.iter().fold(OutlinePath::default(), |path, text| path.with(text)).id(ordinal)
        };
        let paths: [(&[&str], u64); 5] =
            [(&["News"], 0), (&["News"], 1), (&["", "News"], 0), (&["Ne", "ws"], 0), (&[], 0)];
        let ids = BTreeSet::from(paths.map(|(path, ordinal)| id(path, ordinal)));
        assert_eq!(ids.len(), paths.len());
        assert!(ids.iter().all(|id| id.starts_with("x-outline:") && !id.contains("News")));
        assert_eq!(id(&["News"], 0), id(&["News"], 0));
    }
}
