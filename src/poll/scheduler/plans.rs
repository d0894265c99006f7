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
use crate::status::PollGaps;
use crate::websub::subscriber;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

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
        let mut states: HashMap<FeedName, PollState> =
            states.into_iter().map(|state| (state.feed.clone(), state)).collect();
        let is_active =
            |r: &&Arc<FeedRecord>| r.standing == FeedStanding::Active && r.has_upstream();
        let active: Vec<_> = records.values().filter(is_active).collect();
        let spread = START_STEP.saturating_mul(u32::try_from(active.len()).unwrap_or(u32::MAX));
        let spread = u64::try_from(spread.min(self.settings.min_interval).as_millis());
        let spread = spread.unwrap_or(u64::MAX).max(1);
        for record in active {
            // What was learned of another address says nothing of this one.
            let mut state = states.remove(&record.name).filter(|state| state.url == record.url);
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
            let state = self.bench.store.state(&record.name).await?;
            let pending = state.and_then(|state| state.next_decision_at);
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
            let gaps = PollGaps::from(&memory.poll.overlap);
            self.insert(Arc::clone(record), memory, next);
            self.delay_step(&name, seconds);
            if let Some(feed) = self.feeds.get_mut(&name) {
                (feed.pending, feed.offset) =
                    (pending, u16::try_from(offset.as_millis()).unwrap_or(u16::MAX));
            }
            self.board.change(&name, |status| status.rare.change(|rare| rare.gaps = gaps));
        }
        let is_paused = |r: &&Arc<FeedRecord>| r.standing == FeedStanding::Paused;
        for record in records.values().filter(is_paused) {
            let state = states.remove(&record.name).filter(|state| state.url == record.url);
            if let Some(state) = state {
                self.keep_paused(state);
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
