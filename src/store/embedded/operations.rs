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

    /// Which opening of it closed which epochs: whoever names an epoch names an opening that had
    /// reached it as well ([`Lineage::mark_at`]), so that a store that was brought back from a copy
    /// knows the epochs of the one that went on. Empty: openings are not told apart.
    pub fn lineage(&self) -> Lineage {
        self.inner.shared.identity().lineage
    }

    /// What of it does not work, from memory: also while it is closed and opened again.
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

    /// Whether what is in memory may be answered without [`Store::catch_up`]: nobody else writes, or what others wrote
    /// was looked at within 300 ms.
    pub fn answers_from_memory(&self) -> bool {
        self.inner.is_current()
    }

    /// Where other gateways write: shows what they had committed when this was called. An error where the database
    /// cannot be seen for some seconds.
    pub async fn catch_up(&self) -> Result<(), StoreError> {
        self.inner.catch_up().await
    }

    /// The gateways over the same database; `None`: this gateway is alone, and owns everything.
    pub fn gateways(&self) -> Option<Arc<Gateways>> {
        self.gateways.clone()
    }

    /// Every feed that was ever added and not purged, by name; shared by all who ask while no record changes: it costs
    /// nothing then.
    pub async fn feed_list(&self) -> Result<Arc<FeedList>, StoreError> {
        drop(self.inner.records()?);
        self.inner.shared.listed()
    }

    /// The same, where the store works: the allocation is another one once a record has changed.
    pub fn listed(&self) -> Option<Arc<FeedList>> {
        self.inner.shared.listed().ok()
    }

    /// Adds or replaces a feed's record, whatever is there. Durable on return.
    pub async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError> {
        let records = vec![record.clone()];
        let put = self.inner.ask(WriteScope::Feeds, move |it| it.put_feeds(&records, None, None));
        Ok(put.await?)
    }

    /// The same of many that were decided over a list, which pass the barrier together:
    /// [`StoreError::FeedChanged`] where another gateway has changed one of them since. Where it fails, some may be there
    /// of thousands.
    pub async fn put_feeds(
        &self,
        records: &[FeedRecord],
        over: &Arc<FeedList>,
    ) -> Result<(), StoreError> {
        self.apply_feeds(records, over, None).await
    }

    /// The same, and notes what of a configuration is applied, in the place of what was. Where it fails, none is there
    /// but of thousands, and that they are applied is not noted.
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
            let put = self.inner.ask(WriteScope::Feeds, move |committer| {
                committer.put_feeds(&some, Some(&over), applied.as_ref())
            });
            put.await?;
        }
        Ok(())
    }

    /// How often this gateway updated an item of a feed of this name that was purged, at most; 0 where
    /// none was, or where the feed that took its name had a tick since, whose state says it then.
    pub async fn purged_updates(&self, feed: &FeedName) -> Result<u32, StoreError> {
        let feed = feed.clone();
        let floor = self.inner.read(move |records, _| read::floor(records, &feed)).await?;
        Ok(floor.map_or(0, |floor| floor.updates))
    }

    /// The feed's state; `None` where nothing was committed yet. Cheap: answered from memory.
    pub async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        self.inner.check_answers()?;
        self.inner.shared.state(feed)
    }

    /// The same for who shows it: who asks for the same state again gets the same one.
    pub async fn shown_state(&self, feed: &FeedName) -> Result<Option<Arc<FeedState>>, StoreError> {
        self.inner.check_answers()?;
        self.inner.shared.shown_state(feed)
    }

    /// The revision of the feed's state, where that is shown: what costs nothing.
    pub fn revision(&self, feed: &FeedName) -> Option<Revision> {
        self.inner.check_answers().ok()?;
        self.inner.shared.revision(feed)
    }

    /// The feeds of which another state is shown.
    pub fn changed_states(&self) -> &ChangedFeeds {
        &self.inner.shared.changed
    }

    /// The items of a feed that have conflicts, in the order of their ids. A store on disk answers
    /// without reading the ledger.
    pub async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        self.inner.of_feed(feed, |feed, _| feed.contested()).await
    }

    /// One item with its bytes.
    pub async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError> {
        let id = id.clone();
        self.inner.of_feed(feed, move |feed, _| feed.whole_item(&id)).await
    }

    /// What the ledger has of an item.
    pub async fn known(
        &self,
        feed: &FeedName,
        id: &SyncId,
    ) -> Result<Option<LedgerEntry>, StoreError> {
        let id = id.clone();
        self.inner.of_feed(feed, move |feed, _| feed.known(&id)).await
    }

    /// What is left of items that left the ledger: those whose sync id, native id, former native ids or
    /// published id is among `names`, in the order of their sync ids. [`Store::known`], [`Store::item`] and
    /// every view answer nothing of them. A store of which nothing leaves has none.
    pub async fn stubs(
        &self,
        feed: &FeedName,
        names: &[String],
    ) -> Result<Vec<LedgerEntry>, StoreError> {
        let names = names.to_vec();
        self.inner.of_feed(feed, move |feed, _| feed.stubs(&names)).await
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
        self.inner.of_feed(feed, read).await
    }

    /// One kept version of an item, by its number.
    pub async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError> {
        let id = id.clone();
        self.inner.of_feed(feed, move |feed, _| feed.version(&id, updates)).await
    }

    /// What a view of the feed showed at `at`; `None` where nothing was committed yet. Redacted
    /// items are in no past. Bytes that came without a version are not kept: an item is answered
    /// with those that its version came with.
    pub async fn past(
        &self,
        feed: &FeedName,
        select: PastSelect,
        at: Time,
    ) -> Result<Option<Past>, StoreError> {
        self.inner.of_feed(feed, move |feed, state| feed.past(state, select, at).map(Some)).await
    }

    /// What is kept of the feed's past, and what it costs. Looks at all of it.
    pub async fn holdings(&self, feed: &FeedName) -> Result<Holdings, StoreError> {
        self.inner.of_feed(feed, |feed, _| feed.holdings()).await
    }

    /// What happened in the feed, newest first, at most `limit` (and at most what is kept).
    pub async fn events(&self, feed: &FeedName, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.inner.of_feed(feed, move |feed, _| feed.events(limit)).await
    }

    /// What is known of an archive, also of one that was dropped and is remembered
    /// ([`DROPPED_REMEMBERED`](crate::DROPPED_REMEMBERED)). Cheap: its content is not read.
    pub async fn archive_place(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError> {
        let id = id.clone();
        self.inner.of_feed(feed, move |feed, _| feed.archive_place(&id)).await
    }

    /// The content of an archive that is kept.
    pub async fn archive(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<Archive>, StoreError> {
        let id = id.clone();
        self.inner.of_feed(feed, move |feed, _| feed.archive(&id)).await
    }

    /// Writes poll states, many at once. Durable on return.
    pub async fn checkpoint(&self, states: &[PollState]) -> Result<(), CommitError> {
        let states = states.to_vec();
        self.inner.ask(WriteScope::Notes, move |committer| committer.checkpoint(&states)).await
    }

    /// All poll states.
    pub async fn poll_states(&self) -> Result<Vec<PollState>, StoreError> {
        self.inner.of_all(|records| records.list(Class::Polls, &[])).await
    }

    /// Those of some feeds, as far as there are any.
    pub async fn poll_states_of(&self, feeds: &[FeedName]) -> Result<Vec<PollState>, StoreError> {
        let feeds: BTreeSet<FeedName> = feeds.iter().cloned().collect();
        let found = self.inner.of_all(move |records| {
            records.all::<PollState>(Class::Polls, feeds.iter().map(keys::feed))
        });
        Ok(found.await?.into_iter().flatten().collect())
    }

    /// Notes that a large document of a feed is being taken in, so that a start after the gateway was
    /// killed in it can tell; of one that is over nothing stays. Durable on return. A store that
    /// forgets everything when it ends has nothing to note.
    pub async fn note_attempt(&self, attempt: &Attempt) -> Result<(), StoreError> {
        let attempt = attempt.clone();
        let noted = self.inner.ask(WriteScope::Notes, move |it| it.note_attempt(&attempt));
        Ok(noted.await?)
    }

    /// What was noted so, by feed.
    pub async fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        self.inner.of_all(|records| records.list(Class::Marks, keys::ATTEMPT)).await
    }

    /// Every subscription of the hub, in the order of their ids.
    pub async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError> {
        self.inner.of_all(|records| records.list(Class::Subscriptions, &[])).await
    }

    /// Writes subscriptions of the hub, and takes out those of which nothing is left
    /// ([`Subscription::is_over`]). What other gateways changed of them meanwhile is kept. All or nothing, durable on
    /// return.
    pub async fn put_subscriptions(
        &self,
        changes: &[SubscriptionChange],
    ) -> Result<(), StoreError> {
        let changes = changes.to_vec();
        let scope = WriteScope::Subscriptions;
        Ok(self.inner.ask(scope, move |it| it.put_subscriptions(&changes)).await?)
    }

    /// Takes epochs that are at least so old out of the change log, oldest first and a bounded number at a
    /// time; never the newest [`LOG_EPOCHS`](crate::LOG_EPOCHS). The age is how long the store was open since, as far as that
    /// was noted ([`Store::note_running_time`]). Answers how many went. Durable on return.
    pub async fn trim_log(&self, age: Duration) -> Result<usize, CommitError> {
        if !self.keeps_log() {
            return Ok(0);
        }
        self.inner.ask(WriteScope::Identity, move |committer| committer.trim(age)).await
    }

    /// Closed epochs after `after`, oldest first, at most `limit`. Epochs are numbered without a
    /// gap: where the first answered does not follow `after`, those between were taken out.
    pub async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError> {
        let newest = *self.inner.shared.sealed.borrow();
        self.inner.of_all(move |records| read::epochs_after(records, after, newest, limit)).await
    }

    /// The newest closed epoch, and a wake-up for each new one.
    pub fn watch_epochs(&self) -> watch::Receiver<Epoch> {
        self.inner.shared.sealed.subscribe()
    }

    /// The newest epoch that may be told to others: where other gateways write, one that all of them show.
    pub fn watch_announced(&self) -> watch::Receiver<Epoch> {
        let shared = &self.inner.shared;
        let is_followed = self.inner.following.is_some();
        if is_followed { &shared.announced } else { &shared.sealed }.subscribe()
    }

    /// Where the running time stood when it was last noted.
    pub async fn running_time(&self) -> Result<Option<Time>, StoreError> {
        let identity = self.inner.of_all(open::identity).await?;
        Ok(identity.and_then(|identity| identity.running))
    }

    /// Notes where the running time stands, by which what is kept ages. Durable on return. A store that
    /// forgets everything when it ends has nothing to note.
    pub async fn note_running_time(&self, at: Time) -> Result<(), StoreError> {
        if !self.keeps_log() {
            // Whoever keeps it has noted the time until now: the log is not to age by that again.
            let _ = self.inner.shared.running_since_noted(self.inner.shared.clock.running());
            return Ok(());
        }
        Ok(self.inner.ask(WriteScope::Identity, move |it| it.note_running(at)).await?)
    }

    /// What of a configuration was applied last.
    pub async fn applied(&self) -> Result<AppliedOrigins, StoreError> {
        self.inner.of_all(open::applied).await
    }
}

impl Store {
    /// Whether the age of the change log is noted, and its end taken out, by this gateway.
    fn keeps_log(&self) -> bool {
        let live = self.gateways.as_ref().map(|gateways| gateways.live()).unwrap_or_default();
        live.iter().find(|it| it.polls).is_none_or(|first| first.is_this)
    }
}
