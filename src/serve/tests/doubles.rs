//! A store with one hand-made feed, and an operator who writes down what is asked.

use super::{DAY, at, endpoint};
mod log;
mod operator;

use self::log::TestLog;
pub(super) use self::operator::*;
use crate::judge::{Conclusion, PendingAbsence};
use crate::model::*;
use crate::record::local::{Act, ActError, Acted};
use crate::serve::operator::*;
use crate::status::*;
use crate::store::portable;
use crate::store::*;
use crate::websub::{Subscription, Verification};
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch};

#[derive(Clone)]
pub(super) struct Feed {
    pub(super) state: FeedState,
    pub(super) skeleton: Skeleton,
    pub(super) order: Vec<SyncId>,
    pub(super) items: Vec<Item>,
}

pub(super) struct TestStore {
    endpoint: EndpointId,
    pub(super) records: Mutex<Vec<FeedRecord>>,
    pub(super) feeds: Mutex<BTreeMap<FeedName, Feed>>,
    pub(super) listings: AtomicUsize,
    pub(super) views: AtomicUsize,
    /// How often an item was read.
    pub(super) items: AtomicUsize,
    pub(super) snapshots: AtomicUsize,
    /// On which threads states were read, each time.
    pub(super) states: Mutex<Vec<ThreadId>>,
    /// A state waits here; closed: nobody waits.
    pub(super) state_gate: Semaphore,
    pub(super) broken: AtomicBool,
    /// A view waits here; closed: nobody waits.
    pub(super) gate: Arc<Semaphore>,
    /// The only feed whose views wait, where it is not every one.
    pub(super) gated: Option<&'static str>,
    /// How many views wait, and how many waited at once at most. As in a real store, who leaves stops
    /// no read.
    pub(super) reading: Arc<(AtomicUsize, AtomicUsize)>,
    /// Raises the revision behind the reader's back this many times.
    pub(super) restless: AtomicUsize,
    /// The change log.
    pub(super) log: TestLog,
}

pub(super) fn name(text: &str) -> FeedName {
    FeedName::new(text).unwrap()
}

pub(super) fn id(text: &str) -> SyncId {
    SyncId::new(text).unwrap()
}

pub(super) fn tick(seconds: i64) -> Tick {
    Tick::at(at(seconds))
}

pub(super) fn record(text: &str, standing: FeedStanding) -> FeedRecord {
    FeedRecord {
        name: name(text),
        url: format!("https://me:secret@upstream.example/{text}.xml"),
        source: FeedSource::Api,
        standing,
        options: FeedOptions::default(),
        enrolment: Enrolment::default(),
    }
}

pub(super) fn item(text: &str, seconds: i64, standing: ItemStatus) -> Item {
    let deleted = matches!(standing, ItemStatus::Deleted { .. });
    let stamp = Stamp::Both { when: at(seconds), by: endpoint() };
    let markup = Markup {
        format: Format::Atom10,
        xml: "<entry/>".to_owned(),
        context: Context::default(),
        slots: Slots::default(),
        card: Card {
            title: format!("<b>{text}</b> & \"co\""),
            link: Some("javascript:alert(1)".to_owned()),
            ..Card::default()
        },
    };
    let version = Version {
        id: id(text),
        updates: Count::ONE,
        deleted,
        noconflicts: None,
        history: History::new(Update { sequence: Count::ONE, stamp }),
        data: markup,
    };
    Item {
        shared: Shared::new(version),
        published_id: format!("urn:{text}"),
        tick: tick(seconds),
        standing,
        sse091: None,
        extras: None,
        touched: 5,
    }
}

