//! What the polling task is told while it runs.

use super::departure::Departure;
use super::waiters::WaitingCall;
use super::{CommandReply, MAX_ASKED_FOR, MAX_WAITING, PollScheduler};
use crate::PollSettings;
use crate::error::PollError;
use crate::memory::Memory;
use crate::poller::PollCommand;
use crate::polling::PollContext;
use crate::reason::PlannedPoll;
use crate::schedule::phase;
use crate::shards::{is_polled, shard_of};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding};
use tidegate_net::fetch::{FetchBlame, Services};
use tidegate_store::Shard;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Why a feed is polled whose credentials, headers or proxy are others now.
pub(super) const ASKED_OTHERWISE: &str = "what its publisher is asked with was changed";

impl PollScheduler {
    pub(super) fn obey(&mut self, command: PollCommand) {
        match command {
            PollCommand::Put(record, reply) if self.is_for_here(&record) => {
                self.put(record, reply);
            }
            PollCommand::Put(record, reply) => self.pass_by(record, reply),
            PollCommand::PutAndPoll(record, reply) if self.is_for_here(&record) => {
                let (name, shard) = (record.name.clone(), shard_of(&record.url));
                let (put, _) = oneshot::channel();
                self.put(record, put);
                self.poll_now(&name, Some(shard), reply);
            }
            PollCommand::PutAndPoll(record, reply) => self.poll_guest(record, reply),
            PollCommand::Share(records) => self.share_records(records),
            PollCommand::Remove(name, reply) => {
                self.note_meanwhile(&name, None);
                self.depart(&name, Departure::Removed, reply);
            }
            PollCommand::PollNow(name, shard, reply) => self.poll_now(&name, shard, reply),
            PollCommand::Walk(name, order, shard, reply) => {
                if self.share.is_some() && !self.can_begin(&name) {
                    return self.wait_for_shard(name, shard, WaitingCall::Walk(order, reply));
                }
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
                feed.record = record;
                if is_asked_otherwise {
                    self.schedule(&name, PlannedPoll::new(now, ASKED_OTHERWISE));
                }
                self.bring_forward(&name);
                self.resume_walk(&name);
            }
            _ => {
                self.unschedule(&name);
                self.unsaved.remove(&name);
                let memory = self.recall(&record, now);
                self.insert(record, memory, PlannedPoll::new(now, "it was added or changed"));
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

    /// `shard`: that of the feed, where another gateway may poll it.
    pub(super) fn poll_now(&mut self, name: &FeedName, shard: Option<Shard>, reply: CommandReply) {
        let room = self.asked_for < MAX_ASKED_FOR;
        let is_polled =
            self.feeds.get(name).is_none_or(|feed| feed.is_lost() || !feed.is_leaving());
        if self.share.is_some() && is_polled && !self.can_begin(name) {
            let shard = self.feeds.get(name).map_or(shard, |feed| feed.shard);
            return self.wait_for_shard(name.clone(), shard, WaitingCall::Poll(reply));
        }
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
                self.begin(name, vec![reply]);
                return;
            }
            Some(_) => PollError::TooMany { limit: MAX_WAITING },
        };
        let _ = reply.send(Err(refusal));
    }

    /// Notes that a record was put, or that a feed was removed, for a survey that may not have seen it.
    fn note_meanwhile(&mut self, name: &FeedName, record: Option<Arc<FeedRecord>>) {
        if let Some(share) = &mut self.share
            && share.is_surveyed()
        {
            share.meanwhile.insert(name.clone(), record);
        }
    }

    /// Takes in a record of a feed that another gateway polls, or that is taken over with its shard.
    fn pass_by(&mut self, record: Arc<FeedRecord>, reply: oneshot::Sender<()>) {
        let name = record.name.clone();
        self.note_meanwhile(&name, Some(Arc::clone(&record)));
        match self.feeds.get(&name) {
            // Who put it may have gone away.
            Some(feed) if feed.is_lost() => drop(reply.send(())),
            // Nothing is known of its new address.
            _ if is_polled(&record) => self.depart(&name, Departure::Removed, reply),
            _ => self.put(record, reply),
        }
    }

    /// Polls a new feed once, though another gateway goes on polling it.
    fn poll_guest(&mut self, record: Arc<FeedRecord>, reply: CommandReply) {
        let (name, now) = (record.name.clone(), self.clock.now());
        self.note_meanwhile(&name, Some(Arc::clone(&record)));
        let is_free = !self.feeds.contains_key(&name) && !self.is_in_flight(&name);
        let refusal = match is_free && self.may_begin() && is_polled(&record) {
            false => PollError::PolledElsewhere { owner: self.owner_of(shard_of(&record.url)) },
            true => {
                if let Some(share) = &mut self.share {
                    share.guests.insert(name.clone(), Instant::now());
                }
                let mut memory = Memory::new(&record, now);
                if self.asked_for < MAX_ASKED_FOR {
                    self.insert(record, memory, PlannedPoll::new(now, "it was added or changed"));
                    return self.begin(&name, vec![reply]);
                }
                // The gateway that has its shard need not wait for a poll here.
                self.unsaved.insert(name, memory.write(&record));
                self.checkpoint_at = Some(Instant::now());
                PollError::TooMany { limit: MAX_WAITING }
            }
        };
        // Who added it may have gone away.
        let _ = reply.send(Err(refusal));
    }

    fn reconfigure(&mut self, settings: PollSettings, services: Services) {
        self.leave_hubs_beyond(&settings);
        self.polite.set_at_once(settings.at_once);
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
        self.rearrange_lines();
        let names: Vec<_> = self.feeds.keys().cloned().collect();
        for name in &names {
            self.bring_forward(name);
            self.try_what_was_mended(name);
        }
    }

    /// Polls a feed at once whose failure was the operator's: an upstream that was not allowed,
    /// say, may be allowed now.
    fn try_what_was_mended(&mut self, name: &FeedName) {
        let mendable = self.board.matches(name, |status| {
            status.failure().is_some_and(|failure| failure.blame == FetchBlame::Operator)
        });
        let waits = self.feeds.get(name).is_some_and(|feed| feed.due.is_some());
        if mendable && waits {
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
