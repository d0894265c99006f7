//! Items in an order and in each other: outlines (SSE 0.91 sections 3.2, 4.4 and 4.4.2; READINGS 2,
//! rows 16 and 17).
//!
//! Where an item stands is a part of what it says: the item around it, and its position there. A
//! winner brings its place along (section 3.2: it stays with its parent, wherever that goes).
//! Inserting or removing one item shifts the positions of those behind it without an update of them,
//! so two copies of one version may name different positions; of those the greater one counts. That
//! choice, and the order of ids among equals, is what makes all endpoints that hold the same set show
//! the same outline.

#[cfg(test)]
mod tests;

use super::{By091, Canonical, merge_091, same_item};
use crate::model::SyncId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What an item says, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedOutline<D> {
    /// The item around it; `None` at the root.
    pub parent: Option<SyncId>,
    /// Its position among what stands with it, from 0.
    pub position: u32,
    /// What it says.
    pub data: D,
}

impl<D: Canonical> Canonical for PlacedOutline<D> {
    fn canonical(&self) -> &[u8] {
        self.data.canonical()
    }
}

/// An item of an outline.
pub type OutlineItem091<D> = By091<PlacedOutline<D>>;

/// All items of an outline, by their ids.
pub type Outlines<D> = BTreeMap<SyncId, OutlineItem091<D>>;

impl<D> OutlineItem091<D> {
    /// What it says, and where it stands.
    pub const fn outline(&self) -> &PlacedOutline<D> {
        &self.item.winner.data
    }
}

/// Incorporates the items of another outline (section 4.4), each by itself, and then looks for
/// cycles (section 4.4.2). Answers whether anything changed.
pub fn merge_outlines<D: Clone + PartialEq + Canonical>(
    local: &mut Outlines<D>,
    incoming: impl IntoIterator<Item = OutlineItem091<D>>,
) -> bool {
    let mut changed = false;
    for item in incoming {
        let Some(here) = local.get_mut(&item.item.winner.id) else {
            local.insert(item.item.winner.id.clone(), item);
            changed = true;
            continue;
        };
        let same = same_version(here, &item).then(|| resolve_position(here, &item));
        let mut merged = merge_091(here.clone(), item);
        merged.item.winner.data = same.unwrap_or(merged.item.winner.data);
        if merged.conflict != here.conflict || !same_item(&merged.item, &here.item) {
            *here = merged;
            changed = true;
        }
    }
    break_cycles(local) || changed
}

/// Whether two items are equal in the keys of section 4.4 step 1.
fn same_version<D>(one: &OutlineItem091<D>, other: &OutlineItem091<D>) -> bool {
    let key = |item: &OutlineItem091<D>| {
        let winner = &item.item.winner;
        (winner.updates, winner.history.topmost().stamp.clone())
    };
    key(one) == key(other)
}

/// Of two copies of one version this one, in the place of one of them, whichever side is asked. One that
/// a cycle has brought to the root stays there; else the greater position counts, and of equal ones the
/// lesser parent.
fn resolve_position<D: Clone>(
    here: &OutlineItem091<D>,
    other: &OutlineItem091<D>,
) -> PlacedOutline<D> {
    let key = |item: &OutlineItem091<D>| {
        let PlacedOutline { parent, position, .. } = item.outline();
        (item.conflict && parent.is_none(), *position, Reverse(parent.clone()))
    };
    let PlacedOutline { parent, position, .. } =
        if key(other) > key(here) { other.outline() } else { here.outline() };
    let (parent, data) = (parent.clone(), here.outline().data.clone());
    PlacedOutline { parent, position: *position, data }
}

/// Cycle Detection (section 4.4.2): an item that meets itself on the way to the root is brought there
/// and marked as a conflict. Section 4.4.2 goes from the lowest id to the highest and on in the outline
/// so changed (READINGS 2, row 17); as an item stands in one other at most, cycles share no item, and
/// that comes to the item of the lowest id of each. Its version stays, and its position is kept.
/// Answers whether any item moved.
pub fn break_cycles<D>(items: &mut Outlines<D>) -> bool {
    let lowest = lowest_of_cycles(items);
    for id in &lowest {
        if let Some(item) = items.get_mut(id) {
            item.item.winner.data.parent = None;
            item.conflict = true;
        }
    }
    !lowest.is_empty()
}

/// The item of the lowest id of each cycle. Each item is walked over once.
fn lowest_of_cycles<D>(items: &Outlines<D>) -> Vec<SyncId> {
    // In the order of ids, so that the lower number is the lower id.
    let numbers: HashMap<&SyncId, usize> = items.keys().zip(0..).collect();
    let parents: Vec<Option<usize>> = (items.values())
        .map(|item| item.outline().parent.as_ref().and_then(|parent| numbers.get(parent).copied()))
        .collect();
    // By which walk an item was come by first; walks are numbered by the item that they begin at.
    let mut walked: Vec<Option<usize>> = vec![None; parents.len()];
    let mut lowest: HashSet<usize> = HashSet::new();
    for start in 0..parents.len() {
        let mut at = Some(start);
        while let Some(number) = at
            && let Some(mark) = walked.get_mut(number).filter(|mark| mark.is_none())
        {
            *mark = Some(start);
            at = parents.get(number).copied().flatten();
        }
        // An item that this very walk came by before lies on a cycle.
        let Some(met) = at.filter(|met| walked.get(*met) == Some(&Some(start))) else { continue };
        let mut least = met;
        let mut next = parents.get(met).copied().flatten();
        while let Some(number) = next.filter(|number| *number != met) {
            least = least.min(number);
            next = parents.get(number).copied().flatten();
        }
        lowest.insert(least);
    }
    let ids = items.keys().enumerate().filter(|(number, _)| lowest.contains(number));
    ids.map(|(_, id)| id.clone()).collect()
}

/// The outline as it is shown, from the outside to the inside: each item with its depth, those that
/// stand together by position and then by id (READINGS 2, row 16). An item whose parent is not there
/// stands at the root.
pub fn in_order<D>(items: &Outlines<D>) -> Vec<(usize, &OutlineItem091<D>)> {
    let mut inside: HashMap<Option<&SyncId>, Vec<&OutlineItem091<D>>> = HashMap::new();
    for item in items.values() {
        let parent = item.outline().parent.as_ref().filter(|parent| items.contains_key(*parent));
        inside.entry(parent).or_default().push(item);
    }
    for together in inside.values_mut() {
        together.sort_by_key(|item| (item.outline().position, &item.item.winner.id));
    }
    let mut shown = Vec::with_capacity(items.len());
    let mut open: Vec<(usize, &OutlineItem091<D>)> = Vec::new();
    open.extend(inside.remove(&None).into_iter().flatten().rev().map(|item| (0, item)));
    while let Some((depth, item)) = open.pop() {
        shown.push((depth, item));
        // Taken out, so that every item is shown once, whatever its parents are.
        let within = inside.remove(&Some(&item.item.winner.id)).into_iter().flatten().rev();
        open.extend(within.map(|item| (depth + 1, item)));
    }
    shown
}
