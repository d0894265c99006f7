//! A store that another gateway writes, and this one reads.

use super::{SHORT_LEASE, TestSchema, commit, open};
use crate::disk::faults::{change, claim, news};
use crate::postgres::{PostgresRequest, follow_with_lease};
use crate::{CommitError, EmbeddedStore, Epoch, PinnedFeed, Retention, Select, Store, StoreError};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_core::clock::ManualClock;
use tidegate_core::model::{
    Change, EndpointId, FeedName, FeedRecord, FeedSource, LedgerEntry, NewVersion, Revision,
    SyncId, Time,
};
use tokio::time::{Instant, sleep};

pub(super) fn follow(schema: &TestSchema) -> EmbeddedStore {
    let endpoint = EndpointId::own("gate.example").unwrap();
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    let request = PostgresRequest::new(&schema.url, Some(endpoint));
    follow_with_lease(request, SHORT_LEASE, clock).unwrap()
}

pub(super) fn named(name: &str) -> FeedName {
    FeedName::new(name).unwrap()
}

pub(super) fn listed(name: &str) -> FeedRecord {
    FeedRecord::new(named(name), "https://example.org/feed", FeedSource::Api)
}

/// A change that gives all of so many items of a feed the same text.
pub(super) async fn wide(
    store: &EmbeddedStore,
    feed: &FeedName,
    items: usize,
    text: &str,
) -> Change {
    let before = store.state(feed).await.unwrap();
    let revision = before.as_ref().map_or(Revision(0), |state| state.revision);
    let mut change = change(store, text).await;
    let (known, version) = (change.known.remove(0), change.versions.remove(0));
    let seconds = i64::try_from(revision.0).unwrap() + 1;
    let tick = tidegate_core::model::Tick::at(Time::from_unix(1_795_191_605 + seconds));
    let updates = tidegate_core::model::Count::new(u32::try_from(revision.0).unwrap() + 1).unwrap();
    let update = tidegate_core::model::Update {
        sequence: updates,
        stamp: tidegate_core::model::Stamp::When(tick.time()),
    };
    let ids: Vec<SyncId> =
        (0..items).map(|item| SyncId::new(&format!("item-{item:04}")).unwrap()).collect();
    let count = u64::try_from(items).unwrap();
    change.feed = feed.clone();
    change.base = revision;
    (change.at, change.tick) = (tick.time(), Some(tick));
    change.state.revision = revision;
    change.state.tick = Some(tick);
    change.state.updated_at = tick.time();
    change.state.render_revision = revision.0 + 1;
    change.state.current = items.try_into().unwrap();
    change.state.living = items.try_into().unwrap();
    change.state.sync_ids_issued = count;
    change.known = ids
        .iter()
        .map(|id| LedgerEntry {
            id: id.clone(),
            native: format!("urn:{id}"),
            native_shown: format!("urn:{id}"),
            published_id: format!("urn:{id}"),
            updates,
            history: tidegate_core::model::History::new(update.clone()),
            tick,
            first_seen: tick.time(),
            came: tick.time(),
            touched: revision.0 + 1,
            ..known.clone()
        })
        .collect();
    change.versions =
        ids.iter().map(|id| NewVersion { id: id.clone(), ..version.clone() }).collect();
    change.order = Some(ids);
    change
}

/// The revision of a view, and the text of its items, which all have the same.
pub(super) async fn seen(
    reader: Arc<dyn PinnedFeed>,
) -> Result<Option<(Revision, usize, String)>, StoreError> {
    let revision = reader.state().revision;
    let Some(view) = Arc::clone(&reader).view(Select::Current).await? else { return Ok(None) };
    assert_eq!(view.state.revision, revision);
    let texts: HashSet<String> =
        view.items.iter().map(|item| item.shared.winner.data.xml.clone()).collect();
    assert_eq!(texts.len(), 1, "revisions are mixed at {revision:?}: {texts:?}");
    Ok(Some((revision, view.items.len(), texts.into_iter().next().unwrap())))
}

