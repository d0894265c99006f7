//! One feed in memory.

mod past;
mod transfer;

pub(super) use transfer::Unfinished;

use crate::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Change, Conflicting, Count, EndpointId, Event,
    FeedState, HeldEntry as KeptEntry, Item, LedgerEntry, Markup, NewVersion, Seal, Skeleton,
    Snapshot, SyncId, Tick, Time, Version,
};
use crate::store::assemble::{redact_event, redact_note};
use crate::store::limits::{DROPPED_REMEMBERED, EVENTS_KEPT, VERSIONS_LIMIT};
use crate::store::purge_mark;
use crate::store::{KeptVersion, Select, VersionNote, View, assemble, note, seals};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// An item with its newest bytes.
#[derive(Debug)]
struct StoredItem {
    known: LedgerEntry,
    newest: Markup,
    /// What is in conflict with the current version.
    conflicts: Vec<Version<Markup>>,
    /// Newest first.
    versions: VecDeque<KeptVersion>,
}

impl StoredItem {
    /// Newest bytes that are those of no version.
    fn waiting(&self) -> Option<&Markup> {
        let last = self.versions.iter().find_map(|version| version.markup.as_ref());
        last.filter(|last| **last != self.newest).map(|_| &self.newest)
    }
}

/// A feed.
#[derive(Debug)]
pub(super) struct FeedTable {
    pub(super) state: FeedState,
    skeleton: Option<Skeleton>,
    /// In order of sync id, so that the same documents are judged alike in every run.
    items: BTreeMap<SyncId, StoredItem>,
    by_tick: BTreeSet<(Tick, SyncId)>,
    order: Vec<SyncId>,
    kept: Vec<KeptEntry>,
    /// Each order with the time from which it was in force, oldest first; the last one still is.
    orders: VecDeque<(Time, Vec<SyncId>)>,
    /// The skeletons likewise.
    skeletons: VecDeque<(Time, Skeleton)>,
    /// Newest first.
    events: VecDeque<Event>,
    /// By number; those that were dropped have no content any more.
    archives: BTreeMap<u64, (ArchiveNote, Option<Archive>)>,
}

impl FeedTable {
    /// A feed after its first change.
    pub(super) fn first(change: Change) -> Self {
        let mut shelf = Self {
            state: change.state.clone(),
            skeleton: None,
            items: BTreeMap::new(),
            by_tick: BTreeSet::new(),
            order: Vec::new(),
            kept: Vec::new(),
            orders: VecDeque::new(),
            skeletons: VecDeque::new(),
            events: VecDeque::new(),
            archives: BTreeMap::new(),
        };
        shelf.apply(change);
        shelf
    }

    /// The updates of the item that was updated most often, of those made here.
    pub(super) fn most_updates(&self, own: &EndpointId) -> u32 {
        purge_mark::most_updates(self.items.values().map(|kept| &kept.known), Some(own))
    }

    /// Whether an item is known.
    pub(super) fn holds(&self, id: &SyncId) -> bool {
        self.items.contains_key(id)
    }

    /// Applies a change that was checked.
    pub(super) fn apply(&mut self, change: Change) {
        self.state = change.state;
        let shown = self.state.updated_at;
        if let Some(skeleton) = change.skeleton {
            self.skeletons.push_back((shown, skeleton.clone()));
            self.skeleton = Some(skeleton);
        }
        if let Some(order) = change.order {
            self.orders.push_back((shown, order.clone()));
            self.order = order;
        }
        if let Some(kept) = change.kept {
            self.kept = kept;
        }
        if self.state.hold.is_none() {
            self.kept = Vec::new();
        }
        for id in &change.redacted {
            self.redact(id);
        }
        let conflicts = self.conflicts(change.conflicts);
        let mut versions: HashMap<SyncId, NewVersion> =
            change.versions.into_iter().map(|version| (version.id.clone(), version)).collect();
        for known in change.known {
            let version = versions.remove(&known.id);
            self.put(known, version);
        }
        for (id, conflicts) in conflicts {
            if let Some(kept) = self.items.get_mut(&id) {
                kept.conflicts = conflicts;
            }
        }
        for (id, markup) in change.latest {
            if let Some(kept) = self.items.get_mut(&id) {
                kept.newest = markup;
            }
        }
        for id in &change.redacted {
            let Some(kept) = self.items.get(id) else { continue };
            for event in self.events.iter_mut().filter(|event| event.id == *id) {
                redact_event(event, &kept.known.native_shown);
            }
        }
        for event in change.events {
            self.events.push_front(event);
        }
        self.events.truncate(EVENTS_KEPT);
        self.seal(&change.seals, &change.redacted);
    }

