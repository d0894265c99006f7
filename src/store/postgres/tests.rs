//! Several gateways over one database, and what can go wrong with a database that is reached by the network. The tests
//! need one (`tests/scripts/postgres.sh`); without it they say that they did not run.

use super::{Database, PostgresRequest, release_database};
use crate::conformance::carry::{import, pieces};
use crate::conformance::make::{Draft, feed, poll_state, record, time};
use crate::testing::{TestSchema, eventually, sql};
use crate::{ClosedEpoch, CommitError, Committed, Epoch, Gateways, Select, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{Change, EndpointId, FeedRecord, FeedStanding};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

fn open(schema: &TestSchema) -> Arc<Store> {
    open_at(&schema.url)
}

fn open_at(url: &str) -> Arc<Store> {
    let endpoint = EndpointId::own("gate.example").unwrap();
    let clock = Arc::new(ManualClock::at(time(0)));
    let request = PostgresRequest::new(url, Some(endpoint));
    Arc::new(Store::open_on_postgres(request, clock).unwrap())
}

async fn change(store: &Store, name: &str, text: &str) -> Change {
    let revision = store.state(&feed(name)).await.unwrap().map_or(0, |state| state.revision.0);
    let seconds = i64::try_from(revision).unwrap() + 1;
    Draft::on(store, name, seconds).await.item("a", text).order(&["a"]).done()
}

async fn commit(store: &Store, name: &str, text: &str) -> Committed {
    store.commit(change(store, name, text).await).await.unwrap()
}

async fn log(store: &Store) -> Vec<ClosedEpoch> {
    store.epochs_after(Epoch(0), usize::MAX).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_gateway_stores_is_shown_by_all() {
    let Some(schema) = TestSchema::new() else { return };
    let (one, two) = (open(&schema), open(&schema));
    one.put_feed(&record("news")).await.unwrap();
    let begun = tokio::time::Instant::now();
    commit(&one, "news", "one").await;
    // By itself, within the time that it takes to look.
    let mut epochs = two.watch_epochs();
    let shown = epochs.wait_for(|epoch| *epoch == Epoch(1));
    timeout(Duration::from_millis(300), shown).await.expect("it is not shown elsewhere").unwrap();
    assert_eq!(two.state(&feed("news")).await.unwrap(), one.state(&feed("news")).await.unwrap());
    assert!(two.listed().unwrap().contains_key(&feed("news")));
    assert!(two.answers_from_memory());
    // It is told once every gateway shows it.
    let mut announced = one.watch_announced();
    let told = announced.wait_for(|epoch| *epoch == Epoch(1));
    timeout(Duration::from_secs(5), told).await.expect("it is never told").unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300));

    let of_one = change(&one, "news", "by one").await;
    commit(&two, "news", "by two").await;
    let refused = one.commit(of_one).await;
    assert!(matches!(refused, Err(CommitError::Conflict(_))), "{refused:?}");
    let view = one.view(&feed("news"), Select::All).await.unwrap().unwrap();
    assert_eq!(view.items[0].shared.winner.data.xml, "<entry>by two</entry>");
    assert_eq!((log(&one).await, log(&one).await.len()), (log(&two).await, 2));

    two.purge_feed(&feed("news")).await.unwrap();
    one.catch_up().await.unwrap();
    assert!(one.state(&feed("news")).await.unwrap().is_none());
    assert!(one.listed().unwrap().is_empty());
}

