//! Merging sets of items, by the rules of their dialect.

use super::item::{ItemData, SharedItem};
use std::collections::HashMap;
use tidegate_core::model::{Shared, SyncId, Version};
use tidegate_core::sync::{self, By091};

/// Merges an incoming set of items into the local one: by section 4.4 of SSE 0.91 where all are of that
/// dialect, else by section 3.3 of SSE 1.0. The local items keep their order; new ones follow in that of the
/// incoming set. Answers which ones are not as they were.
pub(super) fn merge_sets(items: &mut Vec<SharedItem>, incoming: Vec<SharedItem>) -> Vec<bool> {
    let is_091 = items.iter().chain(&incoming).all(|item| item.sse091.is_some());
    let placed = items.iter().zip(0..).map(|(item, at)| (item.item.winner.id.clone(), at));
    let mut places: HashMap<SyncId, usize> = placed.collect();
    let mut changed = vec![false; items.len()];
    for item in incoming {
        let place = *places.entry(item.item.winner.id.clone()).or_insert(items.len());
        match (items.get_mut(place), changed.get_mut(place)) {
            (Some(known), Some(changed)) => {
                let merged = if is_091 { merge_091(known, item) } else { merge(known, item) };
                if let Some(merged) = merged {
                    (*known, *changed) = (merged, true);
                }
            }
            _ => {
                items.push(item);
                changed.push(true);
            }
        }
    }
    changed
}

/// What takes the place of a local item; `None` where it stays.
fn merge(local: &SharedItem, incoming: SharedItem) -> Option<SharedItem> {
    let mut incoming = incoming.item;
    keep_local_form(&mut incoming, &local.item);
    let merged = sync::merge(local.item.clone(), incoming).ok()?;
    let is_same = sync::same_item(&merged, &local.item);
    (!is_same).then_some(SharedItem { item: merged, sse091: None })
}

fn merge_091(local: &SharedItem, incoming: SharedItem) -> Option<SharedItem> {
    let known = |SharedItem { item, sse091 }| By091 { item, conflict: sse091 == Some(true) };
    let before = known(local.clone());
    let By091 { item, conflict } = sync::merge_as_091(before.clone(), known(incoming));
    let is_same = conflict == before.conflict && sync::same_item(&item, &before.item);
    (!is_same).then_some(SharedItem { item, sse091: Some(conflict) })
}

/// A version that LOCAL has in its own format is not replaced by the same version in another.
fn keep_local_form(incoming: &mut Shared<ItemData>, local: &Shared<ItemData>) {
    let known = || local.conflicts.iter().chain([&local.winner]);
    let family = |version: &Version<ItemData>| version.data.markup.format.family();
    for version in incoming.conflicts.iter_mut().chain([&mut incoming.winner]) {
        let same = known().find(|known| known.with(()) == version.with(()));
        if let Some(same) = same.filter(|same| family(same) != family(version)) {
            version.data = same.data.clone();
        }
    }
}
