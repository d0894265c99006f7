//! What the polling task is told while it runs.

use super::feed::Departure;
use super::ownership::StoredFeed;
use super::{CommandReply, MAX_ASKED_FOR, MAX_WAITING, PollScheduler};
use crate::domains::is_polled;
use crate::error::PollError;
use crate::reason::PlannedPoll;
use crate::schedule::phase;
use crate::{PollSettings, walk};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, WalkStanding};
use tidegate_net::fetch::FetchBlame;
use tidegate_status::{PollFailure, WalkOrder};
use tokio::sync::oneshot;

/// Why a feed is polled whose credentials, headers or proxy are others now.
pub(super) const ASKED_OTHERWISE: &str = "what its publisher is asked with was changed";

impl PollScheduler {
    /// Polls a feed from now on, or goes on with a changed record.
    pub(crate) fn put(&mut self, record: Arc<FeedRecord>, reply: oneshot::Sender<()>) {
        let name = record.name.clone();
        let departure = match record.standing {
            // Its owner finds it in the list of feeds.
            _ if !self.owns(&record) => Some(Departure::Moved),
            _ if is_polled(&record) => None,
            FeedStanding::Gone => Some(Departure::Removed),
            FeedStanding::Active | FeedStanding::Paused => Some(Departure::Paused),
        };
        if let Some(departure) = departure {
            return self.depart(&name, departure, reply);
        }
        let now = self.clock.now();
        if self.bench.attempts.lift(&name) {
            self.schedule(&name, PlannedPoll::new(now, "it was put again"));
        }
        match self.feeds.get_mut(&name) {
            Some(feed) if feed.running.is_some() => {
                let has_moved = feed.record.url != record.url;
                let is_asked_otherwise = feed.record.access != record.access;
                // Where only options change, the round in flight is as good as any.
                if let Some(running) =
                    feed.running.as_ref().filter(|_| has_moved || is_asked_otherwise)
                {
                    // It may be answered as if somebody else had asked.
                    running.cancel.cancel();
                }
                let after = feed.after_round();
                after.leaving = None;
                after.asked_otherwise |= is_asked_otherwise;
                after.successor = has_moved.then(|| Arc::clone(&record));
                if has_moved {
                    after.left.push(reply);
                    return;
                }
                self.change_record(&name, record);
            }
            Some(feed) if feed.record.url == record.url => {
                let is_asked_otherwise = feed.record.access != record.access;
                let is_new = !feed.cell.lock().memory.was_polled();
                self.change_record(&name, record);
                if is_new {
                    self.schedule(&name, PlannedPoll::new(now, "it was added or changed"));
                } else if is_asked_otherwise {
                    self.schedule(&name, PlannedPoll::new(now, ASKED_OTHERWISE));
                }
                self.bring_forward(&name);
            }
            _ => {
                self.unschedule(&name);
                let next = PlannedPoll::new(now, "it was added or changed");
                self.insert(record, None, next, Duration::ZERO);
            }
        }
        let _ = reply.send(());
    }

    /// Goes on with another record of the same address.
    fn change_record(&mut self, name: &FeedName, record: Arc<FeedRecord>) {
        if let Some(feed) = self.feeds.get_mut(name) {
            feed.set_record(record);
            self.resume_walk(name, Duration::ZERO);
        }
    }

    /// Polls a new feed right away, wherever it is polled from then on.
    pub(crate) fn put_and_poll(&mut self, record: Arc<FeedRecord>, reply: CommandReply) {
        if !self.owns(&record) {
            return self.poll_once(StoredFeed { record, state: None, pending: None }, Some(reply));
        }
        let name = record.name.clone();
        self.put(record, oneshot::channel().0);
        self.poll_now(&name, reply);
    }

    /// Stops polling a feed for good.
    pub(crate) fn remove(&mut self, name: &FeedName, reply: oneshot::Sender<()>) {
        self.depart(name, Departure::Removed, reply);
    }

    /// What an operator orders.
    pub(crate) fn order_walk(
        &mut self,
        name: &FeedName,
        order: WalkOrder,
    ) -> Result<(), PollError> {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name).filter(|feed| !feed.is_leaving()) else {
            return Err(PollError::Unknown);
        };
        let mut polling = feed.cell.lock();
        let walk = &mut polling.memory.state.backfill;
        match order {
            WalkOrder::Start => {
                *walk = Some(Box::new(walk::asked_for(walk.take().map(|walk| *walk), now)));
            }
            WalkOrder::Stop => {
                if let Some(walk) = walk.as_mut().filter(|walk| walk.is_walking()) {
                    walk::end(walk, WalkStanding::Stopped, "the operator stopped it", now);
                }
                feed.walking = None;
            }
        }
        drop(polling);
        self.resume_walk(name, Duration::ZERO);
        self.save_aside(name);
        Ok(())
    }

    /// Takes records in the place of equal ones, the list of subscriptions aside.
    pub(crate) fn share_records(&mut self, records: Vec<Arc<FeedRecord>>) {
        for record in records {
            if let Some(feed) = self.feeds.get_mut(&record.name)
                && feed.follows_alike(&record)
            {
                feed.set_record(record);
            }
        }
    }

    pub(crate) fn poll_now(&mut self, name: &FeedName, reply: CommandReply) {
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

    pub(crate) fn reconfigure(&mut self, settings: PollSettings) {
        self.bench.hosts.reconfigure(settings.at_once, settings.host_rules());
        self.settings = settings;
        let names: Vec<_> = self.feeds.keys().cloned().collect();
        for name in &names {
            self.resume_hub(name);
            self.watch_hub(name);
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
