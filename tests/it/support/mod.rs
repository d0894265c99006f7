//! A feed and its publisher in a test: documents go in, verdicts come out, time is set by hand.

pub mod document;
pub mod gateways;
mod post;
pub mod process;
pub mod publisher;
pub mod shared_items;
pub mod sharing;

pub use post::{HOUR, Post, SITE, START, atom, channel, days, post, rss, with_deletions};
pub use tidegate_core::model::testing::name;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{
    BodyPrints, Decision, EndpointId, EventKind, FeedName, FeedOptions, Item, LedgerEntry,
    Snapshot, SyncId, Time, VERSIONS_PER_DAY,
};
use tidegate_format::parse::{self, Limits};
use tidegate_format::render::{Addresses, Container, Dialect, HistoryPlace, Page, ViewKind};
use tidegate_judge::probe::Replies;
use tidegate_judge::record::{self, Backfilled, DeletionError, Observation, Verdict};
use tidegate_store::portable::ImportMessage;
use tidegate_store::{Select, Store, View};
use tokio::sync::mpsc;

/// What most of the tests name.
pub mod prelude {
    pub use super::gateways::Asked;
    pub use super::{Dice, Gate, HOUR, Post, SITE, START};
    pub use super::{atom, channel, days, files, kinds, name, post, root, rss, with_deletions};
    pub use serde_json::{Value, json};
    pub use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
    pub use std::path::{Path, PathBuf};
    pub use std::sync::{Arc, Mutex};
    pub use std::time::Duration;
    pub use tidegate_core::model::*;
    pub use tidegate_store::{Select, Store, View};
}

/// A file or folder of the repository.
pub fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Every file below a folder, in order.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// The documents, `.xml`, `.json` or `.opml`, in a folder of the corpus that `TIDEGATE_CORPUS` names.
pub fn corpus(part: &str) -> Option<Vec<PathBuf>> {
    let Some(corpus) = std::env::var_os("TIDEGATE_CORPUS") else {
        println!("skipped: TIDEGATE_CORPUS is not set");
        return None;
    };
    let mut documents = files(&PathBuf::from(corpus).join(part));
    documents
        .retain(|path| path.extension().is_some_and(|e| e == "xml" || e == "json" || e == "opml"));
    Some(documents)
}

/// What is made of each of these on all processors, in no order.
pub fn on_all_processors<T: Sync, R: Send>(all: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (Mutex::new(all.iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let Some(one) = next.lock().unwrap().next() else { break };
            let made = make(one);
            done.lock().unwrap().push(made);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            scope.spawn(work);
        }
    });
    done.into_inner().unwrap()
}

/// So many parts of 256 of a text, from its beginning.
pub fn first_part(text: &str, part: u8) -> &str {
    let mut ends = (0..=text.len() * usize::from(part) / 256).rev();
    &text[..ends.find(|at| text.is_char_boundary(*at)).unwrap()]
}

/// Numbers that look random and are the same each time.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

pub fn addresses(feed: &str) -> Addresses {
    Addresses {
        reader: feed.to_owned(),
        sync: format!("{feed}/sync"),
        complete: format!("{feed}/complete"),
        ..Addresses::default()
    }
}

/// Everything of a view, as its publisher writes it, without bounds.
pub fn page<'a>(view: &'a View, addresses: &'a Addresses) -> Page<'a> {
    static ALONE: LazyLock<HistoryPlace> = LazyLock::new(HistoryPlace::default);
    Page {
        kind: ViewKind::Complete,
        container: Container::of(view.state.format),
        dialect: Dialect::Sse,
        addresses,
        state: &view.state,
        skeleton: &view.skeleton,
        items: &view.items,
        deleted: &[],
        history: &ALONE,
        since: None,
        until: None,
        expires: None,
        window: None,
    }
}

pub struct Gate {
    pub store: Arc<Store>,
    pub feed: FeedName,
    pub url: String,
    pub options: FeedOptions,
    pub versions_per_day: u32,
    pub items: usize,
    pub now: Time,
    /// How many seconds the wall clock is ahead of it.
    pub lead: i64,
    pub window: Duration,
    pub tombstones: Duration,
    pub archives: tidegate_judge::archive::Policy,
    /// Commits as a program does that makes fingerprints by another scheme, with other texts for the
    /// same bytes.
    pub other_scheme: bool,
    same: u32,
}

impl Gate {
    pub async fn new() -> Self {
        Self::named("gate.example").await
    }

