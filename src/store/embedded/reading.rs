//! How the store is read: on blocking threads where that waits for a disk, a feed with its gate held.

use super::feed::FeedRecords;
use super::shared::StoreShared;
use super::{Records, StoreInner, keys};
use crate::StoreError;
use crate::engine::Class;
use crate::error::AWAY;
use crate::record::StateRecord;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedState};
use tokio::sync::{OwnedRwLockReadGuard, OwnedSemaphorePermit};
use tokio::time::timeout;

/// The most at a time.
pub(super) const READS: u32 = 16;
/// How long a turn is waited for where the database is reached by the network: it may leave those before without an
/// answer.
const TURN_TIME: Duration = Duration::from_secs(10);

impl StoreInner {
    /// A turn to read. An error where those that read stand still.
    pub(super) async fn read_turn(&self) -> Result<OwnedSemaphorePermit, StoreError> {
        let limit = if self.records()?.engine().is_shared() { TURN_TIME } else { Duration::MAX };
        let turn = timeout(limit, Arc::clone(&self.reads).acquire_owned()).await;
        let late = |_| {
            let source = io::Error::other("those that read before this one are not answered");
            StoreError::Away { doing: "read", why: AWAY, source }
        };
        turn.map_err(late)?.map_err(|_| StoreError::Closed)
    }

    /// Waits for all turns, however long that takes.
    pub(super) async fn all_turns(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.reads).acquire_many_owned(READS).await.ok()
    }

    /// Runs `read`; on a blocking thread, where one is free for it, if it waits for a disk.
    pub(super) async fn read<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        read: impl FnOnce(&Records, &Arc<StoreShared>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.check_seen()?;
        if !self.blocks {
            return read(&self.records()?, &self.shared);
        }
        // Where the store has stopped, that is said before others have read.
        drop(self.records()?);
        let turn = self.read_turn().await?;
        let records = self.records()?;
        let shared = Arc::clone(&self.shared);
        let reading = tokio::task::spawn_blocking(move || {
            let answer = read(&records, &shared);
            // The records go before the turn does: whoever closes waits for all turns.
            drop(records);
            drop(turn);
            answer
        });
        reading.await.unwrap_or_else(|error| {
            let source = io::Error::other(error);
            Err(StoreError::Io { doing: "read", source }.into())
        })
    }

    /// Reads a feed as of one moment; `None` where nothing was committed to it.
    pub(super) async fn read_feed<T: Send + 'static>(
        &self,
        feed: &FeedName,
        read: impl FnOnce(&FeedRecords, &StateRecord) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        self.opened()?;
        let gate = match self.shared.gate(feed) {
            Some(gate) => Some(gate.read_owned().await),
            None => None,
        };
        let feed = feed.clone();
        self.read(move |records, shared| {
            let key = keys::feed(&feed);
            let Some((records, stored)) = records.snapshot(Some((Class::States, key.clone())))?
            else {
                return match (shared.published(&feed), &gate) {
                    // It was committed to for the first time since.
                    (None, _) | (_, None) => Ok(None),
                    (Some(shown), Some(gate))
                        if Arc::ptr_eq(&shown.gate, OwnedRwLockReadGuard::rwlock(gate)) =>
                    {
                        read(&FeedRecords::new(records, &feed), &shown.head()?).map(Some)
                    }
                    // It was purged and begun anew since: its readers and this one do not wait for each other.
                    _ => Err(StoreError::Outdated),
                };
            };
            let head = stored.map(|value| records.decode(Class::States, &key, &value));
            let feed = FeedRecords::new(&records, &feed);
            head.transpose()?.map(|head| read(&feed, &head)).transpose()
        })
        .await
    }

    /// The same; the default where nothing was committed to it.
    pub(super) async fn of_feed<T: Default + Send + 'static>(
        &self,
        feed: &FeedName,
        read: impl FnOnce(&FeedRecords, &FeedState) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let found = self.read_feed(feed, move |feed, head| read(feed, &head.state));
        Ok(found.await?.unwrap_or_default())
    }

    /// Reads over all feeds, as of one moment.
    pub(super) async fn of_all<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Records) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read(move |records, shared| {
            shared.listing(|| match records.snapshot(None)? {
                Some((records, _)) => read(&records),
                None => read(records),
            })
        })
        .await
    }
}
