//! Rounds: their beginning, and what is done when one is over.

use super::commands::ASKED_OTHERWISE;
use super::departure::Departure;
use super::errands::FinishedErrand;
use super::feed::{AfterRound, RunningErrand};
use super::hosts::read_from;
use super::{CommandReply, Done, PollScheduler};
use crate::error::{PollError, RoundError};
use crate::memory::Memory;
use crate::pauses::MAX_HOST_PAUSE;
use crate::politeness::{Errand, PoliteHost};
use crate::polling::{PollResult, round};
use crate::probe;
use crate::reason::PlannedPoll;
use crate::schedule::LastResult;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, HostPause, InterruptionKind, Time};
use tidegate_net::fetch::{FetchBlame, Retry};
use tidegate_status::{FinishedPoll, ParsedNote, PollEnding, PollFailure, PollGaps, PollResponse};
use tokio::time::Instant;
use tracing::{Instrument as _, debug_span};
use xxhash_rust::xxh3::xxh3_64;

/// How soon what was asked for is asked for again that the store could not take in; it waits longer where the store does.
pub(super) const STORE_REST: Duration = Duration::from_secs(10);

impl PollScheduler {
    /// Begins a round: in turn, or for callers.
    pub(super) fn begin(&mut self, name: &FeedName, answers: Vec<CommandReply>) {
        let at = self.clock.now();
        let room = self.room_to_ask(name);
        let cancel = self.cancel.child_token();
        let bench = Arc::clone(&self.bench);
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let in_turn = std::mem::take(&mut feed.in_line) && answers.is_empty();
        // Which is that of the address in its memory.
        let host = feed.host(&self.settings).clone();
        let Some(mut memory) = feed.memory.take() else { return };
        let told = std::mem::take(&mut feed.hearing.told);
        feed.hearing.polled = Some(at);
        let asked_for = !answers.is_empty();
        self.asked_for += usize::from(asked_for);
        let (record, token) = (Arc::clone(&feed.record), cancel.clone());
        // In a box, since what is spawned is moved several times over.
        let task = self.running.spawn(Box::pin(async move {
            let polling = debug_span!("poll", feed = %record.name);
            let polled = round(&bench, &record, &mut memory, asked_for, &token);
            let result = polled.instrument(polling).await;
            let mut plan = None;
            if room > 0 && result.as_ref().is_ok_and(PollResult::has_missing) {
                plan = Box::pin(probe::plan(&bench, &record, room)).await;
            }
            FinishedErrand::Poll(Ok(Box::new(Done { memory, result, plan })))
        }));
        self.in_flight.insert(task.id(), (Errand::Poll(name.clone()), host));
        let since = Instant::now();
        let mut planned = None;
        self.board.change(name, |status| planned = status.ask());
        let running = RunningErrand { cancel, answers, in_turn, planned, at, since, told };
        feed.running = Some(Box::new(running));
    }