/// One lineage, whoever makes a change: tags that one gateway gave out are good at the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_joins_opens_the_store_as_the_others_did() {
    let Some(schema) = TestSchema::new() else { return };
    let one = open(&schema);
    let first = one.gateways().unwrap();
    first.set_polls(true);
    let polling = |gateways: &Gateways| gateways.live().iter().filter(|it| it.polls).count();
    eventually("it does not say that it polls", || polling(&first) == 1).await;
    // One of those that poll says how old the change log is.
    let notes = async |store: &Store, seconds| {
        store.note_running_time(time(seconds)).await.unwrap();
        store.running_time().await.unwrap() == Some(time(seconds))
    };
    assert!(notes(&one, 1).await);
    let two = open(&schema);
    assert_eq!(one.lineage(), two.lineage());
    let second = two.gateways().unwrap();
    assert_eq!(second.live().len(), 2);
    second.set_polls(true);
    let are_both = || polling(&first) == 2 && polling(&second) == 2;
    eventually("they do not see each other", are_both).await;
    assert!(first.owns("a.example") != second.owns("a.example"));
    assert!(first.may_poll() && second.may_poll());
    assert!(notes(&one, 2).await != notes(&two, 3).await);
    two.close().await.unwrap();
    drop((two, second));
    eventually("who left is not forgotten", || first.live().len() == 1).await;
    assert!(first.owns("a.example"));
    let before = one.lineage();
    one.close().await.unwrap();
    // Nobody lives: the database may be another's copy.
    assert_ne!(open(&schema).lineage(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_gateway_takes_back_what_another_changed_of_a_feed() {
    let Some(schema) = TestSchema::new() else { return };
    let (one, two) = (open(&schema), open(&schema));
    one.put_feed(&record("news")).await.unwrap();
    two.catch_up().await.unwrap();
    let seen = two.feed_list().await.unwrap();
    let paused = FeedRecord { standing: FeedStanding::Paused, ..record("news") };
    let of_one = one.feed_list().await.unwrap();
    one.put_feeds(std::slice::from_ref(&paused), &of_one).await.unwrap();
    let titled = FeedRecord { private: true, ..record("news") };
    let refused = two.put_feeds(&[record("other"), titled.clone()], &seen).await;
    assert!(matches!(refused, Err(StoreError::FeedChanged { .. })), "{refused:?}");
    let refused = two.put_feeds(&[record("news")], &Arc::default()).await;
    assert!(matches!(refused, Err(StoreError::FeedChanged { .. })), "{refused:?}");
    two.catch_up().await.unwrap();
    let seen = two.feed_list().await.unwrap();
    assert_eq!((seen.len(), &*seen[&feed("news")]), (1, &paused));
    two.put_feeds(std::slice::from_ref(&titled), &seen).await.unwrap();
    one.catch_up().await.unwrap();
    assert_eq!(*one.feed_list().await.unwrap()[&feed("news")], titled);
}

/// Nothing of the next commit is lost on the way.
const NOTHING: u8 = 0;
/// The database is not asked for the next commit, and hears some time later that nobody is there.
const REQUEST: u8 = 1;
/// The answer to the next commit is lost.
const ANSWER: u8 = 2;

/// An address that leads to the same database, and what is lost on the way.
async fn lossy(url: &str) -> (String, Arc<AtomicU8>) {
    let place = url.split_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let through = url.replace(&place, &listener.local_addr().unwrap().to_string());
    let loses = Arc::new(AtomicU8::new(NOTHING));
    let told = Arc::clone(&loses);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (place, told) = (place.clone(), Arc::clone(&told));
            tokio::spawn(async move {
                let (mut from, mut back) = client.into_split();
                let (mut answers, mut to) = TcpStream::connect(&place).await.unwrap().into_split();
                let answering =
                    tokio::spawn(async move { tokio::io::copy(&mut answers, &mut back).await });
                let mut bytes = vec![0; 1 << 20];
                while let Ok(count @ 1..) = from.read(&mut bytes).await {
                    let sent = &bytes[..count];
                    // Not what numbers notes, which ends alike.
                    let is_commit = sent.ends_with(b"Q\0\0\0\x0bCOMMIT\0");
                    let lost =
                        if is_commit { told.swap(NOTHING, Ordering::AcqRel) } else { NOTHING };
                    if lost == ANSWER {
                        answering.abort();
                    }
                    if lost != REQUEST {
                        to.write_all(sent).await.unwrap();
                    }
                    if lost != NOTHING {
                        sleep(Duration::from_millis(1500)).await;
                        return;
                    }
                }
            });
        }
    });
    (through, loses)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_commit_and_a_lost_answer_are_told_apart() {
    let Some(schema) = TestSchema::new() else { return };
    let (through, loses) = lossy(&schema.url).await;
    let (store, other) = (open_at(&through), open(&schema));
    commit(&store, "news", "one").await;
    loses.store(ANSWER, Ordering::Release);
    let committed = commit(&store, "news", "two").await;
    let state = store.state(&feed("news")).await.unwrap().unwrap();
    assert_eq!((state.revision, state.revision.0), (committed.revision, 2), "it is shown at once");
    loses.store(REQUEST, Ordering::Release);
    let lost = store.commit(change(&store, "news", "three").await).await;
    assert!(matches!(&lost, Err(CommitError::Store(error)) if error.is_passing()), "{lost:?}");
    assert_eq!(store.state(&feed("news")).await.unwrap().unwrap(), state);
    // Another gateway makes the same state of another change, as soon as this one is gone.
    loses.store(REQUEST, Ordering::Release);
    let of_other = change(&other, "news", "theirs").await;
    let own = change(&store, "news", "own").await;
    let begun = Arc::clone(&store);
    let own = tokio::spawn(async move { begun.commit(own).await });
    while loses.load(Ordering::Acquire) == REQUEST {
        sleep(Duration::from_millis(5)).await;
    }
    other.commit(of_other).await.unwrap();
    let own = own.await.unwrap();
    assert!(matches!(own, Err(CommitError::Ambiguous(_))), "{own:?}");
    store.catch_up().await.unwrap();
    let view = store.view(&feed("news"), Select::All).await.unwrap().unwrap();
    assert_eq!(view.items[0].shared.winner.data.xml, "<entry>theirs</entry>");
    assert_eq!(log(&store).await.len(), 3);
}

