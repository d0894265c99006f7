//! What administration does: the store's records on one side, the poller on the other.

mod access;
mod export;
mod gather;
mod gathered;
mod list;
mod list_feeds;
mod local;
mod on_demand;
mod pending;
mod preview;
mod redact;
mod reload;
mod silent_sites;
mod standing;

pub(super) use gather::Gathered;
pub(super) use list_feeds::SeenList;
pub(super) use reload::Reloaded;

use async_trait::async_trait;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tidegate_config::{Config, Publish};
use tidegate_core::clock::Clock;
use tidegate_core::model::{
    Change, Decision, Enrolment, FeedName, FeedRecord, FeedSource, FeedStanding, Hold, SyncId,
    Tick, Time,
};
use tidegate_core::websub::Verification;
use tidegate_judge::record::local::{Act, Acted};
use tidegate_judge::record::{self as judge, DeletionError, Observation};
use tidegate_net::fetch::Services;
use tidegate_poll::hub::Hub;
use tidegate_poll::{PollError, Poller, RoundError};
use tidegate_serve::{
    AddressPreview, AskedFeeds, ExportStream, ImportedList, Operator, OperatorError, Put, PutFeed,
    Redacted,
};
use tidegate_status::{FeedStatus, FeedSummary, PollResponse, PollTotals, PushResult, WalkOrder};
use tidegate_store::{CommitError, FeedList, Retention, Store, StoreError};
use tokio::sync::{Mutex, MutexGuard, Semaphore};

/// How many documents that may become feeds are read at a time.
const FIRST_DOCUMENTS: usize = 2;

/// The operator's desk.
pub(super) struct AdminService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    poller: Poller,
    /// What looks at addresses that somebody thinks of adding.
    services: RwLock<Services>,
    /// One document of them is read at a time.
    previews: Semaphore,
    /// The sites that do not answer what is passed on to them.
    silent: silent_sites::SilentSites,
    /// So many first documents are read at a time.
    first_documents: Arc<Semaphore>,
    /// When feeds that requests made were last asked for.
    asked: Arc<AskedFeeds>,
    usual_feeds: on_demand::UsualFeeds,
    /// One export at a time.
    exporting: Arc<Semaphore>,
    /// Without its feeds.
    config: RwLock<Config>,
    public_url: String,
    hub: Option<Hub>,
    /// One change of the feeds at a time, so that store and poller agree.
    changing: Mutex<()>,
    /// What was noted of aggregates.
    gathered: gathered::AggregateBoard,
    /// What came of the feeds of lists.
    lists: list_feeds::ListBoard,
    /// What waits for a conclusion.
    absent: pending::AbsentItems,
    /// What other gateways stored.
    stored: standing::StoredSummaries,
}

