//! The second round: of all that is unmatched on both sides now, which entry is which item best.
//!
//! Candidates come from what an unmatched entry and an unmatched item both bear. Each is weighed by what the
//! two have in common and by how rare that is among all that is listed; what contradicts takes weight away. A
//! pair counts where it weighs enough, and more than any other pair of its entry or its item.

use super::features::{Feature, FeatureIndex, of_entry, plain_title};
use super::sides::Sides;
use super::signs::{AddressSign, Basis, Signs};
use super::text::{self, Texts};
use super::{address, date, place, row, title, wording};
use crate::rules::Rule;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;
use tidegate_core::model::{Entry, LedgerEntry, Without};
use tidegate_core::xml::plain_address::plain_link;

/// What nothing else that is listed bears.
pub(super) const OWN: u8 = 2;
/// The same of what is hardly borne by chance: a long title, a long text, an address.
pub(super) const TELLING: u8 = 3;
/// What others bear as well.
pub(super) const SHARED: u8 = 1;

/// Pairs that weigh less are none.
const ENOUGH: i32 = 4;
/// What is paired may be the neighbour of what comes next: so often it is looked at again.
const PASSES: usize = 3;
/// Posts whose dates are as far apart are of two days.
const ANOTHER_DAY: Duration = Duration::from_secs(20 * 3600);
/// Posts whose dates are further apart have little to do with each other.
const NEAR: Duration = Duration::from_secs(14 * 24 * 3600);
/// What other words on another page, and dates that far apart, take away.
const CONTRADICTED: u8 = 3;

/// Pairs what stayed unmatched.
pub(super) fn pair_by_signs(sides: &mut Sides<'_>, without: &Without) {
    if sides.is_settled() {
        return;
    }
    let unmatched = Unmatched::new(sides);
    let mut pairs = unmatched.weigh_candidates(sides, without);
    if !without.has(row::RULE.name) {
        row::add_rows(&unmatched, sides, &mut pairs);
    }
    pairs.retain(|_, signs| signs.weight() + 1 >= ENOUGH);
    for _ in 0..PASSES {
        if !unmatched.assign(sides, &pairs, without) {
            return;
        }
    }
}

/// An entry and an item, by their indices.
pub(super) type Pair = (usize, usize);

/// What is unmatched on both sides when the round begins, and who of all that is listed or known bears what.
pub(super) struct Unmatched {
    pub(super) entries: HashSet<usize>,
    items: HashSet<usize>,
    pub(super) features: FeatureIndex,
    /// The titles of unmatched items that are listed, and those of unmatched entries.
    titles: (HashSet<String>, HashSet<String>),
}

impl Unmatched {
    fn new(sides: &Sides<'_>) -> Self {
        let (entries, known) = (&sides.document.entries, &sides.snapshot.known);
        let listed = (0..entries.len()).filter(|at| !sides.is_copy(*at));
        let (free, matched): (Vec<_>, Vec<_>) = listed.partition(|at| sides.is_entry_free(*at));
        let (free_items, matched_items): (Vec<_>, Vec<_>) =
            (0..known.len()).partition(|at| sides.is_known_free(*at));
        let mut features = FeatureIndex::default();
        let mut titles: (HashSet<String>, HashSet<String>) = Default::default();
        let named = |at: &usize| Some((*at, entries.get(*at)?, sides.names.get(*at)?));
        for (at, entry, native) in free.iter().filter_map(named) {
            features.add_entry(at, of_entry(entry, native, true), true);
            titles.1.extend(entry.title.as_deref().and_then(plain_title));
        }
        let item = |at: &usize| Some((*at, known.get(*at)?));
        for (at, known) in free_items.iter().filter_map(item) {
            features.add_item(at, known, true);
            titles.0.extend(sides.place(at).and_then(|_| plain_title(&known.title)));
        }
        // Where no unmatched item bears what an unmatched entry bears, nobody else matters.
        if features.have_items() {
            for (at, entry, native) in matched.iter().filter_map(named) {
                features.add_entry(at, of_entry(entry, native, false), false);
            }
            for (at, known) in matched_items.iter().filter_map(item) {
                features.add_item(at, known, false);
            }
        }
        let (entries, items) = (free.into_iter().collect(), free_items.into_iter().collect());
        Self { entries, items, features, titles }
    }

