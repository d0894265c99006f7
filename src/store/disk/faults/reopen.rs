//! A store that failed is opened again by itself: nothing unacknowledged is shown, and nothing
//! acknowledged is lost.

use super::barrier::{before_pass, failing};
use super::*;
use crate::conformance::make::{poll_state, record};
use crate::disk::folder::{MARK, TRIAL};
use crate::{CommitError, Epoch, Select, StoreStop};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The pause before the first try, and the longest one.
pub(super) fn pauses(milliseconds: u64) -> ReopenPauses {
    let first = Duration::from_millis(milliseconds);
    ReopenPauses { first, longest: 2 * first, damaged: (first, 3 * first) }
}

fn open_failing(path: &Path, pauses: ReopenPauses) -> (Store, Arc<AtomicUsize>) {
    let fails = Arc::new(AtomicUsize::new(0));
    let store = open_with(path, pauses, failing(&fails));
    (store.unwrap(), fails)
}

async fn until<T>(store: &Store, found: impl Fn(Option<StoreStop>) -> Option<T>) -> T {
    for _ in 0..2_000 {
        if let Some(found) = found(store.condition().stop) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{:?}", store.condition());
}

pub(super) async fn until_open(store: &Store) {
    until(store, |stop| stop.is_none().then_some(())).await;
}

async fn until_stopped(store: &Store, is_so: impl Fn(&StoreStop) -> bool) -> StoreStop {
    until(store, |stop| stop.filter(|stop| is_so(stop))).await
}

async fn until_tried(store: &Store, failed: u32) -> StoreStop {
    until_stopped(store, |stop| stop.failed_tries >= failed && stop.next_try.is_some()).await
}

fn assert_stopped<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let Err(StoreError::Stopped(stop)) = answer else { panic!("{answer:?}") };
    let said = stop.to_string();
    assert!(said.contains("no space left on device") && said.contains("opened again"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_barrier_stops_the_store_until_it_is_open_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, fails) = open_failing(folder.path(), pauses(300));
    commit(&store, "one").await;
    let before = store.view(&news(), Select::All).await.unwrap().unwrap();
    let reader = store.pin(&news()).await.unwrap().unwrap();
    let sealed = store.watch_epochs();

    fails.store(1, Ordering::Release);
    let second = change(&store, "two").await;
    let said = store.commit(second.clone()).await.unwrap_err();
    assert!(matches!(said, CommitError::Ambiguous(_)), "{said:?}");
    assert_eq!(*sealed.borrow(), Epoch(1));
    // What is durable is told from memory; what happened to the last write is unknown.
    assert_eq!(store.state(&news()).await.unwrap().unwrap().revision, Revision(1));
    let said = store.commit(second.clone()).await.unwrap_err();
    let CommitError::Store(said) = said else { panic!("{said:?}") };
    assert_stopped(Err::<(), _>(said));
    assert_stopped(store.view(&news(), Select::All).await);
    assert_stopped(store.feeds().await);
    assert_stopped(store.poll_states().await);
    assert_stopped(store.epochs_after(Epoch(0), 9).await);
    assert_stopped(store.purge_feed(&news()).await);
    let checkpoint = store.checkpoint(&[]).await;
    assert!(matches!(checkpoint, Err(CommitError::Store(StoreError::Stopped(_)))));
    // The folder is this process's own all the while.
    assert!(matches!(refused(open_as(folder.path(), None)), StoreError::InUse { .. }));

    until_open(&store).await;
    assert!(store.listed().is_some(), "the list of feeds is to be read first");
    let view = store.view(&news(), Select::All).await.unwrap().unwrap();
    let tail = store.epochs_after(Epoch(0), 9).await.unwrap();
    if view.state.revision == Revision(1) {
        assert_eq!(view, before);
    } else {
        assert_eq!(view.state.revision, Revision(2));
        assert_eq!(view.items[0].shared.winner.data.xml, "<entry>two</entry>");
        // Who reads at a revision does not go on after a failure.
        assert_eq!(reader.state().revision, Revision(1));
        assert!(matches!(reader.view(Select::All).await, Err(StoreError::Outdated)));
    }
    assert_eq!(tail.len() as u64, view.state.revision.0);
    assert_eq!(*sealed.borrow(), Epoch(view.state.revision.0));

    let third = change(&store, "three").await;
    let revision = store.commit(third).await.unwrap().revision;
    assert_eq!(revision, Revision(view.state.revision.0 + 1));
    store.close().await.unwrap();
    assert!(matches!(store.state(&news()).await, Err(StoreError::Closed)));
    let store = open_as(folder.path(), None).unwrap();
    assert_eq!(store.state(&news()).await.unwrap().unwrap().revision, revision);
}

/// A disk that fails for a while makes a store look damaged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_looks_damaged_is_said_to_be_and_tried_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let (store, fails) = open_failing(&path, pauses(10));
    commit(&store, "one").await;
    let mark = path.join(MARK);
    let whole = std::fs::read(&mark).unwrap();
    std::fs::write(&mark, "what a failing disk answers").unwrap();
    fails.store(1, Ordering::Release);
    store.commit(change(&store, "two").await).await.unwrap_err();
    let cause = until_tried(&store, 5).await.cause;
    assert!(cause.contains("the store looks damaged: the file mark is not as it"), "{cause}");
    assert!(matches!(store.feeds().await, Err(StoreError::Stopped(_))));
    std::fs::write(&mark, whole).unwrap();
    until_open(&store).await;
    commit(&store, "three").await;
}

