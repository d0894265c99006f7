//! What an entry and an item have in common, weighed by how rare it is, and what contradicts.

use super::{CandidatePair, Groups};
use crate::identity::evidence::Sides;
use crate::identity::features::{
    Bearers, Feature, entry_texts, long_texts, of_entry, of_item, plain_title,
};
use crate::identity::signs::{AddressSign, Signs};
use crate::identity::wording::{continues, is_hardly_reworded, is_reworded};
use std::collections::HashSet;
use std::time::Duration;
use tidegate_core::model::{Entry, LedgerEntry, Without};
use tidegate_core::xml::plain_address::{day, plain_link};
use tidegate_core::xml::units;

/// What nothing else that is listed bears.
pub(super) const OWN: u8 = 2;
/// The same of what is hardly borne by chance: a long title, a long text, an address.
const TELLING: u8 = 3;
/// What others bear as well.
pub(super) const SHARED: u8 = 1;
/// Titles of so many units name one post.
const LONG_TITLE: usize = 20;
/// Words in the last part of an address that together name one post.
const TELLING_WORDS: usize = 3;
/// Posts whose dates are as far apart are of two days.
const ANOTHER_DAY: Duration = Duration::from_secs(20 * 3600);
/// Posts whose dates are further apart have little to do with each other.
const NEAR: Duration = Duration::from_secs(14 * 24 * 3600);
/// What other words on another page, and dates that far apart, take away.
const CONTRADICTED: u8 = 3;

impl Groups {
    /// Whether a feature is one pair's own: no other entry or item that is listed bears it, and none that was
    /// listed but a copy of the item. Nothing where more bear it than are counted.
    fn is_own(
        &self,
        sides: &Sides<'_>,
        candidate: &CandidatePair<'_>,
        feature: &Feature,
    ) -> Option<bool> {
        let bearers: &Bearers = self.features.bearers.get(feature)?;
        if bearers.are_many() {
            return None;
        }
        let (entry, item) = candidate.pair;
        let is_other = |other: &&usize| {
            let other = sides.snapshot.known.get(**other);
            other.is_none_or(|other| !is_copy(other, candidate.old))
        };
        let mut items = bearers.candidates().iter().filter(|other| **other != item);
        Some(bearers.entries == [entry] && !items.any(|other| is_other(&other)))
    }

    /// The weight of a feature that both bear.
    fn rarity(
        &self,
        sides: &Sides<'_>,
        candidate: &CandidatePair<'_>,
        feature: &Feature,
        own: u8,
    ) -> u8 {
        match self.is_own(sides, candidate, feature) {
            Some(true) => own,
            Some(false) => SHARED,
            None => 0,
        }
    }

    /// What a candidate has in common; nothing where it is contradicted.
    pub(super) fn signs(
        &self,
        sides: &Sides<'_>,
        candidate: &CandidatePair<'_>,
        texts: &Texts,
        without: &Without,
    ) -> Option<Signs> {
        let CandidatePair { new, old, .. } = candidate;
        let is_on = |rule: &str| !without.has(rule);
        let is_listed = old.standing.is_listed();
        let mut signs = Signs::default();
        let theirs = new.title.as_deref().unwrap_or_default();
        let (title, former) = (plain_title(theirs), plain_title(&old.title));
        if title == former {
            if let Some(title) = title.filter(|_| is_on("title")) {
                let own = if units(&title) >= LONG_TITLE { TELLING } else { OWN };
                signs.title = self.rarity(sides, candidate, &Feature::Title(title), own);
            }
        } else {
            // The exact title stands somewhere else among what is unmatched.
            let is_elsewhere = title.as_ref().is_some_and(|title| self.titles.0.contains(title))
                || former.as_ref().is_some_and(|former| self.titles.1.contains(former));
            if is_elsewhere && is_listed {
                return None;
            }
            let is_like = || is_reworded(theirs, &old.title) || continues(theirs, &old.title);
            if is_on("wording") && is_like() {
                let is_close = is_hardly_reworded(theirs, &old.title);
                signs.wording = if is_close { TELLING } else { OWN };
            }
        }
        if is_on("text") {
            let shared = texts.telling.iter().filter(|print| old.prints.contains(print));
            let weigh = |print: &(u64, u64)| {
                let own = if texts.long.contains(print) { TELLING } else { OWN };
                // Whose texts are listed no more cannot be asked who else bears them.
                match self.is_own(sides, candidate, &Feature::Text(*print)) {
                    Some(true) if is_listed => own,
                    Some(true) => own - 1,
                    _ => 0,
                }
            };
            signs.text = shared.map(weigh).max().unwrap_or_default();
        }
        if is_on("address") {
            (signs.address, signs.address_weight) = self
                .address(sides, candidate, &signs)
                .map_or((None, 0), |(sign, weight)| (Some(sign), weight));
        }
        let pages = (new.link.as_deref().map(plain_link), old.link.as_deref().map(plain_link));
        let has_other_page = pages.0.is_some() && pages.1.is_some() && pages.0 != pages.1;
        if signs.title == SHARED && has_other_page && signs.address_weight == 0 {
            signs.title = 0;
        }
        if is_on("date") {
            signs.date = self.date(sides, candidate, &signs);
        }
        // An id of another scheme or host, and a text and a part of the address of what is listed, say enough,
        // whatever else does not agree.
        let is_certain = signs.address == Some(AddressSign::Hostless)
            || is_listed && signs.text > 0 && signs.address_weight > 0;
        if signs.date == 0 && !is_certain {
            let is_on_another_page = has_other_page && signs.address_weight == 0;
            signs.against = match apart(sides, candidate) {
                _ if is_on_another_page && signs.title == 0 => CONTRADICTED,
                Some(apart) if apart > NEAR && signs.text < TELLING => CONTRADICTED,
                Some(apart) if apart >= ANOTHER_DAY => 1 + u8::from(is_on_another_page),
                _ => 0,
            };
        }
        // What is listed no more is reached by its title or its address.
        (is_listed || signs.title > 0 || signs.address_weight >= TELLING).then_some(signs)
    }

