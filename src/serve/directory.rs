//! Which feeds there are, kept in memory so that an answer from the cache needs no store.

use super::audience::{Audience, ServedFeed};
use super::origins::{AskedFeeds, FeedPlaces, PlaceRules};
use super::problem::Problem;
use arc_swap::ArcSwap;
use http::StatusCode;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding};
use tidegate_store::{FeedList, Store, StoreError};
use tokio::time::Instant;

/// How old the list may be: a feed that was added or deleted behind our back (a reload of the
/// configuration) is noticed after this long. What goes through the API is noticed at once.
pub(super) const DIRECTORY_AGE: Duration = Duration::from_secs(1);

/// Every feed, and which of them are private.
#[derive(Debug, Default)]
pub(super) struct Listing {
    feeds: Arc<FeedList>,
    private: Arc<BTreeSet<FeedName>>,
    places: Arc<FeedPlaces>,
}

impl Deref for Listing {
    type Target = FeedList;

    fn deref(&self) -> &FeedList {
        &self.feeds
    }
}

impl Listing {
    /// Of these feeds; where they are those of `before`, so is what is known of them.
    fn new(feeds: Arc<FeedList>, before: Option<&Self>, rules: &PlaceRules) -> Self {
        if let Some(before) = before.filter(|before| Arc::ptr_eq(&before.feeds, &feeds)) {
            let (private, places) = (Arc::clone(&before.private), Arc::clone(&before.places));
            return Self { feeds, private, places };
        }
        let private = private_names(&feeds);
        let same = before.map(|before| &before.private).filter(|before| ***before == private);
        let private = same.map_or_else(|| Arc::new(private), Arc::clone);
        let places = FeedPlaces::new(rules, &feeds, |feed| private.contains(feed));
        Self { feeds, private, places: Arc::new(places) }
    }

    /// Every feed; the same allocation for as long as they are the same.
    pub(super) const fn list(&self) -> &Arc<FeedList> {
        &self.feeds
    }

    /// The addresses that feeds have beside `/feeds/NAME`.
    pub(super) const fn places(&self) -> &Arc<FeedPlaces> {
        &self.places
    }

    /// The names of private feeds; the same allocation for as long as they are the same.
    pub(super) const fn private(&self) -> &Arc<BTreeSet<FeedName>> {
        &self.private
    }

    /// Whether an audience sees a feed.
    pub(super) fn is_seen(&self, feed: &FeedName, audience: &Audience) -> bool {
        self.feeds.contains_key(feed) && audience.sees(feed, self.private.contains(feed))
    }

    /// The feeds that an audience sees.
    pub(super) fn seen_by<'a>(
        &'a self,
        audience: &'a Audience,
    ) -> impl Iterator<Item = &'a Arc<FeedRecord>> {
        self.feeds.values().filter(|record| self.is_seen(&record.name, audience))
    }
}

/// The feeds that are private: those that are said to be, and aggregates that have anything of one. The
/// configuration refuses an aggregate that does not say so itself; one that left it may still have a source
/// that became private.
fn private_names(feeds: &FeedList) -> BTreeSet<FeedName> {
    let said = feeds.values().filter(|record| record.private);
    let mut private: BTreeSet<FeedName> = said.map(|record| record.name.clone()).collect();
    let is_one = |record: &&Arc<FeedRecord>| record.options.sharing.is_aggregate();
    let aggregates: Vec<_> = feeds.values().filter(is_one).collect();
    // Each round finds one at least, or is the last.
    for _ in 0..=aggregates.len() {
        let known = private.len();
        for record in &aggregates {
            if record.options.sharing.sources.iter().any(|source| private.contains(source)) {
                private.insert(record.name.clone());
            }
        }
        if private.len() == known {
            break;
        }
    }
    private
}

#[derive(Debug, Clone)]
struct DirectoryPage {
    listing: Arc<Listing>,
    at: Instant,
    generation: u64,
}

/// A list of feeds, and until when it is good.
#[derive(Debug, Clone)]
pub(super) struct DirectoryMark {
    feeds: Weak<FeedList>,
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
    rules: PlaceRules,
    /// Where feeds are now, for who writes addresses.
    places: Arc<ArcSwap<FeedPlaces>>,
    /// When feeds that requests made were asked for, and what tells the time.
    asked: (Arc<AskedFeeds>, Arc<dyn Clock>),
}

