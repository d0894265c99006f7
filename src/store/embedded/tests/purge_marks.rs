//! The mark of a purged feed, where what it is made of cannot be read.

use super::*;

/// How reads of a class fail.
type ReadFault = (Class, fn() -> StoreError);

fn away() -> StoreError {
    let source = std::io::Error::other("it hands over");
    StoreError::Away { doing: "read", why: crate::error::AWAY, source }
}

fn damaged() -> StoreError {
    StoreError::Damaged { path: "in memory".to_owned(), what: "a block is torn".to_owned() }
}

/// A store with the feed `news`, an item of which was updated twice; its next read of a class fails as the fault says.
async fn failing_store() -> (Store, Arc<Mutex<Option<ReadFault>>>) {
    let fault: Arc<Mutex<Option<ReadFault>>> = Arc::default();
    let failing = Arc::clone(&fault);
    let store = watched(move |call| {
        let is_of = |(class, _): &mut ReadFault| matches!(call, EngineCall::Read(read, _) if read == *class);
        failing.lock().unwrap().take_if(is_of).map_or(Ok(()), |(_, error)| Err(error()))
    });
    for (at, text) in [(1, "one"), (2, "two")] {
        edit(&store, at).await.item("a", text).order(&["a"]).commit(&store).await;
    }
    (store, fault)
}

/// The updates of a mark that is made of less would be too few for good, and subscribers would ignore the items of a
/// feed that takes the name again.
#[tokio::test]
async fn a_purge_waits_for_what_its_mark_is_made_of_unless_that_is_damaged() {
    for (class, of_damaged) in [(Class::Gateway, 2), (Class::Items, 0), (Class::Stubs, 2)] {
        let (store, fault) = failing_store().await;
        let feed = make::feed("news");
        store.put_feed(&make::record("news")).await.unwrap();
        let before = store.view(&feed, Select::All).await.unwrap().unwrap();
        *fault.lock().unwrap() = Some((class, away));
        let said = store.purge_feed(&feed).await.unwrap_err();
        assert!(matches!(said, StoreError::Away { .. }), "{class:?}: {said:?}");
        *fault.lock().unwrap() = None;
        assert_eq!(store.view(&feed, Select::All).await.unwrap().unwrap(), before, "{class:?}");
        assert_eq!(store.feeds().await.unwrap(), [make::record("news")], "{class:?}");
        assert_eq!(store.purged_updates(&feed).await.unwrap(), 0, "{class:?}");
        // It answers again, or what it has is damaged.
        let (damaged_store, fault) = failing_store().await;
        *fault.lock().unwrap() = Some((class, damaged));
        for (store, updates) in [(store, 2), (damaged_store, of_damaged)] {
            store.purge_feed(&feed).await.unwrap();
            assert!(store.state(&feed).await.unwrap().is_none());
            assert_eq!(store.purged_updates(&feed).await.unwrap(), updates, "{class:?}");
        }
    }
}
