//! Where everything that the gateway knows is kept. One type over an engine, one conformance suite.
//!
//! Nothing is published, announced or acknowledged that has not passed [`Store::commit`]'s
//! durability barrier.

mod applied_origins;
mod boot_time;
mod changed_feeds;
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
mod past;
pub mod portable;
mod postgres;
mod purge_mark;
mod record;
mod retention;
mod shared_settings;
mod sled;
mod subscription_change;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use serde::{Deserialize, Serialize};

pub use self::applied_origins::AppliedOrigins;
pub use self::boot_time::since_boot;
pub use self::changed_feeds::ChangedFeeds;
pub use self::condition::{SpaceReading, SpaceStatus, StoreCondition, StoreStop};
pub use self::disk::{
    CompactError, CompactProgress, CompactRequest, Compacted, DiskRequest, FreshStore, compact,
    has_store, is_vacant, make_data_folder,
};
pub use self::embedded::{PinnedFeed, RemainingItems, SHOWN_WITHIN, Store};
pub use self::error::{StoreError, in_words};
pub use self::feed_locks::{FeedLock, FeedLocks};
pub use self::free_space::{FreeSpace, MeasuredSpace, SpaceLimits};
pub use self::gateways::{GatewayId, Gateways, KnownGateway};
pub use self::limits::{
    DROPPED_REMEMBERED, EVENTS_KEPT, LOG_AGE, LOG_EPOCHS, VERSIONS_KEPT, VERSIONS_LIMIT,
};
pub use self::past::{Holdings, KeptVersion, Past, Pruned, Retention};
pub use self::postgres::PostgresRequest;
pub use self::shared_settings::SharedSettings;
pub use self::subscription_change::SubscriptionChange;

use self::portable::StoreOrigin;
use std::collections::BTreeMap;
use std::sync::Arc;
use tidegate_core::model::{
    Count, FeedName, FeedRecord, FeedState, Item, Revision, Skeleton, Tick, Time, Update,
};

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
    /// The tombstones with a later tick, by tick and then sync id.
    Tombstones(Tick),
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
    /// All items and tombstones with a later tick than this one: the window of the sync view.
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
    /// When it was first shown ([`FeedState::updated_at`] of then).
    pub shown: Time,
    pub title: String,
    /// Why it was made.
    pub reason: String,
    /// The bytes of its markup; zero where it brought none (a tombstone), and where they were redacted.
    pub size: u64,
}

/// The reason why a commit was not made, or may not have been made.
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

impl From<CommitError> for StoreError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Store(error) | CommitError::Ambiguous(error) => error,
            // Of a feed's content alone.
            other => Self::Io { doing: "write", source: std::io::Error::other(other) },
        }
    }
}
