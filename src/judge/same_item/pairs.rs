//! The second round: of all that is unmatched on both sides now, which entry is which item best.
//!
//! Candidates come from what an unmatched entry and an unmatched item both bear. Each is weighed by what the
//! two have in common and by how rare that is among all that is listed; what contradicts takes weight away. A
//! pair counts where it weighs enough, and more than any other pair of its entry or its item.

use super::features::{
    Feature, FeatureIndex, TellingText, plain_title, telling_texts, without_texts,
};
use super::same_id::pair_group;
use super::sides::Sides;
use super::signs::{AddressSign, Basis, Signs};
use super::{address, date, is_made_up, place, row, text, title, wording};
use crate::rules::Rule;
use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_core::model::{Entry, LedgerEntry, Without};
use tidegate_core::xml::plain_address::plain_link;

/// The weight of a feature that only this pair has.
pub(super) const UNIQUE_WEIGHT: u8 = 2;
/// The weight of such a feature if it hardly matches by chance: a long title, a long text, an address.
pub(super) const DISTINCTIVE_WEIGHT: u8 = 3;
/// The weight of a feature that others have as well.
pub(super) const SHARED_WEIGHT: u8 = 1;

/// The least weight of a pair.
const MIN_WEIGHT: i32 = 4;
/// How often pairs are assigned: what one pass pairs may be the neighbour that the rule `place` needs in the next.
const PASSES: usize = 3;
/// Posts whose dates are as far apart are of two days.
pub(super) const ANOTHER_DAY: Duration = Duration::from_secs(20 * 3600);
/// Posts whose dates are further apart have little to do with each other.
const NEAR: Duration = Duration::from_secs(14 * 24 * 3600);
/// How many digits the number of a revision has; what has more may be a day or the number of a post.
const REVISION_DIGITS: RangeInclusive<usize> = 1..=2;
/// What other words on another page, and dates that far apart, take away.
const CONTRADICTED: u8 = 3;

/// Pairs what stayed unmatched; the telling texts of its entries.
pub(super) fn pair_by_signs(
    sides: &mut Sides<'_>,
    without: &Without,
) -> HashMap<usize, Vec<TellingText>> {
    if sides.is_settled() {
        return HashMap::new();
    }
    let groups = Groups::new(sides);
    let mut pairs = groups.weigh_candidates(sides, without);
    if !without.has(row::RULE.name) {
        row::add_rows(&groups, sides, &mut pairs);
    }
    pairs.retain(|_, signs| signs.weight() + 1 >= MIN_WEIGHT);
    for _ in 0..PASSES {
        if !groups.assign(sides, &pairs, without) {
            break;
        }
    }
    groups.texts
}

/// A group of entries and one of items, by their first members.
pub(super) type Pair = (usize, usize);

/// Groups of unmatched entries, and of unmatched items, with the same native id; each group is named by its first
/// member. Entries and items without an id of their own are groups of one.
pub(super) struct Groups {
    /// The unmatched members of each group.
    pub(super) entries: HashMap<usize, Vec<usize>>,
    items: HashMap<usize, Vec<usize>>,
    pub(super) features: FeatureIndex,
    /// The texts of unmatched entries.
    texts: HashMap<usize, Vec<TellingText>>,
    /// The titles of unmatched items that are listed, and those of unmatched entries.
    titles: (HashSet<String>, HashSet<String>),
}

impl Groups {
    fn new(sides: &Sides<'_>) -> Self {
        let mut groups = Self {
            entries: HashMap::new(),
            items: HashMap::new(),
            features: FeatureIndex::default(),
            texts: HashMap::new(),
            titles: Default::default(),
        };
        let matched = groups.add_free_entries(sides);
        let known = &sides.snapshot.known;
        let mut first: HashMap<&str, usize> = HashMap::new();
        let items = known.iter().enumerate();
        let items = items.map(|(at, known)| match is_nameless(known) {
            true => at,
            false => *first.entry(&known.native_shown).or_insert(at),
        });
        let items: Vec<usize> = items.collect();
        for (at, group) in items.iter().enumerate().filter(|(at, _)| sides.is_known_free(*at)) {
            groups.items.entry(*group).or_default().push(at);
        }
        groups.add_items(sides, &items, true);
        // Where no item that may be paired bears what a free entry bears, nobody else matters.
        if groups.features.have_items() {
            for (group, at) in matched {
                let entry = sides.document.entries.get(at).zip(sides.names.get(at));
                let features = entry.map(|(entry, native)| without_texts(entry, native));
                groups.features.add_entry(group, features.unwrap_or_default(), false);
            }
            groups.add_items(sides, &items, false);
        }
        groups
    }

