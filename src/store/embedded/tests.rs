mod damaged_export;
mod pruning;

use super::feed::FeedRecords;
use super::feed_writer::FeedWriter;
use super::testing::{ScriptedStore, StoreFault};
use super::*;
use crate::conformance::make::{self, Draft, edit};
use crate::disk::faults::{clock, open};
use crate::engine::{Class, Writes};
use crate::purge_mark::PurgeMark;
use crate::{CommitError, Select, Store};
use std::time::Duration;

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

#[tokio::test]
async fn a_purge_that_was_cut_off_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let feed = make::feed("news");
    edit(&store, 1).await.item("a", "A").order(&["a"]).commit(&store).await;
    let state = store.state(&feed).await.unwrap().unwrap();
    let records = store.inner.opened().unwrap().records;
    let purge_mark = PurgeMark::under(&state, 0, None);
    records.engine().apply(purge::forget(&records, &feed, Some(&purge_mark)).unwrap()).unwrap();
    drop(records);
    store.close().await.unwrap();

    let store = open(folder.path()).unwrap();
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

/// The updates of a mark that is made of less would be too few for good, and subscribers would ignore the items of a
/// feed that takes the name again.
#[tokio::test]
async fn a_purge_waits_for_what_its_mark_is_made_of_unless_that_is_damaged() {
    let feed = make::feed("news");
    let updated_twice = async || {
        let store = ScriptedStore::new("gate.example", clock());
        for (at, text) in [(1, "one"), (2, "two")] {
            edit(&store, at).await.item("a", text).order(&["a"]).commit(&store).await;
        }
        store
    };
    for (class, key, of_damaged) in [
        (Class::Gateway, IDENTITY_KEY.to_vec(), 2),
        (Class::Items, keys::item(&feed, &make::id("a")), 0),
        (Class::Stubs, keys::numbered(&feed, 1), 2),
    ] {
        let (store, damaged) = (updated_twice().await, updated_twice().await);
        store.put_feed(&make::record("news")).await.unwrap();
        let before = store.view(&feed, Select::All).await.unwrap().unwrap();
        store.fault(StoreFault::ReadOf(class.name()));
        let said = store.purge_feed(&feed).await.unwrap_err();
        assert!(matches!(said, StoreError::Io { .. }), "{class:?}: {said:?}");
        assert_eq!(store.view(&feed, Select::All).await.unwrap().unwrap(), before, "{class:?}");
        assert_eq!(store.feeds().await.unwrap(), [make::record("news")], "{class:?}");
        assert_eq!(store.purged_updates(&feed).await.unwrap(), 0, "{class:?}");
        // It answers again, or what it has is damaged.
        let records = damaged.inner.opened().unwrap().records;
        records.engine().apply(Writes::from([((class, key), Some(vec![9]))])).unwrap();
        for (store, updates) in [(store, 2), (damaged, of_damaged)] {
            store.purge_feed(&feed).await.unwrap();
            assert!(store.state(&feed).await.unwrap().is_none());
            assert_eq!(store.purged_updates(&feed).await.unwrap(), updates, "{class:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_what_others_hold() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()).unwrap());
    let [shut, other] = ["shut", "open"].map(make::feed);
    for feed in [&shut, &other] {
        let draft = Draft::on(&store, feed.as_str(), 1).await.item("a", "A").item("b", "B");
        draft.order(&["a", "b"]).commit(&store).await;
    }
    // Readers of a feed that is shut leave permits for others.
    let lock = store.inner.shared.locks.lock(&shut).await;
    let reading = || {
        let (store, shut) = (Arc::clone(&store), shut.clone());
        tokio::spawn(async move { store.view(&shut, Select::All).await.unwrap().unwrap() })
    };
    let waiting: Vec<_> = (0..3 * READS).map(|_| reading()).collect();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(waiting.iter().all(|task| !task.is_finished()));
    let view = at_once(store.view(&other, Select::All)).await.unwrap().unwrap();
    assert_eq!(view.items.len(), 2);
    drop(lock);
    for task in waiting {
        assert_eq!(task.await.unwrap().items.len(), 2);
    }
    // A taker of an export that stands still keeps nobody from a change.
    let (to, mut taken) = mpsc::channel(1);
    let exported = Arc::clone(&store);
    let exporting = tokio::spawn(async move { exported.export(to).await });
    while taken.recv().await.unwrap().feed().is_none() {}
    let change = Draft::on(&store, "open", 2).await.item("a", "A").done();
    at_once(store.commit(change)).await.unwrap();
    while taken.recv().await.is_some() {}
    exporting.await.unwrap().unwrap();
    // As many read as may, and hang: what is in memory is answered, and the plan of a change waits for its permit to
    // read while readers of its feed do not wait for the plan.
    let permits = store.inner.acquire_all_read_permits().await.unwrap();
    store.put_feed(&make::record("news")).await.unwrap();
    assert_eq!(at_once(store.feed_list()).await.unwrap().len(), 1);
    let (writing, state) = (Arc::clone(&store), store.state(&other).await.unwrap());
    let change = Draft::over("open", state, Default::default(), 3).item("c", "C").done();
    let commit = tokio::spawn(async move { writing.commit(change).await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(at_once(store.inner.shared.locks.lock_to_read(&other)).await);
    drop(permits);
    commit.await.unwrap().unwrap();
}

#[tokio::test]
async fn readers_of_a_purged_feed_do_not_wait_for_its_sweep() {
    let store = ScriptedStore::new("gate.example", clock());
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
    let store = open(folder.path()).unwrap().with_space(Arc::new(space));
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
    let store = Arc::new(open(folder.path()).unwrap());
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
    let store = open(folder.path()).unwrap();
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
    let mut writes = Writes::new();
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
