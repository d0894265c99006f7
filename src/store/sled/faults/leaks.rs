//! Nothing is left behind: no piece of a value that was overwritten or removed, and no entry of a
//! feed that was purged.

use super::*;
use crate::store::Retention;
use crate::store::sled::keys;
use crate::store::sled::purge;
use crate::store::sled::trees::{Class, PIECE, Trees};

/// How many pieces the values of all classes refer to.
fn referred(trees: &Trees) -> usize {
    let others = Class::ALL.iter().filter(|class| !matches!(class, Class::Pieces | Class::ByTick));
    let roots = others.flat_map(|class| trees.tree(*class).iter().values());
    let counts = roots.map(|root| match &root.unwrap()[..] {
        [1, high, low] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    });
    counts.sum()
}

#[tokio::test]
async fn bytes_of_dropped_versions_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let claim = claim(&store).await;
    let large = noise(PIECE * 3);
    for round in 0..40 {
        // Some versions have nothing in common, and so no difference that is small.
        let large = if round % 3 == 0 { noise(PIECE * 3 + round) } else { large.clone() };
        let change = change(&store, &format!("{round} {large}")).await;
        store.commit(&claim, change).await.unwrap();
    }
    let trees = store.opened().unwrap().trees;
    assert_eq!(trees.tree(Class::Bodies).len(), 40);
    let ten = Retention { versions: 10, ..Retention::default() };
    let pruned = store.prune(&claim, &news(), &ten, Time::from_unix(1_795_200_000)).await.unwrap();
    assert_eq!(pruned.versions, 30);
    assert_eq!(trees.tree(Class::Bodies).len(), 10);
    let pieces = trees.tree(Class::Pieces).len();
    assert!(pieces > 0);
    assert_eq!(pieces, referred(&trees));
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
    small.known = vec![LedgerEntry { touched: small.state.render_revision, ..ledger[0].clone() }];
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
    let floor = crate::store::purge_mark::PurgeMark::under(&state, 0, None);
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
