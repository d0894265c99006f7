//! How a feed begins to be polled, and how it leaves: paused, removed, or taken by another gateway.

use super::hub::HubTask;
use super::ownership::{StoredFeed, TAKEOVER_SPREAD, by_feed};
use super::{CommandReply, PollScheduler, answer};
use crate::domains::is_polled;
use crate::error::{PollError, RoundError};
use crate::feeds::{CHECKPOINT_EVERY, FeedPolling};
use crate::host_queue::HostSlot;
use crate::memory::FeedMemory;
use crate::politeness::MAX_HOST_PAUSE;
use crate::polling::BackgroundTask;
use crate::schedule::{PlannedPoll, PollReason, phase};
use crate::sup::FollowedFeed;
use crate::walk;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    Backfill, FeedName, FeedRecord, FeedStanding, InterruptionKind, Time, ToldChange,
};
use tidegate_core::websub::subscriber;
use tidegate_net::fetch::PauseRequest;
use tidegate_status::PollFailure;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The runtime state of a polled feed. There may be a million feeds, so rarely used parts are boxed.
#[derive(Default)]
pub(crate) struct LiveFeed {
    /// When polling began; `None` while the feed is paused.
    pub(crate) since: Option<Time>,
    pub(crate) next: Option<PlannedPoll>,
    /// The failure of the last poll; `None` if it succeeded.
    pub(crate) failure: Option<Box<PollFailure>>,
    /// Whether a push waits in the commands of the polling task.
    pub(crate) waits_for_push: bool,
    /// Whether a probe for missing items is running or waiting.
    pub(crate) is_probing: bool,
    /// Its ticket while it waits in its host's line; dropping it leaves the line.
    pub(crate) in_line: Option<Arc<()>>,
    pub(crate) running: Option<Box<RunningPoll>>,
    /// Cancelled at the end of an earlier round that was given up; the next round waits for that.
    pub(crate) last: Option<CancellationToken>,
    /// The change announced since its last poll began.
    pub(super) told: ToldChange,
    /// When its last poll began.
    pub(super) polled: Option<Time>,
    /// The SUP document that it names.
    pub(super) followed: Option<Box<FollowedFeed>>,
    /// Its next poll is the second one for the same announcement.
    pub(super) retried: bool,
    /// As of its last poll, its SUP document is expected to list every change.
    pub(super) covered: bool,
    /// As of its last poll, its hub is expected to announce every change.
    pub(super) by_hub: bool,
    /// Consecutive polls after an announcement that found nothing new.
    pub(super) futile: u32,
    /// The task that asks for its missing items.
    pub(crate) probing: Option<Box<BackgroundTask>>,
    /// The task that walks through its publisher's older documents.
    pub(crate) walking: Option<Box<BackgroundTask>>,
    /// The task that asks its hub for a subscription.
    pub(crate) subscribing: Option<Box<HubTask>>,
    /// When the request budget of the feed's previous subscription is restored.
    pub(crate) hub_spent: Option<Time>,
}

/// A poll in flight.
pub(crate) struct RunningPoll {
    /// The serial of the round, which tells it from earlier rounds.
    pub(super) serial: u64,
    /// Cancels the round when dropped.
    pub(super) cancel: Option<DropGuard>,
    /// Cancelled when the round has ended.
    pub(super) over: CancellationToken,
    /// Whether the request to the publisher has gone out.
    pub(super) is_sent: bool,
    /// The callers that this round answers: those that asked before its request went out.
    pub(super) answers: Vec<CommandReply>,
    /// The callers that the next round answers.
    pub(super) waiting: Vec<CommandReply>,
    /// Whether the feed's credentials, headers or proxy changed after the round began.
    pub(super) asked_otherwise: bool,
    /// Its slot at its host; `None` for a poll on demand, which skips the line.
    pub(super) slot: Option<HostSlot>,
    pub(super) _asked_for: Option<OwnedSemaphorePermit>,
    /// The address of the request, for the host's spacing.
    pub(super) address: Box<str>,
    /// The planned poll that this round replaces.
    pub(super) planned: Option<PlannedPoll>,
    pub(super) at: Time,
    pub(super) since: Instant,
    /// The pushed change for which it was begun.
    pub(super) told: ToldChange,
}

