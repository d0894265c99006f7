//! The rule `row`: what many pairs say together, the same words or dates in the same order.

use super::features::Feature;
use super::longest_run;
use super::pairs::{CandidatePair, DISTINCTIVE_WEIGHT, Groups, Pair, UNIQUE_WEIGHT};
use super::sides::Sides;
use super::signs::Signs;
use super::wording::words;
use crate::rules::Rule;
use foldhash::{HashMap, HashMapExt as _, HashSet};
use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use url::Url;

pub(super) const RULE: Rule = Rule {
    name: "row",
    sentence: "three or more titles, texts or dates in the same order in both documents, half of \
               what is unmatched on the smaller side",
};

/// The fewest pairs in unchanged order that support each other.
const LEAST_ROW: usize = 3;
/// They must also be at least one in this many of the unmatched entries or items, whichever are fewer.
const ROW_PART: usize = 2;
/// The most other entries, and items, that are searched for one with more words in common.
const COMPARED: usize = 100;
/// If more pairs than this have only a date in common, they are not used.
const DATED_LIMIT: usize = 500;

/// Whether the pages of both are at one host, as far as they have any.
fn is_of_one_site(candidate: &CandidatePair<'_>) -> bool {
    let host = |link: Option<&str>| Some(Url::parse(link?).ok()?.host_str()?.to_owned());
    let hosts = (host(candidate.new.link.as_deref()), host(candidate.old.link.as_deref()));
    hosts.0.zip(hosts.1).is_none_or(|(new, old)| new == old)
}

/// Adds what many pairs say together: the same titles, texts or dates in the same order.
pub(super) fn add_rows(groups: &Groups, sides: &Sides<'_>, pairs: &mut BTreeMap<Pair, Signs>) {
    let listed = sides.listed().iter().filter(|at| sides.is_known_free(**at));
    let name = |at: &usize| sides.snapshot.known.get(*at).map(|known| &known.native_shown);
    let items: HashSet<&String> = listed.filter_map(name).collect();
    let least = groups.entries.len().min(items.len());
    let has_words = |signs: &Signs| {
        signs.title >= UNIQUE_WEIGHT || signs.title == 0 && signs.text >= UNIQUE_WEIGHT
    };
    let by_words = pairs.iter().filter(|(_, signs)| has_words(signs)).map(|(pair, _)| *pair);
    let by_words: Vec<Pair> = by_words.collect();
    let mut by_date = same_dates(groups, sides);
    by_date.retain(|pair| pairs.get(pair).is_some_and(|signs| signs.title == 0));
    // The document of another site may have the dates of this one.
    by_date.retain(|pair| groups.candidate(sides, *pair).is_some_and(|pair| is_of_one_site(&pair)));
    drop_better_worded(groups, sides, &mut by_date);
    for (is_by_date, row) in [(false, by_words), (true, by_date)] {
        let place = |pair: Pair| sides.place(groups.candidate(sides, pair)?.known);
        let row: Vec<(Pair, usize)> =
            row.into_iter().filter_map(|pair| Some((pair, place(pair)?))).collect();
        let places: Vec<usize> = row.iter().map(|(_, place)| *place).collect();
        let run = longest_run(&places);
        if run.len() < LEAST_ROW || run.len() * ROW_PART < least {
            continue;
        }
        for (pair, _) in run.into_iter().filter_map(|at| row.get(at)) {
            if let Some(signs) = pairs.get_mut(pair) {
                // Titles and teasers alone may be those of a series: each day has its horoscopes. With anything else,
                // it is the same whatever links and dates say of each.
                let is_next =
                    groups.candidate(sides, *pair).is_some_and(|it| it.is_told_anew(signs));
                let has_more =
                    signs.title == 0 || signs.date > 0 || signs.address_weight > 0 && !is_next;
                let is_doubtful = signs.against > 0 || is_next;
                if is_doubtful && !has_more && signs.text < DISTINCTIVE_WEIGHT {
                    continue;
                }
                (signs.row, signs.against) = (UNIQUE_WEIGHT, 0);
                signs.date = signs.date.max(if is_by_date { UNIQUE_WEIGHT } else { 0 });
            }
        }
    }
}

/// The pairs with the same date, where equally many bear it on both sides, in their order. Where there are
/// fewer than [`LEAST_ROW`] dates they tell of no order.
fn same_dates(groups: &Groups, sides: &Sides<'_>) -> Vec<Pair> {
    let mut by_kind: HashMap<Discriminant<Feature>, Vec<Vec<Pair>>> = HashMap::new();
    for (feature, bearers) in &groups.features.bearers {
        let is_date =
            matches!(feature, Feature::Published(_) | Feature::Updated(_) | Feature::Day(_));
        let are_free = bearers.entries.iter().all(|entry| groups.entries.contains_key(entry));
        if is_date && are_free && bearers.entries.len() == bearers.items.len() {
            let mut items = bearers.items.clone();
            items.sort_by_key(|item| sides.place(*item));
            let dated = bearers.entries.iter().copied().zip(items).collect();
            by_kind.entry(discriminant(feature)).or_default().push(dated);
        }
    }
    let dates = by_kind.into_values().filter(|dates| dates.len() >= LEAST_ROW);
    let mut found: Vec<Pair> = dates.flatten().flatten().collect();
    found.sort_unstable();
    found
}

/// Of pairs by date, leaves those of which no other unmatched one has more of the words.
fn drop_better_worded(groups: &Groups, sides: &Sides<'_>, row: &mut Vec<Pair>) {
    if row.len() > DATED_LIMIT {
        row.clear();
        return;
    }
    let mut new: HashMap<usize, HashSet<String>> = HashMap::new();
    let mut old: HashMap<usize, HashSet<String>> = HashMap::new();
    for pair in row.iter() {
        let Some(candidate) = groups.candidate(sides, *pair) else { continue };
        new.insert(pair.0, words(candidate.new.title.as_deref().unwrap_or_default()));
        old.insert(pair.1, words(&candidate.old.title));
    }
    let common = |entry: &usize, item: &usize| {
        new.get(entry).zip(old.get(item)).map_or(0, |(new, old)| new.intersection(old).count())
    };
    row.retain(|(entry, item)| {
        let own = common(entry, item);
        let mut items = old.keys().take(COMPARED).map(|other| common(entry, other));
        let mut entries = new.keys().take(COMPARED).map(|other| common(other, item));
        !items.any(|other| other > own) && !entries.any(|other| other > own)
    });
}
