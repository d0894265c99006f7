//! What is kept is bounded, and as much as the operator wants; the log is as long as its readers need.

use super::make::*;
use super::past::telling;
use crate::limits::{PRUNE_LIMIT, VALUE_LIMIT};
use std::time::Duration;

on_every_store! {
    the_oldest_versions_go_first
    the_oldest_events_go_first
    what_is_too_large_is_refused
    old_versions_and_documents_are_taken_out
    what_is_in_force_is_never_taken_out
    one_call_takes_out_a_bounded_number
    the_log_loses_its_old_end_only
}

const ALL: Retention =
    Retention { versions: 1000, age: Duration::from_secs(1_000_000), bytes: u64::MAX };

/// Two items, one of which changes every ten seconds; the order changes with it.
async fn filled(store: &StoreFixture, rounds: i64) {
    for round in 1..=rounds {
        let mut draft = edit(store, round * 10).await.item("a", &telling(round));
        if round == 1 {
            draft = draft.item("b", "B");
        }
        let order: &[&str] = if round % 2 == 0 { &["a", "b"] } else { &["b", "a"] };
        draft.order(order).commit(store).await;
    }
}

async fn numbers(store: &Store, name: &str) -> Vec<u32> {
    let notes = store.versions(&feed("news"), &id(name), usize::MAX).await.unwrap();
    notes.iter().map(|note| note.updates.value()).collect()
}

async fn old_versions_and_documents_are_taken_out(store: StoreFixture) {
    filled(&store, 6).await;
    let news = feed("news");
    let nothing = store.prune(&news, &ALL, time(60)).await.unwrap();
    assert_eq!(nothing, Pruned::default());
    // What lost its place at 30 or before: two versions and two orders.
    let aged = Retention { age: Duration::from_secs(30), ..ALL };
    let pruned = store.prune(&news, &aged, time(60)).await.unwrap();
    assert_eq!(pruned, Pruned { versions: 2, documents: 2, more: false });
    assert_eq!(numbers(&store, "a").await, [6, 5, 4, 3]);
    // What is left is whole.
    for number in 3..=6 {
        let updates = tidegate_core::model::Count::new(number).unwrap();
        let version = store.version(&news, &id("a"), updates).await.unwrap().unwrap();
        assert_eq!(version.markup, Some(markup(&telling(number.into()))));
    }
    assert_eq!(store.holdings(&news).await.unwrap().back_to, Some(time(30)));
    let two = Retention { versions: 2, ..ALL };
    let pruned = store.prune(&news, &two, time(60)).await.unwrap();
    assert_eq!((pruned.versions, pruned.documents), (2, 0));
    assert_eq!(numbers(&store, "a").await, [6, 5]);
    assert_eq!(numbers(&store, "b").await, [1]);
    assert_eq!(store.prune(&news, &two, time(60)).await.unwrap(), Pruned::default());
    // The order of then is known; what the item said is not.
    let past = async |at| store.past(&news, PastSelect::Current, time(at)).await.unwrap().unwrap();
    assert_eq!(past(30).await, Past::Unknown { back_to: Some(time(50)) });
    assert!(matches!(past(50).await, Past::Then(_)));
    let other = store.prune(&feed("other"), &two, time(60)).await.unwrap();
    assert_eq!(other, Pruned::default());
}

async fn what_is_in_force_is_never_taken_out(store: StoreFixture) {
    filled(&store, 5).await;
    let news = feed("news");
    edit(&store, 60).await.tombstone("a").order(&["b"]).commit(&store).await;
    let before = store.view(&news, Select::All).await.unwrap();
    let nothing = Retention { versions: 0, age: Duration::ZERO, bytes: 0 };
    let pruned = store.prune(&news, &nothing, time(999)).await.unwrap();
    assert_eq!((pruned.versions, pruned.documents), (5, 5));
    assert_eq!(numbers(&store, "a").await, [6]);
    let store = store.reopen().await;
    assert_eq!(store.view(&news, Select::All).await.unwrap(), before);
    edit(&store, 70).await.item("a", "back").order(&["a", "b"]).commit(&store).await;
    assert_eq!(numbers(&store, "a").await, [7, 6]);
    let item = store.item(&news, &id("a")).await.unwrap().unwrap();
    assert_eq!(item.shared.winner.data, markup("back"));
}

