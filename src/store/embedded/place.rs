//! Where a store's database is, and what is kept there beside it.

use super::{AnswerRequests, LeaseSign};
use crate::{Epoch, KnownGateway, PollShards, StoreError};
use std::sync::Arc;

/// The place that a database has, which keeps notes beside it.
pub(crate) trait StorePlace: Send + Sync + 'static {
    /// Whether reading and writing wait for a disk.
    fn blocks(&self) -> bool;

    /// What is known of the lease on it, where others may take it.
    fn lease(&self) -> Option<Arc<LeaseSign>> {
        None
    }

    /// The shards that this gateway polls, where several gateways poll; it takes part from the first call on. Blocks.
    fn poll_shards(&self) -> Result<Option<Arc<PollShards>>, StoreError> {
        Ok(None)
    }

    /// The gateways that have it, where several may.
    fn gateways(&self) -> Arc<[KnownGateway]> {
        Arc::default()
    }

    /// By how many milliseconds this machine's clock is ahead of the database's, where that has one.
    fn clock_ahead(&self) -> i64 {
        0
    }

    /// Has the requests of other gateways carried out.
    fn answer_requests(&self, _answers: Arc<dyn AnswerRequests>) {}

    /// Notes an epoch that became durable, without waiting for the disk.
    fn note(&self, epoch: Epoch) -> std::io::Result<()>;

    /// Notes what the store had reached when it was closed.
    fn closed(&self, epoch: Epoch);
}

/// What is in memory leaves no note.
pub(super) struct Nowhere;

impl StorePlace for Nowhere {
    fn blocks(&self) -> bool {
        false
    }

    fn note(&self, _epoch: Epoch) -> std::io::Result<()> {
        Ok(())
    }

    fn closed(&self, _epoch: Epoch) {}
}

#[cfg(any(test, feature = "testing"))]
mod testing;
