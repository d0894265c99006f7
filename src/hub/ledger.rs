//! Every subscription in memory, what is due, and what is still to be written.
//!
//! This is the one writer of subscriptions. Changes are made in memory and written together: whoever
//! waits for one waits for the write that has it.

use super::Settings;
use crate::fetch::{self, AllowPrivate};
use crate::model::{FeedName, Tick, Time};
use crate::store::{Store, StoreError};
use crate::websub::cloud::CLOUD_LEASE;
use crate::websub::{Duty, Manner, Request, Subscription, SubscriptionId, Wanted};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use url::Url;

/// The most requests of one host that wait for their first verification.
const UNVERIFIED_PER_HOST: usize = 200;
/// The most requests that do, all hosts together.
const UNVERIFIED: usize = 5000;
/// The most subscriptions that are written in one transaction.
const BATCH: usize = 256;

/// Why a request is not taken.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The callback is none that this hub calls.
    #[error("{0}")]
    Callback(String),
    /// There is no such subscription to end.
    #[error("there is no subscription of this topic with this callback")]
    Unknown,
    /// A limit is reached.
    #[error("{what}, which is the limit of {limit}; ask again later")]
    Full {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
    /// The mode is none that this hub takes.
    #[error("{0}")]
    Mode(&'static str),
    /// It could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many subscriptions there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// In force.
    pub active: usize,
    /// Not in force: not verified yet, or denied.
    pub pending: usize,
    /// Deliveries that arrived since the start.
    pub delivered: u64,
    /// Deliveries that failed since the start.
    pub failed: u64,
}

/// Something that a callback is to be called for.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) subscription: Subscription,
    pub(super) duty: Duty,
    /// Which of the requests for this subscription it is about.
    pub(super) serial: u64,
}

struct Entry {
    subscription: Subscription,
    host: Arc<str>,
    /// Raised by each new request, so that an answer to an earlier one is known as such.
    serial: u64,
    due: Option<Time>,
    /// It waits for its turn, or is being called.
    busy: bool,
}

#[derive(Default)]
struct Feed {
    ids: HashSet<SubscriptionId>,
    tick: Option<Tick>,
}

#[derive(Default)]
struct Host {
    all: usize,
    unverified: usize,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<SubscriptionId, Entry>,
    feeds: HashMap<FeedName, Feed>,
    hosts: HashMap<Arc<str>, Host>,
    unverified: usize,
    queue: BTreeSet<(Time, SubscriptionId)>,
    /// What is to be written, as it stood when it last changed.
    dirty: HashMap<SubscriptionId, Subscription>,
    delivered: u64,
    failed: u64,
}

/// Every subscription.
pub(super) struct Ledger {
    store: Arc<dyn Store>,
    settings: Settings,
    inner: Arc<Mutex<Inner>>,
    /// One writer at a time, so that a later state is never overtaken by an earlier one.
    writing: Arc<tokio::sync::Mutex<()>>,
}

/// The host of a callback: its registrable domain, so that a thousand names below it are one.
fn host_of(callback: &Url) -> Arc<str> {
    match callback.host() {
        Some(url::Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            psl::domain_str(name).unwrap_or(name).into()
        }
        // Behind one address without a name may be many, each at its port.
        Some(address) => {
            format!("{address}:{}", callback.port_or_known_default().unwrap_or_default()).into()
        }
        None => Arc::default(),
    }
}

