//! What a standby does where a gateway that writes ends in the middle of a change, or its database is another one.

use super::follow::{follow, listed, named, seen, shown, wide};
use super::{SHORT_LEASE, commit, open, open_at};
use crate::disk::faults::{claim, news, refused};
use crate::testing::{TestSchema, sql};
use crate::{EmbeddedStore, Store, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_core::model::{Revision, SyncId};
use tokio::time::{Instant, sleep};

/// Entries of the classes that say what is not finished, and what records were before.
const UNFINISHED: &str = "SELECT 1 FROM tidegate_entry WHERE class = 31";
const KEPT: &str = "SELECT 1 FROM tidegate_entry WHERE class = 27";

/// The last portion of a change, which has the feed's state, is refused.
const REFUSE_STATES: &str = "CREATE FUNCTION refuse() RETURNS trigger language plpgsql AS \
    'BEGIN IF NEW.class = 2 THEN RAISE EXCEPTION ''refused''; END IF; RETURN NEW; END'; \
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON tidegate_entry FOR EACH ROW EXECUTE FUNCTION refuse()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_reads_on_while_the_next_owner_undoes_an_unfinished_change() {
    let Some(schema) = TestSchema::new() else { return };
    let (first, feed) = (open(&schema).unwrap(), named("wide"));
    let change = wide(&first, &feed, 40, "first").await;
    first.commit(&claim(&first).await, change).await.unwrap();
    let standby = Arc::new(follow(&schema));
    let is_over = Arc::new(AtomicBool::new(false));
    let (reader, over, of) = (Arc::clone(&standby), Arc::clone(&is_over), feed.clone());
    let reading = tokio::spawn(async move {
        let mut reads = 0;
        while !over.load(Ordering::Acquire) {
            match seen(reader.pin(&of).await.unwrap().unwrap()).await {
                Ok(found) => {
                    assert_eq!(found.unwrap(), (Revision(1), 40, "first".to_owned()));
                    reads += 1;
                }
                Err(StoreError::Outdated) => {}
                Err(error) => panic!("{error}"),
            }
            let item = reader.item(&of, &SyncId::new("item-0001").unwrap()).await.unwrap();
            assert_eq!(item.expect("an item is missing").shared.winner.data.xml, "first");
        }
        reads
    });
    schema.sql(REFUSE_STATES);
    let change = wide(&first, &feed, 40, "second").await;
    assert!(first.commit(&claim(&first).await, change).await.is_err());
    // It has stopped, and would soon open its store again.
    drop(first.close().await);
    assert_eq!(sql(&schema.url, UNFINISHED), 1, "the change was not left unfinished");
    schema.sql("DROP TRIGGER refuse ON tidegate_entry");
    let second = open(&schema).unwrap();
    assert_eq!(sql(&schema.url, UNFINISHED), 0);
    assert!(sql(&schema.url, KEPT) > 0, "what a standby looks for is gone");
    standby.catch_up().await.unwrap();
    sleep(Duration::from_millis(300)).await;
    is_over.store(true, Ordering::Release);
    assert!(reading.await.unwrap() > 0);
    // It goes with the next change.
    let change = wide(&second, &feed, 40, "third").await;
    second.commit(&claim(&second).await, change).await.unwrap();
    assert_eq!(shown(&standby, &feed).await, (Revision(2), 40, "third".to_owned()));
    let began = Instant::now();
    while sql(&schema.url, KEPT) > 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "{}", sql(&schema.url, KEPT));
        sleep(Duration::from_millis(50)).await;
    }
    standby.close().await.unwrap();
    second.close().await.unwrap();
}

