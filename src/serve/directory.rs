//! Which feeds there are, kept in memory so that an answer from the cache needs no store.

use super::problem::Problem;
use crate::model::{FeedName, FeedRecord, FeedStanding};
use crate::store::{FeedList, Store, StoreError};
use http::StatusCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;

/// How old the list may be: a feed that was added or deleted behind our back (a reload of the
/// configuration) is noticed after this long. What goes through the API is noticed at once.
pub(super) const DIRECTORY_AGE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
struct DirectoryPage {
    listing: Arc<FeedList>,
    at: Instant,
    generation: u64,
}

/// A list of feeds, and until when it is good.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectoryMark {
    generation: u64,
    until: Instant,
}

/// The list of feeds, read again when it is old.
pub(super) struct Directory {
    store: Arc<dyn Store>,
    age: Duration,
    last: RwLock<Option<DirectoryPage>>,
    /// Raised by every change that we know of; a list read before it is not good any more.
    generation: AtomicU64,
    /// One reader at a time; the others wait for its list.
    reading: tokio::sync::Mutex<()>,
}

impl Directory {
    /// A directory over this store that is read again when it is older than `age`.
    pub(super) fn new(store: Arc<dyn Store>, age: Duration) -> Self {
        let (last, generation) = (RwLock::new(None), AtomicU64::new(0));
        Self { store, age, last, generation, reading: tokio::sync::Mutex::new(()) }
    }

    /// Says that the feeds have changed: the next look reads them again.
    pub(super) fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// How often the feeds have changed, as far as we were told.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn last(&self) -> Option<DirectoryPage> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fresh(&self) -> Option<Arc<FeedList>> {
        let generation = self.generation();
        let last = self.last()?;
        let good = last.generation == generation && last.at.elapsed() < self.age;
        good.then_some(last.listing)
    }

    /// How the list of feeds now stands; `None` where the next look reads it.
    pub(super) fn mark(&self) -> Option<DirectoryMark> {
        let last = self.last()?;
        let mark = DirectoryMark { generation: last.generation, until: last.at + self.age };
        self.is_still(&mark).then_some(mark)
    }

    /// Whether the list that was marked is good still.
    pub(super) fn is_still(&self, mark: &DirectoryMark) -> bool {
        mark.generation == self.generation() && Instant::now() < mark.until
    }

    /// Every feed. Where the store fails, the last list that was had is good enough.
    pub(super) async fn listing(&self) -> Result<Arc<FeedList>, StoreError> {
        let error = match self.checked().await {
            Ok(listing) => return Ok(listing),
            Err(error) => error,
        };
        let Some(last) = self.last() else { return Err(error) };
        // The store itself has logged why, once.
        if !matches!(error, StoreError::Stopped(_)) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the list of feeds could not be read; the last one is served"
            );
        }
        Ok(last.listing)
    }

    /// Every feed, and no stand-in where the store fails: what says whether it works.
    pub(super) async fn checked(&self) -> Result<Arc<FeedList>, StoreError> {
        if let Some(listing) = self.fresh() {
            return Ok(listing);
        }
        let _turn = self.reading.lock().await;
        if let Some(listing) = self.fresh() {
            return Ok(listing);
        }
        let generation = self.generation();
        let listing = self.store.feed_list().await?;
        let read = DirectoryPage { listing: Arc::clone(&listing), at: Instant::now(), generation };
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(read);
        Ok(listing)
    }

    /// The record of a feed that is served; 404 where there is none of that name, 410 where it was
    /// deleted. A name that no feed can have is as unknown as any other.
    pub(super) async fn served(&self, name: &str) -> Result<Arc<FeedRecord>, Problem> {
        let unknown = || Problem::not_found("no feed of that name is published here");
        let name = FeedName::new(name).map_err(|_| unknown())?;
        let listing = self.listing().await?;
        let record = listing.get(&name).ok_or_else(unknown)?;
        match record.standing {
            FeedStanding::Active | FeedStanding::Paused => Ok(Arc::clone(record)),
            FeedStanding::Gone => Err(Problem::new(
                StatusCode::GONE,
                format!("the feed {name} is no longer published here"),
            )),
        }
    }
}