impl Directory {
    /// A directory over this store that is read again when it is older than `age`.
    pub(super) fn new(store: Arc<dyn Store>, age: Duration, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            age,
            last: RwLock::new(None),
            generation: AtomicU64::new(0),
            reading: tokio::sync::Mutex::new(()),
            rules: PlaceRules::default(),
            places: Arc::default(),
            asked: (Arc::default(), clock),
        }
    }

    /// The same of a gateway where feeds have addresses by these rules. `places`: where they are found.
    pub(super) fn with_places(
        self,
        rules: PlaceRules,
        places: Arc<ArcSwap<FeedPlaces>>,
        asked: Arc<AskedFeeds>,
    ) -> Self {
        Self { rules, places, asked: (asked, self.asked.1), ..self }
    }

    /// Notes that a feed was asked for, where a request made it; one that was let go is wanted again.
    pub(super) fn note_asked_for(&self, record: &FeedRecord) {
        if record.is_let_go() {
            self.asked.0.want(&record.name, self.asked.1.now());
        } else if record.on_demand.is_some() {
            self.note_asked(&record.name);
        }
    }

    /// Notes that a feed was asked for or announced.
    pub(super) fn note_asked(&self, feed: &FeedName) {
        let (asked, clock) = &self.asked;
        asked.note(feed, clock.now());
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

    /// The list, where it is not older than it may be.
    pub(super) fn fresh(&self) -> Option<Arc<Listing>> {
        let generation = self.generation();
        let last = self.last()?;
        let is_young = || last.generation == generation && last.at.elapsed() < self.age;
        let is_good = match self.store.gateways().is_none() {
            true => is_young(),
            false => self.is_followed(Arc::as_ptr(&last.listing.feeds)),
        };
        is_good.then_some(last.listing)
    }

    /// Whether a list is the one that the store has in memory, where another gateway may have changed it, of which
    /// this one is not told.
    fn is_followed(&self, feeds: *const FeedList) -> bool {
        self.store.listed().is_some_and(|listed| std::ptr::eq(Arc::as_ptr(&listed), feeds))
    }

    /// How the list of feeds now stands; `None` where the next look reads it.
    pub(super) fn mark(&self) -> Option<DirectoryMark> {
        let last = self.last()?;
        let feeds = Arc::downgrade(&last.listing.feeds);
        let (generation, at) = match self.store.gateways().is_none() {
            true => (last.generation, last.at),
            // It is read again only where the store has another list.
            false => (self.generation(), Instant::now()),
        };
        let mark = DirectoryMark { feeds, generation, until: at + self.age };
        self.is_still(&mark).then_some(mark)
    }

    /// Whether the list that was marked is good still.
    pub(super) fn is_still(&self, mark: &DirectoryMark) -> bool {
        mark.generation == self.generation()
            && Instant::now() < mark.until
            && (self.store.gateways().is_none() || self.is_followed(mark.feeds.as_ptr()))
    }

    /// Every feed. Where the store fails, the last list that was had is good enough.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>, StoreError> {
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
    pub(super) async fn checked(&self) -> Result<Arc<Listing>, StoreError> {
        if let Some(listing) = self.fresh() {
            return Ok(listing);
        }
        let _turn = self.reading.lock().await;
        if let Some(listing) = self.fresh() {
            return Ok(listing);
        }
        let generation = self.generation();
        let feeds = self.store.feed_list().await?;
        let before = self.last().map(|last| last.listing);
        Ok(self.keep(feeds, before.as_deref(), generation))
    }

    /// Every feed as of now, whatever was read before: for who tells of changes, of feeds that may have
    /// been added or made private a moment ago.
    pub(super) async fn newest(&self) -> Result<Arc<Listing>, StoreError> {
        let generation = self.generation();
        let before = self.last().map(|last| last.listing);
        let feeds = match (self.store.feed_list().await, &before) {
            (Ok(feeds), _) => feeds,
            (Err(_), Some(before)) => return Ok(Arc::clone(before)),
            (Err(error), None) => return Err(error),
        };
        Ok(self.keep(feeds, before.as_deref(), generation))
    }

    /// Keeps a list as the last one that was read.
    fn keep(
        &self,
        feeds: Arc<FeedList>,
        before: Option<&Listing>,
        generation: u64,
    ) -> Arc<Listing> {
        let listing = Arc::new(Listing::new(feeds, before, &self.rules));
        if before.is_none_or(|before| !Arc::ptr_eq(before.places(), listing.places())) {
            self.places.store(Arc::clone(listing.places()));
        }
        let read = DirectoryPage { listing: Arc::clone(&listing), at: Instant::now(), generation };
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(read);
        listing
    }

    /// A feed that is served, as an audience has it; 404 where there is none of that name for it, 410 where it
    /// was deleted. A name that no feed can have is as unknown as any other.
    pub(super) async fn served(
        &self,
        name: &str,
        audience: &Audience,
    ) -> Result<ServedFeed, Problem> {
        let name = FeedName::new(name).map_err(|_| Problem::unknown_feed())?;
        let listing = self.listing().await?;
        let seen = listing.is_seen(&name, audience);
        let record = listing.get(&name).filter(|_| seen).ok_or_else(Problem::unknown_feed)?;
        self.note_asked_for(record);
        match record.standing {
            FeedStanding::Active | FeedStanding::Paused => Ok(ServedFeed::new(record, audience)),
            FeedStanding::Gone => Err(Problem::new(
                StatusCode::GONE,
                format!("the feed {name} is no longer published here"),
            )),
        }
    }
}
