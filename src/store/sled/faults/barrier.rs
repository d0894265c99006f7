//! After a barrier that failed, nothing is acknowledged, published or pretended.

use super::*;
use crate::store::sled::barrier::{Barrier, FlushAndSync};
use crate::store::{CommitError, Epoch, Select};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::mpsc;

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

fn open_failing(path: &Path) -> (EmbeddedStore, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&fails);
    let store = super::super::open(path, OpenRequest::default(), clock(), |db, folder| {
        let real = FlushAndSync::new(db.clone(), folder).unwrap();
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
    let sealed = store.watch_epochs();

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
    assert!(matches!(store.epochs_after(Epoch(0), 9).await, Err(StoreError::Io { .. })));
    assert!(matches!(store.purge_feed(&news()).await, Err(StoreError::Io { .. })));
    let checkpoint = store.checkpoint(&claim, &[]).await;
    assert!(matches!(checkpoint, Err(CommitError::Store(StoreError::Io { .. }))));
    assert!(matches!(store.claims(1, Duration::ZERO).await, Err(StoreError::Io { .. })));
    assert!(matches!(store.close().await, Err(StoreError::Io { .. })));
    assert!(matches!(store.close().await, Err(StoreError::Closed)));

    // After a restart the change is there whole or not at all.
    let store = open_as(folder.path(), None).unwrap();
    let view = store.view(&news(), Select::All).await.unwrap().unwrap();
    let tail = store.epochs_after(Epoch(0), 9).await.unwrap();
    if view != before {
        assert_eq!(view.state.revision, Revision(2));
        assert_eq!(view.items[0].shared.winner.data.xml, "two");
    }
    assert_eq!(tail.len() as u64, view.state.revision.0);
}

#[tokio::test]
async fn an_opening_that_is_not_durable_fails() {
    let folder = tempfile::tempdir().unwrap();
    let opened =
        super::super::open(folder.path(), OpenRequest::default(), clock(), |db, folder| {
            let real = FlushAndSync::new(db.clone(), folder).unwrap();
            Ok(Box::new(Failing { real, fails: Arc::new(AtomicBool::new(true)) }))
        });
    let StoreError::Io { doing, .. } = refused(opened) else { panic!("another error") };
    assert_eq!(doing, "make its opening durable");
    open(folder.path()).unwrap();
}

/// A barrier that waits to be let through, and says that it waits.
struct Waiting {
    real: FlushAndSync,
    arrived: mpsc::UnboundedSender<()>,
    go: std::sync::mpsc::Receiver<()>,
}

impl Barrier for Waiting {
    fn pass(&mut self) -> io::Result<()> {
        // A test that ended lets everything through.
        let _ = self.arrived.send(());
        let _ = self.go.recv();
        self.real.pass()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_seen_before_it_is_durable() {
    let folder = tempfile::tempdir().unwrap();
    let (arrived, mut waits) = mpsc::unbounded_channel();
    let (let_through, go) = std::sync::mpsc::channel();
    let_through.send(()).unwrap();
    let store = super::super::open(folder.path(), OpenRequest::default(), clock(), |db, folder| {
        let real = FlushAndSync::new(db.clone(), folder).unwrap();
        Ok(Box::new(Waiting { real, arrived, go }))
    });
    let store = Arc::new(store.unwrap());
    // Dropped before the store, so that a test that fails does not wait at the barrier for ever.
    let let_through = let_through;
    waits.recv().await.unwrap();
    let claim = claim(&store).await;
    for round in 1..=3 {
        let before = store.state(&news()).await.unwrap();
        let change = change(&store, &round.to_string()).await;
        let (writing, claim) = (Arc::clone(&store), claim.clone());
        let commit = tokio::spawn(async move { writing.commit(&claim, change).await });
        waits.recv().await.unwrap();

        // The change stands in the database, and not yet for certain on the disk.
        assert!(!commit.is_finished());
        assert_eq!(store.state(&news()).await.unwrap(), before);
        assert_eq!(*store.watch_epochs().borrow(), Epoch(round - 1));
        assert_eq!(store.epochs_after(Epoch(round - 1), 9).await.unwrap(), []);
        let reading = Arc::clone(&store);
        let view = tokio::spawn(async move { reading.view(&news(), Select::All).await });
        // Time for a reader that does not wait to give itself away.
        tokio::time::sleep(Duration::from_millis(30)).await;
        let_through.send(()).unwrap();
        assert_eq!(commit.await.unwrap().unwrap().revision, Revision(round));
        if let Some(view) = view.await.unwrap().unwrap() {
            assert_eq!(view.state.revision, Revision(round));
            assert_eq!(view.items[0].shared.winner.data.xml, round.to_string());
        } else {
            assert_eq!(round, 1, "a feed that was there is gone");
        }
    }
    drop(let_through);
}

#[tokio::test]
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

/// A change to `items` items at once, on top of what the store has.
async fn wide(store: &EmbeddedStore, items: usize, text: &str) -> Change {
    let mut wide = change(store, text).await;
    let (known, version) = (wide.known.remove(0), wide.versions.remove(0));
    for number in 0..items {
        let id = SyncId::new(&format!("a{number:05}")).unwrap();
        wide.known.push(LedgerEntry { id: id.clone(), ..known.clone() });
        wide.versions.push(NewVersion { id, ..version.clone() });
    }
    wide.order = Some(wide.known.iter().map(|known| known.id.clone()).collect());
    let items = u32::try_from(items).unwrap();
    wide.state =
        FeedState { current: items, living: items, sync_ids_issued: items.into(), ..wide.state };
    wide
}

/// Wherever a large change breaks off, between any two of its portions, nothing of it is there; where only
/// its last barrier failed, it may be there whole.
#[tokio::test]
async fn a_wide_change_that_breaks_off_is_whole_or_not_there() {
    const ITEMS: usize = 40;
    let mut before_it = 0;
    for failing in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let passes = Arc::new(AtomicUsize::new(usize::MAX));
        let left = Arc::clone(&passes);
        let store =
            super::super::open(folder.path(), OpenRequest::default(), clock(), |db, folder| {
                let real = FlushAndSync::new(db.clone(), folder).unwrap();
                Ok(Box::new(Counted { real, left }))
            });
        let store = store.unwrap();
        let claim = claim(&store).await;
        let first = wide(&store, ITEMS, "one").await;
        store.commit(&claim, first).await.unwrap();
        let before = store.view(&news(), Select::All).await.unwrap().unwrap();
        assert_eq!(before.items.len(), ITEMS);

        passes.store(failing, Ordering::Release);
        let second = wide(&store, ITEMS, "two").await;
        let said = store.commit(&claim, second).await;
        let is_whole = said.is_ok();
        if let Err(said) = said {
            assert!(matches!(said, CommitError::Ambiguous(_) | CommitError::Store(_)), "{said:?}");
            before_it += usize::from(matches!(said, CommitError::Store(_)));
        }
        drop(store);

        let store = open_as(folder.path(), None).unwrap();
        let after = store.view(&news(), Select::All).await.unwrap().unwrap();
        let tail = store.epochs_after(Epoch(0), 9).await.unwrap();
        assert_eq!(tail.len() as u64, after.state.revision.0);
        if after.state.revision == Revision(1) {
            assert!(!is_whole);
            assert_eq!(after, before);
        } else {
            assert!(failing >= before_it, "it broke off before it was whole");
            assert_eq!((after.state.revision, after.items.len()), (Revision(2), ITEMS));
            let texts = after.items.iter().map(|item| &item.shared.winner.data.xml);
            assert!(texts.into_iter().all(|text| text == "two"));
        }
        let claim = self::claim(&store).await;
        let third = wide(&store, ITEMS, "three").await;
        store.commit(&claim, third).await.unwrap();
        let after = store.view(&news(), Select::All).await.unwrap().unwrap();
        assert_eq!(after.items.len(), ITEMS);
        if is_whole {
            break;
        }
    }
    assert!(before_it > 9, "{before_it} portions are not many");
}

/// A barrier that can be passed so often, and fails from then on.
struct Counted {
    real: FlushAndSync,
    left: Arc<AtomicUsize>,
}

impl Barrier for Counted {
    fn pass(&mut self) -> io::Result<()> {
        let take = |left: usize| if left == usize::MAX { Some(left) } else { left.checked_sub(1) };
        match self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) {
            Ok(_) => self.real.pass(),
            Err(_) => Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device")),
        }
    }
}