    pub(super) fn finish_poll(
        &mut self,
        name: &FeedName,
        host: &PoliteHost,
        done: Result<Box<Done>, String>,
    ) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let Some(running) = feed.running.take() else { return };
        if running.in_turn {
            self.polite.finish(host, Instant::now());
        } else {
            self.asked_for = self.asked_for.saturating_sub(1);
            self.polite.asked(host, Instant::now());
        }
        let done = done.map(|done| *done).unwrap_or_else(|error| Done {
            memory: Box::new(Memory::new(&feed.record, now)),
            result: Err(RoundError::Defect(error)),
            plan: None,
        });
        self.conclude(name, *running, done, now);
        self.go_on(name, now);
    }

    /// Remembers and reports a round that is over.
    fn conclude(&mut self, name: &FeedName, mut running: RunningErrand, done: Done, now: Time) {
        let Done { mut memory, result, plan } = done;
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let bounds = self.settings.bounds(&feed.record.options);
        if let Err(error @ (RoundError::Cancelled | RoundError::Overtaken)) = &result {
            feed.memory = Some(memory);
            let is_overtaken = matches!(error, RoundError::Overtaken);
            if is_overtaken {
                let report = report(&result);
                for answer in running.answers {
                    // Who asked may have gone away.
                    let _ = answer.send(Ok(report.clone()));
                }
            } else if !running.answers.is_empty() {
                feed.after_round().waiting.splice(0..0, running.answers);
            }
            feed.hearing.told = feed.hearing.told.max(running.told);
            self.board.change(name, |status| status.in_flight = false);
            let again = if is_overtaken { now.plus(STORE_REST) } else { now };
            self.schedule(name, PlannedPoll::new(again, "its last poll was given up"));
            return;
        }
        let failed_before = memory.poll.failures;
        // What a reader was answered says nothing of the gateway's own polls, which go on to fail.
        let is_aside = failed_before > 0 && result.as_ref().is_ok_and(|found| found.is_handed);
        let is_shared = self.owned.is_some();
        let heard = result.as_ref().ok().and_then(|found| self.heard(name, found, &running));
        let Some(feed) = self.feeds.get_mut(name) else { return };
        // The rest of a poll may have waited for the store. Meanwhile the clock may have been set back.
        let answered = result.as_ref().map_or(now, |found| found.answered.min(now));
        if let Ok(found) = &result {
            let held = found.held.as_deref();
            memory.poll.interruptions.note(InterruptionKind::Held, held, now);
        }
        let next = match &result {
            Ok(_) if is_aside => running
                .planned
                .take()
                .unwrap_or_else(|| PlannedPoll::new(now, "the publisher was not asked")),
            Ok(found) => {
                memory.succeeded();
                memory.poll.interruptions.note(InterruptionKind::Failed, None, now);
                let after = match heard {
                    Some(by) => LastResult::Announced(by, found.look_again),
                    None => LastResult::Read(found.look_again),
                };
                let planned = memory.plan(name, bounds, answered).next(after, answered);
                feed.replan(planned, bounds.min(), now)
            }
            // The publisher has no part in it, and what it sent is asked for again.
            Err(error) if error.is_of_store(is_shared) => {
                PlannedPoll::new(now.plus(STORE_REST), "its last poll could not be stored")
            }
            Err(error) => {
                let words = hidden(&feed.record, &error.describe());
                let is_gone = error.failure().status == Some(410);
                if is_gone {
                    memory.gone(&words, !running.in_turn);
                } else {
                    memory.failed(&words);
                }
                if error.blame() != FetchBlame::Gateway {
                    let kind = InterruptionKind::Failed;
                    memory.poll.interruptions.note(kind, Some(&words), running.at);
                }
                let failures = memory.poll.failures;
                let after = match error.retry() {
                    Retry::Seldom if is_gone => {
                        LastResult::Gone { failures, row: memory.poll.rare.gone }
                    }
                    retry => LastResult::Failed(failures, retry),
                };
                let next = memory.plan(name, bounds, now).next(after, now);
                let asked =
                    error.retry() != Retry::Backoff && error.blame() != FetchBlame::Operator;
                let not_before = asked.then_some(next.at);
                memory.poll.rare.change(|rare| rare.not_before = not_before);
                next
            }
        };
        let pause = match &result {
            Ok(found) => found.pause.clone(),
            Err(error) => error.pause(&feed.record.url),
        };
        let host_pause = pause.as_ref().map(|pause| HostPause {
            address: pause.address.clone(),
            until: now.plus(pause.wait.min(MAX_HOST_PAUSE)),
        });
        if !is_aside {
            memory.poll.rare.change(|rare| rare.pause = host_pause);
        }
        let retry = match &result {
            Ok(_) if is_aside => memory.poll.rare.retry.clone(),
            Ok(_) => None,
            // What the operator has to mend is tried after a restart, which may be the mending.
            Err(error) => {
                let at = if error.blame() == FetchBlame::Operator { now } else { next.at };
                Some((at, next.reason.to_string()))
            }
        };
        memory.planned(retry, answered);
        let committed = result.as_ref().is_ok_and(|found| found.committed);
        let is_unsaved = memory.must_be_written(committed) || feed.aside_is_unsaved;
        let state = is_unsaved.then(|| memory.write(&feed.record));
        let mut note = note(&running, &result);
        if let Some(failure) = &mut note.failure {
            failure.error = hidden(&feed.record, &failure.error);
        }
        let as_before = failed_before > 0
            && self.board.matches(name, |status| {
                let kind = |failure: &PollFailure| (failure.blame, failure.status);
                status.failure().map(kind) == note.failure.as_ref().map(kind)
            });
        let said = result.as_ref().err().map(|error| hidden(&feed.record, &error.report()));
        let failed_until = if is_aside { 0 } else { failed_before };
        log(name, &note, &said.unwrap_or_default(), (failed_until, as_before));
        let report = (!running.answers.is_empty()).then(|| {
            let report = report(&result);
            let error = report.error.map(|error| hidden(&feed.record, &error));
            PollResponse { error, ..report }
        });
        let (same, failures) = (memory.agreed(), memory.poll.failures);
        let moved_to = memory.poll.rare.moved_to.clone();
        let interruptions = memory.poll.interruptions.clone();
        let gaps = PollGaps::from(&memory.poll.overlap);
        let document = result.as_ref().ok().and_then(|found| found.document.as_ref());
        let document = document.map(|read| ParsedNote {
            at: running.at,
            entries: read.entries,
            partial: read.partial.clone(),
            warnings: read.warnings.clone(),
        });
        let address = read_from(&memory.poll, &feed.record);
        let host_of = NonZeroU64::new(xxh3_64(address.as_bytes()));
        if feed.host_of_address != host_of {
            (feed.host, feed.host_of_address) = (Some(self.settings.host(address)), host_of);
        }
        feed.memory = Some(memory);
        if let Ok(found) = &result {
            feed.pending = found.look_again;
        }
        if let Some(state) = state {
            self.remember(name, state);
        }
        self.board.add(name, note, document, |status| {
            status.in_flight = false;
            status.failures = failures;
            let held = match &result {
                Ok(found) => found.held.clone(),
                Err(_) => status.rare.held.clone(),
            };
            status.rare.change(|rare| {
                (rare.moved_to, rare.gaps, rare.held) = (moved_to, gaps, held);
            });
            status.interruptions = interruptions;
            status.same = same;
            if let Ok(found) = &result {
                status.look_again = found.look_again;
            }
        });
        self.schedule(name, next);
        if let Some(pause) = pause {
            self.pause(&pause);
        }
        if result.is_ok() {
            self.hurry_walk(name, now);
        }
        if let Some(plan) = plan {
            self.line_up(name, plan);
        }
        let Some(report) = report else { return };
        for answer in running.answers {
            // Who asked may have gone away.
            let _ = answer.send(Ok(report.clone()));
        }
    }

    /// What was put off until a feed's round was over.
    fn go_on(&mut self, name: &FeedName, now: Time) {
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let Some(after) = feed.end_round() else { return };
        let AfterRound { waiting, successor, asked_otherwise, leaving, left } = *after;
        if let Some(departure) = leaving {
            self.drop_feed(name, departure);
        } else if successor.as_ref().is_some_and(|it| !self.owns(it)) {
            // Another gateway polls the new address, of which nothing is known.
            self.drop_feed(name, Departure::Removed);
        } else if let Some(record) = successor {
            self.unschedule(name);
            self.unsaved.remove(name);
            let memory = Memory::new(&record, now);
            self.insert(record, memory, PlannedPoll::new(now, "its address changed"));
        } else if asked_otherwise {
            self.schedule(name, PlannedPoll::new(now, ASKED_OTHERWISE));
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
                let _ = reply.send(Err(refusal.clone()));
            }
        } else if !waiting.is_empty() {
            self.unschedule(name);
            self.begin(name, waiting);
        }
    }
}

