//! On whose word a feed is asked for, and what it names.

use std::sync::Arc;
use tidegate_core::model::FeedRecord;
use tidegate_net::fetch::LeadScope;
use tidegate_store::{Store, StoreError};

/// The word of a feed behind that of the list that added it: a list at a public address must not choose what is read
/// behind the walls, by whatever name. It is that of the feed alone where there is no such list, where the operator took
/// the feed over, and where a request made it, so that it leads to its site alone.
pub(super) async fn behind_list(
    store: &Arc<dyn Store>,
    feed: &FeedRecord,
    word: LeadScope,
) -> Result<LeadScope, StoreError> {
    let Some(list) = feed.deciding_list().filter(|_| feed.on_demand.is_none()) else {
        return Ok(word);
    };
    let feeds = store.feed_list().await?;
    Ok(match feeds.get(list).filter(|list| list.has_upstream()) {
        Some(list) => word.added_by(list),
        None => word,
    })
}
