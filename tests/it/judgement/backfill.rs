//! What an older document of a publisher brings: items that were never new.

use super::{days, kinds};
use crate::support::{Gate, Post, SITE, atom, post};
use tidegate_core::model::{EventKind::*, Item};
use tidegate_store::Select;

async fn item(gate: &Gate, day: u32) -> Item {
    let items = gate.items(Select::All).await;
    items.into_iter().find(|item| item.published_id == post(day).id).unwrap()
}

#[tokio::test]
async fn older_items_are_retired_and_sealed_and_never_shown() {
    let mut gate = Gate::new().await;
    gate.posts(&days(8..=12)).await;
    let (before, reader) = (gate.store_state().await, gate.reader().await);
    let older = gate.later(1).backfill(&atom(SITE, &days(3..=8)), &[]).await;
    assert_eq!((older.taken, older.known), (5, 1));
    assert_eq!(kinds(&older.verdict), [Backfilled; 5]);
    let change = older.verdict.change.unwrap();
    assert!(change.order.is_none() && change.skeleton.is_none());
    assert_eq!(change.versions.len(), 5);
    assert!(change.seals.iter().map(|seal| seal.items.len()).sum::<usize>() >= 5, "{change:?}");
    let state = gate.store_state().await;
    assert!(state.tick > before.tick);
    assert_eq!((state.living, state.archives.unsealed), (10, 0));
    assert_eq!((state.hold, state.body), (before.hold, before.body));
    assert_eq!(gate.reader().await, reader, "no reader sees them");
    for day in 3..8 {
        let item = item(&gate, day).await;
        assert_eq!(item.shared.winner.updates.value(), 1);
        assert!(!item.shared.winner.deleted);
        assert!(
            Some(item.tick) > before.tick && Some(item.tick) <= state.tick,
            "a version has a tick"
        );
    }
    let since = gate.items(Select::After(before.tick.unwrap())).await;
    let since = since.into_iter().map(|item| item.shared.winner.data.card.title);
    let mut since: Vec<_> = since.collect();
    since.sort();
    let expected: Vec<_> = (3..8).map(|day| post(day).title).collect();
    assert_eq!(since, expected, "a subscriber hears of them");
}

#[tokio::test]
async fn nothing_is_concluded_about_what_is_known() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=12)).await;
    let all = days(3..=14);
    gate.posts(&all).await;
    // One is missing, and it is not known yet whether it was deleted.
    gate.later(1).posts(&all.iter().filter(|p| p.day != 8).cloned().collect::<Vec<_>>()).await;
    let before = (gate.store_state().await, gate.items(Select::All).await);
    let mut older = days(1..=14);
    for post in &mut older {
        post.text =
            format!("{} This is how it was told at first, with many more words.", post.text);
    }
    // Ids as they were before the publisher moved.
    let moved: Vec<Post> = older
        .iter()
        .map(|p| Post {
            id: p.id.replace("http://publisher", "https://www.publisher"),
            ..p.clone()
        })
        .collect();
    for older in [older, moved] {
        let text = atom(SITE, &older);
        let told = gate.backfill(&text, &[]).await;
        assert_eq!((told.taken, told.known, told.verdict.change), (0, 14, None));
    }
    assert_eq!((gate.store_state().await, gate.items(Select::All).await), before);
    // Its absence goes on being judged.
    gate.later(13).same().await;
    gate.later(13);
    assert_eq!(kinds(&gate.same().await), [Deleted]);
}

#[tokio::test]
async fn deleted_entries_stay_away() {
    let mut gate = Gate::new().await;
    gate.posts(&days(5..=8)).await;
    let older = gate.backfill(&atom(SITE, &days(1..=4)), &[&post(2).id]).await;
    assert_eq!(older.taken, 3);
    let items = gate.items(Select::All).await;
    assert!(items.iter().all(|item| item.published_id != post(2).id));
    // What this publisher deleted is not brought back by an older document either.
    gate.options.deletions = tidegate_core::model::Deletions::Eager;
    gate.later(1);
    let without: Vec<_> = days(5..=8).into_iter().filter(|p| p.day != 7).collect();
    assert_eq!(kinds(&gate.posts(&without).await), [Deleted]);
    let older = gate.backfill(&atom(SITE, &days(1..=8)), &[&post(2).id]).await;
    assert_eq!((older.taken, older.known), (0, 7));
    assert!(item(&gate, 7).await.shared.winner.deleted);
}
