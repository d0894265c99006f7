//! Rounds: their beginning and their conclusion.

use super::commands::ASKED_OTHERWISE;
use super::feed::RunningPoll;
use super::ownership::StoredFeed;
use super::{
    CommandReply, HOST_PAUSED, MAX_WAITING, PollContext, PollScheduler, STORE_REST, answer,
};
use crate::error::{PollError, RoundError};
use crate::feeds::{CHECKPOINT_EVERY, FeedCell, FeedPolling};
use crate::host_queue::HostSlot;
use crate::memory::FeedMemory;
use crate::politeness::{MAX_HOST_PAUSE, MAX_WAIT_IN_LINE};
use crate::polling::{BROKE_OFF, PollResult, catch_panic, round, unless_it_breaks};
use crate::probe;
use crate::schedule::{Bounds, IntervalReason, PlannedPoll};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, HostPause, InterruptionKind, Time};
use tidegate_core::pause::GrowingPause;
use tidegate_judge::probe::ProbePlan;
use tidegate_net::fetch::{FetchBlame, PauseRequest, Retry};
use tidegate_status::{FinishedPoll, ParsedNote, PollEnding, PollFailure, PollResponse};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug_span};

/// The pause before a feed that its host refused (429) is polled again.
const REFUSED: GrowingPause = GrowingPause::doubling(Duration::from_secs(5), MAX_HOST_PAUSE);

/// The result of a round, with the feed and the serial of the round.
pub(super) struct Done {
    cell: Arc<FeedCell>,
    serial: u64,
    memory: Box<FeedMemory>,
    result: Result<PollResult, RoundError>,
    /// The probe that the round found worthwhile: the missing items to ask for.
    plan: Option<ProbePlan>,
}

impl PollScheduler {
    /// Begins a round: with a `slot` if the feed's turn has come, without one for callers, who skip the line.
    pub(super) fn begin(
        &mut self,
        name: &FeedName,
        answers: Vec<CommandReply>,
        slot: Option<HostSlot>,
    ) {
        let at = self.context.clock.now();
        let (context, cancel) = (Arc::clone(&self.context), self.context.cancel.child_token());
        let Some(cell) = self.context.table.live(name) else { return };
        let mut feed = cell.lock();
        if feed.live.running.is_some() {
            return;
        }
        let is_probing = !feed.live.probing.as_ref().is_none_or(|it| it.task.is_finished());
        feed.live.in_line = None;
        let told = std::mem::take(&mut feed.live.told);
        feed.live.polled = Some(at);
        let asked_for = slot.is_none();
        self.begun += 1;
        let (serial, last) = (self.begun, feed.live.last.take());
        let planned = feed.live.next.take();
        let mut memory = Box::new(feed.memory.clone());
        let (record, token) = (Arc::clone(&feed.record), cancel.clone());
        let over = CancellationToken::new();
        let ends = over.clone().drop_guard();
        let permit = asked_for.then(|| Arc::clone(&self.asked_for).try_acquire_owned().ok());
        feed.live.running = Some(Box::new(RunningPoll {
            serial,
            cancel: Some(cancel.drop_guard()),
            over,
            is_sent: false,
            answers,
            waiting: Vec::new(),
            asked_otherwise: false,
            slot,
            _asked_for: permit.flatten(),
            address: memory.address().into(),
            planned,
            at,
            since: Instant::now(),
            told,
        }));
        drop(feed);
        // Boxed, because spawning moves the future several times.
        self.running.spawn(Box::pin(async move {
            let _ends = ends;
            if let Some(last) = last {
                last.cancelled().await;
            }
            let polling = debug_span!("poll", feed = %record.name);
            let polled = async {
                let send = || {
                    let mut feed = cell.lock();
                    let running = feed.live.running.as_mut().filter(|it| it.serial == serial);
                    running.is_some_and(|running| {
                        running.is_sent = true;
                        !running.answers.is_empty()
                    })
                };
                let polled = round(&context, &record, &mut memory, send, &token);
                let result = polled.instrument(polling).await;
                let mut plan = None;
                // Items are missing that a probe may find, and nothing is held.
                let may_probe =
                    |found: &PollResult| found.decision_due.is_some() && found.held.is_none();
                if !is_probing && result.as_ref().is_ok_and(may_probe) {
                    plan = Box::pin(probe::plan(&context, &record)).await;
                }
                Some((result, plan))
            };
            let (result, plan) = catch_panic(polled, || None).await.unwrap_or_else(|| {
                *memory = FeedMemory::new(&record, at);
                (Err(RoundError::Defect(BROKE_OFF.to_owned())), None)
            });
            Box::new(Done { cell, serial, memory, result, plan })
        }));
    }