pub(super) fn state(format: Format) -> FeedState {
    FeedState {
        revision: Revision(7),
        tick: Some(tick(-10)),
        window_start: Some(tick(-20 * DAY)),
        complete_start: Some(tick(-90 * DAY)),
        render_revision: 5,
        updated_at: at(-5),
        format,
        says_complete: false,
        wire: 0,
        body: 0,
        head: 0,
        site: Some("https://upstream.example/?a=1&b=2".to_owned()),
        source: 0,
        character: Character::default(),
        noise: FeedNoise::default(),
        hold: None,
        current: 2,
        living: 3,
        tombstones: 1,
        next_decision_at: None,
        sync_ids_issued: 4,
        archives: Chain::default(),
        deltas_from: 0,
        source_since: None,
        upstream_until: None,
        updates_before: 0,
        gap: None,
        flaws: crate::model::FlawHistory::default(),
        told: crate::model::HeadHistory::default(),
        lineage: Lineage::new([Stretch { mark: 0xcafe, after: 0 }]),
    }
}

pub(super) fn feed(format: Format) -> Feed {
    let skeleton = Skeleton {
        format,
        text: String::new(),
        slots: SkeletonSlots::default(),
        context: Context::default(),
        title: "News".to_owned(),
        link: None,
    };
    // Ticks: `old` is before the window, the others are in it.
    let items = vec![
        item("old", -60 * DAY, ItemStatus::Retired { since: at(-50 * DAY) }),
        item("b", -10 * DAY, ItemStatus::Current),
        item("gone", -5 * DAY, ItemStatus::Deleted { since: at(-5 * DAY) }),
        item("a", -10, ItemStatus::Current),
    ];
    Feed { state: state(format), skeleton, order: vec![id("a"), id("b")], items }
}

/// The ledger's entry of an item; `a` is missing from the document.
fn known(item: &Item) -> LedgerEntry {
    let winner = &item.shared.winner;
    let absence = Absence {
        evidence: Evidence::Hole,
        since: at(-3600),
        observations: 1,
        backfilled: false,
        doubts: Doubts::NONE,
        seen: "gone while older items stay".to_owned(),
        probe: None,
    };
    LedgerEntry {
        id: winner.id.clone(),
        native: format!("urn:{}", winner.id),
        native_shown: format!("urn:{}", winner.id),
        published_id: item.published_id.clone(),
        aliases: vec!["urn:<i>older</i>".to_owned()],
        title: winner.data.card.title.clone(),
        link: winner.data.card.link.clone(),
        enclosure: None,
        published: None,
        updated: None,
        updates: winner.updates,
        history: winner.history.clone(),
        tick: item.tick,
        noconflicts: None,
        conflicts: u32::try_from(item.shared.conflicts.len()).unwrap(),
        origin: crate::model::Origin::default(),
        first_seen: item.tick.time(),
        came: item.tick.time(),
        standing: item.standing.clone(),
        absence: (winner.id == id("a")).then_some(absence),
        prints: Vec::new(),
        bytes: 0,
        noise: Noise {
            unseen: (winner.id == id("b")).then_some(Unseen {
                // Bit 1 is that of counters.
                classes: NoiseClasses::from_bits(1 << 1),
                count: 1,
                since: at(-60),
                last: at(-60),
            }),
            ..Noise::default()
        },
        sse091: None,
        extras: None,
        touched: item.touched,
    }
}

impl TestStore {
    pub(super) fn with(feeds: Vec<(FeedRecord, Option<Feed>)>) -> Self {
        let gate = Semaphore::new(0);
        gate.close();
        let state_gate = Semaphore::new(0);
        state_gate.close();
        let mut records = Vec::new();
        let mut named = BTreeMap::new();
        for (record, feed) in feeds {
            if let Some(feed) = feed {
                named.insert(record.name.clone(), feed);
            }
            records.push(record);
        }
        Self {
            endpoint: endpoint(),
            records: Mutex::new(records),
            feeds: Mutex::new(named),
            listings: AtomicUsize::new(0),
            views: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            snapshots: AtomicUsize::new(0),
            states: Mutex::default(),
            state_gate,
            broken: AtomicBool::new(false),
            gate: Arc::new(gate),
            gated: None,
            reading: Arc::default(),
            restless: AtomicUsize::new(0),
            log: TestLog::default(),
        }
    }

