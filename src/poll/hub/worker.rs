//! The task of the hub: follows the change log, starts due calls and records their results. It sleeps in short slices,
//! so that a jump of the wall clock delays nothing.

use super::calls::{self, CallOutcome};
use super::lanes::{LaneKey, Lanes};
use super::subscriptions::Task;
use super::{HubShared, NoHubDocument, TopicRequest, Topics};
use crate::feeds::MAX_BATCH;
use crate::polling::catch_panic;
use crate::scheduler::SLICE;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Time, mask_token};
use tidegate_core::websub::{CallbackAnswer, Duty, Manner, Subscription};
use tidegate_store::{Epoch, StoreError, in_words};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How often the hub checks whether all topics still exist.
const CHECK_EVERY: Duration = Duration::from_secs(60);
/// How long calls in flight may take when the hub stops. Aborted ones are repeated after the next start.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Runs the hub until cancelled.
pub(super) async fn run(shared: Arc<HubShared>, topics: Topics, cancel: CancellationToken) {
    let sealed = shared.store.watch_announced();
    let at = *sealed.borrow();
    let owners = shared.gateways.as_ref().map(|gateways| gateways.changes());
    let mut worker = Worker {
        shared,
        topics,
        sealed,
        at,
        stale: true,
        lanes: Lanes::default(),
        calls: JoinSet::new(),
        owners,
        read_at: Instant::now(),
    };
    worker.work(&cancel).await;
    let ended = timeout(STOP_WAIT, async { while worker.calls.join_next().await.is_some() {} });
    if ended.await.is_err() {
        worker.calls.shutdown().await;
    }
    worker.shared.flush_or_warn().await;
}

struct Worker {
    shared: Arc<HubShared>,
    topics: Topics,
    sealed: watch::Receiver<Epoch>,
    /// The last epoch read from the change log.
    at: Epoch,
    /// Whether the ticks of all feeds must be read, because the log does not reach back far enough.
    stale: bool,
    lanes: Lanes,
    /// The calls in flight; each returns its lane key.
    calls: JoinSet<LaneKey>,
    /// Signals a change in the ownership of feeds.
    owners: Option<watch::Receiver<u64>>,
    /// When subscriptions accepted by other gateways are read next.
    read_at: Instant,
}

impl Worker {
    async fn work(&mut self, cancel: &CancellationToken) {
        let mut next_check = Instant::now();
        while !cancel.is_cancelled() {
            if Instant::now() >= next_check {
                self.end_gone_topics().await;
                next_check = Instant::now() + CHECK_EVERY;
            }
            if let Err(error) = self.follow().await {
                // The store logs its own stop.
                if !matches!(error, StoreError::Stopped(_)) {
                    tracing::warn!(
                        error = in_words(&error),
                        "the hub could not read what has changed"
                    );
                }
                self.stale = true;
            }
            self.read_of_others().await;
            self.start();
            let is_dirty = self.shared.subscriptions.lock().is_dirty();
            if is_dirty && self.shared.store.condition().stop.is_none() {
                self.shared.flush_or_warn().await;
            }
            let (shared, pause) = (Arc::clone(&self.shared), self.pause());
            tokio::select! {
                () = cancel.cancelled() => return,
                Some(Ok(key)) = self.calls.join_next() => self.lanes.done(&key),
                () = shared.wake.notified() => {}
                () = shared.check_topics.notified() => next_check = Instant::now(),
                changed = self.sealed.changed() => if changed.is_err() {
                    // The sender is gone once the store is closed; do not spin.
                    sleep(SLICE).await;
                },
                () = sleep(pause) => {}
            }
        }
    }

    /// Returns the time until the next work.
    fn pause(&self) -> Duration {
        let now = self.shared.clock.now();
        let next = self.shared.subscriptions.lock().next().map_or(SLICE, |due| due.since(now));
        // Never zero: due times are whole seconds.
        let pause = next.clamp(SLICE / 4, SLICE);
        match self.lanes.rests_until() {
            Some(until) => pause.min(until.saturating_duration_since(Instant::now())),
            None => pause,
        }
    }

    /// Records what has changed since the last epoch read.
    async fn follow(&mut self) -> Result<(), StoreError> {
        let newest = *self.sealed.borrow_and_update();
        if self.stale {
            self.at = newest;
            let (mut ticks, feeds) = (Vec::new(), self.shared.subscriptions.lock().feeds());
            for feed in feeds {
                ticks.push((self.shared.tick(&feed).await?, feed));
            }
            self.shared.until_shown().await;
            for (tick, feed) in ticks {
                self.shared.subscriptions.lock().note_tick(&feed, tick, self.shared.clock.now());
            }
            self.stale = false;
        }
        // Ends, because each iteration reads a batch or returns.
        while self.at < newest {
            let read = self.shared.store.epochs_after(self.at, MAX_BATCH).await?;
            let follows = read.first().is_some_and(|first| first.epoch.0 == self.at.0 + 1);
            if !follows {
                self.stale = true;
                self.at = newest;
                return Ok(());
            }
            let now = self.shared.clock.now();
            for sealed in read.into_iter().take_while(|sealed| sealed.epoch <= newest) {
                for change in &sealed.changes {
                    self.shared.subscriptions.lock().note_tick(
                        &change.feed,
                        Some(change.tick),
                        now,
                    );
                }
                self.at = sealed.epoch;
            }
        }
        Ok(())
    }

