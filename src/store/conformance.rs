//! One suite for every store: what the trait's documentation promises, as tests.

mod admin;
pub(crate) mod archives;
pub(crate) mod carry;
mod incarnations;
mod ledger;
pub(crate) mod make;
mod model;
mod past;
mod retention;
pub(crate) mod subscriptions;
mod together;

use super::{PostgresRequest, Store, StoreError};
use crate::testing::TestSchema;
use std::ops::Deref;
use std::sync::Arc;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::EndpointId;

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

struct StoreFixture {
    kind: EngineKind,
    store: Arc<Store>,
    clock: ManualClock,
    home: Home,
}

fn endpoint() -> EndpointId {
    EndpointId::own("gate.example").unwrap()
}

fn open(home: &Home, clock: ManualClock) -> Result<Store, StoreError> {
    let (endpoint, clock) = (Some(endpoint()), Arc::new(clock));
    match home {
        Home::Memory => Store::in_memory(endpoint, clock),
        Home::Disk(folder) => Store::on_disk(folder.path(), endpoint, clock),
        Home::Postgres(schema) => {
            Store::open_on_postgres(PostgresRequest::new(&schema.url, endpoint), clock)
        }
    }
}

impl Deref for StoreFixture {
    type Target = Arc<Store>;

    fn deref(&self) -> &Arc<Store> {
        &self.store
    }
}

impl StoreFixture {
    fn new(kind: EngineKind) -> Self {
        let home = match kind {
            EngineKind::Memory => Home::Memory,
            EngineKind::Disk => Home::Disk(tempfile::tempdir().unwrap()),
            EngineKind::Postgres => Home::Postgres(TestSchema::new().unwrap()),
        };
        let clock = ManualClock::at(make::time(0));
        let store = Arc::new(open(&home, clock.clone()).unwrap());
        Self { kind, store, clock, home }
    }

    /// The store as another gateway has it, where there can be one.
    fn of_another_gateway(&self) -> Arc<Store> {
        match self.home {
            Home::Postgres(_) => Arc::new(open(&self.home, self.clock.clone()).unwrap()),
            Home::Memory | Home::Disk(_) => Arc::clone(&self.store),
        }
    }

    async fn reopen(self) -> Self {
        Self { store: Arc::new(self.try_reopen().await.unwrap()), ..self }
    }

    async fn try_reopen(&self) -> Result<Store, StoreError> {
        if self.kind == EngineKind::Memory {
            return self.store.reopen();
        }
        self.store.close().await.unwrap();
        open(&self.home, self.clock.clone())
    }
}

/// Runs each named case on every store; on PostgreSQL where there is one.
macro_rules! on_every_store {
    ($($case:ident)+) => {
        $crate::conformance::on_store! { memory Memory $($case)+ }
        $crate::conformance::on_store! { on_disk Disk $($case)+ }
        $crate::conformance::on_store! { on_postgres Postgres $($case)+ }
    };
}

macro_rules! on_store {
    ($module:ident $kind:ident $($case:ident)+) => {
        mod $module {
            use crate::conformance::{EngineKind, StoreFixture};
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let kind = EngineKind::$kind;
                    if kind != EngineKind::Postgres || crate::testing::is_tested() {
                        super::$case(StoreFixture::new(kind)).await;
                    }
                }
            )+
        }
    };
}
use {on_every_store, on_store};
