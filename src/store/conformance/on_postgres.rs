//! Random histories on PostgreSQL, where there is one ([`crate::postgres`]).

use super::model::{self, step};
use super::{Bench, Kind, carry};
use crate::testing::is_tested;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]
    #[test]
    fn postgres_agrees_with_the_model(steps in vec(step(), 1..30)) {
        if is_tested() {
            model::run(Kind::Postgres, steps);
        }
    }

    #[test]
    fn copies_in_postgres_answer_alike(steps in vec(step(), 1..20)) {
        if is_tested() {
            carry::run(Kind::Postgres, Kind::Disk, steps.clone());
            carry::run(Kind::Disk, Kind::Postgres, steps.clone());
            carry::run(Kind::Memory, Kind::Postgres, steps);
        }
    }
}

/// Into PostgreSQL and out of it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_on_disk_comes_there_and_back() {
    if is_tested() {
        let bench = Bench::new(Kind::Disk);
        carry::full(&bench).await;
        carry::there_and_back(&bench, Kind::Postgres).await;
    }
}
