//! The feeds that are polled: how each comes, and how it leaves, for the time being or for good.

use super::ownership::{OrderedStates, StoredFeed, TAKEOVER_SPREAD};
use super::pushes::PushTriggers;
use super::{CommandReply, PollScheduler, START_STEP};
use crate::backfill::OngoingWalk;
use crate::domains::is_polled;
use crate::error::RoundError;
use crate::feeds::FeedCell;
use crate::host_queue::HostSlot;
use crate::memory::Memory;
use crate::politeness::MAX_HOST_PAUSE;
use crate::polling::TaskAside;
use crate::reason::PlannedPoll;
use crate::schedule::phase;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    Backfill, FeedName, FeedRecord, FeedStanding, InterruptionKind, Time, ToldChange,
};
use tidegate_core::websub::subscriber::{self, Requests};
use tidegate_net::fetch::PauseRequest;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What the scheduler keeps of each feed that it polls, beside what is known of it. There may be a million, so that what
/// is seldom there has a place of its own.
pub(super) struct ScheduledFeed {
    pub(super) record: Arc<FeedRecord>,
    /// What is known of it.
    pub(super) cell: Arc<FeedCell>,
    pub(super) due: Option<Time>,
    /// How far within its second its first poll after a start begins, in milliseconds.
    pub(super) offset: u16,
    /// Its ticket, while it stands in its host's line.
    pub(super) in_line: Option<Arc<()>>,
    pub(super) running: Option<Box<RunningPoll>>,
    after_round: Option<Box<AfterRound>>,
    pub(super) hearing: PushTriggers,
    /// Asks for its missing items.
    pub(super) probing: Option<TaskAside>,
    /// Walks through its publisher's older documents.
    pub(super) walking: Option<Box<OngoingWalk>>,
    /// When its hub is to be asked, while that stands among what is due.
    pub(super) hub_due: Option<Time>,
    /// Gives up the request to its hub when it is dropped.
    pub(super) asking_hub: Option<DropGuard>,
    /// The requests for the subscription that it had last.
    pub(super) hub_requests: Option<Box<Requests>>,
}

/// What is done when the round in flight is over.
#[derive(Default)]
pub(super) struct AfterRound {
    /// Callers for whom a round has still to begin.
    pub(super) waiting: Vec<CommandReply>,
    /// What is to become of it.
    pub(super) successor: Option<Arc<FeedRecord>>,
    /// Whether its publisher is asked with something else since the round in flight began.
    pub(super) asked_otherwise: bool,
    /// How it leaves polling, if it does.
    pub(super) leaving: Option<Departure>,
    /// Who waits for the end of the round.
    pub(super) left: Vec<oneshot::Sender<()>>,
}

/// A poll in flight.
pub(super) struct RunningPoll {
    pub(super) cancel: CancellationToken,
    /// Callers that this round answers.
    pub(super) answers: Vec<CommandReply>,
    /// Its slot at its host; `None`: it was asked for, and goes past the line.
    pub(super) slot: Option<HostSlot>,
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

impl ScheduledFeed {
    /// Whether a record differs from that of the feed in nothing that polling follows.
    pub(super) fn follows_alike(&self, record: &FeedRecord) -> bool {
        let own = &self.record;
        own.url == record.url && own.options == record.options && own.access == record.access
    }

    /// Goes on with another record of the same address. What is under way takes it from its next request on.
    pub(super) fn set_record(&mut self, record: Arc<FeedRecord>) {
        if let Some(walking) = &self.walking {
            walking.set_record(Arc::clone(&record));
        }
        self.record = record;
    }

    /// What is done when the round in flight is over.
    pub(super) fn after_round(&mut self) -> &mut AfterRound {
        self.after_round.get_or_insert_default()
    }

    /// The round in flight is over: what is done now.
    pub(super) const fn end_round(&mut self) -> Option<Box<AfterRound>> {
        self.after_round.take()
    }

    /// How many callers a round has still to begin for.
    pub(super) fn waiting(&self) -> usize {
        self.after_round.as_ref().map_or(0, |after| after.waiting.len())
    }

    /// Whether it goes on as it is when the round in flight is over.
    pub(super) fn stays(&self) -> bool {
        let stays = |after: &AfterRound| after.leaving.is_none() && after.successor.is_none();
        self.after_round.as_deref().is_none_or(stays)
    }

