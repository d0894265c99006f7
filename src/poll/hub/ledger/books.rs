//! The subscriptions in memory, with their counts and their queue.

use super::super::lanes::{LaneTurn, Standing, host_of};
use super::super::shares::Shares;
use super::{AskError, HubSettings};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, Tick, Time};
use tidegate_core::websub::{Duty, Manner, Subscription, SubscriptionId};
use tidegate_store::SubscriptionChange;
use url::Url;

/// The most requests of one host that wait for their first verification.
pub(super) const UNVERIFIED_PER_HOST: usize = 400;
/// How long a registration with the cloud waits for the answer about another one of its callback. It
/// is asked about by itself then.
const FOLLOWS: Duration = Duration::from_secs(3600);
/// The most requests that do, all hosts together.
pub(super) const UNVERIFIED: usize = 5000;
/// How long a call is put off that could not be made here.
const PUT_OFF: Duration = Duration::from_secs(30);
/// The longest that it is put off where that is twice as long each time.
const PUT_OFF_LIMIT: Duration = Duration::from_secs(15 * 60);

pub(super) struct BookEntry {
    pub(super) subscription: Subscription,
    pub(super) host: Arc<str>,
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

impl BookEntry {
    /// What waits for its turn now.
    pub(super) fn turn(&self, id: SubscriptionId) -> LaneTurn {
        let of = &self.subscription;
        let standing = match (of.is_in_trouble(), of.is_proven()) {
            (true, _) => Standing::Troubled,
            (false, true) => Standing::Proven,
            (false, false) => Standing::New,
        };
        let client = self.client.as_ref().filter(|_| !of.is_proven());
        let owner = Arc::clone(client.unwrap_or(&self.host));
        let in_doubt = of.is_in_trouble() || of.is_unverified();
        LaneTurn { owner, host: Arc::clone(&self.host), id, standing, in_doubt }
    }
}

#[derive(Default)]
pub(super) struct FeedBook {
    ids: HashSet<SubscriptionId>,
    tick: Option<Tick>,
    /// The topics whose documents could not be had when they were last wanted.
    missing: HashSet<String>,
}

#[derive(Default)]
pub(super) struct HostBook {
    ids: HashSet<SubscriptionId>,
    /// Of them those that are not verified, by who asked.
    unverified: Shares,
}

#[derive(Default)]
pub(super) struct Inner {
    pub(super) entries: HashMap<SubscriptionId, BookEntry>,
    pub(super) feeds: HashMap<FeedName, FeedBook>,
    pub(super) hosts: HashMap<Arc<str>, HostBook>,
    /// The requests that are not verified, by who asked.
    unverified: Shares,
    /// Of the unverified those whose callback failed once already, by when they were asked for.
    tried: BTreeSet<(Time, SubscriptionId)>,
    pub(super) queue: BTreeSet<(Time, SubscriptionId)>,
    /// What is to be written: as it was before the first change, and as it stood after the last.
    pub(super) dirty: HashMap<SubscriptionId, SubscriptionChange>,
    /// What was changed and is not yet written, and what was written, by the number of the write, since the store was
    /// last read.
    changed: HashMap<SubscriptionId, Option<u64>>,
    pub(super) writes: u64,
    pub(super) delivered: u64,
    pub(super) failed: u64,
    /// When it was last looked what is due.
    looked: Option<Time>,
}

impl Inner {
    /// Whether there is room for another of this host and this client. A request whose callback failed already gives
    /// way to one that was not tried yet.
    pub(super) fn make_room(
        &mut self,
        host: &Arc<str>,
        client: Option<&Arc<str>>,
        settings: &HubSettings,
        now: Time,
    ) -> Result<(), AskError> {
        let full = |what, limit| Err(AskError::Full { what, limit });
        if self.entries.len() >= settings.subscriptions {
            return full("this hub has no room for another subscription", settings.subscriptions);
        }
        let of_host = self.hosts.get(host);
        if of_host.is_some_and(|host| host.ids.len() >= settings.per_host) {
            return full("this hub has no room for another callback there", settings.per_host);
        }
        if of_host.is_some_and(|host| !host.unverified.has_room(client, UNVERIFIED_PER_HOST)) {
            let what = "too many requests with callbacks there are not verified yet";
            return full(what, UNVERIFIED_PER_HOST);
        }
        let is_full = self.unverified.all() >= UNVERIFIED;
        if !(self.unverified.has_room(client, UNVERIFIED) || is_full && self.evict(now)) {
            return full("too many requests are not verified yet", UNVERIFIED);
        }
        Ok(())
    }