    /// Begins a round at once for `callers`, if there are any.
    pub(super) fn begin_for(&mut self, name: &FeedName, callers: Vec<CommandReply>) {
        if !callers.is_empty() {
            self.unschedule(name);
            self.begin(name, callers, None);
        }
    }

    pub(super) fn finish_poll(&mut self, done: Done) {
        let now = self.context.clock.now();
        let mut feed = done.cell.lock();
        // The feed may have been removed or its round replaced since.
        let Some(mut running) = feed.live.running.take_if(|it| it.serial == done.serial) else {
            return;
        };
        let record = Arc::clone(&feed.record);
        drop(feed);
        let name = record.name.clone();
        if running.slot.is_none() {
            self.context.hosts.note_request(&running.address);
        }
        let mut waiting = std::mem::take(&mut running.waiting);
        let asked_otherwise = running.asked_otherwise;
        match &done.result {
            Err(RoundError::Cancelled) => {
                waiting.splice(0..0, std::mem::take(&mut running.answers));
                self.give_up(&name, &running, now);
            }
            Err(RoundError::Overtaken) => {
                answer(
                    std::mem::take(&mut running.answers),
                    &Ok(build_response(&record, &done.result)),
                );
                self.give_up(&name, &running, now.plus(STORE_REST));
            }
            _ => self.conclude(&name, *running, done, now),
        }
        if self.context.cancel.is_cancelled() {
            answer(waiting, &Err(PollError::Stopped));
        } else {
            if asked_otherwise {
                self.schedule(&name, PlannedPoll::new(now, ASKED_OTHERWISE));
            }
            self.begin_for(&name, waiting);
        }
    }

    /// Plans another round at `again`, in place of one that was cancelled or overtaken.
    fn give_up(&mut self, name: &FeedName, running: &RunningPoll, again: Time) {
        self.with_feed(name, |feed| {
            feed.live.told = feed.live.told.max(running.told);
        });
        self.schedule(name, PlannedPoll::new(again, "its last poll was given up"));
    }

    /// Stores the memory of a finished round, plans the next one, and reports the result.
    fn conclude(&mut self, name: &FeedName, mut running: RunningPoll, done: Done, now: Time) {
        let Done { cell, mut memory, result, plan, .. } = done;
        let failed_before = memory.state.failures;
        let found = result.as_ref().ok();
        // The document came from a reader's proxied request: do not reset the failures of our own polls.
        let is_substitute = failed_before > 0 && found.is_some_and(|found| found.is_from_reader);
        let announced_by = found.and_then(|found| self.apply_links((name, &cell), found, &running));
        if let Some(found) = found {
            let held = found.held.as_deref();
            memory.state.interruptions.note(InterruptionKind::Held, held, now);
        }
        let mut feed = cell.lock();
        let (record, pause) = (Arc::clone(&feed.record), requested_pause(&feed.record, &result));
        let next = if is_substitute {
            let unasked = || PlannedPoll::new(now, "the publisher was not asked");
            running.planned.take().unwrap_or_else(unasked)
        } else {
            let next = self.plan_next(&feed, &mut memory, &running, &result, announced_by, now);
            memory.state.pause = pause.as_ref().map(|pause| HostPause {
                address: pause.address.clone(),
                until: now.plus(pause.wait.min(MAX_HOST_PAUSE)),
            });
            next
        };
        let (took, asked_for) = (running.since.elapsed(), running.slot.is_none());
        let note = summarize_poll(&record, running.at, took, asked_for, &result);
        let kind = |failure: &PollFailure| (failure.blame, failure.status);
        let as_before = failed_before > 0
            && feed.live.failure.as_deref().map(kind) == note.failure.as_ref().map(kind);
        let failed_until = if is_substitute { 0 } else { failed_before };
        log_poll(&record, &note, &result, (failed_until, as_before));
        // The walk and the hub subscription changed during the round; keep their current states.
        let before = &mut feed.memory.state;
        (memory.state.backfill, memory.state.subscription) =
            (before.backfill.take(), before.subscription.take());
        let is_unsaved =
            memory.differs_from(before, note.committed) || memory.is_unwritten(next.at, now);
        feed.memory = *memory;
        let document = result.as_ref().ok().and_then(|found| found.document.clone());
        let document = document.map(|read| ParsedNote { at: running.at, ..read });
        self.context.table.totals.lock().add(&note);
        feed.add(note, document, is_substitute);
        let may_walk = record.options.backfill || feed.memory.state.backfill.is_some();
        if let Some(plan) = plan {
            let (context, cell) = (Arc::clone(&self.context), Arc::clone(&cell));
            let asking = |cancel| probe::run(context, cell, plan, cancel);
            feed.live.probing = Some(Box::new(self.context.spawn_background(asking)));
        }
        drop(feed);
        if is_unsaved {
            self.context.table.remember(name, &cell, CHECKPOINT_EVERY);
        }
        self.schedule(name, next);
        if let Some(pause) = pause {
            self.context.hosts.pause(&pause);
        }
        if result.is_ok() && may_walk {
            // The walk may have waited for the feed's first document.
            self.resume_walk(name, Duration::ZERO);
        }
        if !running.answers.is_empty() {
            answer(running.answers, &Ok(build_response(&record, &result)));
        }
    }