    /// Whether it leaves polling when the round in flight is over.
    pub(super) fn is_leaving(&self) -> bool {
        self.after_round.as_ref().is_some_and(|after| after.leaving.is_some())
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
        let unsaved = self.bench.table.unsaved().state(&record.name, now);
        let mut state = unsaved.filter(|state| state.url == record.url).or(state);
        if !is_polled(&record) {
            if let Some(state) = state.filter(|_| record.standing == FeedStanding::Paused) {
                self.bench.table.insert(record.name.clone(), Memory::from_stored(state, now));
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
        self.insert(record, Some(memory), next, seconds);
        if let Some(feed) = self.feeds.get_mut(&name) {
            feed.offset = u16::try_from(offset).unwrap_or(u16::MAX);
        }
    }

    /// Polls a feed from now on. `memory`: what is known of it; `None`: what was known before a pause, unless that was
    /// of another address. `later`: how much later its walk goes on.
    pub(super) fn insert(
        &mut self,
        record: Arc<FeedRecord>,
        memory: Option<Memory>,
        next: PlannedPoll,
        later: Duration,
    ) {
        let name = record.name.clone();
        let mut feed = self.admit(record, memory);
        if self.feeds.contains_key(&name) {
            self.leave_hub(&name);
            self.announced.detach(&name);
            feed.hub_requests = self.feeds.get_mut(&name).and_then(|old| old.hub_requests.take());
        }
        self.feeds.insert(name.clone(), feed);
        self.schedule(&name, next);
        self.resume_walk(&name, later);
        self.resume_hub(&name);
    }

    /// Takes in a feed for one round: another gateway owns it.
    pub(super) fn insert_guest(&mut self, record: Arc<FeedRecord>, mut memory: Memory) {
        let name = record.name.clone();
        // Its hub talks to the owner.
        memory.state.subscription = None;
        let mut feed = self.admit(record, Some(memory));
        feed.after_round().leaving = Some(Departure::Lost);
        self.feeds.insert(name, feed);
    }

    /// A feed that is polled from now on. `memory`: what is known of it; `None`: what was known before a pause, unless
    /// that was of another address.
    fn admit(&self, record: Arc<FeedRecord>, memory: Option<Memory>) -> Box<ScheduledFeed> {
        let (name, now) = (&record.name, self.clock.now());
        let paused = self.bench.table.get(name).filter(|cell| {
            let polling = cell.lock();
            polling.is_paused() && memory.is_none() && polling.memory.state.url == record.url
        });
        let cell = paused.unwrap_or_else(|| {
            let memory = memory.unwrap_or_else(|| Memory::new(&record, now));
            self.bench.table.insert(name.clone(), memory)
        });
        cell.lock().begin(now);
        Box::new(ScheduledFeed {
            record,
            cell,
            due: None,
            offset: 0,
            in_line: None,
            running: None,
            after_round: None,
            hearing: PushTriggers::default(),
            probing: None,
            walking: None,
            hub_due: None,
            asking_hub: None,
            hub_requests: None,
        })
    }

    /// Stops polling a feed, once the round in flight is over.
    pub(super) fn depart(
        &mut self,
        name: &FeedName,
        departure: Departure,
        reply: oneshot::Sender<()>,
    ) {
        if let Some(feed) = self.feeds.get_mut(name)
            && let Some(running) = &feed.running
        {
            running.cancel.cancel();
            let after = feed.after_round();
            after.leaving = Some(departure);
            after.left.push(reply);
            return;
        }
        self.drop_feed(name, departure);
        let _ = reply.send(());
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
        let feed = self.feeds.remove(name);
        self.announced.detach(name);
        if let Some(feed) = feed.filter(|_| departure == Departure::Paused) {
            let mut polling = feed.cell.lock();
            // Whether it would fail is not known while nobody asks.
            let interruptions = &mut polling.memory.state.interruptions;
            interruptions.note(InterruptionKind::Failed, None, self.clock.now());
            polling.pause();
            drop(polling);
            self.bench.table.remember(name, &feed.cell, super::CHECKPOINT_EVERY);
        }
        if departure == Departure::Paused {
            return;
        }
        if departure != Departure::Moved {
            self.bench.table.unsaved().forget(name);
        }
        if departure != Departure::Removed {
            self.bench.attempts.forget(name);
        }
        self.bench.table.remove(name);
    }

    /// Begins or goes on with the walk of a feed, where there is one that is not under way: so much later.
    pub(super) fn resume_walk(&mut self, name: &FeedName, later: Duration) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let mut polling = feed.cell.lock();
        let walk = &mut polling.memory.state.backfill;
        if walk.is_none() && feed.record.options.backfill {
            *walk = Some(Box::new(Backfill::begin(now)));
        }
        let is_walking = walk.as_ref().is_some_and(|walk| walk.is_walking());
        drop(polling);
        if is_walking && feed.walking.as_ref().is_none_or(|walk| walk.is_over()) {
            let followed = (Arc::clone(&feed.record), Arc::clone(&feed.cell));
            let walking = OngoingWalk::begin(&self.bench, followed, later, &self.cancel);
            feed.walking = Some(Box::new(walking));
        }
    }
}
