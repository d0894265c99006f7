//! Whose folder it is.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_opening_is_refused_and_hurts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).unwrap();
    let said = refused(open(folder.path()));
    assert!(matches!(said, StoreError::InUse { .. }), "{said:?}");
    let path = folder.path().display();
    let sentence = format!(
        "the data folder {path} is in use by another process; stop it, or use another --data"
    );
    assert_eq!(said.to_string(), sentence);
    commit(&first, "still works").await;
    first.close().await.unwrap();
    open(folder.path()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_is_chosen_once_and_stays_once_it_was_used() {
    let folder = tempfile::tempdir().unwrap();
    let chosen = open_as(folder.path(), None).unwrap().endpoint().clone();
    let text = chosen.as_str();
    assert!(text.starts_with("tg-") && text.len() == 19, "{text}");
    assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'));
    assert_eq!(*open_as(folder.path(), None).unwrap().endpoint(), chosen);
    let other = tempfile::tempdir().unwrap();
    assert_ne!(*open_as(other.path(), None).unwrap().endpoint(), chosen);
    // It cannot change once it was used.
    let store = open_as(folder.path(), Some("one.example")).unwrap();
    assert_eq!(store.endpoint().as_str(), "one.example", "nothing was published yet");
    commit(&store, "text").await;
    drop(store);
    let said = refused(open_as(folder.path(), Some("two.example")));
    let StoreError::Endpoint { stored, wanted } = said else { panic!("{said:?}") };
    assert_eq!((stored.as_str(), wanted.as_str()), ("one.example", "two.example"));
    for configured in [None, Some("one.example")] {
        let store = open_as(folder.path(), configured).unwrap();
        assert_eq!(store.endpoint().as_str(), "one.example");
    }
    // A purge does not make it unused: the log has told of it.
    let store = open_as(folder.path(), None).unwrap();
    store.purge_feed(&news()).await.unwrap();
    drop(store);
    assert!(matches!(refused(open(folder.path())), StoreError::Endpoint { .. }));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    for path in [file.clone(), file.join("below")] {
        let said = refused(open(&path));
        let StoreError::Io { doing, source } = said else { panic!("{said:?}") };
        assert_eq!(doing, "make or open its folder");
        assert!(source.to_string().contains(&path.display().to_string()), "{source}");
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "no folder");
    open(&folder.path().join("a/b/c")).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_large_document_was_noted_with_outlives_the_process_until_it_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Time::from_unix(1_795_191_605);
    let attempt = Attempt { feed: news(), entries: 49_000, begun, kills: 1, is_open: true };
    open(folder.path()).unwrap().note_attempt(&attempt).await.unwrap();
    let store = open(folder.path()).unwrap();
    assert_eq!(store.attempts().await.unwrap(), std::slice::from_ref(&attempt));
    store.note_attempt(&attempt.over()).await.unwrap();
    assert_eq!(store.attempts().await.unwrap(), []);
}
