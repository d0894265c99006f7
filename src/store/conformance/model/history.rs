//! A feed as the list of the changes that were accepted.

use super::super::make::*;
use crate::record::assemble;
use std::collections::{BTreeMap, HashMap};

/// A feed as the list of what was done to it since it was last purged.
#[derive(Default)]
pub(super) struct FeedHistory {
    pub(super) changes: Vec<Change>,
    /// What was sealed, as of then.
    archives: Vec<(Seal, Archive)>,
    purged_revision: u64,
    /// How often an item of a purged predecessor was updated at most.
    updates_before: u32,
    /// The openings of the store that raised its render revision, with what each found.
    openings: Vec<(u32, u64)>,
}

impl FeedHistory {
    pub(super) fn revision(&self) -> u64 {
        self.changes.last().map_or(0, |change| change.state.revision.0)
    }

    pub(super) fn ledger(&self) -> HashMap<SyncId, LedgerEntry> {
        let mut ledger = HashMap::new();
        for change in &self.changes {
            change.evicted.iter().for_each(|stub| drop(ledger.remove(&stub.id)));
            ledger.extend(change.known.iter().map(|known| (known.id.clone(), known.clone())));
        }
        ledger
    }

    /// What left and is not back, in order of sync id.
    pub(super) fn stubs(&self) -> BTreeMap<SyncId, LedgerEntry> {
        let mut stubs = BTreeMap::new();
        for change in &self.changes {
            stubs.extend(change.evicted.iter().map(|stub| (stub.id.clone(), stub.clone())));
            change.reinstated.iter().for_each(|id| drop(stubs.remove(id)));
        }
        stubs
    }

    /// The changes since the item left, newest first.
    fn since_it_left(&self, id: &SyncId) -> impl Iterator<Item = &Change> {
        let leaves = |change: &&Change| change.evicted.iter().any(|stub| stub.id == *id);
        self.changes.iter().rev().take_while(move |change| !leaves(change))
    }

    pub(super) fn order(&self) -> Vec<SyncId> {
        self.changes.iter().rev().find_map(|change| change.order.clone()).unwrap_or_default()
    }

    fn skeleton(&self) -> Skeleton {
        self.changes.iter().rev().find_map(|change| change.skeleton.clone()).unwrap()
    }

    /// The entries of held documents, which go with the hold.
    fn held(&self) -> Vec<HeldEntry> {
        let holding = self.changes.iter().rev().take_while(|change| change.state.hold.is_some());
        holding.filter_map(|change| change.kept.clone()).next().unwrap_or_default()
    }

    /// The conflicts of an item, which go with a later version that has none.
    fn conflicts(&self, id: &SyncId) -> Vec<Version<Markup>> {
        let versions = self.since_it_left(id).find_map(|change| {
            let known = change.known.iter().find(|known| known.id == *id)?;
            let listed = change.conflicts.iter().find(|of| of.id == *id);
            listed.map(|of| &of.versions[..]).or((known.conflicts == 0).then_some(&[]))
        });
        let whole = |version: &Version<Option<Markup>>| version.with(version.data.clone().unwrap());
        versions.unwrap_or_default().iter().map(whole).collect()
    }

    fn contested(&self) -> BTreeMap<SyncId, Vec<Version<Markup>>> {
        let of = self.ledger().into_keys().map(|id| (self.conflicts(&id), id));
        of.filter(|(of, _)| !of.is_empty()).map(|(of, id)| (id, of)).collect()
    }

    fn item(&self, id: &SyncId) -> Option<Item> {
        let of_item = |known: &&LedgerEntry| known.id == *id;
        let known = self.since_it_left(id).find_map(|change| change.known.iter().find(of_item));
        let known = known?.clone();
        let bytes = self.since_it_left(id).find_map(|change| {
            let version = change.versions.iter().find(|version| version.id == *id);
            let latest = change.latest.iter().find(|(latest, _)| latest == id);
            let version = version.and_then(|version| version.markup.as_ref());
            latest.map(|(_, markup)| markup).or(version).cloned()
        });
        Some(assemble(known, bytes.unwrap(), self.conflicts(id)))
    }

    fn items(&self, after: Option<Tick>) -> Vec<Item> {
        let ledger = self.ledger();
        let mut ids: Vec<_> = ledger.values().map(|known| (known.tick, &known.id)).collect();
        ids.sort();
        ids.retain(|(tick, _)| after.is_none_or(|after| *tick > after));
        ids.into_iter().map(|(_, id)| self.item(id).unwrap()).collect()
    }

