//! The one task that owns every feed that is polled.
//!
//! It holds a queue of feeds by the time they are due and a line of due feeds per host, and sleeps
//! in short slices, so that a wall clock that jumps delays nothing: due times are moved with it
//! when it goes back, and when it goes forward feeds are merely polled early.

mod checkpoints;
mod commands;
pub(super) mod feed;
pub(super) mod hub;
pub(super) mod ownership;
mod pushes;
mod rounds;

use self::ownership::OwnedFeeds;
use self::rounds::Done;
use super::PollSettings;
use super::error::PollError;
use super::feeds::FeedPolling;
use super::politeness::HostRank;
use super::poller::PollCommand;
use super::polling::PollContext;
use super::reason::PlannedPoll;
use super::sup::{AnnouncedFeed, FollowedDocuments};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Time, ToldChange};
use tidegate_core::websub::subscriber;
use tidegate_status::PollResponse;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

/// The longest sleep of who looks what is due: how late a jump of the wall clock, and what is said nowhere, is noticed. So
/// long after the end of a pause what was put off goes on, too: the second that was begun is waited for.
pub(super) const SLICE: Duration = Duration::from_secs(1);
/// How long rounds in flight may take to end when polling stops.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// How soon what was asked for is asked for again that the store could not take in; it waits longer where the store does.
pub(super) const STORE_REST: Duration = Duration::from_secs(10);
/// Why what was put off comes later.
const HOST_PAUSED: &str = "its host takes few requests: it asked for a pause in answer to another one \
                           (Retry-After, or a rate limit)";
/// How many callers may wait for polls of one feed, and how many polls that were asked for may be in flight beside those
/// that are due.
const MAX_WAITING: usize = 64;

type CommandReply = oneshot::Sender<Result<PollResponse, PollError>>;

/// Tells all who wait for a poll what came of it.
fn answer(callers: Vec<CommandReply>, polled: &Result<PollResponse, PollError>) {
    for caller in callers {
        // Who asked may have gone away.
        let _ = caller.send(polled.clone());
    }
}

/// The polling task.
pub(super) struct PollScheduler {
    context: Arc<PollContext>,
    /// The feeds that are to stand in their hosts' lines from then on.
    due: BTreeSet<(Time, FeedName)>,
    /// Polls in flight.
    running: JoinSet<Box<Done>>,
    /// How many there were since the start.
    begun: u64,
    /// How many more may be asked for.
    asked_for: Arc<Semaphore>,
    announced: FollowedDocuments,
    /// How tasks say which feeds are to be polled.
    told: mpsc::Sender<Vec<AnnouncedFeed>>,
    news: mpsc::Receiver<Vec<AnnouncedFeed>>,
    /// When the clocks were last looked at.
    last_now: Time,
    last_instant: Instant,
    /// The feeds that it polls; `None`: all.
    owned: Option<Box<OwnedFeeds>>,
}

impl PollScheduler {
    pub(super) fn new(context: Arc<PollContext>) -> Self {
        let (told, news) = mpsc::channel(1);
        Self {
            owned: context.store.gateways().map(|gateways| Box::new(OwnedFeeds::new(gateways))),
            last_now: context.clock.now(),
            last_instant: Instant::now(),
            context,
            due: BTreeSet::new(),
            running: JoinSet::new(),
            begun: 0,
            asked_for: Arc::new(Semaphore::new(MAX_WAITING)),
            announced: FollowedDocuments::default(),
            told,
            news,
        }
    }

    /// Polls until it is cancelled or the last handle is gone.
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
                    // Then commands and the clock are looked at again.
                    for _ in 0..64 {
                        let Some(done) = self.running.try_join_next() else { break };
                        self.finish(done);
                    }
                }
                Some(wanted) = self.news.recv() => wanted.iter().for_each(|it| self.want(it)),
                Some(compared) = OwnedFeeds::next_event(&mut self.owned) => self.take_in(compared),
                command = inbox.recv() => match command {
                    Some(command) => command(&mut self),
                    None => break,
                },
                () = self.context.hosts.changed() => {}
                () = sleep_until(wake) => {}
            }
        }
        let context = Arc::clone(&self.context);
        tokio::select! {
            biased;
            () = checkpoints::keep_looking(&context) => {}
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

    fn settings(&self) -> Arc<PollSettings> {
        self.context.settings.load_full()
    }

    /// Looks at a feed that is polled, or changes it; `None` where it is not.
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
                feed.fail(failure);
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

    /// Takes a feed out of both queues.
    fn unschedule(&mut self, name: &FeedName) {
        let old = self.with_feed(name, |feed| {
            feed.live.in_line = None;
            feed.next.as_ref().map(|next| next.at)
        });
        if let Some(old) = old.flatten() {
            self.due.remove(&(old, name.clone()));
        }
    }

    fn start_what_is_due(&mut self) {
        let (now, instant) = (self.context.clock.now(), Instant::now());
        self.follow_clock(now, instant);
        // What is due stays where it is until the store takes in what comes of it.
        if !self.context.is_open() {
            return;
        }
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, name)) = self.due.pop_first() else { break };
            let hosts = &self.context.hosts;
            self.with_feed(&name, |feed| {
                let offset = u64::from(std::mem::take(&mut feed.live.offset));
                let begin = instant + Duration::from_millis(offset);
                // What is told of is read soon; the same announcement may list a hundred feeds.
                let is_told_of = feed.live.hearing.told != ToldChange::None;
                let rank = if is_told_of { HostRank::Listed } else { HostRank::Usual };
                let address = feed.memory.address();
                feed.live.in_line = Some(hosts.line_up(name.clone(), address, rank, begin));
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

    /// Moves due times along when the wall clock went back, and wakes what waits by it when it leapt ahead.
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
            self.with_feed(name, |feed| feed.next.iter_mut().for_each(|next| next.at = *at));
        }
        for (_, cell) in self.context.table.all() {
            let mut feed = cell.lock();
            feed.live.hearing.polled = feed.live.hearing.polled.map(|polled| polled.minus(back));
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

    /// Lets the rounds in flight end and writes what is to be remembered.
    async fn stop(&mut self, writer: JoinHandle<()>) {
        // Without this, rounds go on fetching when the last handle is gone but nobody cancelled.
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
        // Nothing more is committed while the store closes.
        self.context.abandon.cancel();
        let _ = timeout(Duration::from_secs(1), tasks.wait()).await;
        if self.context.writing_term().is_none() {
            return writer.abort();
        }
        // That it broke off keeps nothing from being written.
        let _ = writer.await;
        checkpoints::write_the_rest(&self.context).await;
    }
}
