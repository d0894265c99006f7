//! The commands that the polling task executes for its handle.

use super::feed::Departure;
use super::ownership::StoredFeed;
use super::{CommandReply, MAX_WAITING, PollScheduler, answer};
use crate::domains::is_polled;
use crate::error::PollError;
use crate::schedule::{PlannedPoll, PollReason, phase};
use crate::walk;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, FeedStanding, WalkStanding};
use tidegate_net::fetch::FetchBlame;
use tidegate_status::{PollFailure, WalkOrder};
use tokio::sync::oneshot;

/// The shown reason of a poll after the feed's credentials, headers or proxy were changed.
pub(super) const ASKED_OTHERWISE: &str = "what its publisher is asked with was changed";

/// The shown reason of a poll after the feed was added or its address was changed.
const ADDED: &str = "it was added or changed";

impl PollScheduler {
    /// Polls the feed of `record` from now on, or applies the changes of a record that is already polled.
    pub(crate) fn put(&mut self, record: Arc<FeedRecord>, reply: oneshot::Sender<()>) {
        let name = record.name.clone();
        let departure = match record.standing {
            // The owning gateway finds the record in the list of feeds.
            _ if !self.owns(&record) => Some(Departure::Moved),
            _ if is_polled(&record) => None,
            FeedStanding::Gone => Some(Departure::Removed),
            FeedStanding::Active | FeedStanding::Paused => Some(Departure::Paused),
        };
        if let Some(departure) = departure {
            return self.depart(&name, departure, reply);
        }
        let now = self.context.clock.now();
        if self.context.attempts.lift(&name) {
            self.schedule(&name, PlannedPoll::new(now, "it was put again"));
        }
        let known = self.with_feed(&name, |feed| {
            if feed.record.url != record.url {
                return None;
            }
            let is_asked_otherwise = feed.record.access != record.access;
            feed.record = Arc::clone(&record);
            // A change of options alone does not invalidate the round in flight.
            let running = feed.live.running.as_mut();
            let is_running = running.is_some();
            if let Some(running) = running.filter(|_| is_asked_otherwise) {
                // Cancel the round in flight: its answer belongs to the old credentials.
                (running.cancel, running.asked_otherwise) = (None, true);
            }
            Some((is_asked_otherwise, is_running, feed.memory.state.schedule.is_none()))
        });
        let Some((is_asked_otherwise, is_running, is_new)) = known.flatten() else {
            let last = self.last_round(&name);
            self.insert(record, None, PlannedPoll::new(now, ADDED), Duration::ZERO);
            return self.answer_after(last, reply);
        };
        self.resume_walk(&name, Duration::ZERO);
        if !is_running {
            if is_new {
                self.schedule(&name, PlannedPoll::new(now, ADDED));
            } else if is_asked_otherwise {
                self.schedule(&name, PlannedPoll::new(now, ASKED_OTHERWISE));
            }
            self.bring_forward(&name);
        }
        let _ = reply.send(());
    }

    /// Polls a new feed at once, whether or not this gateway owns it.
    pub(crate) fn put_and_poll(&mut self, record: Arc<FeedRecord>, reply: CommandReply) {
        if !self.owns(&record) {
            return self.poll_once(StoredFeed { record, state: None, pending: None }, Some(reply));
        }
        let name = record.name.clone();
        self.put(record, oneshot::channel().0);
        self.poll_now(&name, reply);
    }

    /// Starts or stops the walk through a feed's older documents, as an operator orders.
    pub(crate) fn order_walk(
        &mut self,
        name: &FeedName,
        order: WalkOrder,
    ) -> Result<(), PollError> {
        let now = self.context.clock.now();
        let ordered = self.with_feed(name, |feed| {
            let walk = &mut feed.memory.state.backfill;
            match order {
                WalkOrder::Start => {
                    *walk = Some(Box::new(walk::restart(walk.take().map(|walk| *walk), now)));
                }
                WalkOrder::Stop => {
                    if let Some(walk) = walk.as_mut().filter(|walk| walk.is_walking()) {
                        walk::end(walk, WalkStanding::Stopped, "the operator stopped it", now);
                    }
                    feed.live.walking = None;
                }
            }
        });
        ordered.ok_or(PollError::Unknown)?;
        self.resume_walk(name, Duration::ZERO);
        self.save_soon(name);
        Ok(())
    }

