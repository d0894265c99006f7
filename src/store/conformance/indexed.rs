//! Of a ledger with an index only what is asked for is read.

use super::make::*;
use super::{StoreFixture, on_every_store};
use crate::*;
use std::collections::BTreeSet;
use tidegate_core::model::*;

on_every_store! {
    a_ledger_without_an_index_is_read_whole
    a_ledger_of_many_items_is_read_whole
    what_is_settled_is_read_where_it_is_asked_for
}

/// A feed with four items, of which `a` is in the order.
async fn begun(fixture: &StoreFixture) {
    let store = fixture.store();
    let draft =
        ["a", "b", "c", "d"].iter().fold(edit(&store, 1).await, |it, name| it.item(name, name));
    let mut change = draft.order(&["a"]).done();
    change.state.living = 4;
    store.commit(change).await.unwrap();
}

/// Gives all items keys, `b` and `c` one in common, and leaves `d` unsettled.
async fn index(fixture: &StoreFixture) {
    let store = fixture.store();
    let mut change = edit(&store, 2).await.touch("a", ItemStatus::Current).done();
    let keys = [("a", vec![1]), ("b", vec![2, 9]), ("c", vec![3, 9]), ("d", vec![4])];
    let items = keys.into_iter().map(|(name, keys)| ReindexedItem {
        id: id(name),
        added: keys.into_iter().map(IndexKey).collect(),
        removed: Vec::new(),
    });
    change.index = IndexUpdate { unsettled: Some(vec![id("d")]), items: items.collect() };
    change.state.living = 4;
    store.commit(change).await.unwrap();
}

fn names(items: &[LedgerEntry]) -> Vec<String> {
    items.iter().map(|known| known.id.to_string()).collect()
}

async fn found(store: &Store, query: LedgerQuery) -> Vec<String> {
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    names(&reader.find_items(query).await.unwrap().items)
}

fn by_keys(keys: &[u64]) -> LedgerQuery {
    LedgerQuery { keys: keys.iter().copied().map(IndexKey).collect(), ..LedgerQuery::default() }
}

async fn a_ledger_without_an_index_is_read_whole(fixture: StoreFixture) {
    begun(&fixture).await;
    let store = fixture.store();
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    assert!(!reader.has_index().await.unwrap());
    let whole = store.snapshot(&feed("news")).await.unwrap();
    assert_eq!(reader.unsettled(tick(9)).await.unwrap(), whole);
    assert_eq!(whole.unwrap().unsettled, None);
}

/// It is more than what a store reads together with the beginning of a snapshot.
async fn a_ledger_of_many_items_is_read_whole(fixture: StoreFixture) {
    let store = fixture.store();
    let ids: Vec<String> = (0..600).map(|number| format!("item-{number}")).collect();
    let mut change = edit(&store, 1).await.items(&ids, "text").done();
    change.state.living = 600;
    store.commit(change).await.unwrap();
    let whole = store.snapshot(&feed("news")).await.unwrap().unwrap();
    let found = names(&whole.known).into_iter().collect::<BTreeSet<_>>();
    let all = ids.iter().map(|name| id(name).to_string()).collect();
    assert_eq!((whole.known.len(), found), (600, all));
}

async fn what_is_settled_is_read_where_it_is_asked_for(fixture: StoreFixture) {
    begun(&fixture).await;
    index(&fixture).await;
    let fixture = fixture.reopen().await;
    let store = fixture.store();
    let reader = store.pin(&feed("news")).await.unwrap().unwrap();
    assert!(reader.has_index().await.unwrap());
    let part = reader.unsettled(tick(9)).await.unwrap().unwrap();
    assert_eq!(names(&part.known), ["a", "d"]);
    let settled = part.settled.unwrap();
    assert_eq!((settled.living, settled.tombstones), (2, 0));
    assert_eq!(settled.left_window, Some(tick(1)));
    assert_eq!(part.size(), 4);

    assert_eq!(found(&store, by_keys(&[2])).await, ["b"]);
    assert_eq!(found(&store, by_keys(&[9, 7])).await, ["b", "c"]);
    let ids = LedgerQuery { ids: vec![id("c"), id("z")], ..LedgerQuery::default() };
    assert_eq!(found(&store, ids).await, ["c"]);
    let oldest = LedgerQuery { oldest: 2, ..LedgerQuery::default() };
    assert_eq!(found(&store, oldest).await.len(), 2);

    let items = store.snapshot(&feed("news")).await.unwrap().unwrap().known;
    let more = part.with_found(FoundItems { items, oldest_to: None });
    let more = more.unwrap();
    assert_eq!((more.known.len(), more.size()), (4, 4));

    // A key that an item loses leads to it no more, and a purge leaves none.
    let mut change = edit(&store, 3).await.touch("a", ItemStatus::Current).done();
    let lost = ReindexedItem { id: id("b"), added: vec![IndexKey(5)], removed: vec![IndexKey(9)] };
    change.index = IndexUpdate { unsettled: None, items: vec![lost] };
    store.commit(change).await.unwrap();
    assert_eq!(found(&store, by_keys(&[9])).await, ["c"]);
    assert_eq!(found(&store, by_keys(&[5])).await, ["b"]);
    store.purge_feed(&feed("news")).await.unwrap();
    assert!(store.pin(&feed("news")).await.unwrap().is_none());
}
