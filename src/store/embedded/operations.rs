//! The operations of a store.

use super::reader::EmbeddedReader;
use super::request::Touches;
use super::transfer::ExportStart;
use super::{CommitGroup, Committer, EmbeddedStore, TransactionLock, Writer};
use super::{archives, conflicts, open, past, read, stubs, transfer};
use crate::portable::{ExportRecord, ImportMessage};
use crate::{
    AppliedOrigins, ClosedEpoch, CommitError, Committed, Epoch, FeedList, Gateways, Holdings,
    KeptVersion, KnownGateway, Past, PastSelect, PinnedFeed, Pruned, Retention, Store,
    StoreCondition, StoreError, SubscriptionChange, VersionNote, condition,
};
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tidegate_core::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Attempt, Change, Count, EndpointId, Event,
    FeedName, FeedRecord, FeedState, Item, LedgerEntry, Lineage, PollState, Stub, SupIdBasis,
    SyncId, Time,
};
use tidegate_core::websub::Subscription;
use tokio::sync::{mpsc, watch};

/// How many records of feeds are written at once, all or none.
const FEEDS_AT_ONCE: usize = 4096;

#[async_trait]
impl Store for EmbeddedStore {
    fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    fn sup_ids(&self) -> SupIdBasis {
        self.sup_ids
    }

    fn lineage(&self) -> Lineage {
        self.inner.shared.lineage.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn condition(&self) -> StoreCondition {
        let space = self.space.as_ref().and_then(|space| space.last());
        let used = self.space.as_ref().and_then(|space| space.used());
        let taken = self.space.as_ref().and_then(|space| space.taken());
        let following = self.inner.following.as_ref();
        let unanswered = following.and_then(|following| following.unseen());
        let stop = self.inner.shared.health.stop();
        let gateways = self.gateways().map(|gateways| gateways.live()).unwrap_or_default();
        let clock_ahead = self.inner.database().map_or(0, |database| database.clock_ahead());
        StoreCondition { stop, space, used, taken, unanswered, gateways, clock_ahead }
    }

    fn answers_from_memory(&self) -> bool {
        self.inner.is_current()
    }

    async fn catch_up(&self) -> Result<(), StoreError> {
        self.inner.catch_up().await
    }

    fn gateways(&self) -> Option<Arc<Gateways>> {
        self.inner.database().map(|database| Arc::clone(database.gateways()))
    }

    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError> {
        let listed = self.feed_list().await?;
        Ok(listed.values().map(|record| FeedRecord::clone(record)).collect())
    }

    async fn feed_list(&self) -> Result<Arc<FeedList>, StoreError> {
        self.inner.feed_list().await
    }

    fn listed(&self) -> Option<Arc<FeedList>> {
        self.inner.shared.listed()
    }

    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        self.put_some_feeds(vec![record.clone()], None, None).await
    }

    async fn put_feeds(
        &self,
        records: &[FeedRecord],
        over: &Arc<FeedList>,
    ) -> Result<(), StoreError> {
        for some in records.chunks(FEEDS_AT_ONCE) {
            self.put_some_feeds(some.to_vec(), Some(Arc::clone(over)), None).await?;
        }
        Ok(())
    }

    async fn apply_feeds(
        &self,
        records: &[FeedRecord],
        over: &Arc<FeedList>,
        applied: AppliedOrigins,
    ) -> Result<(), StoreError> {
        let last = records.chunks(FEEDS_AT_ONCE).last().unwrap_or_default();
        let (before, last) = records.split_at(records.len() - last.len());
        self.put_feeds(before, over).await?;
        self.put_some_feeds(last.to_vec(), Some(Arc::clone(over)), Some(applied)).await
    }

    async fn purge_feed(&self, feed: &FeedName) -> Result<(), StoreError> {
        let purge = Arc::clone(&self.inner).purge(feed.clone());
        self.inner.to_the_end(purge).await
    }

