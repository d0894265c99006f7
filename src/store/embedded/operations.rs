//! The operations of a store.

use super::Store;
use super::committer::WriteScope;
use super::feed::FeedRecords;
use super::{keys, open, read};
use crate::engine::Class;
use crate::{
    AppliedOrigins, ChangedFeeds, ClosedEpoch, CommitError, Epoch, FeedList, Gateways, Holdings,
    KeptVersion, Past, PastSelect, StoreCondition, StoreError, SubscriptionChange, VersionNote,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    Archive, ArchiveId, ArchivePlace, Attempt, Count, EndpointId, Event, FeedName, FeedRecord,
    FeedState, Item, LedgerEntry, Lineage, PollState, Revision, SupIdBasis, SyncId, Time,
};
use tidegate_core::websub::Subscription;
use tokio::sync::watch;

/// How many records of feeds are written at once, all or none.
const FEEDS_AT_ONCE: usize = 4096;

impl Store {
    /// This gateway's endpoint id: chosen when the store was made, never changed.
    pub fn endpoint(&self) -> &EndpointId {
        &self.endpoint
    }

    /// What the SUP ids of its feeds are made of: likewise.
    pub fn sup_ids(&self) -> SupIdBasis {
        self.sup_ids
    }

    /// Which opening closed which epochs. A client that names an epoch names an opening that had reached it as well
    /// ([`Lineage::mark_at`]), so a store that was restored from a copy recognises epochs of the store that went on.
    /// Empty: openings are not distinguished.
    pub fn lineage(&self) -> Lineage {
        self.inner.shared.identity().lineage
    }

    /// The condition of the store, from memory: also while it is closed or opened again.
    pub fn condition(&self) -> StoreCondition {
        let space = self.space.as_ref().map(|space| space.status()).unwrap_or_default();
        let following = self.inner.following.as_ref();
        let unanswered = following.and_then(|following| following.unseen());
        let stop = self.inner.shared.health.stop();
        let gateways = self.gateways.as_ref();
        let clock_ahead = gateways.map_or(0, |gateways| gateways.clock_ahead());
        let gateways = gateways.map(|gateways| gateways.live()).unwrap_or_default();
        StoreCondition { stop, space, unanswered, gateways, clock_ahead }
    }

    /// Whether records in memory may be answered without [`Store::catch_up`]: no other gateway writes, or the copy in
    /// memory is at most 300 ms old.
    pub fn answers_from_memory(&self) -> bool {
        self.inner.is_current()
    }

