//! Keeps aggregates up to date: whatever changes in a source is taken over soon.

use super::changes::{FeedsOfKind, wait_for_change};
use super::operator::{AdminService, Gathered};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedStanding};
use tidegate_poll::owns_feed;
use tidegate_store::{Store, StoreError, in_words};
use tokio_util::sync::CancellationToken;

/// Takes over what sources have, until it is told to end.
pub(super) async fn gather(
    store: Arc<dyn Store>,
    desk: Arc<AdminService>,
    cancel: CancellationToken,
) {
    let mut sealed = store.watch_epochs();
    let mut known: HashMap<FeedName, Gathered> = HashMap::new();
    let mut aggregates = FeedsOfKind::new(|record| {
        record.options.sharing.is_aggregate() && record.standing == FeedStanding::Active
    });
    loop {
        match gather_changed(store.as_ref(), &desk, &mut aggregates, &mut known).await {
            Ok(()) => {}
            Err(error) => tracing::warn!(
                error = in_words(&error),
                "aggregates could not be brought up to date"
            ),
        }
        if !wait_for_change(&mut sealed, &cancel).await {
            return;
        }
    }
}

async fn gather_changed(
    store: &dyn Store,
    desk: &AdminService,
    aggregates: &mut FeedsOfKind,
    known: &mut HashMap<FeedName, Gathered>,
) -> Result<(), StoreError> {
    let feeds = store.feed_list().await?;
    known.retain(|name, _| feeds.contains_key(name));
    desk.gathers_only(|name| feeds.contains_key(name));
    for record in aggregates.find(&feeds).iter().filter(|record| owns_feed(store, record)) {
        let gathered = known.entry(record.name.clone()).or_default();
        match desk.gather(record, &feeds, gathered).await {
            Ok(()) => {}
            // One aggregate that cannot be stored must not keep the others from it.
            Err(error) if desk.gather_failed(&record.name, &error) => {
                let error = in_words(&error);
                tracing::warn!(feed = %record.name, error, "an aggregate could not be stored");
            }
            Err(_) => {}
        }
    }
    Ok(())
}