    fn versions(&self, id: &SyncId) -> Vec<VersionNote> {
        let mut notes = Vec::new();
        for change in self.since_it_left(id) {
            for version in change.versions.iter().filter(|version| version.id == *id) {
                let known = change.known.iter().find(|known| known.id == *id).unwrap();
                notes.push(VersionNote::new(known, version, change.state.updated_at));
            }
        }
        notes
    }

    /// Adds a change that was accepted at the given opening of the store; answers its revision.
    pub(super) fn accept(&mut self, mut change: Change, opening: u32) -> Revision {
        let before = self.changes.last().map(|before| before.state.render_revision);
        if before.is_none() {
            change.state.updates_before = self.updates_before;
            let above = |count: Count| Count::new(count.value() + self.updates_before).unwrap();
            for known in &mut change.known {
                let only = known.history.topmost().clone();
                assert_eq!(known.history.len(), 1);
                known.updates = above(known.updates);
                let sequence = above(only.sequence);
                known.history = History::new(Update { sequence, ..only });
            }
        }
        // A version without bytes has those that its item had.
        for Conflicting { id, versions } in &mut change.conflicts {
            let bytes = self.item(id).map(|item| item.shared.winner.data);
            versions.iter_mut().for_each(|of| of.data = of.data.take().or(bytes.clone()));
        }
        let render = change.state.render_revision;
        let found = before.unwrap_or(render.saturating_sub(1));
        if render > found && self.openings.last().is_none_or(|(last, _)| *last != opening) {
            self.openings.push((opening, found));
        }
        let revision = Revision(self.revision().max(self.purged_revision) + 1);
        change.state.revision = revision;
        let seals = change.seals.clone();
        self.changes.push(change);
        for seal in seals {
            let items = seal.items.iter().map(|id| self.item(id).unwrap()).collect();
            let archive = Archive::new(seal.upstream.clone(), self.skeleton(), items);
            self.archives.push((seal, archive));
        }
        let contested = u32::try_from(self.contested().len()).unwrap();
        self.changes.last_mut().unwrap().state.contested = contested;
        revision
    }

    /// What is left of it where it is purged.
    pub(super) fn purged(&self) -> Self {
        let known = self.ledger().into_values().chain(self.stubs().into_values());
        let updates = known.map(|known| known.updates.value()).max();
        Self {
            purged_revision: self.purged_revision.max(self.revision()),
            updates_before: updates.unwrap_or(0).max(self.updates_before),
            ..Self::default()
        }
    }

    /// The store answers of the feed what was done to it. `seconds`: the time of the last change of all feeds.
    pub(super) async fn agrees(
        &self,
        store: &Store,
        name: &FeedName,
        items: &[&str],
        seconds: i64,
    ) {
        let state = self.changes.last().map(|change| change.state.clone());
        assert_eq!(store.state(name).await.unwrap(), state);
        // Marks are chance; when openings began is not.
        let stretches = state.iter().flat_map(|state| state.lineage.stretches());
        let found: Vec<_> = stretches.map(|stretch| stretch.after).collect();
        assert_eq!(found, self.openings.iter().map(|(_, found)| *found).collect::<Vec<_>>());
        let Some(state) = state else { return has_nothing(store, name, items[0]).await };
        let snapshot = store.snapshot(name).await.unwrap().unwrap();
        assert!(snapshot.known.is_sorted_by(|a, b| a.id < b.id), "it is in order of sync id");
        assert_eq!((&snapshot.conflicts, snapshot.kept), (&self.contested(), self.held()));
        assert!(snapshot.conflicts.keys().eq(&store.contested(name).await.unwrap()));
        let known = snapshot.known.into_iter().map(|known| (known.id.clone(), known));
        assert_eq!((snapshot.state, known.collect()), (state, self.ledger()));
        assert_eq!(snapshot.order, self.order());
        let view = async |select| store.view(name, select).await.unwrap().unwrap().items;
        let whole = store.view(name, Select::All).await.unwrap().unwrap();
        assert_eq!((whole.items, whole.skeleton), (self.items(None), self.skeleton()));
        let middle = tick(seconds / 2);
        assert_eq!(view(Select::After(middle)).await, self.items(Some(middle)));
        let current = self.order().into_iter().filter_map(|id| self.item(&id));
        assert_eq!(view(Select::Current).await, current.collect::<Vec<_>>());
        let mut kept = 0;
        for item in items.iter().map(|item| id(item)) {
            let versions = store.versions(name, &item, usize::MAX).await.unwrap();
            assert_eq!(versions, self.versions(&item));
            kept += versions.len() as u64;
            assert_eq!(store.item(name, &item).await.unwrap(), self.item(&item));
        }
        assert_eq!(store.holdings(name).await.unwrap().versions, kept);
        self.stubs_agree(store, name, items).await;
        self.archives_agree(store, name, &snapshot.archives).await;
        let events = self.changes.iter().flat_map(|change| change.events.clone());
        let oldest: Vec<_> =
            store.events(name, usize::MAX).await.unwrap().into_iter().rev().collect();
        assert_eq!(oldest, events.collect::<Vec<_>>());
    }

