//! What the committer and the readers share: published states, and the locks of feeds.

use super::Opened;
use super::health::StoreHealth;
use super::transfer::Importer;
use crate::feed_locks::FeedLocks;
use crate::limits::VALUE_LIMIT;
use crate::record::{IdentityRecord, StateRecord, decode, encode_plain};
use crate::{ChangedFeeds, Epoch, FeedList, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord, FeedState, Revision};
use tokio::sync::watch;

/// Locked by the committer from its first change of records over all feeds until these are durable; readers over all
/// feeds share it.
pub(super) type ListLock = Arc<RwLock<()>>;

/// The most states that are kept decoded, of feeds that were asked for; each takes some 1,000 bytes.
const DECODED: usize = 4096;

/// A feed as it may be shown.
#[derive(Clone)]
pub(super) struct Published {
    /// Its state, encoded: this takes some 150 bytes, and the decoded state 750, most of them unused.
    head: Arc<[u8]>,
    /// The number of the last write to its content.
    pub(super) write: u64,
    pub(super) revision: Revision,
}

impl Published {
    pub(super) fn new(head: &StateRecord) -> Self {
        let (write, revision) = (head.write, head.state.revision);
        // The store wrote it as a record, so that it can be.
        let head = encode_plain(head, VALUE_LIMIT).unwrap_or_default().into();
        Self { write, head, revision }
    }

    /// The feed's state.
    pub(super) fn head(&self) -> Result<StateRecord, StoreError> {
        decode(&self.head)
            .map_err(|error| StoreError::failed("read the state of a feed in memory", error))
    }
}

/// A state, and the record that it was decoded from.
struct DecodedState {
    record: Arc<[u8]>,
    state: Arc<FeedState>,
}

type PublishedFeeds = HashMap<FeedName, Box<Published>>;

/// What the committer and the readers share.
pub(super) struct StoreShared {
    feeds: RwLock<PublishedFeeds>,
    /// States that were asked for.
    decoded: RwLock<HashMap<FeedName, DecodedState>>,
    /// The feeds of which another state is shown.
    pub(super) changed: ChangedFeeds,
    /// Locked by a change of a feed from its planning to its end; taken before `locks`.
    pub(super) changing: FeedLocks,
    /// Locked by readers of the content of a feed (shared) and by its writers.
    pub(super) locks: FeedLocks,
    /// The lock of what is read over all feeds: records and poll states.
    pub(super) list_lock: ListLock,
    pub(super) health: StoreHealth,
    pub(super) clock: Arc<dyn Clock>,
    /// The identity of the store, with its opening.
    pub(super) identity: RwLock<IdentityRecord>,
    /// The durable records of all feeds.
    listed: Mutex<Arc<FeedList>>,
    /// The number of acknowledged writes outside the content of feeds.
    pub(super) list_writes: AtomicU64,
    /// The progress of an import.
    pub(super) importing: Mutex<Option<Importer>>,
    /// The running time of the clock when the age of the log was last noted.
    noted: Mutex<Duration>,
    /// The newest epoch whose changes this gateway shows.
    pub(super) newest: watch::Sender<Epoch>,
    /// The newest epoch that may be announced: with several gateways, one that all of them show.
    pub(super) announced: watch::Sender<Epoch>,
}

impl StoreShared {
    /// Everything that was found at the start is durable and may be shown.
    pub(super) fn new((identity, found): Opened, clock: Arc<dyn Clock>) -> Self {
        let noted = Mutex::new(clock.running());
        let epoch = found.newest.0;
        Self {
            feeds: RwLock::new(published(found.committed)),
            decoded: RwLock::default(),
            changed: ChangedFeeds::default(),
            changing: FeedLocks::default(),
            locks: FeedLocks::default(),
            list_lock: ListLock::default(),
            health: StoreHealth::default(),
            clock,
            identity: RwLock::new(identity),
            listed: Mutex::new(Arc::new(found.feeds)),
            list_writes: AtomicU64::new(found.list_writes),
            importing: Mutex::default(),
            noted,
            newest: watch::Sender::new(epoch),
            announced: watch::Sender::new(epoch),
        }
    }

    /// The identity of the store, with its opening.
    pub(super) fn identity(&self) -> IdentityRecord {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The mark of this opening, which readers find in validators.
    pub(super) fn opening_mark(&self) -> u32 {
        let identity = self.identity.read().unwrap_or_else(PoisonError::into_inner);
        identity.lineage.mark().unwrap_or_default()
    }

    /// The revision of each feed, and the number of its last write.
    pub(super) fn heads(&self) -> BTreeMap<FeedName, (Revision, u64)> {
        let feeds = self.feeds();
        feeds.iter().map(|(feed, of)| (feed.clone(), (of.revision, of.write))).collect()
    }

    /// Publishes the image that was read when the store was opened again, or followed anew.
    pub(super) fn replace(&self, (identity, found): Opened) {
        *self.feeds.write().unwrap_or_else(PoisonError::into_inner) = published(found.committed);
        self.changed.note_all();
        *self.lock_list() = Arc::new(found.feeds);
        self.list_writes.store(found.list_writes, Ordering::Release);
        let epoch = found.newest.0;
        self.open_as(identity);
        // The committer may have panicked with the lock.
        self.list_lock.clear_poison();
        self.newest.send_if_modified(|newest| std::mem::replace(newest, epoch) != epoch);
    }

    /// Sets the identity.
    pub(super) fn open_as(&self, identity: IdentityRecord) {
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) = identity;
    }

