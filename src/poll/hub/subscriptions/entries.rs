//! Single subscriptions of the table: indices, changes and the queue.

use super::super::lanes::{LaneKey, QueuedCall, Standing};
use super::{AskError, SubscriptionTable};
use crate::domains::host_group;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Tick, Time};
use tidegate_core::pause::GrowingPause;
use tidegate_core::websub::{Duty, Manner, Subscription, SubscriptionId};
use tidegate_store::SubscriptionChange;
use url::Url;

/// The most requests per host that await their first verification.
pub(super) const UNVERIFIED_PER_HOST: usize = 400;
/// How long an rssCloud registration waits for the answer about another one of its callback, before it is verified
/// itself.
pub(super) const SIBLING_WAIT: Duration = Duration::from_secs(3600);
/// The most requests that await their first verification, over all hosts.
pub(super) const UNVERIFIED: usize = 5000;
/// The pause after a call that this gateway could not make; the cause may last.
const PUT_OFF: GrowingPause =
    GrowingPause::doubling(Duration::from_secs(30), Duration::from_secs(15 * 60));

pub(super) struct SubscriptionEntry {
    pub(super) subscription: Subscription,
    pub(super) host: Arc<str>,
    /// The client that requested it; `None` if that was before the start.
    client: Option<Arc<str>>,
    /// Consecutive calls that could not be made.
    pub(super) put_offs: u32,
    pub(super) due: Option<Time>,
    /// It waits in a lane, or its callback is being called.
    pub(super) is_queued_or_called: bool,
}

impl SubscriptionEntry {
    /// Whether its callback is being verified, or will be without waiting for another registration's answer.
    pub(super) fn is_asking(&self) -> bool {
        let pending = self.subscription.pending.as_ref();
        self.is_queued_or_called
            || pending.is_some_and(|it| it.not_before.is_none() || it.attempts > 0)
    }

    /// Returns its call, for the lanes.
    pub(super) fn queued_call(&self, id: SubscriptionId, duty: Duty) -> QueuedCall {
        let subscription = &self.subscription;
        let standing = if subscription.is_in_trouble() {
            Standing::Troubled
        } else if subscription.is_proven() {
            Standing::Proven
        } else if subscription.is_unverified() {
            Standing::Unverified
        } else {
            Standing::Agreed
        };
        let client = self.client.as_ref().filter(|_| !subscription.is_proven());
        let (owner, host) = (Arc::clone(client.unwrap_or(&self.host)), Arc::clone(&self.host));
        let key = LaneKey { owner, host, standing, is_delivery: duty == Duty::Deliver };
        QueuedCall { key, id }
    }
}

#[derive(Default)]
pub(super) struct FeedEntry {
    pub(super) ids: HashSet<SubscriptionId>,
    tick: Option<Tick>,
    /// The topics whose last call could not be made.
    pub(super) put_off: HashSet<String>,
}

impl SubscriptionTable {
    /// Checks whether the limits allow another subscription of this host and client.
    fn check_room(&self, host: &Arc<str>, client: Option<&Arc<str>>) -> Result<(), AskError> {
        let full = |what, limit| Err(AskError::Full { what, limit });
        let (most, per_host) = (self.settings.subscriptions, self.settings.per_host);
        if self.entries.len() >= most {
            return full("this hub has no room for another subscription", most);
        }
        if self.hosts.of(host) >= per_host {
            return full("this hub has no room for another callback there", per_host);
        }
        let (mut own, mut there, mut own_there) = (0, 0, 0);
        for it in self.unverified.iter().filter_map(|id| self.entries.get(id)) {
            let (is_own, is_there) =
                (client.is_some() && it.client.as_ref() == client, it.host == *host);
            own += usize::from(is_own);
            there += usize::from(is_there);
            own_there += usize::from(is_own && is_there);
        }
        // A client may use at most as much as is still free, so that others find space.
        if own_there >= UNVERIFIED_PER_HOST.saturating_sub(there) {
            let what = "too many requests with callbacks there are not verified yet";
            return full(what, UNVERIFIED_PER_HOST);
        }
        if own >= UNVERIFIED.saturating_sub(self.unverified.len()) {
            return full("too many requests are not verified yet", UNVERIFIED);
        }
        Ok(())
    }

    /// Adds a new subscription, within the limits.
    pub(super) fn add(
        &mut self,
        new: Subscription,
        client: Option<Arc<str>>,
        now: Time,
    ) -> Result<(), AskError> {
        self.check_room(&host_group(&new.callback).into(), client.as_ref())?;
        self.insert(new, client, now);
        Ok(())
    }

    /// Returns the requested rssCloud registrations of `callback`.
    pub(super) fn find_cloud_registrations(&self, callback: &Url) -> Vec<SubscriptionId> {
        let is_one = |entry: &SubscriptionEntry| {
            let subscription = &entry.subscription;
            subscription.manner == Manner::RssCloud
                && subscription.callback == *callback
                && subscription.is_asked_for()
        };
        self.entries.iter().filter(|(_, entry)| is_one(entry)).map(|(id, _)| *id).collect()
    }

    /// Records the time; if the clock was set back, corrects all due times.
    pub(super) fn follow_clock(&mut self, now: Time) {
        if self.looked.replace(now).is_none_or(|before| before <= now) {
            return;
        }
        let ids: Vec<SubscriptionId> = self.entries.keys().copied().collect();
        for id in ids {
            self.change(id, now, |entry| entry.subscription.turned_back(now));
        }
    }

