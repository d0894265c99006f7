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
}

/// A feed that is gone on with.
pub(super) struct ResumedFeed {
    record: Arc<FeedRecord>,
    memory: Memory,
    pub(super) next: PlannedPoll,
    pending: Option<Time>,
    /// Whether it was polled before.
    is_known: bool,
    /// Whether somebody waits for it.
    is_awaited: bool,
}

impl ResumedFeed {
    /// Whether its poll is one of those that are spread.
    pub(super) fn is_spread(&self, now: Time) -> bool {
        !self.is_awaited && self.next.at <= now
    }
}

/// How polls that are due at once are spread.
#[derive(Clone, Copy)]
pub(super) struct Spread {
    /// By how much each feed lengthens it.
    pub(super) step: Duration,
    /// How long it is at most.
    pub(super) most: Duration,
}

impl Spread {
    /// Over how many milliseconds the polls of so many feeds are spread.
    pub(super) fn over(self, feeds: usize) -> u64 {
        let spread = self.step.saturating_mul(u32::try_from(feeds).unwrap_or(u32::MAX));
        let spread = u64::try_from(spread.min(self.most).as_millis());
        spread.unwrap_or(u64::MAX).max(1)
    }
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
        let spread = match has_others {
            true => TAKEOVER_SPREAD,
            false => Spread { step: START_STEP, most: self.settings.min_interval },
        };
        let basis = ResumeBasis { now, back, reason: "it was due when polling began" };
        let spread = spread.over(active);
        let mut states = OrderedStates::new(states);
        for record in records.values() {
            let state = states.next_of(&record.name);
            if !self.owns(record) {
                continue;
            }
            let stored = StoredFeed::read(store.as_ref(), Arc::clone(record), state).await?;
            if let Some(feed) = self.resume_feed(stored, &basis) {
                self.go_on_with(feed, &basis, spread);
            }
        }
        if let Some(owned) = &mut self.owned {
            owned.begin(records);
        }
        Ok(())
    }

    /// Takes a feed over as the store knows it; `None`: it is not polled.
    pub(super) fn resume_feed(
        &mut self,
        stored: StoredFeed,
        basis: &ResumeBasis,
    ) -> Option<ResumedFeed> {
        let StoredFeed { record, state, pending } = stored;
        let ResumeBasis { now, back, .. } = *basis;
        // What has still to be written is newer.
        let unsaved = self.unsaved.get(&record.name).filter(|state| state.url == record.url);
        let mut state = unsaved.cloned().or(state);
        if !is_polled(&record) {
            if let Some(state) = state.filter(|_| record.standing == FeedStanding::Paused) {
                self.table.insert(record.name.clone(), Memory::from_stored(state, now));
            }
            return None;
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
        let next = memory.resume(bounds, pending, now);
        // Somebody waits for it, whose request made it when the gateway stopped.
        let is_awaited = next.is_none() && record.on_demand.is_some();
        let next = next.unwrap_or_else(|| {
            // The pause that was asked for, of a store of an earlier version.
            let at = memory.state.not_before.unwrap_or(now).min(now.plus(bounds.max()));
            PlannedPoll::new(at, "polling has just begun")
        });
        Some(ResumedFeed { record, memory, next, pending, is_known, is_awaited })
    }

    /// Polls a feed from now on that was taken over; what is due is spread over `spread` milliseconds.
    pub(super) fn go_on_with(&mut self, feed: ResumedFeed, basis: &ResumeBasis, spread: u64) {
        let ResumedFeed { record, memory, mut next, pending, is_known, is_awaited } = feed;
        let ResumeBasis { now, reason, .. } = *basis;
        let mut offset = Duration::ZERO;
        let later = if is_awaited { 0 } else { phase(&record.name) % spread };
        let later = Duration::from_millis(later);
        let seconds = Duration::from_secs(later.as_secs());
        if next.at <= now {
            (next.at, offset) = (now.plus(seconds), later.saturating_sub(seconds));
            if is_known {
                next.reason = reason.into();
            }
        }
        let name = record.name.clone();
        self.insert(record, Some(memory), next);
        self.delay_step(&name, seconds);
        if let Some(feed) = self.feeds.get_mut(&name) {
            feed.cell.lock().look_again = pending;
            feed.offset = u16::try_from(offset.as_millis()).unwrap_or(u16::MAX);
        }
    }
}
