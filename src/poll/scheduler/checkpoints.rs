//! What polling remembers is written down: gathered for a while, and some of it at a time. The scheduler goes on
//! meanwhile.

use super::ownership::OrderedStates;
use super::{CHECKPOINT_EVERY, PollScheduler, SLICE};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, HubSubscription, PollState, SubscriptionStanding, Time};
use tidegate_store::{CommitError, Store, StoreError, in_words};
use tokio::task::JoinError;
use tokio::time::Instant;

/// What came of a checkpoint: the states that are stored, or why none is. `None`: the marks of large documents go
/// first, and could not be stored.
pub(super) type CheckpointResult = Result<Vec<PollState>, Option<CommitError>>;

/// Takes over the leases of hubs that asked another gateway back, which has stored them.
async fn take_over_leases(
    store: &Store,
    states: &mut [PollState],
    now: Time,
) -> Result<(), StoreError> {
    let subscribed = states.iter().filter(|state| state.subscription.is_some());
    let names: Vec<FeedName> = subscribed.map(|state| state.feed.clone()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut stored = OrderedStates::new(store.poll_states_of(&names).await?);
    for state in states {
        let Some(own) = &mut state.subscription else { continue };
        let there = stored.next_of(&state.feed).and_then(|stored| stored.subscription);
        let until = |it: &HubSubscription| it.lease.map(|lease| lease.until);
        let is_later =
            |it: &HubSubscription| it.keys == own.keys && it.is_held(now) && until(it) > until(own);
        if own.standing != SubscriptionStanding::Denied
            && let Some(there) = there.filter(|it| is_later(it))
        {
            *own = there;
        }
    }
    Ok(())
}

impl PollScheduler {
    /// Writes all of it, until that fails; `with_marks`: the marks of large documents before it.
    pub(super) async fn write_all(&mut self, with_marks: bool) {
        self.flush_at = Instant::now();
        while self.begin_checkpoint(with_marks, true) && self.end_checkpoint().await {}
    }

    /// Begins to write some of it, where that is due and nothing is being written. Answers whether it did.
    pub(super) fn begin_checkpoint(&mut self, with_marks: bool, at_once: bool) -> bool {
        let now = Instant::now();
        if !self.checkpoints.is_empty() || self.flush_at > now {
            return false;
        }
        let (is_shared, at) = (self.owned.is_some(), self.clock.now());
        let mut unsaved = self.bench.table.unsaved();
        let is_due = at_once || unsaved.due().is_some_and(|due| due <= now);
        let mut states = if is_due { unsaved.begin(at) } else { Vec::new() };
        drop(unsaved);
        let has_marks = with_marks && self.bench.attempts.has_unwritten();
        if states.is_empty() && !has_marks {
            return false;
        }
        let bench = Arc::clone(&self.bench);
        self.checkpoints.spawn(async move {
            if has_marks && !bench.attempts.flush().await {
                return Err(None);
            }
            if states.is_empty() {
                return Ok(states);
            }
            if is_shared
                && let Err(error) = take_over_leases(bench.store.as_ref(), &mut states, at).await
            {
                return Err(Some(error.into()));
            }
            let stored = bench.store.checkpoint(&states).await;
            stored.map(|()| states).map_err(Some)
        });
        true
    }

    /// Waits for the end of what is being written. Answers whether it is stored.
    pub(super) async fn end_checkpoint(&mut self) -> bool {
        match self.checkpoints.join_next().await {
            Some(done) => self.finish_checkpoint(done),
            None => true,
        }
    }

    /// Takes in what came of a checkpoint: whether it is stored. One that failed is made again.
    pub(super) fn finish_checkpoint(&mut self, done: Result<CheckpointResult, JoinError>) -> bool {
        let error = match done {
            Ok(Ok(states)) => {
                self.bench.table.unsaved().end(true, Instant::now());
                for state in states {
                    if let Some(stored) = &state.subscription {
                        self.adopt_lease(&state.feed, stored);
                    }
                }
                return true;
            }
            Ok(Err(error)) => error.map(|error| in_words(&error)),
            // It was given up.
            Err(error) if error.is_cancelled() => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(error) = error {
            tracing::warn!(error, "what polling remembers could not be stored; it is tried again");
        }
        // Where several gateways poll, soon: others may wait for it.
        let pause = if self.owned.is_some() { SLICE } else { CHECKPOINT_EVERY };
        self.flush_at = Instant::now() + pause;
        self.bench.table.unsaved().end(false, self.flush_at);
        false
    }

    /// Has what is remembered of a feed written down soon: its walk, or its subscription to a hub, is another one.
    pub(super) fn save_aside(&self, name: &FeedName) {
        if let Some(feed) = self.feeds.get(name) {
            self.bench.table.remember(name, &feed.cell, Duration::ZERO);
        }
    }
}
