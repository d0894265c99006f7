//! An import that breaks off between two feeds: nothing of what came contradicts itself, and it is not all.

use super::carry::{pieces, send_messages};
use super::make::*;
use super::{EngineKind, Home, StoreFixture, endpoint, on_every_store};
use crate::portable::{ExportRecord, ImportMessage};
use crate::*;
use std::sync::Arc;

on_every_store! {
    what_breaks_off_between_two_feeds_is_not_whole
}

/// Hands over the first of two feeds, and does not say that this is the end.
async fn break_off(fixture: &StoreFixture) -> Result<(), CommitError> {
    let other = StoreFixture::new(EngineKind::Memory);
    let store = other.store();
    for name in ["a", "b"] {
        Draft::on(&store, name, 1).await.item("i", "I").order(&["i"]).commit(&store).await;
    }
    let all = pieces(&store).await;
    let first = all.iter().position(|piece| matches!(piece, ExportRecord::State(..))).unwrap();
    assert!(first + 1 < all.len(), "one feed is all");
    send_messages(fixture, all.into_iter().take(first + 1).map(ImportMessage::Record)).await
}

async fn what_breaks_off_between_two_feeds_is_not_whole(fixture: StoreFixture) {
    let refused = break_off(&fixture).await;
    let partly = matches!(refused, Err(CommitError::Store(StoreError::PartlyImported { .. })));
    assert!(partly, "{refused:?}");
}

/// A part of a state is never taken for the whole of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_broke_off_is_not_opened() {
    let is_refused = |opened: Result<Store, StoreError>| {
        matches!(opened, Err(StoreError::PartlyImported { .. }))
    };
    let fixture = StoreFixture::new(EngineKind::Memory);
    break_off(&fixture).await.unwrap_err();
    assert!(is_refused(fixture.store.reopen()));
    let fixture = StoreFixture::new(EngineKind::Disk);
    break_off(&fixture).await.unwrap_err();
    fixture.store.close().await.unwrap();
    let Home::Disk(folder) = fixture.home else { unreachable!() };
    assert!(is_refused(Store::on_disk(folder.path(), Some(endpoint()), Arc::new(fixture.clock))));
}