    /// In what way the addresses are the same.
    fn address(
        &self,
        sides: &Sides<'_>,
        candidate: &CandidatePair<'_>,
        signs: &Signs,
    ) -> Option<(AddressSign, u8)> {
        let of_old: HashSet<Feature> = of_item(candidate.old).into_iter().collect();
        let native = sides.names.get(candidate.at)?;
        let shared = of_entry(candidate.new, native, false).into_iter();
        let weigh = |feature: Feature| {
            let (sign, own) = match &feature {
                Feature::Hostless(_) => (AddressSign::Hostless, TELLING),
                Feature::Path(_) if differ_in_query(candidate) => (AddressSign::Path, TELLING),
                Feature::Link(_) => (AddressSign::Link, TELLING),
                Feature::Number(_) => (AddressSign::Number, OWN),
                // A title and a name that was made of it are one sign.
                Feature::Name(_) if signs.title > 0 => return None,
                Feature::Name(name) => {
                    let tells = name.split(['-', '_', '+']).count() >= TELLING_WORDS;
                    (AddressSign::Name, if tells { OWN } else { SHARED })
                }
                _ => return None,
            };
            let weight = match (sign, self.is_own(sides, candidate, &feature)?) {
                (_, true) | (AddressSign::Hostless, _) => own,
                _ => return None,
            };
            Some((sign, weight))
        };
        let shared = shared.filter(|feature| of_old.contains(feature)).filter_map(weigh);
        shared.max_by_key(|(sign, weight)| (*weight, *sign))
    }

    /// How much the date says: to the second, or the day, which no other that is unmatched bears.
    fn date(&self, sides: &Sides<'_>, candidate: &CandidatePair<'_>, signs: &Signs) -> u8 {
        let CandidatePair { new, old, shown, .. } = candidate;
        let day_of = |shown: &str| day(shown).map(Feature::Day);
        let id_day = day_of(shown).filter(|own| day_of(&old.native_shown).as_ref() == Some(own));
        let (feature, is_coarse) = match (new.published, old.published) {
            (Some(a), Some(b)) if a == b => (Feature::Published(a), sides.is_day(a)),
            (None, None) => match (new.updated, old.updated, &id_day) {
                (Some(a), Some(b), _) if a == b => (Feature::Updated(a), sides.is_day(a)),
                (_, _, Some(day)) => (day.clone(), true),
                _ => return 0,
            },
            _ => return 0,
        };
        let bearers = self.features.bearers.get(&feature);
        let is_shared = bearers.is_some_and(|bearers| {
            let entries = bearers.entries.iter().filter(|entry| self.entries.contains_key(entry));
            let mut items = bearers.candidates().iter();
            entries.count() > 1 || items.any(|item| *item != candidate.pair.1)
        });
        match (is_shared, is_coarse) {
            (true, true) if signs.text == 0 => 0,
            (true, _) => SHARED,
            // On a raster of days, words that are like each other may be of two posts.
            (false, true) if signs.wording > 0 && id_day.is_none() => SHARED,
            (false, _) => OWN,
        }
    }
}

/// The texts of an entry that tell it from others, and those among them that are long.
pub(super) struct Texts {
    telling: Vec<(u64, u64)>,
    long: Vec<(u64, u64)>,
}

impl Texts {
    pub(super) fn new(entry: &Entry<'_>) -> Self {
        Self { telling: entry_texts(entry), long: long_texts(entry) }
    }
}

/// Whether an item that is listed no more is an earlier appearance of another one: two of title, link and
/// date are the same.
fn is_copy(other: &LedgerEntry, item: &LedgerEntry) -> bool {
    let link = |known: &LedgerEntry| known.link.as_deref().map(plain_link);
    let title =
        plain_title(&item.title).is_some_and(|title| plain_title(&other.title) == Some(title));
    let has_link = item.link.is_some() && link(item) == link(other);
    let has_date = item.published.is_some() && item.published == other.published;
    !other.standing.is_listed()
        && [title, has_link, has_date].into_iter().filter(|is_same| *is_same).count() >= 2
}

/// How far apart the dates of two are, where both have one.
fn apart(sides: &Sides<'_>, candidate: &CandidatePair<'_>) -> Option<Duration> {
    match sides.dates(candidate.at, candidate.known) {
        (Some(new), Some(old)) => Some(new.since(old).max(old.since(new))),
        _ => None,
    }
}

/// Whether the address of an entry has another query than that of the item.
fn differ_in_query(candidate: &CandidatePair<'_>) -> bool {
    let CandidatePair { new, old, shown, .. } = candidate;
    let is_another = |new: &str, old: &str| plain_link(new) != plain_link(old);
    let links = new.link.as_deref().zip(old.link.as_deref());
    is_another(shown, &old.native_shown)
        && (shown.contains('?') || links.is_some_and(|(new, old)| is_another(new, old)))
}
