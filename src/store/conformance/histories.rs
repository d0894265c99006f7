//! Random histories on every store: it agrees with the model, and copies of it answer alike. On PostgreSQL where there is
//! one ([`crate::postgres`]).

use super::EngineKind::{Disk, Memory, Postgres};
use super::carry::there_and_back;
use super::model::{Model, Step, step};
use super::{EngineKind, StoreFixture};
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
    the_model_agrees_in_memory 128 40 |steps| run(Memory, steps);
    the_model_agrees_on_disk 24 30 |steps| run(Disk, steps);
    the_model_agrees_on_postgres 8 30 |steps| if is_tested() {
        run(Postgres, steps);
    };
    copies_in_memory_answer_alike 10 30 |steps| go_on_in_copy(Disk, Memory, steps);
    copies_on_disk_answer_alike 10 30 |steps| go_on_in_copy(Memory, Disk, steps);
    copies_on_postgres_answer_alike 8 20 |steps: Vec<_>| if is_tested() {
        go_on_in_copy(Postgres, Disk, steps.clone());
        go_on_in_copy(Disk, Postgres, steps.clone());
        go_on_in_copy(Memory, Postgres, steps);
    };
}

fn block_on(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(work);
}

fn run(kind: EngineKind, steps: Vec<Step>) {
    block_on(async { drop(Model::default().follow(StoreFixture::new(kind), steps).await) });
}

/// A copy answers alike, and goes on as the store would have.
fn go_on_in_copy(from: EngineKind, to: EngineKind, mut steps: Vec<Step>) {
    let later = steps.split_off(steps.len() / 2);
    block_on(async {
        let mut model = Model::default();
        let fixture = model.follow(StoreFixture::new(from), steps).await;
        let copied = there_and_back(&fixture, to).await;
        model.agrees_with(&copied.store()).await;
        model.opening += 1;
        model.follow(copied, later).await;
    });
}
