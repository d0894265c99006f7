//! The one task that owns every feed that is polled.
//!
//! It holds a queue of feeds by the time they are due and a line of due feeds per host, and sleeps
//! in short slices, so that a wall clock that jumps delays nothing: due times are moved with it
//! when it goes back, and when it goes forward feeds are merely polled early.

mod checkpoints;
mod commands;
mod feed;
pub(super) mod hub;
pub(super) mod ownership;
mod pushes;
mod rounds;

use self::checkpoints::CheckpointResult;
use self::feed::{RunningPoll, ScheduledFeed};
use self::hub::HubAsked;
use self::ownership::OwnedFeeds;
use super::PollSettings;
use super::error::{PollError, RoundError};
use super::feeds::CHECKPOINT_EVERY;
use super::memory::Memory;
use super::poller::PollCommand;
use super::polling::{PollContext, PollResult};
use super::reason::PlannedPoll;
use super::sup::{AnnouncedFeed, FollowedDocuments};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, Time, ToldChange};
use tidegate_judge::probe::ProbePlan;
use tidegate_status::PollResponse;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The longest sleep: how late a jump of the wall clock is noticed.
const SLICE: Duration = Duration::from_secs(1);
/// By how much each feed lengthens the time over which what is due is spread after a start.
const START_STEP: Duration = Duration::from_millis(100);
/// How long rounds in flight may take to end when polling stops.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// How long is waited for what is given up then.
const ABANDON_WAIT: Duration = Duration::from_secs(1);
/// How long after the end of a pause what was put off goes on: the second that was begun is waited for.
pub(super) const PAUSE_MARGIN: Duration = Duration::from_secs(1);
/// How soon what was asked for is asked for again that the store could not take in; it waits longer where the store does.
pub(super) const STORE_REST: Duration = Duration::from_secs(10);
/// Why what was put off comes later.
const HOST_PAUSED: &str = "its host takes few requests: it asked for a pause in answer to another one \
                           (Retry-After, or a rate limit)";
/// How many callers may wait for polls of one feed.
const MAX_WAITING: usize = 64;
/// How many polls that were asked for may be in flight, beside those that are due.
const MAX_ASKED_FOR: usize = 64;

type CommandReply = oneshot::Sender<Result<PollResponse, PollError>>;

struct Done {
    memory: Box<Memory>,
    result: Result<PollResult, RoundError>,
    /// What is to be asked about missing items.
    plan: Option<ProbePlan>,
}

/// What is due for a feed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Errand {
    Poll(FeedName),
    /// Its hub is to be asked.
    Hub(FeedName),
}

/// What came of a task.
enum Finished {
    Poll(FeedName, Box<Done>),
    /// What became of a request to a hub, for the subscription of this token.
    Hub(FeedName, String, HubAsked),
}

/// How many tasks that are over are taken in before commands and the clock are looked at again.
const FINISHED_AT_ONCE: usize = 64;

/// The polling task.
pub(super) struct PollScheduler {
    settings: PollSettings,
    bench: Arc<PollContext>,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    feeds: HashMap<FeedName, Box<ScheduledFeed>>,
    /// What is to stand in its host's line from then on.
    due: BTreeSet<(Time, Errand)>,
    /// Polls and requests to hubs in flight.
    running: JoinSet<Finished>,
    asked_for: usize,
    announced: FollowedDocuments,
    /// How the tasks of SUP documents say what these tell.
    told: mpsc::Sender<Vec<AnnouncedFeed>>,
    news: mpsc::Receiver<Vec<AnnouncedFeed>>,
    /// What is being written of what polling remembers: one at a time.
    checkpoints: JoinSet<CheckpointResult>,
    last_now: Time,
    /// The feeds that it polls; `None`: all.
    owned: Option<Box<OwnedFeeds>>,
    /// Not before then is what polling remembers written, because that failed.
    flush_at: Instant,
}

impl PollScheduler {
    pub(super) fn new(
        settings: PollSettings,
        bench: Arc<PollContext>,
        cancel: CancellationToken,
    ) -> Self {
        let clock = Arc::clone(&bench.clock);
        let (told, news) = mpsc::channel(1);
        Self {
            owned: bench.store.gateways().map(|gateways| Box::new(OwnedFeeds::new(gateways))),
            flush_at: Instant::now(),
            settings,
            bench,
            cancel,
            feeds: HashMap::new(),
            due: BTreeSet::new(),
            running: JoinSet::new(),
            asked_for: 0,
            announced: FollowedDocuments::default(),
            told,
            news,
            checkpoints: JoinSet::new(),
            last_now: clock.now(),
            clock,
        }
    }

