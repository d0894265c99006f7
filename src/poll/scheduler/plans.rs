//! Schedules over a restart: what is taken over from the store, and what is written down now and
//! then.

use super::{PollScheduler, START_STEP};
use crate::model::{FeedName, FeedRecord, FeedStanding, PollState, Time};
use crate::poll::error::RoundError;
use crate::poll::memory::Memory;
use crate::poll::pauses::MAX_HOST_PAUSE;
use crate::poll::reason::PlannedPoll;
use crate::poll::resume::NOTE_EVERY;
use crate::poll::schedule::phase;
use crate::websub::subscriber;
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;
use tokio::time::Instant;

/// Poll states that are asked for in the order of their feeds' names, so that there is no table of all.
struct InOrder(Peekable<IntoIter<PollState>>);

impl InOrder {
    fn new(mut states: Vec<PollState>) -> Self {
        // Stores answer them in this order.
        states.sort_by(|one, other| one.feed.cmp(&other.feed));
        Self(states.into_iter().peekable())
    }

    /// That of a feed, whose name comes after those that were asked for before.
    fn next_of(&mut self, feed: &FeedName) -> Option<PollState> {
        while self.0.next_if(|state| state.feed < *feed).is_some() {}
        self.0.next_if(|state| state.feed == *feed)
    }
}

impl PollScheduler {
    /// Takes over what the store knows. A feed whose time has not come waits for it; what is due is
    /// spread.
    pub(in crate::poll) async fn load(&mut self) -> Result<(), RoundError> {
        let records = self.bench.store.feed_list().await?;
        let states = self.bench.store.poll_states().await?;
        let now = self.clock.now();
        let noted =
            states.iter().filter_map(|state| state.schedule.as_ref()).map(|kept| kept.noted);
        let noted = noted.max();
        // What was noted in the time that has still to come was noted before the clock was set back.
        let back = noted.map_or(Duration::ZERO, |noted| noted.since(now));
        self.noted = noted.map(|noted| noted.min(now));
        let is_active =
            |r: &&Arc<FeedRecord>| r.standing == FeedStanding::Active && r.has_upstream();
        let active = records.values().filter(is_active).count();
        self.feeds.reserve(active);
        let spread = START_STEP.saturating_mul(u32::try_from(active).unwrap_or(u32::MAX));
        let spread = u64::try_from(spread.min(self.settings.min_interval).as_millis());
        let spread = spread.unwrap_or(u64::MAX).max(1);
        let mut states = InOrder::new(states);
        for record in records.values() {
            // What was learned of another address says nothing of this one.
            let state = states.next_of(&record.name).filter(|state| state.url == record.url);
            if !is_active(&record) {
                if let Some(state) = state.filter(|_| record.standing == FeedStanding::Paused) {
                    self.keep_paused(state);
                }
                continue;
            }
            let mut state = state;
            if let Some(subscription) = state.as_mut().and_then(|it| it.subscription.as_mut()) {
                subscriber::resume(subscription, back, now);
            }
            let known = state.is_some();
            let memory = state
                .map_or_else(|| Memory::new(record, now), |state| Memory::from_saved(state, now));
            if let Some(pause) = memory.poll.rare.pause.as_ref().filter(|pause| pause.until > now) {
                let left = pause.until.since(now).min(MAX_HOST_PAUSE);
                let host = self.settings.host(&pause.address);
                self.polite.pause(&host, left, Instant::now());
            }
            let pending = self.bench.store.next_decision(&record.name).await?;
            let pending = pending.map(|at| self.bench.decisions.by_wall_clock(at, now));
            let bounds = self.settings.bounds(&record.options);
            let alive = self.noted.unwrap_or(now);
            let next = memory.resume(&record.name, bounds, pending, (alive, now));
            let mut next = next.unwrap_or_else(|| {
                // The pause that was asked for, of a store of an earlier version.
                let at = memory.poll.rare.not_before.unwrap_or(now).min(now.plus(bounds.max()));
                PlannedPoll::new(at, "polling has just begun")
            });
            let mut offset = Duration::ZERO;
            let later = Duration::from_millis(phase(&record.name) % spread);
            let seconds = Duration::from_secs(later.as_secs());
            if next.at <= now {
                (next.at, offset) = (now.plus(seconds), later.saturating_sub(seconds));
                if known {
                    next.reason = "it was due when polling began".into();
                }
            }
            let name = record.name.clone();
            self.insert(Arc::clone(record), memory, next);
            self.delay_step(&name, seconds);
            if let Some(feed) = self.feeds.get_mut(&name) {
                (feed.pending, feed.offset) =
                    (pending, u16::try_from(offset.as_millis()).unwrap_or(u16::MAX));
            }
        }
        Ok(())
    }

    /// Has those schedules written down that a restart would get wrong; one at least where none was
    /// for `age`, so that a restart knows until when this gateway was alive.
    pub(super) fn note_schedules(&mut self, age: Duration) {
        self.note_at = Instant::now() + NOTE_EVERY;
        let now = self.clock.now();
        let mut strayed: Vec<FeedName> = Vec::new();
        let mut any = None;
        for (name, feed) in &self.feeds {
            let Some(memory) = feed.memory.as_ref().filter(|it| it.was_polled()) else {
                continue;
            };
            any.get_or_insert(name);
            // Whose changes are told of is polled by its own interval after a restart.
            let told = feed.hearing.covered || feed.hearing.by_hub;
            let bounds = self.settings.bounds(&feed.record.options);
            let due = feed.due.unwrap_or(now);
            if !told && memory.strays(name, bounds, feed.pending, (due, now)) {
                strayed.push(name.clone());
            }
        }
        let is_old = |noted: Time| now.since(noted) >= age;
        if strayed.is_empty() && self.noted.is_none_or(is_old) {
            strayed.extend(any.cloned());
        }
        for name in strayed {
            let Some(feed) = self.feeds.get_mut(&name) else { continue };
            let Some(memory) = feed.memory.as_mut() else { continue };
            let state = memory.write(&feed.record);
            self.remember(&name, state);
        }
    }
}