impl AdminService {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        (poller, services): (Poller, Services),
        config: &Config,
        public_url: String,
        hub: Option<Hub>,
    ) -> Self {
        let config = RwLock::new(reload::without_feeds(config));
        let changing = Mutex::new(());
        Self {
            store,
            clock,
            poller,
            services: RwLock::new(services),
            previews: Semaphore::new(1),
            silent: silent_sites::SilentSites::default(),
            first_documents: Arc::new(Semaphore::new(FIRST_DOCUMENTS)),
            asked: Arc::default(),
            usual_feeds: on_demand::UsualFeeds::default(),
            exporting: Arc::new(Semaphore::new(1)),
            config,
            public_url,
            hub,
            changing,
            gathered: gathered::AggregateBoard::default(),
            lists: list_feeds::ListBoard::default(),
            absent: pending::AbsentItems::new(),
            stored: standing::StoredSummaries::default(),
        }
    }

    /// How feeds are republished, and what is kept of them.
    pub(super) fn publish_rules(&self) -> Publish {
        self.config.read().unwrap_or_else(PoisonError::into_inner).publish.clone()
    }

    pub(super) fn retention(&self) -> Retention {
        self.config.read().unwrap_or_else(PoisonError::into_inner).publish.past
    }

    /// Decides over the newest snapshot of a feed and commits; answers what was decided.
    pub(super) async fn decide_and_commit<T, E: From<StoreError> + From<CommitError>>(
        &self,
        record: &FeedRecord,
        names: &[String],
        decide: impl Fn(&Observation<'_>) -> Result<(Option<Change>, T), E>,
    ) -> Result<T, E> {
        self.poller.decisions().decide_and_commit(record, self.clock.as_ref(), names, decide).await
    }

    /// Has the hub look at its topics: a feed that became private is none any more.
    fn feeds_changed(&self) {
        if let Some(hub) = &self.hub {
            hub.check_topics();
        }
    }

    /// Lets changes leave the window of a feed, and what is too old its ledger and archives.
    pub(super) async fn age(&self, record: &Arc<FeedRecord>) -> Result<(), RoundError> {
        self.poller.age(record).await
    }

    async fn record(&self, feed: &FeedName) -> Result<FeedRecord, OperatorError> {
        known(&*self.store.feed_list().await?, feed)
    }

    /// The configuration, with the address that this gateway has for others.
    fn named_config(&self) -> Config {
        let mut config = self.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        config.server.public_url = Some(self.public_url.clone());
        config
    }

    /// The time of the next change of the list of subscriptions.
    fn next_change(&self, feeds: &FeedList) -> Time {
        FeedRecord::next_change(feeds.values().map(Arc::as_ref), self.clock.now())
    }

    /// The turn to change feeds, and the list as the last one left it, at whichever gateway.
    pub(super) async fn turn(&self) -> Result<(MutexGuard<'_, ()>, Arc<FeedList>), StoreError> {
        let turn = self.changing.lock().await;
        self.store.catch_up().await?;
        Ok((turn, self.store.feed_list().await?))
    }

    /// Writes a record that was decided over a list.
    async fn write(&self, record: &FeedRecord, feeds: &Arc<FeedList>) -> Result<(), StoreError> {
        self.store.put_feeds(std::slice::from_ref(record), feeds).await
    }

    /// Notes the titles that feeds have now. Their records stay as they are otherwise, and nothing
    /// of it concerns polling.
    pub(super) async fn update_titles(
        &self,
        titles: BTreeMap<FeedName, String>,
    ) -> Result<usize, StoreError> {
        let (_one, feeds) = self.turn().await?;
        let when = self.next_change(&feeds);
        let mut changed = Vec::new();
        for (name, title) in titles {
            let Some(before) = feeds.get(&name) else { continue };
            let mut record = FeedRecord::clone(before);
            record.enrolment.title = Some(title);
            if record.follow(Some(before), when, self.store.endpoint()) {
                changed.push(record);
            }
        }
        self.store.put_feeds(&changed, &feeds).await?;
        let feeds = self.store.feed_list().await?;
        let shared = changed.iter().filter_map(|record| feeds.get(&record.name)).cloned();
        // Polling that has stopped has none of them.
        let _ = self.poller.share(shared.collect()).await;
        Ok(changed.len())
    }

    fn refuse_if_filed(&self, record: &FeedRecord) -> Result<(), OperatorError> {
        match (record.source, record.standing) {
            // A feed that left the file no longer stands in it.
            (FeedSource::File | FeedSource::CommandLine, FeedStanding::Active) => {
                Err(OperatorError::ConfiguredByFile(record.name.clone()))
            }
            _ => Ok(()),
        }
    }
}

/// The record of a feed in a list.
fn known(feeds: &FeedList, feed: &FeedName) -> Result<FeedRecord, OperatorError> {
    let found = feeds.get(feed).map(|record| FeedRecord::clone(record));
    found.ok_or_else(|| OperatorError::UnknownFeed(feed.clone()))
}

/// Why no new feed can have the name of this one.
fn taken(before: &FeedRecord) -> OperatorError {
    let name = &before.name;
    OperatorError::Conflict(match before.standing {
        FeedStanding::Gone => format!(
            "a feed {name} was deleted here; choose another name, or bring that one back by PUT /api/v1/feeds/{name}"
        ),
        _ => format!("there is a feed {name} already; choose another name"),
    })
}

