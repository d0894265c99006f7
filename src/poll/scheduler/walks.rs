//! Walks through publishers' older documents: step by step, each in its host's line like a poll, and
//! with a longer pause between two.

use super::errands::{Errand, ErrandState, FinishedErrand};
use super::rounds::STORE_REST;
use super::{CHECKPOINT_EVERY, PollScheduler};
use crate::backfill::{self, Stepped};
use crate::error::{PollError, RoundError};
use crate::walk::{self, PAUSES};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{Backfill, FeedName, Time, WalkStanding};
use tidegate_status::WalkOrder;
use tokio::time::Instant;

/// After so many older documents the log tells how far a walk has come.
const TOLD_EVERY: u32 = 10;
/// How long a walk waits after a defect of the gateway.
const DEFECT_PAUSE: Duration = Duration::from_secs(3600);

impl PollScheduler {
    /// Begins or goes on with the walk of a feed that was just taken over, where there is one.
    pub(super) fn resume_walk(&mut self, name: &FeedName) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get(name) else { return };
        let mut polling = feed.cell.lock();
        let walk = &mut polling.memory.state.backfill;
        if walk.is_none() && feed.record.options.backfill {
            *walk = Some(Box::new(Backfill::begin(now)));
        }
        let is_walking = walk.as_ref().is_some_and(|walk| walk.is_walking());
        drop(polling);
        if is_walking && matches!(feed.walking, ErrandState::None) {
            self.next_step(name, now);
        }
    }

    /// What an operator orders.
    pub(super) fn order_walk(
        &mut self,
        name: &FeedName,
        order: WalkOrder,
    ) -> Result<(), PollError> {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get(name).filter(|feed| !feed.is_leaving()) else {
            return Err(PollError::Unknown);
        };
        let mut polling = feed.cell.lock();
        let walk = &mut polling.memory.state.backfill;
        match order {
            WalkOrder::Start => {
                *walk = Some(Box::new(walk::asked_for(walk.take().map(|walk| *walk), now)));
                drop(polling);
                self.resume_walk(name);
            }
            WalkOrder::Stop => {
                if let Some(walk) = walk.as_mut().filter(|walk| walk.is_walking()) {
                    walk::end(walk, WalkStanding::Stopped, "the operator stopped it", now);
                }
                drop(polling);
                self.forget(&Errand::Walk(name.clone()));
            }
        }
        self.save_aside(name);
        Ok(())
    }

    /// Has the next step of a walk, where one is due, begin so much later.
    pub(super) fn delay_step(&mut self, name: &FeedName, by: Duration) {
        let Some(feed) = self.feeds.get(name) else { return };
        if let ErrandState::Due(at) = feed.walking {
            self.next_step(name, at.plus(by));
        }
    }

    /// A walk that waits for its feed's first document needs wait no longer.
    pub(super) fn hurry_walk(&mut self, name: &FeedName, now: Time) {
        let Some(feed) = self.feeds.get(name) else { return };
        let waits = |walk: &Backfill| walk.is_walking() && walk.next.is_none();
        if matches!(feed.walking, ErrandState::Due(_))
            && feed.cell.lock().memory.state.backfill.as_deref().is_some_and(waits)
        {
            self.next_step(name, now);
        }
    }

    fn next_step(&mut self, name: &FeedName, at: Time) {
        self.plan_errand(Errand::Walk(name.clone()), at);
    }

    /// Begins a step that is due.
    pub(super) fn begin_step(&mut self, name: &FeedName) {
        let cancel = self.cancel.child_token();
        let bench = Arc::clone(&self.bench);
        let Some(feed) = self.feeds.get_mut(name) else { return };
        feed.walking = ErrandState::None;
        let Some(walk) = feed.cell.lock().memory.state.backfill.clone() else { return };
        let record = Arc::clone(&feed.record);
        let step = backfill::step(bench, record, *walk, self.owned.is_some(), cancel.clone());
        let task = async move { FinishedErrand::Step(step.await) };
        self.run_errand(Errand::Walk(name.clone()), task, cancel);
    }

    pub(super) fn finish_step(&mut self, name: &FeedName, stepped: Result<Stepped, RoundError>) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get(name) else { return };
        let mut polling = feed.cell.lock();
        let memory = &mut polling.memory;
        let next = memory.state.backfill.as_ref().and_then(|walk| walk.next.as_deref());
        let host = self.bench.hosts.host(next.unwrap_or(&feed.record.url));
        let pause = host.spacing().saturating_mul(PAUSES).max(self.settings.walk_pause);
        let wait = match stepped {
            Ok(stepped) => {
                if let Some(revision) = stepped.revision {
                    memory.moved_on(revision);
                }
                tell(name, &stepped.walk);
                memory.state.backfill = Some(Box::new(stepped.walk));
                if stepped.is_given_up { pause } else { stepped.wait.unwrap_or(pause).max(pause) }
            }
            Err(error) if error.is_of_store(self.owned.is_some()) => {
                let said = error.report();
                tracing::warn!(feed = %name, error = said, "a step through older documents could not be stored");
                STORE_REST.max(pause)
            }
            Err(error) => {
                let error = error.report();
                tracing::error!(feed = %name, error, "a step through older documents failed");
                DEFECT_PAUSE
            }
        };
        let is_walking = memory.state.backfill.as_ref().is_some_and(|walk| walk.is_walking());
        drop(polling);
        if is_walking {
            self.next_step(name, now.plus(wait));
        }
        self.save_aside(name);
    }

    /// Has what is remembered of a feed written down soon: its walk, or its subscription to a hub, is another one.
    pub(super) fn save_aside(&mut self, name: &FeedName) {
        if self.remember(name) {
            self.checkpoint_at = Some(Instant::now());
        }
    }

    /// Has what is remembered of a feed written down. `false`: there is no such feed.
    pub(super) fn remember(&mut self, name: &FeedName) -> bool {
        let Some(feed) = self.feeds.get(name) else { return false };
        let state = feed.cell.lock().memory.write(self.clock.now());
        self.unsaved.insert(name.clone(), state);
        self.checkpoint_at.get_or_insert(Instant::now() + CHECKPOINT_EVERY);
        true
    }
}

fn tell(feed: &FeedName, walk: &Backfill) {
    let (documents, items) = (walk.documents, walk.items);
    match (&walk.standing, &walk.note) {
        (WalkStanding::Walking, Some(note)) => {
            tracing::info!(%feed, documents, items, note, "walking through older documents");
        }
        (WalkStanding::Walking, None) if documents.is_multiple_of(TOLD_EVERY) => {
            tracing::info!(%feed, documents, items, "walking through older documents");
        }
        (WalkStanding::Walking, None) => {}
        (standing, note) => {
            let (state, note) = (standing.name(), note.as_deref().unwrap_or_default());
            tracing::info!(%feed, state, documents, items, note, "the walk through older documents is over");
        }
    }
}
