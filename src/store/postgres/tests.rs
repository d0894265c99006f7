//! What can go wrong with a database that is reached by the network. The tests need one
//! (`tests/scripts/postgres.sh`); without it they say that they did not run.

mod cutter;
mod follow;
mod polls;
mod ranges;
mod trouble;
mod unpolled;

use self::cutter::Cutter;
use super::{PostgresRequest, open_with_lease};
use crate::disk::faults::{change, claim, news, refused};
use crate::testing::{TestSchema, sql};
use crate::{CommitError, EmbeddedStore, Store, StoreError};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{EndpointId, Revision, Time};
use tokio::time::{Instant, sleep};
use tokio_postgres::config::Host;

/// A lease that runs out while a test waits.
const SHORT_LEASE: Duration = Duration::from_secs(3);
/// A node that this process is not.
const OTHER_NODE: &str = "INSERT INTO tidegate_node (node, name, beat_at) VALUES (7, 'process 7 elsewhere', \
    (extract(epoch FROM clock_timestamp()) * 1000)::bigint + AHEAD); \
    UPDATE tidegate_shard SET owner = 7, fence = fence + 1";

fn open(schema: &TestSchema) -> Result<EmbeddedStore, StoreError> {
    open_at(&schema.url)
}

fn open_at(url: &str) -> Result<EmbeddedStore, StoreError> {
    open_for(url, SHORT_LEASE)
}

fn open_for(url: &str, lease: Duration) -> Result<EmbeddedStore, StoreError> {
    let endpoint = EndpointId::own("gate.example").unwrap();
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    open_with_lease(PostgresRequest::new(url, Some(endpoint)), lease, clock)
}

