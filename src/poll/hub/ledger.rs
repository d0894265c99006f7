//! Every subscription in memory, what is due, and what is still to be written.
//!
//! Changes are made in memory and written together: whoever waits for one waits for the write that has it. What other
//! gateways write of subscriptions is read again and again.

mod books;
mod others;

use super::HubSettings;
use super::lanes::{LaneTurn, host_of};
use books::Inner;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tidegate_core::model::{FeedName, Tick, Time};
use tidegate_core::websub::cloud::CLOUD_LEASE;
use tidegate_core::websub::{
    CallbackPurpose, Duty, HubRequest, Manner, Secret, Subscription, SubscriptionId, VERIFICATIONS,
    VerificationResult,
};
use tidegate_net::fetch::{self, AllowPrivate};
use tidegate_store::{Store, StoreError, SubscriptionChange};
use url::Url;

/// The most subscriptions that are written in one transaction.
const BATCH: usize = 256;

/// Why a callback is not called that a stranger names.
pub(super) const NOT_PUBLIC: &str = "the callback leads to an address that is not public; this hub calls it only where \
                                     websub.private_callbacks names its host and port";

/// Why a request is not taken.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The callback is none that this hub calls.
    #[error("{0}")]
    Callback(String),
    /// There is no such subscription to end.
    #[error("there is no subscription of this topic with this callback")]
    Unknown,
    /// The end is asked for of what is not verified yet. An end that nobody verifies must not take
    /// the place of a request that somebody will.
    #[error(
        "a subscription of this topic with this callback is being verified; ask for its end after \
         that"
    )]
    Pending,
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
pub struct SubscriptionCount {
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

/// The name of a client in shares. Of IPv6 it is the network of 48 bits: one who has that has many of 64.
fn client_name(client: IpAddr) -> Arc<str> {
    match client {
        IpAddr::V4(address) => format!("client {address}").into(),
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from_bits(address.to_bits() >> 80 << 80);
            format!("client {network}/48").into()
        }
    }
}

/// What the topic of a feed's webhook is called: it is no document.
fn webhook_topic(feed: &FeedName) -> String {
    format!("/feeds/{feed}/webhook")
}

