//! What was damaged in fjall's files: the store does not open, or it answers what was stored, or an error
//! where the damage lies.

use super::{FOLDER, TABLES};
use crate::disk::faults::damage::{assert_damaged, laid_out, used};
use crate::disk::faults::{change, claim, files, news, noise, open, refused};
use crate::{DiskKind, Select, Store};
use std::collections::BTreeMap;
use std::fs;

const KIND: DiskKind = DiskKind::Fjall;

type Files = BTreeMap<String, Vec<u8>>;

/// The files of a store, closed and as a crash leaves them, some of it sorted into tables.
async fn closed_and_crashed() -> (Files, Files, tempfile::TempDir) {
    let folder = used(KIND).await;
    // A second journal, and tables.
    let database = ::fjall::Database::builder(folder.path().join(FOLDER)).open().unwrap();
    for name in ["feeds", "items", "texts"] {
        let records = database.keyspace(name, Default::default).unwrap();
        records.rotate_memtable_and_wait().unwrap();
    }
    drop(database);
    let store = open(KIND, folder.path()).unwrap();
    let claim = claim(&store).await;
    for _ in 0..3 {
        let change = change(&store, &noise(30_000)).await;
        store.commit(&claim, change).await.unwrap();
    }
    let crashed = files(folder.path());
    store.close().await.unwrap();
    drop(store);
    let closed = files(folder.path());
    assert!(closed.keys().any(|name| name.contains(TABLES)), "there are no tables");
    (closed, crashed, folder)
}

/// Whoever opens the files finds all of it, or an error; what was refused is as it was. Whether it was refused.
async fn verify(bytes: &Files, expected: &Option<crate::View>, hint: &str) -> bool {
    let copy = laid_out(bytes);
    match open(KIND, copy.path()) {
        Ok(store) => match store.view(&news(), Select::All).await {
            Ok(view) => assert!(view == *expected, "{hint}: another view"),
            Err(error) => assert_damaged(&error, copy.path(), hint),
        },
        Err(error) => {
            assert!(error.to_string().contains("store"), "{hint}: {error}");
            assert!(*bytes == files(copy.path()), "{hint}: something was changed: {error}");
            return true;
        }
    }
    false
}

fn is_engines(name: &str) -> bool {
    name.starts_with(FOLDER) && !name.ends_with("lock")
}

/// The length of a file without the zeros that were only preallocated.
fn used_bytes(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bytes_never_pass_for_data() {
    const PLACES: usize = 6;
    let (closed, crashed, folder) = closed_and_crashed().await;
    let store = open(KIND, folder.path()).unwrap();
    let expected = store.view(&news(), Select::All).await.unwrap();
    drop(store);
    for whole in [closed, crashed] {
        let mut refusals = 0;
        for name in whole.keys().filter(|name| is_engines(name)) {
            let length = used_bytes(&whole[name]);
            for number in 0..PLACES {
                let place = length * number / PLACES;
                let mut bytes = whole.clone();
                for byte in bytes.get_mut(name).unwrap().iter_mut().skip(place).take(4) {
                    *byte ^= 0xff;
                }
                let hint = format!("{name} at {place}");
                refusals += usize::from(verify(&bytes, &expected, &hint).await);
            }
        }
        assert!(refusals > PLACES, "only {refusals} refused");
        assert!(!verify(&whole, &expected, "whole").await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_cut_short_or_gone_never_pass_for_data() {
    const PLACES: usize = 4;
    let (closed, crashed, folder) = closed_and_crashed().await;
    let store = open(KIND, folder.path()).unwrap();
    let expected = store.view(&news(), Select::All).await.unwrap();
    drop(store);
    for whole in [closed, crashed] {
        for name in whole.keys().filter(|name| is_engines(name) && !name.ends_with(".passed")) {
            for number in 0..PLACES {
                let length = used_bytes(&whole[name]) * number / PLACES;
                let mut bytes = whole.clone();
                bytes.get_mut(name).unwrap().truncate(length);
                verify(&bytes, &expected, &format!("{name} cut to {length}")).await;
            }
            let mut bytes = whole.clone();
            bytes.remove(name);
            verify(&bytes, &expected, &format!("{name} gone")).await;
        }
    }
}

#[tokio::test]
async fn a_database_that_is_gone_is_no_new_store() {
    let folder = used(KIND).await;
    fs::remove_dir_all(folder.path().join(FOLDER)).unwrap();
    let before = files(folder.path());
    assert_damaged(&refused(open(KIND, folder.path())), folder.path(), "gone");
    assert!(before == files(folder.path()), "something was changed");
}

/// A process that ended while it made the database has left some files of it.
#[tokio::test]
async fn a_database_that_was_never_made_whole_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(KIND, folder.path()).unwrap());
    let database = folder.path().join(FOLDER);
    fs::remove_file(database.join("version")).unwrap();
    fs::remove_file(folder.path().join("fjall.passed")).unwrap();
    fs::remove_file(folder.path().join("mark")).unwrap();
    fs::remove_file(folder.path().join("reached")).unwrap();
    open(KIND, folder.path()).unwrap();
}

#[tokio::test]
async fn an_older_database_is_noticed() {
    let folder = used(KIND).await;
    let older = files(folder.path());
    let store = open(KIND, folder.path()).unwrap();
    let claim = claim(&store).await;
    // It makes no epoch, which a mark would tell of.
    store.checkpoint(&claim, &[crate::conformance::make::poll_state("news")]).await.unwrap();
    store.close().await.unwrap();
    drop(store);
    for (name, bytes) in files(folder.path()) {
        if name.ends_with(".jnl") && older.get(&name) != Some(&bytes) {
            fs::write(folder.path().join(&name), &older[&name]).unwrap();
        }
    }
    let said = refused(open(KIND, folder.path()));
    assert_damaged(&said, folder.path(), "older");
    assert!(said.to_string().contains("was durable, and is missing"), "{said}");
}

/// The engine would make a tree anew that is gone, and nobody would notice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_that_is_gone_is_noticed() {
    let (closed, _, _folder) = closed_and_crashed().await;
    for tree in 0..4 {
        let folder = format!("{FOLDER}/keyspaces/{tree}/");
        assert!(closed.keys().any(|name| name.starts_with(&folder)), "there is no tree {tree}");
        let mut bytes = closed.clone();
        bytes.retain(|name, _| !name.starts_with(&folder));
        let copy = laid_out(&bytes);
        assert_damaged(&refused(open(KIND, copy.path())), copy.path(), &folder);
        assert!(bytes == files(copy.path()), "{tree}: something was changed");
    }
}
