//! Random histories on every store: it agrees with the model, and copies of it answer alike. On PostgreSQL where there is
//! one ([`crate::postgres`]).

use super::EngineKind::{Disk, Memory, Postgres};
use super::carry;
use super::model::{self, step};
use crate::testing::is_tested;
use proptest::collection::vec;
use proptest::prelude::*;

/// How many cases of at most how many steps.
macro_rules! histories {
    ($($name:ident $cases:literal $steps:literal $check:expr;)+) => {
        $(
            proptest! {
                #![proptest_config(ProptestConfig { cases: $cases, ..ProptestConfig::default() })]
                #[test]
                fn $name(steps in vec(step(), 1..$steps)) {
                    ($check)(steps);
                }
            }
        )+
    };
}

histories! {
    the_model_agrees_in_memory 128 40 |steps| model::run(Memory, steps);
    the_model_agrees_on_disk 24 30 |steps| model::run(Disk, steps);
    the_model_agrees_on_postgres 8 30 |steps| if is_tested() {
        model::run(Postgres, steps);
    };
    copies_in_memory_answer_alike 12 30 |steps| carry::run(Disk, Memory, steps);
    copies_on_disk_answer_alike 12 30 |steps| carry::run(Memory, Disk, steps);
    copies_on_postgres_answer_alike 8 20 |steps: Vec<_>| if is_tested() {
        carry::run(Postgres, Disk, steps.clone());
        carry::run(Disk, Postgres, steps.clone());
        carry::run(Memory, Postgres, steps);
    };
}
