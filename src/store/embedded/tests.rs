mod far;
mod groups;
mod purge_marks;

use super::read_turns::READS;
use super::*;
use crate::conformance::make::{self, Draft};
use crate::engine::Class;
use crate::purge_mark::PurgeMark;
use crate::{CommitError, Select, Store};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{Context, Time};

fn open(folder: &std::path::Path) -> EmbeddedStore {
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    EmbeddedStore::on_disk(folder, EndpointId::own("gate.example").ok(), clock).unwrap()
}

#[tokio::test]
async fn a_purge_that_was_cut_off_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let feed = make::feed("news");
    let claim = store.claim().await.unwrap();
    let change = Draft::on(&store, "news", 1).await.item("a", "A").order(&["a"]).done();
    store.commit(&claim, change).await.unwrap();
    let state = store.state(&feed).await.unwrap().unwrap();
    let records = store.inner.opened().unwrap().records;
    let floor = PurgeMark::under(&state, 0, None);
    records.engine().apply(purge::forget(&records, &feed, Some(&floor)).unwrap()).unwrap();
    drop(records);
    store.close().await.unwrap();

    let store = open(folder.path());
    assert!(store.state(&feed).await.unwrap().is_none());
    let records = store.inner.opened().unwrap().records;
    for class in [Class::Ledger, Class::Heads, Class::Bodies, Class::Versions] {
        assert_eq!(records.entries(class, &[]).count(), 0, "in {}", class.name());
    }
    assert!(records.contains(Class::Floors, &keys::feed(&feed)).unwrap());
}

/// The time of the request itself is not all that the database was silent for.
#[tokio::test(start_paused = true)]
async fn who_is_refused_is_told_how_long_the_database_has_been_silent() {
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let (store, lease) = EmbeddedStore::in_memory_with_lease(clock);
    assert!(store.catch_up().await.is_ok());
    lease.cut_off();
    let Err(StoreError::Unseen { seconds }) = store.catch_up().await else { panic!("it is seen") };
    let unanswered = store.condition().unanswered.unwrap().as_secs();
    assert!(seconds > 5 && seconds + 5 >= unanswered, "{seconds}, {unanswered}");
    lease.hold();
    assert!(store.catch_up().await.is_ok());
}

/// Who only reads is told what to do, and not that nothing is changed here.
#[tokio::test(start_paused = true)]
async fn who_reads_from_a_gateway_that_lost_its_database_is_to_ask_again() {
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let (store, lease) = EmbeddedStore::in_memory_with_lease(clock);
    lease.lose();
    let error = store.catch_up().await.unwrap_err();
    assert!(matches!(error, StoreError::Overtaken { .. }) && error.is_passing(), "{error}");
    let said = error.to_string();
    assert!(said.contains("process 7 elsewhere") && said.contains("ask again"), "{said}");
}

/// Once a change was acknowledged, nobody takes the state before it for the feed's state.
#[tokio::test]
async fn a_state_that_is_watched_is_outdated_by_whatever_comes_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let (feed, other) = (make::feed("news"), make::feed("other"));
    assert!(store.watch_state(&feed).is_none());
    let claim = store.claim().await.unwrap();
    for name in ["news", "other"] {
        let change = Draft::on(&store, name, 1).await.item("a", "A").order(&["a"]).done();
        store.commit(&claim, change).await.unwrap();
    }
    let of_other = store.watch_state(&other).unwrap();
    let first = store.watch_state(&feed).unwrap();
    assert_eq!(first.revision(), store.state(&feed).await.unwrap().unwrap().revision);
    assert!(first.is_current());
    let change = Draft::on(&store, "news", 3).await.item("a", "B").order(&["a"]).done();
    store.commit(&claim, change).await.unwrap();
    let second = store.watch_state(&feed).unwrap();
    assert!(!first.is_current() && second.is_current());
    assert!(second.revision() > first.revision());
    store.purge_feed(&feed).await.unwrap();
    assert!(!second.is_current() && store.watch_state(&feed).is_none());
    assert!(of_other.is_current());
}