pub(super) async fn shown(store: &EmbeddedStore, feed: &FeedName) -> (Revision, usize, String) {
    store.catch_up().await.unwrap();
    for _ in 0..100 {
        match seen(store.pin(feed).await.unwrap().unwrap()).await {
            Err(StoreError::Outdated) => store.catch_up().await.unwrap(),
            found => return found.unwrap().unwrap(),
        }
    }
    panic!("it is overtaken again and again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_shows_what_the_other_gateway_made_durable() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    assert_eq!(shown(&standby, &news()).await, (Revision(1), 1, "one".to_owned()));
    assert_eq!(standby.lineage(), writer.lineage());
    let watch = standby.watch_state(&news()).unwrap();
    let feeds = standby.listed().unwrap();
    standby.catch_up().await.unwrap();
    assert!(Arc::ptr_eq(&standby.listed().unwrap(), &feeds));
    // In place, in portions, and the record of a feed.
    commit(&writer, "two").await.unwrap();
    let wide = wide(&writer, &named("wide"), 40, "first").await;
    writer.commit(&claim(&writer).await, wide).await.unwrap();
    let record = listed("listed");
    writer.put_feed(&record).await.unwrap();
    assert_eq!(shown(&standby, &news()).await, (Revision(2), 1, "two".to_owned()));
    assert!(!watch.is_current());
    assert_eq!(shown(&standby, &named("wide")).await, (Revision(1), 40, "first".to_owned()));
    assert_eq!(*standby.feed_list().await.unwrap(), *writer.feed_list().await.unwrap());
    assert_eq!(standby.feed_list().await.unwrap().len(), 1);
    assert!(!Arc::ptr_eq(&standby.listed().unwrap(), &feeds));
    assert!(Arc::ptr_eq(&standby.listed().unwrap(), &standby.feed_list().await.unwrap()));
    assert_eq!(*standby.watch_epochs().borrow(), Epoch(3));
    let epochs = writer.epochs_after(Epoch(0), 9).await.unwrap();
    assert_eq!(standby.epochs_after(Epoch(0), 9).await.unwrap(), epochs);
    // What is read over all feeds.
    writer.note_running_time(Time::from_unix(1_795_191_700)).await.unwrap();
    standby.catch_up().await.unwrap();
    assert_eq!(standby.running_time().await.unwrap(), Some(Time::from_unix(1_795_191_700)));
    assert_eq!(standby.poll_states().await.unwrap(), writer.poll_states().await.unwrap());
    // A state that moves without an epoch.
    let claim = claim(&writer).await;
    let prune = Retention { versions: 1, ..Retention::default() };
    let now = Time::from_unix(1_895_191_605);
    assert_ne!(writer.prune(&claim, &news(), &prune, now).await.unwrap().versions, 0);
    let id = SyncId::new("a").unwrap();
    standby.catch_up().await.unwrap();
    assert_eq!(standby.versions(&news(), &id, 9).await.unwrap().len(), 1);
    assert_eq!(*standby.watch_epochs().borrow(), Epoch(3));
    // What is purged is gone, and what takes its name is another.
    writer.purge_feed(&news()).await.unwrap();
    standby.catch_up().await.unwrap();
    assert!(standby.state(&news()).await.unwrap().is_none());
    assert!(standby.pin(&news()).await.unwrap().is_none());
    commit(&writer, "again").await.unwrap();
    let revision = writer.state(&news()).await.unwrap().unwrap().revision;
    assert_eq!(shown(&standby, &news()).await, (revision, 1, "again".to_owned()));
    standby.close().await.unwrap();
    writer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_changes_nothing_itself_and_says_who_does() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    let name = format!("process {}", std::process::id());
    let is_refusal = |error: &StoreError| matches!(error, StoreError::Standby { owner } if owner.name.starts_with(&name));
    let refuses = |error: CommitError| match error {
        CommitError::Store(error) => is_refusal(&error),
        _ => false,
    };
    let claim = claim(&writer).await;
    assert!(refuses(standby.trim_log(&claim, Duration::ZERO).await.unwrap_err()));
    let retention = Retention::default();
    let pruned = standby.prune(&claim, &news(), &retention, Time::from_unix(0)).await;
    assert!(refuses(pruned.unwrap_err()));
    let record = listed("listed");
    assert!(is_refusal(&standby.put_feed(&record).await.unwrap_err()));
    assert!(is_refusal(&standby.purge_feed(&news()).await.unwrap_err()));
    assert!(is_refusal(&standby.put_subscriptions(&[]).await.unwrap_err()));
    assert!(is_refusal(&standby.note_running_time(Time::from_unix(0)).await.unwrap_err()));
    assert!(is_refusal(&standby.condition().check_intake().unwrap_err()));
    // It goes on, and so does the other.
    commit(&writer, "two").await.unwrap();
    assert_eq!(shown(&standby, &news()).await.0, Revision(2));
    standby.close().await.unwrap();
    writer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_overtaken_reads_anew_or_is_told() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    let reader = standby.pin(&news()).await.unwrap().unwrap();
    commit(&writer, "two").await.unwrap();
    assert!(matches!(seen(reader).await, Err(StoreError::Outdated)));
    // One operation reads what there is now; the standby has not looked itself.
    commit(&writer, "three").await.unwrap();
    let item = standby.item(&news(), &SyncId::new("a").unwrap()).await.unwrap().unwrap();
    assert_eq!(item.shared.winner.data.xml, "three");
    standby.close().await.unwrap();
    writer.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_follows_the_next_owner() {
    let Some(schema) = TestSchema::new() else { return };
    let first = open(&schema).unwrap();
    commit(&first, "one").await.unwrap();
    let standby = follow(&schema);
    assert!(!standby.condition().owner.unwrap().is_gone);
    first.close().await.unwrap();
    standby.catch_up().await.unwrap();
    assert!(standby.condition().owner.unwrap().is_gone);
    assert_eq!(shown(&standby, &news()).await.0, Revision(1));
    let second = open(&schema).unwrap();
    commit(&second, "two").await.unwrap();
    assert_eq!(shown(&standby, &news()).await, (Revision(2), 1, "two".to_owned()));
    assert!(!standby.condition().owner.unwrap().is_gone);
    assert_eq!(standby.lineage(), second.lineage());
    assert_eq!(standby.lineage().stretches().len(), 2);
    standby.close().await.unwrap();
    second.close().await.unwrap();
}

/// Whoever takes the database goes on from what a standby shows: what did not change is not read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_keeps_what_it_knows_where_the_next_owner_goes_on_from_there() {
    let Some(schema) = TestSchema::new() else { return };
    let first = open(&schema).unwrap();
    commit(&first, "one").await.unwrap();
    let wide = wide(&first, &named("wide"), 5, "first").await;
    first.commit(&claim(&first).await, wide).await.unwrap();
    let standby = follow(&schema);
    let watch = standby.watch_state(&named("wide")).unwrap();
    first.close().await.unwrap();
    // One that opens the database and ends, and one that goes on.
    let second = open(&schema).unwrap();
    standby.catch_up().await.unwrap();
    second.close().await.unwrap();
    let third = open(&schema).unwrap();
    standby.catch_up().await.unwrap();
    commit(&third, "two").await.unwrap();
    third.put_feed(&listed("listed")).await.unwrap();
    assert_eq!(shown(&standby, &news()).await, (Revision(2), 1, "two".to_owned()));
    assert_eq!(*standby.feed_list().await.unwrap(), *third.feed_list().await.unwrap());
    assert_eq!(*standby.watch_epochs().borrow(), *third.watch_epochs().borrow());
    assert_eq!(standby.lineage(), third.lineage());
    assert!(watch.is_current(), "everything was read anew");
    assert_eq!(shown(&standby, &named("wide")).await, (Revision(1), 5, "first".to_owned()));
    standby.close().await.unwrap();
    third.close().await.unwrap();
}

/// Where it is not certain that the next owner has all that a standby shows, everything is read anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_reads_anew_after_an_owner_that_may_lack_what_is_shown() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    writer.close().await.unwrap();
    let takes = |fences: i64, after: &str, at: &str| {
        format!("fence = fence + {fences}, taken_by = 7, taken_after = {after}, taken_at = {at}")
    };
    for (taken, is_kept) in [
        // One that goes on from what is shown.
        (takes(1, "taken_by", "log_seq"), true),
        // Two after one another, one after another one, and another one in the place of the last.
        (takes(2, "taken_by", "log_seq"), false),
        (takes(1, "8", "log_seq"), false),
        ("taken_by = 8".to_owned(), false),
        // One whose database had gone back.
        (takes(1, "taken_by", "log_seq - 1"), false),
    ] {
        let watch = standby.watch_state(&news()).unwrap();
        schema.sql(&format!("UPDATE tidegate_shard SET {taken} WHERE shard = 0"));
        standby.catch_up().await.unwrap();
        assert_eq!(watch.is_current(), is_kept, "{taken}");
        assert_eq!(shown(&standby, &news()).await, (Revision(1), 1, "one".to_owned()));
    }
    standby.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_was_left_behind_reads_everything_anew() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    commit(&writer, "two").await.unwrap();
    // As if very many writes had been made since.
    schema.sql(
        "BEGIN; UPDATE tidegate_shard SET log_seq = log_seq + 20000, passed = passed + 20000, closed = closed + 20000; \
         DELETE FROM tidegate_recent; COMMIT",
    );
    assert_eq!(shown(&standby, &news()).await, (Revision(2), 1, "two".to_owned()));
    assert_eq!(*standby.watch_epochs().borrow(), Epoch(2));
    standby.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_answers_nothing_once_it_has_not_seen_its_database_for_seconds() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = open(&schema).unwrap();
    commit(&writer, "one").await.unwrap();
    let standby = follow(&schema);
    assert!(standby.state(&news()).await.unwrap().is_some());
    schema.sql("ALTER TABLE tidegate_shard RENAME TO away");
    let began = Instant::now();
    let error = standby.catch_up().await.unwrap_err();
    assert!(matches!(error, StoreError::Unseen { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    sleep(Duration::from_secs(1)).await;
    let error = standby.state(&news()).await.unwrap_err();
    assert!(matches!(error, StoreError::Unseen { .. }), "{error}");
    schema.sql("ALTER TABLE away RENAME TO tidegate_shard");
    assert_eq!(shown(&standby, &news()).await.0, Revision(1));
    standby.close().await.unwrap();
}

/// Feeds of a few items, which are changed in place, and of many, which are changed in portions.
const FEEDS: [(&str, usize); 3] = [("few", 3), ("some", 5), ("many", 30)];
/// How often each of them is changed.
const CHANGES: u64 = 40;

/// A gateway makes changes at chance moments; a standby reads views and items all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_standby_reads_is_one_revision_and_nothing_announced_is_missing() {
    let Some(schema) = TestSchema::new() else { return };
    let writer = Arc::new(open(&schema).unwrap());
    for (name, items) in FEEDS {
        let first = wide(&writer, &named(name), items, &format!("{name} 1")).await;
        writer.commit(&claim(&writer).await, first).await.unwrap();
    }
    let standby = Arc::new(follow(&schema));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut writing = tokio::task::JoinSet::new();
    for (number, (name, items)) in (0_u64..).zip(FEEDS) {
        let (writer, feed) = (Arc::clone(&writer), named(name));
        writing.spawn(async move {
            for made in 2..=CHANGES {
                let next = wide(&writer, &feed, items, &format!("{name} {made}")).await;
                let claim = claim(&writer).await;
                assert_eq!(writer.commit(&claim, next).await.unwrap().revision, Revision(made));
                match (made + number) % 7 {
                    0 => {
                        let prune = Retention { versions: 3, ..Retention::default() };
                        let now = Time::from_unix(1_895_191_605);
                        writer.prune(&claim, &feed, &prune, now).await.unwrap();
                    }
                    3 => {
                        let name = format!("listed-{name}-{made}");
                        writer.put_feed(&listed(&name)).await.unwrap();
                    }
                    part => sleep(Duration::from_millis(part * 7)).await,
                }
            }
        });
    }
    let (mut reading, overtaken) = (tokio::task::JoinSet::new(), Arc::new(AtomicBool::new(false)));
    for (name, items) in FEEDS {
        let (standby, is_over, feed) = (Arc::clone(&standby), Arc::clone(&is_over), named(name));
        let overtaken = Arc::clone(&overtaken);
        reading.spawn(async move {
            let (mut last, mut reads) = (Revision(0), 0);
            let is_done = || is_over.load(Ordering::Acquire) && overtaken.load(Ordering::Acquire);
            while reads == 0 || !is_done() {
                match seen(standby.pin(&feed).await.unwrap().unwrap()).await {
                    Ok(found) => {
                        let (revision, count, text) = found.expect("a view is missing");
                        assert_eq!((count, text), (items, format!("{name} {}", revision.0)));
                        assert!(revision >= last, "{revision:?} after {last:?}");
                        (last, reads) = (revision, reads + 1);
                    }
                    Err(StoreError::Outdated) => overtaken.store(true, Ordering::Release),
                    Err(error) => panic!("{error}"),
                }
                let item = standby.item(&feed, &SyncId::new("item-0001").unwrap()).await;
                let text = item.unwrap().expect("an item is missing").shared.winner.data.xml;
                let number: u64 = text.strip_prefix(name).unwrap().trim().parse().unwrap();
                assert!(number >= last.0, "{text} after {last:?}");
                last = last.max(Revision(number));
                tokio::task::yield_now().await;
            }
        });
    }
    let (followed, until) = (Arc::clone(&standby), FEEDS.len() as u64 * CHANGES);
    let following = tokio::spawn(async move {
        let (mut newest, mut last, mut told) = (followed.watch_epochs(), Epoch(0), 0);
        while told < until {
            for closed in followed.epochs_after(last, 64).await.unwrap() {
                assert_eq!(closed.epoch.0, last.0 + 1, "epochs are missing");
                last = closed.epoch;
                for change in closed.changes {
                    let state = followed.state(&change.feed).await.unwrap().unwrap();
                    assert!(
                        state.revision >= change.revision,
                        "{change:?} is announced, not shown"
                    );
                    told += 1;
                }
            }
            if told < until && last >= *newest.borrow_and_update() {
                newest.changed().await.unwrap();
            }
        }
        last
    });
    while let Some(written) = writing.join_next().await {
        written.unwrap();
    }
    let last = tokio::time::timeout(Duration::from_secs(20), following).await.unwrap().unwrap();
    assert_eq!(last, *writer.watch_epochs().borrow());
    // Until each reader has read and one was overtaken: else nothing was tried.
    is_over.store(true, Ordering::Release);
    let (mut made, begun) = (CHANGES, Instant::now());
    while !reading.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{overtaken:?}, {reading:?}");
        made += 1;
        for (name, items) in FEEDS {
            let next = wide(&writer, &named(name), items, &format!("{name} {made}")).await;
            writer.commit(&claim(&writer).await, next).await.unwrap();
        }
        while let Some(read) = reading.try_join_next() {
            read.unwrap();
        }
    }
    for (name, items) in FEEDS {
        let found = shown(&standby, &named(name)).await;
        assert_eq!(found, (Revision(made), items, format!("{name} {made}")));
    }
    assert_eq!(*standby.feed_list().await.unwrap(), *writer.feed_list().await.unwrap());
    standby.close().await.unwrap();
    writer.close().await.unwrap();
}
