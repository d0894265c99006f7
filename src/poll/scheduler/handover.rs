//! Shards that go to other gateways: what is in flight ends, what polling remembers is written down, and then the
//! shard is given back. A shard that another gateway has taken already is dropped with all that is known of it.

use super::departure::Departure;
use super::errands::ErrandState;
use super::share::{GUEST_TIME, PolledShare};
use super::{PollScheduler, SLICE};
use crate::politeness::Errand;
use crate::resume::PolledUntil;
use crate::shards::shard_of;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Time};
use tidegate_store::Shard;
use tokio::time::Instant;

/// How long what is in flight may take to end when its shard is to be given back, before it is cancelled.
const HANDOVER_WAIT: Duration = Duration::from_secs(5);
/// How often it is looked at how far leaving shards are.
const GIVE_BACK_EVERY: Duration = Duration::from_millis(50);

/// The part of the time before a feed is given over of which another gateway need not catch up on polls.
const GIVEN_OVER_BEFORE: Duration = Duration::from_secs(60);

/// Until when a feed was polled that is given over at `now`, by a gateway that polled it until `alive`: what has strayed
/// is written down then.
pub(super) fn until_given_over(now: Time, alive: Time) -> PolledUntil {
    PolledUntil::Noted(alive.min(now.minus(GIVEN_OVER_BEFORE)))
}

/// A shard that is being given back.
pub(super) struct LeavingShard {
    pub(super) fence: i64,
    since: Instant,
    /// Its feeds, as long as something of them is here or has still to be written down.
    feeds: Vec<FeedName>,
    /// Those of which something is in flight.
    busy: Vec<FeedName>,
    is_cancelled: bool,
    /// Whether nothing of it is in flight any more, and polling has forgotten its feeds.
    is_dropped: bool,
    /// When the store was told that it is over.
    ended: Option<Instant>,
}

impl LeavingShard {
    fn new(fence: i64) -> Self {
        let (since, feeds, busy) = (Instant::now(), Vec::new(), Vec::new());
        Self { fence, since, feeds, busy, is_cancelled: false, is_dropped: false, ended: None }
    }

    /// Whether the store was told that it is over.
    pub(super) const fn is_ended(&self) -> bool {
        self.ended.is_some()
    }
}

impl PollScheduler {
    /// The feeds of some shards of which something is here, and the shards.
    fn feeds_of(&self, is_one: impl Fn(Shard) -> bool) -> Vec<(FeedName, Shard)> {
        let polled = self.feeds.iter().filter_map(|(name, feed)| Some((name, feed.shard?)));
        let paused = self.paused.iter().map(|(name, state)| (name, shard_of(&state.url)));
        let all = polled.chain(paused).filter(|(_, shard)| is_one(*shard));
        all.map(|(name, shard)| (name.clone(), shard)).collect()
    }

    /// Begins to give shards with these fences back: nothing of their feeds begins any more.
    pub(super) fn leave_shards(&mut self, shards: &BTreeMap<Shard, i64>) {
        let Some(share) = self.share.as_mut().filter(|_| !shards.is_empty()) else { return };
        share.give_back_at = Instant::now();
        for (shard, fence) in shards {
            share.leaving.insert(*shard, LeavingShard::new(*fence));
        }
        let feeds = self.feeds_of(|shard| shards.contains_key(&shard));
        let in_flight: HashSet<FeedName> = self.feeds_in_flight().cloned().collect();
        for (name, shard) in feeds {
            self.begin_nothing(&name);
            let share = self.share.as_mut();
            let Some(leaving) = share.and_then(|it| it.leaving.get_mut(&shard)) else { continue };
            if in_flight.contains(&name) {
                leaving.busy.push(name.clone());
            }
            leaving.feeds.push(name);
        }
    }