    /// Replaces records by equal ones that share memory with the store's list; only their subscription list may differ.
    pub(crate) fn share_records(&mut self, records: Vec<Arc<FeedRecord>>) {
        for record in records {
            let name = record.name.clone();
            self.with_feed(&name, |feed| {
                if feed.follows_alike(&record) {
                    feed.record = record;
                }
            });
        }
    }

    pub(crate) fn poll_now(&mut self, name: &FeedName, reply: CommandReply) {
        let has_room = self.asked_for.available_permits() > 0;
        let mut reply = Some(reply);
        let known = self.with_feed(name, |feed| {
            let running = feed.live.running.as_mut();
            let is_full = running
                .as_ref()
                .map_or(!has_room, |it| it.answers.len() + it.waiting.len() >= MAX_WAITING);
            if is_full {
                return Err(PollError::TooMany { limit: MAX_WAITING });
            }
            if let Some(running) = running {
                // What was requested earlier may be older than what the caller wants to be read.
                let callers =
                    if running.is_sent { &mut running.waiting } else { &mut running.answers };
                callers.extend(reply.take());
            }
            Ok(())
        });
        let known = known.unwrap_or(Err(PollError::Unknown));
        if known.is_ok() {
            // Lift the mark only if a poll really starts, because lifting reschedules the feed.
            self.context.attempts.lift(name);
        }
        let callers = reply.into_iter().collect();
        match known {
            Ok(()) => self.begin_for(name, callers),
            Err(refusal) => answer(callers, &Err(refusal)),
        }
    }

    /// Applies changed settings and services (HTTP clients) to every polled feed.
    pub(crate) fn reconfigure(&mut self) {
        self.context.hosts.reconfigure(self.context.settings.load().hosts.clone());
        for (name, _) in &self.context.table.all() {
            self.resume_hub(name);
            self.watch_hub(name);
            self.bring_forward(name);
            self.try_what_was_mended(name);
        }
    }

    /// Polls a feed at once if its last failure was the operator's: for example, its host may be allowed now.
    fn try_what_was_mended(&mut self, name: &FeedName) {
        let is_mendable = |failure: &PollFailure| failure.blame == FetchBlame::Operator;
        let is_mended = self.with_feed(name, |feed| {
            let waits = feed.live.next.is_some() && feed.live.in_line.is_none();
            waits && feed.live.failure.as_deref().is_some_and(is_mendable)
        });
        if is_mended == Some(true) {
            let reason = "its last failure was one of configuration, which was read again";
            self.schedule(name, PlannedPoll::new(self.context.clock.now(), reason));
        }
    }

    /// Moves the next poll forward where the bounds allow it earlier by now: one that is planned by the feed's own
    /// interval is planned anew, any other is kept within the longest interval.
    fn bring_forward(&mut self, name: &FeedName) {
        let now = self.context.clock.now();
        let share = |whole: Duration| Duration::from_secs(phase(name) % whole.as_secs().max(1));
        let earlier = self.with_feed(name, |feed| {
            let next = feed.live.next.as_ref()?;
            let bounds = self.bounds(&feed.record);
            let planned = match next.reason {
                PollReason::Interval { because, .. } if !because.is_announced() => {
                    let anew = feed.memory.resume(bounds, None, now)?;
                    let every = match anew.reason {
                        PollReason::Interval { every, .. } => Duration::from_secs(every.into()),
                        PollReason::Text(_) => bounds.max(),
                    };
                    let at = if anew.at > now { anew.at } else { now.plus(share(every)) };
                    PlannedPoll { at, ..anew }
                }
                _ if next.at <= now.plus(bounds.max()) => return None,
                _ => {
                    let at = now.plus(share(bounds.max()));
                    PlannedPoll::new(at, "the longest interval was lowered")
                }
            };
            (planned.at < next.at).then_some(planned)
        });
        if let Some(planned) = earlier.flatten() {
            self.schedule(name, planned);
        }
    }
}