/// Every entry is refused, so that the store of the gateway that writes stops and is not opened again.
const REFUSE_ALL: &str = "CREATE FUNCTION refuse() RETURNS trigger language plpgsql AS \
    'BEGIN RAISE EXCEPTION ''refused''; END'; \
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON tidegate_entry FOR EACH ROW EXECUTE FUNCTION refuse()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_reads_on_while_the_store_of_the_gateway_that_writes_has_stopped() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    schema.sql(REFUSE_ALL);
    assert!(commit(&writer, "two").await.is_err());
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        let is_stopped = writer.condition().stop.is_some();
        assert!(is_stopped || began.elapsed() < Duration::from_secs(1));
        assert_eq!(shown(&standby, &news()).await, (Revision(1), 1, "one".to_owned()));
        assert!(standby.condition().stop.is_none());
        sleep(Duration::from_millis(50)).await;
    }
    schema.sql("DROP TRIGGER refuse ON tidegate_entry");
    standby.close().await.unwrap();
    drop(writer.close().await);
}

/// Nothing is answered, nor tried again, until the gateway is started again.
async fn is_stopped(standby: &EmbeddedStore, why: &str) {
    let error = standby.catch_up().await.unwrap_err();
    let stop = loop {
        // What looked last may have been under way.
        match standby.condition().stop {
            Some(stop) => break stop,
            None => assert!(standby.catch_up().await.is_err(), "{error}"),
        }
    };
    assert!(stop.cause.contains(why) && stop.next_try.is_none(), "{stop}");
    assert!(standby.catch_up().await.is_err());
    assert!(standby.item(&news(), &SyncId::new("a").unwrap()).await.is_err());
    assert!(standby.condition().check_intake().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_stops_where_its_database_went_back() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    schema.sql(
        "CREATE TABLE old_entry AS SELECT * FROM tidegate_entry; \
         CREATE TABLE old_shard AS SELECT * FROM tidegate_shard WHERE shard = 0",
    );
    let standby = follow(&schema);
    commit(&writer, "two").await.unwrap();
    assert_eq!(shown(&standby, &news()).await.0, Revision(2));
    // As a failover to a server that had not got the last writes.
    schema.sql(
        "BEGIN; DELETE FROM tidegate_entry; INSERT INTO tidegate_entry SELECT * FROM old_entry; \
         DELETE FROM tidegate_recent WHERE log_seq > (SELECT log_seq FROM old_shard); \
         UPDATE tidegate_shard s SET log_seq = o.log_seq, passed = o.passed FROM old_shard o \
         WHERE s.shard = o.shard; COMMIT",
    );
    is_stopped(&standby, "went back behind what was shown").await;
    assert!(standby.close().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_and_much_else_is_no_going_back() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    writer.put_feed(&listed("listed")).await.unwrap();
    let standby = follow(&schema);
    writer.purge_feed(&news()).await.unwrap();
    writer.close().await.unwrap();
    let second = open(&schema).unwrap();
    standby.catch_up().await.unwrap();
    assert!(standby.state(&news()).await.unwrap().is_none());
    assert!(standby.condition().stop.is_none());
    standby.close().await.unwrap();
    second.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_stops_where_a_newer_program_has_taken_over() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    writer.close().await.unwrap();
    schema.sql("INSERT INTO tidegate_schema (version) VALUES (4711)");
    schema.sql("UPDATE tidegate_shard SET fence = fence + 1");
    is_stopped(&standby, "use the program that wrote it").await;
    assert!(standby.close().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_says_for_how_long_its_database_has_not_answered() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema).unwrap();
    commit(&store, "one").await.unwrap();
    schema.sql("ALTER TABLE tidegate_node RENAME TO away");
    until_silent(&store, true).await;
    // It was not paused: what it has in memory is what it has made public.
    assert!(store.answers_from_memory() && store.state(&news()).await.unwrap().is_some());
    schema.sql("ALTER TABLE away RENAME TO tidegate_node");
    until_silent(&store, false).await;
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_follows_says_for_how_long_it_has_not_seen_its_database() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    standby.catch_up().await.unwrap();
    assert_eq!(standby.condition().unanswered, None);
    schema.sql("ALTER TABLE tidegate_node RENAME TO away");
    until_silent(&standby, true).await;
    assert!(matches!(standby.catch_up().await, Err(StoreError::Unseen { .. })));
    schema.sql("ALTER TABLE away RENAME TO tidegate_node");
    until_silent(&standby, false).await;
    standby.close().await.unwrap();
    writer.close().await.unwrap();
}

/// Waits until it is known that the database is silent, or that it is not.
async fn until_silent(store: &EmbeddedStore, is_silent: bool) {
    let began = Instant::now();
    while store.condition().unanswered.is_some() != is_silent {
        assert!(began.elapsed() < 4 * SHORT_LEASE, "{:?}", store.condition());
        sleep(Duration::from_millis(50)).await;
    }
}

/// More readers than may read at a time, of what is not in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_do_not_wait_for_a_database_that_is_silent() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema).unwrap();
    commit(&store, "one").await.unwrap();
    store.feed_list().await.unwrap();
    schema.sql("ALTER TABLE tidegate_node RENAME TO away");
    let url = schema.url.clone();
    let locking = "BEGIN; LOCK TABLE tidegate_entry; SELECT pg_sleep(14); COMMIT";
    let locking = std::thread::spawn(move || sql(&url, locking));
    until_silent(&store, true).await;
    let (began, feed, id) = (Instant::now(), news(), SyncId::new("a").unwrap());
    let asked = futures_util::future::join_all((0..40).map(|_| store.item(&feed, &id)));
    let listed = async {
        sleep(Duration::from_millis(300)).await;
        let begun = Instant::now();
        store.feed_list().await.unwrap();
        begun.elapsed()
    };
    let (asked, listed) = tokio::join!(asked, listed);
    assert!(listed < Duration::from_secs(3), "what is in memory waits: {listed:?}");
    assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
    for error in asked.into_iter().map(Result::unwrap_err) {
        assert!(matches!(error, StoreError::Unseen { .. }), "{error}");
    }
    schema.sql("ALTER TABLE away RENAME TO tidegate_node");
    until_silent(&store, false).await;
    // A slow answer of a database that is there is waited for.
    assert!(store.item(&feed, &id).await.is_ok());
    locking.join().unwrap();
    store.close().await.unwrap();
}

/// A row where somebody has locked the table of shards, so that nobody else reads it.
const SHARDS_LOCKED: &str = "SELECT 1 FROM pg_locks WHERE relation = 'tidegate_shard'::regclass \
    AND mode = 'AccessExclusiveLock' AND granted";

/// It blocks whoever asks, on a thread that answers others as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_says_how_it_is_while_its_database_is_asked_what_it_polls() {
    let Some(schema) = TestSchema::new() else { return };
    let store = Arc::new(open(&schema).unwrap());
    let url = schema.url.clone();
    let locking = "BEGIN; LOCK TABLE tidegate_shard; SELECT pg_sleep(2); COMMIT";
    let locking = std::thread::spawn(move || sql(&url, locking));
    let is_locked = || sql(&schema.url, SHARDS_LOCKED) == 1;
    let begun = Instant::now();
    while !is_locked() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the table was not locked");
        sleep(Duration::from_millis(20)).await;
    }
    let sharing = Arc::clone(&store);
    let sharing = tokio::spawn(async move { sharing.poll_shards().await.map(drop) });
    sleep(Duration::from_millis(300)).await;
    assert!(!sharing.is_finished(), "it did not wait for the table");
    assert!(store.condition().stop.is_none());
    assert!(is_locked(), "how it is was said once the table was free");
    sharing.await.unwrap().unwrap();
    locking.join().unwrap();
    store.close().await.unwrap();
}

