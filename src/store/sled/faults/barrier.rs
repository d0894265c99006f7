//! After a barrier that failed, nothing is acknowledged, published or pretended.

use super::*;
use crate::store::sled::barrier::{Barrier, FlushAndSync};
use crate::store::{CommitError, Epoch, Select};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

struct Failing {
    real: FlushAndSync,
    fails: Arc<AtomicBool>,
}

impl Barrier for Failing {
    fn pass(&mut self) -> io::Result<()> {
        if self.fails.load(Ordering::Acquire) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        self.real.pass()
    }
}

fn open_failing(path: &Path) -> (SledStore, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&fails);
    let store = SledStore::open_with(path, None, clock(), |trees, folder| {
        let real = FlushAndSync::new(trees.db().clone(), folder.path()).unwrap();
        Ok(Box::new(Failing { real, fails: switch }))
    });
    (store.unwrap(), fails)
}

#[tokio::test]
async fn a_failed_barrier_stops_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let (store, fails) = open_failing(folder.path());
    let claim = claim(&store).await;
    let first = change(&store, "one").await;
    store.commit(&claim, first).await.unwrap();
    let before = store.view(&news(), Select::All).await.unwrap().unwrap();
    let sealed = store.sealed();

    fails.store(true, Ordering::Release);
    let second = change(&store, "two").await;
    let said = store.commit(&claim, second.clone()).await.unwrap_err();
    assert!(matches!(said, CommitError::Ambiguous(_)), "{said:?}");
    assert_eq!(*sealed.borrow(), Epoch(1));

    // The disk works again, but what happened to the last write is unknown.
    fails.store(false, Ordering::Release);
    let said = store.commit(&claim, second).await.unwrap_err();
    let CommitError::Store(StoreError::Io { source, .. }) = said else { panic!("{said:?}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert!(source.to_string().contains("no space left on device"), "{source}");
    assert!(matches!(store.state(&news()).await, Err(StoreError::Io { .. })));
    assert!(matches!(store.view(&news(), Select::All).await, Err(StoreError::Io { .. })));
    assert!(matches!(store.feeds().await, Err(StoreError::Io { .. })));
    assert!(matches!(store.poll_states().await, Err(StoreError::Io { .. })));
    assert!(matches!(store.tail(Epoch(0), 9).await, Err(StoreError::Io { .. })));
    assert!(matches!(store.purge_feed(&news()).await, Err(StoreError::Io { .. })));
    let checkpoint = store.checkpoint(&claim, &[]).await;
    assert!(matches!(checkpoint, Err(CommitError::Store(StoreError::Io { .. }))));
    assert!(matches!(store.claims(1, Duration::ZERO).await, Err(StoreError::Io { .. })));
    assert!(matches!(store.close().await, Err(StoreError::Io { .. })));
    assert!(matches!(store.close().await, Err(StoreError::Closed)));

    // After a restart the change is there whole or not at all.
    let store = open_as(folder.path(), None).unwrap();
    let view = store.view(&news(), Select::All).await.unwrap().unwrap();
    let tail = store.tail(Epoch(0), 9).await.unwrap();
    if view != before {
        assert_eq!(view.state.revision, Revision(2));
        assert_eq!(view.items[0].shared.winner.data.xml, "two");
    }
    assert_eq!(tail.len() as u64, view.state.revision.0);
}

#[tokio::test]
async fn an_opening_that_is_not_durable_fails() {
    let folder = tempfile::tempdir().unwrap();
    let opened = SledStore::open_with(folder.path(), None, clock(), |trees, folder| {
        let real = FlushAndSync::new(trees.db().clone(), folder.path()).unwrap();
        Ok(Box::new(Failing { real, fails: Arc::new(AtomicBool::new(true)) }))
    });
    let StoreError::Io { doing, .. } = refused(opened) else { panic!("another error") };
    assert_eq!(doing, "make its opening durable");
    open(folder.path()).unwrap();
}

/// Everything but the barrier: what is written must be found by the next process even where this
/// one never closes the store. The integration test kills it; this one only forgets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_store_lets_go_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    for round in 1..=3 {
        let store = open(folder.path()).unwrap();
        let claim = claim(&store).await;
        assert_eq!(claim.fence, round);
        let change = change(&store, &round.to_string()).await;
        assert_eq!(store.commit(&claim, change).await.unwrap().revision, Revision(round));
    }
}