/// A change that cannot be written whole is undone, also what of it was written; and what a reader needed
/// goes when he is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_for_readers_and_for_undoing_goes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let feed = make::feed("news");
    let claim = store.claim().await.unwrap();
    let names: Vec<String> = (0..30).map(|item| format!("item-{item:02}")).collect();
    let draft = async |at, text: &str| {
        let draft = Draft::on(&store, "news", at).await;
        names.iter().fold(draft, |draft, name| draft.item(name, text))
    };
    let kept = || {
        let records = store.inner.opened().unwrap().records;
        let all = || crate::engine::beginning_with(&[]);
        [Class::Undo, Class::Unfinished].map(|class| records.stored(class, all()).count())
    };
    store.commit(&claim, draft(1, "one").await.done()).await.unwrap();
    let reader = store.pin(&feed).await.unwrap().unwrap();
    let before = Arc::clone(&reader).view(Select::All).await.unwrap();

    // An item of too many bytes for one value is found out after the first portions.
    let mut change = draft(3, "two").await.done();
    let last = change.versions.len() - 1;
    let context = Context { base: Some("x".repeat(40 << 20)), ..Context::default() };
    change.versions[last].markup.as_mut().unwrap().context = context;
    let said = store.commit(&claim, change).await.unwrap_err();
    assert!(matches!(said, CommitError::Store(StoreError::TooLarge { .. })), "{said:?}");
    assert_eq!(kept()[1], 0, "a change was not undone");
    assert_eq!(store.view(&feed, Select::All).await.unwrap(), before);

    store.commit(&claim, draft(5, "three").await.done()).await.unwrap();
    assert!(kept()[0] > 30, "what the reader needs is gone");
    assert_eq!(Arc::clone(&reader).view(Select::All).await.unwrap(), before);
    drop(reader);
    for at in [7, 9] {
        let change = Draft::on(&store, "news", at).await.item("item-01", "four").done();
        store.commit(&claim, change).await.unwrap();
    }
    let left = async {
        while kept()[0] > 0 {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.unwrap();
}

/// Whoever waits for a feed that is changed in place keeps nobody from reading others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_feed_that_is_shut_leave_room_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let claim = store.claim().await.unwrap();
    for feed in ["shut", "open"] {
        let change = Draft::on(&*store, feed, 1).await.item("a", "A").order(&["a"]).done();
        store.commit(&claim, change).await.unwrap();
    }
    let pins = store.inner.shared.published(&make::feed("shut")).unwrap().pins;
    assert!(pins.try_shut());
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
    let other = tokio::time::timeout(Duration::from_secs(20), store.view(&name, Select::All));
    assert_eq!(other.await.expect("others wait").unwrap().unwrap().items.len(), 1);
    pins.open();
    for task in waiting {
        assert_eq!(task.await.unwrap().items.len(), 1);
    }
}

/// Those that read may hang: what is in memory is answered all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_of_feeds_is_answered_while_as_many_read_as_may() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store.put_feed(&make::record("news")).await.unwrap();
    assert_eq!(store.feed_list().await.unwrap().len(), 1);
    let reading = store.inner.reads.all().await.unwrap();
    store.put_feed(&make::record("other")).await.unwrap();
    let listed = tokio::time::timeout(Duration::from_secs(5), store.feed_list()).await;
    assert_eq!(listed.expect("it waits for those that read").unwrap().len(), 2);
    drop(reading);
    store.close().await.unwrap();
}

/// The change may hang in the database.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_feed_that_is_changed_gives_up_once_the_database_is_silent() {
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let (store, lease) = EmbeddedStore::in_memory_with_lease(clock);
    let claim = store.claim().await.unwrap();
    let change = Draft::on(&store, "news", 1).await.item("a", "A").order(&["a"]).done();
    store.commit(&claim, change).await.unwrap();
    let feed = make::feed("news");
    let pins = store.inner.shared.published(&feed).unwrap().pins;
    assert!(pins.try_shut());
    lease.fall_silent();
    let view = tokio::time::timeout(Duration::from_secs(60), store.view(&feed, Select::All)).await;
    assert!(matches!(view, Ok(Err(StoreError::Unseen { .. }))));
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
    let claim = store.claim().await.unwrap();
    let first = Draft::on(&store, "news", 1).await.item("a", "one").done();
    store.commit(&claim, first).await.unwrap();
    let before = store.view(&feed, Select::All).await.unwrap();
    let draft = Draft::on(&store, "news", 3).await;
    let large = (0..60).fold(draft, |draft, item| draft.item(&format!("item-{item:02}"), "two"));
    let said = store.commit(&claim, large.done()).await.unwrap_err();
    assert!(matches!(said, CommitError::Store(StoreError::LowSpace { .. })), "{said:?}");
    assert!(left.load(Ordering::SeqCst) < 256 << 20, "it broke off at once");
    assert_eq!(store.view(&feed, Select::All).await.unwrap(), before);
}

