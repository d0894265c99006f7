//! Schedules over a restart: what is taken over from the store.

use super::ownership::{OrderedStates, StoredFeed, TAKEOVER_SPREAD};
use super::{PollScheduler, START_STEP};
use crate::domains::is_polled;
use crate::error::RoundError;
use crate::memory::Memory;
use crate::pauses::MAX_HOST_PAUSE;
use crate::reason::PlannedPoll;
use crate::schedule::phase;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedRecord, FeedStanding, Time};
use tidegate_core::websub::subscriber;
use tidegate_net::fetch::PauseRequest;

/// What feeds are resumed with.
pub(super) struct ResumeBasis {
    pub(super) now: Time,
    /// By how much the clock was set back since.
    pub(super) back: Duration,
    /// Why what is due is polled now.
    pub(super) reason: &'static str,
    /// Over what time that is spread.
    pub(super) spread: Duration,
}

impl PollScheduler {
    /// Takes over what the store knows of the feeds that this gateway polls. A feed whose time has not come waits for
    /// it; what is due is spread.
    pub(crate) async fn load(&mut self) -> Result<(), RoundError> {
        let store = Arc::clone(&self.bench.store);
        let records = store.feed_list().await?;
        let states = store.poll_states().await?;
        let mut marks = store.attempts().await?;
        marks.retain(|mark| records.get(&mark.feed).is_none_or(|record| self.owns(record)));
        self.bench.attempts.take_over(marks);
        self.bench.attempts.flush().await;
        let now = self.clock.now();
        let kept = states.iter().filter_map(|state| state.schedule.as_ref());
        let noted = kept.map(|kept| kept.noted).max();
        // What was noted in the time that has still to come was noted before the clock was set back.
        let back = noted.map_or(Duration::ZERO, |noted| noted.since(now));
        let is_active = |record: &&Arc<FeedRecord>| is_polled(record) && self.owns(record);
        let active = records.values().filter(is_active).count();
        self.feeds.reserve(active);
        let has_others = self.owned.as_ref().is_some_and(|it| it.gateways.live().len() > 1);
        let (step, most) =
            if has_others { TAKEOVER_SPREAD } else { (START_STEP, self.settings.min_interval) };
        let spread = step.saturating_mul(u32::try_from(active).unwrap_or(u32::MAX)).min(most);
        let basis = ResumeBasis { now, back, reason: "it was due when polling began", spread };
        let mut states = OrderedStates::new(states);
        for record in records.values() {
            let state = states.next_of(&record.name);
            if self.owns(record) {
                let stored = StoredFeed::read(store.as_ref(), Arc::clone(record), state).await?;
                self.resume_feed(stored, None, &basis);
            }
        }
        if let Some(owned) = &mut self.owned {
            owned.begin(records);
        }
        Ok(())
    }

    /// Polls a feed from now on as the store knows it, if it is to be polled. `first`: its first poll, instead of the one
    /// that follows.
    pub(super) fn resume_feed(
        &mut self,
        stored: StoredFeed,
        first: Option<PlannedPoll>,
        basis: &ResumeBasis,
    ) {
        let StoredFeed { record, state, pending } = stored;
        let ResumeBasis { now, back, reason, spread } = *basis;
        // What has still to be written is newer.
        let unsaved = self.unsaved.get(&record.name).filter(|state| state.url == record.url);
        let mut state = unsaved.cloned().or(state);
        if !is_polled(&record) {
            if let Some(state) = state.filter(|_| record.standing == FeedStanding::Paused) {
                self.table.insert(record.name.clone(), Memory::from_stored(state, now));
            }
            return;
        }
        if let Some(subscription) = state.as_mut().and_then(|it| it.subscription.as_mut()) {
            subscriber::resume(subscription, back, now);
        }
        let is_known = state.is_some();
        let memory = Memory::of(&record, state, now);
        if let Some(pause) = memory.state.pause.as_ref().filter(|pause| pause.until > now) {
            let wait = pause.until.since(now).min(MAX_HOST_PAUSE);
            self.bench.hosts.pause(&PauseRequest { address: pause.address.clone(), wait });
        }
        let pending = pending.map(|at| self.bench.decisions.by_wall_clock(at, now));
        let bounds = self.settings.bounds(&record.options);
        let next = first.or_else(|| memory.resume(bounds, pending, now));
        // Somebody waits for it, whose request made it when the gateway stopped.
        let is_awaited = next.is_none() && record.on_demand.is_some();
        let mut next = next.unwrap_or_else(|| {
            // The pause that was asked for, of a store of an earlier version.
            let at = memory.state.not_before.unwrap_or(now).min(now.plus(bounds.max()));
            PlannedPoll::new(at, "polling has just begun")
        });
        let spread = u64::try_from(spread.as_millis()).unwrap_or(u64::MAX).max(1);
        let later = if is_awaited { 0 } else { phase(&record.name) % spread };
        let seconds = Duration::from_secs(later / 1000);
        let mut offset = 0;
        if next.at <= now {
            (next.at, offset) = (now.plus(seconds), later % 1000);
            if is_known {
                next.reason = reason.into();
            }
        }
        let name = record.name.clone();
        self.insert(record, Some(memory), next);
        self.delay_step(&name, seconds);
        if let Some(feed) = self.feeds.get_mut(&name) {
            feed.cell.lock().look_again = pending;
            feed.offset = u16::try_from(offset).unwrap_or(u16::MAX);
        }
    }
}
