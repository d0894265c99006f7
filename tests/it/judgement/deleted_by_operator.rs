use crate::support::prelude::*;
use crate::support::sharing::{first, id};
use tidegate_judge::record::DeletionError;

async fn id_of(gate: &Gate, day: u32) -> SyncId {
    gate.known(&post(day).id).await.id
}

#[tokio::test]
async fn what_waits_is_deleted_at_once() {
    let mut gate = Gate::new().await;
    // The wall clock is ahead of the running time, by which absences age.
    gate.lead = 5 * HOUR;
    gate.posts(&days(1..=12)).await;
    let without: Vec<_> = days(1..=12).into_iter().filter(|p| p.day != 7).collect();
    gate.later(1).posts(&without).await;
    let since = gate.wall();
    gate.later(2);
    let id = id_of(&gate, 7).await;
    assert!(gate.known(&post(7).id).await.absence.is_some());
    let verdict = gate.delete_missing(&id).await.unwrap().unwrap();
    let event = &verdict.events()[0];
    let said = format!("deleted by the operator: it is missing since {since}; gone while older");
    assert!(event.reason.starts_with(&said), "{}", event.reason);
    assert_eq!(event.seen_gone, Some(since));
    let known = gate.known(&post(7).id).await;
    assert!(known.is_tombstone() && known.absence.is_none(), "{known:?}");
    // Nothing is left to be decided.
    assert_eq!(gate.store_state().await.next_decision_at, None);
}

#[tokio::test]
async fn what_is_listed_unknown_or_made_elsewhere_is_not_deleted() {
    let mut gate = Gate::new().await;
    gate.posts(&days(1..=12)).await;
    let listed = id_of(&gate, 7).await;
    assert_eq!(gate.delete_missing(&listed).await, Err(DeletionError::Listed));
    let unknown = id("x.unknown");
    assert_eq!(gate.delete_missing(&unknown).await, Err(DeletionError::Unknown));
    gate.options.sharing.local = true;
    assert_eq!(gate.delete_missing(&listed).await, Err(DeletionError::NotObserved));
    gate.options.sharing.local = false;
    gate.redact_item(&listed).await;
    assert_eq!(gate.delete_missing(&listed).await, Ok(None));

    let mut gate = Gate::new().await;
    gate.shares(&[first("a", "A"), first("b", "B")]).await;
    gate.shares(&[first("a", "A")]).await;
    let shared = id("x.b");
    assert_eq!(gate.delete_missing(&shared).await, Err(DeletionError::NotObserved));
}
