//! After a barrier that failed, nothing is acknowledged, published or pretended.

use super::*;
use crate::store::sled::barrier::{Barrier, FlushAndSync};
use crate::store::{CommitError, Epoch, Select};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// A barrier that fails so often, and works from then on.
pub(super) struct Failing {
    real: FlushAndSync,
    left: Arc<AtomicUsize>,
}

impl Failing {
    /// Makes barriers that share how often they fail.
    pub(super) fn maker(
        left: &Arc<AtomicUsize>,
    ) -> impl Fn(&::sled::Db, &Path) -> io::Result<Box<dyn Barrier>> + Send + use<> {
        let left = Arc::clone(left);
        move |db, folder| {
            let real = FlushAndSync::new(db.clone(), folder)?;
            Ok(Box::new(Self { real, left: Arc::clone(&left) }))
        }
    }
}

impl Barrier for Failing {
    fn pass(&mut self) -> io::Result<()> {
        let take = |left: usize| left.checked_sub(1);
        match self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take) {
            Ok(_) => Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device")),
            Err(_) => self.real.pass(),
        }
    }
}

#[tokio::test]
async fn an_opening_that_is_not_durable_fails() {
    let folder = tempfile::tempdir().unwrap();
    let maker = Failing::maker(&Arc::new(AtomicUsize::new(1)));
    let opened = super::super::open(folder.path(), OpenRequest::default(), clock(), maker);
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
    let go = std::sync::Mutex::new(Some(go));
    let store =
        super::super::open(folder.path(), OpenRequest::default(), clock(), move |db, folder| {
            let real = FlushAndSync::new(db.clone(), folder).unwrap();
            let go = go.lock().unwrap().take().unwrap();
            Ok(Box::new(Waiting { real, arrived: arrived.clone(), go }))
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
pub(super) async fn wide(store: &EmbeddedStore, items: usize, text: &str) -> Change {
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
        let store = super::super::open(
            folder.path(),
            OpenRequest::default(),
            clock(),
            move |db, folder| {
                let real = FlushAndSync::new(db.clone(), folder).unwrap();
                Ok(Box::new(Counted { real, left: Arc::clone(&left) }))
            },
        );
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
pub(super) struct Counted {
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
