//! What administration does: the store's records on one side, the poller on the other.

mod export;
mod gather;
mod gathered;
mod list_feeds;
mod notes;
mod on_demand;
mod preview;
mod records;
mod reload;
mod standing;

pub(super) use gather::Gathered;
pub(super) use list_feeds::SeenList;
pub(super) use reload::Reloaded;

use super::export::write_to;
use super::import::{decide, read_list};
use async_trait::async_trait;
use bytes::Bytes;
use notes::NoteBoard;
use records::{known, refuse_if_filed, stopped, taken};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use tidegate_config::{Config, Publish};
use tidegate_core::clock::Clock;
use tidegate_core::model::{
    Decision, Enrolment, FeedName, FeedRecord, FeedSource, FeedStanding, Hold, LedgerEntry, SyncId,
    Tick,
};
use tidegate_core::websub::Verification;
use tidegate_judge::record::local::{self, Act, Acted};
use tidegate_judge::record::{self as judge, DeletionError, Redaction};
use tidegate_net::fetch::Services;
use tidegate_poll::hub::Hub;
use tidegate_poll::{PollError, Poller, RoundError};
use tidegate_serve::{
    AddressPreview, AskedFeeds, Cache, ExportStream, ImportedList, LIST_LIMIT, Operator,
    OperatorError, Put, PutFeed, Redacted,
};
use tidegate_status::{
    FeedStatus, FeedSummary, ListNote, PollResponse, PollTotals, PushResult, WalkOrder,
};
use tidegate_store::{Store, VERSIONS_LIMIT};
use tokio::sync::{Mutex, Semaphore, mpsc};

/// The reason that is shown for a redaction where the operator gives none.
const REDACTED: &str = "its text was removed by the operator";
/// How many documents that may become feeds are read at a time.
const FIRST_DOCUMENTS: usize = 2;

/// The operator's desk.
pub(super) struct AdminService {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    poller: Poller,
    /// What looks at addresses that somebody thinks of adding.
    services: RwLock<Services>,
    /// The sites that were warned of lately, since they do not answer what is passed on to them.
    silent: Cache<String, ()>,
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
    pub(super) gathered: NoteBoard<gathered::Noted>,
    /// What came of the feeds of lists.
    pub(super) lists: NoteBoard<ListNote>,
    /// What waits for a conclusion.
    absent: standing::AbsentItems,
    /// What other gateways stored.
    stored: standing::StoredSummaries,
}

impl AdminService {
    pub(super) fn new(
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        (poller, services): (Poller, Services),
        config: &Config,
        public_url: String,
        hub: Option<Hub>,
    ) -> Self {
        let config = RwLock::new(reload::without_feeds(config.clone()));
        let changing = Mutex::new(());
        Self {
            store,
            clock,
            poller,
            services: RwLock::new(services),
            silent: Cache::lasting(on_demand::SILENT_SITES, on_demand::WARNING_PAUSE),
            first_documents: Arc::new(Semaphore::new(FIRST_DOCUMENTS)),
            asked: Arc::default(),
            usual_feeds: on_demand::UsualFeeds::default(),
            exporting: Arc::new(Semaphore::new(1)),
            config,
            public_url,
            hub,
            changing,
            gathered: NoteBoard::default(),
            lists: NoteBoard::default(),
            absent: standing::AbsentItems::new(),
            stored: standing::StoredSummaries::default(),
        }
    }

    /// How feeds are republished, and what is kept of them.
    pub(super) fn publish_rules(&self) -> Publish {
        self.config.read().unwrap_or_else(PoisonError::into_inner).publish.clone()
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
        Err(OperatorError::Conflict(format!("the feed {feed} {why}")))
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
            refuse_if_filed(before)?;
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
        refuse_if_filed(&before)?;
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
        refuse_if_filed(&before)?;
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
        let (_one, feeds) = self.turn().await?;
        self.store.condition().check_intake()?;
        let read = move || read_list(&list, LIST_LIMIT);
        let planned = self.plan_over(&feeds, (rearrange, None), read, decide).await?;
        let wrong = |why| OperatorError::BadRequest(format!("the list: {why}"));
        let (plan, done) = planned.map_err(wrong)?;
        self.apply(plan.changed(), &feeds).await?;
        Ok(done)
    }