    /// A stub is found by each of its names and each once, and one that is back by none.
    async fn stubs_agree(&self, store: &Store, name: &FeedName, items: &[&str]) {
        let stubs = self.stubs();
        let mut all = Vec::new();
        for item in items {
            let names = ["", "-once", "-twice"].map(|end| format!("urn:{item}{end}"));
            let names = [(*item).to_owned()].into_iter().chain(names).collect::<Vec<_>>();
            for name_of_item in &names {
                let found = store.stubs(name, std::slice::from_ref(name_of_item)).await.unwrap();
                assert_eq!(found, Vec::from_iter(stubs.get(&id(item)).cloned()), "{name_of_item}");
            }
            all.extend(names);
        }
        let found = store.stubs(name, &all).await.unwrap();
        assert_eq!(found, stubs.into_values().collect::<Vec<_>>());
    }

    /// What the store has of the archives is what was sealed, and nothing of what was dropped.
    async fn archives_agree(&self, store: &Store, name: &FeedName, oldest: &[ArchiveNote]) {
        let chain = self.changes.last().map(|change| &change.state.archives).unwrap();
        let notes = store.archives(name, usize::MAX).await.unwrap();
        assert_eq!(notes.iter().map(|note| note.bytes).sum::<u64>(), chain.bytes);
        assert!(notes.iter().map(|note| note.number).eq((chain.first..chain.next).rev()));
        assert!(notes.iter().rev().take(Snapshot::OLDEST_ARCHIVES).eq(oldest));
        assert!(notes.iter().all(|note| note.bytes > 0));
        for (number, (seal, archive)) in (0..).zip(&self.archives) {
            let kept = store.archive(name, &seal.id).await.unwrap();
            assert_eq!(kept.as_ref(), Some(archive).filter(|_| number >= chain.first));
            assert!(store.archive(&feed("other"), &seal.id).await.unwrap().is_none());
            let ArchivePlace { note, next } =
                store.archive_place(name, &seal.id).await.unwrap().unwrap();
            let next = next.as_ref().map(|(next, _)| next);
            let follows = self.archives.get(number as usize + 1).map(|(next, _)| &next.id);
            assert_eq!((note.number, &note.previous, next), (number, &seal.previous, follows));
            let listed = (archive.items.len(), archive.deleted.len());
            assert_eq!((note.entries as usize, note.deletions as usize), listed);
            assert_eq!((note.dropped, note.redacted), (kept.is_none(), None));
        }
    }
}

/// A store answers nothing of a feed to which nothing was committed since it was purged last.
async fn has_nothing(store: &Store, name: &FeedName, item: &str) {
    let item = id(item);
    assert!(store.snapshot(name).await.unwrap().is_none());
    assert!(store.view(name, Select::All).await.unwrap().is_none());
    assert!(store.past(name, PastSelect::All, time(9)).await.unwrap().is_none());
    assert!(store.item(name, &item).await.unwrap().is_none());
    assert!(store.known(name, &item).await.unwrap().is_none());
    assert!(store.version(name, &item, Count::ONE).await.unwrap().is_none());
    assert!(store.versions(name, &item, 9).await.unwrap().is_empty());
    assert!(store.contested(name).await.unwrap().is_empty());
    assert!(store.stubs(name, &[item.to_string()]).await.unwrap().is_empty());
    assert!(store.events(name, 9).await.unwrap().is_empty());
    assert!(store.archives(name, 9).await.unwrap().is_empty());
    assert_eq!(store.holdings(name).await.unwrap(), Holdings::default());
}
