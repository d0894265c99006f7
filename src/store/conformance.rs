//! One suite for every store: what the trait's documentation promises, as tests.

mod admin;
pub(crate) mod archives;
pub(crate) mod carry;
mod cases;
mod conflicts;
mod cut_short;
mod evicted;
mod holder;
mod incarnations;
mod indexed;
mod kept;
mod limits;
pub(crate) mod make;
mod model;
mod on_postgres;
mod past;
mod retention;
pub(crate) mod subscriptions;
mod together;

use super::{DiskRequest, Store};
use std::sync::Arc;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::EndpointId;

/// A store that can be closed and opened again.
trait Bench: Sized {
    fn new() -> Self;
    fn store(&self) -> Arc<Store>;
    fn clock(&self) -> &ManualClock;
    async fn reopen(self) -> Self;

    /// The same, where this one is had meanwhile.
    async fn again(self, store: Arc<Store>) -> (Self, Arc<Store>) {
        drop(store);
        let bench = self.reopen().await;
        let store = bench.store();
        (bench, store)
    }
}

fn endpoint() -> EndpointId {
    EndpointId::own("gate.example").unwrap()
}

struct InMemory {
    store: Arc<Store>,
    clock: ManualClock,
}

impl Bench for InMemory {
    fn new() -> Self {
        let clock = ManualClock::at(make::time(0));
        let store = Arc::new(Store::in_memory(Some(endpoint()), Arc::new(clock.clone())).unwrap());
        Self { store, clock }
    }

    fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    async fn reopen(self) -> Self {
        let store = Arc::new(self.store.reopen().unwrap());
        Self { store, clock: self.clock }
    }
}

struct OnDisk {
    store: Arc<Store>,
    clock: ManualClock,
    folder: tempfile::TempDir,
}

impl OnDisk {
    fn open(folder: tempfile::TempDir, clock: ManualClock) -> Self {
        let request = DiskRequest::new(folder.path(), Some(endpoint()));
        let store = Store::open_on_disk(request, Arc::new(clock.clone())).unwrap();
        Self { store: Arc::new(store), clock, folder }
    }
}

impl Bench for OnDisk {
    fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), ManualClock::at(make::time(0)))
    }

    fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    async fn reopen(self) -> Self {
        self.store.close().await.unwrap();
        Self::open(self.folder, self.clock)
    }
}

/// Runs each named case on every store; on PostgreSQL where there is one.
macro_rules! on_every_store {
    ($($case:ident)+) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(<crate::conformance::InMemory as
                        crate::conformance::Bench>::new()).await;
                }
            )+
        }
        mod on_disk {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(<crate::conformance::OnDisk as
                        crate::conformance::Bench>::new()).await;
                }
            )+
        }
        mod on_postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    if crate::testing::is_tested() {
                        super::$case(<crate::conformance::on_postgres::OnPostgres as
                            crate::conformance::Bench>::new()).await;
                    }
                }
            )+
        }
    };
}
use on_every_store;
