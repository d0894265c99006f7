//! The turns of those who read, and of transactions: so many at a time.

use crate::StoreError;
use crate::error::AWAY;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The most at a time.
pub(super) const READS: u32 = 16;
/// How long a turn is waited for where the database is reached by the network: it may leave those before without an
/// answer.
const TURN_TIME: Duration = Duration::from_secs(10);

/// Leave to read.
pub(super) type ReadTurn = OwnedSemaphorePermit;

/// The turns that there are.
pub(super) struct ReadTurns(Arc<Semaphore>);

impl ReadTurns {
    /// All of them, free.
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(READS as usize)))
    }

    /// Waits for a turn; an error where the database is far and none is free in time.
    pub(super) async fn next(&self, is_far: bool) -> Result<ReadTurn, StoreError> {
        let limit = if is_far { TURN_TIME } else { Duration::MAX };
        let turn = timeout(limit, Arc::clone(&self.0).acquire_owned()).await;
        let late = |_| {
            let source = io::Error::other("those that read before this one are not answered");
            StoreError::Away { doing: "read", why: AWAY, source }
        };
        turn.map_err(late)?.map_err(|_| StoreError::Closed)
    }

    /// Waits for all of them, however long that takes.
    pub(super) async fn all(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).acquire_many_owned(READS).await.ok()
    }
}