/// Why a feed leaves polling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The operator paused it; its state is retained.
    Paused,
    Removed,
    /// Another gateway owns it now; its poll state is written for that gateway.
    Moved,
    /// Another gateway may already poll it: nothing is written.
    Lost,
}

/// The parameters for resuming several feeds.
pub(super) struct ResumeBasis {
    pub(super) now: Time,
    /// How far the clock was set back since the states were written.
    pub(super) back: Duration,
    /// The shown reason of polls that are already due.
    pub(super) reason: &'static str,
    /// The time over which due polls are spread.
    pub(super) spread: Duration,
}

impl FeedPolling {
    /// Whether polling treats `record` like the feed's own record: same address, options and access.
    pub(super) fn follows_alike(&self, record: &FeedRecord) -> bool {
        let own = &self.record;
        own.url == record.url && own.options == record.options && own.access == record.access
    }

    /// The token that is cancelled at the end of the latest round, which may be in flight.
    fn last_round(&self) -> Option<CancellationToken> {
        self.live.running.as_ref().map(|it| &it.over).or(self.live.last.as_ref()).cloned()
    }

    /// Discards the runtime state of a feed, which is paused then. Returns the callers that wait for its polls.
    pub(crate) fn end_live(&mut self) -> Vec<CommandReply> {
        let last = self.last_round();
        let running = std::mem::take(&mut self.live).running;
        self.live.last = last;
        running.map_or_else(Vec::new, |it| [it.answers, it.waiting].into_iter().flatten().collect())
    }
}

