//! A folder stays with the engine that its store was made with.

use super::damage::used;
use super::*;

on_every_engine! {
    another_engine_is_refused_and_changes_nothing
}

fn other(kind: DiskKind) -> DiskKind {
    *DiskKind::ALL.iter().find(|other| **other != kind).unwrap()
}

async fn another_engine_is_refused_and_changes_nothing(kind: DiskKind) {
    let folder = used(kind).await;
    let before = files(folder.path());
    let said = refused(open(other(kind), folder.path()));
    let (path, found, wanted) = (folder.path().display(), kind.name(), other(kind).name());
    assert_eq!(
        said.to_string(),
        format!(
            "the store in {path} was made with store.kind = \"{found}\", the configuration says \
             \"{wanted}\": set store.kind to \"{found}\", or carry the store over with tidegate \
             export and tidegate import"
        )
    );
    assert!(before == files(folder.path()), "something was changed");
    open(kind, folder.path()).unwrap();
}

/// A store from before there were two has no note.
#[tokio::test]
async fn a_folder_without_a_note_is_of_the_default_engine() {
    let folder = used(DiskKind::Sled).await;
    assert!(!folder.path().join("engine").exists());
    // It was ended before its first mark.
    std::fs::remove_file(folder.path().join("mark")).unwrap();
    let said = refused(open(DiskKind::Fjall, folder.path()));
    assert!(matches!(said, StoreError::OtherEngine { .. }), "{said:?}");
    let empty = tempfile::tempdir().unwrap();
    drop(open(DiskKind::Fjall, empty.path()).unwrap());
    let note = std::fs::read_to_string(empty.path().join("engine")).unwrap();
    assert_eq!(note, "fjall\n");
}

#[test]
fn names_are_those_of_the_configuration() {
    for kind in DiskKind::ALL {
        assert_eq!(DiskKind::named(kind.name()), Some(*kind));
    }
    assert_eq!(DiskKind::named("memory"), None);
}
