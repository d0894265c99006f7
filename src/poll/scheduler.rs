//! The one task that owns every feed that is polled.
//!
//! It holds a queue of feeds by the time they are due and a line of due feeds per host, and sleeps
//! in short slices, so that a wall clock that jumps delays nothing: due times are moved with it
//! when it goes back, and when it goes forward feeds are merely polled early.

use super::PollSettings;
mod announced;
mod checkpoints;
mod commands;
mod departure;
mod errands;
mod feed;
mod hosts;
pub(super) mod hub;
pub(super) mod ownership;
mod plans;
mod probes;
mod rounds;
mod walks;

use self::checkpoints::CheckpointResult;
use self::departure::Departure;
use self::errands::{ErrandState, FinishedErrand};
use self::feed::{RunningErrand, ScheduledFeed};
use self::hub::AllLeaving;
use self::ownership::OwnedFeeds;
use super::allowance::HostAllowances;
use super::announced::{Looked, SupPolls};
use super::board::FeedBoard;
use super::callbacks::Callbacks;
use super::error::{PollError, RoundError};
use super::memory::Memory;
use super::politeness::{Errand, PoliteHost, Politeness};
use super::poller::PollCommand;
use super::polling::{PollContext, PollResult};
use super::reason::PlannedPoll;
use super::resume::NOTE_EVERY;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{FeedName, FeedRecord, PollState, Time, ToldChange};
use tidegate_core::websub::subscriber::Requests;
use tidegate_judge::probe::ProbePlan;
use tidegate_status::PollResponse;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The longest sleep: how late a jump of the wall clock is noticed.
const SLICE: Duration = Duration::from_secs(1);
/// By how much each feed lengthens the time over which what is due is spread after a start.
const START_STEP: Duration = Duration::from_millis(100);
/// How long changed poll states are gathered before they are written together.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);
/// How many poll states are written together at most.
const CHECKPOINT_STATES: usize = 512;
/// How long rounds in flight may take to end when polling stops.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// How old the last note of a schedule may be when polling stops.
const STOP_NOTE: Duration = Duration::from_secs(60);
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

/// The polling task.
pub(super) struct PollScheduler {
    settings: PollSettings,
    bench: Arc<PollContext>,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    board: Arc<FeedBoard>,
    feeds: HashMap<FeedName, Box<ScheduledFeed>>,
    /// What polling remembers of feeds that are paused.
    paused: HashMap<FeedName, Box<PollState>>,
    /// What is to stand in its host's line from then on.
    due: BTreeSet<(Time, Errand)>,
    polite: Politeness,
    /// Errands in flight, with the hosts that they went to.
    running: JoinSet<FinishedErrand>,
    in_flight: HashMap<Id, (Errand, PoliteHost)>,
    hosts_asked: HostAllowances,
    asked_for: usize,
    announced: SupPolls,
    /// Requests for SUP documents in flight, and for which.
    looks: JoinSet<Option<Looked>>,
    addresses: HashMap<Id, String>,
    callbacks: Arc<Callbacks>,
    leaving: AllLeaving,
    /// What polling remembers and the store does not show yet.
    unsaved: BTreeMap<FeedName, PollState>,
    /// When some of it is written.
    checkpoint_at: Option<Instant>,
    /// What is being written of it: one at a time.
    checkpoints: JoinSet<CheckpointResult>,
    /// When a schedule was last written down, and when it is looked at which have strayed.
    noted: Option<Time>,
    note_at: Instant,
    last_now: Time,
    /// Whether nothing is begun, because the store takes nothing in.
    waits_for_store: bool,
    /// The feeds that it polls; `None`: all.
    owned: Option<Box<OwnedFeeds>>,
    /// Not before then is what polling remembers written, because that failed.
    flush_at: Instant,
}

