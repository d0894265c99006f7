//! What was damaged in sled's files.

use crate::disk::faults::damage::{assert_damaged, laid_out, used};
use crate::disk::faults::{commit, files, news, open, refused};
use crate::{Select, View};
use std::collections::BTreeMap;
use std::fs;
use tempfile::TempDir;

#[tokio::test]
async fn a_database_that_is_cut_short_or_gone_is_no_new_store() {
    for keep in [0, 1, 100, 5000] {
        let folder = used().await;
        let db = folder.path().join("db/db");
        fs::File::options().write(true).open(&db).unwrap().set_len(keep).unwrap();
        let said = refused(open(folder.path()));
        assert_damaged(&said, folder.path(), &format!("cut to {keep}"));
    }
    let folder = used().await;
    for name in files(folder.path()).keys().filter(|name| name.starts_with("db/")) {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    let said = refused(open(folder.path()));
    assert_damaged(&said, folder.path(), "gone");
    let why = "is damaged: the store was used, and is empty now; restore it from a copy, or move it away and start anew";
    assert_eq!(said.to_string(), format!("the store in {} {why}", folder.path().display()));
}

#[tokio::test]
async fn an_older_database_under_a_newer_mark_is_noticed() {
    let folder = used().await;
    let older = files(folder.path());
    let store = open(folder.path()).unwrap();
    commit(&store, "newer").await;
    store.close().await.unwrap();
    let mut mixed = files(folder.path());
    mixed.retain(|name, _| !name.starts_with("db/snap"));
    for name in ["db/db", "db/conf"] {
        mixed.insert(name.to_owned(), older[name].clone());
    }
    let folder = laid_out(&mixed);
    assert_damaged(&refused(open(folder.path())), folder.path(), "older");
}

/// A used store that is closed; its files before it was opened last, and while it was open; what it answers.
async fn closed_and_running() -> (TempDir, [BTreeMap<String, Vec<u8>>; 2], Option<View>) {
    let folder = used().await;
    let closed = files(folder.path());
    let store = open(folder.path()).unwrap();
    let expected = store.view(&news(), Select::All).await.unwrap();
    let running = files(folder.path());
    store.close().await.unwrap();
    (folder, [closed, running], expected)
}

/// sled writes a snapshot of its log whenever it opens after a crash. One that was cut off by an end by
/// force, or whose bytes a loss of power took, is none; the store has all that it had.
#[tokio::test]
async fn a_snapshot_that_was_not_written_to_its_end_is_no_damage() {
    let (folder, both, expected) = closed_and_running().await;
    let mut written = files(folder.path()).into_iter();
    let snapshot = written.rfind(|(name, _)| name.starts_with("db/snap."));
    let (name, snapshot) = snapshot.expect("a snapshot was written");
    for whole in both {
        for written in [0, 5, snapshot.len() / 2, snapshot.len()] {
            let mut bytes = whole.clone();
            let unfinished = format!("{name}.generating");
            bytes.insert(unfinished.clone(), snapshot.get(..written).unwrap().to_vec());
            let copy = laid_out(&bytes);
            let store = open(copy.path()).unwrap();
            assert_eq!(store.view(&news(), Select::All).await.unwrap(), expected, "{written}");
            store.close().await.unwrap();
            drop(store);
            assert!(!files(copy.path()).contains_key(&unfinished), "{written}");
        }
    }
}

/// Wherever a byte is wrong, after a close or after a crash: the store does not open, or it
/// answers what was stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bytes_never_pass_for_data() {
    const PLACES: usize = 24;
    let (_, both, expected) = closed_and_running().await;
    for whole in both {
        let length = whole["db/db"].iter().rposition(|byte| *byte != 0).unwrap();
        let mut refusals = 0;
        for number in 0..PLACES {
            let place = length * number / PLACES + number * 7919 % 1000;
            let mut bytes = whole.clone();
            for byte in bytes.get_mut("db/db").unwrap().iter_mut().skip(place).take(4) {
                *byte ^= 0xff;
            }
            let copy = laid_out(&bytes);
            let opened = open(copy.path());
            refusals += usize::from(opened.is_err());
            let answered = match opened {
                Ok(store) => store.view(&news(), Select::All).await,
                Err(error) => Err(error),
            };
            match answered {
                Ok(view) => assert_eq!(view, expected, "at {place}"),
                Err(error) => assert_damaged(&error, copy.path(), &format!("at {place}")),
            }
        }
        assert!(refusals > PLACES / 2, "only {refusals} refused");
        let copy = laid_out(&whole);
        let store = open(copy.path()).unwrap();
        assert_eq!(store.view(&news(), Select::All).await.unwrap(), expected);
    }
}
