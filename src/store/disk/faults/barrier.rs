//! After a barrier that failed, nothing is acknowledged, published or pretended.

use super::reopen::{pauses, until_open};
use super::*;
use crate::conformance::make::record;
use crate::engine::{Class, EngineCall, KeyOrder, WatchedEngine, beginning_with};
use crate::testing::eventually;
use crate::{CommitError, Epoch, Select};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Has something done before each barrier; an error is its answer.
pub(super) fn before_pass(
    before: impl Fn() -> io::Result<()> + Send + Sync + 'static,
) -> Box<WrapEngine> {
    let before = Arc::new(before);
    Box::new(move |engine| {
        let before = Arc::clone(&before);
        let doing = "make a write durable";
        let watch = Box::new(move |call: EngineCall<'_>| match call {
            EngineCall::Pass => before().map_err(|source| StoreError::Io { doing, source }),
            EngineCall::Read(..) | EngineCall::Apply(_) => Ok(()),
        });
        Arc::new(WatchedEngine { engine, watch })
    })
}

fn no_space() -> io::Error {
    io::Error::new(io::ErrorKind::StorageFull, "no space left on device")
}

/// Barriers that fail so often, and work from then on.
pub(super) fn failing(left: &Arc<AtomicUsize>) -> Box<WrapEngine> {
    let left = Arc::clone(left);
    before_pass(move || if is_left(&left) { Err(no_space()) } else { Ok(()) })
}

/// Takes one of so many, where one is left.
fn is_left(left: &AtomicUsize) -> bool {
    let take = |left: usize| left.checked_sub(1);
    left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_opening_that_is_not_durable_fails() {
    let folder = tempfile::tempdir().unwrap();
    let wrap = failing(&Arc::new(AtomicUsize::new(1)));
    let opened = open_with(folder.path(), ReopenPauses::default(), wrap);
    let StoreError::Io { doing, .. } = refused(opened) else { panic!("another error") };
    assert_eq!(doing, "make a write durable");
    open(folder.path()).unwrap();
}

type LetThrough = std::sync::mpsc::Sender<io::Result<()>>;

/// A store whose barriers are told of, and wait each for its answer; the one of its opening has passed. What lets
/// them through is bound last and so dropped first: a test that fails does not wait at a barrier for ever.
async fn open_waiting() -> (tempfile::TempDir, Arc<Store>, mpsc::UnboundedReceiver<()>, LetThrough)
{
    let folder = tempfile::tempdir().unwrap();
    let (arrived, mut waits) = mpsc::unbounded_channel();
    let (let_through, go) = std::sync::mpsc::channel();
    let_through.send(Ok(())).unwrap();
    let go = std::sync::Mutex::new(go);
    let waiting = before_pass(move || {
        let _ = arrived.send(());
        go.lock().unwrap().recv().unwrap_or(Ok(()))
    });
    let store = open_with(folder.path(), ReopenPauses::default(), waiting).unwrap();
    waits.recv().await.unwrap();
    (folder, Arc::new(store), waits, let_through)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_seen_before_it_is_durable() {
    let (_folder, store, mut waits, let_through) = open_waiting().await;
    for round in 1..=3 {
        let before = store.state(&news()).await.unwrap();
        let change = change(&store, &round.to_string()).await;
        let writing = Arc::clone(&store);
        let commit = tokio::spawn(async move { writing.commit(change).await });
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
        let_through.send(Ok(())).unwrap();
        assert_eq!(commit.await.unwrap().unwrap().revision, Revision(round));
        if let Some(view) = view.await.unwrap().unwrap() {
            assert_eq!(view.state.revision, Revision(round));
            assert_eq!(view.items[0].shared.winner.data.xml, format!("<entry>{round}</entry>"));
        } else {
            assert_eq!(round, 1, "a feed that was there is gone");
        }
    }
    // The list is in memory meanwhile, and is answered as it was.
    assert!(store.feed_list().await.unwrap().is_empty());
    let writing = Arc::clone(&store);
    let putting = tokio::spawn(async move { writing.put_feed(&record("news")).await });
    waits.recv().await.unwrap();
    let listed = tokio::time::timeout(Duration::from_secs(20), store.feed_list()).await;
    assert!(listed.expect("it waits for the barrier").unwrap().is_empty());
    let_through.send(Ok(())).unwrap();
    putting.await.unwrap().unwrap();
    assert_eq!(store.feed_list().await.unwrap().len(), 1);
    let purging = Arc::clone(&store);
    let purge = tokio::spawn(async move { purging.purge_feed(&news()).await });
    waits.recv().await.unwrap();
    assert_eq!(store.feed_list().await.unwrap().len(), 1);
    drop(let_through);
    purge.await.unwrap().unwrap();
    assert!(store.feed_list().await.unwrap().is_empty());
}

/// Requests that come while a barrier is passed share the next one, and its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_wait_together_share_a_barrier() {
    for fails in [false, true] {
        let (_folder, store, mut waits, let_through) = open_waiting().await;
        let commit = |number: usize| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let draft = Draft::on(&store, &format!("feed-{number}"), 1).await;
                store.commit(draft.item("a", "A").order(&["a"]).done()).await
            })
        };
        let first = commit(0);
        waits.recv().await.unwrap();
        let together: Vec<_> = (1..12).map(commit).collect();
        eventually("some do not ask", || store.queued() >= together.len()).await;
        let_through.send(Ok(())).unwrap();
        waits.recv().await.unwrap();
        let_through.send(if fails { Err(no_space()) } else { Ok(()) }).unwrap();
        // A further barrier is passed at once, and counted.
        drop(let_through);
        first.await.unwrap().unwrap();
        for commit in together {
            match commit.await.unwrap() {
                Ok(_) => assert!(!fails),
                Err(CommitError::Ambiguous(_)) => assert!(fails),
                Err(other) => panic!("{other:?}"),
            }
        }
        // After a failure the store passes one when it is opened again.
        assert!(fails || waits.try_recv().is_err(), "a third barrier");
    }
}