    /// An entry and an item that are still unmatched; what bears the same id and was told apart in the first round
    /// stays apart.
    pub(super) fn candidate<'c>(
        &'c self,
        sides: &'c Sides<'c>,
        (at, known): Pair,
    ) -> Option<CandidatePair<'c>> {
        let (new, old) = (sides.document.entries.get(at)?, sides.snapshot.known.get(known)?);
        let shown = sides.names.get(at)?;
        let may_be =
            sides.is_entry_free(at) && sides.is_known_free(known) && sides.may_differ(at, known);
        may_be.then_some(CandidatePair { unmatched: self, sides, at, known, new, old, shown })
    }

    /// Every unmatched entry and item that have something in common, weighed.
    fn weigh_candidates(&self, sides: &Sides<'_>, without: &Without) -> BTreeMap<Pair, Signs> {
        let mut candidates: BTreeSet<Pair> = BTreeSet::new();
        for bearers in self.features.bearers.values().filter(|bearers| !bearers.are_many()) {
            let entries = bearers.entries.iter().filter(|entry| self.entries.contains(entry));
            for entry in entries {
                let items = bearers.candidates().iter().filter(|item| self.items.contains(item));
                candidates.extend(items.map(|item| (*entry, *item)));
            }
        }
        let mut texts: HashMap<usize, Texts> = HashMap::new();
        let mut weighed = BTreeMap::new();
        for candidate in candidates.into_iter().filter_map(|pair| self.candidate(sides, pair)) {
            let texts = texts.entry(candidate.at).or_insert_with(|| Texts::new(candidate.new));
            let pair = (candidate.at, candidate.known);
            weighed.extend(candidate.weigh(texts, without).map(|signs| (pair, signs)));
        }
        weighed
    }

    /// Pairs what weighs enough, the heaviest first; where two weigh the same with one, neither is
    /// it. Says whether any were paired.
    fn assign(
        &self,
        sides: &mut Sides<'_>,
        pairs: &BTreeMap<Pair, Signs>,
        without: &Without,
    ) -> bool {
        let mut levels: BTreeMap<(i32, bool), Vec<(Pair, Signs)>> = BTreeMap::new();
        for (pair, signs) in pairs {
            let Some(candidate) = self.candidate(sides, *pair) else { continue };
            let mut signs = *signs;
            if !without.has(place::RULE.name) {
                signs.place = place::weigh(&candidate, &signs);
            }
            if signs.weight() >= ENOUGH {
                let level = levels.entry((signs.weight(), candidate.is_listed()));
                level.or_default().push((*pair, signs));
            }
        }
        let (mut entries, mut items) = (HashSet::new(), HashSet::new());
        let mut is_any = false;
        for (_, mut pairs) in levels.into_iter().rev() {
            pairs.retain(|((entry, item), _)| !entries.contains(entry) && !items.contains(item));
            let count = |of: fn(&Pair) -> usize| {
                let mut counts: HashMap<usize, usize> = HashMap::new();
                for (pair, _) in &pairs {
                    *counts.entry(of(pair)).or_default() += 1;
                }
                counts
            };
            let (of_entry, of_item) = (count(|pair| pair.0), count(|pair| pair.1));
            for ((entry, item), signs) in pairs {
                entries.insert(entry);
                items.insert(item);
                if of_entry.get(&entry) == Some(&1) && of_item.get(&item) == Some(&1) {
                    is_any |= self.pair(sides, (entry, item), signs);
                }
            }
        }
        is_any
    }

    /// Pairs two, unless one left at the old end and the other came at the new one. Says whether it did.
    fn pair(&self, sides: &mut Sides<'_>, pair: Pair, signs: Signs) -> bool {
        let Some(CandidatePair { at, known, old, shown, .. }) = self.candidate(sides, pair) else {
            return false;
        };
        let moved = matches!(signs.address, Some(AddressSign::Hostless | AddressSign::Path));
        if signs.date == 0 && !moved && sides.is_scroll(at, known) {
            return false;
        }
        let is_same = shown == old.native_shown;
        let basis = if is_same { Basis::SameId } else { Basis::Signs(signs) };
        sides.pair(at, known, basis);
        true
    }
}

/// An unmatched entry beside an unmatched item, among all that is unmatched.
pub(super) struct CandidatePair<'c> {
    unmatched: &'c Unmatched,
    pub(super) sides: &'c Sides<'c>,
    pub(super) at: usize,
    pub(super) known: usize,
    pub(super) new: &'c Entry<'c>,
    pub(super) old: &'c LedgerEntry,
    /// The native id of the entry.
    pub(super) shown: &'c str,
}