/// Nodes that have not said for a while that they live.
const SILENT_NODES: &str = "SELECT 1 FROM tidegate_node \
    WHERE beat_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 2000";

/// More requests than there are connections wait until the database takes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_gateway_lives_and_follows_while_its_requests_wait() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let follower = follow(&schema);
    schema.sql(
        "CREATE FUNCTION wait() RETURNS trigger language plpgsql AS \
        'BEGIN PERFORM pg_sleep(10); RETURN NEW; END'; CREATE TRIGGER waits BEFORE INSERT \
        ON tidegate_request FOR EACH ROW EXECUTE FUNCTION wait()",
    );
    let ask = |_| follower.ask_writer(b"why".to_vec(), Duration::from_secs(30));
    let asked = futures_util::future::join_all((0..60).map(ask));
    let living = async {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(6) {
            assert_eq!(sql(&schema.url, SILENT_NODES), 0, "a gateway says nothing");
            follower.catch_up().await.unwrap();
            sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        _ = asked => panic!("the requests did not wait"),
        () = living => {}
    }
    follower.close().await.unwrap();
    writer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_that_is_refused_is_a_fault_and_no_failover() {
    let Some(schema) = TestSchema::new() else { return };
    let store = open(&schema).unwrap();
    commit(&store, "one").await.unwrap();
    schema.sql("ALTER TABLE tidegate_entry RENAME TO away");
    let error = store.item(&news(), &SyncId::new("a").unwrap()).await.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }) && !error.is_passing(), "{error}");
    schema.sql("ALTER TABLE away RENAME TO tidegate_entry");
    store.close().await.unwrap();
}

