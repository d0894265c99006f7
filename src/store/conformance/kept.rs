//! What is kept of held documents: stored with the hold, and gone with it.

use super::make::*;
use super::{StoreFixture, on_every_store};
use crate::record::specimen::specimen;
use crate::*;
use tidegate_core::model::*;

on_every_store! {
    what_is_kept_goes_with_the_hold
    what_is_kept_goes_with_the_feed
    nothing_is_kept_without_a_hold
}

fn hold() -> Hold {
    specimen(1)
}

fn kept(text: &str) -> HeldEntry {
    let mut kept: HeldEntry = specimen(2);
    kept.entry.markup = text.to_owned().into();
    kept
}

/// Commits a change that holds a document and keeps these entries.
async fn keep(store: &Store, seconds: i64, entries: Option<Vec<HeldEntry>>) {
    let mut change = edit(store, seconds).await.done();
    change.state.hold = Some(hold());
    change.kept = entries;
    store.commit(change).await.unwrap();
}

async fn what_is_kept_goes_with_the_hold(fixture: StoreFixture) {
    let store = fixture.store();
    edit(&store, 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    // Large enough to be cut into pieces.
    let long: String = (0..6000).map(|n| format!("{:x} ", n * 2_654_435_761_u64)).collect();
    let two = vec![kept("one"), kept(&long)];
    keep(&store, 2, Some(two.clone())).await;
    // A change that says nothing of them leaves them as they are.
    keep(&store, 3, None).await;
    let (_fixture, store) = fixture.again(store).await;
    let snapshot = store.snapshot(&feed("news")).await.unwrap().unwrap();
    assert_eq!((snapshot.kept, snapshot.state.hold), (two, Some(hold())));
    keep(&store, 4, Some(vec![kept("three")])).await;
    let snapshot = store.snapshot(&feed("news")).await.unwrap().unwrap();
    assert_eq!(snapshot.kept, [kept("three")]);
    let mut change = edit(&store, 5).await.done();
    change.state.hold = None;
    store.commit(change).await.unwrap();
    assert!(store.snapshot(&feed("news")).await.unwrap().unwrap().kept.is_empty());
    // The next hold begins with nothing.
    keep(&store, 6, None).await;
    assert!(store.snapshot(&feed("news")).await.unwrap().unwrap().kept.is_empty());
}

async fn what_is_kept_goes_with_the_feed(fixture: StoreFixture) {
    let store = fixture.store();
    keep(&store, 1, Some(vec![kept("one")])).await;
    store.purge_feed(&feed("news")).await.unwrap();
    keep(&store, 2, None).await;
    assert!(store.snapshot(&feed("news")).await.unwrap().unwrap().kept.is_empty());
}

async fn nothing_is_kept_without_a_hold(fixture: StoreFixture) {
    let store = fixture.store();
    let mut change = edit(&store, 1).await.item("a", "A").done();
    change.kept = Some(vec![kept("one")]);
    let refused = store.commit(change).await;
    assert!(matches!(refused, Err(CommitError::Store(StoreError::Invalid { .. }))), "{refused:?}");
}
