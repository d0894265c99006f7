//! What leaves the ledger leaves everything but archives, and is found by its names.

use super::make::*;
use super::{StoreFixture, on_every_store};
use crate::*;
use tidegate_core::model::*;

on_every_store! {
    a_stub_is_found_by_every_name
    an_eviction_that_contradicts_itself_is_refused
}

/// A feed with two items, of which `b` is in no order.
async fn begun(fixture: &StoreFixture) {
    let store = fixture.store();
    edit(&store, 1).await.item("a", "A").item("b", "B").order(&["a"]).commit(&store).await;
}

async fn found(store: &Store, names: &[&str]) -> Vec<SyncId> {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let stubs = store.stubs(&feed("news"), &names).await.unwrap();
    stubs.into_iter().map(|stub| stub.id).collect()
}

async fn a_stub_is_found_by_every_name(fixture: StoreFixture) {
    begun(&fixture).await;
    let store = fixture.store();
    let mut change = edit(&store, 2).await.evict("b").done();
    for stub in &mut change.evicted {
        stub.aliases = vec!["urn:once".to_owned(), "urn:twice".to_owned()];
        stub.published_id = "urn:twice".to_owned();
    }
    let stub = change.evicted.clone();
    store.commit(change).await.unwrap();
    let (_fixture, store) = fixture.again(store).await;
    for name in ["b", "urn:b", "urn:once", "urn:twice"] {
        assert_eq!(found(&store, &[name]).await, [id("b")], "{name}");
    }
    assert_eq!(found(&store, &["a", "urn:a", "urn:other"]).await, []);
    let all = ["urn:once".to_owned(), "b".to_owned()];
    assert_eq!(store.stubs(&feed("news"), &all).await.unwrap(), stub);
    assert_eq!(store.stubs(&feed("other"), &all).await.unwrap(), []);

    let mut change = edit(&store, 3).await.item("b", "again").done();
    change.reinstated.push(id("b"));
    store.commit(change).await.unwrap();
    assert_eq!(found(&store, &["b", "urn:b", "urn:once", "urn:twice"]).await, []);
    assert_eq!(store.versions(&feed("news"), &id("b"), 9).await.unwrap().len(), 1);
}

async fn an_eviction_that_contradicts_itself_is_refused(fixture: StoreFixture) {
    begun(&fixture).await;
    let store = fixture.store();
    let evict = edit(&store, 2).await.evict("b").done();
    let stub = evict.evicted[0].clone();
    let other = LedgerEntry { id: id("c"), ..stub.clone() };
    let version = edit(&store, 2).await.item("b", "newer").done();
    let touched = edit(&store, 2).await;
    let since = time(2);
    let touched = touched.touch("b", ItemStatus::Evicted { since, deleted: false }).done();
    for (what, change) in [
        ("twice", Change { evicted: vec![stub.clone(), stub.clone()], ..evict.clone() }),
        ("unknown", Change { evicted: vec![other], ..evict.clone() }),
        ("shown", Change { order: Some(vec![id("b")]), ..evict.clone() }),
        ("changed", Change { evicted: vec![stub], ..version }),
        ("back without a version", Change { reinstated: vec![id("b")], ..evict.clone() }),
        ("still in the ledger", touched),
    ] {
        let refused = store.commit(change).await;
        let is_invalid = matches!(refused, Err(CommitError::Store(StoreError::Invalid { .. })));
        assert!(is_invalid, "{what}: {refused:?}");
    }
    store.commit(evict).await.unwrap();
}