/// The last one that lets go of a database may be one of its own threads: it leaves all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_let_go_of_on_its_own_threads() {
    let Some(schema) = TestSchema::new() else { return };
    let database = Database::open(&schema.url).unwrap();
    let gateways = "SELECT 1 FROM tidegate_gateway";
    assert_eq!(sql(&schema.url, gateways), 1);
    let last = Arc::clone(&database);
    database.spawn(async move {
        sleep(Duration::from_millis(100)).await;
        release_database(last);
    });
    drop(database);
    eventually("it stays", || sql(&schema.url, gateways) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_writes_elsewhere_holds_no_epoch_back() {
    let (Some(schema), Some(other)) = (TestSchema::new(), TestSchema::new()) else { return };
    let store = open(&schema);
    let url = other.url.clone();
    let long = std::thread::spawn(move || {
        sql(&url, "CREATE TABLE other (one int); INSERT INTO other VALUES (1); SELECT pg_sleep(2)")
    });
    sleep(Duration::from_millis(300)).await;
    let change = change(&store, "news", "one").await;
    timeout(Duration::from_secs(1), store.commit(change)).await.expect("it waits").unwrap();
    assert_eq!(log(&store).await.len(), 1);
    long.join().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_read_the_tables() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema);
    let with_password =
        FeedRecord { url: "https://me:secret@news.example/feed".to_owned(), ..record("news") };
    store.put_feed(&with_password).await.unwrap();
    commit(&store, "news", "one").await;
    store.checkpoint(&[poll_state("news")]).await.unwrap();
    for (count, rows) in [
        (1, "tidegate_feed WHERE feed = 'news' AND url LIKE 'https://news.example%'"),
        (0, "tidegate_entry WHERE shown::text LIKE '%secret%'"),
        (1, "tidegate_state WHERE feed = 'news' AND revision = 1 AND until IS NOT NULL"),
        (1, "tidegate_poll WHERE feed = 'news' AND failures IS NOT NULL"),
        (1, "tidegate_poll p JOIN tidegate_gateway g ON g.id = p.gateway WHERE p.feed = 'news'"),
        (1, "tidegate_log WHERE epoch = 1 AND feed = 'news' AND closed_at IS NOT NULL"),
        (1, "tidegate_gateway WHERE beat_at > now() - interval '10 s'"),
        (0, "tidegate_subscription"),
    ] {
        assert_eq!(sql(&schema.url, &format!("SELECT 1 FROM {rows}")), count, "{rows}");
    }
    // What comes from another store they read as well.
    let Some(other) = TestSchema::new() else { return };
    import(&open(&other), pieces(&store).await).await.unwrap();
    assert_eq!(sql(&other.url, "SELECT 1 FROM tidegate_log WHERE feed = 'news'"), 1);
}

