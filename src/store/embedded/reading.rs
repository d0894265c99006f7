//! How the store is read: on blocking threads where that waits for a disk, a feed with its lock held.

use super::feed::FeedRecords;
use super::shared::StoreShared;
use super::{Records, StoreInner, keys};
use crate::StoreError;
use crate::engine::{Class, FirstRead};
use crate::error::AWAY;
use crate::record::StateRecord;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedState};
use tokio::sync::OwnedSemaphorePermit;
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
        reading.await.unwrap_or_else(|error| Err(StoreError::failed("read", error).into()))
    }

    /// Reads a feed as of one moment; `None` where nothing was committed to it. `first`: what is read most likely.
    pub(super) async fn read_feed<T: Send + 'static>(
        &self,
        feed: &FeedName,
        mut first: FirstRead,
        read: impl FnOnce(&FeedRecords, &StateRecord) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<Option<T>, StoreError> {
        // A database that others write to as well has one moment for each reader.
        let lock = match self.opened()?.records.engine().is_shared() {
            true => None,
            false => Some(self.shared.locks.lock_to_read(feed).await),
        };
        let feed = feed.clone();
        self.read(move |records, shared| {
            let key = keys::feed(&feed);
            first.keys.push((Class::States, key.clone()));
            let (records, head) = match records.snapshot(first)? {
                Some(records) => {
                    let head = records.record(Class::States, &key)?;
                    (records, head)
                }
                None => (records.clone(), shared.head(&feed)?),
            };
            let found = head.map(|head| read(&FeedRecords::new(&records, &feed), &head));
            drop(lock);
            found.transpose()
        })
        .await
    }

    /// The same; the default where nothing was committed to it.
    pub(super) async fn of_feed<T: Default + Send + 'static>(
        &self,
        feed: &FeedName,
        read: impl FnOnce(&FeedRecords, &FeedState) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let read = move |feed: &FeedRecords, head: &StateRecord| read(feed, &head.state);
        let found = self.read_feed(feed, FirstRead::default(), read);
        Ok(found.await?.unwrap_or_default())
    }

    /// Reads over all feeds, as of one moment.
    pub(super) async fn of_all<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Records) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read(move |records, shared| {
            let first = FirstRead::default();
            shared.listing(|| read(records.snapshot(first)?.as_ref().unwrap_or(records)))
        })
        .await
    }
}
