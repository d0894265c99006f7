//! Five endpoints come to the same: three that are Tidegate, and two that were written from the text
//! of the specification alone (`endpoints/plain.rs`).
//!
//! They edit, delete, restore and resolve at random, read each other's partial and complete feeds in
//! both dialects and every container, lose documents, get them cut short or late, and begin again
//! from what they stored. Then all read all until nothing changes: item sets, winners, histories and
//! conflicts are equal, and of every update that was ever made somebody knows.
//!
//! SSE 0.91 is not among the forms: its histories name updates by their times, so that an endpoint
//! that reads one cannot tell which sequence another one gave to an update; with conflicts something
//! is lost on the way (READINGS 2, below the table).
//!
//! `TIDEGATE_ENDPOINTS=1000` plays a thousand lives instead of some.

mod gate;
mod plain;
mod world;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use world::{Fate, Step, What, play, step};

/// How many lives are played where `TIDEGATE_ENDPOINTS` does not say.
const LIVES: u32 = 60;
const STEPS: usize = 60;

#[test]
fn endpoints_converge() {
    let lives = std::env::var("TIDEGATE_ENDPOINTS").ok();
    let cases = lives.map_or(LIVES, |lives| lives.parse().unwrap());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&proptest::collection::vec(step(), 1..STEPS), |steps| {
            play(&steps).map_err(TestCaseError::fail)
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

/// A conflict that goes as an item of a collection, then in a feed of RSS, then as one of a collection
/// again says the same everywhere.
#[test]
fn a_conflict_goes_through_collections_and_feeds() {
    let step = |at, what, stamp| Step { at, what, stamp, skew: 0 };
    let read = |from, form| What::Read(from, false, form, Fate::Arrives);
    let steps = [
        step(2, What::Create(None), 0),
        step(3, read(2, 0), 0),
        step(1, read(2, 0), 0),
        step(1, What::Delete(0), 0),
        step(3, What::Edit(0), 1),
        step(0, read(3, 1), 0),
        step(1, read(0, 6), 0),
    ];
    play(&steps).unwrap();
}