/// Every subscription.
pub(super) struct Ledger {
    store: Arc<dyn Store>,
    settings: RwLock<Arc<HubSettings>>,
    inner: Arc<Mutex<Inner>>,
    /// One writer at a time, so that a later state is never overtaken by an earlier one.
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl Ledger {
    /// A ledger of the subscriptions that are kept.
    pub(super) fn new(
        store: Arc<dyn Store>,
        settings: HubSettings,
        kept: Vec<Subscription>,
        now: Time,
    ) -> Self {
        let mut inner = Inner::default();
        for subscription in kept {
            inner.insert(subscription, None, now);
        }
        let settings = RwLock::new(Arc::new(settings));
        Self { store, settings, inner: Arc::new(Mutex::new(inner)), writing: Arc::default() }
    }

    /// Goes on with other limits.
    pub(super) fn reconfigure(&self, settings: HubSettings) {
        *self.settings.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(settings);
    }

    fn settings(&self) -> Arc<HubSettings> {
        Arc::clone(&self.settings.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request, within the limits; not durable before [`Ledger::flush`]. `client`: who asks; `tick`: the
    /// feed's newest.
    pub(super) fn ask(
        &self,
        feed: &FeedName,
        request: HubRequest,
        client: Option<IpAddr>,
        tick: Option<Tick>,
        now: Time,
    ) -> Result<(), AskError> {
        let key = match request {
            HubRequest::Subscribe { topic, callback, lease, secret } => {
                let lease = self.settings().leases.grant(lease);
                (topic, callback, CallbackPurpose::Subscribe { lease, secret, told: tick })
            }
            HubRequest::Unsubscribe { topic, callback } => {
                (topic, callback, CallbackPurpose::Unsubscribe)
            }
            HubRequest::Publish => {
                return Err(AskError::Mode(
                    "hub.mode=publish is not needed here: this hub polls its publishers itself",
                ));
            }
        };
        self.change_subscription((Manner::WebSub, client), feed, key, now)
    }

    /// Takes a registration with the cloud, likewise.
    pub(super) fn register(
        &self,
        feed: &FeedName,
        (topic, callback): (String, Url),
        client: Option<IpAddr>,
        tick: Option<Tick>,
        now: Time,
    ) -> Result<(), AskError> {
        let lease = CLOUD_LEASE.as_secs();
        let wanted = CallbackPurpose::Subscribe { lease, secret: None, told: tick };
        let key = (topic, callback.clone(), wanted);
        self.change_subscription((Manner::RssCloud, client), feed, key, now)?;
        self.inner().wait_for_first(&callback, now);
        Ok(())
    }

    /// Has a feed's webhook be this one, or none, likewise.
    pub(super) fn set_webhook(
        &self,
        feed: &FeedName,
        webhook: Option<(Url, Secret)>,
        allow: &AllowPrivate,
        tick: Option<Tick>,
        now: Time,
    ) -> Result<(), AskError> {
        if let Some((url, _)) = &webhook
            && fetch::check(url, allow).is_err()
        {
            let said = "the webhook leads to a private address, which is called only where \
                        polling.allow_private names its host and port";
            return Err(AskError::Callback(said.to_owned()));
        }
        let topic = webhook_topic(feed);
        let wanted =
            webhook.as_ref().map(|(url, _)| SubscriptionId::new(Manner::Webhook, &topic, url));
        let mut inner = self.inner();
        for id in inner.webhooks(feed).into_iter().filter(|id| Some(*id) != wanted) {
            inner.change(id, now, |entry| entry.subscription.active.take().is_some());
        }
        if let (Some((callback, secret)), Some(id)) = (webhook, wanted) {
            if !inner.entries.contains_key(&id) {
                inner.make_room(&host_of(&callback), None, &self.settings(), now)?;
                let new = Subscription::new(Manner::Webhook, feed.clone(), topic, callback);
                inner.insert(new, None, now);
            }
            inner.change(id, now, |entry| entry.subscription.keep_webhook(secret, tick, now));
        }
        Ok(())
    }

    /// Takes what a callback answered to a verification by rssCloud for all that it is asked for:
    /// one registration may name several feeds, and is one question to one reader.
    pub(super) fn finish_cloud(&self, task: &Task, heard: &VerificationResult, now: Time) {
        let pending = task.subscription.pending.as_ref();
        let is_last = pending.is_some_and(|pending| pending.attempts + 1 >= VERIFICATIONS);
        let heard = match heard {
            VerificationResult::Failed { .. } if !is_last => return,
            VerificationResult::Failed { why, .. } => VerificationResult::Refused(why.clone()),
            VerificationResult::Agreed | VerificationResult::Refused(_) => heard.clone(),
        };
        let (id, callback) = (task.subscription.id(), &task.subscription.callback);
        let mut inner = self.inner();
        for other in inner.of_cloud(callback).into_iter().filter(|other| *other != id) {
            inner.change(other, now, |entry| {
                let waits = !entry.busy;
                if waits {
                    entry.subscription.heard(heard.clone(), now);
                }
                waits
            });
        }
    }

    fn change_subscription(
        &self,
        (manner, client): (Manner, Option<IpAddr>),
        feed: &FeedName,
        (topic, callback, wanted): (String, Url, CallbackPurpose),
        now: Time,
    ) -> Result<(), AskError> {
        let settings = self.settings();
        if fetch::check(&callback, &settings.private_callbacks).is_err() {
            return Err(AskError::Callback(NOT_PUBLIC.to_owned()));
        }
        let id = SubscriptionId::new(manner, &topic, &callback);
        let mut inner = self.inner();
        if !inner.entries.contains_key(&id) {
            if wanted == CallbackPurpose::Unsubscribe {
                return Err(AskError::Unknown);
            }
            let (host, client) = (host_of(&callback), client.map(client_name));
            inner.make_room(&host, client.as_ref(), &settings, now)?;
            inner.insert(Subscription::new(manner, feed.clone(), topic, callback), client, now);
        }
        let asked_for = inner.entries.get(&id).is_some_and(|of| of.subscription.is_asked_for());
        if wanted == CallbackPurpose::Unsubscribe && asked_for {
            return Err(AskError::Pending);
        }
        inner.change(id, now, |entry| {
            let other = entry.subscription.ask(wanted, now);
            if other {
                entry.serial += 1;
            }
            other
        });
        Ok(())
    }

    /// Writes everything that has changed. Whoever calls this may go away; the write goes on.
    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        let (store, inner) = (Arc::clone(&self.store), Arc::clone(&self.inner));
        let writing = Arc::clone(&self.writing);
        let written = tokio::spawn(async move {
            let _turn = writing.lock().await;
            let lock = || inner.lock().unwrap_or_else(PoisonError::into_inner);
            let is_shared = store.gateways().is_some();
            let all: Vec<SubscriptionChange> = lock().dirty.drain().map(|(_, it)| it).collect();
            let mut chunks = all.chunks(BATCH);
            while let Some(chunk) = chunks.next() {
                if let Err(error) = store.put_subscriptions(chunk).await {
                    let mut inner = lock();
                    for change in chunk.iter().chain(chunks.flatten()) {
                        // What has changed since is newer, and is as well over what was before this.
                        let newer = inner.dirty.entry(change.after.id());
                        let newer = newer.or_insert_with(|| change.clone());
                        newer.before.clone_from(&change.before);
                    }
                    return Err(error);
                }
                lock().note_written(chunk, is_shared);
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

    /// The topics of some feeds that are subscribed to; those of webhooks are no documents.
    pub(super) fn topics(&self, is_meant: impl Fn(&FeedName) -> bool) -> BTreeSet<String> {
        let inner = self.inner();
        let all = inner.entries.values().map(|entry| &entry.subscription);
        all.filter(|of| of.manner != Manner::Webhook && is_meant(&of.feed))
            .map(|of| of.topic.clone())
            .collect()
    }

    /// Ends the subscriptions for which there is a reason; says how many those were.
    pub(super) fn deny<'r>(
        &self,
        now: Time,
        reason: impl Fn(&Subscription) -> Option<&'r str>,
    ) -> usize {
        let mut inner = self.inner();
        let all = inner.entries.iter();
        let ended = all.filter_map(|(id, entry)| Some((*id, reason(&entry.subscription)?)));
        let ended: Vec<(SubscriptionId, &str)> = ended.collect();
        let mut count = 0;
        for (id, reason) in ended {
            inner.change(id, now, |entry| {
                let denied = entry.subscription.deny(reason, now);
                entry.serial += u64::from(denied);
                count += usize::from(denied);
                denied
            });
        }
        count
    }

    /// What is due of feeds that this gateway owns: ends leases, and answers whom to call.
    pub(super) fn due(&self, now: Time, owns: impl Fn(&FeedName) -> bool) -> Vec<LaneTurn> {
        let mut locked = self.inner();
        let inner = &mut *locked;
        inner.set_time(now);
        let mut due = Vec::new();
        while let Some((time, id)) = inner.queue.first().copied() {
            if time > now {
                break;
            }
            inner.queue.pop_first();
            if let Some(entry) = inner.entries.get_mut(&id)
                && !owns(&entry.subscription.feed)
            {
                entry.due = None;
                continue;
            }
            inner.change(id, now, |entry| entry.subscription.expire(now));
            if let Some(entry) = inner.entries.get_mut(&id)
                && entry.due.is_some_and(|due| due <= now)
            {
                inner.queue.remove(&(entry.due.take().unwrap_or(time), id));
                entry.busy = true;
                due.push(entry.turn(id));
            }
        }
        due
    }

    /// When something is due next.
    pub(super) fn next(&self) -> Option<Time> {
        self.inner().queue.first().map(|(time, _)| *time)
    }

    /// What to call a subscription for whose turn it is; nothing where that has passed meanwhile, or another gateway
    /// owns its feed since.
    pub(super) fn begin(
        &self,
        id: SubscriptionId,
        now: Time,
        owns: impl Fn(&FeedName) -> bool,
    ) -> Option<Task> {
        let mut inner = self.inner();
        let is_ours = inner.entries.get(&id).is_some_and(|entry| owns(&entry.subscription.feed));
        if is_ours {
            inner.change(id, now, |entry| entry.subscription.expire(now));
        }
        let tick = inner.tick_of(id);
        let entry = inner.entries.get_mut(&id)?;
        let next = entry.subscription.next(tick, now).filter(|_| is_ours);
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

    /// Puts off a call that could not be made here, as [`Inner::put_off`] does.
    pub(super) fn put_off(
        &self,
        id: SubscriptionId,
        duty: Duty,
        why: Option<&str>,
        now: Time,
    ) -> bool {
        self.inner().put_off(id, duty, why, now)
    }

    /// Counts a delivery, whose document was had.
    pub(super) fn counted(&self, id: SubscriptionId, arrived: bool) {
        let mut inner = self.inner();
        inner.found(id);
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

    pub(super) fn count(&self) -> SubscriptionCount {
        let inner = self.inner();
        let active = inner.entries.values().filter(|of| of.subscription.active.is_some()).count();
        SubscriptionCount {
            active,
            pending: inner.entries.len().saturating_sub(active),
            delivered: inner.delivered,
            failed: inner.failed,
        }
    }
}

#[cfg(test)]
mod tests;
