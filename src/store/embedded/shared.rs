//! What the committer and the readers share: published states, and the gates between them.

use crate::model::{FeedName, FeedState};
use crate::store::{Epoch, StoreError};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use tokio::sync::watch;

/// Shut by the committer from the moment it touches a feed's entries until they are durable and
/// published; held open by a reader. So a reader sees one revision, and a durable one.
pub(super) type Gate = Arc<RwLock<()>>;

/// A feed as it may be shown.
#[derive(Clone)]
pub(super) struct Published {
    pub(super) state: FeedState,
    /// Its gate; another one once the feed was purged and added again.
    pub(super) gate: Gate,
}

impl Published {
    /// A feed whose gate stands open.
    pub(super) fn new(state: FeedState) -> Self {
        Self { state, gate: Gate::default() }
    }
}

/// Why nothing can be stored any more.
struct StoreFailure {
    doing: &'static str,
    kind: io::ErrorKind,
    said: String,
}

/// What the committer and the readers share.
pub(super) struct StoreShared {
    feeds: RwLock<HashMap<FeedName, Published>>,
    /// The gate of what is read over all feeds: records and poll states.
    pub(super) lists: Gate,
    failure: OnceLock<StoreFailure>,
    /// The newest epoch that may be seen.
    pub(super) sealed: watch::Sender<Epoch>,
}

impl StoreShared {
    /// Everything that was found at the start is durable and may be shown.
    pub(super) fn new(feeds: HashMap<FeedName, Published>, epoch: Epoch) -> Self {
        Self {
            feeds: RwLock::new(feeds),
            lists: Gate::default(),
            failure: OnceLock::new(),
            sealed: watch::Sender::new(epoch),
        }
    }

    /// A feed, where anything was committed to it.
    pub(super) fn published(&self, feed: &FeedName) -> Option<Published> {
        self.feeds.read().unwrap_or_else(PoisonError::into_inner).get(feed).cloned()
    }

    /// The names of all feeds to which anything was committed, in order.
    pub(super) fn names(&self) -> Vec<FeedName> {
        let feeds = self.feeds.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<FeedName> = feeds.keys().cloned().collect();
        names.sort();
        names
    }

    /// Shows a feed's new state, or that it was purged.
    pub(super) fn publish(&self, feed: &FeedName, state: Option<&FeedState>) {
        let mut feeds = self.feeds.write().unwrap_or_else(PoisonError::into_inner);
        match (state, feeds.get_mut(feed)) {
            (Some(state), Some(published)) => published.state = state.clone(),
            (Some(state), None) => {
                feeds.insert(feed.clone(), Published::new(state.clone()));
            }
            (None, _) => {
                feeds.remove(feed);
            }
        }
    }

    /// Runs `read` while the gate of `feed` is held open; `None` where nothing was committed to it.
    pub(super) fn reading<T>(
        &self,
        feed: &FeedName,
        read: impl FnOnce(&FeedState) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let Some(seen) = self.published(feed) else { return Ok(None) };
        let _open = seen.gate.read().map_err(|_| broken())?;
        self.health()?;
        // While this reader waited, the feed may have moved on, or been purged and added anew.
        match self.published(feed) {
            Some(now) if Arc::ptr_eq(&now.gate, &seen.gate) => read(&now.state),
            _ => Ok(None),
        }
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

    /// Stops the store for good: what was written last may or may not be durable, so neither it
    /// nor anything that builds on it may be shown.
    pub(super) fn fail(&self, error: &StoreError) {
        let (doing, kind) = match error {
            StoreError::Io { doing, source } => (*doing, source.kind()),
            _ => ("write", io::ErrorKind::Other),
        };
        let mut said = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            said = format!("{said}: {error}");
            cause = error.source();
        }
        tracing::error!(error = %said, "the store stopped: nothing is stored until a restart");
        // A second failure tells nothing that the first did not.
        let _ = self.failure.set(StoreFailure { doing, kind, said });
    }

    /// An error where the store has stopped.
    pub(super) fn health(&self) -> Result<(), StoreError> {
        match self.failure.get() {
            None => Ok(()),
            Some(StoreFailure { doing, kind, said }) => {
                let said = format!("it stopped after a failure, restart it: {said}");
                Err(StoreError::Io { doing, source: io::Error::new(*kind, said) })
            }
        }
    }
}

/// The committer broke off while the gate was shut.
pub(super) fn broken() -> StoreError {
    let source = io::Error::other("the thread that writes broke off; restart the gateway");
    StoreError::Io { doing: "write", source }
}