/// Wherever a large change breaks off, between any two of its portions, nothing of it is there; where only
/// its last barrier failed, it may be there whole. So it is in a store that opens itself again, and at another start.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_wide_change_that_breaks_off_is_whole_or_not_there() {
    const AT_ONCE: usize = 8;
    let mut before_it = 0;
    for first in (0..).step_by(AT_ONCE) {
        let tries: Vec<_> =
            (first..first + AT_ONCE).map(|failing| tokio::spawn(break_off(failing))).collect();
        for (failing, tried) in (first..).zip(tries) {
            let (said, revision) = tried.await.unwrap();
            before_it += usize::from(matches!(said, Err(CommitError::Store(_))));
            assert!(revision == Revision(1) || failing >= before_it, "it broke off before");
            if said.is_ok() {
                return assert!(before_it > 4, "{before_it} portions are not many");
            }
        }
    }
}

/// Makes a large change whose barriers fail from the given one on; what was said of it, and the revision that there is then.
async fn break_off(failing: usize) -> (Result<Committed, CommitError>, Revision) {
    let names: Vec<String> = (0..14).map(|number| format!("a{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wide = async |store: &Store, text| {
        store.commit(draft(store).await.items(&names, text).order(&names).done()).await
    };
    let view = async |store: &Store| store.view(&news(), Select::All).await.unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let passes = Arc::new(AtomicUsize::new(usize::MAX));
    let left = Arc::clone(&passes);
    let wrap = before_pass(move || if is_left(&left) { Ok(()) } else { Err(no_space()) });
    let mut store = open_with(folder.path(), pauses(1), wrap).unwrap();
    wide(&store, "one").await.unwrap();
    let before = view(&store).await;
    assert_eq!(before.items.len(), names.len());

    passes.store(failing, Ordering::Release);
    let said = wide(&store, "two").await;
    passes.store(usize::MAX, Ordering::Release);
    let is_known = matches!(said, Ok(_) | Err(CommitError::Ambiguous(_) | CommitError::Store(_)));
    assert!(is_known, "{said:?}");
    if failing.is_multiple_of(2) {
        until_open(&store).await;
    } else {
        drop(store);
        let engine;
        (store, engine) = open_raw(folder.path());
        let marks = beginning_with(&[]);
        let left = engine.portion(Class::Marks, &marks, KeyOrder::Ascending, 9).unwrap();
        assert!(left.entries.is_empty(), "something of it is left");
    }

    let after = view(&store).await;
    let tail = store.epochs_after(Epoch(0), 9).await.unwrap();
    assert_eq!(tail.len() as u64, after.state.revision.0);
    if after.state.revision == Revision(1) {
        assert!(said.is_err());
        assert_eq!(after, before);
    } else {
        assert_eq!((after.state.revision, after.items.len()), (Revision(2), names.len()));
        let mut texts = after.items.iter().map(|item| &item.shared.winner.data.xml);
        assert!(texts.all(|text| text == "<entry>two</entry>"));
    }
    wide(&store, "three").await.unwrap();
    assert_eq!(view(&store).await.items.len(), names.len());
    (said, after.state.revision)
}
