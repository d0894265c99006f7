//! A damaged store refuses to start, or answers an error where the damage lies; it never panics,
//! never starts anew, and changes nothing.

use super::*;
use crate::store::Select;
use std::fs;

/// A closed store with some data.
async fn used() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    let claim = claim(&store).await;
    for _ in 0..5 {
        let change = change(&store, &noise(30_000)).await;
        store.commit(&claim, change).await.unwrap();
    }
    store.close().await.unwrap();
    folder
}

fn assert_damaged(error: &StoreError, folder: &Path, hint: &str) {
    assert!(matches!(error, StoreError::Damaged { .. }), "{hint}: {error:?}");
    assert!(error.to_string().contains(&folder.display().to_string()), "{hint}: {error}");
}

#[tokio::test]
async fn a_database_cut_short_is_no_new_store() {
    for keep in [0, 1, 100, 5000] {
        let folder = used().await;
        let db = folder.path().join("db");
        fs::File::options().write(true).open(&db).unwrap().set_len(keep).unwrap();
        let before = files(folder.path());
        let said = refused(open(folder.path()));
        assert!(before == files(folder.path()), "cut to {keep}: something was changed");
        assert_damaged(&said, folder.path(), &format!("cut to {keep}"));
    }
}

#[tokio::test]
async fn a_database_that_is_gone_is_no_new_store() {
    let folder = used().await;
    for name in ["db", "conf"] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    for name in files(folder.path()).keys().filter(|name| name.starts_with("snap")) {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    let said = refused(open(folder.path()));
    assert_damaged(&said, folder.path(), "gone");
    assert_eq!(
        said.to_string(),
        format!(
            "the store in {} is damaged: the store was used, and is empty now; nothing was \
             changed: restore the folder from a copy, or move it away and start anew",
            folder.path().display()
        )
    );
}

#[tokio::test]
async fn an_older_database_under_a_newer_mark_is_noticed() {
    let folder = used().await;
    let copy = tempfile::tempdir().unwrap();
    for name in ["db", "conf"] {
        fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let store = open(folder.path()).unwrap();
    let claim = claim(&store).await;
    let change = change(&store, "newer").await;
    store.commit(&claim, change).await.unwrap();
    store.close().await.unwrap();
    for (name, _) in files(folder.path()).iter().filter(|(name, _)| name.starts_with("snap")) {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    for name in ["db", "conf"] {
        fs::copy(copy.path().join(name), folder.path().join(name)).unwrap();
    }
    assert_damaged(&refused(open(folder.path())), folder.path(), "older");
}

#[tokio::test]
async fn damaged_settings_and_marks_refuse_to_open() {
    let cases = [
        ("conf", &b"segment_size: x\n"[..]),
        ("conf", b"\xff\xfe garbage"),
        ("mark", b""),
        ("mark", b"\xff\xfe garbage"),
        ("mark", b"tidegate store mark 1\nendpoint a\nfence 1\nepoch 1\n"),
    ];
    for (name, damage) in cases {
        let folder = used().await;
        fs::write(folder.path().join(name), damage).unwrap();
        let before = files(folder.path());
        let said = refused(open(folder.path()));
        assert_damaged(&said, folder.path(), name);
        assert!(before == files(folder.path()), "{name} {damage:?}: something was changed");
    }
}

#[tokio::test]
async fn a_newer_format_is_left_alone() {
    let folder = used().await;
    let (store, db) = open_raw(folder.path());
    let format = [&[0], 2u32.to_be_bytes().as_slice()].concat();
    db.open_tree("gateway").unwrap().insert(b"format", format).unwrap();
    drop(db);
    store.close().await.unwrap();
    let said = refused(open(folder.path()));
    assert!(matches!(said, StoreError::Newer { found: 2, known: 1, .. }), "{said:?}");
}

/// What was written before 0.1.0 has its number under another key.
#[tokio::test]
async fn a_store_from_before_the_first_release_says_so_and_is_left_alone() {
    let folder = used().await;
    let (store, db) = open_raw(folder.path());
    db.insert(b"\0format", &3u32.to_be_bytes()).unwrap();
    db.flush().unwrap();
    drop(db);
    drop(store);
    let refuse = || {
        let said = refused(open(folder.path()));
        assert!(matches!(said, StoreError::Unreleased { .. }), "{said:?}");
    };
    // sled puts in order what was not closed.
    refuse();
    let before = files(folder.path());
    refuse();
    assert!(before == files(folder.path()), "something was changed");
}

#[tokio::test]
async fn a_damaged_record_names_its_place() {
    let folder = used().await;
    let (store, db) = open_raw(folder.path());
    let ledger = db.open_tree("ledger").unwrap();
    let key = b"news\0a\0";
    ledger.insert(key, b"\0\x02\x01\0garbage").unwrap();
    let said = store.snapshot(&news()).await.unwrap_err();
    assert_damaged(&said, folder.path(), "record");
    assert!(said.to_string().contains(r"in ledger at news\x00a\x00: "), "{said}");
    ledger.remove(key).unwrap();
    let said = store.view(&news(), Select::All).await.unwrap_err();
    assert!(said.to_string().contains("it is missing"), "{said}");
    // A state that cannot be read is found at the start, before anything is served from it.
    db.open_tree("states").unwrap().insert(b"news\0", b"\0\x09\0").unwrap();
    drop((db, ledger));
    drop(store);
    let said = refused(open(folder.path()));
    assert_damaged(&said, folder.path(), "state");
    assert!(said.to_string().contains("its layout has version 9"), "{said}");
}

/// Writes files into a folder of their own.
fn laid_out(files: &BTreeMap<String, Vec<u8>>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

/// Wherever a byte is wrong, after a close or after a crash: the store does not open, or it
/// answers what was stored; and where it does not open, every file is as it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flipped_bytes_never_pass_for_data() {
    const PLACES: usize = 24;
    let folder = used().await;
    let closed = files(folder.path());
    let store = open(folder.path()).unwrap();
    let expected = store.view(&news(), Select::All).await.unwrap();
    let crashed = files(folder.path());
    store.close().await.unwrap();
    for whole in [closed, crashed] {
        let length = whole["db"].iter().rposition(|byte| *byte != 0).unwrap();
        let mut refusals = 0;
        for number in 0..PLACES {
            let place = length * number / PLACES + number * 7919 % 1000;
            let mut bytes = whole.clone();
            for byte in bytes.get_mut("db").unwrap().iter_mut().skip(place).take(4) {
                *byte ^= 0xff;
            }
            let copy = laid_out(&bytes);
            match open(copy.path()) {
                Ok(store) => match store.view(&news(), Select::All).await {
                    Ok(view) => assert_eq!(view, expected, "at {place}"),
                    Err(error) => assert_damaged(&error, copy.path(), &format!("at {place}")),
                },
                Err(error) => {
                    refusals += 1;
                    assert_damaged(&error, copy.path(), &format!("at {place}"));
                    assert!(bytes == files(copy.path()), "at {place}: something was changed");
                }
            }
        }
        assert!(refusals > PLACES / 2, "only {refusals} refused");
        let copy = laid_out(&whole);
        let store = open(copy.path()).unwrap();
        assert_eq!(store.view(&news(), Select::All).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_copy_that_a_crash_left_is_cleared_away() {
    let folder = used().await;
    fs::create_dir(folder.path().join("rehearsal")).unwrap();
    fs::write(folder.path().join("rehearsal/db"), b"half").unwrap();
    open(folder.path()).unwrap();
    assert!(!folder.path().join("rehearsal").exists());
}

#[tokio::test]
async fn a_note_that_was_cut_off_is_no_note() {
    let folder = used().await;
    for note in [&b""[..], b"\x09\0\0", &[0xff; 16]] {
        fs::write(folder.path().join("reached"), note).unwrap();
        open(folder.path()).unwrap();
    }
}
