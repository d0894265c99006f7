//! A damaged store refuses to start, or answers an error where the damage lies; it never panics, and
//! never starts anew.

use super::*;
use crate::Select;
use crate::engine::{Class, Writes};
use std::fs;

pub(crate) async fn used() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for _ in 0..5 {
        commit(&store, &noise(30_000)).await;
    }
    store.close().await.unwrap();
    folder
}

pub(crate) fn assert_damaged(error: &StoreError, folder: &Path, hint: &str) {
    assert!(matches!(error, StoreError::Damaged { .. }), "{hint}: {error:?}");
    assert!(error.to_string().contains(&folder.display().to_string()), "{hint}: {error}");
}

pub(crate) fn laid_out(files: &BTreeMap<String, Vec<u8>>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    folder
}

/// Sets or removes one record below the store.
fn put(engine: &dyn Engine, class: Class, key: &[u8], value: Option<&[u8]>) {
    let value = value.map(<[u8]>::to_vec);
    engine.apply(Writes::from([((class, key.to_vec()), value)])).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_marks_and_settings_refuse_to_open() {
    for (name, damage) in [
        ("mark", &b""[..]),
        ("mark", b"\xff\xfe garbage"),
        ("mark", b"{\"endpoint\":\"a\",\"fence\":1}"),
        // Those of the engine.
        ("db/conf", b"segment_size: x\n"),
        ("db/conf", b"\xff\xfe garbage"),
    ] {
        let folder = used().await;
        fs::write(folder.path().join(name), damage).unwrap();
        let before = files(folder.path());
        let said = refused(open(folder.path()));
        assert_damaged(&said, folder.path(), name);
        assert!(before == files(folder.path()), "{name} {damage:?}: something was changed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_format_is_left_alone() {
    let folder = used().await;
    let (store, engine) = open_raw(folder.path());
    put(&*engine, Class::Gateway, b"format", Some(&2u32.to_be_bytes()));
    drop(engine);
    store.close().await.unwrap();
    let said = refused(open(folder.path()));
    assert!(matches!(said, StoreError::Format { found: 2, known: 1, .. }), "{said:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_record_names_its_place() {
    let folder = used().await;
    let (store, engine) = open_raw(folder.path());
    let key = b"news\0a\0";
    put(&*engine, Class::Items, key, Some(b"\x02\x01\0garbage"));
    let said = store.snapshot(&news()).await.unwrap_err();
    assert_damaged(&said, folder.path(), "record");
    assert!(said.to_string().contains(r"in items at news\x00a\x00: "), "{said}");
    put(&*engine, Class::Items, key, None);
    let said = store.view(&news(), Select::All).await.unwrap_err();
    assert!(said.to_string().contains("it is missing"), "{said}");
    // A state that cannot be read is found at the start, before anything is served from it.
    put(&*engine, Class::States, b"news\0", Some(b"\x09\0"));
    drop(engine);
    drop(store);
    let said = refused(open(folder.path()));
    assert_damaged(&said, folder.path(), "state");
    assert!(said.to_string().contains("it has layout 9"), "{said}");
}
