//! Kills inside changes that are written in portions: each is there whole or not at all.

use super::*;

/// So many items that a change takes about ten portions.
pub const ITEMS: u64 = 1500;
pub const FEED: u64 = 9;

/// Runs only as the second process: rewrites all of the feed for ever, and says what was acknowledged.
#[test]
fn large_writer() {
    let Some(path) = std::env::var_os(WRITER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = open(Path::new(&path));
        let mut gate = gate(FEED, Some(&store)).await;
        for revision in revision(&gate).await + 1.. {
            // Somebody reads it all the while.
            let reader = store.pin(&gate.feed).await.unwrap();
            say("ack begun 0 0\n");
            advance(&mut gate, FEED, revision).await;
            say(&format!("ack commit {FEED} {revision}\n"));
            let Some(reader) = reader else { continue };
            // It was pinned before the change, and is told so instead of being shown a mixture.
            let view = reader.view(Select::All).await;
            assert!(matches!(view, Err(StoreError::Outdated)), "{view:?}");
        }
    });
}

#[test]
fn a_large_change_is_there_whole_or_not_at_all() {
    let kills = std::env::var("TIDEGATE_LARGE_KILLS").ok().and_then(|n| n.parse().ok());
    let kills: usize = kills.unwrap_or(3);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fresh = || (tempfile::tempdir().unwrap(), runtime.block_on(gate(FEED, None)));
    let (mut folder, mut reference) = fresh();
    let mut acknowledged = Acknowledged::new();
    for round in 0..kills {
        if round % OF_ONE_STORE == 0 {
            (folder, reference) = fresh();
            acknowledged.clear();
        }
        // At any time of a change, which takes about a second here.
        let wanted = 1 + round % 3;
        let millis = (round as u64 * 137) % 900;
        let writer = ("store_crash::large::large_writer", wanted, Duration::from_millis(millis));
        run_until_killed(folder.path(), writer, &mut acknowledged);
        runtime.block_on(async {
            let store = open(folder.path());
            let least = acknowledged.get(&("commit".to_owned(), FEED)).copied().unwrap_or(0);
            let found = compare(&store, FEED, &mut reference, least).await;
            assert_eq!(log(&store).await.len() as u64, found, "after kill {round}");
            acknowledged.insert(("commit".to_owned(), FEED), found);
            store.close().await.unwrap();
        });
    }
}
