//! The order of changes: which document is in force, and the epochs of the change log.

use super::make::*;

on_every_store! {
    a_document_that_was_asked_for_earlier_is_refused
    epochs_are_numbered_and_closed
}

/// Of two polls of one feed the one that asked later is in force, whoever commits first.
async fn a_document_that_was_asked_for_earlier_is_refused(fixture: StoreFixture) {
    let draft = async |store: &Store, seconds: i64, asked: Option<i64>| {
        let change = edit(store, seconds).await.item("a", "A").done();
        Change { asked_at: asked.map(time), ..change }
    };
    let store = fixture.store();
    for (seconds, asked) in (1..).zip([Some(5), Some(5), None, Some(6)]) {
        let change = draft(&*store, seconds, asked).await;
        store.commit(change).await.unwrap();
    }
    let (_fixture, store) = fixture.again(store).await;
    let change = draft(&*store, 5, Some(5)).await;
    assert!(matches!(store.commit(change).await, Err(CommitError::Overtaken)));
    // One whose clock is a day ahead keeps nobody from the feed.
    for (seconds, asked) in (5..).zip([7, 86_400, 8]) {
        let change = draft(&*store, seconds, Some(asked)).await;
        store.commit(change).await.unwrap();
    }
    let change = draft(&*store, 8, Some(7)).await;
    assert!(matches!(store.commit(change).await, Err(CommitError::Overtaken)));
}

async fn epochs_are_numbered_and_closed(mut fixture: StoreFixture) {
    for (seconds, clock) in [(1, 50), (2, 20), (3, 60), (4, 60)] {
        fixture = fixture.reopen().await;
        fixture.clock.set(time(clock));
        let store = fixture.store();
        let mut closed = store.watch_epochs();
        edit(&store, seconds).await.item("a", "A").commit(&store).await;
        assert!(closed.has_changed().unwrap(), "acknowledged before it could be seen");
        assert_eq!(*closed.borrow_and_update(), Epoch(u64::try_from(seconds).unwrap()));
        edit(&store, seconds).await.latest("a", "no tick").commit(&store).await;
        assert!(!closed.has_changed().unwrap());
    }
    let store = fixture.reopen().await.store();
    assert_eq!(*store.watch_epochs().borrow(), Epoch(4));
    let all = store.epochs_after(Epoch(0), 99).await.unwrap();
    let closed: Vec<_> = all.iter().map(|closed| (closed.epoch.0, closed.at)).collect();
    // The time of an epoch never goes back, as the clock does.
    assert_eq!(closed, [(1, time(50)), (2, time(50)), (3, time(60)), (4, time(60))]);
    for (after, limit, found) in [(1, 2, &all[1..3]), (4, 9, &[]), (u64::MAX, 9, &[]), (0, 0, &[])]
    {
        assert_eq!(store.epochs_after(Epoch(after), limit).await.unwrap(), found);
    }
}
