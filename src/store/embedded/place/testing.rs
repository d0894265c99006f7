//! A database in memory that another gateway may take.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::EmbeddedStore;
use crate::embedded::{OpenRequest, Records, begin, inspect, since_boot};
use crate::engine::MemoryEngine;
use std::time::Duration;
use tidegate_core::clock::Clock;

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

    fn closed(&self, _epoch: Epoch) {}
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
    pub fn cut_off(&self) {
        self.0.held(since_boot().saturating_sub(LEASE * 2));
    }

    /// The database has not answered for longer than the lease lasts. No other gateway was seen.
    pub fn fall_silent(&self) {
        self.0.answered(since_boot().saturating_sub(LEASE * 2));
    }
}

impl EmbeddedStore {
    /// An empty store in memory over a database that another gateway may take.
    pub fn in_memory_with_lease(clock: Arc<dyn Clock>) -> (Self, TestLease) {
        let sign = Arc::new(LeaseSign::new(LEASE));
        let records = Records::of(Arc::new(MemoryEngine::default()));
        let found = inspect(&records).unwrap();
        let opened = begin(&records, found, OpenRequest::default()).unwrap();
        let place = Arc::new(LeasedPlace(Arc::clone(&sign)));
        let store = Self::over((records, opened, place), clock, None).unwrap();
        (store, TestLease(sign))
    }
}
