//! Where a store's database is, and what is kept there beside it.

use super::{AnswerRequests, LeaseSign};
use crate::store::{Epoch, KnownGateway, PollShards, StoreError};
use std::sync::Arc;

/// The place that a database has, which keeps notes beside it.
pub(in crate::store) trait StorePlace: Send + Sync + 'static {
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

    /// Notes what the store had reached when it was closed. `is_alone`: nobody has the database open any
    /// more.
    fn closed(&self, epoch: Epoch, is_alone: bool);
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

    fn closed(&self, _epoch: Epoch, _is_alone: bool) {}
}

#[cfg(test)]
mod leased {
    use super::*;
    use crate::clock::Clock;
    use crate::store::EmbeddedStore;
    use crate::store::embedded::{OpenRequest, Records, begin, inspect, since_boot};
    use crate::store::engine::MemoryEngine;
    use std::time::Duration;

    /// How long a lease lasts: longer than a test.
    const LEASE: Duration = Duration::from_secs(30);

    /// A database in memory that another gateway may take.
    struct LeasedPlace(Arc<LeaseSign>);

    impl StorePlace for LeasedPlace {
        fn blocks(&self) -> bool {
            false
        }

        fn lease(&self) -> Option<Arc<LeaseSign>> {
            Some(Arc::clone(&self.0))
        }

        fn note(&self, _epoch: Epoch) -> std::io::Result<()> {
            Ok(())
        }

        fn closed(&self, _epoch: Epoch, _is_alone: bool) {}
    }

    /// What says of a store whether it still has its database.
    #[derive(Clone)]
    pub struct TestLease(Arc<LeaseSign>);

    impl TestLease {
        /// The database says that the store has it.
        pub fn hold(&self) {
            self.0.held(since_boot());
        }

        /// The database says that another gateway has it.
        pub fn lose(&self) {
            self.0.lost("process 7 elsewhere".to_owned(), false);
        }

        /// The gateway was cut off from the database for longer than the lease lasts: another one may have it.
        pub(in crate::store) fn cut_off(&self) {
            self.0.held(since_boot().saturating_sub(LEASE * 2));
        }

        /// The database has not answered for longer than the lease lasts. No other gateway was seen.
        pub fn fall_silent(&self) {
            self.0.answered(since_boot().saturating_sub(LEASE * 2));
        }
    }

    impl EmbeddedStore {
        /// An empty store in memory over a database that another gateway may take.
        pub(crate) fn in_memory_with_lease(clock: Arc<dyn Clock>) -> (Self, TestLease) {
            let sign = Arc::new(LeaseSign::new(LEASE));
            let records = Records::of(Arc::new(MemoryEngine::default()));
            let found = inspect(&records).unwrap();
            let opened = begin(&records, found, OpenRequest::default()).unwrap();
            let place = Arc::new(LeasedPlace(Arc::clone(&sign)));
            let store = Self::over((records, opened, place), clock, None).unwrap();
            (store, TestLease(sign))
        }
    }
}