    async fn export(&self) -> Result<ExportStream, OperatorError> {
        let Ok(turn) = Arc::clone(&self.exporting).try_acquire_owned() else {
            let said = "the state is being exported already; try again when that is done";
            return Err(OperatorError::Conflict(said.to_owned()));
        };
        let (sender, stream) = mpsc::channel(export::WAITING);
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            let to = export::PieceWriter::new(sender.clone());
            if let Err(error) = write_to(store.as_ref(), to).await {
                let error = error.report();
                tracing::warn!(error, "the export was not finished");
                // Who takes nothing learns nothing.
                let _ = sender.try_send(Err(io::Error::other(error)));
            }
            drop(turn);
        });
        Ok(stream)
    }

    async fn name_for(&self, url: &str) -> Result<FeedName, OperatorError> {
        preview::free_name(preview::read_url(url)?, self.store.feed_list().await?.as_ref())
    }

    async fn poll_now(&self, feed: &FeedName) -> Result<PollResponse, OperatorError> {
        self.check_polled(feed, "is not polled: it has no url").await?;
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
        let record = self.record(feed).await?;
        if record.standing == FeedStanding::Gone {
            return Err(OperatorError::Conflict(format!("the feed {feed} was deleted")));
        }
        if record.options.sharing.is_aggregate() && matches!(act, Act::Create { .. }) {
            let said =
                format!("the feed {feed} is an aggregate: make the item in one of its sources");
            return Err(OperatorError::Conflict(said));
        }
        self.decide_and_commit(&record, &[], |round| {
            let (verdict, acted) = local::act(round, &act).map_err(OperatorError::Item)?;
            Ok((verdict.change, acted))
        })
        .await
    }

    async fn redact(
        &self,
        feed: &FeedName,
        item: &SyncId,
        reason: Option<String>,
    ) -> Result<Redacted, OperatorError> {
        let record = self.record(feed).await?;
        let why = reason.as_deref().unwrap_or(REDACTED);
        // What left the complete view is in archives still.
        let names = [item.to_string()];
        // Nothing is read once the text is gone: a store that fails then would make that look undone.
        let kept = self.store.versions(feed, item, VERSIONS_LIMIT).await?.len();
        let unknown = || OperatorError::UnknownItem(feed.clone());
        let redacted = |ledger: &[LedgerEntry], tick: Option<Tick>| {
            let known = ledger.iter().find(|known| known.id == *item)?;
            let (published_id, native_id) =
                (known.published_id.clone(), known.native_shown.clone());
            // A tombstone is a version, too.
            let versions = kept.saturating_add(usize::from(tick.is_some())).min(VERSIONS_LIMIT);
            Some(Redacted { published_id, native_id, tick, versions, before: false })
        };
        self.decide_and_commit(&record, &names, |round| match judge::redact(round, item, why) {
            Redaction::Unknown => Err(unknown()),
            Redaction::Before => {
                let known = round.snapshot.and_then(|snapshot| redacted(&snapshot.known, None));
                let known = known.ok_or_else(unknown)?;
                Ok((None, Redacted { before: true, ..known }))
            }
            Redaction::Commit(verdict) => {
                let change = verdict.change.ok_or_else(unknown)?;
                let done = redacted(&change.known, change.tick).ok_or_else(unknown)?;
                Ok((Some(change), done))
            }
        })
        .await
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
        self.check_polled(feed, "has no url, so nobody has older documents of it").await?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_config::Config;
    use tidegate_judge::record::local::{CheckedEntry, EntryFields};
    use tidegate_poll::testing::double::{name, record, store_of};
    use tidegate_poll::testing::gateway::{Gateway, Publisher};

    #[tokio::test]
    async fn what_is_stored_is_answered() {
        let gateway = Gateway::start(&store_of(&[]), &Publisher::new("one")).await;
        let desk = AdminService::of_gateway(&gateway, &Config::default());
        let mut local = record("a");
        local.options.sharing.local = true;
        gateway.store.put_feed(&local).await.unwrap();
        let (title, content) = ("A secret".to_owned(), Some("It is one.".to_owned()));
        let fields = EntryFields { title, content, ..EntryFields::default() };
        let entry = CheckedEntry::fields(&fields).unwrap();
        let act = Act::Create { entry, noconflicts: None };
        let made = desk.item(&name("a"), act).await.unwrap();
        let done = desk.redact(&name("a"), &made.id, None).await.unwrap();
        assert!(!done.before && done.tick > Some(made.tick), "{done:?}");
        assert_eq!(done.versions, 2);
        let again = desk.redact(&name("a"), &made.id, None).await.unwrap();
        let ids = |redacted: &Redacted| (redacted.published_id.clone(), redacted.native_id.clone());
        assert!(again.before && again.tick.is_none() && ids(&again) == ids(&done), "{again:?}");
        let nothing = SyncId::new("nothing").unwrap();
        let unknown = desk.redact(&name("a"), &nothing, None).await.unwrap_err();
        assert_eq!(unknown, OperatorError::UnknownItem(name("a")));
    }
}
