//! The one task that owns every feed that is polled.
//!
//! It holds a queue of feeds by the time they are due and a line of due feeds per host, and sleeps
//! in short slices, so that a wall clock that jumps delays nothing: due times are moved with it
//! when it goes back, and when it goes forward feeds are merely polled early.

use super::PollSettings;
use super::error::{PollError, RoundError};
use super::memory::Memory;
use super::politeness::{Host, Politeness};
use super::poller::{Board, Command};
use super::report::{Outcome, PollNote, PollReport};
use super::round::{Bench, Found, round};
use super::schedule::{After, Bounds, Next, phase};
use crate::clock::Clock;
use crate::fetch::{Blame, Fetch, Retry};
use crate::model::{FeedName, FeedRecord, FeedStanding, PollState, Time};
use crate::store::{Claim, CommitError, Store};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// The longest sleep: how late a jump of the wall clock is noticed.
const SLICE: Duration = Duration::from_secs(1);
/// By how much each feed lengthens the time over which first polls are spread after a start.
const START_STEP: Duration = Duration::from_millis(20);
/// How long the right to poll is asked for.
const CLAIM_TTL: Duration = Duration::from_secs(60);
/// How often it is renewed.
const CLAIM_EVERY: Duration = Duration::from_secs(20);
/// How long changed poll states are gathered before they are written together.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);
/// How many poll states are written together at most.
const CHECKPOINT_STATES: usize = 512;
/// How long rounds in flight may take to end when polling stops.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// How many callers may wait for polls of one feed.
const MAX_WAITING: usize = 64;
/// How many polls that were asked for may be in flight, beside those that are due.
const MAX_ASKED_FOR: usize = 64;

type Reply = oneshot::Sender<Result<PollReport, PollError>>;

struct Feed {
    record: Arc<FeedRecord>,
    host: Host,
    /// `None` while a round has it.
    memory: Option<Memory>,
    due: Option<Time>,
    /// Whether it stands in its host's line.
    in_line: bool,
    running: Option<Running>,
    /// Callers for whom a round has still to begin.
    waiting: Vec<Reply>,
    /// What is to become of it when the round in flight is over.
    successor: Option<Arc<FeedRecord>>,
    leaving: bool,
    /// Who waits for that.
    left: Vec<oneshot::Sender<()>>,
}

struct Running {
    cancel: CancellationToken,
    /// Callers that this round answers.
    answers: Vec<Reply>,
    /// Whether it holds a place at its host.
    in_turn: bool,
    at: Time,
    since: Instant,
}

struct Done {
    memory: Memory,
    result: Result<Found, RoundError>,
}

/// The polling task.
pub(super) struct Desk {
    settings: PollSettings,
    bench: Arc<Bench>,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    board: Arc<Board>,
    feeds: HashMap<FeedName, Feed>,
    due: BTreeSet<(Time, FeedName)>,
    polite: Politeness,
    rounds: JoinSet<Done>,
    names: HashMap<Id, FeedName>,
    asked_for: usize,
    unsaved: BTreeMap<FeedName, PollState>,
    checkpoint_at: Option<Instant>,
    claim_at: Instant,
    last_now: Time,
}

/// Asks the store for the right to poll. On one machine there is one share of the feeds.
pub(super) async fn claim(store: &Arc<dyn Store>, node: u64) -> Result<Claim, RoundError> {
    let claims = store.claims(node, CLAIM_TTL).await?;
    claims.into_iter().next().ok_or(RoundError::Fenced)
}

impl Desk {
    pub(super) fn new(
        settings: PollSettings,
        bench: Bench,
        clock: Arc<dyn Clock>,
        cancel: CancellationToken,
        board: Arc<Board>,
    ) -> Self {
        let last_now = clock.now();
        Self {
            polite: Politeness::new(settings.at_once),
            settings,
            bench: Arc::new(bench),
            clock,
            cancel,
            board,
            feeds: HashMap::new(),
            due: BTreeSet::new(),
            rounds: JoinSet::new(),
            names: HashMap::new(),
            asked_for: 0,
            unsaved: BTreeMap::new(),
            checkpoint_at: None,
            claim_at: Instant::now() + CLAIM_EVERY,
            last_now,
        }
    }