    /// Changes what the operator says of a feed.
    pub(super) fn edit_record(&self, feed: &str, edit: impl FnOnce(&mut FeedRecord)) {
        let mut records = self.records.lock().unwrap();
        edit(records.iter_mut().find(|record| record.name == name(feed)).unwrap());
    }

    /// `news` (Atom), `radio` (RSS), `new` (no document yet), `dead` (deleted), `still` (paused).
    pub(super) fn with_news() -> Self {
        let atom = || Some(feed(Format::Atom10));
        Self::with(vec![
            (record("news", FeedStanding::Active), atom()),
            (record("radio", FeedStanding::Active), Some(feed(Format::Rss20))),
            (record("new", FeedStanding::Active), None),
            (record("dead", FeedStanding::Gone), atom()),
            (record("still", FeedStanding::Paused), atom()),
        ])
    }

    /// Changes the state of a feed, as a commit does.
    pub(super) fn edit(&self, feed: &str, edit: impl FnOnce(&mut Feed)) {
        let mut feeds = self.feeds.lock().unwrap();
        let feed = feeds.get_mut(&name(feed)).unwrap();
        edit(feed);
        feed.state.revision.0 += 1;
    }

    fn works(&self) -> Result<(), StoreError> {
        if self.broken.load(Ordering::SeqCst) {
            let source = std::io::Error::other("no disk");
            return Err(StoreError::Io { doing: "read", source });
        }
        Ok(())
    }

    fn feed(&self, feed: &FeedName) -> Result<Option<Feed>, StoreError> {
        self.works()?;
        Ok(self.feeds.lock().unwrap().get(feed).cloned())
    }
}

