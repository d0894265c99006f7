//! Keeps aggregates up to date: whatever changes in a source is taken over soon.

use super::operator::{AdminService, Gathered};
use crate::model::{FeedName, FeedRecord, FeedStanding};
use crate::store::{CommitError, Store};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long at most until a change without a version (an item that left, newer bytes) is seen.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// What lies between two looks at least, so that a burst of changes is taken over at once.
const REST: Duration = Duration::from_millis(100);

/// Takes over what sources have, until it is told to end.
pub(super) async fn gather(
    store: Arc<dyn Store>,
    desk: Arc<AdminService>,
    cancel: CancellationToken,
) {
    let mut sealed = store.watch_epochs();
    let mut known: HashMap<FeedName, Gathered> = HashMap::new();
    loop {
        match gather_changed(store.as_ref(), &desk, &mut known).await {
            Ok(()) => {}
            Err(CommitError::Fenced) => return,
            Err(error) => tracing::warn!(%error, "aggregates could not be brought up to date"),
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(REST) => {}
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            // Where nobody seals any more, the store is closing.
            changed = sealed.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

async fn gather_changed(
    store: &dyn Store,
    desk: &AdminService,
    known: &mut HashMap<FeedName, Gathered>,
) -> Result<(), CommitError> {
    let feeds = store.feed_list().await?;
    let is_one = |record: &&Arc<FeedRecord>| {
        record.options.sharing.is_aggregate() && record.standing == FeedStanding::Active
    };
    known.retain(|name, _| feeds.contains_key(name));
    desk.gathers_only(|name| feeds.contains_key(name));
    for record in feeds.values().filter(is_one) {
        let gathered = known.entry(record.name.clone()).or_default();
        match desk.gather(record, &feeds, gathered).await {
            Ok(()) => {}
            Err(CommitError::Fenced) => return Err(CommitError::Fenced),
            // One aggregate that cannot be stored must not keep the others from it.
            Err(error) if desk.gather_failed(&record.name, &error) => {
                tracing::warn!(feed = %record.name, %error, "an aggregate could not be stored");
            }
            Err(_) => {}
        }
    }
    Ok(())
}