async fn one_call_takes_out_a_bounded_number(store: StoreFixture) {
    let names: Vec<String> = (0..PRUNE_LIMIT + 7).map(|n| n.to_string()).collect();
    for seconds in 1..=2 {
        edit(&store, seconds).await.items(&names, "text").commit(&store).await;
    }
    let one = Retention { versions: 1, ..ALL };
    let first = store.prune(&feed("news"), &one, time(9)).await.unwrap();
    assert_eq!(first, Pruned { versions: PRUNE_LIMIT, documents: 0, more: true });
    let rest = store.prune(&feed("news"), &one, time(9)).await.unwrap();
    assert_eq!(rest, Pruned { versions: 7, documents: 0, more: false });
    let kept = store.holdings(&feed("news")).await.unwrap();
    assert_eq!(kept.versions, u64::try_from(names.len()).unwrap());
}

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

async fn the_log_loses_its_old_end_only(mut store: StoreFixture) {
    let count = LOG_EPOCHS + 20;
    for seconds in 1..=i64::try_from(count).unwrap() {
        // What the wall clock says does not count: it leaps ahead and back.
        store.clock.leap(time(if seconds < 9 { 99_000_000 } else { seconds }));
        if seconds == 11 {
            store.clock.set(time(seconds).plus(hours(1)));
            store.note_running_time(time(1)).await.unwrap();
        }
        edit(&store, seconds).await.item("a", "A").commit(&store).await;
    }
    store.clock.set(time(0).plus(hours(20)));
    store.clock.leap(time(99_000_000));
    // The running time that is noted may be far ahead of how long the store was open.
    store.note_running_time(time(99_000_000)).await.unwrap();
    assert_eq!(store.trim_log(hours(40)).await.unwrap(), 0);
    assert_eq!(store.trim_log(hours(8)).await.unwrap(), 10);
    let first = |tail: Vec<ClosedEpoch>| tail.first().map(|sealed| sealed.epoch);
    assert_eq!(first(store.epochs_after(Epoch(0), 3).await.unwrap()), Some(Epoch(11)));
    // The newest stay, whatever their age.
    assert_eq!(store.trim_log(Duration::ZERO).await.unwrap(), 10);
    assert_eq!(store.trim_log(Duration::ZERO).await.unwrap(), 0);
    store = store.reopen().await;
    let tail = store.epochs_after(Epoch(0), usize::MAX).await.unwrap();
    assert_eq!(tail.first().map(|sealed| sealed.epoch), Some(Epoch(21)));
    assert_eq!(tail.len(), usize::try_from(LOG_EPOCHS).unwrap());
    edit(&store, 99_999).await.item("a", "A").commit(&store).await;
    assert_eq!(*store.watch_epochs().borrow(), Epoch(count + 1));
}

async fn the_oldest_versions_go_first(store: StoreFixture) {
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

async fn the_oldest_events_go_first(mut store: StoreFixture) {
    let (mut first, mut count) = (0, 0);
    // Few at a time, and more at once than are kept.
    for (round, more) in (0..).zip([90, 90, 90, 90, 90, 90, EVENTS_KEPT + 2000, 1, 30]) {
        let mut change = edit(&store, round).await.done();
        change.events = (count..count + more).map(|n| event(&n.to_string(), None)).collect();
        store.commit(change).await.unwrap();
        count += more;
        first = count.saturating_sub(EVENTS_KEPT).max(first);
        store = store.reopen().await;
        let events = store.events(&feed("news"), usize::MAX).await.unwrap();
        let titles: Vec<String> = events.into_iter().map(|event| event.title).collect();
        assert_eq!(titles, (first..count).rev().map(|n| n.to_string()).collect::<Vec<_>>());
    }
}

/// Before anything of the change is written.
async fn what_is_too_large_is_refused(store: StoreFixture) {
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
