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

/// Shut by the committer from the moment it touches what is read over all feeds until that is durable;
/// held open by a reader.
pub(super) type Gate = Arc<RwLock<()>>;

/// How many states are kept decoded, each of some 1,000 bytes: of the feeds that are asked for.
const DECODED: usize = 4096;

/// A feed as it may be shown.
#[derive(Clone)]
pub(super) struct Published {
    /// Its state as a record: the fields take 750 bytes, of which most are unused in most feeds, and this some 150.
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
    /// Held by whoever changes a feed, from its planning to its end. Taken before `locks`.
    pub(super) changing: FeedLocks,
    /// Held by whoever reads a feed's content, or writes it.
    pub(super) locks: FeedLocks,
    /// The gate of what is read over all feeds: records and poll states.
    pub(super) lists: Gate,
    pub(super) health: StoreHealth,
    pub(super) clock: Arc<dyn Clock>,
    /// Whose store it is, and its opening.
    pub(super) identity: RwLock<IdentityRecord>,
    /// The records of all feeds as far as they are durable.
    listed: Mutex<Arc<FeedList>>,
    /// How often records outside the content of feeds were written, as far as that was acknowledged.
    pub(super) list_writes: AtomicU64,
    /// What is being taken in from another store.
    pub(super) importing: Mutex<Option<Importer>>,
    /// How long the clock had run when the age of the log was noted last.
    noted: Mutex<Duration>,
    /// The newest epoch that may be seen.
    pub(super) sealed: watch::Sender<Epoch>,
    /// The newest that may be told, where other gateways write as well.
    pub(super) announced: watch::Sender<Epoch>,
}

impl StoreShared {
    /// Everything that was found at the start is durable and may be shown.
    pub(super) fn new((identity, found): Opened, clock: Arc<dyn Clock>) -> Self {
        let noted = Mutex::new(clock.running());
        let epoch = found.sealed.0;
        Self {
            feeds: RwLock::new(published(found.committed)),
            decoded: RwLock::default(),
            changed: ChangedFeeds::default(),
            changing: FeedLocks::default(),
            locks: FeedLocks::default(),
            lists: Gate::default(),
            health: StoreHealth::default(),
            clock,
            identity: RwLock::new(identity),
            listed: Mutex::new(Arc::new(found.feeds)),
            list_writes: AtomicU64::new(found.list_writes),
            importing: Mutex::default(),
            noted,
            sealed: watch::Sender::new(epoch),
            announced: watch::Sender::new(epoch),
        }
    }

    /// Whose store it is, and its opening.
    pub(super) fn identity(&self) -> IdentityRecord {
        self.identity.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells this opening of the store from all others in what readers are told.
    pub(super) fn mark(&self) -> u32 {
        let identity = self.identity.read().unwrap_or_else(PoisonError::into_inner);
        identity.lineage.mark().unwrap_or_default()
    }

    /// The revision of each feed, and the number of its last write.
    pub(super) fn heads(&self) -> BTreeMap<FeedName, (Revision, u64)> {
        let feeds = self.feeds();
        feeds.iter().map(|(feed, of)| (feed.clone(), (of.revision, of.write))).collect()
    }

    /// Shows what was found when the store was opened again, or read anew.
    pub(super) fn replace(&self, (identity, found): Opened) {
        *self.feeds.write().unwrap_or_else(PoisonError::into_inner) = published(found.committed);
        self.changed.note_all();
        *self.lock_list() = Arc::new(found.feeds);
        self.list_writes.store(found.list_writes, Ordering::Release);
        let epoch = found.sealed.0;
        self.open_as(identity);
        // The committer may have broken off while it was shut.
        self.lists.clear_poison();
        self.sealed.send_if_modified(|sealed| std::mem::replace(sealed, epoch) != epoch);
    }

    /// Goes on as another opening of the store.
    pub(super) fn open_as(&self, identity: IdentityRecord) {
        *self.identity.write().unwrap_or_else(PoisonError::into_inner) = identity;
    }

    /// For how long the clock ran since this was last asked.
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

    /// Runs `read` while the gate of what is read over all feeds is held open.
    pub(super) fn listing<T>(
        &self,
        read: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let _open = self.lists.read().map_err(|_| broken())?;
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

    /// Shows records of feeds that changed, `None` where one was removed; those of the others go on being shared.
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

/// The committer broke off while the gate was shut.
pub(super) fn broken() -> StoreError {
    StoreError::failed("write", "the thread that writes broke off")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::Time;
    use tidegate_core::model::{FeedState, Format, Revision};

    fn head(revision: u64) -> StateRecord {
        let state = FeedState::untouched(Format::Atom10, Time::from_unix(7));
        let state = FeedState { revision: Revision(revision), ..state };
        StateRecord { state, next_event: 3, write: revision + 1, asked_at: None }
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let published = Published::new(&head(4));
        assert_eq!(published.head().unwrap(), head(4));
        assert_eq!((published.write, published.revision), (5, Revision(4)));
    }

    #[test]
    fn a_state_takes_a_fraction_of_its_fields() {
        let bytes = Published::new(&head(4)).head.len();
        assert!(bytes * 4 < size_of::<StateRecord>(), "{bytes} bytes");
    }
}
