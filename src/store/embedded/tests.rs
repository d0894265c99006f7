mod damaged_export;
mod pruning;
mod purge_marks;

use super::feed::FeedRecords;
use super::feed_writer::FeedWriter;
use super::*;
use crate::conformance::make::{self, Draft, edit};
use crate::engine::{Class, EngineCall, WatchedEngine};
use crate::purge_mark::PurgeMark;
use crate::{CommitError, Select, Store};
use std::time::Duration;
use tidegate_core::clock::ManualClock;

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(make::time(0)))
}

fn open(folder: &std::path::Path) -> Store {
    Store::on_disk(folder, EndpointId::own("gate.example").ok(), clock()).unwrap()
}

impl Store {
    /// How many requests wait for the committer's thread.
    pub(crate) fn queued(&self) -> usize {
        let Writer::Thread(requests) = self.inner.opened().unwrap().writer else {
            panic!("it has no thread");
        };
        requests.max_capacity() - requests.capacity()
    }
}

/// What comes of something that does not wait for what a test holds.
async fn at_once<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it waits")
}

/// A store in memory whose calls are seen; an error is the answer.
fn watched(
    watch: impl Fn(EngineCall<'_>) -> Result<(), StoreError> + Send + Sync + 'static,
) -> Store {
    let engine =
        WatchedEngine { engine: Arc::new(MemoryEngine::default()), watch: Box::new(watch) };
    let endpoint = EndpointId::own("gate.example").ok();
    let request = OpenRequest { endpoint, ..OpenRequest::default() };
    Store::over_memory(Records::new(Arc::new(engine)), request, clock()).unwrap()
}

#[tokio::test]
async fn a_purge_that_was_cut_off_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let feed = make::feed("news");
    edit(&store, 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    let state = store.state(&feed).await.unwrap().unwrap();
    let records = store.inner.opened().unwrap().records;
    let purge_mark = PurgeMark::under(&state, 0, None);
    records.engine().apply(purge::forget(&records, &feed, Some(&purge_mark)).unwrap()).unwrap();
    drop(records);
    store.close().await.unwrap();

    let store = open(folder.path());
    assert!(store.state(&feed).await.unwrap().is_none());
    let records = store.inner.opened().unwrap().records;
    for class in Class::ALL {
        let left = match class {
            Class::Marks | Class::Log => 1,
            // The format's number, and the identity.
            Class::Gateway => 2,
            _ => 0,
        };
        assert_eq!(records.entries(*class, &[]).count(), left, "in {}", class.name());
    }
    assert!(records.contains(Class::Marks, &keys::of_kind(keys::PURGED, &feed)).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taker_of_an_export_that_stands_still_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let draft = async |seconds| edit(&store, seconds).await.item("a", "A").item("b", "B");
    draft(1).await.order(&["a", "b"]).commit(&store).await;
    let (to, mut taken) = mpsc::channel(1);
    let exported = Arc::clone(&store);
    let exporting = tokio::spawn(async move { exported.export(to).await });
    while taken.recv().await.unwrap().feed().is_none() {}
    let change = draft(2).await.done();
    at_once(store.commit(change)).await.unwrap();
    while taken.recv().await.is_some() {}
    exporting.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_feed_that_is_shut_leave_room_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    for feed in ["shut", "open"] {
        Draft::on(&store, feed, 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    }
    let shut = store.inner.shared.locks.lock(&make::feed("shut")).await;
    let (reading, name) = (Arc::clone(&store), make::feed("shut"));
    let waiting: Vec<_> = (0..3 * READS)
        .map(|_| {
            let (store, name) = (Arc::clone(&reading), name.clone());
            tokio::spawn(async move { store.view(&name, Select::All).await.unwrap().unwrap() })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    let name = make::feed("open");
    let other = at_once(store.view(&name, Select::All)).await.unwrap().unwrap();
    assert_eq!(other.items.len(), 1);
    drop(shut);
    for task in waiting {
        assert_eq!(task.await.unwrap().items.len(), 1);
    }
}

/// A change of a feed is planned, which may take long, while the feed is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_feed_do_not_wait_while_its_change_is_planned() {
    let folder = tempfile::tempdir().unwrap();
    let (store, feed) = (Arc::new(open(folder.path())), make::feed("news"));
    let change = edit(&store, 1).await.item("a", "A").order(&["a"]).done();
    // The plan waits for its turn to read.
    let turns = store.inner.acquire_all_read_permits().await.unwrap();
    let writing = Arc::clone(&store);
    let commit = tokio::spawn(async move { writing.commit(change).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(at_once(store.inner.shared.locks.lock_to_read(&feed)).await);
    drop(turns);
    commit.await.unwrap().unwrap();
}

#[tokio::test]
async fn readers_of_a_purged_feed_do_not_wait_for_its_sweep() {
    let store = testing::ScriptedStore::new("gate.example", clock());
    let feed = make::feed("news");
    edit(&store, 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    let (sweeps, purging, name) = (store.hold_commits(), store.real(), feed.clone());
    let purge = tokio::spawn(async move { purging.purge_feed(&name).await });
    while store.state(&feed).await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
    assert!(at_once(store.events(&feed, 1)).await.unwrap().is_empty());
    assert!(!purge.is_finished());
    sweeps.add_permits(8);
    purge.await.unwrap().unwrap();
}

/// Those that read may hang: what is in memory is answered all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_of_feeds_is_answered_while_as_many_read_as_may() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.put_feed(&make::record("news")).await.unwrap();
    assert_eq!(store.feed_list().await.unwrap().len(), 1);
    let reading = store.inner.acquire_all_read_permits().await.unwrap();
    store.put_feed(&make::record("other")).await.unwrap();
    assert_eq!(at_once(store.feed_list()).await.unwrap().len(), 2);
    drop(reading);
    store.close().await.unwrap();
}

/// A large change that began while there was space breaks off before it takes what must stay free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_change_breaks_off_where_space_gets_low() {
    use crate::{FreeSpace, MeasuredSpace};
    use std::sync::atomic::{AtomicU64, Ordering};
    let folder = tempfile::tempdir().unwrap();
    let left = Arc::new(AtomicU64::new(1 << 30));
    let looks = Arc::clone(&left);
    let space = FreeSpace::measured_by(256 << 20, move || {
        // Each look finds 100 MiB less.
        let free = looks.fetch_sub(100 << 20, Ordering::SeqCst);
        Ok(MeasuredSpace { free, total: 1 << 40 })
    });
    let store = open(folder.path()).with_space(Arc::new(space));
    let feed = make::feed("news");
    edit(&store, 1).await.item("a", "one").commit(&store).await;
    let before = store.view(&feed, Select::All).await.unwrap();
    let draft = edit(&store, 3).await;
    let large = (0..60).fold(draft, |draft, item| draft.item(&format!("item-{item:02}"), "two"));
    let said = store.commit(large.done()).await.unwrap_err();
    assert!(matches!(said, CommitError::Store(StoreError::LowSpace { .. })), "{said:?}");
    assert!(left.load(Ordering::SeqCst) < 256 << 20, "it broke off at once");
    assert_eq!(store.view(&feed, Select::All).await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_can_be_closed_while_a_large_change_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let names: Vec<String> = (0..3000).map(|item| format!("item-{item:04}")).collect();
    let change = edit(&store, 1).await.items(&names, "one").done();
    let writing = Arc::clone(&store);
    // Whoever asked for it goes away: the change is carried on all the same.
    let commit = tokio::spawn(async move { writing.commit(change).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!commit.is_finished(), "the change is too small for this test");
    commit.abort();
    store.close().await.unwrap();
}

/// Entries that compress well take little space where they are stored, and much where they are read.
#[tokio::test]
async fn a_portion_of_a_view_is_bounded_by_the_bytes_of_its_items() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (text, names) = ("a".repeat(3 << 20), ["a", "b", "c"]);
    edit(&store, 1).await.items(names, &text).order(&names).commit(&store).await;
    let reader = store.pin(&make::feed("news")).await.unwrap().unwrap();
    let (view, remaining) = reader.begin_view(Select::Current).await.unwrap().unwrap();
    assert_eq!((view.items.len(), remaining.ids().len()), (2, 1));
    let (rest, remaining) = reader.next_items(remaining).await.unwrap().unwrap();
    assert!(rest.len() == 1 && remaining.is_empty());
}

/// A publisher names other items after the sync id of one that left, which cannot come back.
#[test]
fn a_stub_is_found_by_its_sync_id_whatever_others_are_called() {
    use tidegate_core::model::Tick;
    let feed = make::feed("news");
    let records = Records::new(Arc::new(MemoryEngine::default()));
    let feed = FeedRecords::new(&records, &feed);
    let at = |seconds: i64| Tick::at(make::time(seconds));
    let stub = |name: &str, native: &str, tick| {
        let mut known = make::known(name, 1, tick);
        known.native_shown = native.to_owned();
        known.stub(known.history.clone(), tick.time())
    };
    let mut writes = crate::engine::Writes::new();
    let (codec, name) = (&feed.records, &feed.name);
    let mut writer = FeedWriter { codec, name, writes: &mut writes };
    for decoy in 0..64 {
        // Entries that share a guid: the publisher chose the sync id of another item for it.
        let decoy = stub(&format!("decoy-{decoy}"), "victim", at(decoy));
        writer.put_stub(&decoy).unwrap();
    }
    writer.put_stub(&stub("victim", "urn:victim", at(99))).unwrap();
    records.engine().apply(writes).unwrap();
    let found = feed.stubs(&["victim".to_owned()]).unwrap();
    assert!(found.iter().any(|stub| stub.id.as_str() == "victim"), "of {} stubs", found.len());
}

#[tokio::test]
async fn a_tombstone_takes_nothing_in_whatever_stands_in_for_its_text() {
    use super::write::brings_text;
    use tidegate_core::model::ItemStatus;
    let store = Store::in_memory(EndpointId::own("gate.example").ok(), clock()).unwrap();
    let mut change = edit(&store, 1).await.item("a", "A").item("b", "B").done();
    assert!(change.versions.iter().all(|version| version.markup.is_some()));
    let since = make::time(0);
    for left in [1, 0] {
        assert!(brings_text(&change), "an item lives");
        change.known[left].standing = ItemStatus::Deleted { since };
    }
    assert!(!brings_text(&change));
}
