//! Where everything that the gateway knows is kept. One trait, one conformance suite.
//!
//! Nothing is published, announced or acknowledged that has not passed [`Store::commit`]'s
//! durability barrier.

mod applied_origins;
mod assemble;
mod boot_time;
mod check;
mod condition;
#[cfg(test)]
mod conformance;
mod disk;
mod embedded;
pub mod endpoint;
mod engine;
mod error;
mod feed_locks;
mod free_space;
mod gateways;
mod limits;
mod lineage;
mod past;
mod pinned;
pub mod portable;
mod postgres;
mod purge_mark;
mod record;
mod retention;
mod seals;
mod shared_settings;
mod sled;
mod subscription_change;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use self::assemble::{assemble, note};
use self::sled::open_database;
use serde::{Deserialize, Serialize};

pub use self::applied_origins::AppliedOrigins;
pub use self::boot_time::since_boot;
pub use self::condition::{FreeBytes, SpaceShortage, StoreCondition, StoreStop, TakenBytes};
pub use self::disk::{
    CompactError, CompactProgress, CompactRequest, Compacted, DiskRequest, FreshStore, compact,
    is_vacant, make_data_folder,
};
pub use self::embedded::{EmbeddedStore, SHOWN_WITHIN};
pub use self::error::{StoreError, in_words};
pub use self::feed_locks::{FeedLock, FeedLocks};
pub use self::free_space::{FreeSpace, MeasuredSpace, SpaceLimits};
pub use self::gateways::{GatewayId, Gateways, KnownGateway};
pub use self::limits::{
    DROPPED_REMEMBERED, EVENTS_KEPT, LOG_AGE, LOG_EPOCHS, VERSIONS_KEPT, VERSIONS_LIMIT,
};
pub use self::past::{Holdings, KeptVersion, Past, Pruned, Retention};
pub use self::pinned::{PinnedFeed, RemainingItems};
pub use self::postgres::PostgresRequest;
pub use self::shared_settings::SharedSettings;
pub use self::subscription_change::SubscriptionChange;

use self::portable::{ExportRecord, ImportMessage, StoreOrigin};
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    Archive, ArchiveId, ArchiveNote, ArchivePlace, Attempt, Change, Count, EndpointId, Event,
    FeedName, FeedRecord, FeedState, Item, LedgerEntry, Lineage, PollState, Revision, Skeleton,
    Snapshot, Stub, SupIdBasis, SyncId, Tick, Time, Update,
};
use tidegate_core::websub::Subscription;
use tokio::sync::{mpsc, watch};

/// Feeds by name.
pub type FeedList = BTreeMap<FeedName, Arc<FeedRecord>>;

/// Records as a list.
pub fn as_list(records: Vec<FeedRecord>) -> FeedList {
    records.into_iter().map(|record| (record.name.clone(), Arc::new(record))).collect()
}

/// A number of the change log: everything in an epoch is durable before the epoch can be seen, and
/// nothing is added to it afterwards. Zero: before the first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Epoch(pub u64);

/// A change in the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LoggedChange {
    /// The feed that changed.
    pub feed: FeedName,
    pub tick: Tick,
    pub revision: Revision,
    /// How many versions the change made.
    pub versions: u32,
}

/// A closed epoch of the change log.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClosedEpoch {
    /// Its number.
    pub epoch: Epoch,
    /// When it was closed, by the gateway's clock; never before that of an earlier epoch.
    pub at: Time,
    /// The changes that made a tick, in the order they were committed.
    pub changes: Vec<LoggedChange>,
}

/// What a commit answers once it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Committed {
    /// The feed's revision now.
    pub revision: Revision,
}

/// Which items of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Select {
    /// The items of the reader view, in its order.
    Current,
    /// Items and tombstones with a later tick, by tick and then sync id.
    After(Tick),
    /// Every item that lives, and every tombstone kept; by tick and then sync id.
    All,
}

/// Which items of a feed at a time that is past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PastSelect {
    /// The items of the reader view, in its order.
    Current,
    /// Every item that lived, and every tombstone; by tick and then sync id.
    All,
    /// The same, as far as it is known of what had a later tick than this one, which is all that the
    /// window of the sync view has.
    Since(Tick),
}

/// A feed at one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    pub state: FeedState,
    /// The document around its entries.
    pub skeleton: Skeleton,
    /// The items asked for.
    pub items: Vec<Item>,
}