impl CandidatePair<'_> {
    /// The title of the entry.
    pub(super) fn title(&self) -> &str {
        self.new.title.as_deref().unwrap_or_default()
    }

    /// Whether the item is still listed.
    pub(super) const fn is_listed(&self) -> bool {
        self.old.standing.is_listed()
    }

    /// Whether a feature is this pair's own: no other entry or item that is listed bears it, and none that was
    /// listed but a copy of the item. Nothing where more bear it than are counted.
    pub(super) fn is_own(&self, feature: &Feature) -> Option<bool> {
        let bearers = self.unmatched.features.bearers.get(feature)?;
        if bearers.are_many() {
            return None;
        }
        let is_other = |other: &usize| {
            let other = self.sides.snapshot.known.get(*other);
            other.is_none_or(|other| !is_copy(other, self.old))
        };
        let mut items = bearers.candidates().iter().filter(|other| **other != self.known);
        Some(bearers.entries == [self.at] && !items.any(is_other))
    }

    /// Whether another that is unmatched bears a feature as well.
    pub(super) fn is_borne_by_others(&self, feature: &Feature) -> bool {
        self.unmatched.features.bearers.get(feature).is_some_and(|bearers| {
            let entries = bearers.entries.iter();
            let entries = entries.filter(|entry| self.unmatched.entries.contains(entry));
            let mut items = bearers.candidates().iter();
            entries.count() > 1 || items.any(|item| *item != self.known)
        })
    }

    /// The weight of a feature that both bear.
    pub(super) fn rarity(&self, feature: &Feature, own: u8) -> u8 {
        match self.is_own(feature) {
            Some(true) => own,
            Some(false) => SHARED,
            None => 0,
        }
    }

    /// What both have in common; nothing where it is contradicted.
    fn weigh(&self, texts: &Texts, without: &Without) -> Option<Signs> {
        let is_on = |rule: Rule| !without.has(rule.name);
        let mut signs = Signs::default();
        let (title, former) = (plain_title(self.title()), plain_title(&self.old.title));
        if title == former {
            signs.title = if is_on(title::RULE) { title::weigh(self) } else { 0 };
        } else {
            // The exact title stands somewhere else among what is unmatched.
            let (old, new) = &self.unmatched.titles;
            let is_elsewhere = title.is_some_and(|title| old.contains(&title))
                || former.is_some_and(|former| new.contains(&former));
            if is_elsewhere && self.is_listed() {
                return None;
            }
            if is_on(wording::RULE) {
                signs.wording = wording::weigh(self.title(), &self.old.title);
            }
        }
        if is_on(text::RULE) {
            signs.text = text::weigh(self, texts);
        }
        let address = is_on(address::RULE).then(|| address::weigh(self, signs.title > 0));
        if let Some((sign, weight)) = address.flatten() {
            (signs.address, signs.address_weight) = (Some(sign), weight);
        }
        let pages = self.new.link.as_deref().zip(self.old.link.as_deref());
        let is_on_another_page = pages.is_some_and(|(new, old)| plain_link(new) != plain_link(old))
            && signs.address_weight == 0;
        if signs.title == SHARED && is_on_another_page {
            signs.title = 0;
        }
        if is_on(date::RULE) {
            signs.date = date::weigh(self, &signs);
        }
        signs.against = self.contradiction(&signs, is_on_another_page);
        // What is listed no more is reached by its title or its address.
        let is_reached = self.is_listed() || signs.title > 0 || signs.address_weight >= TELLING;
        is_reached.then_some(signs)
    }

    /// What takes weight away.
    fn contradiction(&self, signs: &Signs, is_on_another_page: bool) -> u8 {
        // An id of another scheme or host, and a text and a part of the address of what is listed, say enough,
        // whatever else does not agree.
        let is_certain = signs.address == Some(AddressSign::Hostless)
            || self.is_listed() && signs.text > 0 && signs.address_weight > 0;
        if signs.date > 0 || is_certain {
            return 0;
        }
        let dates = self.sides.dates(self.at, self.known);
        let apart = dates.0.zip(dates.1).map(|(new, old)| new.since(old).max(old.since(new)));
        match apart {
            _ if is_on_another_page && signs.title == 0 => CONTRADICTED,
            Some(apart) if apart > NEAR && signs.text < TELLING => CONTRADICTED,
            Some(apart) if apart >= ANOTHER_DAY => 1 + u8::from(is_on_another_page),
            _ => 0,
        }
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
