//! Walks through publishers' older documents: step by step, each in its host's line like a poll, and
//! with a longer pause between two.

use super::errands::{ErrandState, FinishedErrand};
use super::rounds::STORE_REST;
use super::{CHECKPOINT_EVERY, PollScheduler};
use crate::backfill::{self, Stepped};
use crate::error::{PollError, RoundError};
use crate::politeness::{Errand, PoliteHost};
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
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if feed.walk.is_none() && feed.record.options.backfill {
            feed.walk = Some(Box::new(Backfill::begin(now)));
        }
        let walk = feed.walk.clone();
        if walk.is_none() && self.board.matches(name, |status| status.rare.backfill.is_none()) {
            return;
        }
        if walk.as_ref().is_some_and(|walk| walk.is_walking())
            && matches!(feed.walking, ErrandState::None)
        {
            self.next_step(name, now);
        }
        self.board.change(name, |status| status.rare.change(|rare| rare.backfill = walk));
    }

    /// What an operator orders.
    pub(super) fn order_walk(
        &mut self,
        name: &FeedName,
        order: WalkOrder,
    ) -> Result<(), PollError> {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name).filter(|feed| !feed.is_leaving()) else {
            return Err(PollError::Unknown);
        };
        match order {
            WalkOrder::Start => {
                let walk = feed.walk.take().map(|walk| *walk);
                feed.walk = Some(Box::new(walk::asked_for(walk, now)));
                self.resume_walk(name);
            }
            WalkOrder::Stop => {
                self.forget(&Errand::Walk(name.clone()));
                let Some(feed) = self.feeds.get_mut(name) else { return Ok(()) };
                if let Some(walk) = feed.walk.as_mut().filter(|walk| walk.is_walking()) {
                    walk::end(walk, WalkStanding::Stopped, "the operator stopped it", now);
                }
                let walk = feed.walk.clone();
                self.board.change(name, |status| status.rare.change(|rare| rare.backfill = walk));
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
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let waits = feed.walk.as_ref().is_some_and(|walk| walk.is_walking() && walk.next.is_none());
        if let (true, ErrandState::Due(_)) = (waits, &feed.walking) {
            self.next_step(name, now);
        }
    }

    pub(super) fn next_step(&mut self, name: &FeedName, at: Time) {
        self.plan_errand(Errand::Walk(name.clone()), at);
    }

    /// Puts a step that is due into its host's line.
    pub(super) fn line_up_step(&mut self, name: FeedName) {
        let Some(feed) = self.feeds.get(&name) else { return };
        let next = feed.walk.as_ref().and_then(|walk| walk.next.as_deref());
        let host = self.settings.host(next.unwrap_or(&feed.record.url));
        self.enqueue(&Errand::Walk(name), host);
    }

    pub(super) fn begin_step(&mut self, name: &FeedName) {
        let cancel = self.cancel.child_token();
        let bench = Arc::clone(&self.bench);
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let Some(host) = feed.walking.leave_line() else { return };
        let Some(walk) = feed.walk.clone() else { return };
        let record = Arc::clone(&feed.record);
        let step = backfill::step(bench, record, *walk, self.owned.is_some(), cancel.clone());
        let task = async move { FinishedErrand::Step(step.await) };
        self.run_errand(Errand::Walk(name.clone()), host, task, cancel);
    }

    pub(super) fn finish_step(
        &mut self,
        name: &FeedName,
        host: &PoliteHost,
        stepped: Result<Stepped, RoundError>,
    ) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let mut asked_for = None;
        let pause = host.spacing().saturating_mul(PAUSES).max(self.settings.walk_pause);
        let wait = match stepped {
            Ok(stepped) => {
                asked_for = stepped.pause;
                if let (Some(memory), Some(revision)) = (&mut feed.memory, stepped.revision) {
                    memory.moved_on(revision);
                }
                tell(name, &stepped.walk);
                feed.walk = Some(Box::new(stepped.walk));
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
        let walk = feed.walk.clone();
        if walk.as_ref().is_some_and(|walk| walk.is_walking()) {
            self.next_step(name, now.plus(wait));
        }
        self.board.change(name, |status| status.rare.change(|rare| rare.backfill = walk));
        self.save_aside(name);
        if let Some(asked_for) = asked_for {
            self.pause(&asked_for);
        }
    }

    /// Has the walk, and the subscription to a hub, written down with what else is remembered of its
    /// feed: now, or when the round that is in flight is over.
    pub(super) fn save_aside(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        feed.aside_is_unsaved = true;
        let Some(memory) = &mut feed.memory else { return };
        let state = memory.write(&feed.record);
        self.remember(name, state);
        self.checkpoint_at = Some(Instant::now());
    }

    /// Takes what is to be written down of a feed.
    pub(super) fn remember(&mut self, name: &FeedName, mut state: tidegate_core::model::PollState) {
        let now = self.clock.now();
        if let Some(schedule) = &mut state.schedule {
            schedule.noted = now;
            self.noted = Some(now);
        }
        let Some(feed) = self.feeds.get_mut(name) else { return };
        state.backfill.clone_from(&feed.walk);
        state.subscription.clone_from(&feed.subscription);
        feed.aside_is_unsaved = false;
        self.unsaved.insert(name.clone(), state);
        self.checkpoint_at.get_or_insert(Instant::now() + CHECKPOINT_EVERY);
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
