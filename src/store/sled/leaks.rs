//! No piece of a value is left behind that was overwritten or removed.

use super::engine::{PIECE, PIECES};
use crate::disk::faults::{change, commit, news, noise, open};
use crate::engine::Class;
use crate::{Retention, Store};
use std::path::Path;
use tidegate_core::model::{Change, LedgerEntry, Markup, Revision, Time};

fn entries(db: &::sled::Db, class: Class) -> impl Iterator<Item = ::sled::IVec> {
    db.scan_prefix([class as u8]).values().map(Result::unwrap)
}

/// How many pieces of large values there are.
fn pieces(db: &::sled::Db) -> usize {
    db.scan_prefix([PIECES]).count()
}

/// How many pieces the values of all classes refer to.
fn referred(db: &::sled::Db) -> usize {
    let roots = Class::ALL.iter().flat_map(|class| entries(db, *class));
    let counts = roots.map(|root| match &root[..] {
        [1, size @ ..] => {
            let size = u32::from_be_bytes(size.try_into().unwrap());
            usize::try_from(size).unwrap().div_ceil(PIECE)
        }
        _ => 0,
    });
    counts.sum()
}

/// Looks at the database of a store, which is closed meanwhile.
async fn look<T>(store: Store, folder: &Path, read: impl FnOnce(&::sled::Db) -> T) -> (Store, T) {
    store.close().await.unwrap();
    drop(store);
    let db = ::sled::open(folder.join("db")).unwrap();
    let found = read(&db);
    drop(db);
    (open(folder).unwrap(), found)
}

#[tokio::test]
async fn bytes_of_dropped_versions_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let store = open(folder).unwrap();
    let large = noise(PIECE * 3);
    for round in 0..40 {
        // Some versions have nothing in common, and so no difference that is small.
        let large = if round % 3 == 0 { noise(PIECE * 3 + round) } else { large.clone() };
        commit(&store, &format!("{round} {large}")).await;
    }
    let (store, bodies) = look(store, folder, |db| entries(db, Class::Texts).count()).await;
    assert_eq!(bodies, 40);
    let ten = Retention { versions: 10, ..Retention::default() };
    let pruned = store.prune(&news(), &ten, Time::from_unix(1_795_200_000)).await.unwrap();
    assert_eq!(pruned.versions, 30);
    let (store, in_pieces) = look(store, folder, |db| {
        assert_eq!(entries(db, Class::Texts).count(), 10);
        let in_pieces = pieces(db);
        assert!(in_pieces > 0);
        assert_eq!(in_pieces, referred(db));
        for entry in db.iter().values() {
            assert!(entry.unwrap().len() <= PIECE);
        }
        assert_eq!(entries(db, Class::Index).count(), 1);
        in_pieces
    })
    .await;

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
    store.commit(latest(&big, 0)).await.unwrap();
    let (store, more) = look(store, folder, pieces).await;
    assert!(more > in_pieces);
    store.commit(latest(version.markup.as_ref().unwrap(), 1)).await.unwrap();
    let (store, now) = look(store, folder, pieces).await;
    assert_eq!(now, in_pieces);
    commit(&store, "a version").await;
    let (store, left) = look(store, folder, |db| entries(db, Class::Texts).count()).await;
    assert_eq!(left, 11, "the newest bytes that made no version are gone");
    store.purge_feed(&news()).await.unwrap();
    let (_, left) = look(store, folder, pieces).await;
    assert_eq!(left, 0);
}
