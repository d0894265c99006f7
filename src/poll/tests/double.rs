//! Doubles for the store, the publisher and the judge.

use crate::clock::ManualClock;
use crate::fetch::{Answer, Document, Fetch, FetchError, FetchRequest, Fetched, Validators};
use crate::model::*;
use crate::poll::*;
use crate::record::{BodyPrints, Round, Verdict};
use crate::store::*;
use async_trait::async_trait;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use xxhash_rust::xxh3::xxh3_128;

pub const NOW: Time = Time::from_unix(1_795_191_605);

pub fn name(text: &str) -> FeedName {
    FeedName::new(text).unwrap()
}

pub fn record(feed: &str) -> FeedRecord {
    FeedRecord {
        name: name(feed),
        url: format!("http://{feed}.example/feed"),
        source: FeedSource::Api,
        standing: FeedStanding::Active,
        options: FeedOptions::default(),
    }
}

/// What goes wrong with the next commits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Conflict,
    /// It is stored, and nobody can tell.
    StoredUnknown,
    /// It is not stored, and nobody can tell.
    LostUnknown,
}

#[derive(Default)]
pub struct Shelf {
    pub snapshots: HashMap<FeedName, Snapshot>,
    pub feeds: Vec<FeedRecord>,
    pub poll_states: HashMap<FeedName, PollState>,
    pub trouble: Vec<Trouble>,
    pub commits: u32,
    pub checkpoints: u32,
}

pub struct StoreDouble {
    pub shelf: Mutex<Shelf>,
    endpoint: EndpointId,
}

impl StoreDouble {
    pub fn new(feeds: &[&str]) -> Arc<Self> {
        let feeds = feeds.iter().map(|feed| record(feed)).collect();
        let shelf = Shelf { feeds, ..Shelf::default() };
        let endpoint = EndpointId::own("here").unwrap();
        Arc::new(Self { shelf: Mutex::new(shelf), endpoint })
    }

    pub fn state_of(&self, feed: &str) -> FeedState {
        self.shelf.lock().unwrap().snapshots[&name(feed)].state.clone()
    }

    pub fn writes(&self) -> (u32, u32) {
        let shelf = self.shelf.lock().unwrap();
        (shelf.commits, shelf.checkpoints)
    }
}

impl Shelf {
    fn apply(&mut self, change: Change) -> Revision {
        self.commits += 1;
        let revision = Revision(change.base.0 + 1);
        let mut state = change.state;
        state.revision = revision;
        let order = change.order.unwrap_or_default();
        self.snapshots.insert(change.feed, Snapshot { state, known: change.known, order });
        revision
    }
}

