//! The first round: entries and items that bear the same native id.
//!
//! Mostly one entry and one item. Where a document repeats an id, or the ledger has several items
//! that bore it, they are told apart by what else they say.

use super::is_made_up;
use super::sides::Sides;
use super::signs::Basis;
use crate::news::hash_entry;
use foldhash::{HashMap, HashMapExt as _};
use std::collections::VecDeque;
use std::hash::Hash;
use tidegate_core::model::{Entry, LedgerEntry, Time};
use tidegate_core::xml::plain_address::plain_link;

/// Pairs entries and items of the same native id.
pub(super) fn pair_same_ids(sides: &mut Sides<'_>) {
    let mut known: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, item) in sides.snapshot.known.iter().enumerate() {
        known.entry(&item.native_shown).or_default().push(index);
    }
    // Rare, so it is only built when a name is not found among the present ones.
    let mut aliases: Option<HashMap<&str, Vec<usize>>> = None;
    let mut entries: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    let copies = |at: &usize| !sides.is_entry_free(*at);
    for (index, native) in sides.names.iter().enumerate().filter(|(at, _)| !copies(at)) {
        let group = entries.entry(native.as_str()).or_default();
        if group.is_empty() {
            names.push(native);
        }
        group.push(index);
    }
    let mut former: Vec<(Vec<usize>, Vec<usize>)> = Vec::new();
    for name in names {
        let group = entries.remove(name).unwrap_or_default();
        match known.get(name) {
            Some(items) => pair_group(sides, &group, items, Basis::SameId),
            None => {
                let aliases = aliases.get_or_insert_with(|| alias_index(sides));
                if let Some(items) = aliases.get(name) {
                    former.push((group, items.clone()));
                }
            }
        }
    }
    // A former name counts only for an item whose present name the document does not have.
    for (group, items) in former {
        pair_group(sides, &group, &items, Basis::FormerId);
    }
}

fn alias_index<'a>(sides: &Sides<'a>) -> HashMap<&'a str, Vec<usize>> {
    let mut index: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, item) in sides.snapshot.known.iter().enumerate() {
        for alias in &item.aliases {
            index.entry(alias).or_default().push(at);
        }
    }
    index
}

/// Pairs the entries of one name with the items of that name: those that agree in most of link,
/// title and date first.
pub(super) fn pair_group(sides: &mut Sides<'_>, entries: &[usize], items: &[usize], basis: Basis) {
    let mut items: Vec<usize> = items.iter().copied().filter(|k| sides.is_known_free(*k)).collect();
    // What stood in the last document comes first, then what was seen last, in the order there.
    items.sort_by_key(|at| {
        let item = sides.snapshot.known.get(*at);
        let current = item.is_some_and(|k| k.standing.is_listed());
        (!current, std::cmp::Reverse(item.map(|k| k.tick)), sides.place(*at))
    });
    if let ([entry], [item]) = (entries, items.as_slice()) {
        sides.pair(*entry, *item, basis);
        return;
    }
    pair_by_key(sides, entries, &items, basis, true, |e| Some(hash_entry(e)), |k| Some(k.bytes));
    // Entries without an id are grouped by their link or title, so that agreeing in it proves nothing: compare the
    // other fields.
    let is_current =
        |at: &&usize| sides.snapshot.known.get(**at).is_some_and(|k| k.standing.is_listed());
    let are_several = entries.len() > 1 || items.iter().filter(is_current).count() > 1;
    let are_nameless =
        basis == Basis::SameId && are_several && entries.iter().all(|at| sides.is_nameless(*at));
    if are_nameless {
        let is_titled = |at: &usize| sides.names.get(*at).is_some_and(|n| is_made_up(n));
        let by_title = !entries.iter().all(is_titled);
        for agreement in [[false, by_title, true], [false, by_title, !by_title]] {
            pair_by(sides, entries, &items, agreement, basis);
        }
        return;
    }
    for agreement in AGREEMENTS {
        pair_by(sides, entries, &items, agreement, basis);
    }
    // Where several share the name, those that agree in nothing else are not the same.
    if let [entry] = entries
        && sides.is_entry_free(*entry)
        && let Some(item) = items.iter().find(|at| sides.is_known_free(**at))
    {
        sides.pair(*entry, *item, basis);
    }
}

/// Which of link, title and date must be equal, strongest first.
const AGREEMENTS: [[bool; 3]; 7] = [
    [true, true, true],
    [true, true, false],
    [true, false, true],
    [false, true, true],
    [true, false, false],
    [false, true, false],
    [false, false, true],
];

/// Pairs what agrees in link, title and date, as far as these are wanted, in order.
fn pair_by(
    sides: &mut Sides<'_>,
    entries: &[usize],
    items: &[usize],
    [by_link, by_title, by_date]: [bool; 3],
    basis: Basis,
) {
    let key = |link: Option<&str>, title: &str, date: Option<Time>| {
        let link = link.filter(|_| by_link).map(plain_link);
        let title = Some(title).filter(|title| by_title && !title.is_empty()).map(str::to_owned);
        let date = date.filter(|_| by_date);
        let said = [link.is_some(), title.is_some(), date.is_some()];
        (said == [by_link, by_title, by_date]).then_some((link, title, date))
    };
    let of_entry =
        |e: &Entry<'_>| key(e.link.as_deref(), e.title.as_deref().unwrap_or_default(), e.published);
    let of_item = |k: &LedgerEntry| key(k.link.as_deref(), &k.title, k.published);
    pair_by_key(sides, entries, items, basis, by_date, of_entry, of_item);
}

/// Pairs the entries and items that are free and have the same key, in order. `is_sure`: the key tells the next post of
/// a series from the one that left ([`Sides::is_scroll`]), even where several entries have it.
fn pair_by_key<K: Eq + Hash>(
    sides: &mut Sides<'_>,
    entries: &[usize],
    items: &[usize],
    basis: Basis,
    is_sure: bool,
    of_entry: impl Fn(&Entry<'_>) -> Option<K>,
    of_item: impl Fn(&LedgerEntry) -> Option<K>,
) {
    let mut free: HashMap<K, VecDeque<usize>> = HashMap::new();
    for at in items.iter().filter(|at| sides.is_known_free(**at)) {
        if let Some(key) = sides.snapshot.known.get(*at).and_then(&of_item) {
            free.entry(key).or_default().push_back(*at);
        }
    }
    let key = |at: &usize| sides.document.entries.get(*at).and_then(&of_entry);
    let all = if is_sure { HashMap::new() } else { crate::count(entries.iter().filter_map(key)) };
    for at in entries {
        let entry = sides.document.entries.get(*at).filter(|_| sides.is_entry_free(*at));
        let Some(key) = entry.and_then(&of_entry) else { continue };
        let is_one = all.get(&key).is_none_or(|count| *count < 2);
        let Some(free) = free.get_mut(&key) else { continue };
        let next = free.front().copied();
        if let Some(known) = next.filter(|known| is_one || !sides.is_scroll(*at, *known)) {
            free.pop_front();
            sides.pair(*at, known, basis);
        }
    }
}
