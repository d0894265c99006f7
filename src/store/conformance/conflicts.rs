//! What is in conflict with an item's current version: stored with it, answered with it.

use super::make::*;
use super::{StoreFixture, on_every_store};
use crate::*;
use tidegate_core::model::*;

on_every_store! {
    conflicts_are_answered_with_their_item
    a_loser_may_have_the_bytes_that_the_item_had
    conflicts_go_with_the_item
    conflicts_that_contradict_the_ledger_are_refused
}

fn losing(name: &str, updates: u32, data: Option<Markup>) -> Version<Option<Markup>> {
    known(name, updates, tick(i64::from(updates))).version(data)
}

/// Makes a second version of the item `a` of the feed, with these versions in conflict.
async fn contest(store: &Store, seconds: i64, versions: Vec<Version<Option<Markup>>>) -> Change {
    let mut change = edit(store, seconds).await.item("a", "B").done();
    let count = u32::try_from(versions.len()).unwrap();
    for known in &mut change.known {
        known.conflicts = count;
        known.noconflicts = Some(false);
        known.origin = Origin::Upstream;
    }
    change.conflicts = vec![Conflicting { id: id("a"), versions }];
    change
}

/// How many items are said to be in conflict.
async fn count(store: &Store) -> u32 {
    store.state(&feed("news")).await.unwrap().unwrap().contested
}

async fn begun(store: &Store) {
    edit(store, 1).await.item("a", "A").order(&["a"]).commit(store).await;
}

async fn conflicts_are_answered_with_their_item(fixture: StoreFixture) {
    let store = fixture.store();
    begun(&store).await;
    // Large enough to be cut into pieces.
    let long: String = (0..6000).map(|n| format!("{:x} ", n * 2_654_435_761_u64)).collect();
    let versions = vec![losing("a", 1, Some(markup(&long))), losing("a", 1, Some(markup("other")))];
    let change = contest(&store, 2, versions.clone()).await;
    store.commit(change).await.unwrap();
    let whole: Vec<Version<Markup>> =
        versions.into_iter().map(|v| v.with(v.data.clone().unwrap())).collect();

    let (_fixture, store) = fixture.again(store).await;
    let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
    assert_eq!(item.shared.conflicts, whole);
    assert_eq!(item.shared.winner.noconflicts, Some(false));
    let view = store.view(&feed("news"), Select::All).await.unwrap().unwrap();
    assert_eq!(view.items, [item]);
    let snapshot = store.snapshot(&feed("news")).await.unwrap().unwrap();
    assert_eq!(snapshot.conflicts.get(&id("a")), Some(&whole));
    assert_eq!(store.contested(&feed("news")).await.unwrap(), [id("a")]);
    assert_eq!(store.contested(&feed("new")).await.unwrap(), []);
    assert_eq!(count(&store).await, 1);
    assert_eq!(snapshot.known[0].origin, Origin::Upstream);

    let change = contest(&store, 3, Vec::new()).await;
    store.commit(change).await.unwrap();
    let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
    assert_eq!(item.shared.conflicts, []);
    assert!(store.snapshot(&feed("news")).await.unwrap().unwrap().conflicts.is_empty());
    assert_eq!(store.contested(&feed("news")).await.unwrap(), []);
    assert_eq!(count(&store).await, 0);
}

async fn a_loser_may_have_the_bytes_that_the_item_had(fixture: StoreFixture) {
    let store = fixture.store();
    begun(&store).await;
    let change = contest(&store, 2, vec![losing("a", 1, None)]).await;
    store.commit(change).await.unwrap();
    let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
    let (new, old) = (&item.shared.winner.data, &item.shared.conflicts[0].data);
    assert_eq!((new, old), (&markup("B"), &markup("A")));
}

async fn conflicts_go_with_the_item(fixture: StoreFixture) {
    let store = fixture.store();
    begun(&store).await;
    let change = contest(&store, 2, vec![losing("a", 1, None)]).await;
    store.commit(change).await.unwrap();
    store.purge_feed(&feed("news")).await.unwrap();
    begun(&store).await;
    let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
    assert_eq!(item.shared.conflicts, []);
    assert_eq!(count(&store).await, 0);
}

async fn conflicts_that_contradict_the_ledger_are_refused(fixture: StoreFixture) {
    let store = fixture.store();
    begun(&store).await;
    let mut fewer = contest(&store, 2, vec![losing("a", 1, None)]).await;
    fewer.known[0].conflicts = 2;
    let foreign = contest(&store, 2, vec![losing("b", 1, Some(markup("x")))]).await;
    let mut twice = contest(&store, 2, vec![losing("a", 1, None)]).await;
    twice.conflicts.push(twice.conflicts[0].clone());
    let mut many = contest(&store, 2, vec![losing("a", 1, None); Conflicting::LIMIT + 1]).await;
    many.known[0].conflicts = u32::try_from(Conflicting::LIMIT + 1).unwrap();
    let mut first = edit(&store, 2).await.item("new", "N").done();
    first.known[0].conflicts = 1;
    first.conflicts = vec![Conflicting { id: id("new"), versions: vec![losing("new", 1, None)] }];
    for change in [fewer, foreign, twice, many, first] {
        let refused = store.commit(change).await;
        assert!(matches!(refused, Err(CommitError::Store(StoreError::Invalid { .. }))));
    }
    let change = contest(&store, 2, vec![losing("a", 1, None)]).await;
    store.commit(change).await.unwrap();
}
