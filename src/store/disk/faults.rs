//! What can go wrong with a store on disk, and what must not happen then.

mod barrier;
pub(crate) mod damage;
mod folder;
mod leaks;
mod reopen;

use super::folder::StoreFolder;
use super::{DiskRequest, OpenRequest, WrapEngine};
use crate::Store;
use crate::StoreError;
use crate::embedded::ReopenPauses;
use crate::engine::Engine;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::*;

pub(crate) fn open(path: &Path) -> Result<Store, StoreError> {
    open_as(path, Some("gate.example"))
}

fn open_as(path: &Path, endpoint: Option<&str>) -> Result<Store, StoreError> {
    let endpoint = endpoint.map(|endpoint| EndpointId::own(endpoint).unwrap());
    Store::open_on_disk(DiskRequest::new(path, endpoint), clock())
}

/// A store whose engine has something before it.
fn open_with(
    path: &Path,
    pauses: ReopenPauses,
    wrap: Box<WrapEngine>,
) -> Result<Store, StoreError> {
    let folder = Arc::new(StoreFolder::take(path)?);
    super::StoreOpener { folder, wrap, pauses }.open(OpenRequest::default(), clock())
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)))
}

/// A store, and the database below it.
pub(crate) fn open_raw(path: &Path) -> (Store, Arc<dyn Engine>) {
    let found = Arc::new(std::sync::Mutex::new(None));
    let place = Arc::clone(&found);
    let wrap = Box::new(move |engine: Arc<dyn Engine>| {
        *place.lock().unwrap() = Some(Arc::clone(&engine));
        engine
    });
    let store = open_with(path, ReopenPauses::default(), wrap);
    let engine = found.lock().unwrap().take();
    (store.unwrap(), engine.unwrap())
}

/// The error of an opening that must fail.
pub(crate) fn refused(result: Result<Store, StoreError>) -> StoreError {
    match result {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

pub(crate) fn news() -> FeedName {
    FeedName::new("news").unwrap()
}

/// A change to one item of the feed `news`, on top of what the store has.
pub(crate) async fn change(store: &Store, text: &str) -> Change {
    let before = store.state(&news()).await.unwrap();
    let revision = before.as_ref().map_or(Revision(0), |state| state.revision);
    let seconds = i64::try_from(revision.0).unwrap() + 1;
    let tick = Tick::at(Time::from_unix(1_795_191_605 + seconds));
    let id = SyncId::new("a").unwrap();
    let updates = Count::new(u32::try_from(revision.0).unwrap() + 1).unwrap();
    let update = Update { sequence: updates, stamp: Stamp::When(tick.time()) };
    let state = FeedState {
        revision,
        tick: Some(tick),
        render_revision: revision.0 + 1,
        current: 1,
        living: 1,
        sync_ids_issued: 1,
        ..FeedState::untouched(Format::Atom10, tick.time())
    };
    let known = LedgerEntry {
        id: id.clone(),
        native: "urn:a".to_owned(),
        native_shown: "urn:a".to_owned(),
        published_id: "urn:a".to_owned(),
        aliases: Vec::new(),
        title: "a".to_owned(),
        link: None,
        enclosure: None,
        published: None,
        updated: None,
        updates,
        history: History::new(update),
        tick,
        noconflicts: None,
        conflicts: 0,
        origin: tidegate_core::model::Origin::default(),
        first_seen: tick.time(),
        came: tick.time(),
        standing: ItemStatus::Current,
        absence: None,
        prints: Vec::new(),
        bytes: 0,
        noise: Noise::default(),
        sse091: None,
        extras: None,
        touched: revision.0 + 1,
    };
    let markup = Markup {
        format: Format::Atom10,
        xml: text.to_owned(),
        context: Context::default(),
        slots: Slots::default(),
        card: Card::default(),
    };
    let skeleton = Skeleton {
        format: Format::Atom10,
        text: "<feed/>".to_owned(),
        slots: SkeletonSlots::default(),
        context: Context::default(),
        title: String::new(),
        link: None,
    };
    Change {
        feed: news(),
        base: revision,
        at: tick.time(),
        asked_at: None,
        tick: Some(tick),
        state,
        skeleton: Some(skeleton),
        order: Some(vec![id.clone()]),
        known: vec![known],
        index: IndexUpdate::NONE,
        versions: vec![NewVersion { id, markup: Some(markup), reason: "a test".to_owned() }],
        latest: Vec::new(),
        conflicts: Vec::new(),
        kept: None,
        seals: Vec::new(),
        redacted: Vec::new(),
        evicted: Vec::new(),
        reinstated: Vec::new(),
        events: Vec::new(),
    }
}

/// Text that does not compress.
pub(crate) fn noise(length: usize) -> String {
    let mut seed = 7u64;
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(&format!("{:x}", seed >> 16));
    }
    text
}

/// All files of a folder with their bytes.
pub(crate) fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            for (inner, bytes) in files(&entry.path()) {
                found.insert(format!("{name}/{inner}"), bytes);
            }
        } else {
            found.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    found
}
