use super::*;
use crate::clock::ManualClock;
use crate::model::Time;
use crate::store::Store;
use crate::store::conformance::make::{self, Draft};
use crate::store::engine::Class;
use crate::store::purge_mark::PurgeMark;
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