    /// Waits until every change that was committed before this call is shown, where other gateways write. An error
    /// where the database cannot be reached for some seconds.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        self.inner.catch_up().await
    }

    /// The gateways that share the database; `None`: this gateway is the only one, and owns everything.
    pub fn gateways(&self) -> Option<Arc<Gateways>> {
        self.gateways.clone()
    }

    /// The records of all feeds, by name. Shared by all callers until a record changes, so it costs nothing.
    pub async fn feed_list(&self) -> Result<Arc<FeedList>, StoreError> {
        drop(self.inner.records()?);
        self.inner.shared.listed()
    }

    /// The records of all feeds, unless the store has stopped. A changed record makes a new allocation.
    pub fn listed(&self) -> Option<Arc<FeedList>> {
        self.inner.shared.listed().ok()
    }

    /// Adds or replaces a feed's record, whatever is there. Durable on return.
    pub async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        let records = vec![record.clone()];
        let put =
            self.inner.submit(WriteScope::Feeds, move |it| it.put_feeds(&records, None, None));
        Ok(put.await?)
    }

    /// Adds or replaces many records that were planned over a list, with one barrier: [`StoreError::FeedChanged`]
    /// where another gateway has changed one of them since. After an error, some of thousands of records may be
    /// stored.
    pub async fn put_feeds(
        &self,
        records: &[FeedRecord],
        over: &Arc<FeedList>,
    ) -> Result<(), StoreError> {
        self.apply_feeds(records, over, None).await
    }

    /// Adds or replaces many records, and sets the applied origins of the configuration. After an error, some of
    /// thousands of records may be stored, and the origins are not.
    pub async fn apply_feeds(
        &self,
        records: &[FeedRecord],
        over: &Arc<FeedList>,
        mut applied: Option<AppliedOrigins>,
    ) -> Result<(), StoreError> {
        let mut left = records;
        while !left.is_empty() || applied.is_some() {
            let (some, rest) = left.split_at(left.len().min(FEEDS_AT_ONCE));
            left = rest;
            let applied = applied.take_if(|_| rest.is_empty());
            let (some, over) = (some.to_vec(), Arc::clone(over));
            let put = self.inner.submit(WriteScope::Feeds, move |committer| {
                committer.put_feeds(&some, Some(&over), applied.as_ref())
            });
            put.await?;
        }
        Ok(())
    }

    /// The most updates that this gateway made to an item of a purged feed of this name; 0 where there was none, or
    /// where the new feed of that name has had a tick since: its state has the number then.
    pub async fn purged_updates(&self, feed: &FeedName) -> Result<u32, StoreError> {
        let feed = feed.clone();
        let mark = self.inner.read(move |records, _| read::purged(records, &feed)).await?;
        Ok(mark.map_or(0, |mark| mark.updates))
    }

    /// The feed's state; `None` where nothing was committed yet. Cheap: answered from memory.
    pub async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        self.inner.check_answers()?;
        self.inner.shared.state(feed)
    }

    /// The state for readers: the same allocation until it changes.
    pub async fn shown_state(&self, feed: &FeedName) -> Result<Option<Arc<FeedState>>, StoreError> {
        self.inner.check_answers()?;
        self.inner.shared.shown_state(feed)
    }

    /// The revision of the shown state; costs nothing.
    pub fn revision(&self, feed: &FeedName) -> Option<Revision> {
        self.inner.check_answers().ok()?;
        self.inner.shared.revision(feed)
    }

    /// The feeds whose shown state changed.
    pub fn changed_states(&self) -> &ChangedFeeds {
        &self.inner.shared.changed
    }

    /// The items of a feed that have conflicts, in the order of their ids. A store on disk answers
    /// without reading the ledger.
    pub async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        self.inner.query_feed(feed, |feed, _| feed.contested()).await
    }

    /// One item with its bytes.
    pub async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let id = id.clone();
        self.inner.query_feed(feed, move |feed, _| feed.whole_item(&id)).await
    }

    /// The ledger entry of an item.
    pub async fn known(
        &self,
        feed: &FeedName,
        id: &SyncId,
    ) -> Result<Option<LedgerEntry>, StoreError> {
        let id = id.clone();
        self.inner.query_feed(feed, move |feed, _| feed.known(&id)).await
    }

    /// The stubs of items that left the ledger and whose sync id, native id, former native ids or published id is
    /// among `names`, in the order of their sync ids. [`Store::known`], [`Store::item`] and the views do not have
    /// them.
    pub async fn stubs(
        &self,
        feed: &FeedName,
        names: &[String],
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let names = names.to_vec();
        self.inner.query_feed(feed, move |feed, _| feed.stubs(&names)).await
    }

    /// An item's kept versions, newest first, at most `limit`.
    pub async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError> {
        let id = id.clone();
        let read = move |feed: &FeedRecords, _: &_| feed.versions(&id).take(limit).collect();
        self.inner.query_feed(feed, read).await
    }

    /// One kept version of an item, by its number.
    pub async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let id = id.clone();
        self.inner.query_feed(feed, move |feed, _| feed.version(&id, updates)).await
    }

    /// The view of the feed at `at`; `None` where nothing was committed yet. Redacted items are left out. Bytes
    /// without a version are not kept: an item has the bytes of its version.
    pub async fn past(
        &self,
        feed: &FeedName,
        select: PastSelect,
        at: Time,
    ) -> Result<Option<Past>, StoreError> {
        self.inner.query_feed(feed, move |feed, state| feed.past(state, select, at).map(Some)).await
    }

    /// Counts the retained versions and frames of the feed, and their bytes. Reads all keys of them.
    pub async fn holdings(&self, feed: &FeedName) -> Result<Holdings, StoreError> {
        self.inner.query_feed(feed, |feed, _| feed.holdings()).await
    }

    /// The events of the feed, newest first, at most `limit` of those that are kept.
    pub async fn events(&self, feed: &FeedName, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.inner.query_feed(feed, move |feed, _| feed.events(limit)).await
    }

    /// The note of an archive, also of a dropped one that is remembered
    /// ([`DROPPED_REMEMBERED`](crate::DROPPED_REMEMBERED)). Cheap: its content is not read.
    pub async fn archive_place(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        let id = id.clone();
        self.inner.query_feed(feed, move |feed, _| feed.archive_place(&id)).await
    }

    /// The content of an archive that is kept.
    pub async fn archive(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<Archive>, StoreError> {
        let id = id.clone();
        self.inner.query_feed(feed, move |feed, _| feed.archive(&id)).await
    }

    /// Writes poll states, many at once. Durable on return.
    pub async fn checkpoint(&self, states: &[PollState]) -> Result<(), CommitError> {
        let states = states.to_vec();
        self.inner.submit(WriteScope::Notes, move |committer| committer.checkpoint(&states)).await
    }

    /// All poll states.
    pub async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        self.inner.query_feeds(|records| records.list(Class::Polls, &[])).await
    }

    /// The poll states of some feeds, where they exist.
    pub async fn poll_states_of(&self, feeds: &[FeedName]) -> Result<Vec<PollState>, StoreError> {
        let feeds: BTreeSet<FeedName> = feeds.iter().cloned().collect();
        let found = self.inner.query_feeds(move |records| {
            records.all::<PollState>(Class::Polls, feeds.iter().map(keys::feed))
        });
        Ok(found.await?.into_iter().flatten().collect())
    }

    /// Notes that a large document of a feed is being taken in, or that this is over. If the gateway is killed
    /// meanwhile, the next start finds the note. Durable on return. A store in memory has nothing to note.
    pub async fn note_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        let attempt = attempt.clone();
        let noted = self.inner.submit(WriteScope::Notes, move |it| it.note_attempt(&attempt));
        Ok(noted.await?)
    }

    /// The notes of large documents that were not finished, by feed.
    pub async fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        self.inner.query_feeds(|records| records.list(Class::Marks, keys::ATTEMPT)).await
    }

    /// Every subscription of the hub, in the order of their ids.
    pub async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.inner.query_feeds(|records| records.list(Class::Subscriptions, &[])).await
    }

    /// Writes subscriptions of the hub, and removes those that are over ([`Subscription::is_over`]). Changes of other
    /// gateways are kept. All or nothing, durable on return.
    pub async fn put_subscriptions(
        &self,
        changes: &[SubscriptionChange],
    ) -> Result<(), StoreError> {
        let changes = changes.to_vec();
        let scope = WriteScope::Subscriptions;
        Ok(self.inner.submit(scope, move |it| it.put_subscriptions(&changes)).await?)
    }

    /// Removes epochs of at least this age from the change log, the oldest first and a bounded number; never the
    /// newest [`LOG_EPOCHS`](crate::LOG_EPOCHS). Age is the time for which the store was open since, as far as that
    /// was noted ([`Store::note_running_time`]). Answers how many were removed. Durable on return.
    pub async fn trim_log(&self, age: Duration) -> Result<usize, CommitError> {
        if !self.keeps_log() {
            return Ok(0);
        }
        self.inner.submit(WriteScope::Identity, move |committer| committer.trim(age)).await
    }

    /// Closed epochs after `after`, oldest first, at most `limit`. Epochs are numbered without a
    /// gap: where the first answered does not follow `after`, those between were taken out.
    pub async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        let newest = *self.inner.shared.newest.borrow();
        self.epochs_between(after, newest, limit).await
    }

    /// The same up to `newest`; without a transaction where there can be none.
    pub(super) async fn epochs_between(
        &self,
        after: Epoch,
        newest: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        if after >= newest {
            // A store that has stopped, is closed or was not seen says so all the same.
            return self.inner.records().map(|_| Vec::new());
        }
        self.inner
            .query_feeds(move |records| read::epochs_after(records, after, newest, limit))
            .await
    }

    /// The newest closed epoch, and a wake-up for each new one.
    pub fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.inner.shared.newest.subscribe()
    }

    /// The newest epoch that may be announced: where other gateways write, one that all of them show.
    pub fn watch_announced(&self) -> watch::Receiver<Epoch> {
        let shared = &self.inner.shared;
        let is_followed = self.inner.following.is_some();
        if is_followed { &shared.announced } else { &shared.newest }.subscribe()
    }

    /// The running time that was noted last.
    pub async fn running_time(&self) -> Result<Option<Time>, StoreError> {
        let identity = self.inner.query_feeds(open::identity).await?;
        Ok(identity.and_then(|identity| identity.running))
    }

    /// Notes the running time, by which retained data ages. Durable on return. A store in memory has nothing to note.
    pub async fn note_running_time(&self, at: Time) -> Result<(), StoreError> {
        if !self.keeps_log() {
            // The gateway that keeps the log has noted this time: the log must not age by it again.
            let _ = self.inner.shared.running_since_noted(self.inner.shared.clock.running());
            return Ok(());
        }
        Ok(self.inner.submit(WriteScope::Identity, move |it| it.note_running(at)).await?)
    }

    /// The origins of the configuration that was applied last.
    pub async fn applied(&self) -> Result<AppliedOrigins, StoreError> {
        self.inner.query_feeds(open::applied_origins).await
    }
}

impl Store {
    /// Whether this gateway notes the age of the change log and trims it.
    fn keeps_log(&self) -> bool {
        let live = self.gateways.as_ref().map(|gateways| gateways.live()).unwrap_or_default();
        live.iter().find(|it| it.polls).is_none_or(|first| first.is_this)
    }
}
