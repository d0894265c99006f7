mod items;
mod policy;
mod resolving;
mod written;

use super::*;
use crate::record::Observation;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::*;
use tidegate_store::{Select, Store, View};

const NOW: i64 = 1_795_191_605;

/// A change of an item, however often it was updated.
fn change(id: &SyncId, how: ItemAct) -> Act {
    Act::Change { id: id.clone(), how, expected: None }
}

/// A store with one feed, and the acts that are done to it, a minute apart.
struct Bench {
    store: Store,
    clock: ManualClock,
    feed: FeedName,
    options: FeedOptions,
}

impl Bench {
    async fn new() -> Self {
        let clock = ManualClock::at(Time::from_unix(NOW));
        let endpoint = EndpointId::own("gate").unwrap();
        let store = Store::in_memory(Some(endpoint), Arc::new(clock.clone())).unwrap();
        let sharing = SharingOptions { local: true, ..SharingOptions::default() };
        let options = FeedOptions { sharing, ..FeedOptions::default() };
        Self { store, clock, feed: FeedName::new("notes").unwrap(), options }
    }

    async fn snapshot(&self) -> Option<Snapshot> {
        self.store.snapshot(&self.feed).await.unwrap()
    }

    async fn view(&self, select: Select) -> View {
        self.store.view(&self.feed, select).await.unwrap().unwrap()
    }

    /// The titles of the reader view, in order.
    async fn titles(&self) -> Vec<String> {
        let items = self.view(Select::Current).await.items;
        items.into_iter().map(|item| item.shared.winner.data.card.title).collect()
    }

    async fn item(&self, id: &SyncId) -> Item {
        self.store.item(&self.feed, id).await.unwrap().unwrap()
    }

    async fn known(&self, id: &SyncId) -> LedgerEntry {
        self.store.known(&self.feed, id).await.unwrap().unwrap()
    }

    async fn commit(&self, make: impl FnOnce(&Observation<'_>) -> Verdict) {
        pass(&self.clock);
        let snapshot = self.snapshot().await;
        let change = make(&self.observation(snapshot.as_ref())).change.unwrap();
        self.store.commit(change).await.unwrap();
    }

    fn observation<'a>(&'a self, snapshot: Option<&'a Snapshot>) -> Observation<'a> {
        let (feed, endpoint, options) = (&self.feed, self.store.endpoint(), &self.options);
        crate::testing::observation(feed, endpoint, options, snapshot, now(&self.clock))
    }

    async fn act(&self, act: Act) -> Result<Acted, ActError> {
        pass(&self.clock);
        let snapshot = self.snapshot().await;
        let (verdict, acted) = super::act(&self.observation(snapshot.as_ref()), &act)?;
        self.store.commit(verdict.change.unwrap()).await.unwrap();
        Ok(acted)
    }

    async fn create(&self, title: &str) -> SyncId {
        let entry = written(title);
        self.act(Act::Create { entry, noconflicts: None }).await.unwrap().id
    }

    /// Takes in what another endpoint has of an item, as a merge does (section 3.3).
    async fn merge(&self, incoming: Shared<Markup>) {
        let id = incoming.winner.id.clone();
        let merged = sync::merge(self.shared(&id).await, incoming).unwrap();
        self.commit(|observation| {
            let snapshot = observation.snapshot.unwrap();
            let index = snapshot.known.iter().position(|known| known.id == id).unwrap();
            let mut draft = ChangeDraft::new(observation, snapshot);
            let known = |version: &Version<Markup>| version.with(Some(version.data.clone()));
            let conflicts = merged.conflicts.iter().map(known).collect();
            let item = Shared { winner: known(&merged.winner), conflicts };
            let standing = match item.winner.deleted {
                true => ItemStatus::Deleted { since: observation.now },
                false => ItemStatus::Current,
            };
            let event = EventDetails::new(EventKind::Updated, "merged");
            draft.put_shared_version(index, item, standing, event);
            draft.into_verdict(None)
        })
        .await;
    }

    async fn shared(&self, id: &SyncId) -> Shared<Markup> {
        self.item(id).await.shared
    }

    /// An item with two versions in conflict: those of `one` and `two`.
    async fn contested(&self) -> SyncId {
        let id = self.create("first").await;
        let start = self.shared(&id).await;
        for (endpoint, title) in [("one", "of one"), ("two", "of two")] {
            let mut fork = start.clone();
            pass(&self.clock);
            sync::update(&mut fork, text(title), stamp(&self.clock, endpoint)).unwrap();
            self.merge(fork).await;
        }
        // The third: it knows of `two`, which had won, and not of `one`.
        self.act(change(&id, ItemAct::Update(written("ours")))).await.unwrap();
        let mut fork = start;
        pass(&self.clock);
        sync::update(&mut fork, text("of three"), stamp(&self.clock, "three")).unwrap();
        self.merge(fork).await;
        id
    }
}

fn stamp(clock: &ManualClock, endpoint: &str) -> Stamp {
    let by = EndpointId::new(endpoint).unwrap();
    Stamp::Both { when: now(clock), by }
}

fn text(title: &str) -> Markup {
    written(title).read(Time::from_unix(NOW), tidegate_format::parse::markup_of).unwrap()
}

fn written(title: &str) -> CheckedEntry {
    let (title, content) = (title.to_owned(), Some(format!("The text of {title}")));
    CheckedEntry::fields(&EntryFields { title, content, ..EntryFields::default() }).unwrap()
}

fn pass(clock: &ManualClock) {
    clock.set(now(clock).plus(Duration::from_secs(60)));
}

fn now(clock: &ManualClock) -> Time {
    tidegate_core::clock::Clock::now(clock)
}
