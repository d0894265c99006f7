use super::*;
use ::fjall::{CompressionType, Database, PersistMode};

/// A database with some batches in its journal; the journal, and where batches end.
fn journal() -> (tempfile::TempDir, PathBuf, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    // As the store opens it.
    let database = Database::builder(folder.path())
        .journal_compression(CompressionType::None)
        .worker_threads_unchecked(0)
        .open()
        .unwrap();
    let records = database.keyspace("records", Default::default).unwrap();
    let path = folder.path().join("0.jnl");
    let mut ends = vec![extent(&path).unwrap().whole];
    for number in 0_u8..5 {
        let mut batch = database.batch();
        batch.insert(&records, [number], vec![number; usize::from(number) * 40_000]);
        batch.insert(&records, b"count", [number]);
        batch.remove(&records, b"gone");
        batch.commit().unwrap();
        database.persist(PersistMode::SyncAll).unwrap();
        let Extent { whole, is_clean } = extent(&path).unwrap();
        assert!(is_clean && whole > *ends.last().unwrap());
        ends.push(whole);
    }
    drop((records, database));
    (folder, path, ends)
}

#[test]
fn batches_are_read_as_the_engine_writes_them() {
    let (folder, path, ends) = journal();
    let whole = *ends.last().unwrap();
    assert_eq!(extent(&path).unwrap(), Extent { whole, is_clean: true });
    verify_and_cut(folder.path()).unwrap();
    // The engine reads all of it too.
    let database = Database::builder(folder.path()).open().unwrap();
    let records = database.keyspace("records", Default::default).unwrap();
    assert_eq!(records.get(b"count").unwrap().unwrap().to_vec(), [4]);
    drop((records, database));
    assert_eq!(extent(&path).unwrap().whole, whole);
}

/// What a loss of power may leave of the last batch: parts of it, in any order.
#[test]
fn a_torn_end_is_cut_off_and_the_rest_opens() {
    for hole in [(0, 1), (30, 4096), (70_000, 4096), (159_990, 50)] {
        let (folder, path, ends) = journal();
        let [.., before, end] = ends[..] else { panic!("{ends:?}") };
        let mut bytes = std::fs::read(&path).unwrap();
        let from = usize::try_from(before).unwrap() + hole.0;
        let to = (from + hole.1).min(usize::try_from(end).unwrap());
        bytes[from..to].fill(0);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(extent(&path).unwrap(), Extent { whole: before, is_clean: false }, "{hole:?}");
        verify_and_cut(folder.path()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), before);
        let database = Database::builder(folder.path()).open().unwrap();
        let records = database.keyspace("records", Default::default).unwrap();
        assert_eq!(records.get(b"count").unwrap().unwrap().to_vec(), [3], "{hole:?}");
    }
}

#[test]
fn what_is_wrong_in_a_journal_that_others_follow_is_damage() {
    let (folder, path, ends) = journal();
    let next = folder.path().join("1.jnl");
    std::fs::copy(&path, &next).unwrap();
    verify_and_cut(folder.path()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[usize::try_from(ends[2]).unwrap() + 30] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = verify_and_cut(folder.path()).unwrap_err();
    let expected = format!("the journal 0.jnl is not as it was written at {}", ends[2]);
    assert!(matches!(&error, JournalError::Damaged(what) if *what == expected), "{error:?}");
    assert!(std::fs::read(&path).unwrap() == bytes, "it was changed");
    std::fs::rename(&next, folder.path().join("2.jnl")).unwrap();
    let error = verify_and_cut(folder.path()).unwrap_err();
    let expected = "a journal after 0.jnl is missing";
    assert!(matches!(&error, JournalError::Damaged(what) if what == expected), "{error:?}");
}
