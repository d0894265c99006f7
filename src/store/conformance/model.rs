//! Random histories against the simplest store that can be written down: the list of the changes
//! that were accepted, folded anew for every question.

use super::make::*;
use super::pinned_reader::PinnedReader;
use super::{EngineKind, StoreFixture};
use crate::record::assemble;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, VecDeque};

const FEEDS: [&str; 3] = ["a", "a-b", "ab"];
const ITEMS: [&str; 4] = ["i", "i.1", "j", "ä"];

#[derive(Debug, Clone)]
pub(super) enum Act {
    Version(usize),
    Tombstone,
    Ripe,
    Touch,
    Latest(usize),
    Evict,
}

/// What a commit does to archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Archiving {
    Nothing,
    Seal,
    Drop,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Commit {
        feed: usize,
        acts: Vec<(usize, Act)>,
        order: Option<Vec<usize>>,
        archive: Archiving,
        stale: bool,
    },
    Checkpoint {
        feed: usize,
        failures: u32,
    },
    PutFeed {
        feed: usize,
    },
    Purge {
        feed: usize,
    },
    /// Somebody begins to read a feed.
    Hold {
        feed: usize,
    },
    /// Who reads longest is done.
    Release,
    Reopen,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let act = prop_oneof![
        4 => prop_oneof![9 => 0..300usize, 1 => 6_990..30_000usize].prop_map(Act::Version),
        1 => Just(Act::Tombstone),
        1 => Just(Act::Ripe),
        1 => Just(Act::Touch),
        2 => (0..9_000usize).prop_map(Act::Latest),
        2 => Just(Act::Evict),
    ];
    let acts = vec((0..ITEMS.len(), act), 0..4);
    let order = proptest::option::of(vec(0..ITEMS.len(), 0..4));
    let archiving = prop_oneof![
        5 => Just(Archiving::Nothing),
        2 => Just(Archiving::Seal),
        1 => Just(Archiving::Drop),
    ];
    let feed = || 0..FEEDS.len();
    prop_oneof![
        12 => (feed(), acts, order, archiving, prop::bool::weighted(0.1)).prop_map(
            |(feed, acts, order, archive, stale)| Step::Commit { feed, acts, order, archive, stale },
        ),
        2 => (feed(), 0..9u32).prop_map(|(feed, failures)| Step::Checkpoint { feed, failures }),
        1 => feed().prop_map(|feed| Step::PutFeed { feed }),
        1 => feed().prop_map(|feed| Step::Purge { feed }),
        3 => feed().prop_map(|feed| Step::Hold { feed }),
        2 => Just(Step::Release),
        1 => Just(Step::Reopen),
    ]
}

/// A feed as the list of what was done to it since it was last purged.
#[derive(Default)]
struct FeedHistory {
    changes: Vec<Change>,
    /// What was sealed, as of then.
    archives: Vec<(ArchiveId, Archive)>,
    /// The revision that a purged predecessor had.
    purged_revision: u64,
    /// How often an item of a purged predecessor was updated at most.
    updates_before: u32,
    /// The openings of the store that raised its render revision, with what each found.
    openings: Vec<(u32, u64)>,
}

impl FeedHistory {
    fn revision(&self) -> u64 {
        self.changes.last().map_or(0, |change| change.state.revision.0)
    }

    fn ledger(&self) -> HashMap<SyncId, LedgerEntry> {
        let mut ledger = HashMap::new();
        for change in &self.changes {
            change.evicted.iter().for_each(|stub| drop(ledger.remove(&stub.id)));
            ledger.extend(change.known.iter().map(|known| (known.id.clone(), known.clone())));
        }
        ledger
    }