    /// Records in `memory` how a round ended, and returns when the feed is polled next.
    fn plan_next(
        &self,
        feed: &FeedPolling,
        memory: &mut FeedMemory,
        running: &RunningPoll,
        result: &Result<PollResult, RoundError>,
        announced_by: Option<IntervalReason>,
        now: Time,
    ) -> PlannedPoll {
        let record = &feed.record;
        let bounds = self.bounds(record);
        // Committing may have taken long, and the clock may have been set back meanwhile.
        let answered = result.as_ref().map_or(now, |found| found.answered.min(now));
        let next = match result {
            Ok(found) => {
                memory.note_success(now);
                let plan = memory.plan(bounds, answered);
                let planned = plan.after_reading(found.decision_due, announced_by, answered);
                feed.live.replan(planned, bounds.min(), now)
            }
            // The publisher is not to blame: its document is simply fetched again.
            Err(error) if error.is_of_store(self.owned.is_some()) => {
                PlannedPoll::new(now.plus(STORE_REST), "its last poll could not be stored")
            }
            Err(error) => plan_after_failure(memory, record, error, running, (bounds, now)),
        };
        let retry = result.as_ref().err().map(|error| {
            // An operator's mistake is retried after a restart, which may have been its correction.
            let at = if error.blame() == FetchBlame::Operator { now } else { next.at };
            (at, next.reason.to_string())
        });
        memory.note_poll_end(retry, answered);
        next
    }
}

/// Polls a feed once on behalf of the gateway that owns it, which finds the result in the store.
pub(super) async fn poll_for_others(
    context: &Arc<PollContext>,
    stored: StoredFeed,
) -> Result<PollResponse, PollError> {
    if !context.may_poll() {
        return Err(PollError::TooMany { limit: MAX_WAITING });
    }
    let StoredFeed { record, state, .. } = stored;
    let (at, since) = (context.clock.now(), Instant::now());
    let mut memory = FeedMemory::of(&record, state, at);
    let address = memory.address().to_owned();
    let polled = round(context, &record, &mut memory, || true, &context.cancel);
    let polled = polled.instrument(debug_span!("poll", feed = %record.name));
    let result = unless_it_breaks(polled).await;
    if matches!(result, Err(RoundError::Cancelled)) {
        return Err(PollError::Stopped);
    }
    context.hosts.note_request(&address);
    requested_pause(&record, &result).iter().for_each(|pause| context.hosts.pause(pause));
    if matches!(result, Err(RoundError::Overtaken)) {
        // The owner polled the feed meanwhile; this is no failure.
        return Ok(build_response(&record, &result));
    }
    let note = summarize_poll(&record, at, since.elapsed(), true, &result);
    log_poll(&record, &note, &result, (0, false));
    context.table.totals.lock().add(&note);
    Ok(build_response(&record, &result))
}

