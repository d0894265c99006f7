//! Several gateways over one database, and what can go wrong with a database that is reached by the network. The tests
//! need one (`tests/scripts/postgres.sh`); without it they say that they did not run.

use super::PostgresRequest;
use crate::conformance::make::{Draft, feed, poll_state, record, time};
use crate::testing::{TestSchema, sql};
use crate::{
    ClosedEpoch, CommitError, EmbeddedStore, Epoch, LoggedChange, Select, Store, StoreError,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{Change, EndpointId};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

fn open(schema: &TestSchema) -> Arc<EmbeddedStore> {
    let endpoint = EndpointId::own("gate.example").unwrap();
    let clock = Arc::new(ManualClock::at(time(0)));
    let request = PostgresRequest::new(&schema.url, Some(endpoint));
    Arc::new(EmbeddedStore::open_on_postgres(request, clock).unwrap())
}

async fn change(store: &EmbeddedStore, name: &str, text: &str) -> Change {
    let revision = store.state(&feed(name)).await.unwrap().map_or(0, |state| state.revision.0);
    let seconds = i64::try_from(revision).unwrap() + 1;
    Draft::on(store, name, seconds).await.item("a", text).order(&["a"]).done()
}

async fn log(store: &EmbeddedStore) -> Vec<ClosedEpoch> {
    store.epochs_after(Epoch(0), usize::MAX).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_gateway_stores_is_shown_by_all() {
    let Some(schema) = TestSchema::new() else { return };
    let (one, two) = (open(&schema), open(&schema));
    one.put_feed(&record("news")).await.unwrap();
    one.commit(change(&one, "news", "one").await).await.unwrap();
    // By itself, within the time that it takes to look.
    let shown = async {
        while *two.watch_epochs().borrow() < Epoch(1) {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_millis(300), shown).await.expect("it is not shown elsewhere");
    assert_eq!(two.state(&feed("news")).await.unwrap(), one.state(&feed("news")).await.unwrap());
    assert!(two.listed().unwrap().contains_key(&feed("news")));
    assert!(two.answers_from_memory());

    let (of_one, of_two) =
        (change(&one, "news", "by one").await, change(&two, "news", "by two").await);
    two.commit(of_two).await.unwrap();
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
    let two = open(&schema);
    assert_eq!(one.lineage(), two.lineage());
    let (first, second) = (one.gateways().unwrap(), two.gateways().unwrap());
    assert_eq!(second.live().len(), 2);
    first.set_polls(true);
    second.set_polls(true);
    let both = async {
        while [&first, &second].iter().any(|it| it.live().iter().filter(|it| it.polls).count() < 2)
        {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), both).await.expect("they do not see each other");
    for number in 0..50 {
        let key = format!("site-{number}.example");
        assert!(first.owns(&key) != second.owns(&key), "{key}");
    }
    assert!(first.may_poll() && second.may_poll());
    two.close().await.unwrap();
    drop((two, second));
    let alone = async {
        while first.live().len() > 1 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), alone).await.expect("who left is not forgotten");
    assert!((0..50).all(|number| first.owns(&format!("site-{number}.example"))));
    let before = one.lineage();
    one.close().await.unwrap();
    // Nobody lives: the database may be another's copy.
    assert_ne!(open(&schema).lineage(), before);
}

/// Every change once, in an epoch that is the same at both and to which nothing is added.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_have_every_change_of_all_gateways_once() {
    const ROUNDS: usize = 12;
    let Some(schema) = TestSchema::new() else { return };
    let stores = [open(&schema), open(&schema)];
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for store in &stores {
        let (store, done) = (Arc::clone(store), Arc::clone(&done));
        readers.spawn(async move {
            let (mut seen, mut at): (Vec<ClosedEpoch>, Epoch) = (Vec::new(), Epoch(0));
            while !done.load(Ordering::Acquire) || at < *store.watch_epochs().borrow() {
                for epoch in store.epochs_after(at, 3).await.unwrap() {
                    assert_eq!(epoch.epoch.0, at.0 + 1);
                    for LoggedChange { feed, revision, .. } in &epoch.changes {
                        // Whoever is told of a change finds it.
                        assert!(store.state(feed).await.unwrap().unwrap().revision >= *revision);
                    }
                    at = epoch.epoch;
                    seen.push(epoch);
                }
                tokio::task::yield_now().await;
            }
            seen
        });
    }
    let mut writers = JoinSet::new();
    for (place, store) in stores.iter().enumerate() {
        for number in 0..6 {
            let store = Arc::clone(store);
            writers.spawn(async move {
                let name = format!("feed-{place}-{number}");
                for _ in 0..ROUNDS {
                    let change = change(&store, &name, "text").await;
                    store.commit(change).await.unwrap();
                }
            });
        }
    }
    writers.join_all().await;
    for store in &stores {
        store.catch_up().await.unwrap();
    }
    done.store(true, Ordering::Release);
    let seen = readers.join_all().await;
    assert_eq!(seen[0], seen[1]);
    let changes: Vec<_> = seen[0].iter().flat_map(|epoch| &epoch.changes).collect();
    assert_eq!(changes.len(), 2 * 6 * ROUNDS);
    let different: BTreeSet<_> = changes.iter().map(|it| (&it.feed, it.revision)).collect();
    assert_eq!(different.len(), changes.len());
}

/// Connections are cut again and again: what was acknowledged is there, and what was refused is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost_is_settled() {
    let Some(schema) = TestSchema::new() else { return };
    let schema = Arc::new(schema);
    let store = open(&schema);
    let done = Arc::new(AtomicBool::new(false));
    let (cutting, ended) = (Arc::clone(&schema), Arc::clone(&done));
    let cutter = tokio::task::spawn_blocking(move || {
        while !ended.load(Ordering::Acquire) {
            cutting.cut_connections();
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let (mut stored, mut refused) = (0_u64, 0);
    for round in 0..30 {
        let Ok(before) = store.state(&feed("news")).await else { continue };
        let revision = before.map_or(0, |state| state.revision.0);
        let seconds = i64::try_from(revision).unwrap() + 1;
        let Ok(Some(_) | None) = store.snapshot(&feed("news")).await else { continue };
        let draft = Draft::on(&*store, "news", seconds).await;
        let change = draft.item("a", &round.to_string()).order(&["a"]).done();
        match store.commit(change).await {
            Ok(committed) => {
                assert!(committed.revision.0 > stored);
                stored = committed.revision.0;
            }
            Err(CommitError::Store(error)) => {
                assert!(error.is_passing(), "{error}");
                refused += 1;
            }
            // Another try shows which.
            Err(CommitError::Ambiguous(_) | CommitError::Conflict(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    done.store(true, Ordering::Release);
    cutter.await.unwrap();
    store.catch_up().await.unwrap();
    let state = store.state(&feed("news")).await.unwrap().unwrap();
    assert!(state.revision.0 >= stored && stored > 0, "{stored} stored, {refused} refused");
    assert_eq!(log(&store).await.len() as u64, state.revision.0);
}

/// A transaction of another schema, as of another database, holds nothing back.
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
    let with_password = tidegate_core::model::FeedRecord {
        url: "https://me:secret@news.example/feed".to_owned(),
        ..record("news")
    };
    store.put_feed(&with_password).await.unwrap();
    store.commit(change(&store, "news", "one").await).await.unwrap();
    store.checkpoint(&[poll_state("news")]).await.unwrap();
    let count = |text: &str| sql(&schema.url, text);
    let feeds =
        "SELECT 1 FROM tidegate_feed WHERE feed = 'news' AND url LIKE 'https://news.example%'";
    assert_eq!(count(feeds), 1);
    assert_eq!(count("SELECT 1 FROM tidegate_entry WHERE shown::text LIKE '%secret%'"), 0);
    let state =
        "SELECT 1 FROM tidegate_state WHERE feed = 'news' AND revision = 1 AND until IS NOT NULL";
    assert_eq!(count(state), 1);
    assert_eq!(
        count("SELECT 1 FROM tidegate_poll WHERE feed = 'news' AND failures IS NOT NULL"),
        1
    );
    let log =
        "SELECT 1 FROM tidegate_log WHERE epoch = 1 AND feed = 'news' AND closed_at IS NOT NULL";
    assert_eq!(count(log), 1);
    assert_eq!(count("SELECT 1 FROM tidegate_gateway WHERE beat_at > now() - interval '10 s'"), 1);
    assert_eq!(count("SELECT 1 FROM tidegate_subscription"), 0);
}

/// A database that is away for longer than readers may be left with what they had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_went_back_is_not_followed() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema);
    store.commit(change(&store, "news", "one").await).await.unwrap();
    schema.sql("UPDATE tidegate_counter SET position = 0");
    let stopped = async {
        while store.condition().stop.is_none() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(5), stopped).await.expect("it goes on");
    let said = store.catch_up().await.unwrap_err();
    assert!(matches!(said, StoreError::Damaged { .. }), "{said}");
}