    /// Takes over what the store knows.
    pub(super) async fn load(&mut self) -> Result<(), RoundError> {
        let records = self.bench.store.feeds().await?;
        let states = self.bench.store.poll_states().await?;
        let mut states: HashMap<FeedName, PollState> =
            states.into_iter().map(|state| (state.feed.clone(), state)).collect();
        let active: Vec<_> =
            records.into_iter().filter(|r| r.standing == FeedStanding::Active).collect();
        let spread = START_STEP.saturating_mul(u32::try_from(active.len()).unwrap_or(u32::MAX));
        let spread = spread.min(self.settings.min_interval).as_secs().max(1);
        let now = self.clock.now();
        for record in active {
            let later = Duration::from_secs(phase(&record.name) % spread);
            let (memory, due) = match states.remove(&record.name) {
                Some(state) => {
                    let due = state.not_before.unwrap_or(now).max(now.plus(later));
                    // A clock that was wrong when this was written must not stop the feed.
                    let due = due.min(now.plus(self.bounds(&record).max()));
                    (Memory::from_saved(state, now), due)
                }
                None => (Memory::new(&record.name, now), now.plus(later)),
            };
            self.insert(Arc::new(record), memory, due, "polling has just begun");
        }
        Ok(())
    }

    /// Polls until it is cancelled or the last handle is gone.
    pub(super) async fn run(mut self, mut inbox: mpsc::Receiver<Command>) {
        loop {
            self.start_what_is_due();
            let wake = self.wake_at();
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break,
                Some(done) = self.rounds.join_next_with_id() => self.finish(done),
                command = inbox.recv() => match command {
                    Some(command) => self.obey(command),
                    None => break,
                },
                () = sleep_until(wake) => {}
            }
            self.keep_up().await;
        }
        self.stop().await;
    }

    fn bounds(&self, record: &FeedRecord) -> Bounds {
        Bounds::new(self.settings.min_interval, self.settings.max_interval).of(&record.options)
    }

    fn insert(&mut self, record: Arc<FeedRecord>, memory: Memory, due: Time, reason: &str) {
        let name = record.name.clone();
        let host = Host::of(&record.url, &self.settings.allow_private, self.settings.spacing);
        self.board.remove(&name);
        let feed = Feed {
            record,
            host,
            memory: Some(memory),
            due: None,
            in_line: false,
            running: None,
            waiting: Vec::new(),
            successor: None,
            leaving: false,
            left: Vec::new(),
        };
        self.feeds.insert(name.clone(), feed);
        self.schedule(&name, Next { at: due, reason: reason.to_owned() });
    }

    fn schedule(&mut self, name: &FeedName, next: Next) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if let Some(old) = feed.due.replace(next.at) {
            self.due.remove(&(old, name.clone()));
        }
        self.due.insert((next.at, name.clone()));
        self.board.change(name, |status| status.next = Some(next));
    }

    /// Takes a feed out of both queues.
    fn unschedule(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        if let Some(old) = feed.due.take() {
            self.due.remove(&(old, name.clone()));
        }
        if std::mem::take(&mut feed.in_line) {
            self.polite.forget(name, &feed.host);
        }
    }

    fn start_what_is_due(&mut self) {
        let (now, instant) = (self.clock.now(), Instant::now());
        self.follow_clock(now);
        while let Some((at, _)) = self.due.first() {
            if *at > now {
                break;
            }
            let Some((_, name)) = self.due.pop_first() else { break };
            if let Some(feed) = self.feeds.get_mut(&name) {
                feed.due = None;
                feed.in_line = true;
                self.polite.enqueue(name, &feed.host, instant);
            }
        }
        while let Some(name) = self.polite.take(instant) {
            self.begin(&name, Vec::new());
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
            .map(|(at, name)| (at.minus(back), name))
            .collect();
        for (at, name) in &self.due {
            if let Some(feed) = self.feeds.get_mut(name) {
                feed.due = Some(*at);
            }
            self.board.change(name, |status| {
                if let Some(next) = &mut status.next {
                    next.at = *at;
                }
            });
        }
    }

    /// Begins a round: in turn, or for callers.
    fn begin(&mut self, name: &FeedName, answers: Vec<Reply>) {
        let at = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let in_turn = std::mem::take(&mut feed.in_line) && answers.is_empty();
        let Some(mut memory) = feed.memory.take() else { return };
        let cancel = self.cancel.child_token();
        let asked_for = !answers.is_empty();
        self.asked_for += usize::from(asked_for);
        let (bench, record) = (Arc::clone(&self.bench), Arc::clone(&feed.record));
        let token = cancel.clone();
        let task = self.rounds.spawn(async move {
            let result = round(&bench, &record, &mut memory, asked_for, at, &token).await;
            Done { memory, result }
        });
        self.names.insert(task.id(), name.clone());
        feed.running = Some(Running { cancel, answers, in_turn, at, since: Instant::now() });
        self.board.change(name, |status| {
            status.in_flight = true;
            status.next = None;
        });
    }

    fn finish(&mut self, done: Result<(Id, Done), JoinError>) {
        let (id, done) = match done {
            Ok((id, done)) => (id, Ok(done)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(name) = self.names.remove(&id) else { return };
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(&name) else { return };
        let Some(running) = feed.running.take() else { return };
        if running.in_turn {
            self.polite.finish(&feed.host, Instant::now());
        } else {
            self.asked_for = self.asked_for.saturating_sub(1);
            self.polite.asked(&feed.host, Instant::now());
        }
        let done = done.unwrap_or_else(|error| Done {
            memory: Memory::new(&name, now),
            result: Err(RoundError::Defect(error.to_string())),
        });
        self.conclude(&name, running, done, now);
        self.go_on(&name, now);
    }

    /// Remembers and reports a round that is over.
    fn conclude(&mut self, name: &FeedName, running: Running, done: Done, now: Time) {
        let Done { mut memory, result } = done;
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let bounds = Bounds::new(self.settings.min_interval, self.settings.max_interval)
            .of(&feed.record.options);
        if matches!(result, Err(RoundError::Cancelled)) {
            feed.memory = Some(memory);
            feed.waiting.splice(0..0, running.answers);
            self.board.change(name, |status| status.in_flight = false);
            self.schedule(name, Next { at: now, reason: "its last poll was given up".into() });
            return;
        }
        let next = match &result {
            Ok(found) => {
                memory.succeeded();
                memory.plan(name, bounds, now).next(After::Read(found.look_again), now)
            }
            Err(error) => {
                memory.failed(&error.to_string());
                let after = After::Failed(memory.poll.failures, error.retry());
                let next = memory.plan(name, bounds, now).next(after, now);
                // A plain failure is tried again after a restart, whatever the pause.
                memory.poll.not_before = (error.retry() != Retry::Backoff).then_some(next.at);
                next
            }
        };
        if matches!(result, Err(RoundError::Fenced)) {
            self.claim_at = Instant::now();
        }
        let committed = result.as_ref().is_ok_and(|found| found.committed);
        if let Some(state) = memory.to_save(committed) {
            memory.saved(state.clone());
            self.unsaved.insert(name.clone(), state);
            self.checkpoint_at.get_or_insert(Instant::now() + CHECKPOINT_EVERY);
        }
        let note = note(&running, &result);
        log(name, &note);
        let report = report(&result);
        let poll = memory.poll.clone();
        feed.memory = Some(memory);
        self.board.change(name, |status| {
            status.in_flight = false;
            status.failures = poll.failures;
            status.moved_to = poll.moved_to;
            status.answered_by = poll.answered_by;
            if let Ok(found) = &result {
                status.held.clone_from(&found.held);
                status.look_again = found.look_again;
            }
            status.add(note);
        });
        self.schedule(name, next);
        for answer in running.answers {
            // Who asked may have gone away.
            let _ = answer.send(Ok(report.clone()));
        }
    }

    /// What was put off until a feed's round was over.
    fn go_on(&mut self, name: &FeedName, now: Time) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let left = std::mem::take(&mut feed.left);
        let waiting = std::mem::take(&mut feed.waiting);
        let successor = feed.successor.take();
        if std::mem::take(&mut feed.leaving) {
            self.drop_feed(name);
        } else if let Some(record) = successor {
            self.unschedule(name);
            self.unsaved.remove(name);
            self.insert(record, Memory::new(name, now), now, "its address changed");
        }
        for waiter in left {
            let _ = waiter.send(());
        }
        let refusal = match self.feeds.contains_key(name) {
            _ if self.cancel.is_cancelled() => Some(PollError::Stopped),
            false => Some(PollError::Unknown),
            true => None,
        };
        if let Some(refusal) = refusal {
            for reply in waiting {
                let _ = reply.send(Err(refusal));
            }
        } else if !waiting.is_empty() {
            self.unschedule(name);
            self.begin(name, waiting);
        }
    }

    fn drop_feed(&mut self, name: &FeedName) {
        self.unschedule(name);
        self.feeds.remove(name);
        self.unsaved.remove(name);
        self.board.remove(name);
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Put(record, reply) => self.put(record, reply),
            Command::Remove(name, reply) => self.remove(&name, reply),
            Command::PollNow(name, reply) => self.poll_now(&name, reply),
            Command::Reconfigure(parts) => {
                let (settings, fetch) = *parts;
                self.reconfigure(settings, fetch);
            }
        }
    }

    fn put(&mut self, record: Arc<FeedRecord>, reply: oneshot::Sender<()>) {
        let name = record.name.clone();
        if record.standing != FeedStanding::Active {
            return self.remove(&name, reply);
        }
        let now = self.clock.now();
        match self.feeds.get_mut(&name) {
            Some(feed) if feed.running.is_some() => {
                feed.leaving = false;
                let moved = feed.record.url != record.url;
                // Where only options change, the round in flight is as good as any.
                if moved {
                    if let Some(running) = &feed.running {
                        running.cancel.cancel();
                    }
                    feed.successor = Some(record);
                    feed.left.push(reply);
                    return;
                }
                feed.successor = None;
                feed.record = record;
            }
            Some(feed) if feed.record.url == record.url => feed.record = record,
            _ => {
                self.unschedule(&name);
                self.unsaved.remove(&name);
                self.insert(record, Memory::new(&name, now), now, "it was added or changed");
            }
        }
        let _ = reply.send(());
    }

    fn remove(&mut self, name: &FeedName, reply: oneshot::Sender<()>) {
        match self.feeds.get_mut(name) {
            Some(Feed { running: Some(running), leaving, left, .. }) => {
                running.cancel.cancel();
                *leaving = true;
                left.push(reply);
            }
            _ => {
                self.drop_feed(name);
                let _ = reply.send(());
            }
        }
    }

    fn poll_now(&mut self, name: &FeedName, reply: Reply) {
        let room = self.asked_for < MAX_ASKED_FOR;
        let refusal = match self.feeds.get_mut(name) {
            None => PollError::Unknown,
            Some(feed) if feed.leaving => PollError::Unknown,
            Some(feed) if feed.running.is_some() && feed.waiting.len() < MAX_WAITING => {
                feed.waiting.push(reply);
                return;
            }
            Some(feed) if feed.running.is_none() && room => {
                self.unschedule(name);
                self.begin(name, vec![reply]);
                return;
            }
            Some(_) => PollError::TooMany { limit: MAX_WAITING },
        };
        let _ = reply.send(Err(refusal));
    }

    fn reconfigure(&mut self, settings: PollSettings, fetch: Fetch) {
        self.settings = settings;
        self.polite.set_at_once(self.settings.at_once);
        self.bench = Arc::new(Bench { fetch, ..Bench::clone(&self.bench) });
        for feed in self.feeds.values_mut().filter(|feed| feed.running.is_none() && !feed.in_line) {
            let allow = &self.settings.allow_private;
            feed.host = Host::of(&feed.record.url, allow, self.settings.spacing);
        }
    }

    fn wake_at(&self) -> Instant {
        let now = Instant::now();
        let due = self.due.first().map(|(at, _)| now + at.since(self.last_now));
        let times = [due, self.polite.wake_at(), self.checkpoint_at, Some(self.claim_at)];
        times.into_iter().flatten().min().map_or(now + SLICE, |at| at.min(now + SLICE))
    }

    /// Renews the claim and writes what is to be remembered, where it is time.
    async fn keep_up(&mut self) {
        let now = Instant::now();
        if self.claim_at <= now {
            self.claim_at = now + CLAIM_EVERY;
            match claim(&self.bench.store, self.settings.node).await {
                Ok(claim) => {
                    *self.bench.claim.write().unwrap_or_else(PoisonError::into_inner) = claim;
                }
                Err(error) => tracing::error!(%error, "the right to poll could not be renewed"),
            }
        }
        let full = self.unsaved.len() >= CHECKPOINT_STATES;
        if full || self.checkpoint_at.is_some_and(|at| at <= now) {
            self.checkpoint().await;
        }
    }

    /// Writes the poll states that changed. What cannot be written is tried again.
    async fn checkpoint(&mut self) {
        self.checkpoint_at = None;
        while !self.unsaved.is_empty() {
            let states: Vec<_> = self.unsaved.values().take(CHECKPOINT_STATES).cloned().collect();
            let claim = self.bench.claim.read().unwrap_or_else(PoisonError::into_inner).clone();
            if let Err(error) = self.bench.store.checkpoint(&claim, &states).await {
                tracing::error!(%error, "what polling remembers could not be stored");
                if matches!(error, CommitError::Fenced) {
                    self.claim_at = Instant::now();
                }
                self.checkpoint_at = Some(Instant::now() + CHECKPOINT_EVERY);
                return;
            }
            for state in states {
                self.unsaved.remove(&state.feed);
            }
        }
    }

    /// Lets the rounds in flight end and writes what is to be remembered.
    async fn stop(&mut self) {
        // Without this, rounds go on fetching when the last handle is gone but nobody cancelled.
        self.cancel.cancel();
        let ended = timeout(STOP_WAIT, async {
            while let Some(done) = self.rounds.join_next_with_id().await {
                self.finish(done);
            }
        })
        .await;
        if ended.is_err() {
            tracing::warn!(
                rounds = self.rounds.len(),
                limit = ?STOP_WAIT,
                "polling stops though rounds are still in flight"
            );
        }
        self.checkpoint().await;
    }
}

