//! A store in memory for tests of whatever stands on a store: what it is asked is seen, what it does fails or waits as a
//! test says, and what another gateway or an earlier program would have left there is put there.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod script;
mod store;

pub use self::script::StoreFault;

use self::script::StoreScript;
use super::feed_writer::FeedWriter;
use super::follow;
use super::open::{self, inspect};
use super::*;
use crate::engine::{Class, Engine, EngineCall, WatchedEngine, Writes};
use crate::record::{FrameRecord, ItemRecord, Record, StateRecord, TextRecord};
use crate::{Epoch, LoggedChange, MeasuredSpace, StoreStop, VersionNote, since_boot};
use std::ops::Deref;
use std::time::Duration;
use tidegate_core::model::{
    Attempt, Event, FeedName, FeedRecord, FeedState, Item, LedgerEntry, Lineage, PollState,
    Skeleton, SyncId, Time,
};
use tokio::sync::{OwnedRwLockWriteGuard, OwnedSemaphorePermit, watch};

/// An item of a feed as it is to be stored.
#[derive(Clone)]
pub struct ScriptedItem {
    pub known: LedgerEntry,
    pub item: Item,
    /// Of its only version.
    pub note: VersionNote,
}

/// A feed as it is to be stored, whether any change leads there or not.
#[derive(Clone)]
pub struct ScriptedFeed {
    pub state: FeedState,
    pub skeleton: Option<Skeleton>,
    pub order: Vec<SyncId>,
    pub items: Vec<ScriptedItem>,
    pub events: Vec<Event>,
}

/// A store in memory that does what a test says. Whatever waits does so in the time of the test.
#[derive(Clone)]
pub struct ScriptedStore {
    store: Arc<Store>,
    /// What it has, past what is seen and fails.
    engine: Arc<MemoryEngine>,
    script: Arc<StoreScript>,
}

impl Deref for ScriptedStore {
    type Target = Arc<Store>;

    fn deref(&self) -> &Arc<Store> {
        &self.store
    }
}

impl ScriptedStore {
    pub fn new(endpoint: &str, clock: Arc<dyn Clock>) -> Self {
        Self::make(endpoint, clock, false, false)
    }

    /// The same over a database that others write to as well, which is seen all the time.
    pub fn followed(endpoint: &str, clock: Arc<dyn Clock>) -> Self {
        Self::make(endpoint, clock, true, false)
    }

    /// The same, reached by a network: [`ScriptedStore::hold_reads`].
    pub fn far(endpoint: &str, clock: Arc<dyn Clock>) -> Self {
        Self::make(endpoint, clock, true, true)
    }

    fn make(endpoint: &str, clock: Arc<dyn Clock>, is_followed: bool, blocks: bool) -> Self {
        let script = Arc::new(StoreScript::default());
        let seen = Arc::clone(&script);
        let watch = Box::new(move |call: EngineCall<'_>| seen.see(call));
        let memory = Arc::new(MemoryEngine::default());
        let engine = WatchedEngine { engine: Arc::<MemoryEngine>::clone(&memory), watch };
        let records = Records::new(Arc::new(engine));
        let request = OpenRequest { endpoint: EndpointId::own(endpoint).ok(), sup_ids: None };
        let opened = open::begin(&records, inspect(&records).unwrap(), request).unwrap();
        let (mut identity, found) = opened;
        identity.lineage = Lineage::default();
        let newest = found.newest;
        let shared = Arc::new(StoreShared::new((identity, found), clock));
        let committer = Committer::new(records.clone(), None, &shared, (0, newest));
        let (sender, requests) = mpsc::channel(REQUESTS);
        let (following, looked) = Following::new(Duration::from_millis(50));
        following.seen.store(u64::MAX, Ordering::SeqCst);
        let following = is_followed.then_some(following);
        let open = OpenStore { records, writer: Writer::Thread(sender), folder: None };
        let inner = StoreInner::new(shared, open, blocks, following);
        let free = Arc::clone(&script);
        let measure = move || {
            let free = free.free.load(Ordering::SeqCst);
            Ok(MeasuredSpace { free, total: u64::MAX })
        };
        let space = Arc::new(FreeSpace::measured_by(256 << 20, measure));
        let store = Arc::new(Store::new(inner).with_space(space));
        let this = Self { store, engine: memory, script };
        if tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(write(committer, requests, Arc::clone(&this.script)));
            if is_followed {
                let (store, script) = (Arc::downgrade(&this.store), Arc::clone(&this.script));
                tokio::spawn(refresh(store, (script, looked), Arc::clone(&this.engine)));
            }
        }
        this.script.reads.lock().unwrap().clear();
        this
    }

