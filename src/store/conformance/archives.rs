//! Archives: sealed in the commit that says so, never changed, dropped whole, redacted in place.

use super::make::*;

on_every_store! {
    segments_of_one_commit_have_a_second_each
    text_is_taken_out_in_place
    what_bears_the_id_of_a_redacted_item_stays
}

pub(crate) fn archive_id(text: &str) -> ArchiveId {
    ArchiveId::new(text).unwrap()
}

pub(crate) fn sealing(mut change: Change, id: &str, names: &[&str]) -> Change {
    add_seal(&mut change, id, names.iter().map(|name| super::make::id(name)).collect());
    change.state.updated_at = change.at;
    change
}

async fn seal(store: &StoreFixture, seconds: i64, id: &str, names: &[&str]) {
    let mut draft = edit(store, seconds).await;
    for name in names {
        draft = draft.item(name, &format!("{name} of {seconds}"));
    }
    let change = sealing(draft.done(), id, names);
    store.commit(change).await.unwrap();
}

fn said(archive: &Archive) -> Vec<&str> {
    archive.items.iter().map(|item| item.shared.winner.data.xml.as_str()).collect()
}

async fn segments_of_one_commit_have_a_second_each(store: StoreFixture) {
    seal(&store, 10, "zero", &["z"]).await;
    let draft = edit(&store, 20).await.item("a", "1").item("b", "2").item("c", "3");
    let change = sealing(sealing(draft.done(), "one", &["a"]), "two", &["b"]);
    let change = sealing(change, "three", &["c"]);
    store.commit(change).await.unwrap();
    let notes = store.archives(&feed("news"), 9).await.unwrap();
    let sealed: Vec<Time> = notes.iter().map(|note| note.sealed).collect();
    // The last is that of the feed before.
    assert_eq!(sealed, [time(19), time(18), time(17), time(9)]);
    let place = store.archive_place(&feed("news"), &archive_id("one")).await.unwrap().unwrap();
    assert_eq!(place.next, Some((archive_id("two"), time(18))));
    // An id that an archive has is given to no other one.
    let again = sealing(edit(&store, 30).await.item("a", "4").done(), "one", &["a"]);
    let said = store.commit(again).await.unwrap_err().to_string();
    assert!(said.contains("it gives an archive an id that another has"), "{said}");
    assert_eq!(store.archives(&feed("news"), 9).await.unwrap(), notes);
}

async fn text_is_taken_out_in_place(store: StoreFixture) {
    seal(&store, 1, "one", &["secret", "a"]).await;
    seal(&store, 2, "two", &["b"]).await;
    seal(&store, 3, "three", &["secret"]).await;
    let untouched = store.archive_place(&feed("news"), &archive_id("two")).await.unwrap();
    edit(&store, 7).await.redact("secret", "").commit(&store).await;
    for (name, texts) in [("one", vec!["<entry>a of 1</entry>"]), ("three", vec![])] {
        let archive = store.archive(&feed("news"), &archive_id(name)).await.unwrap().unwrap();
        assert_eq!(said(&archive), texts);
        let deletion =
            Deletion { id: id("secret"), published_id: "urn:secret".to_owned(), when: time(7) };
        assert_eq!(archive.deleted, [deletion]);
        let place = store.archive_place(&feed("news"), &archive_id(name)).await.unwrap().unwrap();
        assert_eq!(place.note.redacted, Some(time(7)));
        assert_eq!(place.note.deletions, 1);
    }
    let place = store.archive_place(&feed("news"), &archive_id("two")).await.unwrap();
    assert_eq!(place, untouched);
    let notes = store.archives(&feed("news"), 9).await.unwrap();
    let bytes: u64 = notes.iter().map(|note| note.bytes).sum();
    assert_eq!(store.state(&feed("news")).await.unwrap().unwrap().archives.bytes, bytes);
}

/// An id that another item bears is not said to be deleted: that would take the other out of readers.
async fn what_bears_the_id_of_a_redacted_item_stays(store: StoreFixture) {
    seal(&store, 1, "one", &["secret", "a"]).await;
    let mut change = edit(&store, 2).await.item("b", "b").done();
    for known in &mut change.known {
        known.published_id = "urn:secret".to_owned();
    }
    store.commit(change).await.unwrap();
    edit(&store, 7).await.redact("secret", "").commit(&store).await;
    let archive = store.archive(&feed("news"), &archive_id("one")).await.unwrap().unwrap();
    assert_eq!((said(&archive).len(), archive.deleted), (1, vec![]));
}
