//! The second round: of all that is unmatched on both sides now, which entry is which item best.
//!
//! Candidates come from what an unmatched entry and an unmatched item both bear. Each is weighed by what the
//! two have in common and by how rare that is among all that is listed; what contradicts takes weight away. A
//! pair counts where it weighs enough, and more than any other pair of its entry or its item.

mod row;
mod weigh;

use super::evidence::Sides;
use super::features::{FeatureIndex, of_entry, plain_title};
use super::group::pair_group;
use super::is_made_up;
use super::signs::{AddressSign, Basis, Signs};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use tidegate_core::model::{Entry, LedgerEntry, Without};
use weigh::{OWN, SHARED, Texts};

/// The names of the kinds of sign, as `--without` has them.
const RULES: [&str; 7] = ["address", "title", "wording", "date", "text", "row", "place"];

/// The names of the rules, in their order.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    RULES.into_iter()
}

/// Pairs that weigh less are none.
const ENOUGH: i32 = 4;
/// What is paired may be the neighbour of what comes next: so often it is looked at again.
const PASSES: usize = 3;

/// Pairs what stayed unmatched.
pub(super) fn second_round(sides: &mut Sides<'_>, without: &Without) {
    if sides.is_settled() {
        return;
    }
    let groups = Groups::new(sides);
    let mut pairs = groups.weigh(sides, without);
    if !without.has("row") {
        groups.add_rows(sides, &mut pairs);
    }
    pairs.retain(|_, signs| signs.weight() + 1 >= ENOUGH);
    for _ in 0..PASSES {
        if !groups.assign(sides, &pairs, without) {
            return;
        }
    }
}

/// A group of entries and one of items, by their first members.
type Pair = (usize, usize);

/// Entries, and items, that share a native id count as one: as a group, by its first member. A link or a title
/// that stands for an id makes none.
struct Groups {
    /// The unmatched members of each group.
    entries: HashMap<usize, Vec<usize>>,
    items: HashMap<usize, Vec<usize>>,
    features: FeatureIndex,
    /// The titles of unmatched items that are listed, and those of unmatched entries.
    titles: (HashSet<String>, HashSet<String>),
}

impl Groups {
    fn new(sides: &Sides<'_>) -> Self {
        let mut groups = Self {
            entries: HashMap::new(),
            items: HashMap::new(),
            features: FeatureIndex::default(),
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
                let features = entry.map(|(entry, native)| of_entry(entry, native, false));
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
                self.features.add_entry(group, of_entry(entry, native, true), true);
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
    fn members<'s>(&self, sides: &Sides<'s>, (entry, item): Pair) -> Option<CandidatePair<'s>> {
        let at = *self.entries.get(&entry)?.iter().find(|at| sides.is_entry_free(**at))?;
        let items = || self.items.get(&item).into_iter().flatten();
        let items = || items().copied().filter(|at| sides.is_known_free(*at));
        let is_current =
            |at: &usize| sides.snapshot.known.get(*at).is_some_and(|k| k.standing.is_listed());
        let known = items().find(is_current).or_else(|| items().next())?;
        let (new, old) = (sides.document.entries.get(at)?, sides.snapshot.known.get(known)?);
        let shown = sides.names.get(at)?;
        let candidate = CandidatePair { pair: (entry, item), at, known, new, old, shown };
        sides.may_differ(at, known).then_some(candidate)
    }

    /// Every two unmatched groups that have something in common, weighed.
    fn weigh(&self, sides: &Sides<'_>, without: &Without) -> BTreeMap<Pair, Signs> {
        let mut candidates: BTreeSet<Pair> = BTreeSet::new();
        for bearers in self.features.bearers.values().filter(|bearers| !bearers.are_many()) {
            let entries = bearers.entries.iter().filter(|entry| self.entries.contains_key(entry));
            for entry in entries {
                let items = bearers.candidates().iter();
                let items = items.filter(|item| self.items.contains_key(item));
                candidates.extend(items.map(|item| (*entry, *item)));
            }
        }
        let mut texts: HashMap<usize, Texts> = HashMap::new();
        let mut weighed = BTreeMap::new();
        for pair in candidates {
            let Some(candidate) = self.members(sides, pair) else { continue };
            let texts = texts.entry(candidate.at).or_insert_with(|| Texts::new(candidate.new));
            if let Some(signs) = self.signs(sides, &candidate, texts, without) {
                weighed.insert(pair, signs);
            }
        }
        weighed
    }

    /// Pairs the groups that weigh enough, the heaviest first; where two weigh the same with one, neither is
    /// it. Says whether any were paired.
    fn assign(
        &self,
        sides: &mut Sides<'_>,
        pairs: &BTreeMap<Pair, Signs>,
        without: &Without,
    ) -> bool {
        let mut levels: BTreeMap<(i32, bool), Vec<(Pair, Signs)>> = BTreeMap::new();
        for (pair, signs) in pairs {
            let Some(candidate) = self.members(sides, *pair) else { continue };
            let mut signs = *signs;
            let has_words = signs.title.max(signs.wording).max(signs.text) >= OWN;
            let is_of_its_time = signs.against == 0;
            if has_words
                && is_of_its_time
                && !without.has("place")
                && sides.same_slot(candidate.at, candidate.known)
            {
                signs.place = SHARED;
            }
            if signs.weight() >= ENOUGH {
                let is_listed = candidate.old.standing.is_listed();
                levels.entry((signs.weight(), is_listed)).or_default().push((*pair, signs));
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

    /// Pairs two groups, unless one left at the old end and the other came at the new one. Says whether it did.
    fn pair(&self, sides: &mut Sides<'_>, (entry, item): Pair, signs: Signs) -> bool {
        let (Some(entries), Some(items)) = (self.entries.get(&entry), self.items.get(&item)) else {
            return false;
        };
        let Some(candidate) = self.members(sides, (entry, item)) else { return false };
        let moved = matches!(signs.address, Some(AddressSign::Hostless | AddressSign::Path));
        let pairs = signs.date > 0 || moved || !sides.is_scroll(candidate.at, candidate.known);
        if pairs {
            let is_same = candidate.shown == candidate.old.native_shown;
            let basis = if is_same { Basis::SameId } else { Basis::Signs(signs) };
            pair_group(sides, entries, items, basis);
        }
        pairs
    }
}

/// An unmatched entry beside an unmatched item.
struct CandidatePair<'a> {
    pair: Pair,
    at: usize,
    known: usize,
    new: &'a Entry<'a>,
    old: &'a LedgerEntry,
    /// The native id of the entry.
    shown: &'a str,
}

/// Whether the link or the title of an item stands for its id.
fn is_nameless(known: &LedgerEntry) -> bool {
    let is_link = known.link.as_deref() == Some(&*known.native_shown);
    // Who has an id of its own goes by it.
    is_made_up(&known.native_shown) || is_link && known.published_id != known.native_shown
}