fn stopped(error: PollError) -> OperatorError {
    match error {
        PollError::OwnedElsewhere { .. } => OperatorError::Conflict(error.to_string()),
        error => OperatorError::Internal(error.to_string()),
    }
}

#[async_trait]
impl Operator for AdminService {
    fn totals(&self) -> PollTotals {
        self.poller.totals()
    }

    async fn summaries(&self) -> Result<BTreeMap<FeedName, FeedSummary>, OperatorError> {
        let feeds = self.store.feed_list().await?;
        let mut all = self.polling_summaries(&feeds).await?;
        self.summarize_gathering(&mut all, &feeds).await?;
        Ok(all)
    }

    fn own_summary(&self, feed: &FeedName) -> Option<FeedSummary> {
        self.poller.summary(feed)
    }

    async fn status(&self, feed: &FeedName) -> Result<FeedStatus, OperatorError> {
        let found = self.statuses(std::slice::from_ref(feed)).await?.pop();
        found.ok_or_else(|| OperatorError::UnknownFeed(feed.clone()))
    }

    async fn statuses(&self, names: &[FeedName]) -> Result<Vec<FeedStatus>, OperatorError> {
        let feeds = self.store.feed_list().await?;
        let records = names.iter().filter_map(|name| feeds.get(name).cloned());
        let records: Vec<Arc<FeedRecord>> = records.collect();
        self.statuses_of(&records, &feeds).await
    }

