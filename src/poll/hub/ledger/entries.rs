//! The subscriptions of the ledger one by one: their counts, their changes and their queue.

use super::super::lanes::{LaneTurn, Standing, host_of};
use super::{AskError, Ledger};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Tick, Time};
use tidegate_core::pause::GrowingPause;
use tidegate_core::websub::{Duty, Manner, Subscription, SubscriptionId};
use tidegate_store::SubscriptionChange;
use url::Url;

/// The most requests of one host that wait for their first verification.
pub(super) const UNVERIFIED_PER_HOST: usize = 400;
/// How long a registration with the cloud waits for the answer about another one of its callback. It
/// is asked about by itself then.
pub(super) const FOLLOWS: Duration = Duration::from_secs(3600);
/// The most requests that do, all hosts together.
pub(super) const UNVERIFIED: usize = 5000;
/// How long a call is put off that could not be made here; it grows where the reason may last.
const PUT_OFF: GrowingPause =
    GrowingPause::doubling(Duration::from_secs(30), Duration::from_secs(15 * 60));

pub(super) struct SubscriptionEntry {
    pub(super) subscription: Subscription,
    host: Arc<str>,
    /// Who asked for it, where that was since the start.
    client: Option<Arc<str>>,
    /// How often in a row a call could not be made for a reason that may last.
    put_offs: u32,
    /// Raised by each new request, so that an answer to an earlier one is known as such.
    pub(super) serial: u64,
    pub(super) due: Option<Time>,
    /// It waits for its turn, or is being called.
    pub(super) busy: bool,
}

impl SubscriptionEntry {
    /// Whether its callback is being asked about it, or will be without waiting for what is answered about another one.
    pub(super) fn is_asking(&self) -> bool {
        let pending = self.subscription.pending.as_ref();
        self.busy || pending.is_some_and(|it| it.not_before.is_none() || it.attempts > 0)
    }

    /// What waits for its turn now.
    pub(super) fn turn(&self, id: SubscriptionId) -> LaneTurn {
        let of = &self.subscription;
        let standing = match (of.is_in_trouble(), of.is_proven()) {
            (true, _) => Standing::Troubled,
            (false, true) => Standing::Proven,
            (false, false) => Standing::New,
        };
        let client = self.client.as_ref().filter(|_| !of.is_proven());
        let (owner, host) = (Arc::clone(client.unwrap_or(&self.host)), Arc::clone(&self.host));
        let in_doubt = of.is_in_trouble() || of.is_unverified();
        LaneTurn { owner, host, id, standing, in_doubt }
    }
}

#[derive(Default)]
pub(super) struct FeedEntry {
    pub(super) ids: HashSet<SubscriptionId>,
    tick: Option<Tick>,
    /// The topics whose documents could not be had when they were last wanted.
    missing: HashSet<String>,
}

impl Ledger {
    /// Whether there is room for another of this host and this client. A request whose callback failed already gives
    /// way to one that was not tried yet.
    pub(super) fn make_room(
        &mut self,
        host: &Arc<str>,
        client: Option<&Arc<str>>,
        now: Time,
    ) -> Result<(), AskError> {
        let full = |what, limit| Err(AskError::Full { what, limit });
        let (most, per_host) = (self.settings.subscriptions, self.settings.per_host);
        if self.entries.len() >= most {
            return full("this hub has no room for another subscription", most);
        }
        if self.hosts.get(host).is_some_and(|ids| ids.len() >= per_host) {
            return full("this hub has no room for another callback there", per_host);
        }
        let is_own = |it: &SubscriptionEntry| client.is_some() && it.client.as_ref() == client;
        let (mut own, mut there, mut own_there) = (0, 0, 0);
        for it in self.unverified.iter().filter_map(|id| self.entries.get(id)) {
            own += usize::from(is_own(it));
            if it.host == *host {
                there += 1;
                own_there += usize::from(is_own(it));
            }
        }
        // Nobody has more than is still free, so that others find room.
        if own_there >= UNVERIFIED_PER_HOST.saturating_sub(there) {
            let what = "too many requests with callbacks there are not verified yet";
            return full(what, UNVERIFIED_PER_HOST);
        }
        let free = UNVERIFIED.saturating_sub(self.unverified.len());
        if own >= free && !(free == 0 && self.evict(now)) {
            return full("too many requests are not verified yet", UNVERIFIED);
        }
        Ok(())
    }

    /// Drops the oldest request whose callback failed already; says whether there was one.
    fn evict(&mut self, now: Time) -> bool {
        let asked = |id: &SubscriptionId| {
            // One that is being called stays: what is answered would be taken for a later request's.
            let entry = self.entries.get(id).filter(|entry| !entry.busy)?;
            let pending = entry.subscription.pending.as_ref().filter(|it| it.attempts > 0)?;
            Some((pending.asked, *id))
        };
        let Some((_, id)) = self.unverified.iter().filter_map(asked).min() else { return false };
        self.change(id, now, |entry| entry.subscription.pending = None);
        true
    }

