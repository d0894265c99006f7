//! Doubles for the store and the judge.

mod judge;

pub use judge::JudgeDouble;

use async_trait::async_trait;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_core::model::BodyPrints;
use tidegate_core::model::*;
use tidegate_core::websub::Subscription;
use tidegate_store::portable;
use tidegate_store::*;
use tokio::sync::{Semaphore, mpsc, watch};

pub const NOW: Time = Time::from_unix(1_795_191_605);

pub fn name(text: &str) -> FeedName {
    FeedName::new(text).unwrap()
}

pub fn record(feed: &str) -> FeedRecord {
    FeedRecord::new(name(feed), format!("http://{feed}.example/feed"), FeedSource::Api)
}

/// What goes wrong with the next commits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Conflict,
    /// It is stored, and nobody can tell.
    StoredUnknown,
    /// It is not stored, and nobody can tell.
    LostUnknown,
    /// The list of feeds cannot be read.
    Unreadable,
    /// Neither what polling remembers nor a record can be written.
    Unwritable,
    /// The past of the feed that is pruned next stays.
    Unprunable,
}

#[derive(Default)]
pub struct Shelf {
    pub snapshots: HashMap<FeedName, Snapshot>,
    pub feeds: Vec<FeedRecord>,
    /// What of a configuration was applied.
    pub applied: AppliedOrigins,
    pub poll_states: HashMap<FeedName, PollState>,
    pub trouble: Vec<Trouble>,
    pub commits: u32,
    pub checkpoints: u32,
    pub attempts: HashMap<FeedName, Attempt>,
    /// How often a mark of a large document was written or taken out.
    pub marks: u32,
    /// Whether no mark can be written.
    pub refuses_marks: bool,
    /// When the document of each feed was asked for.
    pub asked_at: HashMap<FeedName, Time>,
    /// What the store says of itself.
    pub condition: StoreCondition,
    /// How often that was asked for.
    pub looks: u32,
    /// The feeds of which a view was read, in turn.
    pub viewed: Vec<FeedName>,
    /// The feeds that were pruned, in turn.
    pub pruned: Vec<FeedName>,
    /// One permit lets one commit in.
    pub gate: Option<Arc<Semaphore>>,
    /// One permit lets one checkpoint in, or one mark of a large document.
    pub checkpoint_gate: Option<Arc<Semaphore>>,
    /// How many checkpoints were begun.
    pub begun: u32,
    /// How long a look for an item of a feed takes, of which there are none; `None`: there is no looking.
    pub look_takes: Option<Duration>,
}

pub struct StoreDouble {
    pub shelf: Arc<Mutex<Shelf>>,
    endpoint: EndpointId,
    /// Who shares it.
    gateways: Option<Arc<Gateways>>,
    list: Mutex<Arc<FeedList>>,
}

impl StoreDouble {
    pub fn new(feeds: &[&str]) -> Arc<Self> {
        let feeds = feeds.iter().map(|feed| record(feed)).collect();
        let shelf = Shelf { feeds, ..Shelf::default() };
        let endpoint = EndpointId::own("here").unwrap();
        let (shelf, list) = (Arc::new(Mutex::new(shelf)), Mutex::default());
        Arc::new(Self { shelf, endpoint, gateways: None, list })
    }

    /// The same store, as one of several gateways sees it.
    pub fn shared_by(&self, gateways: &Arc<Gateways>) -> Arc<Self> {
        let (shelf, endpoint) = (Arc::clone(&self.shelf), self.endpoint.clone());
        let gateways = Some(Arc::clone(gateways));
        Arc::new(Self { shelf, endpoint, gateways, list: Mutex::default() })
    }

    pub fn state_of(&self, feed: &str) -> FeedState {
        self.shelf.lock().unwrap().snapshots[&name(feed)].state.clone()
    }

    async fn wait_for_checkpoint(&self) {
        let gate = self.shelf.lock().unwrap().checkpoint_gate.clone();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
    }

