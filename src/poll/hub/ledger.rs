//! Every subscription in memory: what is asked for, what is due, and what is still to be written. Pure: the store and
//! the network are the hub's.

mod entries;

use super::HubSettings;
use super::lanes::{Counts, LaneTurn};
use entries::{FOLLOWS, FeedEntry, SubscriptionEntry};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use tidegate_core::model::{FeedName, Tick, Time};
use tidegate_core::websub::cloud::CLOUD_LEASE;
use tidegate_core::websub::{
    CallbackAnswer, CallbackPurpose, Duty, HubRequest, Intent, Manner, Secret, Subscription,
    SubscriptionId, VERIFICATIONS,
};
use tidegate_net::fetch::{self, AllowPrivate};
use tidegate_store::{StoreError, SubscriptionChange};
use url::Url;

/// Why a callback is not called that a stranger names.
pub(super) const NOT_PUBLIC: &str = "the callback leads to an address that is not public; this hub calls it only where \
                                     websub.private_callbacks names its host and port";

/// Why a request is not taken.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The callback is none that this hub calls.
    #[error("{0}")]
    Callback(&'static str),
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
    /// The host of its callback.
    pub(super) host: Arc<str>,
    pub(super) duty: Duty,
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

/// Every subscription.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) settings: HubSettings,
    entries: HashMap<SubscriptionId, SubscriptionEntry>,
    feeds: HashMap<FeedName, FeedEntry>,
    /// How many callbacks each host has.
    hosts: Counts,
    /// The requests that are not verified.
    unverified: HashSet<SubscriptionId>,
    queue: BTreeSet<(Time, SubscriptionId)>,
    /// What is to be written: as it was before the first change, and as it stood after the last.
    dirty: HashMap<SubscriptionId, SubscriptionChange>,
    delivered: u64,
    failed: u64,
    /// When it was last looked what is due.
    looked: Option<Time>,
}

impl Ledger {
    /// A ledger of the subscriptions that are kept.
    pub(super) fn new(settings: HubSettings, kept: Vec<Subscription>, now: Time) -> Self {
        let mut ledger = Self { settings, ..Self::default() };
        for subscription in kept {
            ledger.insert(subscription, None, now);
        }
        ledger
    }

    /// Takes a request, within the limits; not durable before it is written. `client`: who asks; `tick`: the feed's
    /// newest.
    pub(super) fn ask(
        &mut self,
        feed: &FeedName,
        manner: Manner,
        request: HubRequest,
        client: Option<IpAddr>,
        tick: Option<Tick>,
        now: Time,
    ) -> Result<(), AskError> {
        let HubRequest { intent, topic, callback, lease, secret } = request;
        if fetch::check(&callback, &self.settings.private_callbacks).is_err() {
            return Err(AskError::Callback(NOT_PUBLIC));
        }
        let is_end = intent == Intent::Unsubscribe;
        let lease = match manner {
            Manner::RssCloud => CLOUD_LEASE.as_secs(),
            Manner::WebSub | Manner::Webhook => self.settings.leases.grant(lease),
        };
        let wanted = match is_end {
            true => CallbackPurpose::Unsubscribe,
            false => CallbackPurpose::Subscribe { lease, secret, told: tick },
        };
        let asked = Subscription::new(manner, feed.clone(), topic, callback);
        let id = asked.id();
        // What is answered about another registration with the cloud counts for this one, where that one does not wait
        // itself.
        let is_asking = |other: &SubscriptionId| {
            *other != id && self.entries.get(other).is_some_and(SubscriptionEntry::is_asking)
        };
        let follows =
            manner == Manner::RssCloud && self.of_cloud(&asked.callback).iter().any(is_asking);
        match self.entries.get(&id).map(|entry| entry.subscription.is_asked_for()) {
            None if is_end => return Err(AskError::Unknown),
            None => self.add(asked, client.map(client_name), now)?,
            Some(true) if is_end => return Err(AskError::Pending),
            Some(_) => {}
        }
        self.change(id, now, |entry| {
            let before = entry.subscription.pending.clone();
            entry.subscription.ask(wanted, now);
            let is_new = entry.subscription.pending != before;
            if let Some(pending) = entry.subscription.pending.as_mut().filter(|_| is_new && follows)
            {
                pending.not_before = Some(now.plus(FOLLOWS));
            }
        });
        Ok(())
    }

