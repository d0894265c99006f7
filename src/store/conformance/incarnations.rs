//! What goes on where another store was, and what begins a life of its own: a compacted store, and a copy.

use super::carry::{import, pieces, send_messages};
use super::make::*;
use super::{EngineKind, StoreFixture, endpoint, on_every_store};
use crate::portable::ImportMessage;
use std::sync::Arc;
use tidegate_core::clock::ManualClock;

on_every_store! {
    a_copy_begins_a_life_of_its_own
    a_restored_store_begins_a_life_of_its_own
    a_place_has_one_name_whatever_restarts
}

/// A place in the log of a store, as clients name it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place(u32, u64);

fn newest(store: &Store) -> Place {
    let epoch = store.watch_epochs().borrow().0;
    Place(store.lineage().mark_at(epoch, epoch).unwrap(), epoch)
}

fn knows(store: &Store, Place(mark, epoch): Place) -> bool {
    store.lineage().reaches(mark, epoch, store.watch_epochs().borrow().0)
}

/// Commits so many changes; the place after each.
async fn changes(store: &StoreFixture, seconds: std::ops::Range<i64>) -> Vec<Place> {
    let mut places = Vec::new();
    for second in seconds {
        let draft = edit(store, second).await.item("a", &second.to_string());
        draft.order(&["a"]).commit(store).await;
        places.push(newest(store));
    }
    places
}

/// Another store with the same records.
async fn restored(store: &Store, kind: EngineKind) -> StoreFixture {
    let fixture = StoreFixture::new(kind);
    import(&fixture.store, pieces(store).await).await.unwrap();
    fixture.reopen().await
}

/// A copy, made at the second `now`.
async fn copied(store: &Store, kind: EngineKind, now: i64) -> StoreFixture {
    let fixture = StoreFixture::new(kind);
    fixture.clock.set(time(now));
    let all = pieces(store).await.into_iter().map(ImportMessage::Record);
    send_messages(&fixture.store, all.chain([ImportMessage::End]), true).await.unwrap();
    fixture.reopen().await
}

async fn state(store: &Store) -> FeedState {
    store.state(&feed("news")).await.unwrap().unwrap()
}

/// Compacted once and once more: with the same epochs, places and tags. Nobody who followed the one is reset by the other.
#[tokio::test]
async fn a_compacted_store_goes_on() {
    let mut fixture = StoreFixture::new(EngineKind::Disk);
    let mut places = changes(&fixture, 1..5).await;
    for seconds in [5..8, 8..10] {
        let store = Arc::clone(&fixture);
        let before = state(&store).await;
        fixture = restored(&store, EngineKind::Disk).await;
        assert_eq!((&state(&fixture).await, newest(&fixture)), (&before, newest(&store)));
        places.extend(changes(&fixture, seconds).await);
        // No epoch is missing and none comes twice, and the store knows the place after each.
        assert!(places.is_sorted_by(|one, next| one.1 + 1 == next.1), "{places:?}");
        assert!(places.iter().all(|place| knows(&fixture, *place)));
        let (mark, after) = (before.lineage.mark().unwrap(), state(&fixture).await);
        assert!(after.lineage.made(mark, before.render_revision, after.render_revision));
    }
}

async fn a_copy_begins_a_life_of_its_own(store: StoreFixture) {
    let before = changes(&store, 1..5).await;
    let second = &copied(&store, store.kind, 20).await;
    let ahead = changes(&store, 5..30).await;
    is_apart(second, &before, &ahead).await;
    // A copy of a copy is a third.
    let shared = newest(second);
    let third = copied(second, EngineKind::Memory, 70).await;
    let (of_second, own) = (changes(second, 71..75).await, changes(&third, 71..85).await);
    assert!(before.iter().chain(&own).all(|place| knows(&third, *place)));
    assert!(knows(&third, shared) && knows(second, shared));
    assert!(ahead.iter().chain(&of_second).all(|place| !knows(&third, *place)));
    assert!(of_second.iter().all(|place| knows(second, *place)));
    assert!(own.iter().all(|place| !knows(second, *place)));
}