    pub fn writes(&self) -> (u32, u32) {
        let shelf = self.shelf.lock().unwrap();
        (shelf.commits, shelf.checkpoints)
    }
}

/// A feed of which nothing but the ledger is read.
struct PinnedSnapshot(Snapshot);

#[async_trait]
impl PinnedFeed for PinnedSnapshot {
    fn state(&self) -> &FeedState {
        &self.0.state
    }
    async fn snapshot(self: Arc<Self>) -> Result<Option<Snapshot>, StoreError> {
        Ok(Some(self.0.clone()))
    }
    async fn begin_view(
        self: Arc<Self>,
        _: Select,
    ) -> Result<Option<(View, RemainingItems)>, StoreError> {
        Err(StoreError::Closed)
    }
    async fn next_items(
        self: Arc<Self>,
        _: RemainingItems,
    ) -> Result<Option<(Vec<Item>, RemainingItems)>, StoreError> {
        Err(StoreError::Closed)
    }
}

impl Shelf {
    fn apply(&mut self, change: Change) -> Revision {
        self.commits += 1;
        if let Some(asked_at) = change.asked_at {
            self.asked_at.insert(change.feed.clone(), asked_at);
        }
        let revision = Revision(change.base.0 + 1);
        let mut state = change.state;
        state.revision = revision;
        let format = state.format;
        let order = change.order.unwrap_or_default();
        let nothing = Snapshot { state, ..Snapshot::untouched(format, change.at) };
        let known = change.known;
        self.snapshots.insert(change.feed, Snapshot { known, order, ..nothing });
        revision
    }
}

