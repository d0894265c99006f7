//! The feeds that are polled: how each comes, and how it leaves, for the time being or for good.

use super::hub::HubTask;
use super::ownership::{StoredFeed, TAKEOVER_SPREAD, by_feed};
use super::pushes::PushTriggers;
use super::{CommandReply, PollScheduler, answer};
use crate::backfill;
use crate::domains::is_polled;
use crate::error::{PollError, RoundError};
use crate::feeds::{CHECKPOINT_EVERY, FeedPolling};
use crate::host_queue::HostSlot;
use crate::memory::Memory;
use crate::politeness::MAX_HOST_PAUSE;
use crate::polling::TaskAside;
use crate::reason::{PlannedPoll, PollReason};
use crate::schedule::phase;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    Backfill, FeedName, FeedRecord, FeedStanding, InterruptionKind, Time, ToldChange,
};
use tidegate_core::websub::subscriber;
use tidegate_net::fetch::PauseRequest;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What goes on with a feed that is polled. There may be a million, so that what is seldom there has a place of its own.
#[derive(Default)]
pub(crate) struct LiveFeed {
    /// How far within its second its first poll after a start begins, in milliseconds.
    pub(crate) offset: u16,
    /// Its ticket, while it stands in its host's line.
    pub(crate) in_line: Option<Arc<()>>,
    pub(crate) running: Option<Box<RunningPoll>>,
    /// Ends with the round of an earlier record, which was given up: the next one begins after it.
    pub(crate) last: Option<CancellationToken>,
    pub(crate) hearing: PushTriggers,
    /// Asks for its missing items.
    pub(crate) probing: Option<Box<TaskAside>>,
    /// Walks through its publisher's older documents.
    pub(crate) walking: Option<Box<TaskAside>>,
    /// Asks its hub.
    pub(crate) subscribing: Option<Box<HubTask>>,
    /// What the requests for the subscription that it had before have used up.
    pub(crate) hub_spent: Option<Time>,
}

/// A poll in flight.
pub(crate) struct RunningPoll {
    /// Tells it from earlier ones of its feed.
    pub(super) serial: u64,
    /// Gives it up when it is dropped.
    pub(super) cancel: Option<DropGuard>,
    /// Ends with it.
    pub(super) over: CancellationToken,
    /// Callers that this round answers, and those for whom one has still to begin.
    pub(super) answers: Vec<CommandReply>,
    pub(super) waiting: Vec<CommandReply>,
    /// Whether its publisher is asked with something else since it began.
    pub(super) asked_otherwise: bool,
    /// Its slot at its host; `None`: it was asked for, and goes past the line.
    pub(super) slot: Option<HostSlot>,
    pub(super) _asked_for: Option<OwnedSemaphorePermit>,
    /// The address that is read.
    pub(super) address: Box<str>,
    /// The poll that was planned when it began.
    pub(super) planned: Option<PlannedPoll>,
    pub(super) at: Time,
    pub(super) since: Instant,
    /// What it was begun for, where a change was told of.
    pub(super) told: ToldChange,
}

/// How a feed leaves polling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departure {
    /// It is paused, and may come back.
    Paused,
    Removed,
    /// Another gateway polls it from now on, with what this one remembers of it.
    Moved,
    /// Another gateway polls it already.
    Lost,
}

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

impl FeedPolling {
    /// Whether a record differs from that of the feed in nothing that polling follows.
    pub(super) fn follows_alike(&self, record: &FeedRecord) -> bool {
        let own = &self.record;
        own.url == record.url && own.options == record.options && own.access == record.access
    }

    /// What ends with the last round that was begun, where that may be in flight.
    fn last_round(&self) -> Option<CancellationToken> {
        self.live.running.as_ref().map(|it| &it.over).or(self.live.last.as_ref()).cloned()
    }

