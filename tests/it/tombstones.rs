//! Tombstones that were kept long enough: they leave in portions, and what they were of stays gone
//! where a peer still has it.

use crate::support::prelude::*;
use crate::support::sharing::{Shared, *};
use tidegate_core::model::EventKind::*;
use tidegate_format::parse::{self, Limits};
use tidegate_judge::record;

const DAY: Duration = Duration::from_secs(86_400);

async fn stubs(gate: &Gate, name: &str) -> usize {
    gate.store.stubs(&gate.feed, &[name.to_owned()]).await.unwrap().len()
}

/// A peer that was away when an item was deleted has it still, and so has one that never purges.
#[tokio::test]
async fn a_zombie_of_a_peer_stays_gone() {
    let mut gate = Gate::new().await;
    let a = first("a", "A");
    let living = first("b", "B");
    let gone = entry("b", "B", 2, &[(2, "JEO", 5), (1, "REO", 1)]).deleted();
    let back = entry("b", "B again", 3, &[(3, "JEO", 9), (2, "JEO", 5), (1, "REO", 1)]);
    gate.shares(&[a.clone(), living.clone()]).await;
    assert_eq!(gate.shares(&[gone.clone(), a.clone()]).await, [Deleted]);
    assert_eq!(gate.titles().await, ["A"]);
    // A tombstone that is kept is taken back as well.
    let mut other = Gate::new().await;
    for (version, kind, titles) in
        [(&living, Created, &["B"][..]), (&gone, Deleted, &[]), (&back, Undeleted, &["B again"])]
    {
        assert_eq!(other.shares(std::slice::from_ref(version)).await, [kind]);
        assert_eq!(other.titles().await, titles);
    }

    gate.tombstones = 31 * DAY;
    gate.later(24 * 30).age().await;
    assert_eq!(gate.store_state().await.tombstones, 1, "not yet");
    gate.later(24 * 2).age().await;
    assert_eq!(gate.store_state().await.tombstones, 0);
    for version in [living, gone] {
        assert_eq!(gate.shares(&[version, a.clone()]).await, []);
        assert_eq!(gate.titles().await, ["A"]);
        assert_eq!(gate.store.known(&gate.feed, &id("x.b")).await.unwrap(), None);
        assert_eq!((gate.store_state().await.tombstones, stubs(&gate, "x.b").await), (0, 1));
    }
    // What was made with knowledge of the deletion is no zombie.
    assert_eq!(gate.shares(&[back, a]).await, [Undeleted]);
    assert_eq!(item(&gate, "x.b").await.shared.winner.updates.value(), 3);
}

/// A feed that shares a list of two of its items at a time, and keeps three: the items that left.
async fn after_many(gate: &mut Gate) -> Vec<Shared> {
    gate.items = 3;
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let all: Vec<Shared> = names.iter().map(|name| first(name, name)).collect();
    for newest in 1..all.len() {
        gate.later(24).take(&shared(&[all[newest].clone(), all[newest - 1].clone()])).await;
    }
    all
}

/// What a peer deleted after it left here is a tombstone here, which has the peer's history.
#[tokio::test]
async fn a_peer_deletes_what_left() {
    let mut gate = Gate::new().await;
    let all = after_many(&mut gate).await;
    assert_eq!(gate.store.known(&gate.feed, &id("x.a")).await.unwrap(), None);
    let left = gate.store.stubs(&gate.feed, &["x.a".to_owned()]).await.unwrap().remove(0);
    assert!(left.standing.left_alive());
    let before = gate.store_state().await;
    gate.items += 1;

    let gone = entry("a", "a", 2, &[(2, "JEO", 5), (1, "REO", 1)]).deleted();
    let document = shared(&[all[7].clone(), all[6].clone(), gone]);
    assert_eq!(kinds(&gate.later(1).take(&document).await), [Deleted]);
    let found = item(&gate, "x.a").await;
    assert!(found.shared.winner.deleted);
    assert_eq!(sequences(&found), ["2 JEO", "1 REO"]);
    assert_eq!(found.published_id, left.published_id);
    let news = gate.items(Select::After(before.tick.unwrap())).await;
    assert_eq!(news.len(), 1);
    let state = gate.store_state().await;
    assert_eq!((state.tombstones, stubs(&gate, "x.a").await), (1, 0));
    assert_eq!(state.evictions.count, before.evictions.count - 1);
    assert_eq!(gate.titles().await, ["h", "g"]);
    assert_eq!(kinds(&gate.later(1).take(&document.replace("List", "The list")).await), []);
}

/// A reader view says of what was deleted no more than its id: the complete feed has the rest.
#[tokio::test]
async fn a_peer_that_says_that_what_left_was_deleted_is_read_whole() {
    let mut gate = Gate::new().await;
    after_many(&mut gate).await;
    let mut caught_up = gate.snapshot().await;
    caught_up.state.upstream_until = Some(String::new());
    let named = ["x.a".to_owned()];
    let left = gate.store.stubs(&gate.feed, &named).await.unwrap();
    let listed = ["h", "g"].map(|name| first(name, name).markup());
    let asks = |ids: &[&str], left: &[LedgerEntry]| {
        let ids = ids.iter().map(|id| format!("urn:{id}"));
        let text = with_deletions(&document(RELATED, &listed), ids.clone());
        let document = parse::document(&text, None, &Limits::default()).unwrap();
        let names = record::ledger_query(&gate.observation(Some(&caught_up)), &[&document]).names;
        assert!(ids.clone().all(|id| names.contains(&id)), "{names:?}");
        let snapshot = caught_up.clone().with_stubs(left.to_vec());
        record::needs_complete(Some(&snapshot), &document)
    };
    assert!(!asks(&[], &left), "it is not missed where nothing is said of it");
    assert!(asks(&["a"], &left));
    let standing = ItemStatus::Evicted { since: left[0].tick.time(), deleted: true };
    let deleted = LedgerEntry { standing, ..left[0].clone() };
    assert!(!asks(&["a"], &[deleted]), "that is known");
    assert!(!asks(&["another"], &left));
}