    /// Has a feed's webhook be this one, or none, likewise.
    pub(super) fn set_webhook(
        &mut self,
        feed: &FeedName,
        webhook: Option<(Url, Secret)>,
        allow: &AllowPrivate,
        tick: Option<Tick>,
        now: Time,
    ) -> Result<(), AskError> {
        let is_refused = |(url, _): &(Url, Secret)| fetch::check(url, allow).is_err();
        if webhook.as_ref().is_some_and(is_refused) {
            return Err(AskError::Callback(
                "the webhook leads to a private address, which is called only where \
                 polling.allow_private names its host and port",
            ));
        }
        let new = webhook.map(|(callback, secret)| {
            // It is no document.
            let topic = format!("/feeds/{feed}/webhook");
            (Subscription::new(Manner::Webhook, feed.clone(), topic, callback), secret)
        });
        let wanted = new.as_ref().map(|(new, _)| new.id());
        let ids = self.feeds.get(feed).map(|feed| feed.ids.clone()).unwrap_or_default();
        for id in ids.into_iter().filter(|id| Some(*id) != wanted) {
            self.change(id, now, |entry| {
                if entry.subscription.manner == Manner::Webhook {
                    entry.subscription.active = None;
                }
            });
        }
        if let Some((new, secret)) = new {
            let id = new.id();
            if !self.entries.contains_key(&id) {
                self.add(new, None, now)?;
            }
            self.change(id, now, |entry| entry.subscription.keep_webhook(secret, tick, now));
        }
        Ok(())
    }

    /// Takes what a callback answered to a verification or a denial, unless another request has come since: it says
    /// nothing of that.
    pub(super) fn verified(&mut self, task: &Task, answer: CallbackAnswer, now: Time) {
        let id = task.subscription.id();
        if task.subscription.manner == Manner::RssCloud {
            self.share_answer(id, task, &answer, now);
        }
        self.change(id, now, |entry| {
            entry.busy = false;
            if entry.subscription.asks_the_same(&task.subscription) {
                entry.subscription.heard(answer, now);
            }
        });
    }

    /// One rssCloud answer settles all pending registrations of its callback: one registration may name several feeds,
    /// and is one question to one reader.
    fn share_answer(
        &mut self,
        id: SubscriptionId,
        task: &Task,
        answer: &CallbackAnswer,
        now: Time,
    ) {
        let pending = task.subscription.pending.as_ref();
        let is_last = pending.is_some_and(|pending| pending.attempts + 1 >= VERIFICATIONS);
        let answer = match answer {
            CallbackAnswer::Failed { .. } if !is_last => return,
            CallbackAnswer::Failed { why, .. } => CallbackAnswer::Refused(why.clone()),
            answer => answer.clone(),
        };
        let all = self.of_cloud(&task.subscription.callback);
        for other in all.into_iter().filter(|other| *other != id) {
            self.change(other, now, |entry| {
                if !entry.busy {
                    entry.subscription.heard(answer.clone(), now);
                }
            });
        }
    }

    /// Takes what a callback answered to a delivery of the change `tick`.
    pub(super) fn delivered(
        &mut self,
        id: SubscriptionId,
        answer: CallbackAnswer,
        tick: Option<Tick>,
        now: Time,
    ) {
        match answer {
            CallbackAnswer::Taken => self.delivered += 1,
            _ => self.failed += 1,
        }
        if let Some(of) = self.entries.get(&id).map(|entry| &entry.subscription)
            && let Some(feed) = self.feeds.get_mut(&of.feed)
        {
            feed.put_off.remove(&of.topic);
        }
        self.change(id, now, |entry| {
            (entry.busy, entry.put_offs) = (false, 0);
            entry.subscription.pushed(answer, tick, now);
        });
    }

    /// What is to be written, at most so many.
    pub(super) fn unwritten(&self, limit: usize) -> Vec<SubscriptionChange> {
        self.dirty.values().take(limit).cloned().collect()
    }

    /// These changes are stored. What has changed since is still to be written.
    pub(super) fn note_written(&mut self, written: Vec<SubscriptionChange>) {
        for SubscriptionChange { after, .. } in written {
            let Entry::Occupied(mut dirty) = self.dirty.entry(after.id()) else { continue };
            match dirty.get().after == after {
                true => drop(dirty.remove()),
                false => dirty.get_mut().before = Some(after),
            }
        }
    }

    /// Whether something is to be written.
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The feeds that are subscribed to.
    pub(super) fn feeds(&self) -> Vec<FeedName> {
        self.feeds.keys().cloned().collect()
    }

    /// The topics of some feeds that are subscribed to; those of webhooks are no documents.
    pub(super) fn topics(&self, is_meant: impl Fn(&FeedName) -> bool) -> BTreeSet<String> {
        let all = self.entries.values().map(|entry| &entry.subscription);
        all.filter(|of| of.manner != Manner::Webhook && is_meant(&of.feed))
            .map(|of| of.topic.clone())
            .collect()
    }

