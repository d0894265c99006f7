//! Tombstones that were kept long enough: they leave in portions, and what they were of stays gone
//! where a peer still has it.

use crate::support::sharing::*;
use crate::support::{Gate, Post, kinds, post};
use std::time::Duration;
use tidegate::model::{EventKind, SyncId};
use tidegate::store::Store;

const DAY: Duration = Duration::from_secs(86_400);

async fn stubs(gate: &Gate, name: &str) -> usize {
    gate.store.stubs(&gate.feed, &[name.to_owned()]).await.unwrap().len()
}

/// A peer that was away when an item was deleted has it still, and so has one that never purges.
#[tokio::test]
async fn a_zombie_of_a_peer_stays_gone() {
    let mut gate = Gate::new().await;
    let a = entry("a", "A", 1, &[(1, "REO", 1)]);
    let living = entry("b", "B", 1, &[(1, "REO", 1)]);
    let gone = sync("x.b", 2, " deleted=\"true\"", &[(2, "JEO", 5), (1, "REO", 1)], "");
    let gone = Shared { sync: gone, ..entry("b", "B", 2, &[]) };
    gate.take(&shared(&[a.clone(), living.clone()])).await;
    gate.later(1);
    let verdict = gate.take(&shared(&[gone.clone(), a.clone()])).await;
    assert_eq!(kinds(&verdict), [EventKind::Deleted]);

    gate.tombstones = 31 * DAY;
    gate.later(24 * 30);
    gate.age().await;
    assert_eq!(gate.store_state().await.tombstones, 1, "not yet");
    gate.later(24 * 2);
    gate.age().await;
    assert_eq!(gate.store_state().await.tombstones, 0);
    let id = SyncId::new("x.b").unwrap();
    for version in [living, gone] {
        gate.later(1);
        let verdict = gate.take(&shared(&[version, a.clone()])).await;
        assert_eq!(kinds(&verdict), []);
        assert_eq!(titles(&gate.reader().await), ["A"]);
        assert_eq!(gate.store.known(&gate.feed, &id).await.unwrap(), None);
        assert_eq!((gate.store_state().await.tombstones, stubs(&gate, "x.b").await), (0, 1));
    }
    // What was made with knowledge of the deletion is no zombie.
    gate.later(1);
    let back = entry("b", "B again", 3, &[(3, "JEO", 9), (2, "JEO", 5), (1, "REO", 1)]);
    let verdict = gate.take(&shared(&[back, a])).await;
    assert_eq!(kinds(&verdict), [EventKind::Undeleted]);
    assert_eq!(item(&gate, "x.b").await.shared.winner.updates.value(), 3);
}

/// What a publisher lists again long after it was deleted comes back as itself.
#[tokio::test]
async fn what_was_purged_comes_back_as_itself() {
    let mut gate = Gate::new().await;
    gate.options.deletions = tidegate::model::Deletions::Eager;
    let posts: Vec<Post> = (1..=8).rev().map(post).collect();
    gate.posts(&posts).await;
    let id = gate.known(&post(4).id).await.id;
    gate.later(24);
    let fewer: Vec<Post> = (1..=8).rev().filter(|day| *day != 4).map(post).collect();
    assert_eq!(kinds(&gate.posts(&fewer).await), [EventKind::Deleted]);
    gate.tombstones = 31 * DAY;
    gate.later(24 * 40);
    gate.age().await;
    assert_eq!((gate.store_state().await.tombstones, stubs(&gate, &post(4).id).await), (0, 1));
    gate.later(24);
    assert_eq!(kinds(&gate.posts(&posts).await), [EventKind::Undeleted]);
    let known = gate.known(&post(4).id).await;
    assert_eq!((known.id, known.updates.value()), (id, 3));
}
