//! The task that owns every polled feed.
//!
//! It keeps a queue of feeds by due time and a line of due feeds per host. It sleeps in short slices so that a jump of
//! the wall clock delays no poll. If the clock is set back, due times move with it; if it leaps ahead, feeds are only
//! polled early.

mod checkpoints;
mod commands;
pub(super) mod feed;
pub(super) mod hub;
pub(super) mod ownership;
mod pushes;
mod rounds;

use self::ownership::OwnedFeeds;
use self::rounds::Done;
use super::error::PollError;
use super::feeds::FeedPolling;
use super::politeness::HostRank;
use super::poller::PollCommand;
use super::polling::PollContext;
use super::schedule::{Bounds, PlannedPoll};
use super::sup::FollowedDocuments;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, Time, ToldChange};
use tidegate_core::websub::subscriber;
use tidegate_status::PollResponse;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

/// The longest sleep between two checks for due feeds: bounds how late a clock jump, or a change without a
/// notification, is noticed. A feed put off by a host's pause goes on this long after its end, because wall-clock times
/// are whole seconds.
pub(super) const SLICE: Duration = Duration::from_secs(1);
/// How long rounds in flight may take to end when polling stops.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// How soon a feed is polled again when the store could not accept the result; later while the store stays closed.
pub(super) const STORE_REST: Duration = Duration::from_secs(10);
/// The shown reason of a poll that was put off.
const HOST_PAUSED: &str = "its host takes few requests: it asked for a pause in answer to another one \
                           (Retry-After, or a rate limit)";
/// The most callers that may wait for one feed's polls, and the most polls on demand in flight in addition to scheduled
/// ones.
const MAX_WAITING: usize = 64;

type CommandReply = oneshot::Sender<Result<PollResponse, PollError>>;

/// Sends the result of a poll to all callers that wait for it.
fn answer(callers: Vec<CommandReply>, polled: &Result<PollResponse, PollError>) {
    for caller in callers {
        // The receiver is gone if the caller gave up.
        let _ = caller.send(polled.clone());
    }
}

/// The state of the polling task.
pub(super) struct PollScheduler {
    context: Arc<PollContext>,
    /// Feeds by due time; from then on each waits in the line of its host.
    due: BTreeSet<(Time, FeedName)>,
    /// Polls in flight.
    running: JoinSet<Box<Done>>,
    /// The number of polls begun since the start; the source of their serials.
    begun: u64,
    /// Limits the polls on demand in flight.
    asked_for: Arc<Semaphore>,
    followed_documents: FollowedDocuments,
    /// The clocks as last read, to detect jumps.
    last_now: Time,
    last_instant: Instant,
    /// The feeds this gateway owns; `None`: it owns all.
    owned: Option<Box<OwnedFeeds>>,
}

impl PollScheduler {
    pub(super) fn new(context: Arc<PollContext>) -> Self {
        Self {
            owned: context.store.gateways().map(|gateways| Box::new(OwnedFeeds::new(gateways))),
            last_now: context.clock.now(),
            last_instant: Instant::now(),
            context,
            due: BTreeSet::new(),
            running: JoinSet::new(),
            begun: 0,
            asked_for: Arc::new(Semaphore::new(MAX_WAITING)),
            followed_documents: FollowedDocuments::default(),
        }
    }

