//! Merging sets of items, by the rules of their dialect.

use super::item::ReplicaItem;
use crate::parse::sse::{KeptConflict, Payload};
use std::collections::HashMap;
use tidegate_core::model::Shared;
use tidegate_core::sync::{self, Item091, Merged091};

/// Merges an incoming set of items with the local one: by section 4.4 of SSE 0.91 where all are of that
/// dialect, else by section 3.3 of SSE 1.0, those of the other dialect converted. Items without sync
/// markup take no part.
pub(super) fn merge_sets(local: Vec<ReplicaItem>, incoming: Vec<ReplicaItem>) -> Vec<ReplicaItem> {
    let is_091 = |item: &ReplicaItem| matches!(item, ReplicaItem::Sse091(_));
    if local.iter().chain(&incoming).all(is_091) {
        let merged = merge_sets_091(items_091(local), items_091(incoming));
        return merged.into_iter().map(ReplicaItem::Sse091).collect();
    }
    let shared = |items: Vec<ReplicaItem>| -> Vec<Shared<Payload>> {
        items.into_iter().filter_map(ReplicaItem::into_sse).collect()
    };
    sync::merge_sets(shared(local), shared(incoming)).into_iter().map(ReplicaItem::Sse).collect()
}

fn items_091(items: Vec<ReplicaItem>) -> impl Iterator<Item = Item091<Payload, KeptConflict>> {
    items.into_iter().filter_map(|item| match item {
        ReplicaItem::Sse091(item) => Some(item),
        ReplicaItem::Sse(_) | ReplicaItem::Plain(_) => None,
    })
}

/// The local items keep their order; new ones follow in that of the incoming set.
fn merge_sets_091(
    local: impl Iterator<Item = Item091<Payload, KeptConflict>>,
    incoming: impl Iterator<Item = Item091<Payload, KeptConflict>>,
) -> Vec<Item091<Payload, KeptConflict>> {
    let mut places = HashMap::new();
    let mut merged: Vec<Item091<Payload, KeptConflict>> = Vec::new();
    for item in local.chain(incoming) {
        let place = *places.entry(item.id.clone()).or_insert(merged.len());
        match merged.get_mut(place) {
            Some(known) => {
                if let Some(new) = merge_091(known, &item) {
                    *known = new;
                }
            }
            None => merged.push(item),
        }
    }
    merged
}

/// What takes the place of a local item; `None` where it stays. A loser is kept whole, with its own
/// `sx:sync`.
pub(super) fn merge_091(
    local: &Item091<Payload, KeptConflict>,
    incoming: &Item091<Payload, KeptConflict>,
) -> Option<Item091<Payload, KeptConflict>> {
    match sync::merge_091(local, incoming, |loser| KeptConflict::Item(Box::new(loser))) {
        Merged091::Changed(merged) => Some(merged),
        Merged091::Unchanged => None,
    }
}
