//! What goes with time: versions and past orders beyond what the operator wants kept, and the old
//! end of the change log.

use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, Time};
use tidegate_store::{CommitError, LOG_AGE, Retention, Store, in_words};

/// How often a feed, or the log, is pruned again in one look because there was more than one call takes out.
const PRUNES: usize = 100;

/// Where the running time stood last; before it was ever noted, that of the last change of a feed.
pub(super) async fn last_running(store: &dyn Store, wall: &dyn Clock) -> Option<Time> {
    let noted = store.running_time().await.ok().flatten();
    let mut last = noted;
    if noted.is_none() {
        let feeds = store.feed_list().await.unwrap_or_default();
        for feed in feeds.keys() {
            let state = store.state(feed).await.ok().flatten();
            last = last.max(state.map(|state| state.updated_at));
        }
    }
    last.map(|last| if noted.is_none() { last.min(wall.now()) } else { last })
}

/// Takes out of the past of a feed what need not be kept at the running time `now`. Answers whether that was done to
/// its end.
pub(super) async fn prune_feed(
    store: &dyn Store,
    feed: &FeedName,
    retention: &Retention,
    now: Time,
) -> bool {
    for _ in 0..PRUNES {
        match store.prune(feed, retention, now).await {
            Ok(pruned) => {
                let (versions, documents) = (pruned.versions, pruned.documents);
                if versions + documents > 0 {
                    tracing::info!(%feed, versions, documents, "taken out of the past");
                }
                if !pruned.more {
                    return true;
                }
            }
            // One feed that cannot be pruned must not keep the others from it.
            Err(error) => {
                tracing::warn!(%feed, error = in_words(&error), "the past could not be pruned");
                break;
            }
        }
    }
    false
}

/// Takes the old end out of the change log.
pub(super) async fn trim_log(store: &dyn Store) -> Result<(), CommitError> {
    for _ in 0..PRUNES {
        if store.trim_log(LOG_AGE).await? == 0 {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tidegate_core::clock::ManualClock;
    use tidegate_core::model::EndpointId;
    use tidegate_store::EmbeddedStore;

    fn at(seconds: i64) -> Time {
        Time::from_unix(1_800_000_000 + seconds)
    }

    #[tokio::test]
    async fn a_store_without_feeds_is_kept_as_it_is() {
        let clock = ManualClock::at(at(0));
        let endpoint = EndpointId::own("gate.example").unwrap();
        let wall = || Arc::new(clock.clone());
        let store = EmbeddedStore::in_memory(Some(endpoint), wall()).unwrap();
        assert_eq!(last_running(&store, &clock).await, None);
        store.note_running_time(at(-9000)).await.unwrap();
        let store = store.reopen().unwrap();
        assert_eq!(last_running(&store, &clock).await, Some(at(-9000)));
        let (nothing, retention) = (FeedName::new("nothing").unwrap(), Retention::default());
        assert!(prune_feed(&store, &nothing, &retention, at(9)).await);
        trim_log(&store).await.unwrap();
    }
}
