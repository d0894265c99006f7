//! An item that left its feed's ledger: it has no page any more, and is in archives alone.

use crate::AppState;
use crate::address::Site;
use crate::extract::unknown_item;
use crate::problem::Problem;
use http::StatusCode;
use tidegate_core::model::{FeedName, SyncId};

/// Why a feed has no item of a sync id: it left, or never was there.
pub(super) async fn missing(
    room: &AppState,
    site: &Site,
    (feed, id): (&FeedName, &SyncId),
) -> Problem {
    let state = match room.store.state(feed).await {
        Ok(Some(state)) if state.evictions.count > 0 => state,
        Ok(_) => return unknown_item(feed),
        Err(error) => return error.into(),
    };
    let stub = match room.store.stubs(feed, &[id.to_string()]).await {
        Ok(stubs) => stubs.into_iter().find(|stub| stub.id == *id),
        Err(error) => return error.into(),
    };
    let Some(stub) = stub else { return unknown_item(feed) };
    let was = if stub.deleted { "which was deleted," } else { "one of its oldest," };
    let mut said = format!(
        "the item, {was} left the complete view of the feed {feed} at {}; it comes back as itself where \
         its publisher lists it again",
        stub.since
    );
    let archives = state.archives.newest.filter(|_| !stub.deleted);
    let form = site.dialect.into();
    let archives = archives.map(|newest| site.archive(feed, &newest, form));
    if let Some(archives) = &archives {
        said.push_str(&format!(", and is in its archives, the newest of which is {archives}"));
    }
    let gone = Problem::new(StatusCode::GONE, said).with("published_id", stub.published_id);
    match archives {
        Some(archives) => gone.with("archives", archives),
        None => gone,
    }
}