#[async_trait]
impl Store for StoreDouble {
    fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }
    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        Ok(Vec::new())
    }
    async fn put_subscriptions(&self, _: &[SubscriptionChange]) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    fn condition(&self) -> StoreCondition {
        let mut shelf = self.shelf.lock().unwrap();
        shelf.looks += 1;
        shelf.condition.clone()
    }
    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        Ok(self.shelf.lock().unwrap().feeds.clone())
    }
    async fn feed_list(&self) -> Result<Arc<FeedList>, StoreError> {
        let (shelf, mut list) = (self.shelf.lock().unwrap(), self.list.lock().unwrap());
        if shelf.trouble.contains(&Trouble::Unreadable) {
            return Err(StoreError::Closed);
        }
        let known = |feed: &FeedRecord| list.get(&feed.name).filter(|known| ***known == *feed);
        let new: FeedList = shelf
            .feeds
            .iter()
            .map(|feed| {
                let record = known(feed).map_or_else(|| Arc::new(feed.clone()), Arc::clone);
                (feed.name.clone(), record)
            })
            .collect();
        if **list != new {
            *list = Arc::new(new);
        }
        Ok(Arc::clone(&list))
    }
    fn gateways(&self) -> Option<Arc<Gateways>> {
        self.gateways.clone()
    }
    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        let mut shelf = self.shelf.lock().unwrap();
        if shelf.trouble.contains(&Trouble::Unwritable) {
            return Err(StoreError::Closed);
        }
        shelf.feeds.retain(|feed| feed.name != record.name);
        shelf.feeds.push(record.clone());
        Ok(())
    }
    async fn apply_feeds(
        &self,
        records: &[FeedRecord],
        over: &Arc<FeedList>,
        applied: AppliedOrigins,
    ) -> Result<(), StoreError> {
        self.put_feeds(records, over).await?;
        self.shelf.lock().unwrap().applied = applied;
        Ok(())
    }
    async fn applied(&self) -> Result<AppliedOrigins, StoreError> {
        Ok(self.shelf.lock().unwrap().applied.clone())
    }
    async fn export(&self, _: mpsc::Sender<portable::ExportRecord>) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    async fn import(&self, _: mpsc::Receiver<portable::ImportMessage>) -> Result<(), CommitError> {
        Err(CommitError::Store(StoreError::Closed))
    }
    async fn purge_feed(&self, _: &FeedName) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        Ok(self.shelf.lock().unwrap().snapshots.get(feed).map(|s| s.state.clone()))
    }
    async fn snapshot(&self, feed: &FeedName) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.shelf.lock().unwrap().snapshots.get(feed).cloned())
    }
    async fn pin(&self, feed: &FeedName) -> Result<Option<Arc<PinnedFeed>>, StoreError> {
        let snapshot = self.snapshot(feed).await?;
        Ok(snapshot.map(|snapshot| Arc::new(PinnedSnapshot(snapshot)) as Arc<PinnedFeed>))
    }
    async fn view(&self, feed: &FeedName, _: Select) -> Result<Option<View>, StoreError> {
        let mut shelf = self.shelf.lock().unwrap();
        shelf.viewed.push(feed.clone());
        let state = shelf.snapshots.get(feed).map(|snapshot| snapshot.state.clone());
        Ok(state.map(|state| {
            let skeleton = Skeleton {
                format: state.format,
                text: String::new(),
                slots: SkeletonSlots::default(),
                context: Context::default(),
                title: format!("The title of {feed}"),
                link: None,
            };
            View { state, skeleton, items: Vec::new() }
        }))
    }
    async fn item(&self, _: &FeedName, _: &SyncId) -> Result<Option<Item>, StoreError> {
        Err(StoreError::Closed)
    }
    async fn versions(
        &self,
        _: &FeedName,
        _: &SyncId,
        _: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        Ok(Vec::new())
    }
    async fn known(&self, _: &FeedName, _: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        let takes = self.shelf.lock().unwrap().look_takes;
        tokio::time::sleep(takes.ok_or(StoreError::Closed)?).await;
        Ok(None)
    }
    async fn version(
        &self,
        _: &FeedName,
        _: &SyncId,
        _: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        Err(StoreError::Closed)
    }
    async fn past(&self, _: &FeedName, _: PastSelect, _: Time) -> Result<Option<Past>, StoreError> {
        Err(StoreError::Closed)
    }
    async fn holdings(&self, _: &FeedName) -> Result<Holdings, StoreError> {
        Err(StoreError::Closed)
    }
    async fn prune(&self, feed: &FeedName, _: &Retention, _: Time) -> Result<Pruned, CommitError> {
        let mut shelf = self.shelf.lock().unwrap();
        if shelf.trouble.pop_if(|it| *it == Trouble::Unprunable).is_some() {
            return Err(CommitError::Store(StoreError::Closed));
        }
        shelf.pruned.push(feed.clone());
        Ok(Pruned::default())
    }
    async fn trim_log(&self, _: Duration) -> Result<usize, CommitError> {
        Ok(0)
    }
    async fn events(&self, _: &FeedName, _: usize) -> Result<Vec<Event>, StoreError> {
        Err(StoreError::Closed)
    }
    async fn archives(&self, _: &FeedName, _: usize) -> Result<Vec<ArchiveNote>, StoreError> {
        Ok(Vec::new())
    }
    async fn archive_place(
        &self,
        _: &FeedName,
        _: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        Ok(None)
    }
    async fn archive(&self, _: &FeedName, _: &ArchiveId) -> Result<Option<Archive>, StoreError> {
        Ok(None)
    }
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let gate = self.shelf.lock().unwrap().gate.clone();
        if let Some(gate) = gate {
            gate.acquire().await.unwrap().forget();
        }
        let mut shelf = self.shelf.lock().unwrap();
        shelf.condition.check_intake()?;
        let base = shelf.snapshots.get(&change.feed).map_or(Revision(0), |s| s.state.revision);
        let of_others = |it: &Trouble| {
            matches!(it, Trouble::Unreadable | Trouble::Unwritable | Trouble::Unprunable)
        };
        match shelf.trouble.pop_if(|it| !of_others(it)) {
            Some(Trouble::Conflict) => {
                // Somebody else commits something in between.
                if let Some(snapshot) = shelf.snapshots.get_mut(&change.feed) {
                    snapshot.state.revision.0 += 1;
                }
                return Err(CommitError::Conflict(Revision(base.0 + 1)));
            }
            Some(Trouble::StoredUnknown) => {
                shelf.apply(change);
                return Err(CommitError::Ambiguous(StoreError::Closed));
            }
            Some(Trouble::LostUnknown) => {
                return Err(CommitError::Ambiguous(StoreError::Closed));
            }
            Some(Trouble::Unreadable | Trouble::Unwritable | Trouble::Unprunable) | None => {}
        }
        let known = shelf.asked_at.get(&change.feed);
        if change.asked_at.zip(known.copied()).is_some_and(|(asked, known)| asked < known) {
            return Err(CommitError::Overtaken);
        }
        if change.base != base {
            return Err(CommitError::Conflict(base));
        }
        Ok(Committed { revision: shelf.apply(change) })
    }
    async fn checkpoint(&self, states: &[PollState]) -> Result<(), CommitError> {
        self.shelf.lock().unwrap().begun += 1;
        self.wait_for_checkpoint().await;
        let mut shelf = self.shelf.lock().unwrap();
        if shelf.trouble.contains(&Trouble::Unwritable) {
            return Err(CommitError::Store(StoreError::Closed));
        }
        shelf.checkpoints += 1;
        for state in states {
            shelf.poll_states.insert(state.feed.clone(), state.clone());
        }
        Ok(())
    }
    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        Ok(self.shelf.lock().unwrap().poll_states.values().cloned().collect())
    }
    async fn note_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        self.wait_for_checkpoint().await;
        let mut shelf = self.shelf.lock().unwrap();
        if shelf.refuses_marks {
            return Err(StoreError::Closed);
        }
        shelf.marks += 1;
        shelf.attempts.insert(attempt.feed.clone(), attempt.clone());
        shelf.attempts.retain(|_, attempt| !attempt.is_over());
        Ok(())
    }
    async fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        Ok(self.shelf.lock().unwrap().attempts.values().cloned().collect())
    }
    async fn epochs_after(&self, _: Epoch, _: usize) -> Result<Vec<ClosedEpoch>, StoreError> {
        Err(StoreError::Closed)
    }
    fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        watch::channel(Epoch(0)).1
    }
    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

