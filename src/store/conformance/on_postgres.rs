//! The suite on PostgreSQL, where there is one ([`crate::postgres`]).

use super::make::time;
use super::model::{self, step};
use super::{Bench, InMemory, OnDisk, carry, endpoint};
use crate::testing::{TestSchema, is_tested};
use crate::{PostgresRequest, Store};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;
use tidegate_core::clock::ManualClock;

pub(super) struct OnPostgres {
    store: Arc<Store>,
    clock: ManualClock,
    schema: Arc<TestSchema>,
}

impl OnPostgres {
    fn open(schema: Arc<TestSchema>, clock: ManualClock) -> Self {
        let request = PostgresRequest::new(&schema.url, Some(endpoint()));
        let store = Store::open_on_postgres(request, Arc::new(clock.clone())).unwrap();
        Self { store: Arc::new(store), clock, schema }
    }
}

impl Bench for OnPostgres {
    fn new() -> Self {
        Self::open(Arc::new(TestSchema::new().unwrap()), ManualClock::at(time(0)))
    }

    fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    async fn reopen(self) -> Self {
        self.store.close().await.unwrap();
        Self::open(self.schema, self.clock)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn postgres_agrees_with_the_model(steps in vec(step(), 1..30)) {
        if is_tested() {
            model::run::<OnPostgres>(steps);
        }
    }

    #[test]
    fn copies_in_postgres_answer_alike(steps in vec(step(), 1..20)) {
        if is_tested() {
            carry::run::<OnPostgres, OnDisk>(steps.clone());
            carry::run::<OnDisk, OnPostgres>(steps.clone());
            carry::run::<InMemory, OnPostgres>(steps);
        }
    }
}

/// Into PostgreSQL and out of it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_on_disk_comes_there_and_back() {
    if is_tested() {
        let bench = OnDisk::new();
        carry::full(&bench).await;
        carry::there_and_back::<_, OnPostgres>(&bench).await;
    }
}
