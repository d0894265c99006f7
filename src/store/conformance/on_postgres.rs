//! Random histories on PostgreSQL, where there is one ([`crate::postgres`]).

use super::model::{self, step};
use super::{EngineKind, StoreFixture, carry};
use crate::testing::is_tested;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn postgres_agrees_with_the_model(steps in vec(step(), 1..30)) {
        if is_tested() {
            model::run(EngineKind::Postgres, steps);
        }
    }

    #[test]
    fn copies_in_postgres_answer_alike(steps in vec(step(), 1..20)) {
        if is_tested() {
            carry::run(EngineKind::Postgres, EngineKind::Disk, steps.clone());
            carry::run(EngineKind::Disk, EngineKind::Postgres, steps.clone());
            carry::run(EngineKind::Memory, EngineKind::Postgres, steps);
        }
    }
}

/// Into PostgreSQL and out of it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_on_disk_comes_there_and_back() {
    if is_tested() {
        let fixture = StoreFixture::new(EngineKind::Disk);
        carry::fill(&fixture).await;
        carry::there_and_back(&fixture, EngineKind::Postgres).await;
    }
}