fn note(running: &Running, result: &Result<Found, RoundError>) -> PollNote {
    let found = result.as_ref().ok();
    PollNote {
        at: running.at,
        took: running.since.elapsed(),
        outcome: found.map_or(Outcome::Failed, |found| found.outcome),
        asked_for: !running.in_turn,
        bytes: found.map_or(0, |found| found.bytes),
        committed: found.is_some_and(|found| found.committed),
        entries: found.and_then(|found| found.entries),
        counts: found.map(|found| found.counts.clone()).unwrap_or_default(),
        failure: result.as_ref().err().map(RoundError::failure),
        notes: found.map(|found| found.notes.clone()).unwrap_or_default(),
    }
}

fn report(result: &Result<Found, RoundError>) -> PollReport {
    let found = result.as_ref().ok();
    PollReport {
        outcome: found.map_or(Outcome::Failed, |found| found.outcome),
        counts: found.map(|found| found.counts.clone()).unwrap_or_default(),
        held: found.and_then(|found| found.held.clone()),
        until: found.and_then(|found| found.until),
        error: result.as_ref().err().map(ToString::to_string),
    }
}

fn log(feed: &FeedName, note: &PollNote) {
    let (outcome, took) = (note.outcome.name(), note.took);
    match &note.failure {
        Some(failure) if failure.blame == Blame::Gateway => {
            tracing::error!(%feed, outcome, ?took, error = %failure.error, "a poll failed");
        }
        Some(failure) => {
            let blame = failure.blame.name();
            tracing::warn!(%feed, outcome, ?took, blame, error = %failure.error, "a poll failed");
        }
        None => tracing::debug!(%feed, outcome, ?took, bytes = note.bytes, "a poll is over"),
    }
}