    /// What left and is not back, in order of sync id.
    fn stubs(&self) -> BTreeMap<SyncId, LedgerEntry> {
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

    fn order(&self) -> Vec<SyncId> {
        self.changes.iter().rev().find_map(|change| change.order.clone()).unwrap_or_default()
    }

    fn skeleton(&self) -> Skeleton {
        self.changes.iter().rev().find_map(|change| change.skeleton.clone()).unwrap()
    }

    fn item(&self, id: &SyncId) -> Option<Item> {
        let known = self.ledger().remove(id)?;
        let bytes = self.since_it_left(id).find_map(|change| {
            let version = change.versions.iter().find(|version| version.id == *id);
            let latest = change.latest.iter().find(|(latest, _)| latest == id);
            let version = version.and_then(|version| version.markup.as_ref());
            latest.map(|(_, markup)| markup).or(version).cloned()
        });
        Some(assemble(known, bytes.unwrap(), Vec::new()))
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

    /// What the store has of the archives is what was sealed, and nothing of what was dropped.
    async fn archives_agree(&self, store: &Store, name: &FeedName) {
        let chain = self.changes.last().map(|change| &change.state.archives).unwrap();
        let notes = store.archives(name, usize::MAX).await.unwrap();
        assert_eq!(notes.iter().map(|note| note.bytes).sum::<u64>(), chain.bytes);
        assert!(notes.iter().map(|note| note.number).eq((chain.first..chain.next).rev()));
        for (number, (id, archive)) in (0..).zip(&self.archives) {
            let kept = store.archive(name, id).await.unwrap();
            assert_eq!(kept.as_ref(), Some(archive).filter(|_| number >= chain.first));
            let place = store.archive_place(name, id).await.unwrap().unwrap();
            let ArchiveNote { entries, deletions, dropped, .. } = place.note;
            assert_eq!((place.note.number, dropped), (number, kept.is_none()));
            let listed = (archive.items.len(), archive.deleted.len());
            assert_eq!((entries as usize, deletions as usize), listed);
        }
    }
}

/// Seals everything that no archive has.
fn seal(change: &mut Change, mut ledger: HashMap<SyncId, LedgerEntry>) {
    ledger.extend(change.known.iter().map(|known| (known.id.clone(), known.clone())));
    let chain = &mut change.state.archives;
    let leaves = |id: &SyncId| change.evicted.iter().any(|stub| stub.id == *id);
    let items: Vec<SyncId> = ledger
        .into_values()
        .filter(|known| !leaves(&known.id))
        .filter(|known| !chain.is_sealed(known.tick))
        .map(|known| known.id)
        .collect();
    if items.is_empty() {
        return;
    }
    let id = ArchiveId::new(&format!("archive{}", change.at.unix())).unwrap();
    let previous = chain.newest.replace(id.clone());
    let upstream = "https://example.org/feed".to_owned();
    change.seals.push(Seal { number: chain.next, id, previous, upstream, items });
    chain.next += 1;
    chain.sealed = change.state.tick;
}

#[derive(Default)]
pub(super) struct Model {
    feeds: BTreeMap<FeedName, FeedHistory>,
    records: BTreeMap<FeedName, FeedRecord>,
    polls: BTreeMap<FeedName, PollState>,
    log: Vec<LoggedChange>,
    seconds: i64,
    /// How often the store was opened again.
    opening: u32,
}

impl Model {
    /// The change that a step stands for, made to fit what is known. Ticks rise by two seconds, so that
    /// a successor of a purged feed needs no lifting here (that has cases of its own).
    fn change(
        &mut self,
        feed: usize,
        acts: &[(usize, Act)],
        order: Option<&[usize]>,
        (archive, stale): (Archiving, bool),
    ) -> Change {
        self.seconds += 2;
        let history = self.feeds.entry(super::make::feed(FEEDS[feed])).or_default();
        let ledger = history.ledger();
        let state = history.changes.last().map(|change| change.state.clone());
        let mut draft = Draft::over(FEEDS[feed], state, ledger.clone(), self.seconds);
        let mut done = Vec::new();
        for (item, act) in acts {
            let name = ITEMS[*item];
            if done.contains(item) {
                continue;
            }
            done.push(*item);
            let text = |length: &usize| {
                // Hard to compress, so that it is cut into pieces.
                let words =
                    (0..length / 6).map(|n| (n * 2_654_435_761 + self.seconds as usize) % 999_983);
                words.map(|word| format!("{word:x}")).collect::<String>()
            };
            let exists = ledger.contains_key(&id(name));
            let stays = history.order().contains(&id(name)) || order.is_some();
            if history.stubs().contains_key(&id(name)) {
                draft.change.reinstated.push(id(name));
            }
            draft = match act {
                Act::Version(length) => draft.item(name, &text(length)),
                _ if !exists => draft.item(name, "first"),
                Act::Tombstone => draft.tombstone(name),
                Act::Ripe => draft.ripe(name),
                Act::Touch => draft.touch(name, ItemStatus::Retired { since: time(self.seconds) }),
                Act::Latest(length) => draft.latest(name, &text(length)),
                Act::Evict if stays => draft.ripe(name),
                Act::Evict => draft.evict(name),
            };
        }
        if let Some(order) = order {
            let known =
                |item: &&usize| ledger.contains_key(&id(ITEMS[**item])) || done.contains(item);
            let names: Vec<&str> = order.iter().filter(known).map(|item| ITEMS[*item]).collect();
            draft = draft.order(&names);
        }
        if self.seconds % 3 == 0 {
            draft = draft.around(&self.seconds.to_string());
        }
        let mut change = draft.done();
        match archive {
            Archiving::Nothing => {}
            Archiving::Seal => seal(&mut change, ledger),
            Archiving::Drop => {
                let chain = &mut change.state.archives;
                chain.first = chain.next.saturating_sub(1).max(chain.first);
            }
        }
        if stale {
            // Ahead of the feed, or behind it.
            change.base = Revision(change.base.0 ^ 1);
        }
        change
    }

    fn accept(&mut self, mut change: Change) -> Committed {
        let history = self.feeds.get_mut(&change.feed).unwrap();
        let before = history.changes.last().map(|before| before.state.render_revision);
        if before.is_none() {
            change.state.updates_before = history.updates_before;
            let above = |count: Count| Count::new(count.value() + history.updates_before).unwrap();
            for known in &mut change.known {
                let only = known.history.topmost().clone();
                assert_eq!(known.history.len(), 1);
                known.updates = above(known.updates);
                let sequence = above(only.sequence);
                known.history = History::new(Update { sequence, ..only });
            }
        }
        let render = change.state.render_revision;
        let found = before.unwrap_or(render.saturating_sub(1));
        if render > found && history.openings.last().is_none_or(|(last, _)| *last != self.opening) {
            history.openings.push((self.opening, found));
        }
        let revision = Revision(history.revision().max(history.purged_revision) + 1);
        change.state.revision = revision;
        if let Some(tick) = change.tick {
            let versions = u32::try_from(change.versions.len()).unwrap();
            self.log.push(LoggedChange { feed: change.feed.clone(), tick, revision, versions });
        }
        let seals = change.seals.clone();
        history.changes.push(change);
        for seal in seals {
            let items = seal.items.iter().map(|id| history.item(id).unwrap()).collect();
            let archive = Archive::new(seal.upstream, history.skeleton(), items);
            history.archives.push((seal.id, archive));
        }
        Committed { revision }
    }

    pub(super) async fn agrees_with(&self, store: &Store) {
        let records: Vec<_> = self.records.values().cloned().collect();
        assert_eq!(store.feeds().await.unwrap(), records);
        let polls: Vec<_> = self.polls.values().cloned().collect();
        assert_eq!(store.poll_states().await.unwrap(), polls);
        let first = self.polls.get(&feed(FEEDS[0])).cloned();
        let of_first = store.poll_states_of(&[feed("other"), feed(FEEDS[0])]).await.unwrap();
        assert_eq!(of_first, Vec::from_iter(first));
        let tail = store.epochs_after(Epoch(0), usize::MAX).await.unwrap();
        let log: Vec<_> = tail.into_iter().flat_map(|sealed| sealed.changes).collect();
        assert_eq!(log, self.log);
        for name in FEEDS {
            let name = feed(name);
            let history = self.feeds.get(&name).filter(|history| !history.changes.is_empty());
            let last = history.and_then(|history| history.changes.last());
            let state = last.map(|change| change.state.clone());
            assert_eq!(store.state(&name).await.unwrap(), state);
            // Marks are chance; when openings began is not.
            let stretches = state.iter().flat_map(|state| state.lineage.stretches());
            let found: Vec<_> = stretches.map(|stretch| stretch.after).collect();
            let openings = history.iter().flat_map(|history| &history.openings);
            assert_eq!(found, openings.map(|(_, found)| *found).collect::<Vec<_>>());
            let Some(history) = history else {
                has_nothing(store, &name).await;
                continue;
            };
            let snapshot = store.snapshot(&name).await.unwrap().unwrap();
            assert!(snapshot.known.is_sorted_by(|a, b| a.id < b.id), "it is in order of sync id");
            let known = snapshot.known.into_iter().map(|known| (known.id.clone(), known));
            assert_eq!((Some(snapshot.state), known.collect()), (state, history.ledger()));
            assert_eq!(snapshot.order, history.order());
            let view = async |select| store.view(&name, select).await.unwrap().unwrap().items;
            let whole = store.view(&name, Select::All).await.unwrap().unwrap();
            assert_eq!((whole.items, whole.skeleton), (history.items(None), history.skeleton()));
            let middle = tick(self.seconds / 2);
            assert_eq!(view(Select::After(middle)).await, history.items(Some(middle)));
            let current = history.order().into_iter().filter_map(|id| history.item(&id));
            assert_eq!(view(Select::Current).await, current.collect::<Vec<_>>());
            let names: Vec<String> = ITEMS.iter().map(|name| format!("urn:{name}")).collect();
            let stubs: Vec<LedgerEntry> = history.stubs().into_values().collect();
            assert_eq!(store.stubs(&name, &names).await.unwrap(), stubs);
            for item in ITEMS {
                let item = id(item);
                let stub = store.stubs(&name, &[item.to_string()]).await.unwrap().pop();
                assert_eq!(stub, history.stubs().remove(&item));
                assert_eq!(store.item(&name, &item).await.unwrap(), history.item(&item));
                let versions = store.versions(&name, &item, usize::MAX).await.unwrap();
                assert_eq!(versions, history.versions(&item));
            }
            let kept: usize = ITEMS.iter().map(|item| history.versions(&id(item)).len()).sum();
            assert_eq!(store.holdings(&name).await.unwrap().versions, kept as u64);
            history.archives_agree(store, &name).await;
            let events = history.changes.iter().flat_map(|change| change.events.clone());
            let oldest: Vec<_> =
                store.events(&name, usize::MAX).await.unwrap().into_iter().rev().collect();
            assert_eq!(oldest, events.collect::<Vec<_>>());
        }
    }
}

/// A store answers nothing of a feed to which nothing was committed since it was purged last.
async fn has_nothing(store: &Store, name: &FeedName) {
    let item = id(ITEMS[0]);
    assert!(store.snapshot(name).await.unwrap().is_none());
    assert!(store.view(name, Select::All).await.unwrap().is_none());
    assert!(store.past(name, PastSelect::All, time(9)).await.unwrap().is_none());
    assert!(store.item(name, &item).await.unwrap().is_none());
    assert!(store.known(name, &item).await.unwrap().is_none());
    assert!(store.version(name, &item, Count::ONE).await.unwrap().is_none());
    assert!(store.versions(name, &item, 9).await.unwrap().is_empty());
    assert!(store.events(name, 9).await.unwrap().is_empty());
    assert!(store.archives(name, 9).await.unwrap().is_empty());
    assert_eq!(store.holdings(name).await.unwrap(), Holdings::default());
}

pub(super) async fn follow(kind: EngineKind, steps: Vec<Step>) -> (StoreFixture, Model) {
    let mut fixture = StoreFixture::new(kind);
    let mut model = Model::default();
    let mut readers: VecDeque<PinnedReader> = VecDeque::new();
    for step in steps {
        let store = fixture.store();
        match step {
            Step::Commit { feed, acts, order, archive, stale } => {
                let change = model.change(feed, &acts, order.as_deref(), (archive, stale));
                let result = store.commit(change.clone()).await;
                if stale {
                    let revision = model.feeds[&change.feed].revision();
                    let is_named = matches!(result, Err(CommitError::Conflict(Revision(at))) if at == revision);
                    assert!(is_named, "{result:?} at {revision}");
                } else {
                    let mut change = change;
                    // What is lifted over a purged predecessor is taken from the store.
                    let state = store.state(&change.feed).await.unwrap().unwrap();
                    assert!(state.render_revision >= change.state.render_revision);
                    let lifted = state.render_revision - change.state.render_revision;
                    if lifted > 0 {
                        change.state.deltas_from += lifted;
                        change.known.iter_mut().for_each(|known| known.touched += lifted);
                    }
                    (change.state.render_revision, change.state.updated_at) =
                        (state.render_revision, state.updated_at);
                    change.state.lineage = state.lineage;
                    // How much an archive takes is up to the store.
                    change.state.archives.bytes = state.archives.bytes;
                    assert_eq!(result.unwrap(), model.accept(change));
                }
            }
            Step::Checkpoint { feed, failures } => {
                let etag = Some("\"e\"".repeat(failures as usize * 400));
                let state = PollState { failures, etag, ..poll_state(FEEDS[feed]) };
                store.checkpoint(std::slice::from_ref(&state)).await.unwrap();
                model.polls.insert(state.feed.clone(), state);
            }
            Step::PutFeed { feed } => {
                let url = format!("https://example.org/{}", model.seconds);
                let record = FeedRecord { url, ..record(FEEDS[feed]) };
                store.put_feed(&record).await.unwrap();
                model.records.insert(record.name.clone(), record);
            }
            Step::Purge { feed } => {
                let name = super::make::feed(FEEDS[feed]);
                store.purge_feed(&name).await.unwrap();
                for reader in readers.iter_mut().filter(|reader| reader.feed == name) {
                    (reader.seen, reader.ledger) = ([None, None], None);
                }
                model.records.remove(&name);
                model.polls.remove(&name);
                let history = model.feeds.entry(name).or_default();
                let known = history.ledger().into_values();
                let known = known.chain(history.stubs().into_values());
                let updates = known.map(|known| known.updates.value()).max();
                *history = FeedHistory {
                    purged_revision: history.purged_revision.max(history.revision()),
                    updates_before: updates.unwrap_or(0).max(history.updates_before),
                    ..FeedHistory::default()
                };
            }
            Step::Hold { feed } => {
                let feed = super::make::feed(FEEDS[feed]);
                readers.extend(PinnedReader::new(&store, feed).await);
            }
            Step::Release => drop(readers.pop_front()),
            Step::Reopen => {
                readers.clear();
                drop(store);
                fixture = fixture.reopen().await;
                model.opening += 1;
            }
        }
        model.agrees_with(&fixture.store()).await;
        for reader in &readers {
            reader.sees_the_same().await;
        }
    }
    (fixture, model)
}

pub(super) fn run(kind: EngineKind, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    drop(runtime.block_on(follow(kind, steps)));
}
