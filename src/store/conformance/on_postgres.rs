//! Random histories on PostgreSQL, where there is one ([`crate::postgres`]).

use super::model::{self, step};
use super::{EngineKind, carry};
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