pub fn state(base: Option<&Snapshot>, prints: BodyPrints, now: Time) -> FeedState {
    let tick = Tick::next(now, base.and_then(|base| base.state.tick));
    FeedState {
        revision: Revision(0),
        tick: Some(tick),
        window_start: None,
        complete_start: None,
        render_revision: base.map_or(0, |base| base.state.render_revision) + 1,
        updated_at: now,
        format: Format::Atom10,
        says_complete: false,
        wire: prints.wire,
        body: prints.body,
        head: 0,
        site: None,
        source: 0,
        character: Character::default(),
        noise: FeedNoise::default(),
        hold: None,
        next_decision_at: None,
        current: 1,
        living: 1,
        tombstones: 0,
        evictions: tidegate_core::model::Evictions::default(),
        sync_ids_issued: 1,
        archives: Chain::default(),
        deltas_from: 0,
        source_since: None,
        upstream_until: None,
        updates_before: 0,
        gap: None,
        flaws: tidegate_core::model::FlawHistory::default(),
        told: tidegate_core::model::HeadHistory::default(),
        lineage: tidegate_core::model::Lineage::default(),
    }
}

pub fn event(kind: EventKind, tick: Option<Tick>) -> Event {
    Event {
        kind,
        id: SyncId::new("here.x").unwrap(),
        native_id: "x".into(),
        old_native_id: None,
        title: "X".into(),
        tick,
        reason: "because".into(),
        at: NOW,
        seen_gone: None,
    }
}
