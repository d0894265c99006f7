//! The ledger whole, and by its index.

use super::make::*;
use std::collections::BTreeSet;

on_every_store! {
    a_ledger_without_an_index_is_read_whole
    what_is_settled_is_read_where_it_is_asked_for
}

async fn snapshot(store: &Store) -> Snapshot {
    store.snapshot(&feed("news")).await.unwrap().unwrap()
}

fn names(items: &[LedgerEntry]) -> Vec<String> {
    items.iter().map(|known| known.id.to_string()).collect()
}

async fn find(store: &Store, query: LedgerQuery) -> Vec<String> {
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    names(&reader.find_items(query).await.unwrap().items)
}

fn by_key(key: u64) -> LedgerQuery {
    LedgerQuery { keys: vec![IndexKey(key), IndexKey(7)], ..LedgerQuery::default() }
}

/// It has more items than a store reads together with the beginning of a snapshot.
async fn a_ledger_without_an_index_is_read_whole(store: StoreFixture) {
    let ids: Vec<String> = (0..600).map(|number| format!("item-{number}")).collect();
    let mut change = edit(&store, 1).await.items(&ids, "text").done();
    change.state.living = 600;
    store.commit(change).await.unwrap();
    let whole = snapshot(&store).await;
    let all: BTreeSet<String> = ids.into_iter().collect();
    assert_eq!((whole.known.len(), names(&whole.known).into_iter().collect()), (600, all));
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    assert!(!reader.has_index().await.unwrap() && whole.unsettled.is_none());
    assert_eq!(reader.unsettled(tick(9)).await.unwrap(), Some(whole));
}

async fn what_is_settled_is_read_where_it_is_asked_for(store: StoreFixture) {
    // The items `b` and `c` have a key in common, and `d` is not settled.
    let mut change = edit(&store, 1).await.items(["a", "b", "c", "d"], "text").order(&["a"]).done();
    let keys = [("a", vec![1]), ("b", vec![2, 9]), ("c", vec![3, 9]), ("d", vec![4])];
    let items = keys.into_iter().map(|(name, keys)| ReindexedItem {
        id: id(name),
        added: keys.into_iter().map(IndexKey).collect(),
        removed: Vec::new(),
    });
    change.index = IndexUpdate { unsettled: Some(vec![id("d")]), items: items.collect() };
    change.state.living = 4;
    store.commit(change).await.unwrap();
    let store = store.reopen().await;
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    assert!(reader.has_index().await.unwrap());
    let part = reader.unsettled(tick(9)).await.unwrap().unwrap();
    assert_eq!((names(&part.known), part.size()), (vec!["a".to_owned(), "d".to_owned()], 4));
    let settled = part.settled.unwrap();
    assert_eq!((settled.living, settled.tombstones, settled.left_window), (2, 0, Some(tick(1))));

    assert_eq!(find(&store, by_key(2)).await, ["b"]);
    assert_eq!(find(&store, by_key(9)).await, ["b", "c"]);
    let ids = LedgerQuery { ids: vec![id("c"), id("z")], ..LedgerQuery::default() };
    assert_eq!(find(&store, ids).await, ["c"]);
    let oldest = LedgerQuery { oldest: 2, ..LedgerQuery::default() };
    assert_eq!(find(&store, oldest).await, ["a", "b"]);
    let items = snapshot(&store).await.known;
    let more = part.with_found(FoundItems { items, oldest_to: None }).unwrap();
    assert_eq!((more.known.len(), more.size()), (4, 4));
    // A key that an item loses leads to it no more, and a purge leaves none.
    let mut change = edit(&store, 3).await.touch("a", ItemStatus::Current).done();
    let lost = ReindexedItem { id: id("b"), added: vec![IndexKey(5)], removed: vec![IndexKey(9)] };
    change.index = IndexUpdate { unsettled: None, items: vec![lost] };
    store.commit(change).await.unwrap();
    assert_eq!(find(&store, by_key(9)).await, ["c"]);
    assert_eq!(find(&store, by_key(5)).await, ["b"]);
    store.purge_feed(&feed("news")).await.unwrap();
    assert!(store.pin(&feed("news")).await.unwrap().is_none());
}
