//! Random histories on every store: it agrees with the simplest store that can be written down, the list of the changes
//! that were accepted, folded anew for every question; and copies of it answer alike. On PostgreSQL where there is one
//! ([`crate::postgres`]).

mod history;

use self::history::FeedHistory;
use super::EngineKind::{self, Disk, Memory, Postgres};
use super::carry::there_and_back;
use super::make::*;
use crate::record::specimen::specimen;
use crate::testing::is_tested;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap, VecDeque};

const FEEDS: [&str; 3] = ["a", "a-b", "ab"];
const ITEMS: [&str; 4] = ["i", "i.1", "j", "ä"];

#[derive(Debug, Clone)]
enum Act {
    Version(usize),
    Tombstone,
    Ripe,
    Touch,
    Latest(usize),
    /// A version with so many others in conflict.
    Contest(usize),
    Evict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Archiving {
    Nothing,
    Seal,
    Drop,
}

/// What a commit does to the hold of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holding {
    Nothing,
    Hold,
    /// Holds it, and keeps so many of its entries.
    Keep(u64),
    End,
}

#[derive(Debug, Clone)]
struct CommitStep {
    feed: usize,
    acts: Vec<(usize, Act)>,
    order: Option<Vec<usize>>,
    archiving: Archiving,
    holding: Holding,
    is_stale: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Commit(CommitStep),
    /// Polling notes of a feed how often it failed.
    Checkpoint(usize, u32),
    PutFeed(usize),
    Purge(usize),
    /// Somebody begins to read a feed.
    Hold(usize),
    /// Who reads longest is done.
    Release,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let act = prop_oneof![
        4 => prop_oneof![9 => 0..300usize, 1 => 6_990..30_000usize].prop_map(Act::Version),
        1 => Just(Act::Tombstone),
        1 => Just(Act::Ripe),
        1 => Just(Act::Touch),
        2 => (0..9_000usize).prop_map(Act::Latest),
        2 => (0..3usize).prop_map(Act::Contest),
        2 => Just(Act::Evict),
    ];
    let acts = vec((0..ITEMS.len(), act), 0..4);
    let order = proptest::option::of(vec(0..ITEMS.len(), 0..4));
    let archiving = prop_oneof![
        5 => Just(Archiving::Nothing),
        2 => Just(Archiving::Seal),
        1 => Just(Archiving::Drop),
    ];
    let holding = prop_oneof![
        6 => Just(Holding::Nothing),
        1 => Just(Holding::Hold),
        2 => (0..3u64).prop_map(Holding::Keep),
        1 => Just(Holding::End),
    ];
    let feed = || 0..FEEDS.len();
    let commit = (feed(), acts, order, archiving, holding, prop::bool::weighted(0.1));
    prop_oneof![
        12 => commit.prop_map(|(feed, acts, order, archiving, holding, is_stale)| {
            Step::Commit(CommitStep { feed, acts, order, archiving, holding, is_stale })
        }),
        2 => (feed(), 0..9u32).prop_map(|(feed, failures)| Step::Checkpoint(feed, failures)),
        1 => feed().prop_map(Step::PutFeed),
        1 => feed().prop_map(Step::Purge),
        3 => feed().prop_map(Step::Hold),
        2 => Just(Step::Release),
        1 => Just(Step::Reopen),
    ]
}

fn seal(change: &mut Change, mut ledger: HashMap<SyncId, LedgerEntry>) {
    ledger.extend(change.known.iter().map(|known| (known.id.clone(), known.clone())));
    let chain = &change.state.archives;
    let leaves = |id: &SyncId| change.evicted.iter().any(|stub| stub.id == *id);
    let items: Vec<SyncId> = ledger
        .into_values()
        .filter(|known| !leaves(&known.id))
        .filter(|known| !chain.is_sealed(known.tick))
        .map(|known| known.id)
        .collect();
    if !items.is_empty() {
        let id = format!("archive{}", change.at.unix());
        add_seal(change, &id, items);
    }
}

#[derive(Default)]
struct Model {
    feeds: BTreeMap<FeedName, FeedHistory>,
    records: BTreeMap<FeedName, FeedRecord>,
    polls: BTreeMap<FeedName, PollState>,
    log: Vec<LoggedChange>,
    seconds: i64,
    opening: u32,
}