    /// Adds the entries that are free; the others by group.
    fn add_free_entries(&mut self, sides: &Sides<'_>) -> Vec<(usize, usize)> {
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut matched = Vec::new();
        for (at, (entry, native)) in sides.document.entries.iter().zip(sides.names).enumerate() {
            if sides.is_copy(at) {
                continue;
            }
            let group = match sides.is_nameless(at) {
                true => at,
                false => *first.entry(native.as_str()).or_insert(at),
            };
            if sides.is_entry_free(at) {
                self.entries.entry(group).or_default().push(at);
                let texts = telling_texts(entry, sides.ignore);
                let mut features = without_texts(entry, native);
                features.extend(texts.iter().map(|text| Feature::Text(text.print)));
                self.features.add_entry(group, features, true);
                self.texts.insert(at, texts);
                self.titles.1.extend(entry.title.as_deref().and_then(plain_title));
            } else {
                matched.push((group, at));
            }
        }
        matched
    }

    /// Adds the items of the groups that may be paired, or those of the others; `groups` has that of each item.
    fn add_items(&mut self, sides: &Sides<'_>, groups: &[usize], is_pairable: bool) {
        for (at, (known, group)) in sides.snapshot.known.iter().zip(groups).enumerate() {
            if self.items.contains_key(group) == is_pairable {
                let is_free = sides.is_known_free(at);
                self.features.add_item(*group, known, is_free);
                if is_free && sides.place(at).is_some() {
                    self.titles.0.extend(plain_title(&known.title));
                }
            }
        }
    }

    /// The first unmatched members of two groups that bear different ids; what bears the same and
    /// was told apart in the first round stays apart.
    pub(super) fn candidate<'c>(
        &'c self,
        sides: &'c Sides<'c>,
        pair: Pair,
    ) -> Option<CandidatePair<'c>> {
        let at = *self.entries.get(&pair.0)?.iter().find(|at| sides.is_entry_free(**at))?;
        let items = || self.items.get(&pair.1).into_iter().flatten();
        let items = || items().copied().filter(|at| sides.is_known_free(*at));
        let is_current =
            |at: &usize| sides.snapshot.known.get(*at).is_some_and(|k| k.standing.is_listed());
        let known = items().find(is_current).or_else(|| items().next())?;
        let (new, old) = (sides.document.entries.get(at)?, sides.snapshot.known.get(known)?);
        let shown = sides.names.get(at)?;
        let candidate = CandidatePair { groups: self, sides, pair, at, known, new, old, shown };
        sides.may_differ(at, known).then_some(candidate)
    }

    /// Every two unmatched groups that have something in common, weighed.
    fn weigh_candidates(&self, sides: &Sides<'_>, without: &Without) -> BTreeMap<Pair, Signs> {
        let mut candidates: BTreeSet<Pair> = BTreeSet::new();
        for bearers in self.features.bearers.values().filter(|bearers| !bearers.are_many()) {
            let entries = bearers.entries.iter().filter(|entry| self.entries.contains_key(entry));
            for entry in entries {
                let items = bearers.candidates().iter();
                let items = items.filter(|item| self.items.contains_key(item));
                candidates.extend(items.map(|item| (*entry, *item)));
            }
        }
        let candidates = candidates.into_iter().filter_map(|pair| self.candidate(sides, pair));
        candidates.filter_map(|found| Some((found.pair, found.weigh(without)?))).collect()
    }

    /// Pairs the groups that weigh enough, the heaviest first; where two weigh the same with one, neither is
    /// it. Returns whether any were paired.
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
            if signs.weight() >= MIN_WEIGHT {
                let level = levels.entry((signs.weight(), candidate.is_listed()));
                level.or_default().push((*pair, signs));
            }
        }
        let (mut entries, mut items) = (HashSet::new(), HashSet::new());
        let mut is_any = false;
        for (_, mut pairs) in levels.into_iter().rev() {
            pairs.retain(|((entry, item), _)| !entries.contains(entry) && !items.contains(item));
            let of_entry = crate::count(pairs.iter().map(|((entry, _), _)| *entry));
            let of_item = crate::count(pairs.iter().map(|((_, item), _)| *item));
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

    /// Pairs two groups, unless the entry is the next post ([`Sides::is_scroll`]). Returns whether it did.
    fn pair(&self, sides: &mut Sides<'_>, (entry, item): Pair, signs: Signs) -> bool {
        let (Some(entries), Some(items)) = (self.entries.get(&entry), self.items.get(&item)) else {
            return false;
        };
        let Some(candidate) = self.candidate(sides, (entry, item)) else { return false };
        let moved = match signs.address {
            Some(AddressSign::Hostless) => true,
            // Where others keep their ids, the parameters of an address may name the post.
            Some(AddressSign::Path) => !sides.has_ids,
            // A feed of one entry may number its posts.
            _ => sides.has_ids && candidate.is_revision(&signs),
        };
        let says_more = signs.title.max(signs.wording).max(signs.text).max(signs.row) > 0;
        let is_dated = signs.date > 0 && says_more;
        let pairs = is_dated || moved || !sides.is_scroll(candidate.at, candidate.known);
        if pairs {
            let is_same = candidate.shown == candidate.old.native_shown;
            let basis = if is_same { Basis::SameId } else { Basis::Signs(signs) };
            pair_group(sides, entries, items, basis);
        }
        pairs
    }
}

