//! What administration does: the store's records on one side, polling on the other.

mod error;
mod export;
mod gather;
mod import;
mod items;
mod list_feeds;
mod notes;
mod on_demand;
mod preview;
mod records;
mod standing;

pub use error::OperatorError;
pub use export::{LeftOutCredentials, WrittenState, write_state};
pub use gather::Gathered;
pub(crate) use gather::source_trouble;
pub use import::{
    ExistingFeeds, ImportPlan, ImportedList, LIST_LIMIT, ListLine, decide, read_list,
};
pub use items::Redacted;
pub use list_feeds::SeenList;
pub(crate) use on_demand::NOT_NOW;
pub use preview::{AddressPreview, FeedPreview, FoundFeed};
pub(crate) use records::{is_filed, refuse_if_filed};

use super::{Cache, FeedDemand};
use notes::NoteBoard;
use records::{check_shared_feeds, find_record, name_taken};
use std::sync::Arc;
use tidegate_config::{Config, FeedSettings};
use tidegate_core::clock::Clock;
use tidegate_core::model::{
    Decision, Enrolment, FeedName, FeedRecord, FeedSource, FeedStanding, Hold,
};
use tidegate_judge::record as judge;
use tidegate_net::fetch::Services;
use tidegate_poll::Poller;
use tidegate_poll::hub::Hub;
use tidegate_status::{FeedStatus, GatherNote, ListNote, PollResponse, WalkOrder};
use tidegate_store::Store;
use tokio::sync::{Mutex, Semaphore, watch};

/// How many documents that may become feeds are read at a time.
const FIRST_DOCUMENTS: usize = 2;

/// The part of the operator that a reload replaces: the configuration and what is made from it.
pub struct ActiveConfig {
    /// With the address that this gateway has for others; without feeds, which the store has, and without readers, whose
    /// tokens are kept nowhere.
    pub config: Config,
    /// What looks at addresses that somebody thinks of adding.
    pub(super) services: Services,
    pub(super) hub: Option<Hub>,
}

impl ActiveConfig {
    /// What follows from this configuration.
    pub fn new(config: &Config, public_url: &str, services: Services, hub: Option<Hub>) -> Self {
        let mut config = Config { feeds: Vec::new(), readers: Vec::new(), ..config.clone() };
        config.server.public_url = Some(public_url.to_owned());
        Self { config, services, hub }
    }
}

/// Acts for administration.
pub struct Operator {
    pub(super) store: Arc<Store>,
    pub(super) clock: Arc<dyn Clock>,
    pub poller: Poller,
    active_config: watch::Sender<Arc<ActiveConfig>>,
    /// The sites that were warned of lately, since they do not answer what is passed on to them.
    silent: Cache<String, ()>,
    /// So many first documents are read at a time.
    first_documents: Arc<Semaphore>,
    /// How much the feeds that requests made are asked for.
    pub demand: FeedDemand,
    common_path_feeds: on_demand::CommonPathFeeds,
    /// One export at a time.
    exporting: Arc<Semaphore>,
    /// One change of the feeds at a time, so that store and poller agree.
    changing: Mutex<()>,
    /// What was noted of aggregates.
    pub gathered: NoteBoard<GatherNote>,
    /// What came of the feeds of lists.
    pub lists: NoteBoard<ListNote>,
    /// What waits for a conclusion.
    absent: standing::AbsentItems,
}

impl Operator {
    pub fn new(
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        poller: Poller,
        active_config: ActiveConfig,
    ) -> Self {
        Self {
            store,
            clock,
            poller,
            active_config: watch::Sender::new(Arc::new(active_config)),
            silent: Cache::with_ttl(on_demand::SILENT_SITES, on_demand::WARNING_PAUSE),
            first_documents: Arc::new(Semaphore::new(FIRST_DOCUMENTS)),
            demand: FeedDemand::default(),
            common_path_feeds: Cache::with_ttl(
                on_demand::COMMON_PATH_FEEDS,
                on_demand::COMMON_PATH_FEED_AGE,
            ),
            exporting: Arc::new(Semaphore::new(1)),
            changing: Mutex::default(),
            gathered: NoteBoard::default(),
            lists: NoteBoard::default(),
            absent: standing::new_absent_items_cache(),
        }
    }