/// In its place, and not by way of a file.
async fn a_restored_store_begins_a_life_of_its_own(fixture: StoreFixture) {
    let before = changes(&fixture, 1..5).await;
    let restored = restored(&fixture.store, fixture.kind).await;
    let ahead = changes(&fixture, 5..30).await;
    restored.clock.set(time(20));
    assert_eq!(restored.reincarnate().await.unwrap(), 1);
    assert_eq!(state(&restored).await.gap, Some(Gap { since: time(4), until: time(20) }));
    is_apart(&restored, &before, &ahead).await;
}

/// What was there before the copy is known to it, and nothing that came after.
async fn is_apart(copy: &StoreFixture, before: &[Place], ahead: &[Place]) {
    let known = newest(copy).1;
    // It announces that each feed begins anew.
    let last = copy.epochs_after(Epoch(known - 1), 9).await.unwrap();
    let after = state(copy).await;
    let told: Vec<_> = last.iter().flat_map(|closed| &closed.changes).collect();
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0].feed, Some(told[0].tick)), (&feed("news"), after.tick));
    assert_eq!((after.tick, after.window_start), (Some(tick(20)), Some(tick(20))));
    for seconds in 21..60 {
        assert!(before.iter().all(|place| knows(copy, *place)));
        assert!(ahead.iter().all(|place| !knows(copy, *place)), "at {}", newest(copy).1);
        changes(copy, seconds..seconds + 1).await;
    }
}

async fn a_place_has_one_name_whatever_restarts(mut fixture: StoreFixture) {
    let mut places = changes(&fixture, 1..3).await;
    for round in 0..9_i64 {
        fixture = fixture.reopen().await;
        assert_eq!(newest(&fixture), *places.last().unwrap(), "nothing came since");
        if round % 4 == 0 {
            places.extend(changes(&fixture, round + 3..round + 4).await);
        }
    }
    assert!(places.iter().all(|place| knows(&fixture, *place)));
    assert!(!knows(&fixture, Place(places[0].0, 9)));
    // An opening that made nothing is forgotten: only so many are known.
    assert!(fixture.lineage().stretches().len() <= 4);
}

/// A gateway that was started over the place once, before the import, has given its SUP ids to nobody.
#[tokio::test]
async fn an_import_brings_what_sup_ids_are_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let open = |endpoint, sup_ids| {
        let request = DiskRequest::new(folder.path(), endpoint);
        let clock = Arc::new(ManualClock::at(time(0)));
        Store::open_on_disk(DiskRequest { sup_ids, ..request }, clock).unwrap()
    };
    let fixture = StoreFixture::new(EngineKind::Disk);
    changes(&fixture, 1..5).await;
    let first = open(None, None);
    assert_eq!(first.sup_ids(), SupIdBasis::Name);
    first.close().await.unwrap();
    drop(first);

    let filled = open(Some(endpoint()), Some(SupIdBasis::Endpoint));
    import(&filled, pieces(&fixture.store).await).await.unwrap();
    filled.close().await.unwrap();
    drop(filled);
    // From now on the store has its own, whatever is asked for.
    for asked in [None, Some(SupIdBasis::Name)] {
        let store = open(None, asked);
        assert_eq!((store.endpoint(), store.sup_ids()), (&endpoint(), SupIdBasis::Endpoint));
        store.close().await.unwrap();
    }
    // Nor does it take the place of another, whatever its name.
    let other = Some(EndpointId::own("other.example").unwrap());
    let request = DiskRequest::new(folder.path(), other);
    let request = DiskRequest { sup_ids: Some(SupIdBasis::Name), ..request };
    let refused = Store::open_on_disk(request, Arc::new(ManualClock::at(time(0))));
    assert!(matches!(refused, Err(StoreError::Occupied { .. })));
}
