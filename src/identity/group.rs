//! The first round: entries and items that bear the same native id.
//!
//! Mostly one entry and one item. Where a document repeats an id, or the ledger has several items
//! that bore it, they are told apart by what else they say.

use super::evidence::{Basis, Sides};
use crate::model::Standing;
use std::collections::HashMap;

/// Pairs entries and items of the same native id.
pub(super) fn same_id(sides: &mut Sides<'_>) {
    let mut known: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, item) in sides.snapshot.known.iter().enumerate() {
        known.entry(&item.native_shown).or_default().push(index);
    }
    // Rare, so it is only built when a name is not found among the present ones.
    let mut aliases: Option<HashMap<&str, Vec<usize>>> = None;
    let mut entries: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut names: Vec<&str> = Vec::new();
    for (index, native) in sides.names.iter().enumerate() {
        let group = entries.entry(&native.shown).or_default();
        if group.is_empty() {
            names.push(&native.shown);
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

/// Pairs the entries of one name with the items of that name: those that agree in most first.
fn pair_group(sides: &mut Sides<'_>, entries: &[usize], items: &[usize], basis: Basis) {
    let mut items: Vec<usize> = items.iter().copied().filter(|k| sides.is_known_free(*k)).collect();
    // What stood in the last document comes first, then what was seen last.
    items.sort_by_key(|at| {
        let item = sides.snapshot.known.get(*at);
        let current = item.is_some_and(|k| k.standing == Standing::Current);
        (!current, std::cmp::Reverse(item.map(|k| k.tick)))
    });
    if let ([entry], [item]) = (entries, items.as_slice()) {
        sides.pair(*entry, *item, basis);
        return;
    }
    // Where several share the name, those that agree in nothing else are not the same.
    let least_of_all = usize::from(entries.len() > 1);
    for least in (least_of_all..=3).rev() {
        for entry in entries {
            if !sides.is_entry_free(*entry) {
                continue;
            }
            let found = items
                .iter()
                .find(|at| sides.is_known_free(**at) && sides.agreement(*entry, **at) >= least);
            if let Some(at) = found {
                sides.pair(*entry, *at, basis);
            }
        }
    }
}
