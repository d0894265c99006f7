//! What the polling task is told while it runs.

use super::departure::Departure;
use super::ownership::StoredFeed;
use super::{CommandReply, MAX_ASKED_FOR, MAX_WAITING, PollScheduler};
use crate::PollSettings;
use crate::domains::is_polled;
use crate::error::PollError;
use crate::poller::PollCommand;
use crate::polling::PollContext;
use crate::reason::PlannedPoll;
use crate::schedule::phase;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding};
use tidegate_net::fetch::{FetchBlame, Services};
use tidegate_status::PollFailure;
use tokio::sync::oneshot;

/// Why a feed is polled whose credentials, headers or proxy are others now.
pub(super) const ASKED_OTHERWISE: &str = "what its publisher is asked with was changed";

impl PollScheduler {
    pub(super) fn obey(&mut self, command: PollCommand) {
        match command {
            PollCommand::Put(record, reply) if self.owns(&record) => self.put(record, reply),
            // Its owner finds it in the list of feeds.
            PollCommand::Put(record, reply) => self.depart(&record.name, Departure::Moved, reply),
            PollCommand::PutAndPoll(record, reply) if self.owns(&record) => {
                let name = record.name.clone();
                self.put(record, oneshot::channel().0);
                self.poll_now(&name, reply);
            }
            PollCommand::PutAndPoll(record, reply) => {
                self.poll_once(StoredFeed { record, state: None, pending: None }, Some(reply));
            }
            PollCommand::Share(records) => self.share_records(records),
            PollCommand::Remove(name, reply) => self.depart(&name, Departure::Removed, reply),
            PollCommand::PollNow(name, reply) => self.poll_now(&name, reply),
            PollCommand::PollOnce(stored, reply) => self.poll_once(*stored, reply),
            PollCommand::Walk(name, order, reply) => {
                // Who asked may have gone away.
                let _ = reply.send(self.order_walk(&name, order));
            }
            PollCommand::Called(token, said, reply) => {
                let _ = reply.send(self.called(&token, &said));
            }
            PollCommand::Pushed(token) => self.pushed(&token),
            PollCommand::Reconfigure(parts) => {
                let (settings, services) = *parts;
                self.reconfigure(settings, services);
            }
        }
    }

    pub(super) fn put(&mut self, record: Arc<FeedRecord>, reply: oneshot::Sender<()>) {
        let name = record.name.clone();
        if !is_polled(&record) {
            let departure = match record.standing {
                FeedStanding::Gone => Departure::Removed,
                FeedStanding::Active | FeedStanding::Paused => Departure::Paused,
            };
            return self.depart(&name, departure, reply);
        }
        let now = self.clock.now();
        if self.bench.attempts.lift(&name) {
            self.schedule(&name, PlannedPoll::new(now, "it was put again"));
        }
        match self.feeds.get_mut(&name) {
            Some(feed) if feed.running.is_some() => {
                feed.after_round().leaving = None;
                let moved = feed.record.url != record.url;
                if feed.record.access != record.access {
                    // It may be answered as if somebody else had asked.
                    if let Some(running) = &feed.running {
                        running.cancel.cancel();
                    }
                    feed.after_round().asked_otherwise = true;
                }
                // Where only options change, the round in flight is as good as any.
                if moved {
                    if let Some(running) = &feed.running {
                        running.cancel.cancel();
                    }
                    let after = feed.after_round();
                    after.successor = Some(record);
                    after.left.push(reply);
                    return;
                }
                feed.after_round().successor = None;
                feed.record = record;
                self.resume_walk(&name);
            }
            Some(feed) if feed.record.url == record.url => {
                let is_asked_otherwise = feed.record.access != record.access;
                let is_new = !feed.cell.lock().memory.was_polled();
                feed.record = record;
                if is_new {
                    self.schedule(&name, PlannedPoll::new(now, "it was added or changed"));
                } else if is_asked_otherwise {
                    self.schedule(&name, PlannedPoll::new(now, ASKED_OTHERWISE));
                }
                self.bring_forward(&name);
                self.resume_walk(&name);
            }
            _ => {
                self.unschedule(&name);
                self.insert(record, None, PlannedPoll::new(now, "it was added or changed"));
            }
        }
        let _ = reply.send(());
    }

    /// Takes records in the place of equal ones, the list of subscriptions aside.
    pub(super) fn share_records(&mut self, records: Vec<Arc<FeedRecord>>) {
        for record in records {
            if let Some(feed) = self.feeds.get_mut(&record.name)
                && feed.follows_alike(&record)
            {
                feed.record = record;
            }
        }
    }

    pub(super) fn poll_now(&mut self, name: &FeedName, reply: CommandReply) {
        let room = self.asked_for < MAX_ASKED_FOR;
        let refusal = match self.feeds.get_mut(name) {
            None => PollError::Unknown,
            Some(feed) if feed.is_leaving() => PollError::Unknown,
            Some(feed) if feed.running.is_some() && feed.waiting() < MAX_WAITING => {
                feed.after_round().waiting.push(reply);
                self.bench.attempts.lift(name);
                return;
            }
            Some(feed) if feed.running.is_none() && room => {
                // Only what is polled now is scheduled again by that.
                self.bench.attempts.lift(name);
                self.unschedule(name);
                self.begin(name, vec![reply], None);
                return;
            }
            Some(_) => PollError::TooMany { limit: MAX_WAITING },
        };
        let _ = reply.send(Err(refusal));
    }

    fn reconfigure(&mut self, settings: PollSettings, services: Services) {
        self.leave_hubs_beyond(&settings);
        self.bench.hosts.reconfigure(settings.at_once, settings.host_rules());
        self.settings = settings;
        let Services { fetch, ask, call, .. } = services;
        let allow_private = self.settings.allow_private.clone();
        self.bench = Arc::new(PollContext {
            fetch,
            ask,
            call,
            allow_private,
            ..PollContext::clone(&self.bench)
        });
        let names: Vec<_> = self.feeds.keys().cloned().collect();
        for name in &names {
            self.bring_forward(name);
            self.try_what_was_mended(name);
        }
    }

    /// Polls a feed at once whose failure was the operator's: an upstream that was not allowed,
    /// say, may be allowed now.
    fn try_what_was_mended(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get(name).filter(|feed| feed.due.is_some()) else { return };
        let is_mendable = |failure: &PollFailure| failure.blame == FetchBlame::Operator;
        let is_mendable = feed.cell.lock().failure().is_some_and(is_mendable);
        if is_mendable {
            let reason = "its last failure was one of configuration, which was read again";
            self.schedule(name, PlannedPoll::new(self.clock.now(), reason));
        }
    }

    /// Brings a poll forward that is later than the longest interval has become.
    fn bring_forward(&mut self, name: &FeedName) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get(name) else { return };
        let max = self.settings.bounds(&feed.record.options).max();
        if feed.due.is_some_and(|due| due > now.plus(max)) {
            let at = now.plus(Duration::from_secs(phase(name) % max.as_secs().max(1)));
            self.schedule(name, PlannedPoll::new(at, "the longest interval was lowered"));
        }
    }
}