    pub async fn named(endpoint: &str) -> Self {
        let clock = Arc::new(ManualClock::at(Time::from_unix(START)));
        let store = Store::in_memory(Some(EndpointId::own(endpoint).unwrap()), clock).unwrap();
        Self {
            store: Arc::new(store),
            feed: name("news"),
            url: SITE.to_owned(),
            options: FeedOptions::default(),
            versions_per_day: VERSIONS_PER_DAY,
            items: tidegate_judge::record::ITEMS_KEPT,
            now: Time::from_unix(START + 400 * 24 * HOUR),
            lead: 0,
            window: Duration::from_secs(30 * 24 * 3600),
            tombstones: tidegate_judge::record::TOMBSTONES_KEPT,
            archives: tidegate_judge::archive::Policy::default(),
            other_scheme: false,
            same: 0,
        }
    }

    pub fn later(&mut self, hours: i64) -> &mut Self {
        self.now = self.now.plus(Duration::from_secs((hours * HOUR).unsigned_abs()));
        self
    }

    pub fn wall(&self) -> Time {
        Time::from_unix(self.now.unix() + self.lead)
    }

    pub fn observation<'a>(&'a self, snapshot: Option<&'a Snapshot>) -> Observation<'a> {
        Observation {
            feed: &self.feed,
            url: &self.url,
            endpoint: self.store.endpoint(),
            options: &self.options,
            snapshot,
            now: self.wall(),
            running_now: self.now,
            tombstones: self.tombstones,
            versions_per_day: self.versions_per_day,
            items: self.items,
            window: self.window,
            archives: self.archives,
        }
    }

    /// Takes a document in at the present time and commits what comes of it.
    pub async fn take(&mut self, text: &str) -> Verdict {
        self.take_bytes(text.as_bytes()).await
    }

    pub async fn take_bytes(&mut self, bytes: &[u8]) -> Verdict {
        let limits = Limits::default();
        let snapshot = self.store.snapshot(&self.feed).await.unwrap();
        let body = xxhash_rust::xxh3::xxh3_128(bytes);
        let prints = BodyPrints { wire: body, body };
        let before = record::read_before(snapshot.as_ref(), prints);
        let decoded = parse::decode_as(bytes, None, before, &limits).unwrap();
        let mut document = parse::document(&decoded.text, None, &limits).unwrap();
        decoded.describe(&mut document);
        let names = record::ledger_query(&self.observation(snapshot.as_ref()), &[&document]).names;
        let snapshot = self.with_stubs(snapshot, &names).await;
        let mut kept = HashMap::new();
        for id in record::outdated(&self.observation(snapshot.as_ref()), &document) {
            let item = self.store.item(&self.feed, &id).await.unwrap().unwrap();
            kept.insert(id, item.shared.winner.data);
        }
        let ignore = &self.options.ignore;
        let snapshot = snapshot.map(|snapshot| record::refreshed(&snapshot, &kept, ignore));
        let verdict =
            record::take_in(&self.observation(snapshot.as_ref()), &document, prints).unwrap();
        self.commit(&verdict).await;
        verdict
    }

    async fn with_stubs(&self, snapshot: Option<Snapshot>, names: &[String]) -> Option<Snapshot> {
        let stubs = self.store.stubs(&self.feed, names).await.unwrap();
        snapshot.map(|snapshot| snapshot.with_stubs(stubs))
    }

    pub async fn posts(&mut self, posts: &[Post]) -> Verdict {
        self.take(&atom(SITE, posts)).await
    }

    pub async fn same(&mut self) -> Verdict {
        self.same += 1;
        let same = self.same;
        self.judge(|observation| record::decide_pending(observation, same)).await
    }