    /// The registrations with the cloud of one callback that are asked for.
    pub(super) fn of_cloud(&self, callback: &Url) -> Vec<SubscriptionId> {
        let is_one = |id: &&SubscriptionId| {
            self.entries.get(*id).map(|entry| &entry.subscription).is_some_and(|of| {
                of.manner == Manner::RssCloud && of.callback == *callback && of.is_asked_for()
            })
        };
        self.hosts.get(&host_of(callback)).into_iter().flatten().filter(is_one).copied().collect()
    }

    /// Takes note of the time; where the clock was set back, what is due is reckoned anew.
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
        let (id, host) = (subscription.id(), host_of(&subscription.callback));
        self.feeds.entry(subscription.feed.clone()).or_default().ids.insert(id);
        let (serial, put_offs, due, busy) = (0, 0, None, false);
        let entry = SubscriptionEntry { subscription, host, client, put_offs, serial, due, busy };
        self.hosts.entry(Arc::clone(&entry.host)).or_default().insert(id);
        self.entries.insert(id, entry);
        self.note_unverified(id);
        self.schedule(id, now);
    }

    /// Notes whether a subscription is one that is not verified.
    fn note_unverified(&mut self, id: SubscriptionId) {
        match self.entries.get(&id).is_some_and(|entry| entry.subscription.is_unverified()) {
            true => self.unverified.insert(id),
            false => self.unverified.remove(&id),
        };
    }

    /// Changes a subscription. One of which nothing is left goes.
    pub(super) fn change<T>(
        &mut self,
        id: SubscriptionId,
        now: Time,
        edit: impl FnOnce(&mut SubscriptionEntry) -> T,
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

    /// Whether a subscription is to be written here, or is being called.
    pub(super) fn is_own(&self, id: SubscriptionId) -> bool {
        self.dirty.contains_key(&id) || self.entries.get(&id).is_some_and(|entry| entry.busy)
    }

    /// Takes in a subscription as the store has it.
    pub(super) fn take_in_one(&mut self, id: SubscriptionId, stored: Subscription, now: Time) {
        let is_own = self.is_own(id);
        let Some(known) = self.entries.get(&id).map(|entry| &entry.subscription) else {
            if !is_own {
                self.insert(stored, None, now);
            }
            return;
        };
        let asked = |it: &Subscription| it.pending.as_ref().map(|pending| pending.asked);
        if !is_own {
            self.change(id, now, |entry| {
                entry.serial += u64::from(asked(&entry.subscription) != asked(&stored));
                entry.subscription = stored;
            });
            // It is the store's.
            self.dirty.remove(&id);
        } else if asked(&stored) > asked(known) {
            self.change(id, now, |entry| {
                entry.serial += 1;
                entry.subscription.pending = stored.pending;
            });
        }
    }

    /// Forgets a subscription.
    pub(super) fn remove(&mut self, id: SubscriptionId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.unverified.remove(&id);
        if let Some(ids) = self.hosts.get_mut(&entry.host) {
            ids.remove(&id);
            if ids.is_empty() {
                self.hosts.remove(&entry.host);
            }
        }
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

    /// Puts off a call that could not be made here, `why`: for a reason that may last. Nothing is to be written for that.
    /// Says whether it is the first that this reason keeps from its topic's document.
    pub(in super::super) fn put_off(
        &mut self,
        id: SubscriptionId,
        duty: Duty,
        why: Option<&str>,
        now: Time,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let (mut is_first, mut pause) = (false, PUT_OFF.after(1));
        if why.is_some() {
            entry.put_offs = entry.put_offs.saturating_add(1);
            pause = PUT_OFF.after(entry.put_offs);
            let feed = self.feeds.get_mut(&entry.subscription.feed);
            is_first = feed.is_some_and(|it| it.missing.insert(entry.subscription.topic.clone()));
        }
        entry.subscription.put_off(duty, now.plus(pause), why);
        self.release(id, now);
        is_first
    }

    /// Takes note that the document of a topic was had.
    pub(super) fn found(&mut self, id: SubscriptionId) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.put_offs = 0;
        if let Some(feed) = self.feeds.get_mut(&entry.subscription.feed) {
            feed.missing.remove(&entry.subscription.topic);
        }
    }

    pub(super) fn tick_of(&self, id: SubscriptionId) -> Option<Tick> {
        let entry = self.entries.get(&id)?;
        self.feeds.get(&entry.subscription.feed).and_then(|feed| feed.tick)
    }

    /// Puts a subscription into the queue by what is due next.
    pub(super) fn schedule(&mut self, id: SubscriptionId, now: Time) {
        let tick = self.tick_of(id);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        if let Some(due) = entry.due.take() {
            self.queue.remove(&(due, id));
        }
        let next = entry.subscription.next(tick, now).filter(|_| !entry.busy);
        entry.due = next.map(|(due, _)| due);
        self.queue.extend(entry.due.map(|due| (due, id)));
    }

    /// Takes note of a feed's newest tick.
    pub(in super::super) fn saw(&mut self, feed: &FeedName, tick: Option<Tick>, now: Time) {
        let Some(of_feed) = self.feeds.get_mut(feed).filter(|of| of.tick < tick) else { return };
        of_feed.tick = tick;
        let ids: Vec<SubscriptionId> = of_feed.ids.iter().copied().collect();
        ids.into_iter().for_each(|id| self.schedule(id, now));
    }
}
