//! One feed in memory.

use crate::model::{
    Change, Event, FeedState, Item, Kept as KeptEntry, Known, Markup, NewVersion, Skeleton,
    Snapshot, SyncId, Tick,
};
use crate::store::limits::{EVENTS_KEPT, VERSIONS_KEPT};
use crate::store::{Select, VersionNote, View, assemble, note};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// An item with its newest bytes.
#[derive(Debug)]
struct Kept {
    known: Known,
    newest: Markup,
    /// Newest first.
    versions: VecDeque<VersionNote>,
}

/// A feed.
#[derive(Debug)]
pub(super) struct Shelf {
    pub(super) state: FeedState,
    skeleton: Option<Skeleton>,
    /// In order of sync id, so that the same documents are judged alike in every run.
    items: BTreeMap<SyncId, Kept>,
    by_tick: BTreeSet<(Tick, SyncId)>,
    order: Vec<SyncId>,
    kept: Vec<KeptEntry>,
    /// Newest first.
    events: VecDeque<Event>,
}

impl Shelf {
    /// A feed after its first change.
    pub(super) fn first(change: Change) -> Self {
        let mut shelf = Self {
            state: change.state.clone(),
            skeleton: None,
            items: BTreeMap::new(),
            by_tick: BTreeSet::new(),
            order: Vec::new(),
            kept: Vec::new(),
            events: VecDeque::new(),
        };
        shelf.apply(change);
        shelf
    }

    /// Whether an item is known.
    pub(super) fn holds(&self, id: &SyncId) -> bool {
        self.items.contains_key(id)
    }

    /// Applies a change that was checked.
    pub(super) fn apply(&mut self, change: Change) {
        self.state = change.state;
        if let Some(skeleton) = change.skeleton {
            self.skeleton = Some(skeleton);
        }
        if let Some(order) = change.order {
            self.order = order;
        }
        if let Some(kept) = change.kept {
            self.kept = kept;
        }
        if self.state.hold.is_none() {
            self.kept = Vec::new();
        }
        let mut versions: HashMap<SyncId, NewVersion> =
            change.versions.into_iter().map(|version| (version.id.clone(), version)).collect();
        for known in change.known {
            let version = versions.remove(&known.id);
            self.put(known, version);
        }
        for (id, markup) in change.latest {
            if let Some(kept) = self.items.get_mut(&id) {
                kept.newest = markup;
            }
        }
        for event in change.events {
            self.events.push_front(event);
        }
        self.events.truncate(EVENTS_KEPT);
    }

    fn put(&mut self, known: Known, version: Option<NewVersion>) {
        let note = version.as_ref().map(|version| note(&known, &version.reason));
        let markup = version.and_then(|version| version.markup);
        let id = known.id.clone();
        if let Some(kept) = self.items.get_mut(&id) {
            self.by_tick.remove(&(kept.known.tick, id.clone()));
            self.by_tick.insert((known.tick, id));
            kept.known = known;
            if let Some(markup) = markup {
                kept.newest = markup;
            }
            if let Some(note) = note {
                kept.versions.push_front(note);
                kept.versions.truncate(VERSIONS_KEPT);
            }
        } else if let Some(newest) = markup {
            self.by_tick.insert((known.tick, id.clone()));
            self.items.insert(id, Kept { known, newest, versions: note.into_iter().collect() });
        }
    }

    /// Everything that judging a document needs.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.state.clone(),
            known: self.items.values().map(|kept| kept.known.clone()).collect(),
            order: self.order.clone(),
            kept: self.kept.clone(),
        }
    }

    /// The items asked for; `None` before the first skeleton.
    pub(super) fn view(&self, select: Select) -> Option<View> {
        let skeleton = self.skeleton.clone()?;
        let items = match select {
            Select::Current => self.order.iter().filter_map(|id| self.item(id)).collect(),
            Select::All => self.by_tick.iter().filter_map(|(_, id)| self.item(id)).collect(),
            Select::After(tick) => {
                let later = self.by_tick.iter().filter(|(at, _)| *at > tick);
                later.filter_map(|(_, id)| self.item(id)).collect()
            }
        };
        Some(View { state: self.state.clone(), skeleton, items })
    }

    /// One item.
    pub(super) fn item(&self, id: &SyncId) -> Option<Item> {
        self.items.get(id).map(|kept| assemble(kept.known.clone(), kept.newest.clone()))
    }

    /// An item's versions, newest first.
    pub(super) fn versions(&self, id: &SyncId, limit: usize) -> Vec<VersionNote> {
        let kept = self.items.get(id);
        kept.map_or_else(Vec::new, |kept| kept.versions.iter().take(limit).cloned().collect())
    }

    /// What happened, newest first.
    pub(super) fn events(&self, limit: usize) -> Vec<Event> {
        self.events.iter().take(limit).cloned().collect()
    }
}