impl PollScheduler {
    pub(super) fn new(
        settings: PollSettings,
        bench: PollContext,
        clock: Arc<dyn Clock>,
        cancel: CancellationToken,
        board: Arc<FeedBoard>,
        callbacks: Arc<Callbacks>,
    ) -> Self {
        let last_now = clock.now();
        Self {
            polite: Politeness::new(settings.at_once, Arc::clone(&bench.pauses)),
            owned: bench.store.gateways().map(|gateways| Box::new(OwnedFeeds::new(gateways))),
            flush_at: Instant::now(),
            settings,
            bench: Arc::new(bench),
            clock,
            cancel,
            board,
            feeds: HashMap::new(),
            paused: HashMap::new(),
            due: BTreeSet::new(),
            running: JoinSet::new(),
            in_flight: HashMap::new(),
            hosts_asked: HostAllowances::default(),
            asked_for: 0,
            announced: SupPolls::default(),
            looks: JoinSet::new(),
            addresses: HashMap::new(),
            callbacks,
            leaving: AllLeaving::new(),
            unsaved: BTreeMap::new(),
            checkpoint_at: None,
            checkpoints: JoinSet::new(),
            noted: None,
            note_at: Instant::now() + NOTE_EVERY,
            last_now,
            waits_for_store: false,
        }
    }