    /// How long the clock ran since the last call.
    pub(super) fn running_since_noted(&self, now: Duration) -> Duration {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        now.saturating_sub(std::mem::replace(&mut *noted, now))
    }

    fn feeds(&self) -> RwLockReadGuard<'_, PublishedFeeds> {
        self.feeds.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A feed, where anything was committed to it.
    pub(super) fn published(&self, feed: &FeedName) -> Option<Published> {
        self.feeds().get(feed).map(|published| Published::clone(published))
    }

    /// What is published of a feed's content, where anything was committed to it.
    pub(super) fn head(&self, feed: &FeedName) -> Result<Option<StateRecord>, StoreError> {
        self.published(feed).map(|published| published.head()).transpose()
    }

    /// A feed's state, likewise.
    pub(super) fn state(&self, feed: &FeedName) -> Result<Option<FeedState>, StoreError> {
        Ok(self.head(feed)?.map(|head| head.state))
    }

    /// A feed's state, kept decoded for who asks often.
    pub(super) fn shown_state(
        &self,
        feed: &FeedName,
    ) -> Result<Option<Arc<FeedState>>, StoreError> {
        let Some(published) = self.published(feed) else { return Ok(None) };
        let decoded = self.decoded.read().unwrap_or_else(PoisonError::into_inner);
        let found = decoded.get(feed).filter(|found| Arc::ptr_eq(&found.record, &published.head));
        if let Some(found) = found {
            return Ok(Some(Arc::clone(&found.state)));
        }
        drop(decoded);
        let state = Arc::new(published.head()?.state);
        let mut decoded = self.decoded.write().unwrap_or_else(PoisonError::into_inner);
        if decoded.len() >= DECODED {
            decoded.clear();
        }
        let found = DecodedState { record: published.head, state: Arc::clone(&state) };
        decoded.insert(feed.clone(), found);
        Ok(Some(state))
    }

    /// The revision of a feed's state.
    pub(super) fn revision(&self, feed: &FeedName) -> Option<Revision> {
        Some(self.feeds().get(feed)?.revision)
    }

    /// Shows a feed's new head, or that it was purged.
    pub(super) fn publish(&self, feed: &FeedName, head: Option<StateRecord>) {
        let mut feeds = self.feeds.write().unwrap_or_else(PoisonError::into_inner);
        match head {
            Some(head) => drop(feeds.insert(feed.clone(), Box::new(Published::new(&head)))),
            None => drop(feeds.remove(feed)),
        }
        drop(feeds);
        self.changed.note(feed);
    }

    /// Runs `read` with the shared lock of what is read over all feeds.
    pub(super) fn read_lists<T>(
        &self,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _open = self.list_lock.read().map_err(|_| committer_failed())?;
        self.health()?;
        read()
    }

    fn lock_list(&self) -> MutexGuard<'_, Arc<FeedList>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records of all feeds.
    pub(super) fn listed(&self) -> Result<Arc<FeedList>, StoreError> {
        self.health()?;
        Ok(Arc::clone(&*self.lock_list()))
    }

    /// Publishes changed records of feeds, `None` where one was removed; unchanged records stay shared.
    pub(super) fn change_list(&self, changes: Vec<(FeedName, Option<Arc<FeedRecord>>)>) {
        if changes.is_empty() {
            return;
        }
        let mut listed = self.lock_list();
        let list = Arc::make_mut(&mut listed);
        for (feed, record) in changes {
            match record {
                Some(record) => drop(list.insert(feed, record)),
                None => drop(list.remove(&feed)),
            }
        }
    }

    /// Stops the store, until it was opened again.
    pub(super) fn fail(&self, error: &StoreError) {
        self.health.stop_for(error, self.clock.now(), None);
    }

    /// Stops the store for good.
    pub(super) fn end(&self, path: &str, error: &StoreError) {
        self.health.stop_for(error, self.clock.now(), Some(path));
    }

    /// An error where the store has stopped.
    pub(super) fn health(&self) -> Result<(), StoreError> {
        self.health.check()
    }
}

fn published(heads: HashMap<FeedName, StateRecord>) -> PublishedFeeds {
    heads.into_iter().map(|(feed, head)| (feed, Box::new(Published::new(&head)))).collect()
}

/// The error where the committer has panicked.
pub(super) fn committer_failed() -> StoreError {
    StoreError::failed("write", "the thread that writes broke off")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{Format, Time};

    #[test]
    fn a_state_takes_a_fraction_of_its_fields() {
        let state = FeedState::untouched(Format::Atom10, Time::from_unix(7));
        let head = StateRecord { state, next_event: 3, write: 5, asked_at: None };
        let published = Published::new(&head);
        let bytes = published.head.len();
        assert!(bytes * 4 < size_of::<StateRecord>(), "{bytes} bytes");
        assert_eq!(published.head().unwrap(), head);
    }
}
