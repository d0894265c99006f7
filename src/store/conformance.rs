//! One suite for every store: what the trait's documentation promises, as tests.

mod admin;
pub(crate) mod archives;
pub(crate) mod carry;
mod cases;
mod conflicts;
mod cut_short;
mod evicted;
mod incarnations;
mod indexed;
mod kept;
mod limits;
pub(crate) mod make;
mod model;
mod on_postgres;
mod past;
mod pinned_reader;
mod retention;
pub(crate) mod subscriptions;
mod together;

use super::{DiskRequest, PostgresRequest, Store};
use crate::testing::TestSchema;
use std::sync::Arc;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::EndpointId;

/// What a store is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EngineKind {
    Memory,
    Disk,
    Postgres,
}

/// The place of a store, which outlives it.
enum Home {
    Memory,
    Disk(tempfile::TempDir),
    Postgres(TestSchema),
}

/// A store that can be closed and opened again.
struct StoreFixture {
    store: Arc<Store>,
    clock: ManualClock,
    home: Home,
}

fn endpoint() -> EndpointId {
    EndpointId::own("gate.example").unwrap()
}

impl StoreFixture {
    fn new(kind: EngineKind) -> Self {
        let home = match kind {
            EngineKind::Memory => Home::Memory,
            EngineKind::Disk => Home::Disk(tempfile::tempdir().unwrap()),
            EngineKind::Postgres => Home::Postgres(TestSchema::new().unwrap()),
        };
        Self::open(home, ManualClock::at(make::time(0)))
    }

    fn open(home: Home, clock: ManualClock) -> Self {
        let (endpoint, time) = (Some(endpoint()), Arc::new(clock.clone()));
        let store = match &home {
            Home::Memory => Store::in_memory(endpoint, time),
            Home::Disk(folder) => {
                Store::open_on_disk(DiskRequest::new(folder.path(), endpoint), time)
            }
            Home::Postgres(schema) => {
                Store::open_on_postgres(PostgresRequest::new(&schema.url, endpoint), time)
            }
        };
        Self { store: Arc::new(store.unwrap()), clock, home }
    }

    fn kind(&self) -> EngineKind {
        match self.home {
            Home::Memory => EngineKind::Memory,
            Home::Disk(_) => EngineKind::Disk,
            Home::Postgres(_) => EngineKind::Postgres,
        }
    }

    fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    async fn reopen(self) -> Self {
        if let Home::Memory = self.home {
            return Self { store: Arc::new(self.store.reopen().unwrap()), ..self };
        }
        self.store.close().await.unwrap();
        Self::open(self.home, self.clock)
    }

    /// The same, with the store that it has then.
    async fn again(self, store: Arc<Store>) -> (Self, Arc<Store>) {
        drop(store);
        let fixture = self.reopen().await;
        let store = fixture.store();
        (fixture, store)
    }
}

/// Runs each named case on every store; on PostgreSQL where there is one.
macro_rules! on_every_store {
    ($($case:ident)+) => {
        mod memory {
            use crate::conformance::{StoreFixture, EngineKind};
            $(
                #[tokio::test]
                async fn $case() {
                    super::$case(StoreFixture::new(EngineKind::Memory)).await;
                }
            )+
        }
        mod on_disk {
            use crate::conformance::{StoreFixture, EngineKind};
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    super::$case(StoreFixture::new(EngineKind::Disk)).await;
                }
            )+
        }
        mod on_postgres {
            use crate::conformance::{StoreFixture, EngineKind};
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    if crate::testing::is_tested() {
                        super::$case(StoreFixture::new(EngineKind::Postgres)).await;
                    }
                }
            )+
        }
    };
}
use on_every_store;
