//! The order of changes: many writers and readers at once, the document in force, and the epochs of the change log.

use super::make::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

on_every_store! {
    writers_of_many_feeds_share_epochs_and_lose_nothing
    one_of_two_changes_on_the_same_base_wins
    a_reader_sees_one_revision
    a_document_that_was_asked_for_earlier_is_refused
    epochs_are_numbered_and_closed
}

/// In a database they are of two gateways.
async fn writers_of_many_feeds_share_epochs_and_lose_nothing(fixture: StoreFixture) {
    const FEEDS: usize = 12;
    const ROUNDS: i64 = 6;
    let stores = [Arc::clone(&fixture), fixture.of_another_gateway()];
    let mut writers = JoinSet::new();
    for number in 0..FEEDS {
        let store = Arc::clone(&stores[number % 2]);
        writers.spawn(async move {
            let name = format!("feed-{number}");
            let mut told = Vec::new();
            for seconds in 1..=ROUNDS {
                let change = Draft::on(&store, &name, seconds).await.item("a", "A").done();
                let committed = store.commit(change).await.unwrap();
                // Whoever was told finds the change in an epoch that is closed.
                let seen = store.epochs_after(Epoch(0), usize::MAX).await.unwrap();
                let is_mine = |change: &LoggedChange| {
                    change.feed.as_str() == name && change.revision == committed.revision
                };
                let found = seen.iter().find(|epoch| epoch.changes.iter().any(is_mine));
                told.push(found.expect("it is told before it can be seen").clone());
                for change in seen.iter().flat_map(|epoch| &epoch.changes) {
                    let shown = store.revision(&change.feed);
                    assert!(shown >= Some(change.revision), "{change:?}: {shown:?}");
                }
            }
            told
        });
    }
    let told: Vec<ClosedEpoch> = writers.join_all().await.into_iter().flatten().collect();
    for store in &stores {
        store.catch_up().await.unwrap();
        let tail = store.epochs_after(Epoch(0), usize::MAX).await.unwrap();
        let numbers: Vec<u64> = tail.iter().map(|sealed| sealed.epoch.0).collect();
        let newest = store.watch_epochs().borrow().0;
        assert_eq!(numbers, (1..=newest).collect::<Vec<_>>());
        let changes: Vec<_> = tail.iter().flat_map(|sealed| &sealed.changes).collect();
        assert_eq!(changes.len(), FEEDS * usize::try_from(ROUNDS).unwrap());
        let places: BTreeSet<_> = changes.iter().map(|it| (&it.feed, it.revision)).collect();
        assert_eq!(places.len(), changes.len());
        // Nothing was added to an epoch after it was seen.
        assert!(told.iter().all(|seen| tail.contains(seen)));
    }
}

async fn one_of_two_changes_on_the_same_base_wins(store: StoreFixture) {
    for round in 1..=5 {
        let mut changes = Vec::new();
        for writer in 0..4 {
            let draft = edit(&store, round).await;
            changes.push((writer, draft.item("a", &writer.to_string()).done()));
        }
        let mut writers = JoinSet::new();
        for (writer, change) in changes {
            let store = Arc::clone(&store);
            writers.spawn(async move { (writer, store.commit(change).await) });
        }
        let (won, lost): (Vec<_>, Vec<_>) =
            writers.join_all().await.into_iter().partition(|(_, result)| result.is_ok());
        assert_eq!(won.len(), 1);
        let revision = tidegate_core::model::Revision(u64::try_from(round).unwrap());
        for (_, result) in lost {
            assert!(matches!(result, Err(CommitError::Conflict(at)) if at == revision));
        }
        let item = store.item(&feed("news"), &id("a")).await.unwrap().unwrap();
        assert_eq!(item.shared.winner.data, markup(&won[0].0.to_string()));
    }
}

