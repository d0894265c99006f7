//! What goes with time: versions and past orders beyond what the operator wants kept, and the old
//! end of the change log.

use crate::model::Time;
use crate::store::{Claim, CommitError, LOG_AGE, Retention, Store};
use std::time::Duration;

/// The most that one look may add to the running time, however far the clock has moved: a clock that
/// jumps must not let everything expire at once. Twice the time between two looks, so that a gateway
/// that was off for a while catches up.
const GAP_LIMIT: Duration = Duration::from_secs(2 * 3600);
/// How often a feed is pruned again in one look because there was more than one call takes out.
const PRUNES: usize = 100;

/// The time by which things age: that of the clock, but it never leaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SteadyClock(Time);

impl SteadyClock {
    /// Goes on from the last change of any feed.
    pub(super) async fn since(store: &dyn Store, now: Time) -> Self {
        let mut last = None;
        for feed in store.feeds().await.unwrap_or_default() {
            let state = store.state(&feed.name).await.ok().flatten();
            last = last.max(state.map(|state| state.updated_at));
        }
        Self(last.map_or(now, |last| now.min(last.plus(GAP_LIMIT))))
    }

    /// Moves on towards the clock.
    pub(super) fn advance(&mut self, now: Time) -> Time {
        self.0 = self.0.max(now.min(self.0.plus(GAP_LIMIT)));
        self.0
    }
}

/// Takes out what need not be kept at the running time `now`.
pub(super) async fn prune_history(
    store: &dyn Store,
    claim: &Claim,
    retention: &Retention,
    now: Time,
) -> Result<(), CommitError> {
    for feed in store.feeds().await? {
        for _ in 0..PRUNES {
            match store.prune(claim, &feed.name, retention, now).await {
                Ok(pruned) => {
                    let (versions, documents) = (pruned.versions, pruned.documents);
                    if versions + documents > 0 {
                        tracing::info!(feed = %feed.name, versions, documents, "taken out of the past");
                    }
                    if !pruned.more {
                        break;
                    }
                }
                Err(CommitError::Fenced) => return Err(CommitError::Fenced),
                // One feed that cannot be pruned must not keep the others from it.
                Err(error) => {
                    tracing::warn!(feed = %feed.name, %error, "the past could not be pruned");
                    break;
                }
            }
        }
    }
    for _ in 0..PRUNES {
        if store.trim_log(claim, now.minus(LOG_AGE)).await? == 0 {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::model::EndpointId;
    use crate::store::EmbeddedStore;
    use std::sync::Arc;

    fn at(seconds: i64) -> Time {
        Time::from_unix(1_800_000_000 + seconds)
    }

    #[test]
    fn a_clock_that_jumps_ages_nothing_at_once() {
        let hour = 3600;
        let mut running = SteadyClock(at(0));
        assert_eq!(running.advance(at(hour)), at(hour));
        // Forward by a year: two hours at a look.
        assert_eq!(running.advance(at(365 * 24 * hour)), at(3 * hour));
        assert_eq!(running.advance(at(365 * 24 * hour)), at(5 * hour));
        // And back again: nothing gets younger, and nothing ages until the clock is there.
        assert_eq!(running.advance(at(4 * hour)), at(5 * hour));
        assert_eq!(running.advance(at(6 * hour)), at(6 * hour));
    }

    #[tokio::test]
    async fn a_store_without_feeds_is_kept_as_it_is() {
        let clock = ManualClock::at(at(0));
        let endpoint = EndpointId::own("gate.example").unwrap();
        let store = EmbeddedStore::in_memory(Some(endpoint), Arc::new(clock)).unwrap();
        assert_eq!(SteadyClock::since(&store, at(7)).await, SteadyClock(at(7)));
        let claim = store.claims(1, GAP_LIMIT).await.unwrap().remove(0);
        prune_history(&store, &claim, &Retention::default(), at(9)).await.unwrap();
        let strange = Claim { fence: claim.fence + 1, ..claim };
        let refused = prune_history(&store, &strange, &Retention::default(), at(9)).await;
        assert!(matches!(refused, Err(CommitError::Fenced)));
    }
}