    pub(super) fn insert(
        &mut self,
        subscription: Subscription,
        client: Option<Arc<str>>,
        now: Time,
    ) {
        let (id, host) = (subscription.id(), Arc::<str>::from(host_group(&subscription.callback)));
        self.feeds.entry(subscription.feed.clone()).or_default().ids.insert(id);
        self.hosts.add(&host);
        let (put_offs, due, is_queued_or_called) = (0, None, false);
        let entry =
            SubscriptionEntry { subscription, host, client, put_offs, due, is_queued_or_called };
        self.entries.insert(id, entry);
        self.note_unverified(id);
        self.schedule(id, now);
    }

    /// Updates the index of unverified requests.
    fn note_unverified(&mut self, id: SubscriptionId) {
        match self.entries.get(&id).is_some_and(|entry| entry.subscription.is_unverified()) {
            true => self.unverified.insert(id),
            false => self.unverified.remove(&id),
        };
    }

    /// Changes a subscription with `edit`; removes it if nothing is left of it.
    pub(super) fn change(
        &mut self,
        id: SubscriptionId,
        now: Time,
        edit: impl FnOnce(&mut SubscriptionEntry),
    ) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let before = entry.subscription.clone();
        edit(entry);
        if entry.subscription == before {
            return self.schedule(id, now);
        }
        let (after, is_over) = (entry.subscription.clone(), entry.subscription.is_over());
        self.note_unverified(id);
        let change = SubscriptionChange { before: Some(before), after: after.clone() };
        self.dirty.entry(id).or_insert(change).after = after;
        match is_over {
            true => self.remove(id),
            false => self.schedule(id, now),
        }
    }

    /// Adopts a stored subscription. One with unwritten changes or a call in flight only adopts a newer request.
    pub(super) fn adopt_one(&mut self, id: SubscriptionId, stored: Subscription, now: Time) {
        let has_local_state = self.has_local_state(id);
        let Some(known) = self.entries.get(&id).map(|entry| &entry.subscription) else {
            if !has_local_state {
                self.insert(stored, None, now);
            }
            return;
        };
        let asked = |it: &Subscription| it.pending.as_ref().map(|pending| pending.asked);
        if !has_local_state {
            self.change(id, now, |entry| entry.subscription = stored);
            // It equals the stored one: nothing to write.
            self.dirty.remove(&id);
        } else if asked(&stored) > asked(known) {
            self.change(id, now, |entry| entry.subscription.pending = stored.pending);
        }
    }

    /// Whether a subscription has unwritten changes or a call in flight.
    pub(super) fn has_local_state(&self, id: SubscriptionId) -> bool {
        self.dirty.contains_key(&id)
            || self.entries.get(&id).is_some_and(|entry| entry.is_queued_or_called)
    }

    /// Removes a subscription from all indices.
    pub(super) fn remove(&mut self, id: SubscriptionId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.unverified.remove(&id);
        self.hosts.remove(&entry.host);
        if let Some(due) = entry.due {
            self.queue.remove(&(due, id));
        }
        if let Some(feed) = self.feeds.get_mut(&entry.subscription.feed) {
            feed.ids.remove(&id);
            if feed.ids.is_empty() {
                self.feeds.remove(&entry.subscription.feed);
            }
        }
    }

    /// Postpones a call that could not be made here; nothing needs to be written. Returns whether it is the first of
    /// its topic, since the reason `why` holds for all.
    pub(in super::super) fn put_off(
        &mut self,
        id: SubscriptionId,
        duty: Duty,
        why: &str,
        now: Time,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.put_offs = entry.put_offs.saturating_add(1);
        let feed = self.feeds.get_mut(&entry.subscription.feed);
        let is_first = feed.is_some_and(|it| it.put_off.insert(entry.subscription.topic.clone()));
        entry.subscription.put_off(duty, now.plus(PUT_OFF.after(entry.put_offs)), why);
        self.release(id, now);
        is_first
    }

    /// Marks a subscription as neither waiting in a lane nor being called.
    pub(in super::super) fn release(&mut self, id: SubscriptionId, now: Time) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_queued_or_called = false;
        }
        self.schedule(id, now);
    }

    /// Returns the next call of a subscription and its time.
    pub(super) fn next_duty(&self, id: SubscriptionId, now: Time) -> Option<(Time, Duty)> {
        let subscription = &self.entries.get(&id)?.subscription;
        subscription.next(self.feeds.get(&subscription.feed).and_then(|feed| feed.tick), now)
    }

    /// Queues a subscription by its next due time.
    pub(super) fn schedule(&mut self, id: SubscriptionId, now: Time) {
        let next = self.next_duty(id, now);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Some(due) = entry.due.take() {
            self.queue.remove(&(due, id));
        }
        entry.due = next.map(|(due, _)| due).filter(|_| !entry.is_queued_or_called);
        self.queue.extend(entry.due.map(|due| (due, id)));
    }

    /// Records a feed's newest tick.
    pub(in super::super) fn note_tick(&mut self, feed: &FeedName, tick: Option<Tick>, now: Time) {
        let Some(of_feed) = self.feeds.get_mut(feed).filter(|entry| entry.tick < tick) else {
            return;
        };
        of_feed.tick = tick;
        let ids: Vec<SubscriptionId> = of_feed.ids.iter().copied().collect();
        ids.into_iter().for_each(|id| self.schedule(id, now));
    }
}