    /// From now on nothing of a feed begins; what is in flight goes on.
    fn begin_nothing(&mut self, name: &FeedName) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        feed.begins_nothing = true;
        if std::mem::take(&mut feed.in_line) {
            feed.due = Some(now);
            let host = feed.host(&self.settings);
            self.polite.forget(&Errand::Poll(name.clone()), host);
        }
        let errands = [Errand::Probe, Errand::Walk, Errand::Hub].map(|kind| kind(name.clone()));
        for errand in errands {
            let state = self.feeds.get_mut(name).and_then(|feed| feed.state_of(&errand));
            if !matches!(state, Some(ErrandState::Running(_))) {
                self.forget(&errand);
            }
        }
    }

    /// Drops the feeds of shards that other gateways have now: what is in flight is cancelled, nothing is written.
    pub(super) fn lose_shards(&mut self, shards: &BTreeSet<Shard>) {
        if shards.is_empty() {
            return;
        }
        tracing::warn!(shards = shards.len(), "another gateway polls feeds that were this one's");
        // It may have what that one writes by now. The rest of it is written anew.
        self.checkpoints.abort_all();
        self.drop_shards(shards);
    }

    /// Forgets all that is known here of the feeds of shards; what is in flight is cancelled.
    pub(super) fn drop_shards(&mut self, shards: &BTreeSet<Shard>) {
        for (name, _) in self.feeds_of(|shard| shards.contains(&shard)) {
            let is_guest =
                self.share.as_ref().is_some_and(|share| share.guests.contains_key(&name));
            if !is_guest {
                self.lose_feed(&name);
            }
        }
    }

    fn lose_feed(&mut self, name: &FeedName) {
        self.begin_nothing(name);
        self.cancel_errands(name);
        match self.feeds.get_mut(name) {
            Some(feed) if feed.running.is_some() => {
                feed.after_round().leaving = Some(Departure::Lost);
                self.unsaved.remove(name);
            }
            _ => self.drop_feed(name, Departure::Lost),
        }
    }

    /// The feeds of which something is in flight.
    fn feeds_in_flight(&self) -> impl Iterator<Item = &FeedName> {
        self.in_flight.values().map(|(errand, _)| errand.feed())
    }

    /// Whether something of a feed is in flight, be it of one that had its name before.
    pub(super) fn is_in_flight(&self, name: &FeedName) -> bool {
        self.in_flight.values().any(|(errand, _)| errand.feed() == name)
    }

    /// Goes on with giving shards back.
    pub(super) fn give_back_shards(&mut self) {
        let now = Instant::now();
        let leaves =
            |share: &&mut Box<PolledShare>| !share.leaving.is_empty() && share.give_back_at <= now;
        let Some(share) = self.share.as_mut().filter(leaves) else { return };
        share.give_back_at = now + GIVE_BACK_EVERY;
        let mut all = std::mem::take(&mut share.leaving);
        let shards = Arc::clone(&share.shards);
        let in_flight: HashSet<FeedName> = self.feeds_in_flight().cloned().collect();
        for (shard, leaving) in &mut all {
            // What has an address in another shard by now does not leave.
            let leaves = |name: &FeedName| {
                self.feeds.get(name).is_none_or(|feed| feed.shard == Some(*shard))
            };
            leaving.feeds.retain(leaves);
            leaving.busy.retain(|name| in_flight.contains(name) && leaves(name));
            self.give_back_shard(leaving);
            let again = leaving.ended.is_none_or(|at| at.elapsed() >= SLICE);
            if leaving.is_dropped && leaving.feeds.is_empty() && again {
                leaving.ended = Some(now);
                shards.end([*shard]);
            }
        }
        if let Some(share) = &mut self.share {
            share.leaving = all;
        }
    }

    fn give_back_shard(&mut self, leaving: &mut LeavingShard) {
        if !leaving.is_dropped {
            if !leaving.busy.is_empty() {
                if !leaving.is_cancelled && leaving.since.elapsed() >= HANDOVER_WAIT {
                    leaving.is_cancelled = true;
                    leaving.busy.iter().for_each(|name| self.cancel_errands(name));
                }
                return;
            }
            for name in &leaving.feeds {
                self.drop_feed(name, Departure::HandedOver);
            }
            leaving.is_dropped = true;
            self.checkpoint_at = Some(Instant::now());
        }
        let is_to_be_written = |name: &FeedName| {
            self.unsaved.contains_key(name) || self.bench.attempts.is_unwritten(name)
        };
        leaving.feeds.retain(is_to_be_written);
    }

    /// Cancels what is in flight of a feed, whose end is waited for.
    fn cancel_errands(&mut self, name: &FeedName) {
        let Some(feed) = self.feeds.get(name) else { return };
        if let Some(running) = &feed.running {
            running.cancel.cancel();
        }
        for state in [&feed.probing, &feed.walking, &feed.subscribing] {
            if let ErrandState::Running(running) = state {
                running.1.cancel();
            }
        }
    }

    /// Lets go of feeds whose first poll is over and whose shards are other gateways'. What is not stored after
    /// [`GUEST_TIME`] is dropped: the gateway that has the shard takes the feed over soon, and what that one stores
    /// must stay.
    pub(super) fn part_with_guests(&mut self) {
        let Some(share) = self.share.as_mut().filter(|share| !share.guests.is_empty()) else {
            return;
        };
        for (name, begun) in std::mem::take(&mut share.guests) {
            let is_late = begun.elapsed() >= GUEST_TIME;
            match self.feeds.get(&name) {
                // Its shard has come here.
                Some(feed) if !feed.begins_nothing => continue,
                Some(feed) if is_late && feed.shard.is_none_or(|shard| !self.takes(shard)) => {
                    self.lose_feed(&name);
                    continue;
                }
                Some(_) if self.is_in_flight(&name) => {}
                Some(_) => {
                    self.drop_feed(&name, Departure::HandedOver);
                    self.checkpoint_at = Some(Instant::now());
                }
                None if is_late => {
                    self.unsaved.remove(&name);
                    continue;
                }
                None if !self.unsaved.contains_key(&name) => continue,
                None => {}
            }
            if let Some(share) = &mut self.share {
                share.guests.insert(name, begun);
            }
        }
    }

    /// A guest stays where its shard has come here while it was polled.
    pub(super) fn keep_guest(&mut self, name: &FeedName) {
        let (Some(share), Some(feed)) = (&mut self.share, self.feeds.get_mut(name)) else { return };
        if feed.shard.is_some_and(|shard| share.takes(shard)) && share.guests.remove(name).is_some()
        {
            feed.begins_nothing = false;
            self.resume_walk(name);
        }
    }

    /// Writes down what polling remembers of a feed, for the gateway that polls it next.
    pub(super) fn write_for_others(&mut self, name: &FeedName) {
        let now = self.clock.now();
        let Some(feed) = self.feeds.get_mut(name) else { return };
        let Some(memory) = feed.memory.as_mut() else { return };
        let bounds = self.settings.bounds(&feed.record.options);
        let polled = until_given_over(now, now);
        let resumed = memory.resume(name, bounds, feed.pending, (polled, now));
        let is_late = |due: &Time| resumed.as_ref().is_some_and(|next| *due < next.at);
        if let Some(due) = feed.due.filter(is_late) {
            let reason = "it was due when another gateway polled it".to_owned();
            memory.poll.rare.change(|rare| rare.retry = Some((due, reason)));
        }
        let state = memory.write(&feed.record);
        self.remember(name, state);
    }
}