    /// Ends the subscriptions for which there is a reason; says how many those were.
    pub(super) fn deny<'r>(
        &mut self,
        now: Time,
        reason: impl Fn(&Subscription) -> Option<&'r str>,
    ) -> usize {
        let all = self.entries.iter();
        let ended = all.filter_map(|(id, entry)| Some((*id, reason(&entry.subscription)?)));
        let ended: Vec<(SubscriptionId, &str)> = ended.collect();
        let mut count = 0;
        for (id, reason) in ended {
            self.change(id, now, |entry| {
                count += usize::from(entry.subscription.deny(reason, now));
            });
        }
        count
    }

    /// What is due of feeds that this gateway owns: ends leases, and answers whom to call.
    pub(super) fn due(&mut self, now: Time, owns: impl Fn(&FeedName) -> bool) -> Vec<LaneTurn> {
        self.follow_clock(now);
        let mut due = Vec::new();
        while let Some((_, id)) = self.queue.first().copied().filter(|(time, _)| *time <= now) {
            self.queue.pop_first();
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.due = None;
            if !owns(&entry.subscription.feed) {
                continue;
            }
            let Some(duty) = self.duty_now(id, now) else { continue };
            let Some(entry) = self.entries.get_mut(&id) else { continue };
            entry.busy = true;
            due.push(entry.turn(id, duty));
            self.schedule(id, now);
        }
        due
    }

    /// What a callback is to be called for now. A lease that has ended goes.
    fn duty_now(&mut self, id: SubscriptionId, now: Time) -> Option<Duty> {
        self.change(id, now, |entry| entry.subscription.expire(now));
        let (time, duty) = self.next_duty(id, now)?;
        (time <= now).then_some(duty)
    }

    /// When something is due next.
    pub(super) fn next(&self) -> Option<Time> {
        self.queue.first().map(|(time, _)| *time)
    }

    /// What to call a subscription for whose turn it is; nothing where that has passed meanwhile, or another gateway
    /// owns its feed since.
    pub(super) fn begin(
        &mut self,
        id: SubscriptionId,
        now: Time,
        owns: impl Fn(&FeedName) -> bool,
    ) -> Option<Task> {
        let is_ours = self.entries.get(&id).is_some_and(|entry| owns(&entry.subscription.feed));
        let duty = is_ours.then(|| self.duty_now(id, now)).flatten();
        let Some((duty, entry)) = duty.zip(self.entries.get(&id)) else {
            self.release(id, now);
            return None;
        };
        let (subscription, host) = (entry.subscription.clone(), Arc::clone(&entry.host));
        Some(Task { subscription, host, duty })
    }

    /// Reckons anew what is due: other gateways own feeds since.
    pub(super) fn schedule_all(&mut self, now: Time) {
        let ids: Vec<SubscriptionId> = self.entries.keys().copied().collect();
        ids.into_iter().for_each(|id| self.schedule(id, now));
    }

    /// Takes in the subscriptions as the store has them: those that other gateways took or called. What is to be
    /// written here, or is being called, stays as it is, but for a later request. Answers whether any is new here.
    pub(super) fn take_in(&mut self, stored: Vec<Subscription>, now: Time) -> bool {
        let before = self.entries.len();
        let mut gone: HashSet<SubscriptionId> = self.entries.keys().copied().collect();
        for subscription in stored {
            let id = subscription.id();
            gone.remove(&id);
            self.take_in_one(id, subscription, now);
        }
        let is_any_new = self.entries.len() > before;
        gone.retain(|id| !self.is_own(*id));
        gone.into_iter().for_each(|id| self.remove(id));
        is_any_new
    }

    /// The subscriptions, of one feed or of all, by topic and callback; at most `limit`.
    pub(super) fn list(&self, feed: Option<&FeedName>, limit: usize) -> Vec<Subscription> {
        let all = self.entries.values().map(|entry| &entry.subscription);
        let mut all: Vec<&Subscription> =
            all.filter(|of| feed.is_none_or(|feed| of.feed == *feed)).collect();
        all.sort_unstable_by_key(|of| (&of.topic, of.callback.as_str()));
        all.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn count(&self) -> SubscriptionCount {
        let active = self.entries.values().filter(|of| of.subscription.active.is_some()).count();
        SubscriptionCount {
            active,
            pending: self.entries.len().saturating_sub(active),
            delivered: self.delivered,
            failed: self.failed,
        }
    }
}

#[cfg(test)]
mod tests;