    async fn put(&self, feed: &FeedName, put: PutFeed) -> Result<Put, OperatorError> {
        let (_one, feeds) = self.turn().await?;
        let url = self.wanted(feed, &put).await?;
        let before = feeds.get(feed).map(|record| FeedRecord::clone(record));
        if let Some(before) = &before {
            if put.must_be_new {
                return Err(taken(before));
            }
            self.refuse_if_filed(before)?;
            if put.keeps_paused && before.standing == FeedStanding::Gone {
                let said = format!("the feed {feed} was deleted; PUT brings it back");
                return Err(OperatorError::Conflict(said));
            }
        }
        if before.is_none() {
            self.store.condition().check_intake()?;
        }
        let access = self.wanted_access(put.access, &url, before.as_ref())?;
        let stays = before
            .as_ref()
            .filter(|before| put.keeps_paused && before.standing == FeedStanding::Paused);
        let mut record = FeedRecord {
            name: feed.clone(),
            url,
            source: FeedSource::Api,
            standing: stays.map_or(FeedStanding::Active, |before| before.standing),
            options: put.options,
            enrolment: Enrolment::default(),
            access,
            private: put.private.or(before.as_ref().map(|b| b.private)).unwrap_or_default(),
            adds_feeds: put.adds_feeds,
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
        self.poller.put(record.clone()).await.map_err(stopped)?;
        self.open(&record).await?;
        Ok(if before.is_some() { Put::Changed } else { Put::Created })
    }

    async fn delete(&self, feed: &FeedName, purge: bool) -> Result<(), OperatorError> {
        let (_one, feeds) = self.turn().await?;
        let before = known(&feeds, feed)?;
        self.refuse_if_filed(&before)?;
        let mut record = before.clone();
        // First of all, so that a crash on the way leaves a feed that is gone: its purge can be
        // asked for again.
        record.standing = FeedStanding::Gone;
        record.access = None;
        record.follow(Some(&before), self.next_change(&feeds), self.store.endpoint());
        self.write(&record, &feeds).await?;
        self.poller.remove(feed).await.map_err(stopped)?;
        if before.adds_feeds {
            self.let_go(feed, &feeds).await?;
        }
        if purge {
            self.store.purge_feed(feed).await?;
            // The record stays without the data, so that the address goes on to answer 410.
            self.store.put_feed(&record).await?;
        }
        Ok(())
    }

    async fn pause(&self, feed: &FeedName, paused: bool) -> Result<(), OperatorError> {
        let (_one, feeds) = self.turn().await?;
        let before = known(&feeds, feed)?;
        self.refuse_if_filed(&before)?;
        if before.standing == FeedStanding::Gone {
            return Err(OperatorError::Conflict(format!("the feed {feed} was deleted")));
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
        self.poller.put(record).await.map_err(stopped)
    }

    async fn preview(&self, url: &str) -> Result<AddressPreview, OperatorError> {
        self.look_at(url).await
    }

    async fn import_list(
        &self,
        list: Bytes,
        rearrange: bool,
    ) -> Result<ImportedList, OperatorError> {
        self.add_list(list, rearrange).await
    }

    async fn export(&self) -> Result<ExportStream, OperatorError> {
        self.begin_export()
    }

    async fn name_for(&self, url: &str) -> Result<FeedName, OperatorError> {
        self.free_name(url).await
    }

    async fn poll_now(&self, feed: &FeedName) -> Result<PollResponse, OperatorError> {
        let record = self.record(feed).await?;
        if record.standing != FeedStanding::Active {
            return Err(OperatorError::Conflict(format!("the feed {feed} is not polled any more")));
        }
        if !record.has_upstream() {
            let said = format!("the feed {feed} is not polled: it has no url");
            return Err(OperatorError::Conflict(said));
        }
        self.store.condition().check_intake()?;
        let report = self.poller.poll_now(feed).await.map_err(|error| match error {
            PollError::TooMany { .. } => OperatorError::Conflict(error.to_string()),
            _ => stopped(error),
        })?;
        // What the feed is after a poll, one that failed included, is what the store says.
        let state = self.store.state(feed).await?;
        let held = state.as_ref().and_then(|state| state.hold.as_ref());
        Ok(PollResponse {
            held: held.map(Hold::describe).or(report.held),
            until: report.until.or_else(|| state.as_ref().and_then(|state| state.tick)),
            ..report
        })
    }

    async fn item(&self, feed: &FeedName, act: Act) -> Result<Acted, OperatorError> {
        self.act(feed, &act).await
    }

    async fn redact(
        &self,
        feed: &FeedName,
        item: &SyncId,
        reason: Option<String>,
    ) -> Result<Redacted, OperatorError> {
        self.take_out(feed, item, reason).await
    }

    async fn delete_missing(
        &self,
        feed: &FeedName,
        item: &SyncId,
    ) -> Result<Option<Tick>, OperatorError> {
        let record = self.record(feed).await?;
        // What left the complete view may be deleted still.
        let names = [item.to_string()];
        self.decide_and_commit(&record, &names, |round| {
            let verdict = judge::delete_missing(round, item).map_err(|error| match error {
                DeletionError::Unknown => OperatorError::UnknownItem(feed.clone()),
                _ => OperatorError::Conflict(error.to_string()),
            })?;
            let change = verdict.and_then(|verdict| verdict.change);
            let tick = change.as_ref().and_then(|change| change.tick);
            Ok((change, tick))
        })
        .await
    }

    async fn backfill(&self, feed: &FeedName, order: WalkOrder) -> Result<(), OperatorError> {
        let record = self.record(feed).await?;
        if record.standing != FeedStanding::Active {
            return Err(OperatorError::Conflict(format!("the feed {feed} is not polled any more")));
        }
        if !record.has_upstream() {
            let said = format!("the feed {feed} has no url, so nobody has older documents of it");
            return Err(OperatorError::Conflict(said));
        }
        self.store.condition().check_intake()?;
        self.poller.walk(feed, order).await.map_err(stopped)
    }

    async fn is_callback(&self, token: &str) -> bool {
        self.poller.is_callback(token).await
    }

    async fn called(
        &self,
        token: &str,
        said: Verification,
    ) -> Result<Option<String>, OperatorError> {
        self.poller.called(token, said).await.map_err(stopped)
    }

    async fn pushed(&self, token: &str, signature: Option<String>, body: Bytes) -> PushResult {
        self.poller.pushed(token, signature, body).await
    }

    async fn hold(&self, feed: &FeedName, decision: Decision) -> Result<(), OperatorError> {
        let record = self.record(feed).await?;
        self.decide_and_commit(&record, &[], |round| match judge::decide(round, decision).change {
            None => Err(OperatorError::Conflict(format!("nothing of the feed {feed} is held"))),
            change => Ok((change, ())),
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