    /// What the configuration says, and what follows from it.
    pub fn active_config(&self) -> Arc<ActiveConfig> {
        Arc::clone(&self.active_config.borrow())
    }

    /// Replaces the configuration (a reload).
    pub fn replace_config(&self, active_config: ActiveConfig) {
        self.active_config.send_replace(Arc::new(active_config));
    }

    /// Checks that a feed is polled and that there is space for what comes; `without`: what to say where it has no url.
    async fn check_polled(&self, feed: &FeedName, without: &str) -> Result<(), OperatorError> {
        let record = self.record(feed).await?;
        let why = match record.standing {
            FeedStanding::Active if record.has_upstream() => {
                return Ok(self.store.condition().check_intake()?);
            }
            FeedStanding::Active => without,
            _ => "is not polled any more",
        };
        Err(OperatorError::conflict(format!("the feed {feed} {why}")))
    }

    pub async fn status(&self, feed: &FeedName) -> Result<FeedStatus, OperatorError> {
        let found = self.statuses(std::slice::from_ref(feed)).await?.pop();
        found.ok_or_else(|| OperatorError::unknown_feed(feed))
    }

    /// Some feeds, in this order; names without a feed are passed over.
    pub async fn statuses(&self, names: &[FeedName]) -> Result<Vec<FeedStatus>, OperatorError> {
        let feeds = self.store.feed_list().await?;
        let records = names.iter().filter_map(|name| feeds.get(name).cloned());
        let records: Vec<Arc<FeedRecord>> = records.collect();
        self.statuses_of(&records, &feeds).await
    }

    /// Adds a feed or changes it; whether it is new. Durable on return.
    pub async fn put(
        &self,
        feed: &FeedName,
        settings: FeedSettings,
        mode: PutMode,
    ) -> Result<bool, OperatorError> {
        let FeedSettings { url, options, access, private, adds_feeds, .. } = settings;
        let (_guard, feeds) = self.lock_feeds().await?;
        check_shared_feeds(feed, &options.sharing, &feeds)?;
        // A local feed may have none.
        let url = url.map(String::from).unwrap_or_default();
        let before = feeds.get(feed).map(|record| FeedRecord::clone(record));
        if let Some(before) = &before {
            if mode == PutMode::Add {
                return Err(name_taken(before));
            }
            refuse_if_filed(before)?;
            if mode == PutMode::Change && before.standing == FeedStanding::Gone {
                let detail = format!("the feed {feed} was deleted; PUT brings it back");
                return Err(OperatorError::conflict(detail));
            }
        }
        if before.is_none() {
            self.store.condition().check_intake()?;
        }
        let access = self.wanted_access(access, &url, before.as_ref())?;
        let is_paused = mode == PutMode::Change
            && before.as_ref().is_some_and(|before| before.standing == FeedStanding::Paused);
        let mut record = FeedRecord {
            name: feed.clone(),
            url,
            source: FeedSource::Api,
            standing: if is_paused { FeedStanding::Paused } else { FeedStanding::Active },
            options,
            enrolment: Enrolment::default(),
            access,
            private: private.or(before.as_ref().map(|b| b.private)).unwrap_or_default(),
            adds_feeds,
            list: None,
            on_demand: before.as_ref().and_then(|before| before.on_demand.clone()),
        };
        // Or it would be let go again at once.
        record.ask_for(self.clock.now());
        if let Some(before) = &before {
            record.own_if_changed(before);
        }
        record.follow(before.as_ref(), self.next_change(&feeds), self.store.endpoint());
        self.write(&record, &feeds).await?;
        self.poller.put(record.clone()).await?;
        self.open(&record).await?;
        Ok(before.is_none())
    }

