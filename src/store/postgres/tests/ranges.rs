//! What is read of many ranges at once.

use super::SHORT_LEASE;
use crate::engine::{Class, Engine, KeyOrder, Writes, beginning_with};
use crate::postgres::engine::{LONG_RANGE, PostgresEngine};
use crate::postgres::session::Session;
use crate::testing::TestSchema;

/// What the keys of the feed begin with.
const PREFIX: &[u8] = b"news\0";

/// Sets entries of a class with values of `size` bytes.
fn put(engine: &PostgresEngine, class: Class, count: usize, size: usize) {
    let key = |number: usize| (class, format!("news\0{number:06}").into_bytes());
    let writes: Writes = (0..count).map(|number| (key(number), Some(vec![7; size]))).collect();
    engine.apply(writes).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ranges_that_are_too_long_or_too_large_for_one_answer_are_left_out() {
    let Some(schema) = TestSchema::new() else { return };
    let session = Session::open(&schema.url, SHORT_LEASE).unwrap();
    let engine = PostgresEngine::open(&session).unwrap();
    put(&engine, Class::Orders, 1, 0);
    put(&engine, Class::Ledger, LONG_RANGE - 1, 100);
    put(&engine, Class::Heads, LONG_RANGE, 1);
    put(&engine, Class::Bodies, 3, 5 << 20);
    put(&engine, Class::Latest, 1, 9);
    // Of others.
    let others = [b"newer\0".to_vec(), b"news".to_vec(), b"news\x01".to_vec()];
    let others = others.into_iter().map(|key| ((Class::Orders, key), Some(vec![7])));
    engine.apply(others.collect()).unwrap();

    let read = |classes: &[Class]| {
        let wanted: Vec<_> = classes.iter().map(|class| (*class, PREFIX.to_vec())).collect();
        let found = engine.get_ranges(&wanted).unwrap();
        for ((class, prefix), entries) in &found {
            assert_eq!(prefix, PREFIX);
            let range = beginning_with(PREFIX);
            let portion = engine.portion(*class, &range, KeyOrder::Ascending, usize::MAX);
            assert_eq!(entries, &portion.unwrap().entries, "{class:?}");
        }
        found.into_iter().map(|((class, _), entries)| (class, entries.len())).collect::<Vec<_>>()
    };
    let (orders, ledger) = ((Class::Orders, 1), (Class::Ledger, LONG_RANGE - 1));
    let (kept, latest) = ((Class::Kept, 0), (Class::Latest, 1));
    let small = [Class::Orders, Class::Ledger, Class::Heads, Class::Kept, Class::Latest];
    assert_eq!(read(&small), [orders, ledger, kept, latest]);
    // In the order in which they are asked for.
    let all = [Class::Ledger, Class::Orders, Class::Bodies, Class::Latest];
    assert_eq!(read(&all), [ledger, orders]);
    assert_eq!(read(&[Class::Latest, Class::Bodies]), [latest]);
}