    /// Drops the oldest request whose callback failed already; says whether there was one.
    fn evict(&mut self, now: Time) -> bool {
        // One that is being called stays: what is answered would be taken for a later request's.
        let idle = |id| self.entries.get(&id).is_some_and(|entry: &BookEntry| !entry.busy);
        let Some((_, id)) = self.tried.iter().copied().find(|(_, id)| idle(*id)) else {
            return false;
        };
        self.change(id, now, |entry| entry.subscription.pending.take().is_some());
        true
    }

    /// The registrations with the cloud of one callback that are asked for.
    pub(super) fn of_cloud(&self, callback: &Url) -> Vec<SubscriptionId> {
        let is_one = |id: &&SubscriptionId| {
            self.entries.get(*id).map(|entry| &entry.subscription).is_some_and(|of| {
                of.manner == Manner::RssCloud && of.callback == *callback && of.is_asked_for()
            })
        };
        let of_host = self.hosts.get(&host_of(callback)).map(|host| &host.ids);
        of_host.into_iter().flatten().filter(is_one).copied().collect()
    }

    /// The webhooks of a feed: one at most, but for what is to take its place.
    pub(super) fn webhooks(&self, feed: &FeedName) -> Vec<SubscriptionId> {
        let of_feed = self.feeds.get(feed).map(|feed| &feed.ids);
        let is_one = |id: &&SubscriptionId| {
            let entry = self.entries.get(*id);
            entry.is_some_and(|entry| entry.subscription.manner == Manner::Webhook)
        };
        of_feed.into_iter().flatten().filter(is_one).copied().collect()
    }

    /// Has all registrations of a callback but one wait for what is answered about that one.
    pub(super) fn wait_for_first(&mut self, callback: &Url, now: Time) {
        let all = self.of_cloud(callback);
        let asks = |id: &SubscriptionId| {
            let entry = self.entries.get(id);
            let pending = entry.and_then(|entry| entry.subscription.pending.as_ref());
            entry.is_some_and(|entry| entry.busy)
                || pending.is_some_and(|it| it.not_before.is_none() || it.attempts > 0)
        };
        let first = all
            .iter()
            .copied()
            .filter(asks)
            .min_by_key(|id| self.entries.get(id).map(|entry| (!entry.busy, entry.serial)));
        for id in all.into_iter().filter(|id| Some(*id) != first) {
            self.change(id, now, |entry| {
                let waits = !entry.busy;
                if let Some(pending) = entry.subscription.pending.as_mut().filter(|_| waits) {
                    pending.not_before = Some(now.plus(FOLLOWS));
                }
                waits
            });
        }
    }

    /// Takes note of the time; where the clock was set back, what is due is reckoned anew.
    pub(super) fn set_time(&mut self, now: Time) {
        let before = self.looked.replace(now);
        if before.is_none_or(|before| before <= now) {
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
        self.weigh((&host, client.as_ref()), &subscription, true);
        let (serial, put_offs, due, busy) = (0, 0, None, false);
        let entry = BookEntry { subscription, host, client, put_offs, serial, due, busy };
        self.entries.insert(id, entry);
        self.schedule(id, now);
    }

    /// Counts a subscription of a host, and of who asked for it, in, or out.
    fn weigh(
        &mut self,
        (host, client): (&Arc<str>, Option<&Arc<str>>),
        subscription: &Subscription,
        comes: bool,
    ) {
        let unverified = subscription.is_unverified();
        let of_host = self.hosts.entry(Arc::clone(host)).or_default();
        let id = subscription.id();
        if comes {
            of_host.ids.insert(id);
        } else {
            of_host.ids.remove(&id);
        }
        let step = if comes { Shares::add } else { Shares::remove };
        if unverified {
            step(&mut of_host.unverified, client);
            step(&mut self.unverified, client);
        }
        if of_host.ids.is_empty() {
            self.hosts.remove(host);
        }
        let tried = subscription.pending.as_ref().filter(|of| unverified && of.attempts > 0);
        if let Some(pending) = tried {
            let key = (pending.asked, id);
            if comes {
                self.tried.insert(key);
            } else {
                self.tried.remove(&key);
            }
        }
    }

    /// Changes a subscription: `edit` says whether it did. One of which nothing is left goes.
    pub(super) fn change(
        &mut self,
        id: SubscriptionId,
        now: Time,
        edit: impl FnOnce(&mut BookEntry) -> bool,
    ) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let (host, client) = (Arc::clone(&entry.host), entry.client.clone());
        let (owners, before) = ((&host, client.as_ref()), entry.subscription.clone());
        if edit(entry) {
            let (state, over) = (entry.subscription.clone(), entry.subscription.is_over());
            self.weigh(owners, &before, false);
            if !over {
                self.weigh(owners, &state, true);
            }
            let change = SubscriptionChange { before: Some(before), after: state.clone() };
            self.dirty.entry(id).or_insert(change).after = state;
            self.changed.insert(id, None);
            if over {
                return self.remove(id);
            }
        }
        self.schedule(id, now);
    }