    /// What is in conflict from now on, with the bytes that items have until now where it has none.
    fn conflicts(&self, said: Vec<Conflicting>) -> Vec<(SyncId, Vec<Version<Markup>>)> {
        let whole = |conflicting: Conflicting| {
            let newest = self.items.get(&conflicting.id).map(|kept| &kept.newest);
            let versions = conflicting.versions.iter().filter_map(|version| {
                let data = version.data.as_ref().or(newest)?;
                Some(version.with(data.clone()))
            });
            let versions = versions.collect();
            (conflicting.id, versions)
        };
        said.into_iter().map(whole).collect()
    }

    /// The published ids of the items that live, but for those.
    fn borne(&self, without: &[SyncId]) -> HashSet<String> {
        let known = self.items.values().map(|kept| &kept.known);
        let living = known.filter(|known| !known.is_deleted() && !without.contains(&known.id));
        living.map(|known| known.published_id.clone()).collect()
    }

    /// Seals, redacts and drops archives.
    fn seal(&mut self, seals: &[Seal], redacted: &[SyncId]) {
        let borne = if redacted.is_empty() { HashSet::new() } else { self.borne(redacted) };
        for (note, archive) in self.archives.values_mut() {
            let Some(archive) = archive else { continue };
            for id in redacted {
                if archive.redact(id, self.state.updated_at, &borne) {
                    *note = seals::redacted(note, archive, self.state.updated_at, weight(archive));
                }
            }
        }
        for seal in seals {
            let Some(skeleton) = self.skeleton.clone() else { continue };
            let items = seal.items.iter().filter_map(|id| self.item(id)).collect();
            let archive = Archive::new(seal.upstream.clone(), skeleton, items);
            let note = seals::note(seal, &archive, &self.state, weight(&archive));
            self.archives.insert(seal.number, (note, Some(archive)));
        }
        let first = self.state.archives.first;
        for (_, (note, archive)) in self.archives.range_mut(..first) {
            note.dropped = true;
            *archive = None;
        }
        self.archives.retain(|number, _| number.saturating_add(DROPPED_REMEMBERED) >= first);
        let kept = self.archives.range(first..).map(|(_, (note, _))| note.bytes);
        self.state.archives.bytes = kept.sum();
    }

    /// Takes out what is kept of an item's versions; its newest bytes are replaced after this.
    fn redact(&mut self, id: &SyncId) {
        let Some(kept) = self.items.get_mut(id) else { return };
        for version in &mut kept.versions {
            version.markup = None;
            redact_note(&mut version.note);
        }
    }

    fn put(&mut self, known: LedgerEntry, version: Option<NewVersion>) {
        let note = version.as_ref().map(|version| note(&known, version, self.state.updated_at));
        let markup = version.and_then(|version| version.markup);
        let id = known.id.clone();
        // What stands in for the bytes of a tombstone is no version's. Bytes that waited for a version
        // are its own.
        let waited = || self.items.get(&id).and_then(StoredItem::waiting).cloned();
        let own = markup.clone().or_else(waited).filter(|_| !known.is_deleted());
        let kept_version = note.map(|note| KeptVersion { note, markup: own });
        if let Some(kept) = self.items.get_mut(&id) {
            self.by_tick.remove(&(kept.known.tick, id.clone()));
            self.by_tick.insert((known.tick, id));
            kept.known = known;
            if let Some(markup) = markup {
                kept.newest = markup;
            }
            if let Some(version) = kept_version {
                kept.versions.push_front(version);
                kept.versions.truncate(VERSIONS_LIMIT);
            }
        } else if let Some(newest) = markup {
            self.by_tick.insert((known.tick, id.clone()));
            let versions = kept_version.into_iter().collect();
            let conflicts = Vec::new();
            self.items.insert(id, StoredItem { known, newest, conflicts, versions });
        }
    }