    /// Polls until cancelled or until the last [`Poller`](super::Poller) is dropped.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<PollCommand>) {
        let writer = tokio::spawn(checkpoints::keep_written(Arc::clone(&self.context)));
        let cancel = self.context.cancel.clone();
        loop {
            self.follow_gateways();
            self.start_what_is_due();
            let wake = self.wake_at();
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                Some(done) = self.running.join_next() => {
                    self.finish(done);
                    // Bounded, so that commands and the clock get their turn.
                    for _ in 0..64 {
                        let Some(done) = self.running.try_join_next() else { break };
                        self.finish(done);
                    }
                }
                Some(compared) = OwnedFeeds::next_event(&mut self.owned) => {
                    self.apply_comparison(compared);
                }
                command = inbox.recv() => match command {
                    Some(command) => command(&mut self),
                    None => break,
                },
                () = self.context.hosts.changed.notified() => {}
                () = sleep_until(wake) => {}
            }
        }
        let context = Arc::clone(&self.context);
        tokio::select! {
            biased;
            () = checkpoints::keep_checking(&context) => {}
            () = self.stop(writer) => {}
        }
        if let Some(owned) = &self.owned {
            owned.gateways.set_polls(false);
        }
    }

    fn finish(&mut self, done: Result<Box<Done>, JoinError>) {
        match done {
            Ok(done) => self.finish_poll(*done),
            Err(error) => tracing::error!(%error, "a task of polling broke off"),
        }
    }

    /// The shortest and longest interval of a feed.
    fn bounds(&self, record: &FeedRecord) -> Bounds {
        self.context.settings.load().bounds.of(&record.options)
    }

    /// Reads or changes a polled feed; `None` if it is not polled.
    fn with_feed<T>(
        &self,
        name: &FeedName,
        change: impl FnOnce(&mut FeedPolling) -> T,
    ) -> Option<T> {
        let cell = self.context.table.get(name)?;
        let mut feed = cell.lock();
        (!feed.is_paused()).then(|| change(&mut feed))
    }

    fn schedule(&mut self, name: &FeedName, next: PlannedPoll) {
        let stopped = self.context.attempts.stopped(name);
        let (at, is_stopped) = (next.at, stopped.is_some());
        let old = self.with_feed(name, |feed| match stopped {
            Some(failure) => {
                feed.live.failure = Some(Box::new(failure));
                None
            }
            None => feed.plan(next),
        });
        let Some(old) = old.filter(|_| !is_stopped) else { return };
        if let Some(old) = old {
            self.due.remove(&(old.at, name.clone()));
        }
        self.due.insert((at, name.clone()));
    }

    /// Removes a feed from the due queue and from its host's line.
    fn unschedule(&mut self, name: &FeedName) {
        let old = self.with_feed(name, |feed| {
            feed.live.in_line = None;
            feed.live.next.as_ref().map(|next| next.at)
        });
        if let Some(old) = old.flatten() {
            self.due.remove(&(old, name.clone()));
        }
    }

    fn start_what_is_due(&mut self) {
        let (now, instant) = (self.context.clock.now(), Instant::now());
        self.follow_clock(now, instant);
        // Due feeds stay queued while the store cannot accept results.
        if !self.context.is_open() {
            return;
        }
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, name)) = self.due.pop_first() else { break };
            let hosts = &self.context.hosts;
            self.with_feed(&name, |feed| {
                // Pushed feeds go first, at a shorter spacing: one announcement may list a hundred.
                let is_told_of = feed.live.told != ToldChange::None;
                let rank = if is_told_of { HostRank::Listed } else { HostRank::Usual };
                let address = feed.memory.address();
                feed.live.in_line = Some(hosts.line_up(name.clone(), address, rank));
            });
        }
        while let Some((name, turn)) = self.context.hosts.next(instant) {
            match turn {
                Ok(slot) => self.begin(&name, Vec::new(), Some(slot)),
                Err(left) => {
                    self.with_feed(&name, |feed| feed.live.in_line = None);
                    let at = now.plus(left).plus(SLICE);
                    self.schedule(&name, PlannedPoll::new(at, HOST_PAUSED));
                }
            }
        }
    }

    /// Moves due times back with a wall clock that was set back, and wakes sleeping hub tasks after a leap ahead.
    fn follow_clock(&mut self, now: Time, instant: Instant) {
        let (back, passed) = (self.last_now.since(now), instant - self.last_instant);
        let ahead = now.since(self.last_now).saturating_sub(passed);
        (self.last_now, self.last_instant) = (now, instant);
        if ahead > SLICE {
            self.context.table.all().iter().for_each(|(_, cell)| cell.lock().wake_hub());
        }
        if back <= SLICE {
            return;
        }
        let due = std::mem::take(&mut self.due).into_iter();
        self.due = due.map(|(at, name)| (at.minus(back), name)).collect();
        for (at, name) in &self.due {
            self.with_feed(name, |feed| feed.live.next.iter_mut().for_each(|next| next.at = *at));
        }
        for (_, cell) in self.context.table.all() {
            let mut feed = cell.lock();
            feed.live.polled = feed.live.polled.map(|polled| polled.minus(back));
            feed.memory.set_back(back);
            if let Some(subscription) = &mut feed.memory.state.subscription {
                subscriber::set_back(subscription, back);
            }
            feed.wake_hub();
        }
    }

    fn wake_at(&self) -> Instant {
        let now = Instant::now();
        if !self.context.is_open() {
            return now + SLICE;
        }
        let due = self.due.first().map(|(at, _)| now + at.since(self.last_now));
        let times = [due, self.context.hosts.wake_at()];
        times.into_iter().flatten().min().map_or(now + SLICE, |at| at.min(now + SLICE))
    }

    /// Waits for the rounds in flight, at most [`STOP_WAIT`], and writes the unsaved poll states.
    async fn stop(&mut self, writer: JoinHandle<()>) {
        // Needed when the last handle is dropped without cancelling: otherwise rounds go on fetching.
        self.context.cancel.cancel();
        let tasks = self.context.tasks.clone();
        tasks.close();
        let ended = timeout(STOP_WAIT, async {
            while let Some(done) = self.running.join_next().await {
                self.finish(done);
            }
            tasks.wait().await;
        })
        .await;
        if ended.is_err() {
            tracing::warn!(
                rounds = self.running.len() + tasks.len(),
                limit = ?STOP_WAIT,
                "polling stops though rounds are still in flight"
            );
        }
        self.running.shutdown().await;
        // Nothing may be committed while the store closes.
        self.context.abandon.cancel();
        let _ = timeout(Duration::from_secs(1), tasks.wait()).await;
        if self.context.writing_term().is_none() {
            return writer.abort();
        }
        // Even if the writer task panicked, the rest is written.
        let _ = writer.await;
        checkpoints::write_the_rest(&self.context).await;
    }
}
