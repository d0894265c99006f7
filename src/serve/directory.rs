//! Which feeds there are, and which of them are private.

use super::origins::FeedPlaces;
use super::{AppState, Audience, OperatorError, PlaceRules, Problem, ServedFeed};
use arc_swap::{ArcSwap, ArcSwapOption};
use http::StatusCode;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding};
use tidegate_store::{FeedList, Store, StoreError};

/// Every feed, and which of them are private.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The same `Arc` while nothing changes, so that `Arc::ptr_eq` tells; so is `private`.
    pub(super) feeds: Arc<FeedList>,
    pub(super) private: Arc<BTreeSet<FeedName>>,
    /// The addresses that feeds have beside `/feeds/NAME`.
    pub(super) places: Arc<FeedPlaces>,
}

impl Deref for Listing {
    type Target = FeedList;

    fn deref(&self) -> &FeedList {
        &self.feeds
    }
}

impl Listing {
    /// Of these feeds; `before`: what there was before.
    fn new(feeds: Arc<FeedList>, before: Option<&Self>, rules: &PlaceRules) -> Self {
        let private = private_names(&feeds);
        let same = before.map(|before| &before.private).filter(|before| ***before == private);
        let private = same.map_or_else(|| Arc::new(private), Arc::clone);
        let places = FeedPlaces::new(rules, &feeds, |feed| private.contains(feed));
        Self { feeds, private, places: Arc::new(places) }
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

/// The private feeds: those that are set so, and aggregates with a private source. The configuration refuses an
/// aggregate of a private feed that is not private itself; but one that is no longer in it may have a source that
/// became private.
fn private_names(feeds: &FeedList) -> BTreeSet<FeedName> {
    let declared = feeds.values().filter(|record| record.private);
    let mut private: BTreeSet<FeedName> = declared.map(|record| record.name.clone()).collect();
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

/// The list of feeds that the store has in memory, with what is known of it.
pub(super) struct Directory {
    store: Arc<Store>,
    last: ArcSwapOption<Listing>,
    /// One makes a new listing at a time; the others wait for it.
    making: tokio::sync::Mutex<()>,
    /// The sites that the gateway stands in front of, and where feeds have paths of their own.
    pub(super) rules: PlaceRules,
    /// Where feeds are now, for who writes addresses.
    places: Arc<ArcSwap<FeedPlaces>>,
}

impl Directory {
    /// The directory of a gateway where feeds have addresses by these rules. `places`: where they are found.
    pub(super) fn new(
        store: Arc<Store>,
        rules: PlaceRules,
        places: Arc<ArcSwap<FeedPlaces>>,
    ) -> Self {
        let (last, making) = (ArcSwapOption::empty(), tokio::sync::Mutex::default());
        Self { store, last, making, rules, places }
    }

    /// Every feed; if the store fails, the last list that was read.
    pub(super) async fn listing(&self) -> Result<Arc<Listing>, StoreError> {
        let error = match self.listing_or_error().await {
            Ok(listing) => return Ok(listing),
            Err(error) => error,
        };
        let Some(last) = self.last.load_full() else { return Err(error) };
        // The store itself has logged why, once.
        if !matches!(error, StoreError::Stopped(_)) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the list of feeds could not be read; the last one is served"
            );
        }
        Ok(last)
    }

    /// Checks that there is or was a feed of a name, for administration.
    pub(super) async fn check_known(&self, name: &FeedName) -> Result<(), Problem> {
        match self.listing().await?.contains_key(name) {
            true => Ok(()),
            false => Err(OperatorError::unknown_feed(name).into()),
        }
    }

    /// Every feed as it is now, where that is known without waiting.
    pub(super) fn current(&self) -> Option<Arc<Listing>> {
        self.last_if_same(&self.store.listed()?)
    }

    fn last_if_same(&self, feeds: &Arc<FeedList>) -> Option<Arc<Listing>> {
        let last = self.last.load();
        let last = last.as_ref().filter(|last| Arc::ptr_eq(&last.feeds, feeds));
        last.map(Arc::clone)
    }

    /// Every feed; an error if the store fails, where [`Self::listing`] would return the last list. `/readyz` calls it.
    pub(super) async fn listing_or_error(&self) -> Result<Arc<Listing>, StoreError> {
        let feeds = self.store.feed_list().await?;
        if let Some(last) = self.last_if_same(&feeds) {
            return Ok(last);
        }
        let _turn = self.making.lock().await;
        if let Some(last) = self.last_if_same(&feeds) {
            return Ok(last);
        }
        let before = self.last.load_full();
        let listing = Arc::new(Listing::new(feeds, before.as_deref(), &self.rules));
        self.places.store(Arc::clone(&listing.places));
        self.last.store(Some(Arc::clone(&listing)));
        Ok(listing)
    }
}

impl AppState {
    /// Notes that a feed was asked for, where a request made it; one that was let go is wanted again.
    pub(super) fn note_asked_for(&self, record: &FeedRecord) {
        let (demand, now) = (&self.operator.demand, self.clock.now());
        if record.is_let_go() {
            demand.want(&record.name, now);
        } else if record.on_demand.is_some() {
            demand.note(&record.name, now);
        }
    }

    /// A feed that is served, as an audience has it; 404 where there is none of that name for it, 410 where it
    /// was deleted. A name that no feed can have is as unknown as any other.
    pub(super) async fn served_feed(
        &self,
        name: &str,
        audience: &Audience,
    ) -> Result<ServedFeed, Problem> {
        let name = FeedName::new(name).map_err(|_| Problem::unknown_feed())?;
        let listing = self.directory.listing().await?;
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