/// An unmatched entry beside an unmatched item, among all that is unmatched.
pub(super) struct CandidatePair<'c> {
    groups: &'c Groups,
    pub(super) sides: &'c Sides<'c>,
    pair: Pair,
    pub(super) at: usize,
    pub(super) known: usize,
    pub(super) new: &'c Entry<'c>,
    pub(super) old: &'c LedgerEntry,
    /// The native id of the entry.
    pub(super) shown: &'c str,
}

impl CandidatePair<'_> {
    pub(super) fn title(&self) -> &str {
        self.new.title.as_deref().unwrap_or_default()
    }

    pub(super) const fn is_listed(&self) -> bool {
        self.old.standing.is_listed()
    }

    /// Whether only this pair has a feature: no other entry, and no other item except earlier copies of this one
    /// ([`is_copy`]). `None` if too many have it ([`super::features::Bearers::are_many`]).
    pub(super) fn is_own(&self, feature: &Feature) -> Option<bool> {
        let bearers = self.groups.features.bearers.get(feature)?;
        if bearers.are_many() {
            return None;
        }
        let (entry, item) = self.pair;
        let is_other = |other: &usize| {
            let other = self.sides.snapshot.known.get(*other);
            other.is_none_or(|other| !is_copy(other, self.old))
        };
        let mut items = bearers.candidates().iter().filter(|other| **other != item);
        Some(bearers.entries == [entry] && !items.any(is_other))
    }

    /// Whether another that is unmatched bears a feature as well.
    pub(super) fn is_borne_by_others(&self, feature: &Feature) -> bool {
        self.groups.features.bearers.get(feature).is_some_and(|bearers| {
            let entries = bearers.entries.iter();
            let entries = entries.filter(|entry| self.groups.entries.contains_key(entry));
            let mut items = bearers.candidates().iter();
            entries.count() > 1 || items.any(|item| *item != self.pair.1)
        })
    }

    /// Returns the weight of a feature that both have; `own`: if only this pair has it.
    pub(super) fn weigh_feature(&self, feature: &Feature, own: u8) -> u8 {
        if self.is_own(feature) == Some(true) { own } else { SHARED_WEIGHT }
    }

    /// What both have in common; nothing where it is contradicted.
    fn weigh(&self, without: &Without) -> Option<Signs> {
        let is_on = |rule: Rule| !without.has(rule.name);
        let mut signs = Signs::default();
        let (title, former) = (plain_title(self.title()), plain_title(&self.old.title));
        if title == former {
            signs.title = if is_on(title::RULE) { title::weigh(self) } else { 0 };
        } else {
            // The exact title stands somewhere else among what is unmatched.
            let (old, new) = &self.groups.titles;
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
            let texts = self.groups.texts.get(&self.at);
            signs.text = texts.map_or(0, |texts| text::weigh(self, texts));
        }
        let address = is_on(address::RULE).then(|| address::weigh(self, signs.title > 0));
        if let Some((sign, weight)) = address.flatten() {
            (signs.address, signs.address_weight) = (Some(sign), weight);
        }
        let pages = self.new.link.as_deref().zip(self.old.link.as_deref());
        let is_on_another_page = pages.is_some_and(|(new, old)| plain_link(new) != plain_link(old))
            && signs.address_weight == 0;
        if signs.title == SHARED_WEIGHT && is_on_another_page {
            signs.title = 0;
        }
        if is_on(date::RULE) {
            signs.date = date::weigh(self, &signs);
        }
        signs.against = self.contradiction(&signs, is_on_another_page);
        // What is listed no more is reached by its title or its address.
        let is_reached =
            self.is_listed() || signs.title > 0 || signs.address_weight >= DISTINCTIVE_WEIGHT;
        is_reached.then_some(signs)
    }

    /// Whether the entry has a date of a later day than the item, and a full text that the item has not. One date for
    /// all on the pages that they had says that the site was built anew.
    pub(super) fn is_told_anew(&self, signs: &Signs) -> bool {
        let (new, old) = self.sides.dates(self.at, self.known);
        let is_later = new.zip(old).is_some_and(|(new, old)| {
            // A post of the evening is no earlier than its day, which begins at midnight.
            let is_time_new = self.sides.is_day(new) != self.sides.is_day(old);
            new.since(old) >= if is_time_new { ANOTHER_DAY * 2 } else { ANOTHER_DAY }
        });
        let is_built = signs.address_weight > 0 && new == self.sides.common_date();
        let texts = self.groups.texts.get(&self.at).into_iter().flatten();
        let has_text = texts.into_iter().any(|text| text.is_full && !text.is_title);
        is_later && !is_built && has_text && signs.text == 0
    }

    /// Whether the link is the same, and the ids are but for the number of a revision: `…#0`, then `…#1`.
    fn is_revision(&self, signs: &Signs) -> bool {
        let page = page_of_revision(self.shown);
        signs.address == Some(AddressSign::Link)
            && page.is_some()
            && page == page_of_revision(&self.old.native_shown)
    }

    /// What takes weight away.
    fn contradiction(&self, signs: &Signs, is_on_another_page: bool) -> u8 {
        // An id of another scheme, host or revision, and a text and a part of the address of what is listed, say
        // enough, whatever else does not agree.
        let is_certain = signs.address == Some(AddressSign::Hostless)
            || self.is_revision(signs)
            || self.is_listed() && signs.text > 0 && signs.address_weight > 0;
        if signs.date > 0 || is_certain {
            return 0;
        }
        let dates = self.sides.dates(self.at, self.known);
        let dates = dates.0.zip(dates.1);
        let apart = dates.map(|(new, old)| new.since(old).max(old.since(new)));
        // Of days without a time, a shift of an hour makes the next one; of one, the evening is as far away.
        let is_day =
            dates.is_some_and(|(new, old)| self.sides.is_day(new) || self.sides.is_day(old));
        let another_day = if is_day { ANOTHER_DAY * 2 } else { ANOTHER_DAY };
        match apart {
            _ if is_on_another_page && signs.title == 0 => CONTRADICTED,
            Some(apart) if apart > NEAR && signs.text < DISTINCTIVE_WEIGHT => CONTRADICTED,
            Some(_) if self.is_told_anew(signs) => CONTRADICTED,
            Some(apart) if apart >= another_day => 1 + u8::from(is_on_another_page),
            _ => 0,
        }
    }
}

/// An id without the number of a revision behind it; nothing where it has none.
fn page_of_revision(id: &str) -> Option<&str> {
    let (page, number) = id.rsplit_once('#')?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && REVISION_DIGITS.contains(&number.len())).then_some(page)
}

/// Whether the link or the title of an item stands for its id.
fn is_nameless(known: &LedgerEntry) -> bool {
    let is_link = known.link.as_deref() == Some(&*known.native_shown);
    // Who has an id of its own goes by it.
    is_made_up(&known.native_shown) || is_link && known.published_id != known.native_shown
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