    /// Polls until it is cancelled or the last handle is gone.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<PollCommand>) {
        loop {
            self.follow_gateways();
            self.start_what_is_due();
            let wake = self.wake_at();
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break,
                Some(done) = self.running.join_next() => {
                    self.finish(done);
                    for _ in 0..FINISHED_AT_ONCE {
                        let Some(done) = self.running.try_join_next() else { break };
                        self.finish(done);
                    }
                }
                Some(wanted) = self.news.recv() => wanted.iter().for_each(|it| self.want(it)),
                Some(done) = self.checkpoints.join_next() => {
                    self.finish_checkpoint(done);
                }
                Some(compared) = OwnedFeeds::next_event(&mut self.owned) => self.take_in(compared),
                command = inbox.recv() => match command {
                    Some(command) => command(&mut self),
                    None => break,
                },
                () = self.bench.hosts.changed() => {}
                () = sleep_until(wake) => {}
            }
            self.keep_up();
        }
        self.stop().await;
        if let Some(owned) = &self.owned {
            owned.gateways.set_polls(false);
        }
    }

    fn finish(&mut self, done: Result<Finished, JoinError>) {
        match done {
            Ok(Finished::Poll(name, done)) => self.finish_poll(&name, *done),
            Ok(Finished::Hub(name, token, asked)) => self.finish_hub(&name, &token, asked),
            Err(error) => tracing::error!(%error, "a task of polling broke off"),
        }
    }

    fn schedule(&mut self, name: &FeedName, next: PlannedPoll) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if let Some(failure) = self.bench.attempts.stopped(name) {
            return feed.cell.lock().fail(failure);
        }
        if let Some(old) = feed.due.replace(next.at) {
            self.due.remove(&(old, Errand::Poll(name.clone())));
        }
        self.due.insert((next.at, Errand::Poll(name.clone())));
        feed.cell.lock().plan(next);
    }

    /// Takes a feed out of both queues.
    fn unschedule(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if let Some(old) = feed.due.take() {
            self.due.remove(&(old, Errand::Poll(name.clone())));
        }
        feed.in_line = None;
    }

    fn start_what_is_due(&mut self) {
        let (now, instant) = (self.clock.now(), Instant::now());
        self.follow_clock(now);
        // What is due stays where it is until the store takes in what comes of it.
        if !self.bench.is_open() {
            return;
        }
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            match self.due.pop_first() {
                Some((_, Errand::Poll(name))) => self.line_up_poll(name, instant),
                Some((_, Errand::Hub(name))) => self.begin_hub(&name, now),
                None => {}
            }
        }
        while let Some((name, turn)) = self.bench.hosts.next(instant) {
            match turn {
                Ok(slot) => self.begin(&name, Vec::new(), Some(slot)),
                Err(left) => {
                    if let Some(feed) = self.feeds.get_mut(&name) {
                        feed.in_line = None;
                    }
                    let at = now.plus(left).plus(PAUSE_MARGIN);
                    self.schedule(&name, PlannedPoll::new(at, HOST_PAUSED));
                }
            }
        }
    }

    fn line_up_poll(&mut self, name: FeedName, instant: Instant) {
        let Some(feed) = self.feeds.get_mut(&name) else { return };
        feed.due = None;
        let begin = instant + Duration::from_millis(u64::from(std::mem::take(&mut feed.offset)));
        // What is told of is read soon; the same announcement may list a hundred feeds.
        let is_told_of = feed.hearing.told != ToldChange::None;
        let polling = feed.cell.lock();
        let ticket = self.bench.hosts.line_up(name, polling.memory.address(), is_told_of, begin);
        drop(polling);
        feed.in_line = Some(ticket);
    }

    /// Moves due times along when the wall clock went back.
    fn follow_clock(&mut self, now: Time) {
        let back = self.last_now.since(now);
        self.last_now = now;
        if back <= SLICE {
            return;
        }
        self.due = std::mem::take(&mut self.due)
            .into_iter()
            .map(|(at, errand)| (at.minus(back), errand))
            .collect();
        for (at, errand) in &self.due {
            let (Errand::Poll(name) | Errand::Hub(name)) = errand;
            let Some(feed) = self.feeds.get_mut(name) else { continue };
            if matches!(errand, Errand::Hub(_)) {
                feed.hub_due = Some(*at);
                continue;
            }
            feed.due = Some(*at);
            if let Some(next) = &mut feed.cell.lock().next {
                next.at = *at;
            }
        }
        for feed in self.feeds.values_mut() {
            feed.hearing.polled = feed.hearing.polled.map(|polled| polled.minus(back));
            feed.cell.lock().memory.set_back(back);
            feed.set_hub_back(back);
        }
    }

    fn wake_at(&self) -> Instant {
        let now = Instant::now();
        if !self.bench.is_open() {
            return now + SLICE;
        }
        let due = self.due.first().map(|(at, _)| now + at.since(self.last_now));
        let polite = self.bench.hosts.wake_at();
        let checkpoint = self.bench.table.unsaved().due().filter(|_| self.checkpoints.is_empty());
        let checkpoint = checkpoint.map(|at| at.max(self.flush_at));
        let times = [due, polite, checkpoint];
        times.into_iter().flatten().min().map_or(now + SLICE, |at| at.min(now + SLICE))
    }

    /// Writes what is to be remembered, where it is time.
    fn keep_up(&mut self) {
        if !self.bench.may_poll() {
            // Another gateway may write what it remembers of these feeds.
            self.checkpoints.abort_all();
            return;
        }
        // What is to be written waits until the store is open again.
        if self.bench.store.condition().stop.is_none() {
            self.begin_checkpoint(true, false);
        }
    }

    /// Lets the rounds in flight end and writes what is to be remembered.
    async fn stop(&mut self) {
        // Without this, rounds go on fetching when the last handle is gone but nobody cancelled.
        self.cancel.cancel();
        let tasks = self.bench.tasks.clone();
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
        // Nothing more is committed while the store closes.
        self.bench.abandon.cancel();
        let _ = timeout(ABANDON_WAIT, tasks.wait()).await;
        if !self.bench.may_poll() {
            return;
        }
        self.end_checkpoint().await;
        for (name, feed) in &self.feeds {
            if feed.cell.lock().memory.is_behind() {
                self.bench.table.remember(name, &feed.cell, Duration::ZERO);
            }
        }
        self.bench.attempts.close();
        self.write_all(true).await;
        // A mark that cannot be stored keeps nothing else from it.
        if self.bench.attempts.has_unwritten() {
            self.write_all(false).await;
        }
    }
}