async fn commit(store: &EmbeddedStore, text: &str) -> Result<Revision, CommitError> {
    let change = change(store, text).await;
    store.commit(&claim(store).await, change).await.map(|committed| committed.revision)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_gateway_is_refused_while_the_first_lives() {
    let Some(schema) = TestSchema::new() else { return };
    let first = open(&schema).unwrap();
    commit(&first, "one").await.unwrap();
    let error = refused(open(&schema));
    assert!(matches!(error, StoreError::Leased { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
    // The first has not noticed.
    commit(&first, "two").await.unwrap();
    first.close().await.unwrap();
    let began = Instant::now();
    let second = open(&schema).unwrap();
    assert!(began.elapsed() < SHORT_LEASE, "what was given back is waited for");
    assert_eq!(second.state(&news()).await.unwrap().unwrap().revision, Revision(2));
    second.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_ended_without_a_word_is_waited_for_and_then_replaced() {
    let Some(schema) = TestSchema::new() else { return };
    let first = open(&schema).unwrap();
    commit(&first, "one").await.unwrap();
    first.close().await.unwrap();
    schema.sql(&OTHER_NODE.replace("AHEAD", "0"));
    let began = Instant::now();
    let second = open(&schema).unwrap();
    assert!(began.elapsed() > SHORT_LEASE.mul_f64(0.8), "{:?}", began.elapsed());
    commit(&second, "two").await.unwrap();
    second.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_wait_for_one_that_ended_one_takes_over() {
    let Some(schema) = TestSchema::new() else { return };
    open(&schema).unwrap().close().await.unwrap();
    // Its clock was ahead: only that it says nothing tells that it ended.
    schema.sql(&OTHER_NODE.replace("AHEAD", "600000"));
    let opening = |url: String| tokio::task::spawn_blocking(move || open_at(&url));
    let (one, other) = tokio::join!(opening(schema.url.clone()), opening(schema.url.clone()));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1);
    let (kept, error) = match (one, other) {
        (Ok(store), Err(error)) | (Err(error), Ok(store)) => (store, error),
        _ => unreachable!(),
    };
    assert!(matches!(error, StoreError::Leased { .. }), "{error}");
    commit(&kept, "one").await.unwrap();
    kept.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_whose_shard_was_taken_writes_nothing_more() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema).unwrap();
    commit(&store, "one").await.unwrap();
    // Another one, that says that it lives for a minute to come.
    schema.sql(&OTHER_NODE.replace("AHEAD", "60000"));
    let said = commit(&store, "two").await.unwrap_err();
    assert!(matches!(said, CommitError::Ambiguous(_)), "{said:?}");
    let stop = store.condition().stop.unwrap();
    assert!(stop.cause.contains("another gateway has taken it over"), "{}", stop.cause);
    // It stays stopped while the other one lives, and when that has ended: what is known beside it, such as who
    // subscribes, is read anew by who takes the database then.
    let failed_tries = || store.condition().stop.unwrap().failed_tries;
    for is_gone in [false, true] {
        let (before, began) = (failed_tries(), Instant::now());
        while failed_tries() == before {
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", store.condition().stop);
            sleep(Duration::from_millis(100)).await;
        }
        let owner = store.condition().owner.unwrap();
        assert_eq!((owner.name.as_str(), owner.is_gone), ("process 7 elsewhere", is_gone));
        assert!(!store.answers_from_memory());
        schema.sql(
            "UPDATE tidegate_shard SET owner = NULL; DELETE FROM tidegate_node WHERE node = 7",
        );
    }
    drop(store.close().await);
    let next = open(&schema).unwrap();
    assert_eq!(next.state(&news()).await.unwrap().unwrap().revision, Revision(1));
    assert_eq!(commit(&next, "three").await.unwrap(), Revision(2));
    next.close().await.unwrap();
}

/// Nobody wrote meanwhile: what is known beside the store is as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_opened_again_takes_its_own_shard() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema).unwrap();
    commit(&store, "one").await.unwrap();
    for (meanwhile, revision) in [
        ("SELECT 1", 2),
        // Others took it for dead, but its shard was left.
        ("DELETE FROM tidegate_node", 3),
        // It has taken its shard already, and the answer was lost.
        ("UPDATE tidegate_shard SET fence = fence + 1 WHERE shard = 0", 4),
    ] {
        schema.sql("ALTER TABLE tidegate_recent RENAME TO away");
        assert!(commit(&store, "lost").await.is_err());
        assert!(store.condition().stop.is_some());
        schema.sql(&format!("{meanwhile}; ALTER TABLE away RENAME TO tidegate_recent"));
        let began = Instant::now();
        while store.condition().stop.is_some() {
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", store.condition().stop);
            sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(commit(&store, "again").await.unwrap(), Revision(revision));
    }
    store.close().await.unwrap();
}

/// Sets a flag when it is dropped.
struct SetAtEnd(Arc<AtomicBool>);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Connections are cut at chance moments, also between a commit and its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_go_on_while_connections_are_cut() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema).unwrap();
    let schema = Arc::new(schema);
    let (is_over, cuts) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let (over, counted, cutting) = (Arc::clone(&is_over), Arc::clone(&cuts), Arc::clone(&schema));
    let cutter = tokio::task::spawn_blocking(move || {
        while !over.load(Ordering::Acquire) {
            cutting.cut_connections();
            counted.fetch_add(1, Ordering::AcqRel);
            // Long enough that one attempt in a row of them gets through.
            std::thread::sleep(Duration::from_millis(130));
        }
    });
    // Also where a commit fails.
    let ends = SetAtEnd(Arc::clone(&is_over));
    let mut last = 0;
    while cuts.load(Ordering::Acquire) < 8 {
        last += 1;
        let committed = commit(&store, &last.to_string()).await;
        // No store stopped, and none had to be opened again.
        assert_eq!(committed.unwrap(), Revision(last));
    }
    drop(ends);
    cutter.await.unwrap();
    store.close().await.unwrap();
    let again = open(&schema).unwrap();
    assert_eq!(again.state(&news()).await.unwrap().unwrap().revision, Revision(last));
    let epochs = again.epochs_after(crate::Epoch(0), usize::MAX).await.unwrap();
    assert_eq!(u64::try_from(epochs.len()).unwrap(), last);
    again.close().await.unwrap();
}

/// A commit that went out and was not answered is made once, whether it arrived or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_settled() {
    let Some(schema) = TestSchema::new() else { return };
    let config: tokio_postgres::Config = schema.url.parse().unwrap();
    let [Host::Tcp(host)] = config.get_hosts() else { panic!("the tests need one host, by TCP") };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = (host.as_str(), port).to_socket_addrs().unwrap().next().unwrap();
    let cutter = Cutter::new(database, 3);
    let url = schema.url.replace(&format!("{host}:{port}"), &cutter.address.to_string());
    assert_ne!(url, schema.url, "the address has no host and port");
    let store = open_at(&url).unwrap();
    for number in 1..=30 {
        assert_eq!(commit(&store, &number.to_string()).await.unwrap(), Revision(number));
        assert!(store.condition().stop.is_none());
    }
    assert!(cutter.cuts() >= 10, "{}", cutter.cuts());
    let epochs = store.epochs_after(crate::Epoch(0), 100).await.unwrap();
    let revisions: Vec<u64> =
        epochs.iter().flat_map(|epoch| &epoch.changes).map(|change| change.revision.0).collect();
    assert_eq!(revisions, (1..=30).collect::<Vec<_>>());
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_a_restarted_database_lost_stop_the_store() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema).unwrap();
    commit(&store, "one").await.unwrap();
    // As a standby that had not got the last writes yet.
    schema.sql("UPDATE tidegate_shard SET log_seq = log_seq - 1");
    assert!(commit(&store, "two").await.is_err());
    let stop = store.condition().stop.unwrap();
    assert!(stop.cause.contains("are gone"), "{}", stop.cause);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_another_program_are_left_alone() {
    let Some(schema) = TestSchema::new() else { return };
    open(&schema).unwrap().close().await.unwrap();
    schema.sql("INSERT INTO tidegate_schema (version) VALUES (4711)");
    let error = refused(open(&schema));
    assert!(matches!(error, StoreError::Format { found: 4711, known: 1, .. }), "{error}");
}

/// That of a database which has a standby is shown by `.ci/long patroni`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_a_standby_is_told_from_one_with() {
    let Some(schema) = TestSchema::new() else { return };
    let none = PostgresRequest::new(&schema.url, None).check_standby().await.unwrap_err();
    assert!(matches!(none, StoreError::NoStandby { .. }), "{none}");
    assert!(none.to_string().contains("store.require_standby = false"), "{none}");
}