    /// Commits what is decided over what is stored.
    async fn judge(&mut self, decide: impl FnOnce(&Observation<'_>) -> Verdict) -> Verdict {
        let snapshot = self.store.snapshot(&self.feed).await.unwrap();
        let verdict = decide(&self.observation(snapshot.as_ref()));
        self.commit(&verdict).await;
        verdict
    }

    pub async fn known(&self, id: &str) -> LedgerEntry {
        let mut known = self.snapshot().await.known.into_iter();
        known.find(|known| known.published_id == id).unwrap()
    }

    /// Redacts the item of that title; the sync id, and what was decided.
    pub async fn redact(&mut self, title: &str) -> (SyncId, Option<Verdict>) {
        let mut known = self.snapshot().await.known.into_iter();
        let id = known.find(|known| known.title == title).unwrap().id;
        let done = self.redact_item(&id).await;
        (id, done)
    }

    pub async fn redact_item(&mut self, id: &SyncId) -> Option<Verdict> {
        let snapshot = self.store.snapshot(&self.feed).await.unwrap();
        let snapshot = self.with_stubs(snapshot, &[id.to_string()]).await.unwrap();
        let done =
            record::redact(&self.observation(Some(&snapshot)), id, "by court order").unwrap();
        if let Some(verdict) = &done {
            self.commit(verdict).await;
        }
        done
    }

    pub async fn delete_missing(&mut self, id: &SyncId) -> Result<Option<Verdict>, DeletionError> {
        let snapshot = self.store.snapshot(&self.feed).await.unwrap();
        let snapshot = self.with_stubs(snapshot, &[id.to_string()]).await.unwrap();
        let done = record::delete_missing(&self.observation(Some(&snapshot)), id);
        if let Ok(Some(verdict)) = &done {
            self.commit(verdict).await;
        }
        done
    }

    /// Takes in an older document of the publisher; `gone`: ids that newer ones say are deleted.
    pub async fn backfill(&mut self, text: &str, gone: &[&str]) -> Backfilled {
        let document = parse::document(text, None, &Limits::default()).unwrap();
        let snapshot = self.store.snapshot(&self.feed).await.unwrap();
        let names = record::ledger_query(&self.observation(snapshot.as_ref()), &[&document]).names;
        let snapshot = self.with_stubs(snapshot, &names).await;
        let is_gone = |id: &str| gone.contains(&id);
        let backfilled =
            record::backfill(&self.observation(snapshot.as_ref()), &document, is_gone).unwrap();
        self.commit(&backfilled.verdict).await;
        backfilled
    }

    pub async fn age(&mut self) -> Verdict {
        self.judge(record::age).await
    }

    pub async fn answered(&mut self, replies: &Replies) -> Verdict {
        let same = self.same;
        self.judge(|observation| record::judge_replies(observation, replies, same)).await
    }

    pub async fn commit(&mut self, verdict: &Verdict) {
        if let Some(mut change) = verdict.change.clone() {
            if self.other_scheme {
                for known in &mut change.known {
                    known.noise.scheme = 0;
                    known.noise.shape ^= 1;
                    known.noise.traces = known.noise.traces.map(|trace| trace ^ 1);
                    known.prints.iter_mut().for_each(|print| print.1 ^= 1);
                    for field in &mut known.noise.restless {
                        field.value ^= 1;
                        field.spans.iter_mut().for_each(|span| span.value ^= 1);
                    }
                }
                change.state.told.scheme = 0;
                change.state.told.told ^= 1;
                change.state.told.latest ^= 1;
            }
            self.store.commit(change).await.unwrap();
            self.same = 0;
        }
    }

    pub async fn items(&self, select: Select) -> Vec<Item> {
        self.store.view(&self.feed, select).await.unwrap().unwrap().items
    }

    /// What a reader would see: (published id, title).
    pub async fn reader(&self) -> Vec<(String, String)> {
        let items = self.items(Select::Current).await;
        items.into_iter().map(|i| (i.published_id, i.shared.winner.data.card.title)).collect()
    }

    pub async fn snapshot(&self) -> Snapshot {
        self.store.snapshot(&self.feed).await.unwrap().unwrap()
    }

    /// The titles of the entries that were seen only in held documents.
    pub async fn kept(&self) -> Vec<String> {
        let kept = self.snapshot().await.kept;
        kept.iter().map(|k| k.entry.title.as_deref().unwrap().to_owned()).collect()
    }

    pub async fn decide(&mut self, decision: Decision) {
        self.judge(|observation| record::decide(observation, decision)).await;
    }

    pub async fn store_state(&self) -> tidegate_core::model::FeedState {
        self.store.state(&self.feed).await.unwrap().unwrap()
    }

    /// The kinds of everything that happened, oldest first.
    pub async fn store_events(&self) -> Vec<EventKind> {
        let events = self.store.events(&self.feed, 500).await.unwrap();
        events.iter().rev().map(|e| e.kind).collect()
    }

    /// The store is lost now, and brought back from a copy that was made after the last commit.
    pub async fn restore(&mut self) {
        self.carry(true).await;
    }

    /// All that the store has goes into a new one; `restored`: it may have gone on since.
    pub async fn carry(&mut self, restored: bool) {
        let (sender, mut carried) = mpsc::channel(100_000);
        self.store.export(sender).await.unwrap();
        let (sender, pieces) = mpsc::channel(100_000);
        while let Some(piece) = carried.recv().await {
            sender.send(ImportMessage::Record(piece)).await.unwrap();
        }
        sender.send(ImportMessage::End).await.unwrap();
        let now = if restored { self.now } else { Time::from_unix(START) };
        let (endpoint, clock) = (self.store.endpoint().clone(), Arc::new(ManualClock::at(now)));
        self.store = Arc::new(Store::in_memory(Some(endpoint), clock).unwrap());
        self.store.import(pieces, restored).await.unwrap();
    }
}

/// The kinds of a verdict's events, in order.
pub fn kinds(verdict: &Verdict) -> Vec<EventKind> {
    verdict.events().iter().map(|e| e.kind).collect()
}
