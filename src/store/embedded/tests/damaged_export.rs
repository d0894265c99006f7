//! What cannot be taken in elsewhere, or not be read there, is not handed over.

use super::*;
use crate::conformance::archives::sealing;
use crate::conformance::carry::export;

/// A store on disk whose feed has something of everything that is stored as a difference or in blocks.
async fn full(folder: &std::path::Path) -> Store {
    let store = open(folder).unwrap();
    for seconds in 1..6 {
        let long = format!("{seconds} {}", "and so on ".repeat(900));
        let draft = edit(&store, seconds).await.item("a", &long).order(&["a"]);
        draft.around(&long).commit(&store).await;
    }
    let draft = edit(&store, 7).await.item("b", "B").order(&["b", "a"]);
    store.commit(sealing(draft.done(), "one", &["a"])).await.unwrap();
    store
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_of_a_damaged_feed_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = full(folder.path()).await;
    let whole = export(&store).await.unwrap();
    let records = store.inner.opened().unwrap().records;
    let (mut differences, mut tried) = (0, 0);
    for class in [Class::Past, Class::Items, Class::Texts, Class::Archives, Class::Segments] {
        let entries: Vec<_> = records.entries(class, &[]).map(Result::unwrap).collect();
        assert!(!entries.is_empty(), "{}", class.name());
        for (at, (key, value)) in entries.iter().enumerate() {
            differences += usize::from(class == Class::Past && value[1] == 2);
            let cut = value[..value.len() - 3].to_vec();
            // The oldest document goes by itself, where its time has come.
            let gone = (class != Class::Past || at > 0).then_some(None);
            for damage in [Some(Some(cut)), gone].into_iter().flatten() {
                let set = |value| Writes::from([((class, key.clone()), value)]);
                records.engine().apply(set(damage.clone())).unwrap();
                let said = export(&store).await;
                let place = (class.name(), key.escape_ascii().to_string(), damage.is_some());
                assert!(matches!(said, Err(StoreError::Damaged { .. })), "{place:?}: {said:?}");
                records.engine().apply(set(Some(value.to_vec()))).unwrap();
                tried += 1;
            }
        }
    }
    assert!(differences > 1 && tried > 20, "{differences} {tried}");
    assert_eq!(export(&store).await.unwrap(), whole);
}