#[async_trait]
impl Store for TestStore {
    fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }
    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        Ok(Vec::new())
    }
    async fn put_subscriptions(&self, _: &[Subscription]) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    async fn claims(&self, _: u64, _: Duration) -> Result<Vec<Claim>, StoreError> {
        Ok(Vec::new())
    }
    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        self.works()?;
        self.listings.fetch_add(1, Ordering::SeqCst);
        Ok(self.records.lock().unwrap().clone())
    }
    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        self.records.lock().unwrap().push(record.clone());
        Ok(())
    }
    async fn purge_feed(&self, _: &FeedName) -> Result<(), StoreError> {
        Ok(())
    }
    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        self.states.lock().unwrap().push(std::thread::current().id());
        if let Ok(permit) = self.state_gate.acquire().await {
            permit.forget();
        }
        Ok(self.feed(feed)?.map(|feed| feed.state))
    }
    async fn snapshot(&self, feed: &FeedName) -> Result<Option<Snapshot>, StoreError> {
        self.snapshots.fetch_add(1, Ordering::SeqCst);
        let Some(feed) = self.feed(feed)? else { return Ok(None) };
        let known = feed.items.iter().map(known).collect();
        let contested = feed.items.iter().filter(|item| !item.shared.conflicts.is_empty());
        let contested =
            contested.map(|item| (item.shared.winner.id.clone(), item.shared.conflicts.clone()));
        Ok(Some(Snapshot {
            state: feed.state,
            known,
            order: feed.order,
            kept: Vec::new(),
            archives: Vec::new(),
            conflicts: contested.collect(),
        }))
    }
    async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        let items = self.feed(feed)?.map(|feed| feed.items).unwrap_or_default();
        let contested = items.iter().filter(|item| !item.shared.conflicts.is_empty());
        let mut ids: Vec<SyncId> = contested.map(|item| item.shared.winner.id.clone()).collect();
        ids.sort();
        Ok(ids)
    }
    async fn view(&self, feed: &FeedName, select: Select) -> Result<Option<View>, StoreError> {
        self.views.fetch_add(1, Ordering::SeqCst);
        if !self.gate.is_closed() && self.gated.is_none_or(|gated| gated == feed.as_str()) {
            let (gate, reading) = (Arc::clone(&self.gate), Arc::clone(&self.reading));
            let read = tokio::spawn(async move {
                let now = reading.0.fetch_add(1, Ordering::SeqCst) + 1;
                reading.1.fetch_max(now, Ordering::SeqCst);
                if let Ok(permit) = gate.acquire().await {
                    permit.forget();
                }
                reading.0.fetch_sub(1, Ordering::SeqCst);
            });
            read.await.unwrap();
        }
        let still =
            self.restless.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        if still.is_ok() {
            self.edit(feed.as_str(), |_| {});
        }
        let Some(feed) = self.feed(feed)? else { return Ok(None) };
        let all = feed.items;
        let items = match select {
            Select::Current => {
                let find =
                    |id: &SyncId| all.iter().find(|item| item.shared.winner.id == *id).cloned();
                feed.order.iter().filter_map(find).collect()
            }
            Select::After(tick) => all.into_iter().filter(|item| item.tick > tick).collect(),
            Select::All => all,
        };
        Ok(Some(View { state: feed.state, skeleton: feed.skeleton, items }))
    }
    async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        self.items.fetch_add(1, Ordering::SeqCst);
        let items = self.feed(feed)?.map(|feed| feed.items).unwrap_or_default();
        Ok(items.into_iter().find(|item| item.shared.winner.id == *id))
    }
    async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        let Some(item) = self.item(feed, id).await? else { return Ok(Vec::new()) };
        let note = VersionNote {
            updates: Count::ONE,
            update: item.shared.winner.history.topmost().clone(),
            deleted: item.shared.winner.deleted,
            tick: item.tick,
            shown: item.tick.time(),
            title: "<script>title</script>".to_owned(),
            reason: "<i>because</i>".to_owned(),
            size: 8,
        };
        Ok(vec![note; 1.min(limit)])
    }
    async fn known(&self, feed: &FeedName, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        Ok(self.item(feed, id).await?.map(|item| known(&item)))
    }
    async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let notes = self.versions(feed, id, 1).await?;
        let note = notes.into_iter().find(|note| note.updates == updates);
        let item = self.item(feed, id).await?.map(|item| item.shared.winner);
        let markup = item.filter(|item| !item.deleted).map(|item| item.data);
        Ok(note.map(|note| KeptVersion { note, markup }))
    }
    async fn past(&self, _: &FeedName, _: PastSelect, _: Time) -> Result<Option<Past>, StoreError> {
        Err(StoreError::Closed)
    }
    async fn holdings(&self, _: &FeedName) -> Result<Holdings, StoreError> {
        Ok(Holdings { versions: 4, version_bytes: 1234, ..Holdings::default() })
    }
    async fn prune(
        &self,
        _: &Claim,
        _: &FeedName,
        _: &Retention,
        _: Time,
    ) -> Result<Pruned, CommitError> {
        Err(CommitError::Fenced)
    }
    async fn trim_log(&self, _: &Claim, _: Time) -> Result<usize, CommitError> {
        Err(CommitError::Fenced)
    }
    async fn events(&self, _: &FeedName, _: usize) -> Result<Vec<Event>, StoreError> {
        Ok(vec![Event {
            kind: EventKind::Deleted,
            id: id("gone"),
            native_id: "urn:gone".to_owned(),
            old_native_id: None,
            title: "Gone".to_owned(),
            tick: Some(tick(-5 * DAY)),
            reason: "a hole that stayed".to_owned(),
            at: at(-5 * DAY),
            seen_gone: Some(at(-6 * DAY)),
        }])
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
    async fn commit(&self, _: &Claim, _: Change) -> Result<Committed, CommitError> {
        Err(CommitError::Fenced)
    }
    async fn checkpoint(&self, _: &Claim, _: &[PollState]) -> Result<(), CommitError> {
        Ok(())
    }
    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        Ok(Vec::new())
    }
    async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        Ok(self.log.epochs_after(after, limit))
    }
    fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.log.watch_epochs()
    }
    async fn export(&self, _: mpsc::Sender<portable::ExportRecord>) -> Result<(), StoreError> {
        Err(StoreError::Closed)
    }
    async fn import(
        &self,
        _: &Claim,
        _: mpsc::Receiver<portable::ExportRecord>,
    ) -> Result<(), CommitError> {
        Err(CommitError::Fenced)
    }
    async fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