impl PollScheduler {
    /// Loads the feeds that this gateway owns from the store. Feeds keep their planned times; those already due are
    /// spread over time.
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
        // A note from the future was written before the clock was set back.
        let back = noted.map_or(Duration::ZERO, |noted| noted.since(now));
        let is_active = |record: &&Arc<FeedRecord>| is_polled(record) && self.owns(record);
        let active = records.values().filter(is_active).count();
        let has_others = self.owned.as_ref().is_some_and(|it| it.gateways.live().len() > 1);
        let (step, most) = match has_others {
            true => TAKEOVER_SPREAD,
            false => (Duration::from_millis(100), self.context.settings.load().bounds.min()),
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

    /// Polls a feed from its stored state, if it should be polled. `first` replaces the poll that follows from that
    /// state.
    pub(super) fn resume_feed(
        &mut self,
        stored: StoredFeed,
        first: Option<PlannedPoll>,
        basis: &ResumeBasis,
    ) {
        let StoredFeed { record, state, pending } = stored;
        let ResumeBasis { now, back, reason, spread } = *basis;
        // A state not yet written is newer than the stored one.
        let unsaved = self.context.table.unsaved.lock().state(&record.name, now);
        let mut state = unsaved.filter(|state| state.url == record.url).or(state);
        if !is_polled(&record) {
            if let Some(state) = state.filter(|_| record.standing == FeedStanding::Paused) {
                self.context.table.insert(record, FeedMemory::from_stored(state, now));
            }
            return;
        }
        if let Some(subscription) = state.as_mut().and_then(|it| it.subscription.as_mut()) {
            subscriber::resume(subscription, back, now);
        }
        let is_known = state.is_some();
        let memory = FeedMemory::of(&record, state, now);
        if let Some(pause) = memory.state.pause.as_ref().filter(|pause| pause.until > now) {
            let wait = pause.until.since(now).min(MAX_HOST_PAUSE);
            self.context.hosts.pause(&PauseRequest { address: pause.address.clone(), wait });
        }
        let pending = pending.map(|at| self.context.decisions.by_wall_clock(at, now));
        let bounds = self.bounds(&record);
        let next = first.or_else(|| memory.resume(bounds, pending, now));
        // At the last stop, a reader's request had added this feed and awaited its first poll.
        let is_awaited = next.is_none() && record.on_demand.is_some();
        let mut next = next.unwrap_or_else(|| {
            // Set without a schedule only by earlier versions: the pause that the publisher asked for.
            let at = memory.state.not_before.unwrap_or(now).min(now.plus(bounds.max()));
            PlannedPoll::new(at, "polling has just begun")
        });
        let spread = spread.as_secs().saturating_add(1);
        let later = if is_awaited { 0 } else { phase(&record.name) % spread };
        let later = Duration::from_secs(later);
        if next.at <= now {
            next.at = now.plus(later);
            if is_known {
                next.reason = PollReason::Text(reason.into());
            }
        }
        self.insert(record, Some(memory), next, later);
    }

    /// Polls a feed from now on, replacing one of the same name. `memory`: `None` keeps the memory from before a pause,
    /// if the address is the same. `later`: the delay before its walk goes on.
    pub(super) fn insert(
        &mut self,
        record: Arc<FeedRecord>,
        memory: Option<FeedMemory>,
        next: PlannedPoll,
        later: Duration,
    ) {
        let name = record.name.clone();
        self.leave_hub(&name);
        self.unschedule(&name);
        let callers = self.with_feed(&name, FeedPolling::end_live).unwrap_or_default();
        self.admit(record, memory);
        self.schedule(&name, next);
        self.resume_walk(&name, later);
        self.resume_hub(&name);
        self.begin_for(&name, callers);
    }

    /// Adds a feed to the table of polled feeds. `memory`: `None` keeps the memory from before a pause, if the address
    /// is the same.
    fn admit(&self, record: Arc<FeedRecord>, memory: Option<FeedMemory>) {
        let now = self.context.clock.now();
        let known = self.context.table.get(&record.name);
        let last = known.as_ref().and_then(|cell| cell.lock().last_round());
        let paused = known.filter(|cell| {
            let feed = cell.lock();
            feed.is_paused() && memory.is_none() && feed.memory.state.url == record.url
        });
        let cell = paused.unwrap_or_else(|| {
            let memory = memory.unwrap_or_else(|| FeedMemory::new(&record, now));
            self.context.table.insert(Arc::clone(&record), memory)
        });
        let mut feed = cell.lock();
        (feed.record, feed.live.last) = (record, last);
        feed.live.since = Some(now);
    }

    /// Stops polling a feed; replies once its round in flight has ended.
    pub(crate) fn depart(
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

    /// Replies once the round of `last` has ended; at once if there is none.
    pub(super) fn answer_after(&self, last: Option<CancellationToken>, reply: oneshot::Sender<()>) {
        let Some(last) = last else { return reply.send(()).unwrap_or_default() };
        self.context.spawn(async move {
            last.cancelled().await;
            // The receiver is gone if the caller gave up.
            let _ = reply.send(());
        });
    }

    pub(super) fn drop_feed(&mut self, name: &FeedName, departure: Departure) {
        if departure == Departure::Moved {
            self.save_soon(name);
        }
        self.unschedule(name);
        // A feed that moves to another gateway keeps its subscription there.
        if matches!(departure, Departure::Paused | Departure::Removed) {
            self.leave_hub(name);
        }
        let now = self.context.clock.now();
        let callers = self.with_feed(name, |feed| {
            if departure == Departure::Paused {
                // End the failure here: whether the feed still fails is unknown while it is paused.
                let interruptions = &mut feed.memory.state.interruptions;
                interruptions.note(InterruptionKind::Failed, None, now);
            }
            feed.end_live()
        });
        let was_polled = callers.is_some();
        answer(callers.unwrap_or_default(), &Err(PollError::Unknown));
        if departure == Departure::Paused {
            if let Some(cell) = self.context.table.get(name).filter(|_| was_polled) {
                self.context.table.remember(name, &cell, CHECKPOINT_EVERY);
            }
            return;
        }
        self.context.table.remove(name);
        if departure != Departure::Moved {
            self.context.table.unsaved.lock().feeds.remove(name);
        }
        if departure != Departure::Removed {
            self.context.attempts.forget(name);
        }
    }

    /// Starts or continues the feed's walk through older documents after `later`, unless it runs already.
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
        if is_walking && feed.live.walking.as_ref().is_none_or(|walk| walk.task.is_finished()) {
            let (context, followed) = (Arc::clone(&self.context), Arc::clone(&cell));
            let walking = |cancel| walk::take_steps(context, followed, later, cancel);
            feed.live.walking = Some(Box::new(self.context.spawn_background(walking)));
        }
    }

    /// Writes the feed's poll state soon, because its walk or its hub subscription changed.
    pub(super) fn save_soon(&self, name: &FeedName) {
        if let Some(cell) = self.context.table.live(name) {
            self.context.table.remember(name, &cell, Duration::ZERO);
        }
    }
}
