//! What is kept is bounded.

use super::make::*;
use crate::limits::VALUE_LIMIT;

on_every_store! {
    the_oldest_versions_go_first
    the_oldest_events_go_first
    what_is_too_large_is_refused
}

async fn the_oldest_versions_go_first(fixture: StoreFixture) {
    let store = fixture.store();
    edit(&store, 0).await.item("dead", "kept").commit(&store).await;
    let count = i64::try_from(VERSIONS_LIMIT).unwrap() + 3;
    for seconds in 1..=count {
        let draft = edit(&store, seconds).await.tombstone("dead");
        draft.item("a", &seconds.to_string()).commit(&store).await;
    }
    let expected: Vec<Tick> = (4..=count).rev().map(tick).collect();
    for name in ["a", "dead"] {
        let versions = store.versions(&feed("news"), &id(name), usize::MAX).await.unwrap();
        assert_eq!(versions.iter().map(|note| note.tick).collect::<Vec<_>>(), expected, "{name}");
        assert_eq!(store.versions(&feed("news"), &id(name), 1).await.unwrap(), versions[..1]);
    }
    let bytes = async |name| {
        let item = store.item(&feed("news"), &id(name)).await.unwrap();
        item.unwrap().shared.winner.data
    };
    assert_eq!(bytes("a").await, markup(&count.to_string()));
    // The newest bytes outlive their version.
    assert_eq!(bytes("dead").await, markup("kept"));
    edit(&store, count + 1).await.item("dead", "new").commit(&store).await;
    assert_eq!(bytes("dead").await, markup("new"));
}

async fn the_oldest_events_go_first(mut fixture: StoreFixture) {
    let (mut first, mut count) = (0, 0);
    // Few at a time, and more at once than are kept.
    for (round, more) in (0..).zip([90, 90, 90, 90, 90, 90, EVENTS_KEPT + 2000, 1, 30]) {
        let store = fixture.store();
        let mut change = edit(&store, round).await.done();
        change.events = (count..count + more).map(|n| event(&n.to_string(), None)).collect();
        store.commit(change).await.unwrap();
        count += more;
        first = count.saturating_sub(EVENTS_KEPT).max(first);
        fixture = fixture.reopen().await;
        let events = fixture.store().events(&feed("news"), usize::MAX).await.unwrap();
        let titles: Vec<String> = events.into_iter().map(|event| event.title).collect();
        assert_eq!(titles, (first..count).rev().map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

/// Before anything of the change is written.
async fn what_is_too_large_is_refused(fixture: StoreFixture) {
    let store = fixture.store();
    edit(&store, 1).await.item("a", "A").commit(&store).await;
    let before = store.snapshot(&feed("news")).await.unwrap();
    let text = "x".repeat(VALUE_LIMIT);
    let of_version = edit(&store, 2).await.item("a", &text).done();
    let lost = known("a", 1, tick(1)).version(Some(markup(&text)));
    let of_conflict = edit(&store, 2).await.item("a", "B").contest("a", vec![lost]).done();
    let of_latest = edit(&store, 2).await.latest("a", &text).done();
    let around = edit(&store, 2).await.around(&(text + "x")).done();
    let item = "the item a of the feed news";
    let frame = "the order and the document around the entries of the feed news";
    for (change, named) in
        [(of_version, item), (of_conflict, item), (of_latest, item), (around, frame)]
    {
        let refused = store.commit(change).await;
        let Err(CommitError::Store(StoreError::TooLarge { what, size, limit })) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!((&*what, limit), (named, VALUE_LIMIT));
        assert!(size > limit);
        assert_eq!(store.snapshot(&feed("news")).await.unwrap(), before);
    }
    edit(&store, 2).await.item("a", "B").commit(&store).await;
}
