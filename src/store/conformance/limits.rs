//! What is kept is bounded, and what is too large is refused.

use super::make::*;
use super::{StoreFixture, on_every_store};
use crate::limits::VALUE_LIMIT;
use crate::*;
use tidegate_core::model::*;

on_every_store! {
    the_oldest_versions_go_first
    the_newest_bytes_outlive_their_version
    the_oldest_events_go_first
    more_events_than_are_kept_leave_the_last
    what_is_too_large_is_refused
}

async fn the_oldest_versions_go_first(fixture: StoreFixture) {
    let store = fixture.store();
    let count = i64::try_from(VERSIONS_LIMIT).unwrap() + 3;
    for seconds in 1..=count {
        edit(&store, seconds).await.item("a", &seconds.to_string()).commit(&store).await;
    }
    let versions = store.versions(&feed("news"), &id("a"), usize::MAX).await.unwrap();
    let ticks: Vec<Tick> = versions.iter().map(|note| note.tick).collect();
    let expected: Vec<Tick> = (4..=count).rev().map(tick).collect();
    assert_eq!(ticks, expected);
    assert_eq!(store.versions(&feed("news"), &id("a"), 1).await.unwrap(), versions[..1]);
    let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
    assert_eq!(item.shared.winner.data, markup(&count.to_string()));
}

async fn the_newest_bytes_outlive_their_version(fixture: StoreFixture) {
    let store = fixture.store();
    edit(&store, 0).await.item("a", "kept").commit(&store).await;
    let count = i64::try_from(VERSIONS_LIMIT).unwrap() + 3;
    for seconds in 1..=count {
        edit(&store, seconds).await.tombstone("a").commit(&store).await;
    }
    let versions = store.versions(&feed("news"), &id("a"), usize::MAX).await.unwrap();
    assert_eq!(versions.len(), VERSIONS_LIMIT);
    assert!(versions.iter().all(|note| note.deleted));
    let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
    assert_eq!(item.shared.winner.data, markup("kept"));
    edit(&store, count + 1).await.item("a", "new").commit(&store).await;
    let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
    assert_eq!(item.shared.winner.data, markup("new"));
}

async fn events_of(store: &Store) -> Vec<String> {
    let events = store.events(&feed("news"), usize::MAX).await.unwrap();
    events.into_iter().map(|event| event.title).collect()
}

async fn the_oldest_events_go_first(fixture: StoreFixture) {
    let store = fixture.store();
    let (rounds, each) = (8, 90);
    for round in 0..rounds {
        let mut change = edit(&store, round).await.done();
        let titles = (0..each).map(|number| (round * each + number).to_string());
        change.events = titles.map(|title| event(&title, None)).collect();
        store.commit(change).await.unwrap();
    }
    let kept = i64::try_from(EVENTS_KEPT).unwrap();
    let newest = (0..rounds * each).rev().take(EVENTS_KEPT).map(|number| number.to_string());
    assert!(rounds * each > kept);
    assert_eq!(events_of(&store).await, newest.collect::<Vec<_>>());
    let (_fixture, store) = fixture.again(store).await;
    let mut change = edit(&store, rounds).await.done();
    change.events = vec![event("last", None)];
    store.commit(change).await.unwrap();
    let events = events_of(&store).await;
    assert_eq!((events.len(), events[0].as_str()), (EVENTS_KEPT, "last"));
    assert_eq!(events[1], (rounds * each - 1).to_string());
}

async fn more_events_than_are_kept_leave_the_last(fixture: StoreFixture) {
    let store = fixture.store();
    for (round, extra) in [(0, 7), (1, 2000)] {
        let mut change = edit(&store, round).await.done();
        let count = EVENTS_KEPT + extra;
        change.events = (0..count).map(|number| event(&number.to_string(), None)).collect();
        store.commit(change).await.unwrap();
        let expected: Vec<String> = (extra..count).rev().map(|n| n.to_string()).collect();
        assert_eq!(events_of(&store).await, expected);
    }
}

async fn what_is_too_large_is_refused(fixture: StoreFixture) {
    let store = fixture.store();
    let change = edit(&store, 1).await.item("a", &"x".repeat(VALUE_LIMIT)).done();
    let refused = store.commit(change).await.unwrap_err();
    match refused {
        CommitError::Store(StoreError::TooLarge { what, size, limit }) => {
            assert_eq!(what, "the item a of the feed news");
            assert!(size > limit && limit == VALUE_LIMIT);
        }
        other => panic!("{other:?}"),
    }
    assert!(store.state(&feed("news")).await.unwrap().is_none());
    edit(&store, 1).await.item("a", "A").commit(&store).await;
}