#[async_trait]
impl Store for StoreDouble {
    fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }
    async fn claims(&self, _: u64, _: Duration) -> Result<Vec<Claim>, StoreError> {
        Ok(vec![Claim { shard: 0, fence: 1 }])
    }
    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        Ok(self.shelf.lock().unwrap().feeds.clone())
    }
    async fn put_feed(&self, _: &FeedRecord) -> Result<(), StoreError> {
        Err(StoreError::Closed)
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
    async fn view(&self, _: &FeedName, _: Select) -> Result<Option<View>, StoreError> {
        Err(StoreError::Closed)
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
        Err(StoreError::Closed)
    }
    async fn events(&self, _: &FeedName, _: usize) -> Result<Vec<Event>, StoreError> {
        Err(StoreError::Closed)
    }
    async fn commit(&self, _: &Claim, change: Change) -> Result<Committed, CommitError> {
        let mut shelf = self.shelf.lock().unwrap();
        let base = shelf.snapshots.get(&change.feed).map_or(Revision(0), |s| s.state.revision);
        match shelf.trouble.pop() {
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
            None => {}
        }
        if change.base != base {
            return Err(CommitError::Conflict(base));
        }
        Ok(Committed { revision: shelf.apply(change), epoch: None })
    }
    async fn checkpoint(&self, _: &Claim, states: &[PollState]) -> Result<(), CommitError> {
        let mut shelf = self.shelf.lock().unwrap();
        shelf.checkpoints += 1;
        for state in states {
            shelf.poll_states.insert(state.feed.clone(), state.clone());
        }
        Ok(())
    }
    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        Ok(self.shelf.lock().unwrap().poll_states.values().cloned().collect())
    }
    async fn tail(&self, _: Epoch, _: usize) -> Result<Vec<Sealed>, StoreError> {
        Err(StoreError::Closed)
    }
    fn sealed(&self) -> watch::Receiver<Epoch> {
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
        render: base.map_or(0, |base| base.state.render) + 1,
        shown: now,
        format: Format::Atom10,
        says_complete: false,
        wire: prints.wire,
        body: prints.body,
        head: 0,
        site: None,
        character: Character::default(),
        hold: None,
        ripens: None,
        current: 1,
        living: 1,
        tombstones: 0,
        minted: 1,
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

/// Takes every document for a change with one new item, but for a few words.
#[derive(Default)]
pub struct JudgeDouble {
    /// The counts of equal observations that it was told.
    pub looked: Mutex<Vec<u32>>,
}

impl Judge for JudgeDouble {
    fn take_in(&self, round: &Round<'_>, seen: &Seen) -> Result<Judged, JudgeError> {
        let text = String::from_utf8_lossy(&seen.bytes).into_owned();
        assert!(!text.contains("panic"), "as the document says");
        if text.contains("login") {
            return Err(JudgeError::Unreadable("the publisher sent a web page".into()));
        }
        let mut change = change(round, seen.prints, EventKind::Created);
        if text.contains("missing") {
            change.state.ripens = Some(round.now.plus(Duration::from_secs(600)));
            change.events.clear();
            change.state.render -= 1;
        }
        if text.contains("empty") {
            change.state.ripens = Some(round.now.plus(Duration::from_secs(600)));
            change.events.clear();
            change.state.render -= 1;
            change.state.hold = Some(Hold {
                reason: "it is empty".into(),
                kind: "empty".into(),
                since: round.now,
                observations: 1,
                shape: 0,
            });
        }
        let trivial = text.contains("trivial");
        let look_again = change.state.ripens;
        let held = change.state.hold.as_ref().map(|hold| hold.reason.clone());
        Ok(Judged {
            verdict: Verdict { change: (!trivial).then_some(change), held, look_again },
            hints: UpdateHints { ttl: Some(Duration::from_secs(1200)), ..UpdateHints::default() },
            full: !text.contains("salvaged"),
            entries: 1,
            warnings: Vec::new(),
        })
    }

    fn look_again(&self, round: &Round<'_>, same: u32) -> Result<Verdict, JudgeError> {
        self.looked.lock().unwrap().push(same);
        let known = &round.snapshot.unwrap().state;
        let prints = BodyPrints { wire: known.wire, body: known.body };
        let change = change(round, prints, EventKind::Deleted);
        Ok(Verdict { change: Some(change), held: None, look_again: None })
    }
}

fn change(round: &Round<'_>, prints: BodyPrints, kind: EventKind) -> Change {
    let state = state(round.snapshot, prints, round.now);
    Change {
        feed: round.feed.clone(),
        base: round.snapshot.map_or(Revision(0), |snapshot| snapshot.state.revision),
        at: round.now,
        tick: state.tick,
        events: vec![event(kind, state.tick)],
        state,
        skeleton: None,
        order: None,
        known: Vec::new(),
        versions: Vec::new(),
        latest: Vec::new(),
    }
}

/// A publisher that answers what it is told to, once it is let.
pub struct Publisher {
    pub answer: Mutex<Result<(&'static str, &'static str), FetchError>>,
    pub asked: Mutex<Vec<FetchRequest>>,
    /// One permit lets one answer out.
    pub gate: Option<Semaphore>,
}

impl Publisher {
    pub fn new(text: &'static str) -> Arc<Self> {
        let answer = Mutex::new(Ok((text, "1")));
        Arc::new(Self { answer, asked: Mutex::default(), gate: None })
    }

    pub fn gated(text: &'static str) -> Arc<Self> {
        let answer = Mutex::new(Ok((text, "1")));
        Arc::new(Self { answer, asked: Mutex::default(), gate: Some(Semaphore::new(0)) })
    }

    pub fn says(&self, text: &'static str, etag: &'static str) {
        *self.answer.lock().unwrap() = Ok((text, etag));
    }

    pub fn fails(&self, error: FetchError) {
        *self.answer.lock().unwrap() = Err(error);
    }

    pub fn requests(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub fn fetch(self: &Arc<Self>) -> Fetch {
        let publisher = Arc::clone(self);
        Fetch::new(tower::service_fn(move |request: FetchRequest| {
            let publisher = Arc::clone(&publisher);
            async move {
                publisher.asked.lock().unwrap().push(request.clone());
                if let Some(gate) = &publisher.gate {
                    gate.acquire().await.unwrap().forget();
                }
                publisher.reply(&request)
            }
        }))
    }

    /// Answers as a server and the client before it would. White space at the ends is taken for
    /// what differs over the wire and not once decompressed.
    fn reply(&self, request: &FetchRequest) -> Result<Fetched, FetchError> {
        let (text, etag) = self.answer.lock().unwrap().clone()?;
        let print = xxh3_128(text.as_bytes());
        let known = request.validators.etag.as_deref() == Some(etag);
        let answer = if known {
            Answer::NotModified
        } else if request.known_wire == Some(print) && !text.contains("delta") {
            Answer::Same
        } else {
            Answer::Document(Document {
                bytes: Bytes::from_static(text.as_bytes()),
                content_type: None,
                prints: BodyPrints { wire: print, body: xxh3_128(text.trim().as_bytes()) },
                delta: text.contains("delta"),
            })
        };
        Ok(Fetched {
            answer,
            status: if known { 304 } else { 200 },
            validators: Validators {
                etag: Some(etag.to_owned()),
                last_modified: None,
                answered_by: Some(request.url.clone()),
            },
            freshness: None,
            final_url: request.url.clone(),
            moved_to: text.contains("moved").then(|| "http://new.example/".to_owned()),
            wire_bytes: if known { 0 } else { text.len() as u64 },
            notes: Vec::new(),
        })
    }
}

/// A gateway without a network.
pub struct Gateway {
    pub store: Arc<StoreDouble>,
    pub publisher: Arc<Publisher>,
    pub judge: Arc<JudgeDouble>,
    pub clock: ManualClock,
    pub poller: Poller,
    pub cancel: CancellationToken,
    pub task: JoinHandle<()>,
}

impl Gateway {
    pub async fn start(store: &Arc<StoreDouble>, publisher: &Arc<Publisher>) -> Self {
        let clock = ManualClock::at(NOW);
        let judge = Arc::new(JudgeDouble::default());
        let cancel = CancellationToken::new();
        let parts = Parts {
            settings: PollSettings::default(),
            store: Arc::clone(store) as Arc<dyn Store>,
            clock: Arc::new(clock.clone()),
            fetch: publisher.fetch(),
            judge: Arc::clone(&judge) as Arc<dyn Judge>,
            cancel: cancel.clone(),
        };
        let (poller, task) = Poller::start(parts).await.unwrap();
        let (store, publisher) = (Arc::clone(store), Arc::clone(publisher));
        Self { store, publisher, judge, clock, poller, cancel, task }
    }

    /// A gateway whose feed `news` has been polled for the first time.
    pub async fn with_news(text: &'static str) -> Self {
        let gateway = Self::start(&StoreDouble::new(&["news"]), &Publisher::new(text)).await;
        gateway.polls("news", 1).await;
        gateway
    }

    pub async fn poll(&self) -> PollReport {
        self.poller.poll_now(&name("news")).await.unwrap()
    }

    pub fn status(&self) -> FeedStatus {
        self.poller.status(&name("news")).unwrap()
    }

    /// Waits until so many polls of a feed are over.
    pub async fn polls(&self, feed: &str, polls: u64) {
        let feed = name(feed);
        eventually(|| self.poller.status(&feed).is_some_and(|s| s.totals.polls() >= polls)).await;
    }

    pub async fn stop(self) -> Arc<StoreDouble> {
        self.cancel.cancel();
        self.task.await.unwrap();
        self.store
    }
}

/// Waits until something holds, and fails only after a time in which anything would have happened.
pub async fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never came about");
}
