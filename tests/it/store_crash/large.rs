//! Kills inside changes that are written in portions: each is there whole or not at all.

use super::*;

/// So many items that a change takes about ten portions.
const LARGE: u64 = 1500;
const LARGE_FEED: u64 = 9;

fn large_id(item: u64) -> SyncId {
    SyncId::new(&format!("large-{item:05}")).unwrap()
}

fn large_known(item: u64, revision: u64) -> LedgerEntry {
    let updates = Count::new(u32::try_from(revision).unwrap()).unwrap();
    let update = Update { sequence: updates, stamp: Stamp::When(tick(revision).time()) };
    LedgerEntry { id: large_id(item), updates, history: History::new(update), ..known(revision) }
}

fn large_markup(item: u64, revision: u64) -> Markup {
    let xml = format!("<entry>{item} as of {revision}</entry>");
    Markup { xml, ..markup(LARGE_FEED, 1) }
}

fn large_state(revision: u64) -> FeedState {
    FeedState { archives: Chain::default(), ..state(revision) }
}

fn large_change(revision: u64) -> Change {
    let version = |item| NewVersion {
        id: large_id(item),
        markup: Some(large_markup(item, revision)),
        reason: "a test".to_owned(),
    };
    Change {
        state: FeedState { revision: Revision(revision - 1), ..large_state(revision) },
        order: Some((0..LARGE).map(large_id).collect()),
        known: (0..LARGE).map(|item| large_known(item, revision)).collect(),
        versions: (0..LARGE).map(version).collect(),
        seals: Vec::new(),
        ..change(LARGE_FEED, revision)
    }
}

/// Runs only as the second process: rewrites all of the feed for ever, and says what was acknowledged.
#[test]
fn large_writer() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(Path::new(&path));
        let before = store.state(&feed(LARGE_FEED)).await.unwrap();
        let mut revision = before.map_or(0, |state| state.revision.0);
        loop {
            // Somebody reads it all the while.
            let reader = store.pin(&feed(LARGE_FEED)).await.unwrap();
            say("ack begun 0 0\n");
            revision += 1;
            let done = store.commit(large_change(revision)).await.unwrap();
            assert_eq!(done.revision, Revision(revision));
            say(&format!("ack commit {LARGE_FEED} {revision}\n"));
            let Some(reader) = reader else { continue };
            // It was pinned before the change, and is told so instead of being shown a mixture.
            let view = reader.view(Select::All).await;
            assert!(matches!(view, Err(StoreError::Outdated)), "{view:?}");
        }
    });
}

fn is_whole(view: &View, revision: u64) -> bool {
    let found = view.items.iter().map(|item| &item.shared.winner.data);
    view.state.revision == Revision(revision)
        && view.items.len() as u64 == LARGE
        && found.zip(0..).all(|(markup, item)| *markup == large_markup(item, revision))
}

#[test]
fn a_large_change_is_there_whole_or_not_at_all() {
    let kills = std::env::var("TIDEGATE_LARGE_KILLS").ok().and_then(|n| n.parse().ok());
    let kills: usize = kills.unwrap_or(3);
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeMap::new();
    for round in 0..kills {
        // At any time of a change, which takes about a second here.
        let wanted = 1 + round % 3;
        let millis = (round as u64 * 137) % 900;
        let writer = ("store_crash::large::large_writer", wanted, Duration::from_millis(millis));
        run_until_killed(folder.path(), writer, &mut acknowledged);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = open(folder.path());
            let least = acknowledged.get(&("commit".to_owned(), LARGE_FEED)).copied().unwrap_or(0);
            let found = store.state(&feed(LARGE_FEED)).await.unwrap();
            let revision = found.map_or(0, |state| state.revision.0);
            assert!((least..=least + 1).contains(&revision), "{least} acknowledged, {revision}");
            if revision > 0 {
                let view = store.view(&feed(LARGE_FEED), Select::All).await.unwrap().unwrap();
                assert!(is_whole(&view, revision), "after kill {round}");
                let known = store.snapshot(&feed(LARGE_FEED)).await.unwrap().unwrap().known;
                let whole = (0..LARGE).map(|item| large_known(item, revision));
                assert!(known.into_iter().eq(whole), "after kill {round}");
                let notes = store.versions(&feed(LARGE_FEED), &large_id(7), usize::MAX).await;
                assert_eq!(notes.unwrap().len() as u64, revision.min(1000));
            }
            let epochs = store.epochs_after(Epoch(0), usize::MAX).await.unwrap();
            assert_eq!(epochs.len() as u64, revision);
            store.close().await.unwrap();
        });
    }
}
