use super::*;
use crate::clock::ManualClock;
use crate::model::{Context, Time};
use crate::store::conformance::make::{self, Draft};
use crate::store::engine::Class;
use crate::store::purge_mark::PurgeMark;
use crate::store::{CommitError, Select, Store};
use std::time::Duration;

fn open(folder: &std::path::Path) -> EmbeddedStore {
    let clock = Arc::new(ManualClock::at(Time::from_unix(1_795_191_605)));
    EmbeddedStore::on_disk(folder, EndpointId::own("gate.example").ok(), clock).unwrap()
}

#[tokio::test]
async fn a_purge_that_was_cut_off_is_finished_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let feed = make::feed("news");
    let claim = store.claims(1, Duration::from_secs(9)).await.unwrap().remove(0);
    let change = Draft::on(&store, "news", 1).await.item("a", "A").order(&["a"]).done();
    store.commit(&claim, change).await.unwrap();
    let state = store.state(&feed).await.unwrap().unwrap();
    let records = store.inner.opened().unwrap().records;
    let floor = PurgeMark::under(&state, 0, None);
    records.engine().apply(purge::forget(&records, &feed, Some(&floor)).unwrap()).unwrap();
    drop(records);
    store.close().await.unwrap();

    let store = open(folder.path());
    assert!(store.state(&feed).await.unwrap().is_none());
    let records = store.inner.opened().unwrap().records;
    for class in [Class::Ledger, Class::Heads, Class::Bodies, Class::Versions] {
        assert_eq!(records.entries(class, &[]).count(), 0, "in {}", class.name());
    }
    assert!(records.contains(Class::Floors, &keys::feed(&feed)).unwrap());
}

/// A change that cannot be written whole is undone, also what of it was written; and what a reader needed
/// goes when he is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_for_readers_and_for_undoing_goes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let feed = make::feed("news");
    let claim = store.claims(1, Duration::from_secs(9)).await.unwrap().remove(0);
    let names: Vec<String> = (0..30).map(|item| format!("item-{item:02}")).collect();
    let draft = async |at, text: &str| {
        let draft = Draft::on(&store, "news", at).await;
        names.iter().fold(draft, |draft, name| draft.item(name, text))
    };
    let kept = || {
        let records = store.inner.opened().unwrap().records;
        let all = || crate::store::engine::beginning_with(&[]);
        [Class::Undo, Class::Unfinished].map(|class| records.stored(class, all()).count())
    };
    store.commit(&claim, draft(1, "one").await.done()).await.unwrap();
    let reader = store.pin(&feed).await.unwrap().unwrap();
    let before = Arc::clone(&reader).view(Select::All).await.unwrap();

    // An item of too many bytes for one value is found out after the first portions.
    let mut change = draft(3, "two").await.done();
    let last = change.versions.len() - 1;
    let context = Context { base: Some("x".repeat(40 << 20)), ..Context::default() };
    change.versions[last].markup.as_mut().unwrap().context = context;
    let said = store.commit(&claim, change).await.unwrap_err();
    assert!(matches!(said, CommitError::Store(StoreError::TooLarge { .. })), "{said:?}");
    assert_eq!(kept(), [0, 0], "a change was not undone");
    assert_eq!(store.view(&feed, Select::All).await.unwrap(), before);

    store.commit(&claim, draft(5, "three").await.done()).await.unwrap();
    assert!(kept()[0] > 30, "what the reader needs is gone");
    assert_eq!(Arc::clone(&reader).view(Select::All).await.unwrap(), before);
    drop(reader);
    for at in [7, 9] {
        let change = Draft::on(&store, "news", at).await.item("item-01", "four").done();
        store.commit(&claim, change).await.unwrap();
    }
    let left = async {
        while kept()[0] > 0 {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(Duration::from_secs(20), left).await.unwrap();
}
