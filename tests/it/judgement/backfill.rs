//! What an older document of a publisher brings, beside what `stories.txt` tells: items that newer ones say are deleted.

use crate::support::prelude::*;
use tidegate_core::model::EventKind::*;

#[tokio::test]
async fn deleted_entries_stay_away() {
    let mut gate = Gate::new().await;
    gate.posts(&days(5..=8)).await;
    let older = gate.backfill(&atom(SITE, &days(1..=4)), &[&post(2).id]).await;
    assert_eq!(older.taken, 3);
    let items = gate.items(Select::All).await;
    assert!(items.iter().all(|item| item.published_id != post(2).id));
    // What this publisher deleted is not brought back by an older document either.
    gate.options.deletions = Deletions::Eager;
    let without: Vec<_> = days(5..=8).into_iter().filter(|p| p.day != 7).collect();
    assert_eq!(kinds(&gate.later(1).posts(&without).await), [Deleted]);
    let older = gate.backfill(&atom(SITE, &days(1..=8)), &[&post(2).id]).await;
    assert_eq!((older.taken, older.known), (0, 7));
    assert!(gate.known(&post(7).id).await.is_tombstone());
}
