//! What a look at the past of a feed reads, and how much one writes.

use super::*;
use crate::engine::PORTION_BYTES;
use crate::{Pruned, Retention};
use tidegate_core::model::SyncId;

const ALL: Retention =
    Retention { versions: 9, age: Duration::from_secs(1_000_000), bytes: u64::MAX };

#[tokio::test]
async fn no_version_is_read_where_none_of_its_bytes_stay() {
    let store = ScriptedStore::new("gate.example", clock());
    store.set_free(u64::MAX);
    let names: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    for seconds in 1..=4 {
        edit(&store, seconds).await.items(&names, "text").commit(&store).await;
    }
    let (feed, now) = (make::feed("news"), make::time(9));
    store.take_reads("texts");
    assert_eq!(store.prune(&feed, &ALL, now).await.unwrap(), Pruned::default());
    let two = Retention { versions: 2, ..ALL };
    let gone = store.prune(&feed, &two, now).await.unwrap();
    assert_eq!(gone, Pruned { versions: 40, ..Pruned::default() });
    // What each takes is asked for.
    assert_eq!(store.reads_of("texts"), 2);
}

#[tokio::test]
async fn bytes_that_stay_are_written_anew_a_portion_at_a_time() {
    let store = ScriptedStore::new("gate.example", clock());
    // It is in the title as well.
    let (names, text) = (["a", "b", "c", "d"], "x".repeat(PORTION_BYTES / 3));
    edit(&store, 1).await.items(names, &text).commit(&store).await;
    let all = names.iter().fold(edit(&store, 2).await, |draft, name| draft.tombstone(name));
    all.commit(&store).await;
    let (feed, now) = (make::feed("news"), make::time(9));
    let one = Retention { versions: 1, ..ALL };
    for more in [true, false] {
        let gone = store.prune(&feed, &one, now).await.unwrap();
        assert_eq!(gone, Pruned { versions: 2, documents: 0, more });
    }
    // Bytes without a version are none that may go.
    let least = Retention { versions: 0, age: Duration::ZERO, bytes: 0 };
    assert_eq!(store.prune(&feed, &least, now).await.unwrap(), Pruned::default());
    for name in names {
        let id = SyncId::new(name).unwrap();
        assert_eq!(store.versions(&feed, &id, 9).await.unwrap().len(), 1);
        let item = store.item(&feed, &id).await.unwrap().unwrap();
        assert!(item.shared.winner.data.xml.contains(&text), "the bytes of {name}");
    }
}