impl Ledger {
    /// A ledger of the subscriptions that are kept.
    pub(super) fn new(
        store: Arc<dyn Store>,
        settings: Settings,
        kept: Vec<Subscription>,
        now: Time,
    ) -> Self {
        let mut inner = Inner::default();
        for subscription in kept {
            inner.insert(subscription, now);
        }
        Self { store, settings, inner: Arc::new(Mutex::new(inner)), writing: Arc::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request, within the limits; not durable before [`Ledger::settle`]. `tick`: the
    /// feed's newest.
    pub(super) fn ask(
        &self,
        feed: &FeedName,
        request: Request,
        allow: &AllowPrivate,
        tick: Option<Tick>,
        now: Time,
    ) -> Result<(), AskError> {
        let key = match request {
            Request::Subscribe { topic, callback, lease, secret } => {
                let lease = self.settings.leases.grant(lease);
                (topic, callback, Wanted::Subscribe { lease, secret, told: tick })
            }
            Request::Unsubscribe { topic, callback } => (topic, callback, Wanted::Unsubscribe),
            Request::Publish => {
                return Err(AskError::Mode(
                    "hub.mode=publish is not needed here: this hub polls its publishers itself",
                ));
            }
        };
        self.take(Manner::WebSub, feed, key, allow, tick, now)
    }

    /// Takes a registration with the cloud, likewise.
    pub(super) fn register(
        &self,
        feed: &FeedName,
        (topic, callback): (String, Url),
        allow: &AllowPrivate,
        tick: Option<Tick>,
        now: Time,
    ) -> Result<(), AskError> {
        let lease = CLOUD_LEASE.as_secs();
        let wanted = Wanted::Subscribe { lease, secret: None, told: tick };
        self.take(Manner::RssCloud, feed, (topic, callback, wanted), allow, tick, now)
    }

    fn take(
        &self,
        manner: Manner,
        feed: &FeedName,
        (topic, callback, wanted): (String, Url, Wanted),
        allow: &AllowPrivate,
        tick: Option<Tick>,
        now: Time,
    ) -> Result<(), AskError> {
        if fetch::check(&callback, allow).is_err() {
            let said = "the callback leads to an address that this hub does not call: it is not \
                        public";
            return Err(AskError::Callback(said.to_owned()));
        }
        let id = SubscriptionId::of(manner, &topic, &callback);
        let mut inner = self.inner();
        if !inner.entries.contains_key(&id) {
            if wanted == Wanted::Unsubscribe {
                return Err(AskError::Unknown);
            }
            inner.has_room(&host_of(&callback), &self.settings)?;
            inner.insert(Subscription::new(manner, feed.clone(), topic, callback), now);
        }
        inner.change(id, now, |entry| {
            let other = entry.subscription.ask(wanted, now);
            if other {
                entry.serial += 1;
            }
            other
        });
        inner.raise(feed, tick, now);
        Ok(())
    }

    /// Writes everything that has changed. Whoever calls this may go away; the write goes on.
    pub(super) async fn settle(&self) -> Result<(), StoreError> {
        let (store, inner) = (Arc::clone(&self.store), Arc::clone(&self.inner));
        let writing = Arc::clone(&self.writing);
        let written = tokio::spawn(async move {
            let _turn = writing.lock().await;
            let lock = || inner.lock().unwrap_or_else(PoisonError::into_inner);
            let all: Vec<Subscription> = lock().dirty.drain().map(|(_, state)| state).collect();
            let mut chunks = all.chunks(BATCH);
            while let Some(chunk) = chunks.next() {
                if let Err(error) = store.put_subscriptions(chunk).await {
                    let mut inner = lock();
                    for state in chunk.iter().chain(chunks.flatten()) {
                        // What has changed since is newer.
                        inner.dirty.entry(state.id()).or_insert_with(|| state.clone());
                    }
                    return Err(error);
                }
            }
            Ok(())
        });
        written.await.unwrap_or_else(|error| {
            let source = std::io::Error::other(error);
            Err(StoreError::Io { doing: "write subscriptions", source })
        })
    }

    /// Whether something is to be written.
    pub(super) fn is_dirty(&self) -> bool {
        !self.inner().dirty.is_empty()
    }

    /// Takes note of a feed's newest tick.
    pub(super) fn saw(&self, feed: &FeedName, tick: Option<Tick>, now: Time) {
        self.inner().raise(feed, tick, now);
    }

    /// The feeds that are subscribed to.
    pub(super) fn feeds(&self) -> Vec<FeedName> {
        self.inner().feeds.keys().cloned().collect()
    }

    /// The topics that are subscribed to.
    pub(super) fn topics(&self) -> BTreeSet<String> {
        let inner = self.inner();
        inner.entries.values().map(|entry| entry.subscription.topic.clone()).collect()
    }

    /// Ends all subscriptions of topics that have gone; `gone`: why, by topic.
    pub(super) fn deny(&self, gone: &HashMap<String, String>, now: Time) {
        if gone.is_empty() {
            return;
        }
        let mut inner = self.inner();
        let of_topics = inner.entries.iter().filter_map(|(id, entry)| {
            gone.get(&entry.subscription.topic).map(|reason| (*id, reason))
        });
        let of_topics: Vec<(SubscriptionId, &String)> = of_topics.collect();
        for (id, reason) in of_topics {
            inner.change(id, now, |entry| {
                let denied = entry.subscription.deny(reason, now);
                if denied {
                    entry.serial += 1;
                }
                denied
            });
        }
    }

    /// What is due: ends leases, and answers whom to call.
    pub(super) fn due(&self, now: Time) -> Vec<(Arc<str>, SubscriptionId)> {
        let mut locked = self.inner();
        let inner = &mut *locked;
        let mut due = Vec::new();
        while let Some((time, id)) = inner.queue.first().copied() {
            if time > now {
                break;
            }
            inner.queue.pop_first();
            inner.change(id, now, |entry| entry.subscription.expire(now));
            if let Some(entry) = inner.entries.get_mut(&id)
                && entry.due.is_some_and(|due| due <= now)
            {
                inner.queue.remove(&(entry.due.take().unwrap_or(time), id));
                entry.busy = true;
                due.push((Arc::clone(&entry.host), id));
            }
        }
        due
    }

    /// When something is due next.
    pub(super) fn next(&self) -> Option<Time> {
        self.inner().queue.first().map(|(time, _)| *time)
    }

    /// What to call a subscription for whose turn it is; nothing where that has passed meanwhile.
    pub(super) fn begin(&self, id: SubscriptionId, now: Time) -> Option<Task> {
        let mut inner = self.inner();
        inner.change(id, now, |entry| entry.subscription.expire(now));
        let tick = inner.tick_of(id);
        let entry = inner.entries.get_mut(&id)?;
        let next = entry.subscription.next(tick, now);
        match next.filter(|(time, duty)| *time <= now && *duty != Duty::Expire) {
            Some((_, duty)) => {
                let subscription = entry.subscription.clone();
                Some(Task { subscription, duty, serial: entry.serial })
            }
            None => {
                entry.busy = false;
                inner.schedule(id, now);
                None
            }
        }
    }

    /// Takes over what came of a call. `about`: the request that it was about, where it was about
    /// one; where another has come since, it says nothing of that.
    pub(super) fn finish(
        &self,
        id: SubscriptionId,
        about: Option<u64>,
        now: Time,
        edit: impl FnOnce(&mut Subscription),
    ) {
        let mut inner = self.inner();
        if let Some(entry) = inner.entries.get_mut(&id) {
            entry.busy = false;
        }
        inner.change(id, now, |entry| {
            let stands = about.is_none_or(|serial| serial == entry.serial);
            if stands {
                edit(&mut entry.subscription);
            }
            stands
        });
    }

    /// Counts a delivery.
    pub(super) fn counted(&self, arrived: bool) {
        let mut inner = self.inner();
        if arrived {
            inner.delivered += 1;
        } else {
            inner.failed += 1;
        }
    }

    pub(super) fn list(&self, feed: Option<&FeedName>, limit: usize) -> Vec<Subscription> {
        let inner = self.inner();
        let all = inner.entries.values().map(|entry| &entry.subscription);
        let mut all: Vec<&Subscription> =
            all.filter(|of| feed.is_none_or(|feed| of.feed == *feed)).collect();
        all.sort_unstable_by_key(|of| (&of.topic, of.callback.as_str()));
        all.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn count(&self) -> Count {
        let inner = self.inner();
        let active = inner.entries.values().filter(|of| of.subscription.active.is_some()).count();
        Count {
            active,
            pending: inner.entries.len().saturating_sub(active),
            delivered: inner.delivered,
            failed: inner.failed,
        }
    }
}

impl Inner {
    fn has_room(&self, host: &Arc<str>, settings: &Settings) -> Result<(), AskError> {
        let full = |what, limit| Err(AskError::Full { what, limit });
        if self.entries.len() >= settings.subscriptions {
            return full("this hub has no room for another subscription", settings.subscriptions);
        }
        let of_host = self.hosts.get(host);
        if of_host.is_some_and(|host| host.all >= settings.per_host) {
            return full("this hub has no room for another callback there", settings.per_host);
        }
        if of_host.is_some_and(|host| host.unverified >= UNVERIFIED_PER_HOST) {
            let what = "too many requests with callbacks there are not verified yet";
            return full(what, UNVERIFIED_PER_HOST);
        }
        if self.unverified >= UNVERIFIED {
            return full("too many requests are not verified yet", UNVERIFIED);
        }
        Ok(())
    }

    fn insert(&mut self, subscription: Subscription, now: Time) {
        let (id, host) = (subscription.id(), host_of(&subscription.callback));
        self.feeds.entry(subscription.feed.clone()).or_default().ids.insert(id);
        self.weigh(&host, subscription.active.is_none(), true);
        let entry = Entry { subscription, host, serial: 0, due: None, busy: false };
        self.entries.insert(id, entry);
        self.schedule(id, now);
    }

    /// Counts a subscription of a host in, or out.
    fn weigh(&mut self, host: &Arc<str>, unverified: bool, comes: bool) {
        let step = |count: &mut usize, by: bool| {
            *count = if comes { *count + usize::from(by) } else { count.saturating_sub(by.into()) };
        };
        let of_host = self.hosts.entry(Arc::clone(host)).or_default();
        step(&mut of_host.all, true);
        step(&mut of_host.unverified, unverified);
        if of_host.all == 0 {
            self.hosts.remove(host);
        }
        step(&mut self.unverified, unverified);
    }

    /// Changes a subscription: `edit` says whether it did. One of which nothing is left goes.
    fn change(&mut self, id: SubscriptionId, now: Time, edit: impl FnOnce(&mut Entry) -> bool) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let (host, unverified) = (Arc::clone(&entry.host), entry.subscription.active.is_none());
        if edit(entry) {
            let (state, over) = (entry.subscription.clone(), entry.subscription.is_over());
            self.weigh(&host, unverified, false);
            if !over {
                self.weigh(&host, state.active.is_none(), true);
            }
            self.dirty.insert(id, state);
            if over {
                return self.remove(id);
            }
        }
        self.schedule(id, now);
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

    fn tick_of(&self, id: SubscriptionId) -> Option<Tick> {
        let entry = self.entries.get(&id)?;
        self.feeds.get(&entry.subscription.feed).and_then(|feed| feed.tick)
    }

    /// Puts a subscription into the queue by what is due next.
    fn schedule(&mut self, id: SubscriptionId, now: Time) {
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

    fn raise(&mut self, feed: &FeedName, tick: Option<Tick>, now: Time) {
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

#[cfg(test)]
mod tests;