    /// Everything that judging a document needs.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            state: self.state.clone(),
            known: self.items.values().map(|kept| kept.known.clone()).collect(),
            order: self.order.clone(),
            kept: self.kept.clone(),
            archives: self.kept().take(Snapshot::OLDEST_ARCHIVES).cloned().collect(),
            conflicts: self
                .items
                .iter()
                .filter(|(_, kept)| !kept.conflicts.is_empty())
                .map(|(id, kept)| (id.clone(), kept.conflicts.clone()))
                .collect(),
        }
    }

    /// The archives kept, oldest first.
    fn kept(&self) -> impl DoubleEndedIterator<Item = &ArchiveNote> {
        self.archives.values().map(|(note, _)| note).filter(|note| !note.dropped)
    }

    /// The archives kept, newest first.
    pub(super) fn archives(&self, limit: usize) -> Vec<ArchiveNote> {
        self.kept().rev().take(limit).cloned().collect()
    }

    /// What is known of an archive.
    pub(super) fn archive_place(&self, id: &ArchiveId) -> Option<ArchivePlace> {
        let (note, _) = self.archives.values().find(|(note, _)| note.id == *id)?;
        let next = self.archives.get(&(note.number + 1));
        let next = next.map(|(next, _)| (next.id.clone(), next.sealed));
        Some(ArchivePlace { note: note.clone(), next })
    }

    /// The content of an archive.
    pub(super) fn archive(&self, id: &ArchiveId) -> Option<Archive> {
        self.archives.values().find(|(note, _)| note.id == *id)?.1.clone()
    }

    /// The items asked for; `None` before the first skeleton.
    pub(super) fn view(&self, select: Select) -> Option<View> {
        let skeleton = self.skeleton.clone()?;
        let items: Vec<Item> = match select {
            Select::Current => self.order.iter().filter_map(|id| self.item(id)).collect(),
            Select::All => self.by_tick.iter().filter_map(|(_, id)| self.item(id)).collect(),
            Select::After(tick) => {
                let later = self.by_tick.iter().filter(|(at, _)| *at > tick);
                later.filter_map(|(_, id)| self.item(id)).collect()
            }
        };
        let items = items.into_iter().filter(|item| !item.is_discarded()).collect();
        Some(View { state: self.state.clone(), skeleton, items })
    }

    /// One item.
    pub(super) fn item(&self, id: &SyncId) -> Option<Item> {
        let kept = self.items.get(id)?;
        Some(assemble(kept.known.clone(), kept.newest.clone(), kept.conflicts.clone()))
    }

    /// What the ledger has of an item.
    pub(super) fn known(&self, id: &SyncId) -> Option<LedgerEntry> {
        self.items.get(id).map(|kept| kept.known.clone())
    }

    /// An item's versions, newest first.
    pub(super) fn versions(&self, id: &SyncId, limit: usize) -> Vec<VersionNote> {
        let kept = self.items.get(id);
        let versions = kept.into_iter().flat_map(|kept| &kept.versions);
        versions.take(limit).map(|version| version.note.clone()).collect()
    }

    /// One version of an item.
    pub(super) fn version(&self, id: &SyncId, updates: Count) -> Option<KeptVersion> {
        let mut versions = self.items.get(id)?.versions.iter();
        versions.find(|version| version.note.updates == updates).cloned()
    }

    /// What happened, newest first.
    pub(super) fn events(&self, limit: usize) -> Vec<Event> {
        self.events.iter().take(limit).cloned().collect()
    }
}

/// What an archive takes here.
fn weight(archive: &Archive) -> u64 {
    u64::try_from(archive.weight()).unwrap_or(u64::MAX)
}