/// Counts a failed poll in `memory` and returns when the feed is polled next.
fn plan_after_failure(
    memory: &mut FeedMemory,
    record: &FeedRecord,
    error: &RoundError,
    running: &RunningPoll,
    (bounds, now): (Bounds, Time),
) -> PlannedPoll {
    let words = mask_address(record, &error.describe());
    let status = error.failure().status;
    let is_gone = status == Some(410);
    if is_gone {
        memory.note_gone(&words, running.slot.is_none());
    } else {
        memory.note_failure(&words);
    }
    if error.blame() != FetchBlame::Gateway {
        memory.state.interruptions.note(InterruptionKind::Failed, Some(&words), running.at);
    }
    let failures = memory.state.failures;
    let plan = memory.plan(bounds, now);
    let next = plan.after_failing(failures, error.retry(), memory.state.gone, now);
    let is_asked = error.retry() != Retry::Backoff && error.blame() != FetchBlame::Operator;
    // A 429 of a busy host concerns all its feeds. The feed soon waits in line again instead of backing off.
    let refused_for = error.pause(&record.url).map(|pause| pause.wait);
    let next = match (status, refused_for) {
        (Some(429), Some(wait)) if wait <= MAX_WAIT_IN_LINE => PlannedPoll::new(
            now.plus(wait.max(REFUSED.after(failures).min(bounds.max()))),
            HOST_PAUSED,
        ),
        _ => next,
    };
    memory.state.not_before = is_asked.then_some(next.at);
    next
}

/// Masks the address of the feed in `error`, if that address is secret.
fn mask_address(record: &FeedRecord, error: &str) -> String {
    record.shown().hide_in(&record.url, error)
}

/// Summarizes a poll that began at `at`, for the status page and the metrics.
fn summarize_poll(
    record: &FeedRecord,
    at: Time,
    took: Duration,
    asked_for: bool,
    result: &Result<PollResult, RoundError>,
) -> FinishedPoll {
    let found = result.as_ref().map(|found| found.poll.clone());
    let failure = result.as_ref().err().map(RoundError::failure);
    let failure = failure.map(|it| PollFailure { error: mask_address(record, &it.error), ..it });
    let poll = found.unwrap_or_else(|_| FinishedPoll::new(at, PollEnding::Failed));
    FinishedPoll { at, took, asked_for, failure, ..poll }
}

/// Returns the pause that a host asked for in its answer.
fn requested_pause(
    record: &FeedRecord,
    result: &Result<PollResult, RoundError>,
) -> Option<PauseRequest> {
    result.as_ref().map_or_else(|error| error.pause(&record.url), |found| found.pause.clone())
}

/// Builds the answer for callers that wait for the poll.
fn build_response(record: &FeedRecord, result: &Result<PollResult, RoundError>) -> PollResponse {
    let found = result.as_ref().ok();
    PollResponse {
        outcome: found.map_or(PollEnding::Failed, |found| found.poll.outcome),
        counts: found.map(|found| found.poll.counts.clone()).unwrap_or_default(),
        held: found.and_then(|found| found.held.clone()),
        until: found.and_then(|found| found.until),
        error: result.as_ref().err().map(|error| mask_address(record, &error.describe())),
    }
}

/// Logs a finished poll. A failing feed is logged at the first failure, when the kind of failure changes, and at
/// recovery; repetitions only at debug level.
fn log_poll(
    record: &FeedRecord,
    note: &FinishedPoll,
    result: &Result<PollResult, RoundError>,
    (failed_before, as_before): (u32, bool),
) {
    let (feed, outcome, took) = (&record.name, note.outcome.name(), note.took);
    // The full chain of causes.
    let error = result.as_ref().err().map(|error| mask_address(record, &error.report()));
    let error = error.unwrap_or_default();
    if note.is_apart {
        tracing::warn!(%feed, "its document has nothing of the last one: items may have been missed");
    }
    match &note.failure {
        Some(failure) if failure.blame == FetchBlame::Gateway => {
            tracing::error!(%feed, outcome, ?took, error, "a poll failed");
        }
        Some(_) if as_before => {
            tracing::debug!(%feed, outcome, ?took, error, "a poll failed again");
        }
        Some(failure) => {
            let blame = failure.blame.name();
            tracing::warn!(%feed, outcome, ?took, blame, error, "a poll failed");
        }
        None if failed_before > 0 => {
            tracing::info!(%feed, outcome, ?took, failures = failed_before, "a feed is read again");
        }
        None => tracing::debug!(%feed, outcome, ?took, bytes = note.bytes, "a poll is over"),
    }
}