/// A store that is closed while a large change is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_can_be_closed_while_a_large_change_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let claim = store.claim().await.unwrap();
    let names: Vec<String> = (0..3000).map(|item| format!("item-{item:04}")).collect();
    let draft = Draft::on(&*store, "news", 1).await;
    let change = names.iter().fold(draft, |draft, name| draft.item(name, "one")).done();
    let (writing, held) = (Arc::clone(&store), claim.clone());
    // Whoever asked for it goes away: the change is carried on all the same.
    let commit = tokio::spawn(async move { writing.commit(&held, change).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!commit.is_finished(), "the change is too small for this test");
    commit.abort();
    store.close().await.unwrap();
}

/// Portions whose planner broke off (a panic, or a commit that was refused with another error than
/// `Fenced` and `Conflict`) while the store works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn portions_that_nobody_undid_do_not_come_out_with_the_next_change() {
    for is_pruned in [false, true] {
        portions_that_nobody_undid(is_pruned).await;
    }
}

async fn portions_that_nobody_undid(is_pruned: bool) {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let feed = make::feed("news");
    let claim = store.claim().await.unwrap();
    let first = Draft::on(&store, "news", 1).await.item("a", "one").item("b", "one").done();
    store.commit(&claim, first).await.unwrap();
    let second = Draft::on(&store, "news", 2).await.item("a", "one and a half").done();
    store.commit(&claim, second).await.unwrap();
    let before = store.view(&feed, Select::All).await.unwrap().unwrap();

    // The first portion of a change that goes no further: what is left of a thread that broke off.
    let tick = before.items[1].tick;
    let mut portion = crate::engine::Writes::new();
    let id = before.items[1].shared.winner.id.clone();
    portion.insert((Class::ByTick, keys::by_tick(&feed, tick, &id)), None);
    let (name, held) = (feed.clone(), claim.clone());
    store
        .inner
        .ask(request::Touches::Feed, move |committer, group| {
            committer.portion(&held, (&name, 2), portion, true, group)
        })
        .await
        .unwrap_or_else(|error: CommitError| panic!("{error:?}"));
    assert_eq!(store.view(&feed, Select::All).await.unwrap().unwrap().items.len(), 2);

    if is_pruned {
        let retention = crate::Retention { versions: 1, ..Default::default() };
        let now = Time::from_unix(1_795_191_700);
        assert_eq!(store.prune(&claim, &feed, &retention, now).await.unwrap().versions, 1);
        assert_eq!(store.view(&feed, Select::All).await.unwrap().unwrap().items.len(), 2);
    }
    let next = Draft::on(&store, "news", 3).await.item("a", "two").done();
    store.commit(&claim, next).await.unwrap();
    let after = store.view(&feed, Select::All).await.unwrap().unwrap();
    assert_eq!(after.items.len(), 2, "half of a change that was never committed is shown");
}

/// A publisher names other items after the sync id of one that left, which cannot come back.
#[test]
fn a_stub_is_found_by_its_sync_id_whatever_others_are_called() {
    use tidegate_core::model::{History, Stub, Tick};
    let feed = make::feed("news");
    let records = Records::of(Arc::new(MemoryEngine::default()));
    let at = |seconds: i64| Tick::at(Time::from_unix(1_795_191_605 + seconds));
    let stub = |name: &str, native: &str, tick| {
        let mut known = make::known(name, 1, tick);
        known.native_shown = native.to_owned();
        let history: History = known.history.clone();
        Stub::new(&known, history, tick.time())
    };
    let mut writes = crate::engine::Writes::new();
    for decoy in 0..64 {
        // Entries that share a guid: the publisher chose the sync id of another item for it.
        let decoy = stub(&format!("decoy-{decoy}"), "victim", at(decoy));
        stubs::put(&records, &feed, &decoy, &mut writes).unwrap();
    }
    stubs::put(&records, &feed, &stub("victim", "urn:victim", at(99)), &mut writes).unwrap();
    records.write(writes, 1, undo::Keep::Nothing).unwrap();
    let found = stubs::find(&records, &feed, &["victim".to_owned()]).unwrap();
    assert!(found.iter().any(|stub| stub.id.as_str() == "victim"), "of {} stubs", found.len());
}

#[tokio::test]
async fn a_tombstone_takes_nothing_in_whatever_stands_in_for_its_text() {
    use crate::condition::takes_in;
    use tidegate_core::model::ItemStatus;
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let store = EmbeddedStore::in_memory(EndpointId::own("gate.example").ok(), clock).unwrap();
    let mut change = Draft::on(&store, "news", 1).await.item("a", "A").item("b", "B").done();
    assert!(change.versions.iter().all(|version| version.markup.is_some()));
    let since = Time::from_unix(1_795_191_605);
    for left in [1, 0] {
        assert!(takes_in(&change), "an item lives");
        change.known[left].standing = ItemStatus::Deleted { since };
    }
    assert!(!takes_in(&change));
}
