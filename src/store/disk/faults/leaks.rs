//! No record of a feed that was purged is left behind.

use super::*;
use crate::engine::{Class, KeyOrder, beginning_with};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_leaves_only_its_marks_and_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (store, engine) = open_raw(folder.path());
    for _ in 0..3 {
        commit(&store, &noise(50_000)).await;
    }
    store.purge_feed(&news()).await.unwrap();
    for class in Class::ALL {
        let left = match class {
            Class::Marks => 1,
            Class::Log => 3,
            // The format's number, the identity and the number of list writes.
            Class::Gateway => 3,
            _ => 0,
        };
        let all = beginning_with(&[]);
        let found = engine.portion(*class, &all, KeyOrder::Ascending, 99).unwrap();
        assert_eq!(found.entries.len(), left, "in {}", class.name());
    }
}