    /// Reads the subscriptions from the store, because other gateways may have changed them or ownership moved.
    async fn read_of_others(&mut self) {
        let Some(owners) = &mut self.owners else { return };
        let is_moved = owners.has_changed().unwrap_or(false);
        if !is_moved && Instant::now() < self.read_at {
            return;
        }
        owners.mark_unchanged();
        let now = self.shared.clock.now();
        if is_moved {
            // Their new owners make these calls.
            let mut table = self.shared.subscriptions.lock();
            self.lanes.drain().into_iter().for_each(|id| table.release(id, now));
        }
        // Block writes, so that the result is not older than what was written here.
        let writing = self.shared.writing.lock().await;
        let stored = self.shared.store.subscriptions().await;
        match stored {
            Ok(stored) => {
                let count = u32::try_from(stored.len()).unwrap_or(u32::MAX);
                // Allow about 20,000 subscriptions per second.
                self.read_at = Instant::now() + SLICE * (1 + count / 20_000);
                // The ticks of newly subscribed feeds are not known yet.
                self.stale |= self.shared.subscriptions.lock().adopt_stored(stored, now);
            }
            Err(error) => {
                self.read_at = Instant::now() + SLICE;
                tracing::warn!(error = in_words(&error), "the subscriptions could not be read");
            }
        }
        drop(writing);
        if is_moved {
            self.shared.subscriptions.lock().schedule_all(now);
        }
    }

    /// Ends the subscriptions of topics that no longer exist (section 5.2).
    async fn end_gone_topics(&self) {
        let mut gone = HashMap::new();
        let feeds = self.shared.store.listed();
        let owns = |feed: &FeedName| self.shared.owns(feeds.as_deref(), feed);
        let topics = self.shared.subscriptions.lock().topics(owns);
        for topic in topics {
            let found = (self.topics)(TopicRequest::Exists(topic.clone())).await;
            if let Err(NoHubDocument::Gone(why)) = found {
                let shown = mask_token(&topic);
                tracing::info!(topic = %shown, why, "the hub ends the subscriptions of a topic");
                gone.insert(topic, why);
            }
        }
        if !gone.is_empty() {
            let reason = |of: &Subscription| gone.get(&of.topic).map(String::as_str);
            self.shared.subscriptions.lock().deny(self.shared.clock.now(), reason);
        }
    }

    /// Starts the due calls that the lanes allow.
    fn start(&mut self) {
        self.lanes.wake(Instant::now());
        // Calls stay due, here and at the gateway that owns the feed.
        if !self.shared.can_call() {
            return;
        }
        let now = self.shared.clock.now();
        let feeds = self.shared.store.listed();
        let owns = |feed: &FeedName| self.shared.owns(feeds.as_deref(), feed);
        let due = self.shared.subscriptions.lock().due(now, owns);
        due.into_iter().for_each(|queued| self.lanes.push(queued));
        while let Some(queued) = self.lanes.next() {
            let at = self.shared.hosts.call_at(&queued.key.host);
            if at > Instant::now() {
                // It uses no call while it rests, and is checked again afterwards.
                self.lanes.put_back(queued, at);
                continue;
            }
            let Some(task) = self.shared.subscriptions.lock().begin(queued.id, now, owns) else {
                self.lanes.done(&queued.key);
                continue;
            };
            self.shared.hosts.note_call(&task.host);
            let (shared, topics) = (Arc::clone(&self.shared), Arc::clone(&self.topics));
            self.calls.spawn(async move {
                let call = calls::perform(&shared, &topics, &task);
                let outcome = catch_panic(call, || {
                    tracing::error!(host = &*task.host, "a call of the hub broke off");
                    CallOutcome::PutOff("the call broke off".to_owned())
                });
                let outcome = outcome.await;
                shared.take_over(&task, outcome, shared.clock.now());
                shared.flush_or_warn().await;
                queued.key
            });
        }
    }
}

impl HubShared {
    async fn flush_or_warn(self: &Arc<Self>) {
        if let Err(error) = self.flush().await {
            tracing::warn!(error = in_words(&error), "what the hub knows could not be stored");
        }
    }

    /// Records and logs the result of a call; the log never contains the full callback address.
    fn take_over(&self, task: &Task, outcome: CallOutcome, now: Time) {
        let (of, id) = (&task.subscription, task.subscription.id());
        let topic = &*mask_token(&of.topic);
        let host = of.callback.host_str().unwrap_or_default();
        match outcome {
            CallOutcome::Answered(answer, tick) => {
                log_answer(task.duty, &answer, topic, host);
                match task.duty {
                    Duty::Deliver => self.subscriptions.lock().delivered(id, answer, tick, now),
                    _ => self.subscriptions.lock().verified(task, answer, now),
                }
            }
            CallOutcome::PutOff(why) => {
                // Log it once: the reason may last.
                if self.subscriptions.lock().put_off(id, task.duty, &why, now) {
                    tracing::warn!(topic, host, why, "a callback is called later");
                }
            }
            CallOutcome::End { why, of_document } => {
                let mut table = self.subscriptions.lock();
                table.release(id, now);
                let ended = table.deny(now, |other| {
                    let has_it = other.manner == Manner::WebSub || !of_document;
                    (other.topic == of.topic && has_it).then_some(why.as_str())
                });
                // Another call may have ended them already.
                if ended > 0 {
                    tracing::warn!(topic, ended, why, "the hub ends the subscriptions of a topic");
                }
            }
        }
    }
}

fn log_answer(duty: Duty, answer: &CallbackAnswer, topic: &str, host: &str) {
    match (duty, answer) {
        (Duty::Deliver, CallbackAnswer::Taken) => tracing::debug!(topic, host, "delivered"),
        (_, CallbackAnswer::Taken) => tracing::info!(topic, host, ?duty, "a callback agreed"),
        (_, CallbackAnswer::Refused(why) | CallbackAnswer::Failed { why, .. }) => {
            tracing::info!(topic, host, ?duty, why, "a callback did not agree");
        }
    }
}

#[cfg(test)]
mod tests;