/// An error without the address of the feed, where that is secret.
fn hidden(record: &FeedRecord, error: &str) -> String {
    record.shown().hide_in(&record.url, error)
}

fn note(running: &RunningErrand, result: &Result<PollResult, RoundError>) -> FinishedPoll {
    let found = result.as_ref().ok();
    FinishedPoll {
        at: running.at,
        took: running.since.elapsed(),
        outcome: found.map_or(PollEnding::Failed, |found| found.outcome),
        asked_for: !running.in_turn,
        bytes: found.map_or(0, |found| found.bytes),
        committed: found.is_some_and(|found| found.committed),
        is_apart: found.is_some_and(|found| found.is_apart),
        entries: found.and_then(|found| found.document.as_ref()).map(|read| read.entries),
        rewritten: found.map_or(0, |found| found.rewritten),
        counts: found.map(|found| found.counts.clone()).unwrap_or_default(),
        failure: result.as_ref().err().map(RoundError::failure),
        notes: found.map(|found| found.notes.clone()).unwrap_or_default(),
    }
}

fn report(result: &Result<PollResult, RoundError>) -> PollResponse {
    let found = result.as_ref().ok();
    PollResponse {
        outcome: found.map_or(PollEnding::Failed, |found| found.outcome),
        counts: found.map(|found| found.counts.clone()).unwrap_or_default(),
        held: found.and_then(|found| found.held.clone()),
        until: found.and_then(|found| found.until),
        error: result.as_ref().err().map(RoundError::describe),
    }
}

/// Says how a poll went. A feed that fails is told of when it begins to, when it fails in another
/// way, and when it is read again; not each time. `error`: of one that failed, with everything behind it.
fn log(feed: &FeedName, note: &FinishedPoll, error: &str, (failed_before, as_before): (u32, bool)) {
    let (outcome, took) = (note.outcome.name(), note.took);
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
