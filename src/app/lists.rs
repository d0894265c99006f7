//! Keeps the feeds of subscription lists up to date (`add_feeds`): whatever a list says once its document was
//! judged is taken over soon. A document that is held, cut off or broken changes no item, and so no feed.

use super::changes::{FeedsOfKind, wait_for_change};
use super::operator::{AdminService, SeenList};
use std::collections::HashMap;
use std::sync::Arc;
use tidegate_core::model::{FeedName, FeedRecord};
use tidegate_poll::owns_feed;
use tidegate_store::{Store, StoreError, in_words};
use tokio_util::sync::CancellationToken;

/// Takes over what lists say, until it is told to end.
pub(super) async fn maintain_lists(
    store: Arc<dyn Store>,
    desk: Arc<AdminService>,
    cancel: CancellationToken,
) {
    let mut sealed = store.watch_epochs();
    let mut seen: HashMap<FeedName, SeenList> = HashMap::new();
    let mut lists = FeedsOfKind::new(FeedRecord::is_followed);
    loop {
        if let Err(error) = update_lists(store.as_ref(), &desk, &mut lists, &mut seen).await {
            tracing::warn!(
                error = in_words(&error),
                "the feeds of subscription lists could not be brought up to date"
            );
        }
        if !wait_for_change(&mut sealed, &cancel).await {
            return;
        }
    }
}

async fn update_lists(
    store: &dyn Store,
    desk: &AdminService,
    lists: &mut FeedsOfKind,
    seen: &mut HashMap<FeedName, SeenList>,
) -> Result<(), StoreError> {
    let feeds = store.feed_list().await?;
    let is_list = |name: &FeedName| feeds.get(name).is_some_and(|record| record.is_followed());
    seen.retain(|name, _| is_list(name));
    desk.keep_list_notes(is_list);
    for record in lists.find(&feeds).iter().filter(|record| owns_feed(store, record)) {
        let before = seen.get(&record.name);
        match desk.follow_list(&record.name, before).await {
            Ok(Some(now)) => drop(seen.insert(record.name.clone(), now)),
            Ok(None) => {}
            // One list that cannot be taken over must not keep the others from it.
            Err(error) if desk.list_failed(&record.name, &error) => {
                tracing::warn!(feed = %record.name, %error, "the feeds of a list could not be stored");
            }
            Err(_) => {}
        }
    }
    Ok(())
}
