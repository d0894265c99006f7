//! Nothing is left behind: no piece of a value that was overwritten or removed, and no entry of a
//! feed that was purged.

use super::*;
use crate::store::VERSIONS_KEPT;
use crate::store::sled::keys;
use crate::store::sled::purge;
use crate::store::sled::trees::{Class, PIECE};

#[tokio::test]
async fn bytes_of_dropped_versions_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let claim = claim(&store).await;
    let large = noise(PIECE * 3);
    for round in 0..VERSIONS_KEPT + 5 {
        let change = change(&store, &format!("{round} {large}")).await;
        store.commit(&claim, change).await.unwrap();
    }
    let trees = store.opened().unwrap().trees;
    assert_eq!(trees.tree(Class::Bodies).len(), VERSIONS_KEPT);
    let pieces = trees.tree(Class::Pieces).len();
    assert!(pieces >= VERSIONS_KEPT && pieces.is_multiple_of(VERSIONS_KEPT), "{pieces}");
    for class in Class::ALL {
        for entry in trees.tree(*class).iter() {
            assert!(entry.unwrap().1.len() <= PIECE, "a value in {}", class.name());
        }
    }
    assert_eq!(trees.tree(Class::ByTick).len(), 1);

    let mut small = change(&store, "small").await;
    let version = small.versions.remove(0);
    small.tick = None;
    let ledger = store.snapshot(&news()).await.unwrap().unwrap().known;
    small.known = vec![Known { touched: small.state.render, ..ledger[0].clone() }];
    small.state.tick = store.state(&news()).await.unwrap().unwrap().tick;
    let mut big = version.markup.clone().unwrap();
    big.xml = large;
    let latest = |markup: &Markup, more: u64| Change {
        latest: vec![(version.id.clone(), markup.clone())],
        base: Revision(small.base.0 + more),
        ..small.clone()
    };
    store.commit(&claim, latest(&big, 0)).await.unwrap();
    assert!(trees.tree(Class::Pieces).len() > pieces);
    store.commit(&claim, latest(version.markup.as_ref().unwrap(), 1)).await.unwrap();
    assert_eq!(trees.tree(Class::Pieces).len(), pieces);
    let change = change(&store, "a version").await;
    store.commit(&claim, change).await.unwrap();
    assert_eq!(trees.tree(Class::Latest).len(), 0);
}

#[tokio::test]
async fn a_purge_leaves_only_its_marks_and_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let claim = claim(&store).await;
    for _ in 0..3 {
        let change = change(&store, &noise(50_000)).await;
        store.commit(&claim, change).await.unwrap();
    }
    store.purge_feed(&news()).await.unwrap();
    let trees = store.opened().unwrap().trees;
    for class in Class::ALL {
        let left = match class {
            Class::Floors => 1,
            Class::Log => 3,
            _ => 0,
        };
        assert_eq!(trees.tree(*class).len(), left, "in {}", class.name());
    }
}

#[tokio::test]
async fn a_purge_that_was_cut_off_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let claim = claim(&store).await;
    let change = change(&store, &noise(50_000)).await;
    store.commit(&claim, change).await.unwrap();
    let state = store.state(&news()).await.unwrap().unwrap();
    let trees = store.opened().unwrap().trees;
    let floor = crate::store::floor::Floor::under(&state, None);
    trees.apply(&purge::forget(&trees, &news(), Some(&floor)).unwrap()).unwrap();
    drop(trees);
    store.close().await.unwrap();

    let store = open(folder.path()).unwrap();
    assert!(store.state(&news()).await.unwrap().is_none());
    let trees = store.opened().unwrap().trees;
    for class in [Class::Ledger, Class::Heads, Class::Bodies, Class::Pieces, Class::Versions] {
        assert!(trees.tree(class).is_empty(), "in {}", class.name());
    }
    assert!(trees.tree(Class::Floors).contains_key(keys::feed(&news())).unwrap());
}