/// A database that is away for longer than readers may be left with what they had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_went_back_is_not_followed() {
    let lost = "UPDATE tidegate_entry SET value = kept.value FROM kept WHERE tidegate_entry.key = kept.key AND class = 7";
    let noted = "INSERT INTO tidegate_change (at, key) SELECT 0, key FROM kept";
    for went_back in ["UPDATE tidegate_counter SET position = 0", &format!("{lost}; {noted}")] {
        let Some(schema) = TestSchema::new() else { return };
        let store = open(&schema);
        commit(&store, "news", "one").await;
        schema.sql("CREATE TABLE kept AS SELECT key, value FROM tidegate_entry WHERE class = 7");
        commit(&store, "news", "two").await;
        schema.sql(went_back);
        eventually("it goes on", || store.condition().stop.is_some()).await;
        let asked = tokio::time::Instant::now();
        let said = store.catch_up().await.unwrap_err();
        assert!(asked.elapsed() < Duration::from_secs(2), "it is waited for");
        assert!(said.to_string().contains("restart every gateway"), "{said}");
    }
}

/// A first fill: nobody waits for autovacuum, whose plans of few entries are good for no other table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statistics_are_gathered_as_the_entries_grow() {
    let Some(schema) = TestSchema::new() else { return };
    let _store = open(&schema);
    let filling = "INSERT INTO tidegate_entry SELECT 1, int4send(n), repeat('x', 500)::bytea FROM generate_series(1, 2000) n";
    schema.sql(&format!("ALTER TABLE tidegate_entry SET (autovacuum_enabled = off); {filling}"));
    let known =
        "SELECT 1 FROM pg_class WHERE oid = 'tidegate_entry'::regclass AND reltuples > 1000";
    eventually("nobody gathers them", || sql(&schema.url, known) > 0).await;
}

/// A database that was restored from a copy, and a gateway that starts while it is made a new incarnation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_to_a_new_incarnation() {
    let Some(schema) = TestSchema::new() else { return };
    let (one, two) = (open(&schema), open(&schema));
    let names: Vec<String> = (0..20).map(|number| format!("feed-{number:02}")).collect();
    for name in &names {
        commit(&two, name, "one").await;
    }
    one.catch_up().await.unwrap();
    let changing = async {
        let mut stored = BTreeSet::new();
        for name in &names {
            let draft = Draft::on(&two, name, 50).await.item("a", "two").order(&["a"]);
            match two.commit(draft.done()).await {
                Ok(_) => drop(stored.insert(name)),
                Err(error) => assert!(matches!(error, CommitError::Conflict(_)), "{error:?}"),
            }
        }
        stored
    };
    let (restarted, stored) = tokio::join!(one.reincarnate(), changing);
    assert_eq!(restarted.unwrap(), names.len());
    two.catch_up().await.unwrap();
    for name in &names {
        let view = two.view(&feed(name), Select::All).await.unwrap().unwrap();
        let is_stored = stored.contains(name);
        let text = if is_stored { "<entry>two</entry>" } else { "<entry>one</entry>" };
        assert_eq!(view.items[0].shared.winner.data.xml, text, "{name}");
        assert_eq!(view.state.revision.0, 1 + u64::from(is_stored), "{name}");
    }
}