    /// The same store as one of several gateways sees it.
    pub fn shared_by(&self, gateways: &Arc<Gateways>) -> Arc<Self> {
        let Store { endpoint, sup_ids, space, inner, .. } = &*self.store;
        let store = Arc::new(Store {
            endpoint: endpoint.clone(),
            sup_ids: *sup_ids,
            gateways: Some(Arc::clone(gateways)),
            space: space.clone(),
            inner: Arc::clone(inner),
        });
        // Whoever is let go first would close it for all.
        std::mem::forget([Arc::clone(&self.store), Arc::clone(&store)]);
        Arc::new(Self { store, ..self.clone() })
    }

    pub fn real(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    fn records(&self) -> Records {
        Records::new(Arc::<MemoryEngine>::clone(&self.engine))
    }

    fn put<T: Record>(&self, class: Class, key: Vec<u8>, record: &T) {
        let mut writes = Writes::new();
        self.records().put(&mut writes, class, key, record).unwrap();
        self.apply(writes);
    }

    fn apply(&self, writes: Writes) {
        self.engine.apply(writes).unwrap();
    }

    pub fn fault(&self, fault: StoreFault) {
        self.script.faults.lock().unwrap().push(fault);
    }

    pub fn mend(&self) {
        self.script.faults.lock().unwrap().clear();
    }

    pub fn set_stop(&self, stop: Option<StoreStop>) {
        self.inner.shared.health.set(stop);
    }

    pub fn set_lineage(&self, lineage: Lineage) {
        self.inner.shared.identity.write().unwrap().lineage = lineage;
    }

    /// How often entries of a class were read, or those whose keys end so.
    pub fn reads_of(&self, class: &str) -> usize {
        let reads = self.script.reads.lock().unwrap();
        let is_of =
            |read: &Class, key: &[u8]| read.name() == class || key.ends_with(class.as_bytes());
        reads.iter().filter(|(read, key)| is_of(read, key)).count()
    }

    /// The feeds of which entries of a class were read since this was asked last, by name.
    pub fn take_reads(&self, class: &str) -> Vec<String> {
        let mut reads = self.script.reads.lock().unwrap();
        let of = reads.extract_if(.., |(read, _)| read.name() == class);
        let name = |key: &[u8]| {
            let end = key.iter().position(|byte| *byte == 0)?;
            Some(keys::feed_name(key.get(..=end)?)?.to_string())
        };
        let mut feeds: Vec<String> = of.filter_map(|(_, key)| name(&key)).collect();
        feeds.sort();
        feeds
    }

    pub fn writes_of(&self, class: &str) -> usize {
        let writes = self.script.writes.lock().unwrap();
        writes.iter().filter(|written| written.name() == class).count()
    }

    /// The commits so far, and how often was written what polling remembers.
    pub fn writes(&self) -> (usize, usize) {
        (self.writes_of("states"), self.writes_of("polls"))
    }

    pub fn begun(&self) -> usize {
        self.script.begun.load(Ordering::SeqCst)
    }

    /// From now on each write of the content of a feed waits for a permit.
    pub fn hold_commits(&self) -> Arc<Semaphore> {
        self.hold(0)
    }

    /// The same of each other write.
    pub fn hold_notes(&self) -> Arc<Semaphore> {
        self.hold(1)
    }

    fn hold(&self, gate: usize) -> Arc<Semaphore> {
        let held = Arc::new(Semaphore::new(0));
        *self.script.gates.get(gate).unwrap().lock().unwrap() = Some(Arc::clone(&held));
        held
    }

    pub fn set_free(&self, free: u64) {
        self.script.free.store(free, Ordering::SeqCst);
        self.space.as_ref().unwrap().measure();
    }

    /// Reads of a feed's content wait for this to be let go.
    pub fn hold_feed(&self, feed: &FeedName) -> OwnedRwLockWriteGuard<()> {
        self.inner.shared.locks.lock_of(feed).try_write_owned().unwrap()
    }

    pub fn waiting(&self, feed: &FeedName) -> usize {
        // But for this one and whoever holds it.
        Arc::strong_count(&self.inner.shared.locks.lock_of(feed)).saturating_sub(2)
    }

    /// All reads of a database that is far wait for this to be let go.
    pub async fn hold_reads(&self) -> OwnedSemaphorePermit {
        self.inner.acquire_all_read_permits().await.unwrap()
    }

    /// What other gateways write is seen no more, or again; what was read before is answered as long as it is not old.
    pub fn set_unseen(&self, is_unseen: bool) {
        self.script.is_unseen.store(is_unseen, Ordering::SeqCst);
    }

    /// The database was seen so long ago; `None`: it is seen all the time.
    pub fn set_age(&self, age: Option<Duration>) {
        let seen = age.map_or(u64::MAX, |age| follow::millis(since_boot().saturating_sub(age)));
        self.inner.following.as_ref().unwrap().seen.store(seen, Ordering::SeqCst);
    }

    pub fn looks(&self) -> usize {
        self.script.looks.load(Ordering::SeqCst)
    }

    /// This happens before each read of entries of a class.
    pub fn at_read(&self, class: &'static str, hook: impl Fn() + Send + Sync + 'static) {
        *self.script.at_read.lock().unwrap() = Some((class, Arc::new(hook)));
    }

    pub fn at_look(&self, write: impl FnOnce(&Self) + Send + 'static) {
        *self.script.at_look.lock().unwrap() = Some(Box::new(write));
    }

    pub fn set_record(&self, record: &FeedRecord) {
        self.put(Class::Feeds, keys::feed(&record.name), record);
        let shown = (record.name.clone(), Some(Arc::new(record.clone())));
        self.inner.shared.change_list(vec![shown]);
    }

    pub fn record(&self, feed: &FeedName) -> Option<FeedRecord> {
        self.records().record(Class::Feeds, &keys::feed(feed)).unwrap()
    }

    pub fn edit_record(&self, feed: &str, edit: impl FnOnce(&mut FeedRecord)) {
        let mut record = self.record(&FeedName::new(feed).unwrap()).unwrap();
        edit(&mut record);
        self.set_record(&record);
    }

    pub fn remove_record(&self, feed: &FeedName) -> FeedRecord {
        let record = self.record(feed).unwrap();
        self.apply(Writes::from([((Class::Feeds, keys::feed(feed)), None)]));
        self.inner.shared.change_list(vec![(feed.clone(), None)]);
        record
    }

    pub fn poll_state(&self, feed: &str) -> Option<PollState> {
        let key = keys::feed(&FeedName::new(feed).unwrap());
        self.records().record(Class::Polls, &key).unwrap()
    }

    pub fn stored_polls(&self) -> Vec<PollState> {
        self.records().list(Class::Polls, &[]).unwrap()
    }

    pub fn set_polls(&self, states: &[PollState]) {
        while self.records().clear(Class::Polls, &[]).unwrap() {}
        states.iter().for_each(|state| self.set_poll(state));
    }

    pub fn set_poll(&self, state: &PollState) {
        self.put(Class::Polls, keys::feed(&state.feed), state);
    }

    pub fn stored_attempts(&self) -> Vec<Attempt> {
        self.records().list(Class::Marks, keys::ATTEMPT).unwrap()
    }

    pub fn set_attempt(&self, attempt: &Attempt) {
        self.put(Class::Marks, keys::of_kind(keys::ATTEMPT, &attempt.feed), attempt);
    }

    pub fn state_of(&self, feed: &str) -> FeedState {
        self.inner.shared.state(&FeedName::new(feed).unwrap()).unwrap().unwrap()
    }

    pub fn set_state(&self, feed: &FeedName, state: FeedState, asked_at: Option<Time>) {
        let before = self.inner.shared.head(feed).unwrap();
        let (next_event, write) = before.map_or((0, 0), |it| (it.next_event, it.write));
        let head = StateRecord { state, next_event, write: write + 1, asked_at };
        self.put(Class::States, keys::feed(feed), &head);
        self.inner.shared.publish(feed, Some(head));
    }

    pub fn set_feed(&self, feed: &FeedName, new: &ScriptedFeed) {
        for (class, prefix) in purge::content(feed) {
            while self.records().clear(class, &prefix).unwrap() {}
        }
        let ScriptedFeed { state, skeleton, order, items, events } = new;
        let (order, skeleton) = (order.clone(), skeleton.clone());
        let frame = FrameRecord { since: state.updated_at, run: 0, order, skeleton };
        self.put(Class::Frames, keys::feed(feed), &frame);
        let (records, mut writes) = (self.records(), Writes::new());
        for ScriptedItem { known, item, note } in items {
            let (id, tick) = (&known.id, known.tick);
            let conflicts = item.shared.conflicts.clone();
            if !conflicts.is_empty() {
                writes.insert((Class::Index, keys::contested(feed, id)), Some(Vec::new()));
            }
            let body = records.encoded(&item.shared.winner.data, String::new).unwrap();
            let text = TextRecord { note: Some(note.clone()), body: Some(body.into()) };
            records.put_text(&mut writes, keys::version(feed, id, tick), &text).unwrap();
            FeedWriter { codec: &records, name: feed, writes: &mut writes }.put_tick(known);
            let item = ItemRecord { kept: 1, conflicts, ..ItemRecord::new(known.clone()) };
            records.put(&mut writes, Class::Items, keys::item(feed, id), &item).unwrap();
        }
        self.apply(writes);
        if !events.is_empty() {
            self.put(Class::Events, keys::numbered(feed, 0), events);
        }
        let contested = items.iter().filter(|it| !it.item.shared.conflicts.is_empty()).count();
        let contested = u32::try_from(contested).unwrap();
        self.set_state(feed, FeedState { contested, ..state.clone() }, None);
    }

    /// Closes an epoch of the change log; answers its number.
    pub fn close_epoch(&self, at: Time, changes: &[LoggedChange]) -> u64 {
        let shared = &self.inner.shared;
        let epoch = Epoch(shared.newest.borrow().0 + 1);
        let mut writes = Writes::new();
        for (place, change) in (0..).zip(changes) {
            committer::log(&self.records(), &mut writes, (epoch, place, at), change).unwrap();
        }
        self.apply(writes);
        shared.newest.send_replace(epoch);
        shared.announced.send_replace(epoch);
        epoch.0
    }

    pub fn trim_to(&self, epoch: u64) {
        let old = self.records();
        let old = old.entries(Class::Log, &[]).map(|entry| entry.unwrap().0);
        let old = old.filter(|key| keys::log_epoch(key).unwrap() <= epoch);
        self.apply(old.map(|key| ((Class::Log, key), None)).collect());
    }
}

/// What waits for a gate keeps nothing else waiting.
async fn write(
    committer: Committer,
    mut requests: mpsc::Receiver<CommitRequest>,
    script: Arc<StoreScript>,
) {
    let committer = Arc::new(Mutex::new(committer));
    while let Some(request) = requests.recv().await {
        let is_note = !request.is_of_feed;
        script.begun.fetch_add(is_note.into(), Ordering::SeqCst);
        let gate = script.gates.get(usize::from(is_note)).unwrap().lock().unwrap().clone();
        let (committer, script) = (Arc::clone(&committer), Arc::clone(&script));
        let Some(gate) = gate else {
            serve(&mut committer.lock().unwrap(), request, &script);
            continue;
        };
        tokio::spawn(async move {
            gate.acquire().await.unwrap().forget();
            serve(&mut committer.lock().unwrap(), request, &script);
        });
    }
}

/// Goes on after a failure with what the database has.
fn serve(committer: &mut Committer, request: CommitRequest, script: &StoreScript) {
    let shared = Arc::clone(&committer.shared);
    let worked = shared.health().is_ok();
    committer.newest.0 = committer.newest.0.max(*shared.newest.borrow());
    committer.serve(vec![request]);
    if worked && shared.health().is_err() {
        let faults = std::mem::take(&mut *script.faults.lock().unwrap());
        let mut found = inspect(&committer.records).unwrap();
        *script.faults.lock().unwrap() = faults;
        (committer.list_writes, committer.newest) = (found.list_writes, found.newest);
        let identity = found.identity.take().unwrap();
        shared.replace((identity, found));
        shared.health.set(None);
    }
}

/// Looks at what other gateways write, as the test says.
async fn refresh(
    store: std::sync::Weak<Store>,
    (script, looked): (Arc<StoreScript>, watch::Sender<u64>),
    engine: Arc<MemoryEngine>,
) {
    let Some(following) = store.upgrade().and_then(|it| it.inner.following.clone()) else { return };
    loop {
        following.asked.notified().await;
        let number = following.begun.fetch_add(1, Ordering::SeqCst) + 1;
        script.looks.fetch_add(1, Ordering::SeqCst);
        let found = script.at_look.lock().unwrap().take();
        let Some(store) = store.upgrade() else { return };
        if let Some(write) = found {
            let (engine, script) = (Arc::clone(&engine), Arc::clone(&script));
            write(&ScriptedStore { store, engine, script });
        }
        if !script.is_unseen.load(Ordering::SeqCst) {
            looked.send_replace(number);
        }
    }
}