    async fn purged_updates(&self, feed: &FeedName) -> Result<u32, StoreError> {
        let feed = feed.clone();
        self.inner.read(move |records, _| read::purged_updates(records, &feed)).await
    }

    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        // Also while the store is opened again: what was published is durable.
        self.inner.check_open()?;
        self.inner.check_seen()?;
        self.inner.shared.state(feed)
    }

    async fn next_decision(&self, feed: &FeedName) -> Result<Option<Time>, StoreError> {
        self.inner.check_open()?;
        self.inner.check_seen()?;
        Ok(self.inner.shared.next_decision(feed))
    }

    async fn pin(&self, feed: &FeedName) -> Result<Option<Arc<dyn PinnedFeed>>, StoreError> {
        let reader = EmbeddedReader::new(&self.inner, feed)?;
        Ok(reader.map(|reader| reader as Arc<dyn PinnedFeed>))
    }

    async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        self.inner.of_feed(feed, |records, feed, _| conflicts::ids(records, feed)).await
    }

    async fn contested_feeds(&self) -> Result<BTreeSet<FeedName>, StoreError> {
        self.inner.of_all(conflicts::feeds).await
    }

    async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let id = id.clone();
        self.inner.of_feed(feed, move |records, feed, _| read::item(records, feed, &id)).await
    }

    async fn known(&self, feed: &FeedName, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError> {
        let id = id.clone();
        self.inner.of_feed(feed, move |records, feed, _| past::known(records, feed, &id)).await
    }

    async fn stubs(&self, feed: &FeedName, names: &[String]) -> Result<Vec<Stub>, StoreError> {
        let names = names.to_vec();
        self.inner.of_feed(feed, move |records, feed, _| stubs::find(records, feed, &names)).await
    }

    async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        let id = id.clone();
        self.inner
            .of_feed(feed, move |records, feed, _| read::versions(records, feed, &id, limit))
            .await
    }

    async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let id = id.clone();
        self.inner
            .of_feed(feed, move |records, feed, _| past::version(records, feed, &id, updates))
            .await
    }

    async fn past(
        &self,
        feed: &FeedName,
        select: PastSelect,
        at: Time,
    ) -> Result<Option<Past>, StoreError> {
        self.inner
            .of_feed(feed, move |records, feed, state| {
                past::past(records, feed, state, select, at).map(Some)
            })
            .await
    }

    async fn holdings(&self, feed: &FeedName) -> Result<Holdings, StoreError> {
        self.inner.of_feed(feed, past::holdings).await
    }

    async fn events(&self, feed: &FeedName, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.inner.of_feed(feed, move |records, feed, _| read::events(records, feed, limit)).await
    }

    async fn archives(
        &self,
        feed: &FeedName,
        limit: usize,
    ) -> Result<Vec<ArchiveNote>, StoreError> {
        self.inner
            .of_feed(feed, move |records, feed, state| archives::kept(records, feed, state, limit))
            .await
    }

    async fn archive_place(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        let id = id.clone();
        self.inner.of_feed(feed, move |records, feed, _| archives::place(records, feed, &id)).await
    }

    async fn archive(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<Archive>, StoreError> {
        let id = id.clone();
        self.inner
            .of_feed(feed, move |records, feed, _| archives::archive(records, feed, &id))
            .await
    }

    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        let space = if condition::takes_in(&change) {
            self.condition().check_intake()?;
            self.space.clone()
        } else {
            None
        };
        let commit = Arc::clone(&self.inner).commit(change, space);
        self.inner.to_the_end(commit).await
    }

    async fn checkpoint(&self, states: &[PollState]) -> Result<(), CommitError> {
        let states = states.to_vec();
        self.inner
            .ask(Touches::Lists, move |committer, group| committer.checkpoint(&states, group))
            .await
    }

    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        self.inner.of_all(read::poll_states).await
    }

    async fn poll_states_of(&self, feeds: &[FeedName]) -> Result<Vec<PollState>, StoreError> {
        let feeds: BTreeSet<FeedName> = feeds.iter().cloned().collect();
        self.inner.of_all(move |records| read::poll_states_of(records, &feeds)).await
    }

    async fn note_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        let attempt = attempt.clone();
        self.inner
            .ask(Touches::Lists, move |committer, group| committer.note_attempt(&attempt, group))
            .await
    }

    async fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        self.inner.of_all(read::attempts).await
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.inner.of_all(read::subscriptions).await
    }

    async fn put_subscriptions(&self, changes: &[SubscriptionChange]) -> Result<(), StoreError> {
        let changes = changes.to_vec();
        let put = move |committer: &mut Committer, group: &mut CommitGroup| {
            committer.put_subscriptions(&changes, group)
        };
        match self.inner.opened()?.writer {
            Writer::Transactions(_) => {
                self.inner.transact(TransactionLock::Subscriptions, put).await
            }
            _ => self.inner.ask(Touches::Lists, put).await,
        }
    }

    async fn prune(
        &self,
        feed: &FeedName,
        retention: &Retention,
        now: Time,
    ) -> Result<Pruned, CommitError> {
        let inner = Arc::clone(&self.inner);
        let prune = inner.prune(feed.clone(), *retention, now);
        self.inner.to_the_end(prune).await
    }

    async fn trim_log(&self, age: Duration) -> Result<usize, CommitError> {
        if !self.inner.keeps_log() {
            return Ok(0);
        }
        self.inner.ask(Touches::Identity, move |committer, group| committer.trim(age, group)).await
    }

    async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        let newest = *self.inner.shared.sealed.borrow();
        self.inner.of_all(move |records| read::epochs_after(records, after, newest, limit)).await
    }

    fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.inner.shared.sealed.subscribe()
    }

    fn watch_announced(&self) -> watch::Receiver<Epoch> {
        let shared = &self.inner.shared;
        let is_followed = self.inner.following.is_some();
        if is_followed { &shared.announced } else { &shared.sealed }.subscribe()
    }

    async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError> {
        // Known before any feed is read, so that the log is never ahead of one.
        let newest = *self.inner.shared.sealed.borrow();
        let start = self.inner.of_all(move |records| transfer::start(records, newest)).await?;
        let ExportStart { pieces, newest, names } = start;
        for piece in pieces {
            if to.send(piece).await.is_err() {
                return Ok(());
            }
        }
        let mut after = Epoch(0);
        loop {
            let read = move |records: &_| transfer::epochs(records, after, newest);
            let epochs = self.inner.of_all(read).await?;
            let Some(last) = epochs.last() else { break };
            after = last.epoch;
            for closed in epochs {
                if to.send(ExportRecord::Log(closed)).await.is_err() {
                    return Ok(());
                }
            }
        }
        for name in names {
            if !self.export_feed(&name, &to).await? {
                break;
            }
        }
        Ok(())
    }

    async fn running_time(&self) -> Result<Option<Time>, StoreError> {
        let identity = self.inner.of_all(open::identity).await?;
        Ok(identity.and_then(|identity| identity.running))
    }

    async fn note_running_time(&self, at: Time) -> Result<(), StoreError> {
        if !self.inner.keeps_log() {
            // Whoever keeps it has noted the time until now: the log is not to age by that again.
            let _ = self.inner.shared.running_since_noted(self.inner.clock.running());
            return Ok(());
        }
        let noted = move |committer: &mut Committer, group: &mut CommitGroup| {
            committer.note_running(at, group)
        };
        self.inner.ask(Touches::Identity, noted).await
    }

    async fn applied(&self) -> Result<AppliedOrigins, StoreError> {
        self.inner.of_all(open::applied).await
    }

    async fn import(&self, mut from: mpsc::Receiver<ImportMessage>) -> Result<(), CommitError> {
        loop {
            let (mut pieces, mut bytes) = (Vec::new(), 0_usize);
            let last = loop {
                match from.recv().await {
                    Some(ImportMessage::Record(piece)) => {
                        bytes = bytes.saturating_add(piece.size());
                        pieces.push(piece);
                    }
                    last => break Some(last),
                }
                if pieces.len() >= transfer::AT_ONCE || bytes >= transfer::BYTES_AT_ONCE {
                    break None;
                }
            };
            if !pieces.is_empty() {
                if let Some(space) = &self.space {
                    space.measure();
                }
                self.condition().check_intake()?;
                self.take_in(pieces, false).await?;
            }
            match last {
                None => {}
                Some(Some(_)) => {
                    self.take_in(Vec::new(), true).await?;
                    if let Some(database) = self.inner.database() {
                        database.analyze();
                    }
                    return Ok(());
                }
                Some(None) => {
                    let path = self.inner.opened()?.records.engine().path().to_owned();
                    return Err(StoreError::PartlyImported { path }.into());
                }
            }
        }
    }

    async fn close(&self) -> Result<(), StoreError> {
        // Changes break off and are undone, and every reader that began before has let go of the records,
        // once all turns are here.
        self.inner.is_closing.store(true, Ordering::Release);
        let all = self.inner.reads.all().await;
        let Some(rest) = self.inner.take() else { return Err(StoreError::Closed) };
        if !self.inner.blocks {
            rest();
            return self.inner.shared.health();
        }
        let ended = tokio::task::spawn_blocking(rest).await;
        drop(all);
        let source = match ended {
            Ok(()) => return self.inner.shared.health(),
            Err(error) => std::io::Error::other(error),
        };
        Err(StoreError::Io { doing: "close", source })
    }
}