    /// It is not polled any more. Answers who waits for a poll of it.
    pub(crate) fn end_live(&mut self) -> Vec<CommandReply> {
        let last = self.last_round();
        let running = std::mem::take(&mut self.live).running;
        self.live.last = last;
        running.map_or_else(Vec::new, |it| [it.answers, it.waiting].into_iter().flatten().collect())
    }
}

impl PollScheduler {
    /// Takes over what the store knows of the feeds that this gateway polls. A feed whose time has not come waits for
    /// it; what is due is spread.
    pub(crate) async fn load(&mut self) -> Result<(), RoundError> {
        let store = Arc::clone(&self.context.store);
        let records = store.feed_list().await?;
        let states = store.poll_states().await?;
        let is_own = |feed: &FeedName| records.get(feed).is_none_or(|record| self.owns(record));
        let mut marks = store.attempts().await?;
        marks.retain(|mark| is_own(&mark.feed));
        self.context.attempts.take_over(marks);
        self.context.attempts.flush().await;
        let now = self.context.clock.now();
        let kept = states.iter().filter_map(|state| state.schedule.as_ref());
        let noted = kept.map(|kept| kept.noted).max();
        // What was noted in the time that has still to come was noted before the clock was set back.
        let back = noted.map_or(Duration::ZERO, |noted| noted.since(now));
        let is_active = |record: &&Arc<FeedRecord>| is_polled(record) && self.owns(record);
        let active = records.values().filter(is_active).count();
        let has_others = self.owned.as_ref().is_some_and(|it| it.gateways.live().len() > 1);
        let (step, most) = match has_others {
            true => TAKEOVER_SPREAD,
            false => (Duration::from_millis(100), self.settings().min_interval),
        };
        let spread = step.saturating_mul(u32::try_from(active).unwrap_or(u32::MAX)).min(most);
        let basis = ResumeBasis { now, back, reason: "it was due when polling began", spread };
        let mut states = by_feed(states);
        for record in records.values() {
            let state = states.remove(&record.name);
            if self.owns(record) {
                let stored = StoredFeed::read(store.as_ref(), Arc::clone(record), state).await?;
                self.resume_feed(stored, None, &basis);
            }
        }
        if let Some(owned) = &mut self.owned {
            owned.list = records;
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
        let unsaved = self.context.table.unsaved().state(&record.name, now);
        let mut state = unsaved.filter(|state| state.url == record.url).or(state);
        if !is_polled(&record) {
            if let Some(state) = state.filter(|_| record.standing == FeedStanding::Paused) {
                self.context.table.insert(record, Memory::from_stored(state, now));
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
            self.context.hosts.pause(&PauseRequest { address: pause.address.clone(), wait });
        }
        let pending = pending.map(|at| self.context.decisions.by_wall_clock(at, now));
        let bounds = self.settings().bounds(&record.options);
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
                next.reason = PollReason::Said(reason.into());
            }
        }
        let name = record.name.clone();
        self.insert(record, Some(memory), next, seconds);
        let offset = u16::try_from(offset).unwrap_or(u16::MAX);
        self.with_feed(&name, |feed| feed.live.offset = offset);
    }

    /// Polls a feed from now on, in the place of one of its name. `memory`: what is known of it; `None`: what was known
    /// before a pause, unless that was of another address. `later`: how much later its walk goes on.
    pub(super) fn insert(
        &mut self,
        record: Arc<FeedRecord>,
        memory: Option<Memory>,
        next: PlannedPoll,
        later: Duration,
    ) {
        let name = record.name.clone();
        self.leave_hub(&name);
        self.unschedule(&name);
        self.announced.detach(&name);
        let callers = self.with_feed(&name, FeedPolling::end_live).unwrap_or_default();
        self.admit(record, memory);
        self.schedule(&name, next);
        self.resume_walk(&name, later);
        self.resume_hub(&name);
        self.begin_for(&name, callers);
    }