    /// Stops a feed for good, and tells who subscribed to it; with `purge` its data go too. Durable on return.
    pub async fn delete(&self, feed: &FeedName, purge: bool) -> Result<(), OperatorError> {
        let (guard, feeds) = self.lock_feeds().await?;
        let before = find_record(&feeds, feed)?;
        refuse_if_filed(&before)?;
        let mut record = before.clone();
        // First of all, so that a crash on the way leaves a feed that is gone: its purge can be
        // asked for again.
        record.standing = FeedStanding::Gone;
        record.access = None;
        record.follow(Some(&before), self.next_change(&feeds), self.store.endpoint());
        self.write(&record, &feeds).await?;
        self.poller.remove(feed).await?;
        if before.adds_feeds {
            self.release_members(feed, &feeds).await?;
        }
        if purge {
            self.store.purge_feed(feed).await?;
            // The record stays without the data, so that the address goes on to answer 410.
            self.store.put_feed(&record).await?;
        }
        // The hub may write for long: other changes of the feeds go on.
        drop(guard);
        if let Some(hub) = &self.active_config().hub
            && let Err(error) = hub.set_webhook(feed, None).await
        {
            tracing::warn!(%feed, %error, "the webhook of a feed that was deleted could not be ended");
        }
        Ok(())
    }

    /// Stops polling a feed, which is served as it is, or goes on with it. Durable on return.
    pub async fn pause(&self, feed: &FeedName, paused: bool) -> Result<(), OperatorError> {
        let (_guard, feeds) = self.lock_feeds().await?;
        let before = find_record(&feeds, feed)?;
        refuse_if_filed(&before)?;
        if before.standing == FeedStanding::Gone {
            return Err(OperatorError::conflict(format!("the feed {feed} was deleted")));
        }
        let mut record = before.clone();
        if paused {
            record.pause_by_hand();
        } else {
            record.standing = FeedStanding::Active;
            record.ask_for(self.clock.now());
            // What left the file goes on as the API's, or the next start would pause it again.
            record.source = FeedSource::Api;
            record.own_if_changed(&before);
        }
        record.follow(Some(&before), self.next_change(&feeds), self.store.endpoint());
        self.write(&record, &feeds).await?;
        Ok(self.poller.put(record).await?)
    }

    /// Polls a feed now, with a request of its own, and answers when the result is durable.
    pub async fn poll_now(&self, feed: &FeedName) -> Result<PollResponse, OperatorError> {
        self.check_polled(feed, "is not polled: it has no url").await?;
        let report = self.poller.poll_now(feed).await?;
        // What the feed is after a poll, one that failed included, is what the store says.
        let state = self.store.state(feed).await?;
        let held = state.as_ref().and_then(|state| state.hold.as_ref());
        Ok(PollResponse {
            held: held.map(Hold::describe).or(report.held),
            until: report.until.or_else(|| state.as_ref().and_then(|state| state.tick)),
            ..report
        })
    }

    /// Begins to walk through the publisher's older documents, continues a walk that stopped, or stops one. Returns
    /// once the order is queued.
    pub async fn backfill(&self, feed: &FeedName, order: WalkOrder) -> Result<(), OperatorError> {
        self.check_polled(feed, "has no url, so nobody has older documents of it").await?;
        Ok(self.poller.walk(feed, order).await?)
    }

    /// Decides about a held document.
    pub async fn hold(&self, feed: &FeedName, decision: Decision) -> Result<(), OperatorError> {
        let record = self.record(feed).await?;
        self.decide_and_commit(&record, &[], |observation| {
            match judge::decide(observation, decision).change {
                None => Err(OperatorError::conflict(format!("nothing of the feed {feed} is held"))),
                change => Ok((change, ())),
            }
        })
        .await?;
        // A released document comes out with the poll that finds it again. Where none can be made now, the decision is
        // stored all the same.
        if decision == Decision::Release
            && let Err(error) = self.poller.poll_now(feed).await
        {
            tracing::info!(%feed, %error, "a released feed is not polled at once");
        }
        Ok(())
    }
}

/// In which way a feed is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutMode {
    /// It is refused where there is or was a feed of that name.
    Add,
    /// It is added or replaced, and polled from then on.
    Replace,
    /// One that is there is changed; paused, it stays so.
    Change,
}