impl super::StoreInner {
    /// The database, where others write to it as well.
    fn database(&self) -> Option<Arc<crate::postgres::Database>> {
        match self.opened().ok()?.writer {
            Writer::Transactions(database) => Some(database),
            _ => None,
        }
    }

    /// Whether the age of the change log is noted, and its end taken out, by this gateway.
    fn keeps_log(&self) -> bool {
        let database = self.database();
        let first =
            |live: Arc<[KnownGateway]>| live.iter().find(|it| it.polls).map(|it| it.is_this);
        database.is_none_or(|it| first(it.gateways().live()).unwrap_or(true))
    }

    /// A time of this gateway's clock by that of the database.
    pub(super) fn by_database(&self, time: Time) -> Time {
        let ahead = self.database().map_or(0, |database| database.clock_ahead());
        let apart = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { time.plus(apart) } else { time.minus(apart) }
    }
}

impl EmbeddedStore {
    /// Writes records of feeds that were decided over a list, all or none, and with them what of a configuration is
    /// applied.
    async fn put_some_feeds(
        &self,
        records: Vec<FeedRecord>,
        over: Option<Arc<FeedList>>,
        applied: Option<AppliedOrigins>,
    ) -> Result<(), StoreError> {
        let put = move |committer: &mut Committer, group: &mut CommitGroup| {
            committer.put_feeds((&records, over.as_deref()), applied.as_ref(), group)
        };
        match self.inner.opened()?.writer {
            Writer::Transactions(_) => self.inner.transact(TransactionLock::Feeds, put).await,
            _ => self.inner.ask(Touches::Lists, put).await,
        }
    }

    /// Takes in pieces of another store; `is_end`: there are no more.
    async fn take_in(&self, pieces: Vec<ExportRecord>, is_end: bool) -> Result<(), CommitError> {
        self.inner
            .ask(Touches::Identity, move |committer, group| {
                committer.import(&pieces, is_end, group)
            })
            .await
    }
}
