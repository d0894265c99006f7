//! What can go wrong with a store on disk, and what must not happen then.

mod barrier;
pub(crate) mod damage;
mod folder;
mod reopen;

use super::folder::StoreFolder;
use super::{DiskRequest, OpenRequest, WrapEngine};
use crate::conformance::make::{Draft, edit};
use crate::embedded::ReopenPauses;
use crate::engine::Engine;
use crate::{Committed, Store, StoreError};
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

pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)))
}

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

pub(crate) fn refused(result: Result<Store, StoreError>) -> StoreError {
    match result {
        Ok(_) => panic!("the store opened"),
        Err(error) => error,
    }
}

pub(crate) fn news() -> FeedName {
    FeedName::new("news").unwrap()
}

/// A change of the feed `news`, on top of what the store has.
pub(crate) async fn draft(store: &Store) -> Draft {
    let revision = store.state(&news()).await.unwrap().map_or(0, |state| state.revision.0);
    edit(store, i64::try_from(revision).unwrap() + 1).await
}

pub(crate) async fn change(store: &Store, text: &str) -> Change {
    draft(store).await.item("a", text).order(&["a"]).done()
}

pub(crate) async fn commit(store: &Store, text: &str) -> Committed {
    store.commit(change(store, text).await).await.unwrap()
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