/// What says the time in place of the database's own clock.
const OTHER_CLOCK: &str = "CREATE OR REPLACE FUNCTION clock_timestamp() RETURNS timestamptz language sql AS \
    'SELECT pg_catalog.clock_timestamp() + interval ''AHEAD s'''";

/// A gateway that joins sees the new time before the one that lives has said anything by it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_is_not_forgotten_for_a_clock_that_was_set_forward_by_days() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    schema.sql(&OTHER_CLOCK.replace("AHEAD", "200000"));
    // This one alone asks for the time by that clock.
    let error = refused(open_at(&format!("{}%2Cpg_catalog", schema.url)));
    assert!(matches!(error, StoreError::Leased { .. }), "{error}");
    commit(&writer, "two").await.unwrap();
    writer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_machine_whose_clock_is_not_the_databases_says_so() {
    let Some(schema) = TestSchema::new() else { return };
    let set = |ahead: i64| schema.sql(&OTHER_CLOCK.replace("AHEAD", &ahead.to_string()));
    set(10);
    // The function is found before the database's own.
    let store = open_at(&format!("{}%2Cpg_catalog", schema.url)).unwrap();
    for (ahead, seen) in [(10, -10_500..=-9_000), (-10, 9_000..=10_500), (0, -1_000..=1_000)] {
        set(ahead);
        let begun = Instant::now();
        while !seen.contains(&store.condition().clock_ahead) {
            let found = store.condition().clock_ahead;
            assert!(begun.elapsed() < Duration::from_secs(10), "{ahead}: {found}");
            sleep(Duration::from_millis(20)).await;
        }
    }
    store.close().await.unwrap();
}

/// What is durable is shown here at once, and by a writer that goes on writing only behind its own barrier: it would be
/// older there for as long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_made_durable_for_a_writer_that_goes_on_writing() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    // The writes of a long group; all in one question, so that a busy machine does not stretch the pauses.
    let url = schema.url.clone();
    let writing = tokio::task::spawn_blocking(move || {
        sql(
            &url,
            "DO $$ DECLARE durable bigint; BEGIN \
             SELECT passed INTO durable FROM tidegate_shard WHERE shard = 0; \
             FOR number IN 1..40 LOOP \
             UPDATE tidegate_shard SET log_seq = log_seq + 1 WHERE shard = 0; COMMIT; PERFORM pg_sleep(0.05); \
             END LOOP; \
             IF (SELECT passed FROM tidegate_shard WHERE shard = 0) <> durable THEN \
             RAISE EXCEPTION 'it was made durable meanwhile'; END IF; END $$",
        )
    });
    writing.await.unwrap();
    let is_durable = "SELECT 1 FROM tidegate_shard WHERE shard = 0 AND passed = log_seq";
    let begun = Instant::now();
    while sql(&schema.url, is_durable) == 0 {
        assert!(begun.elapsed() < Duration::from_secs(9), "it waits for a writer that is gone");
        sleep(Duration::from_millis(50)).await;
    }
    standby.close().await.unwrap();
    drop(writer.close().await);
}
