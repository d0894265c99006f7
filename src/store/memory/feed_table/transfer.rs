//! A feed in memory, handed over and taken in.

use super::{FeedTable, StoredItem};
use crate::model::{FeedName, FeedState};
use crate::store::portable::{CarriedItem, ExportRecord};
use std::collections::{BTreeMap, VecDeque};

impl FeedTable {
    /// Adds all pieces of the feed, its state last.
    pub(in crate::store::memory) fn pieces(&self, feed: &FeedName, to: &mut Vec<ExportRecord>) {
        for (since, skeleton) in &self.skeletons {
            to.push(ExportRecord::Skeleton(feed.clone(), *since, Box::new(skeleton.clone())));
        }
        for (since, order) in &self.orders {
            to.push(ExportRecord::Order(feed.clone(), *since, order.clone()));
        }
        if !self.kept.is_empty() {
            to.push(ExportRecord::Held(feed.clone(), self.kept.clone()));
        }
        for kept in self.items.values() {
            let item = CarriedItem {
                known: kept.known.clone(),
                newest: kept.newest.clone(),
                conflicts: kept.conflicts.clone(),
                versions: kept.versions.iter().cloned().collect(),
            };
            to.push(ExportRecord::Item(feed.clone(), Box::new(item)));
        }
        for event in self.events.iter().rev() {
            to.push(ExportRecord::Event(feed.clone(), Box::new(event.clone())));
        }
        for (note, archive) in self.archives.values() {
            let archive = archive.clone().map(Box::new);
            to.push(ExportRecord::Archive(feed.clone(), Box::new(note.clone()), archive));
        }
        to.push(ExportRecord::State(feed.clone(), Box::new(self.state.clone())));
    }

    /// A feed of whose pieces the last came.
    pub(in crate::store::memory) fn whole(state: FeedState, pieces: Unfinished) -> Self {
        let Unfinished { items, kept, orders, skeletons, events, archives } = pieces;
        let by_tick = items.iter().map(|(id, kept)| (kept.known.tick, id.clone())).collect();
        Self {
            state,
            skeleton: skeletons.back().map(|(_, skeleton)| skeleton.clone()),
            by_tick,
            order: orders.back().map(|(_, order)| order.clone()).unwrap_or_default(),
            items,
            kept,
            orders,
            skeletons,
            events,
            archives,
        }
    }
}

/// A feed whose state has not come yet.
#[derive(Debug, Default)]
pub(in crate::store::memory) struct Unfinished {
    items: BTreeMap<super::SyncId, StoredItem>,
    kept: Vec<super::KeptEntry>,
    orders: VecDeque<(super::Time, Vec<super::SyncId>)>,
    skeletons: VecDeque<(super::Time, super::Skeleton)>,
    events: VecDeque<super::Event>,
    archives: BTreeMap<u64, (super::ArchiveNote, Option<super::Archive>)>,
}

impl Unfinished {
    /// Takes a piece of the feed; what is none changes nothing.
    pub(in crate::store::memory) fn take(&mut self, piece: ExportRecord) {
        match piece {
            ExportRecord::Skeleton(_, since, skeleton) => {
                self.skeletons.push_back((since, *skeleton))
            }
            ExportRecord::Order(_, since, order) => self.orders.push_back((since, order)),
            ExportRecord::Held(_, kept) => self.kept = kept,
            ExportRecord::Item(_, item) => {
                let CarriedItem { known, newest, conflicts, versions } = *item;
                let id = known.id.clone();
                self.items
                    .insert(id, StoredItem { known, newest, conflicts, versions: versions.into() });
            }
            ExportRecord::Event(_, event) => self.events.push_front(*event),
            ExportRecord::Archive(_, note, archive) => {
                self.archives.insert(note.number, (*note, archive.map(|archive| *archive)));
            }
            _ => {}
        }
    }
}