    /// Polls until it is cancelled or the last handle is gone.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<PollCommand>) {
        loop {
            self.follow_gateways();
            self.start_what_is_due();
            self.look_at_documents();
            let wake = self.wake_at();
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break,
                Some(done) = self.running.join_next_with_id() => {
                    self.finish(done);
                    self.finish_others();
                }
                Some(looked) = self.looks.join_next_with_id() => self.looked(looked),
                Some(done) = self.checkpoints.join_next() => {
                    self.finish_checkpoint(done);
                }
                Some(compared) = OwnedFeeds::next_event(&mut self.owned) => self.take_in(compared),
                command = inbox.recv() => match command {
                    Some(command) => self.obey(command),
                    None => break,
                },
                () = sleep_until(wake) => {}
            }
            self.keep_up().await;
        }
        self.stop().await;
        if let Some(owned) = &self.owned {
            owned.gateways.set_polls(false);
        }
    }

    fn insert(&mut self, record: Arc<FeedRecord>, memory: Memory, next: PlannedPoll) {
        let name = record.name.clone();
        self.begin_on_board(&name, &memory);
        let mut feed = Box::new(ScheduledFeed::new(record, memory));
        if self.feeds.contains_key(&name) {
            feed.hub_requests = self.replace(&name);
        }
        self.feeds.insert(name.clone(), feed);
        self.schedule(&name, next);
        self.resume_walk(&name);
        self.resume_hub(&name);
    }

    /// Takes in a feed for one round: another gateway owns it.
    fn insert_guest(&mut self, record: Arc<FeedRecord>, memory: Memory) {
        let name = record.name.clone();
        self.begin_on_board(&name, &memory);
        let mut feed = Box::new(ScheduledFeed::new(record, memory));
        feed.after_round().leaving = Some(Departure::Lost);
        self.feeds.insert(name, feed);
    }

    /// Ends what else was under way for a feed that another takes the place of. What it asked its hub for.
    fn replace(&mut self, name: &FeedName) -> Option<Box<Requests>> {
        self.forget(&Errand::Probe(name.clone()));
        self.forget(&Errand::Walk(name.clone()));
        self.leave_hub(name);
        self.announced.detach(name);
        self.feeds.get_mut(name)?.hub_requests.take()
    }

    fn schedule(&mut self, name: &FeedName, next: PlannedPoll) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if let Some(failure) = self.bench.attempts.stopped(name) {
            return self.board.change(name, |status| status.fail(failure));
        }
        if let Some(old) = feed.due.replace(next.at) {
            self.due.remove(&(old, Errand::Poll(name.clone())));
        }
        self.due.insert((next.at, Errand::Poll(name.clone())));
        self.board.change(name, |status| status.plan(next));
    }

    /// Takes a feed out of both queues.
    fn unschedule(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if let Some(old) = feed.due.take() {
            self.due.remove(&(old, Errand::Poll(name.clone())));
        }
        if std::mem::take(&mut feed.in_line) {
            let host = feed.host(&self.settings);
            self.polite.forget(&Errand::Poll(name.clone()), host);
        }
    }

    fn start_what_is_due(&mut self) {
        let (now, instant) = (self.clock.now(), Instant::now());
        self.follow_clock(now);
        if self.has_to_wait() {
            return;
        }
        while self.due.first().is_some_and(|(at, _)| *at <= now) {
            match self.due.pop_first() {
                Some((_, Errand::Poll(name))) => self.line_up_poll(name, instant),
                Some((_, Errand::Walk(name))) => self.line_up_step(name),
                Some((_, Errand::Hub(name))) => self.line_up_hub(&name, now),
                Some((_, Errand::Probe(_))) | None => {}
            }
        }
        self.run_errands(now, instant);
    }

    /// Whether what is due has to wait, because the store would not take in what comes of it. What is
    /// due stays where it is, and begins once the store takes it in again.
    fn has_to_wait(&mut self) -> bool {
        let takes_in = self.bench.store.condition().check_intake().is_ok();
        self.waits_for_store = !takes_in || !self.may_begin();
        self.waits_for_store
    }

    fn line_up_poll(&mut self, name: FeedName, instant: Instant) {
        let Some(feed) = self.feeds.get_mut(&name) else { return };
        feed.due = None;
        feed.in_line = true;
        let offset = Duration::from_millis(u64::from(std::mem::take(&mut feed.offset)));
        let begin = instant + offset;
        // What is told of is read soon; the same announcement may list a hundred feeds.
        let is_told_of = feed.hearing.told != ToldChange::None;
        let host = feed.host(&self.settings);
        if is_told_of {
            self.polite.enqueue_listed(Errand::Poll(name), host, begin);
        } else {
            self.polite.enqueue(Errand::Poll(name), host, begin);
        }
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
            let Some(feed) = self.feeds.get_mut(errand.feed()) else { continue };
            if let Some(state) = feed.state_of(errand) {
                *state = ErrandState::Due(*at);
                continue;
            }
            feed.due = Some(*at);
            self.board.change(errand.feed(), |status| {
                if let Some(next) = &mut status.next {
                    next.at = *at;
                }
            });
        }
        for feed in self.feeds.values_mut() {
            feed.hearing.polled = feed.hearing.polled.map(|polled| polled.minus(back));
            if let Some(memory) = &mut feed.memory {
                memory.set_back(back);
            }
        }
        self.set_hubs_back(back);
    }

    fn wake_at(&self) -> Instant {
        let now = Instant::now();
        if self.waits_for_store {
            return now + SLICE;
        }
        let due = self.due.first().map(|(at, _)| now + at.since(self.last_now));
        let (looks, polite) = (self.announced.wake_at(), self.polite.wake_at());
        let checkpoint = self.checkpoint_at.filter(|_| self.checkpoints.is_empty());
        let checkpoint = checkpoint.map(|at| at.max(self.flush_at));
        let times = [due, looks, polite, checkpoint];
        times.into_iter().flatten().min().map_or(now + SLICE, |at| at.min(now + SLICE))
    }

    /// Writes what is to be remembered, where it is time.
    async fn keep_up(&mut self) {
        let now = Instant::now();
        if !self.may_begin() {
            // Another gateway may write what it remembers of these feeds.
            self.checkpoints.abort_all();
            return;
        }
        // What is to be written waits until the store is open again.
        if self.bench.store.condition().stop.is_some() {
            return;
        }
        if self.note_at <= now {
            self.note_schedules(NOTE_EVERY);
        }
        self.write_what_is_due().await;
    }

    /// After what time what the store refused is tried again: where several gateways poll, soon, since others may wait
    /// for it.
    fn retry_after(&self, usual: Duration) -> Duration {
        if self.owned.is_some() { SLICE } else { usual }
    }

    /// Lets the rounds in flight end and writes what is to be remembered.
    async fn stop(&mut self) {
        // Without this, rounds go on fetching when the last handle is gone but nobody cancelled.
        self.cancel.cancel();
        let ended = timeout(STOP_WAIT, async {
            while let Some(done) = self.running.join_next_with_id().await {
                self.finish(done);
            }
        })
        .await;
        if ended.is_err() {
            tracing::warn!(
                rounds = self.running.len(),
                limit = ?STOP_WAIT,
                "polling stops though rounds are still in flight"
            );
        }
        self.running.shutdown().await;
        if !self.may_begin() {
            return;
        }
        self.end_checkpoint().await;
        self.note_schedules(STOP_NOTE);
        self.bench.attempts.close();
        self.write_all(true).await;
        // A mark that cannot be stored keeps nothing else from it.
        if self.bench.attempts.has_unwritten() {
            self.write_all(false).await;
        }
    }
}
