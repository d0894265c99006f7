//! Nothing is left behind: no piece of a value that was overwritten or removed, and no entry of a
//! feed that was purged.

use super::*;
use crate::store::Retention;
use crate::store::engine::Class;
use crate::store::sled::engine::{PIECE, Place};

/// The tree of a class.
fn tree(db: &::sled::Db, class: Class) -> ::sled::Tree {
    db.open_tree(class.name()).unwrap()
}

/// The pieces of large values.
fn pieces(db: &::sled::Db) -> ::sled::Tree {
    db.open_tree("pieces").unwrap()
}

/// How many pieces the values of all classes refer to.
fn referred(db: &::sled::Db) -> usize {
    let roots = Class::ALL.iter().flat_map(|class| tree(db, *class).iter().values());
    let counts = roots.map(|root| match &root.unwrap()[..] {
        [1, high, low, _] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    });
    counts.sum()
}

#[tokio::test]
async fn bytes_of_dropped_versions_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, db) = open_raw(folder.path());
    let claim = claim(&store).await;
    let large = noise(PIECE * 3);
    for round in 0..40 {
        // Some versions have nothing in common, and so no difference that is small.
        let large = if round % 3 == 0 { noise(PIECE * 3 + round) } else { large.clone() };
        let change = change(&store, &format!("{round} {large}")).await;
        store.commit(&claim, change).await.unwrap();
    }
    assert_eq!(tree(&db, Class::Bodies).len(), 40);
    let ten = Retention { versions: 10, ..Retention::default() };
    let pruned = store.prune(&claim, &news(), &ten, Time::from_unix(1_795_200_000)).await.unwrap();
    assert_eq!(pruned.versions, 30);
    assert_eq!(tree(&db, Class::Bodies).len(), 10);
    let in_pieces = pieces(&db).len();
    assert!(in_pieces > 0);
    assert_eq!(in_pieces, referred(&db));
    for place in Place::all() {
        for entry in db.open_tree(place.name()).unwrap().iter() {
            assert!(entry.unwrap().1.len() <= PIECE, "a value in {place:?}");
        }
    }
    assert_eq!(tree(&db, Class::ByTick).len(), 1);

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
    assert!(pieces(&db).len() > in_pieces);
    store.commit(&claim, latest(version.markup.as_ref().unwrap(), 1)).await.unwrap();
    assert_eq!(pieces(&db).len(), in_pieces);
    let change = change(&store, "a version").await;
    store.commit(&claim, change).await.unwrap();
    assert_eq!(tree(&db, Class::Latest).len(), 0);
}

#[tokio::test]
async fn a_purge_leaves_only_its_marks_and_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let (store, db) = open_raw(folder.path());
    let claim = claim(&store).await;
    for _ in 0..3 {
        let change = change(&store, &noise(50_000)).await;
        store.commit(&claim, change).await.unwrap();
    }
    store.purge_feed(&news()).await.unwrap();
    assert!(pieces(&db).is_empty());
    for class in Class::ALL {
        let left = match class {
            Class::Floors => 1,
            Class::Log => 3,
            // The format's number, the identity and the number of list writes.
            Class::Gateway => 3,
            _ => 0,
        };
        assert_eq!(tree(&db, *class).len(), left, "in {}", class.name());
    }
}