async fn a_reader_sees_one_revision(store: StoreFixture) {
    /// How many revisions each reader sees while more are written.
    const DIFFERENT: usize = 20;
    /// For how long that is tried.
    const LIMIT: Duration = Duration::from_secs(60);
    let names = ["a", "b", "c", "d"];
    let write = async |seconds: i64| {
        let draft = edit(&store, seconds).await.items(names, &seconds.to_string());
        let mut change = draft.order(&names).done();
        change.skeleton = Some(skeleton(&seconds.to_string()));
        store.commit(change).await.unwrap();
    };
    write(1).await;
    let mut readers = JoinSet::new();
    for select in [Select::Current, Select::All] {
        let store = Arc::clone(&store);
        readers.spawn(async move {
            let mut seen = BTreeSet::<i64>::new();
            while seen.len() < DIFFERENT {
                let view = store.view(&feed("news"), select).await.unwrap().unwrap();
                let revision = i64::try_from(view.state.revision.0).unwrap();
                assert!(seen.last().is_none_or(|last| *last <= revision), "{revision}: {seen:?}");
                assert_eq!(view.state.tick, Some(tick(revision)));
                assert_eq!(view.skeleton.text, revision.to_string());
                assert_eq!(view.items.len(), names.len());
                for item in view.items {
                    assert_eq!(item.shared.winner.data, markup(&revision.to_string()));
                }
                let snapshot = store.snapshot(&feed("news")).await.unwrap().unwrap();
                assert!(snapshot.known.iter().all(|known| Some(known.tick) == snapshot.state.tick));
                seen.insert(revision);
                tokio::task::yield_now().await;
            }
        });
    }
    let (mut seconds, begun) = (1, Instant::now());
    while !readers.is_empty() {
        assert!(begun.elapsed() < LIMIT, "of {seconds} revisions a reader saw few");
        seconds += 1;
        write(seconds).await;
        while let Some(read) = readers.try_join_next() {
            read.unwrap();
        }
        tokio::task::yield_now().await;
    }
}

/// Of two polls of one feed the one that asked later is in force, whoever commits first.
async fn a_document_that_was_asked_for_earlier_is_refused(store: StoreFixture) {
    let draft = async |store: &Store, seconds: i64, asked: Option<i64>| {
        let change = edit(store, seconds).await.item("a", "A").done();
        Change { asked_at: asked.map(time), ..change }
    };
    for (seconds, asked) in (1..).zip([Some(5), Some(5), None, Some(6)]) {
        let change = draft(&*store, seconds, asked).await;
        store.commit(change).await.unwrap();
    }
    let store = store.reopen().await;
    let change = draft(&*store, 5, Some(5)).await;
    assert!(matches!(store.commit(change).await, Err(CommitError::Overtaken)));
    // One whose clock is a day ahead keeps nobody from the feed.
    for (seconds, asked) in (5..).zip([7, 86_400, 8]) {
        let change = draft(&*store, seconds, Some(asked)).await;
        store.commit(change).await.unwrap();
    }
    let change = draft(&*store, 8, Some(7)).await;
    assert!(matches!(store.commit(change).await, Err(CommitError::Overtaken)));
}

async fn epochs_are_numbered_and_closed(mut store: StoreFixture) {
    for (seconds, clock) in [(1, 50), (2, 20), (3, 60), (4, 60)] {
        store = store.reopen().await;
        store.clock.set(time(clock));
        let mut closed = store.watch_epochs();
        edit(&store, seconds).await.item("a", "A").commit(&store).await;
        assert!(closed.has_changed().unwrap(), "acknowledged before it could be seen");
        assert_eq!(*closed.borrow_and_update(), Epoch(u64::try_from(seconds).unwrap()));
        edit(&store, seconds).await.latest("a", "no tick").commit(&store).await;
        assert!(!closed.has_changed().unwrap());
    }
    let store = store.reopen().await;
    assert_eq!(*store.watch_epochs().borrow(), Epoch(4));
    let all = store.epochs_after(Epoch(0), 99).await.unwrap();
    let closed: Vec<_> = all.iter().map(|closed| (closed.epoch.0, closed.at)).collect();
    // The time of an epoch never goes back, as the clock does.
    assert_eq!(closed, [(1, time(50)), (2, time(50)), (3, time(60)), (4, time(60))]);
    for (after, limit, found) in [(1, 2, &all[1..3]), (4, 9, &[]), (u64::MAX, 9, &[]), (0, 0, &[])]
    {
        assert_eq!(store.epochs_after(Epoch(after), limit).await.unwrap(), found);
    }
}