/// A kept version of an item; without its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VersionNote {
    /// The number of the version: `updates` as it was.
    pub updates: Count,
    /// The topmost update of its history.
    pub update: Update,
    /// Whether it is a tombstone.
    pub deleted: bool,
    pub tick: Tick,
    /// When it came to be shown ([`FeedState::updated_at`] of then).
    pub shown: Time,
    pub title: String,
    /// Why it was made.
    pub reason: String,
    /// The bytes of its markup; zero where it brought none (a tombstone), and where they were redacted.
    pub size: u64,
}

/// Why a commit was not made, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The feed is at another revision: read again and decide again.
    #[error("the feed is at revision {}", .0.0)]
    Conflict(Revision),
    /// The feed has a document that was asked for later than the one that the change comes from.
    #[error("the feed has a document that was asked for later")]
    Overtaken,
    /// It is unknown whether the change was stored: read again before deciding anything.
    #[error("it is unknown whether the change was stored")]
    Ambiguous(#[source] StoreError),
    /// It was not stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How often a feed is read anew that was changed while it was read.
const READ_TRIES: usize = 16;

/// The store. Domain-level: no closures, no iterators over the engine, no types of the engine.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// This gateway's endpoint id: chosen when the store was made, never changed.
    fn endpoint(&self) -> &EndpointId;

    /// What the SUP ids of its feeds are made of: likewise.
    fn sup_ids(&self) -> SupIdBasis {
        SupIdBasis::Endpoint
    }

    /// Which opening of it closed which epochs: whoever names an epoch names an opening that had
    /// reached it as well ([`Lineage::mark_at`]), so that a store that was brought back from a copy
    /// knows the epochs of the one that went on. Empty: openings are not told apart.
    fn lineage(&self) -> Lineage {
        Lineage::default()
    }

    /// What of it does not work, from memory: also while it is closed and opened again.
    fn condition(&self) -> StoreCondition {
        StoreCondition::default()
    }

    /// Whether what is in memory may be answered without [`Store::catch_up`]: nobody else writes, or what others wrote
    /// was looked at within 300 ms.
    fn answers_from_memory(&self) -> bool {
        true
    }
    /// Where other gateways write: shows what they had committed when this was called. An error where the database
    /// cannot be seen for some seconds.
    async fn catch_up(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The gateways over the same database; `None`: this gateway is alone, and owns everything.
    fn gateways(&self) -> Option<Arc<Gateways>> {
        None
    }

    /// Every feed that was ever added and not purged, by name.
    async fn feeds(&self) -> Result<Vec<FeedRecord>, StoreError>;
    /// The same, shared by all who ask while no record changes: it costs nothing then.
    async fn feed_list(&self) -> Result<Arc<FeedList>, StoreError> {
        Ok(Arc::new(as_list(self.feeds().await?)))
    }
    /// The same, where it is in memory: the allocation is another one once a record has changed.
    fn listed(&self) -> Option<Arc<FeedList>> {
        None
    }
    /// Adds or replaces a feed's record, whatever is there. Durable on return.
    async fn put_feed(&self, record: &FeedRecord) -> Result<(), StoreError>;
    /// The same of many that were decided over a list, which pass the barrier together:
    /// [`StoreError::FeedChanged`] where another gateway has changed one of them since. Where it fails, some may be there
    /// of thousands.
    async fn put_feeds(
        &self,
        records: &[FeedRecord],
        _over: &Arc<FeedList>,
    ) -> Result<(), StoreError> {
        for record in records {
            self.put_feed(record).await?;
        }
        Ok(())
    }
    /// The same, and notes what of a configuration is applied, in the place of what was. Where it fails, none is there
    /// but of thousands, and that they are applied is not noted.
    async fn apply_feeds(
        &self,
        records: &[FeedRecord],
        over: &Arc<FeedList>,
        applied: AppliedOrigins,
    ) -> Result<(), StoreError>;
    /// Removes a feed's items, ledger, skeleton, archives, poll state and record. Durable on return; the log
    /// keeps what it said. A feed of that name that is added later starts at a revision and tick
    /// above the purged one's.
    async fn purge_feed(&self, feed: &FeedName) -> Result<(), StoreError>;
    /// How often this gateway updated an item of a feed of this name that was purged, at most; 0 where
    /// none was, or where the feed that took its name had a tick since, whose state says it then.
    async fn purged_updates(&self, _feed: &FeedName) -> Result<u32, StoreError> {
        Ok(0)
    }

    /// The feed's state; `None` where nothing was committed yet. Cheap: answered from memory.
    async fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError>;
    /// When something pending in the feed can be decided, of its state; `None` where nothing is. Cheaper
    /// than its state.
    async fn next_decision(&self, feed: &FeedName) -> Result<Option<Time>, StoreError> {
        Ok(self.state(feed).await?.and_then(|state| state.next_decision_at))
    }
    /// The feed as it stands, to be read as it is now: [`StoreError::Outdated`] once another change was committed. `None`
    /// where nothing was committed yet.
    async fn pin(&self, feed: &FeedName) -> Result<Option<Arc<dyn PinnedFeed>>, StoreError>;
    /// The state, ledger and order, at one revision.
    async fn snapshot(&self, feed: &FeedName) -> Result<Option<Snapshot>, StoreError> {
        for _ in 1..READ_TRIES {
            let Some(reader) = self.pin(feed).await? else { return Ok(None) };
            match reader.snapshot().await {
                Err(StoreError::Outdated) => {}
                read => return read,
            }
        }
        Err(StoreError::Outdated)
    }
    /// The items of a feed that have conflicts, in the order of their ids. A store on disk answers
    /// without reading the ledger.
    async fn contested(&self, feed: &FeedName) -> Result<Vec<SyncId>, StoreError> {
        let conflicts = self.snapshot(feed).await?.map(|snapshot| snapshot.conflicts);
        Ok(conflicts.unwrap_or_default().into_keys().collect())
    }
    /// The feeds that have such items. A store on disk answers with one read of all conflicts there are.
    async fn contested_feeds(&self) -> Result<BTreeSet<FeedName>, StoreError> {
        let mut found = BTreeSet::new();
        for name in self.feed_list().await?.keys() {
            if !self.contested(name).await?.is_empty() {
                found.insert(name.clone());
            }
        }
        Ok(found)
    }
    /// Items with their bytes, state and skeleton, at one revision.
    async fn view(&self, feed: &FeedName, select: Select) -> Result<Option<View>, StoreError> {
        for _ in 1..READ_TRIES {
            let Some(reader) = self.pin(feed).await? else { return Ok(None) };
            match reader.view(select).await {
                Err(StoreError::Outdated) => {}
                read => return read,
            }
        }
        Err(StoreError::Outdated)
    }
    /// One item with its bytes.
    async fn item(&self, feed: &FeedName, id: &SyncId) -> Result<Option<Item>, StoreError>;
    /// What the ledger has of an item.
    async fn known(&self, feed: &FeedName, id: &SyncId) -> Result<Option<LedgerEntry>, StoreError>;
    /// What is left of items that left the ledger: those whose sync id, native id, former native ids or
    /// published id is among `names`, in the order of their sync ids. [`Store::known`], [`Store::item`] and
    /// every view answer nothing of them. A store of which nothing leaves has none.
    async fn stubs(&self, _feed: &FeedName, _names: &[String]) -> Result<Vec<Stub>, StoreError> {
        Ok(Vec::new())
    }
    /// An item's kept versions, newest first, at most `limit`.
    async fn versions(
        &self,
        feed: &FeedName,
        id: &SyncId,
        limit: usize,
    ) -> Result<Vec<VersionNote>, StoreError>;
    /// One kept version of an item, by its number.
    async fn version(
        &self,
        feed: &FeedName,
        id: &SyncId,
        updates: Count,
    ) -> Result<Option<KeptVersion>, StoreError>;
    /// What a view of the feed showed at `at`; `None` where nothing was committed yet. Redacted
    /// items are in no past. Bytes that came without a version are not kept: an item is answered
    /// with those that its version came with.
    async fn past(
        &self,
        feed: &FeedName,
        select: PastSelect,
        at: Time,
    ) -> Result<Option<Past>, StoreError>;
    /// What is kept of the feed's past, and what it costs. Looks at all of it.
    async fn holdings(&self, feed: &FeedName) -> Result<Holdings, StoreError>;
    /// What happened in the feed, newest first, at most `limit` (and at most what is kept).
    async fn events(&self, feed: &FeedName, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// The archives that are kept, newest first, at most `limit`.
    async fn archives(&self, feed: &FeedName, limit: usize)
    -> Result<Vec<ArchiveNote>, StoreError>;
    /// What is known of an archive, also of one that was dropped and is remembered
    /// ([`DROPPED_REMEMBERED`]). Cheap: its content is not read.
    async fn archive_place(
        &self,
        feed: &FeedName,
        id: &ArchiveId,
    ) -> Result<Option<ArchivePlace>, StoreError>;
    /// The content of an archive that is kept.
    async fn archive(&self, feed: &FeedName, id: &ArchiveId)
    -> Result<Option<Archive>, StoreError>;

    /// Applies a change: all or nothing, durable and shown on return, compare-and-set on the feed's revision. One that
    /// comes from a document is refused where the feed has one that was asked for later ([`Change::asked_at`]). A feed
    /// without a state has the revision 0. The first changes of a feed
    /// whose name was purged are lifted above the purged one's revision, tick and render revision.
    async fn commit(&self, change: Change) -> Result<Committed, CommitError>;

    /// Writes poll states, many at once. Durable on return.
    async fn checkpoint(&self, states: &[PollState]) -> Result<(), CommitError>;
    /// All poll states.
    async fn poll_states(&self) -> Result<Vec<PollState>, StoreError>;
    /// Those of some feeds, as far as there are any.
    async fn poll_states_of(&self, feeds: &[FeedName]) -> Result<Vec<PollState>, StoreError> {
        let feeds: BTreeSet<&FeedName> = feeds.iter().collect();
        let mut states = self.poll_states().await?;
        states.retain(|state| feeds.contains(&state.feed));
        Ok(states)
    }

    /// Notes that a large document of a feed is being taken in, so that a start after the gateway was
    /// killed in it can tell; of one that is over nothing stays. Durable on return. A store that
    /// forgets everything when it ends has nothing to note.
    async fn note_attempt(&self, _attempt: &Attempt) -> Result<(), StoreError> {
        Ok(())
    }
    /// What was noted so, by feed.
    async fn attempts(&self) -> Result<Vec<Attempt>, StoreError> {
        Ok(Vec::new())
    }

    /// Every subscription of the hub, in the order of their ids.
    async fn subscriptions(&self) -> Result<Vec<Subscription>, StoreError>;
    /// Writes subscriptions of the hub, and takes out those of which nothing is left
    /// ([`Subscription::is_over`]). What other gateways changed of them meanwhile is kept. All or nothing, durable on
    /// return.
    async fn put_subscriptions(&self, changes: &[SubscriptionChange]) -> Result<(), StoreError>;

    /// Takes out what `retention` does not keep of the feed's past, given the time, oldest first and
    /// a bounded number at a time. Nothing that is shown changes. Durable on return.
    async fn prune(
        &self,
        feed: &FeedName,
        retention: &Retention,
        now: Time,
    ) -> Result<Pruned, CommitError>;
    /// Takes epochs that are at least so old out of the change log, oldest first and a bounded number at a
    /// time; never the newest [`LOG_EPOCHS`]. The age is how long the store was open since, as far as that
    /// was noted ([`Store::note_running_time`]). Answers how many went. Durable on return.
    async fn trim_log(&self, age: Duration) -> Result<usize, CommitError>;

    /// Closed epochs after `after`, oldest first, at most `limit`. Epochs are numbered without a
    /// gap: where the first answered does not follow `after`, those between were taken out.
    async fn epochs_after(
        &self,
        after: Epoch,
        limit: usize,
    ) -> Result<Vec<ClosedEpoch>, StoreError>;
    /// The newest closed epoch, and a wake-up for each new one.
    fn watch_epochs(&self) -> watch::Receiver<Epoch>;
    /// The newest epoch that may be told to others: where other gateways write, one that all of them show.
    fn watch_announced(&self) -> watch::Receiver<Epoch> {
        self.watch_epochs()
    }

    /// Hands over everything that is kept, piece by piece: what stands by itself, then each feed at
    /// one revision ([`ExportRecord`]). Ends early where nobody takes the pieces any more.
    async fn export(&self, to: mpsc::Sender<ExportRecord>) -> Result<(), StoreError>;
    /// Where the running time stood when it was last noted.
    async fn running_time(&self) -> Result<Option<Time>, StoreError> {
        Ok(None)
    }
    /// Notes where the running time stands, by which what is kept ages. Durable on return. A store that
    /// forgets everything when it ends has nothing to note.
    async fn note_running_time(&self, _at: Time) -> Result<(), StoreError> {
        Ok(())
    }
    /// What of a configuration was applied last.
    async fn applied(&self) -> Result<AppliedOrigins, StoreError> {
        Ok(AppliedOrigins::default())
    }
    /// Takes in what another store of the same endpoint handed over, to its end: where the channel is
    /// closed before that was said, it is not whole ([`StoreError::PartlyImported`]). Only into a store
    /// that nothing was ever put into ([`StoreError::Occupied`]); after an error it is of no use.
    /// Durable on return.
    async fn import(&self, from: mpsc::Receiver<ImportMessage>) -> Result<(), CommitError>;

    /// Waits until everything that was accepted is durable, and lets go of the folder. Every later
    /// call answers [`StoreError::Closed`].
    async fn close(&self) -> Result<(), StoreError>;
}