/// What is lost is a change that makes no tick, so that no epoch tells of it; or a record without a revision, of which
/// the writes are counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_without_what_it_acknowledged_is_not_opened_again() {
    for (lost, said) in [
        ("a change", "the feed news is at revision 1, 2 was acknowledged"),
        ("a record", "1 acknowledged write to records of feeds"),
        ("a poll state", "1 acknowledged write to records of feeds"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let (store, fails) = open_failing(&path, pauses(10));
        commit(&store, "one").await;
        let older = files(&path);
        match lost {
            "a change" => drop(draft(&store).await.latest("a", "two").commit(&store).await),
            "a record" => store.put_feed(&record("news")).await.unwrap(),
            _ => store.checkpoint(&[poll_state("news")]).await.unwrap(),
        }
        bar(&path);
        fails.store(1, Ordering::Release);
        store.commit(change(&store, "three").await).await.unwrap_err();
        put_back(&store, &path, &older).await;
        let what = until_given_up(&store).await;
        assert!(what.contains(said), "{what}");
        assert!(store.close().await.is_err());
    }
}

/// Lets no store be opened again in the folder: nothing can be written to it.
fn bar(path: &Path) {
    std::fs::create_dir(path.join(TRIAL)).unwrap();
}

/// Puts the engine's files back to what they were once nobody has them open, and lets the store be opened again.
async fn put_back(store: &Store, path: &Path, older: &BTreeMap<String, Vec<u8>>) {
    until_tried(store, 1).await;
    let is_engines = |name: &&String| name.starts_with("db/");
    for name in files(path).keys().filter(is_engines) {
        std::fs::remove_file(path.join(name)).unwrap();
    }
    for name in older.keys().filter(is_engines) {
        std::fs::create_dir_all(path.join(name).parent().unwrap()).unwrap();
        std::fs::write(path.join(name), &older[name]).unwrap();
    }
    std::fs::remove_dir(path.join(TRIAL)).unwrap();
}

/// Waits until the store is not tried any more; what is missing.
async fn until_given_up(store: &Store) -> String {
    let said = until_stopped(store, |stop| stop.next_try.is_none()).await.to_string();
    assert!(said.contains("not opened again"), "{said}");
    let damaged = store.feeds().await.unwrap_err();
    let StoreError::Damaged { what, .. } = damaged else { panic!("{damaged:?}") };
    what
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_opened_again_can_be_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, fails) = open_failing(folder.path(), pauses(60_000));
    fails.store(1, Ordering::Release);
    store.commit(change(&store, "one").await).await.unwrap_err();
    let begun = tokio::time::Instant::now();
    assert_stopped(store.close().await);
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(matches!(store.close().await, Err(StoreError::Closed)));
    open_as(folder.path(), None).unwrap();
}

/// The committer breaks off while a feed is shut and a reader waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_waits_does_not_keep_a_store_shut_whose_committer_broke_off() {
    let folder = tempfile::tempdir().unwrap();
    let armed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (arrived, reached) = std::sync::mpsc::channel();
    let (let_go, go) = std::sync::mpsc::channel::<()>();
    let (shared, go) = (Arc::clone(&armed), std::sync::Mutex::new(go));
    let breaks_off = before_pass(move || {
        if shared.swap(false, Ordering::AcqRel) {
            let _ = arrived.send(());
            let _ = go.lock().unwrap().recv();
            panic!("the engine breaks off");
        }
        Ok(())
    });
    let opened = open_with(folder.path(), pauses(20), breaks_off);
    let store = Arc::new(opened.unwrap());
    commit(&store, "one").await;

    armed.store(true, Ordering::Release);
    let second = change(&store, "two").await;
    let writing = Arc::clone(&store);
    let commit = tokio::spawn(async move { writing.commit(second).await });
    tokio::task::block_in_place(|| reached.recv().unwrap());
    // The feed is shut: whoever reads now waits.
    let reading = Arc::clone(&store);
    let view = tokio::spawn(async move { reading.view(&news(), Select::All).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let_go.send(()).unwrap();
    assert!(commit.await.unwrap().is_err());
    // Who waited is told, or answered where the store was open again before the reader went on.
    let waited = tokio::time::timeout(Duration::from_secs(30), view).await.unwrap().unwrap();
    assert!(waited.is_err() || waited.is_ok_and(|view| view.unwrap().items.len() == 1));
    let answered = async {
        loop {
            match store.view(&news(), Select::All).await {
                Ok(view) => return view.unwrap(),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    let view = tokio::time::timeout(Duration::from_secs(30), answered).await.unwrap();
    assert_eq!(view.items.len(), 1);
}