    /// Whether a subscription is to be written here, was since the store was read, or is being called.
    pub(super) fn is_own(&self, id: SubscriptionId) -> bool {
        self.changed.contains_key(&id) || self.entries.get(&id).is_some_and(|entry| entry.busy)
    }

    /// These changes are stored. `is_shared`: others change what is stored, so that it is read again.
    pub(super) fn note_written(&mut self, written: &[SubscriptionChange], is_shared: bool) {
        self.writes += 1;
        for id in written.iter().map(|change| change.after.id()) {
            if self.dirty.contains_key(&id) {
                continue;
            }
            match is_shared {
                true => drop(self.changed.insert(id, Some(self.writes))),
                false => drop(self.changed.remove(&id)),
            }
        }
    }

    /// What was read has the first `writes` writes.
    pub(super) fn forget_written(&mut self, writes: u64) {
        self.changed.retain(|_, written| written.is_none_or(|written| written > writes));
    }

    /// Takes in a subscription as the store has it.
    pub(super) fn take_in(&mut self, id: SubscriptionId, stored: Subscription, now: Time) {
        let is_own = self.is_own(id);
        let Some(known) = self.entries.get(&id).map(|entry| &entry.subscription) else {
            if !is_own {
                self.insert(stored, None, now);
            }
            return;
        };
        if *known == stored {
            return;
        }
        let asked = |it: &Subscription| it.pending.as_ref().map(|pending| pending.asked);
        if !is_own {
            self.change(id, now, |entry| {
                entry.serial += u64::from(asked(&entry.subscription) != asked(&stored));
                entry.subscription = stored;
                true
            });
            // It is the store's.
            self.dirty.remove(&id);
            self.changed.remove(&id);
        } else if asked(&stored) > asked(known) {
            self.change(id, now, |entry| {
                entry.serial += 1;
                entry.subscription.pending = stored.pending;
                true
            });
        }
    }

    /// Forgets a subscription that the store has no more.
    pub(super) fn drop_entry(&mut self, id: SubscriptionId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let (host, client) = (Arc::clone(&entry.host), entry.client.clone());
        let state = entry.subscription.clone();
        self.weigh((&host, client.as_ref()), &state, false);
        self.remove(id);
    }

    fn remove(&mut self, id: SubscriptionId) {
        let Some(entry) = self.entries.remove(&id) else { return };
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
    pub(super) fn put_off(
        &mut self,
        id: SubscriptionId,
        duty: Duty,
        why: Option<&str>,
        now: Time,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.busy = false;
        let doubled = why.map_or(1, |_| 2_u32.saturating_pow(entry.put_offs));
        entry.put_offs = entry.put_offs.saturating_add(why.is_some().into());
        let pause = PUT_OFF.saturating_mul(doubled).min(PUT_OFF_LIMIT);
        entry.subscription.put_off(duty, now.plus(pause), why);
        let (feed, topic) = (&entry.subscription.feed, entry.subscription.topic.clone());
        let of_feed = self.feeds.get_mut(feed).filter(|_| why.is_some());
        let is_first = of_feed.is_some_and(|feed| feed.missing.insert(topic));
        self.schedule(id, now);
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
        if entry.busy {
            return;
        }
        if let Some((due, _)) = entry.subscription.next(tick, now) {
            entry.due = Some(due);
            self.queue.insert((due, id));
        }
    }

    pub(super) fn raise(&mut self, feed: &FeedName, tick: Option<Tick>, now: Time) {
        let Some(of_feed) = self.feeds.get_mut(feed) else { return };
        if tick <= of_feed.tick {
            return;
        }
        of_feed.tick = tick;
        let ids: Vec<SubscriptionId> = of_feed.ids.iter().copied().collect();
        for id in ids {
            self.schedule(id, now);
        }
    }
}