impl Model {
    /// The change that a step stands for, made to fit what is known. Ticks rise by two seconds, so that
    /// a successor of a purged feed needs no lifting here (that has cases of its own).
    fn change(&mut self, step: CommitStep) -> Change {
        let CommitStep { feed, acts, order, archiving, holding, is_stale } = step;
        self.seconds += 2;
        let history = self.feeds.entry(super::make::feed(FEEDS[feed])).or_default();
        let ledger = history.ledger();
        let state = history.changes.last().map(|change| change.state.clone());
        let mut draft = Draft::over(FEEDS[feed], state, ledger.clone(), self.seconds);
        let text = |length: usize| {
            // Hard to compress, so that it is cut into pieces.
            let words =
                (0..length / 6).map(|n| (n * 2_654_435_761 + self.seconds as usize) % 999_983);
            words.map(|word| format!("{word:x}")).collect::<String>()
        };
        let mut done = Vec::new();
        for (item, act) in acts {
            let name = ITEMS[item];
            if done.contains(&item) {
                continue;
            }
            done.push(item);
            let before = ledger.get(&id(name));
            let stays = history.order().contains(&id(name)) || order.is_some();
            if history.stubs().contains_key(&id(name)) {
                draft.change.reinstated.push(id(name));
            }
            draft = match (act, before) {
                (Act::Version(length), _) => draft.item(name, &text(length)),
                (_, None) => draft.item(name, "first"),
                (Act::Tombstone, _) => draft.tombstone(name),
                (Act::Ripe, _) => draft.ripe(name),
                (Act::Touch, _) => {
                    draft.touch(name, ItemStatus::Retired { since: time(self.seconds) })
                }
                (Act::Latest(length), _) => draft.latest(name, &text(length)),
                (Act::Contest(count), Some(before)) => {
                    let lost = [Some(markup(&text(30_000))), None].map(|data| before.version(data));
                    draft.item(name, "contested").contest(name, lost[..count].to_vec())
                }
                (Act::Evict, _) if stays => draft.ripe(name),
                (Act::Evict, _) => draft.evict(name),
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
        match archiving {
            Archiving::Nothing => {}
            Archiving::Seal => seal(&mut change, ledger),
            Archiving::Drop => {
                let chain = &mut change.state.archives;
                chain.first = chain.next.saturating_sub(1).max(chain.first);
            }
        }
        match holding {
            Holding::Nothing => {}
            Holding::Hold => change.state.hold = Some(specimen(1)),
            Holding::Keep(count) => {
                change.state.hold = Some(specimen(1));
                let mut kept: Vec<HeldEntry> = (0..count).map(specimen).collect();
                kept.iter_mut().skip(1).for_each(|of| of.entry.markup = text(30_000).into());
                change.kept = Some(kept);
            }
            Holding::End => change.state.hold = None,
        }
        if is_stale {
            // Ahead of the feed, or behind it.
            change.base = Revision(change.base.0 ^ 1);
        }
        change
    }

    /// Notes a change that the store has taken; `state` is what it has of the feed then.
    fn accept(&mut self, mut change: Change, state: FeedState) -> Committed {
        // What is lifted over a purged predecessor is taken from the store.
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
        let (feed, tick) = (change.feed.clone(), change.tick);
        let versions = u32::try_from(change.versions.len()).unwrap();
        let revision = self.feeds.get_mut(&feed).unwrap().accept(change, self.opening);
        self.log.extend(tick.map(|tick| LoggedChange { feed, tick, revision, versions }));
        Committed { revision }
    }

    /// What a store answers of all feeds, and of these.
    async fn agrees_on(&self, store: &Store, feeds: &[&str]) {
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
        let nothing = FeedHistory::default();
        for name in feeds.iter().map(|name| feed(name)) {
            let history = self.feeds.get(&name).unwrap_or(&nothing);
            history.agrees(store, &name, &ITEMS, self.seconds).await;
        }
    }

    async fn agrees_with(&self, store: &Store) {
        self.agrees_on(store, &FEEDS).await;
    }

    /// Takes these steps in the store and in the model, which agree after each of them.
    async fn follow(&mut self, mut fixture: StoreFixture, steps: Vec<Step>) -> StoreFixture {
        let mut readers: VecDeque<PinnedReader> = VecDeque::new();
        for step in steps {
            let store = &*fixture;
            let touched = match step {
                Step::Commit(step) => {
                    let (feed, is_stale) = (step.feed, step.is_stale);
                    let change = self.change(step);
                    let result = store.commit(change.clone()).await;
                    if is_stale {
                        let revision = self.feeds[&change.feed].revision();
                        let is_named = matches!(result, Err(CommitError::Conflict(Revision(at))) if at == revision);
                        assert!(is_named, "{result:?} at {revision}");
                    } else {
                        let state = store.state(&change.feed).await.unwrap().unwrap();
                        assert_eq!(result.unwrap(), self.accept(change, state));
                    }
                    feed
                }
                Step::Checkpoint(feed, failures) => {
                    let etag = Some("\"e\"".repeat(failures as usize * 400));
                    let state = PollState { failures, etag, ..poll_state(FEEDS[feed]) };
                    store.checkpoint(std::slice::from_ref(&state)).await.unwrap();
                    self.polls.insert(state.feed.clone(), state);
                    feed
                }
                Step::PutFeed(feed) => {
                    let url = format!("https://example.org/{}", self.seconds);
                    let record = FeedRecord { url, ..record(FEEDS[feed]) };
                    store.put_feed(&record).await.unwrap();
                    self.records.insert(record.name.clone(), record);
                    feed
                }
                Step::Purge(feed) => {
                    let name = super::make::feed(FEEDS[feed]);
                    store.purge_feed(&name).await.unwrap();
                    for reader in readers.iter_mut().filter(|reader| reader.feed == name) {
                        (reader.seen, reader.ledger) = ([None, None], None);
                    }
                    self.records.remove(&name);
                    self.polls.remove(&name);
                    let history = self.feeds.entry(name).or_default();
                    *history = history.purged();
                    feed
                }
                Step::Hold(feed) => {
                    let name = super::make::feed(FEEDS[feed]);
                    readers.extend(PinnedReader::new(store, name).await);
                    feed
                }
                Step::Release => {
                    readers.pop_front();
                    continue;
                }
                Step::Reopen => {
                    readers.clear();
                    fixture = fixture.reopen().await;
                    self.opening += 1;
                    self.agrees_with(&fixture).await;
                    continue;
                }
            };
            self.agrees_on(store, &FEEDS[touched..=touched]).await;
            for reader in &readers {
                reader.sees_the_same().await;
            }
        }
        self.agrees_with(&fixture).await;
        fixture
    }
}

/// A pinned feed, with its content as first read; none once it was purged.
struct PinnedReader {
    feed: FeedName,
    reader: PinnedFeed,
    seen: [Option<View>; 2],
    ledger: Option<Snapshot>,
}

impl PinnedReader {
    async fn new(store: &Store, feed: FeedName) -> Option<Self> {
        let reader = store.pin(&feed).await.unwrap()?;
        let (seen, ledger) = Self::read(&reader).await;
        assert_eq!(Some(reader.state()), store.state(&feed).await.unwrap().as_ref());
        Some(Self { feed, reader, seen, ledger })
    }

    async fn read(reader: &PinnedFeed) -> ([Option<View>; 2], Option<Snapshot>) {
        let all = reader.view(Select::All).await.unwrap();
        let current = reader.view(Select::Current).await.unwrap();
        ([all, current], reader.snapshot().await.unwrap())
    }

    /// Later commits are not seen: the content is the same, or outdated.
    async fn sees_the_same(&self) {
        let outdated = |error: StoreError| assert!(matches!(error, StoreError::Outdated));
        for (select, seen) in [Select::All, Select::Current].into_iter().zip(&self.seen) {
            match self.reader.view(select).await {
                Ok(view) => assert_eq!(&view, seen),
                Err(error) => outdated(error),
            }
        }
        match self.reader.snapshot().await {
            Ok(ledger) => assert_eq!(ledger, self.ledger),
            Err(error) => outdated(error),
        }
    }
}

/// How many cases of at most how many steps.
macro_rules! histories {
    ($($name:ident $cases:literal $steps:literal $check:expr;)+) => {
        $(
            proptest! {
                #![proptest_config(ProptestConfig { cases: $cases, ..ProptestConfig::default() })]
                #[test]
                fn $name(steps in vec(step(), 1..$steps)) {
                    ($check)(steps);
                }
            }
        )+
    };
}

histories! {
    the_model_agrees_in_memory 128 40 |steps| run(Memory, steps);
    the_model_agrees_on_disk 24 30 |steps| run(Disk, steps);
    the_model_agrees_on_postgres 8 30 |steps| if is_tested() {
        run(Postgres, steps);
    };
    copies_in_memory_answer_alike 10 30 |steps| go_on_in_copy(Disk, Memory, steps);
    copies_on_disk_answer_alike 10 30 |steps| go_on_in_copy(Memory, Disk, steps);
    copies_on_postgres_answer_alike 8 20 |steps: Vec<_>| if is_tested() {
        go_on_in_copy(Postgres, Disk, steps.clone());
        go_on_in_copy(Disk, Postgres, steps.clone());
        go_on_in_copy(Memory, Postgres, steps);
    };
}

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(work);
}

fn run(kind: EngineKind, steps: Vec<Step>) {
    block_on(async { drop(Model::default().follow(StoreFixture::new(kind), steps).await) });
}

/// A copy answers alike, and goes on as the store would have.
fn go_on_in_copy(from: EngineKind, to: EngineKind, mut steps: Vec<Step>) {
    let later = steps.split_off(steps.len() / 2);
    block_on(async {
        let mut model = Model::default();
        let fixture = model.follow(StoreFixture::new(from), steps).await;
        let copied = there_and_back(&fixture, to).await;
        model.agrees_with(&copied).await;
        model.opening += 1;
        model.follow(copied, later).await;
    });
}