    /// Has a feed be polled from now on. `memory`: what is known of it; `None`: what was known before a pause, unless that
    /// was of another address.
    fn admit(&self, record: Arc<FeedRecord>, memory: Option<Memory>) {
        let now = self.context.clock.now();
        let known = self.context.table.get(&record.name);
        let last = known.as_ref().and_then(|cell| cell.lock().last_round());
        let paused = known.filter(|cell| {
            let feed = cell.lock();
            feed.is_paused() && memory.is_none() && feed.memory.state.url == record.url
        });
        let cell = paused.unwrap_or_else(|| {
            let memory = memory.unwrap_or_else(|| Memory::new(&record, now));
            self.context.table.insert(Arc::clone(&record), memory)
        });
        let mut feed = cell.lock();
        (feed.record, feed.live.last) = (record, last);
        feed.begin(now);
    }

    /// Stops polling a feed. Answers once the round in flight is over.
    pub(super) fn depart(
        &mut self,
        name: &FeedName,
        departure: Departure,
        reply: oneshot::Sender<()>,
    ) {
        let last = self.last_round(name);
        self.drop_feed(name, departure);
        self.answer_after(last, reply);
    }

    pub(super) fn last_round(&self, name: &FeedName) -> Option<CancellationToken> {
        self.context.table.get(name)?.lock().last_round()
    }

    /// Answers once a round is over.
    pub(super) fn answer_after(&self, last: Option<CancellationToken>, reply: oneshot::Sender<()>) {
        let Some(last) = last else { return reply.send(()).unwrap_or_default() };
        self.context.spawn(async move {
            last.cancelled().await;
            // Who asked may have gone away.
            let _ = reply.send(());
        });
    }

    pub(super) fn drop_feed(&mut self, name: &FeedName, departure: Departure) {
        if departure == Departure::Moved {
            self.save_aside(name);
        }
        self.unschedule(name);
        // Where another gateway polls it, that goes on with its subscription.
        if matches!(departure, Departure::Paused | Departure::Removed) {
            self.leave_hub(name);
        }
        self.announced.detach(name);
        let callers = self.with_feed(name, FeedPolling::end_live).unwrap_or_default();
        answer(callers, &Err(PollError::Unknown));
        if departure == Departure::Paused {
            let now = self.context.clock.now();
            let is_paused = self.with_feed(name, |feed| {
                // Whether it would fail is not known while nobody asks.
                let interruptions = &mut feed.memory.state.interruptions;
                interruptions.note(InterruptionKind::Failed, None, now);
                feed.pause();
            });
            if let Some(cell) = self.context.table.get(name).filter(|_| is_paused.is_some()) {
                self.context.table.remember(name, &cell, CHECKPOINT_EVERY);
            }
            return;
        }
        self.context.table.remove(name);
        if departure != Departure::Moved {
            self.context.table.unsaved().forget(name);
        }
        if departure != Departure::Removed {
            self.context.attempts.forget(name);
        }
    }

    /// Begins or goes on with the walk of a feed, where there is one that is not under way: so much later.
    pub(super) fn resume_walk(&mut self, name: &FeedName, later: Duration) {
        let now = self.context.clock.now();
        let Some(cell) = self.context.table.live(name) else { return };
        let mut feed = cell.lock();
        let begins = feed.record.options.backfill;
        let walk = &mut feed.memory.state.backfill;
        if walk.is_none() && begins {
            *walk = Some(Box::new(Backfill::begin(now)));
        }
        let is_walking = walk.as_ref().is_some_and(|walk| walk.is_walking());
        if is_walking && feed.live.walking.as_ref().is_none_or(|walk| walk.is_over()) {
            let (context, followed) = (Arc::clone(&self.context), Arc::clone(&cell));
            let walking = |cancel| backfill::walk(context, followed, later, cancel);
            feed.live.walking = Some(Box::new(self.context.spawn_aside(walking)));
        }
    }

    /// Has what is remembered of a feed written down soon: its walk, or its subscription to a hub, is another one.
    pub(super) fn save_aside(&self, name: &FeedName) {
        if let Some(cell) = self.context.table.live(name) {
            self.context.table.remember(name, &cell, Duration::ZERO);
        }
    }
}
