//! All subscriptions in memory: requests, due calls, and unwritten changes. Pure: the hub does I/O.

mod entries;

use super::HubSettings;
use super::lanes::{Counts, QueuedCall};
use entries::{FeedEntry, SIBLING_WAIT, SubscriptionEntry};
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

/// Why a stranger's callback is not called.
pub(super) const NOT_PUBLIC: &str = "the callback leads to an address that is not public; this hub calls it only where \
                                     websub.private_callbacks names its host and port";

/// Why a request is refused.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The callback is not allowed.
    #[error("{0}")]
    Callback(&'static str),
    #[error("there is no subscription of this topic with this callback")]
    Unknown,
    /// The subscription to end is not verified yet. An unsubscription that nobody verifies must not replace a request
    /// that somebody will verify.
    #[error(
        "a subscription of this topic with this callback is being verified; ask for its end after \
         that"
    )]
    Pending,
    #[error("{what}, which is the limit of {limit}; ask again later")]
    Full { what: &'static str, limit: usize },
    /// The request could not be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Numbers of subscriptions and deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SubscriptionCount {
    /// Subscriptions in force.
    pub active: usize,
    /// Subscriptions not in force: not verified yet, or denied.
    pub pending: usize,
    /// Successful deliveries since the start.
    pub delivered: u64,
    /// Failed deliveries since the start.
    pub failed: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Task {
    pub(super) subscription: Subscription,
    /// The host of its callback, as the key of call budgets.
    pub(super) host: Arc<str>,
    pub(super) duty: Duty,
}

/// Returns a client's name for its share of calls. For IPv6 it is the /48 network, since its holder has many /64
/// networks.
fn client_name(client: IpAddr) -> Arc<str> {
    match client {
        IpAddr::V4(address) => format!("client {address}").into(),
        IpAddr::V6(address) => {
            let network = Ipv6Addr::from_bits(address.to_bits() >> 80 << 80);
            format!("client {network}/48").into()
        }
    }
}

/// All subscriptions, with their indices.
pub(super) struct SubscriptionTable {
    pub(super) settings: HubSettings,
    entries: HashMap<SubscriptionId, SubscriptionEntry>,
    feeds: HashMap<FeedName, FeedEntry>,
    /// The number of callbacks per host.
    hosts: Counts,
    /// The requests not verified yet.
    unverified: HashSet<SubscriptionId>,
    queue: BTreeSet<(Time, SubscriptionId)>,
    /// Unwritten changes: the state before the first and after the last change of each subscription.
    dirty: HashMap<SubscriptionId, SubscriptionChange>,
    delivered: u64,
    failed: u64,
    /// When due calls were last checked.
    looked: Option<Time>,
}

impl SubscriptionTable {
    /// Creates the table from stored subscriptions.
    pub(super) fn new(settings: HubSettings, kept: Vec<Subscription>, now: Time) -> Self {
        let mut table = Self {
            settings,
            entries: HashMap::new(),
            feeds: HashMap::new(),
            hosts: Counts::default(),
            unverified: HashSet::new(),
            queue: BTreeSet::new(),
            dirty: HashMap::new(),
            delivered: 0,
            failed: 0,
            looked: None,
        };
        for subscription in kept {
            table.insert(subscription, None, now);
        }
        table
    }

    /// Accepts a request, within the limits; durable only once written. `client`: the address it came from; `tick`: the
    /// feed's newest.
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
        // rssCloud: the answer for one registration settles all of the callback, so wait for a pending one, unless that
        // waits itself.
        let is_asking = |other: &SubscriptionId| {
            *other != id && self.entries.get(other).is_some_and(SubscriptionEntry::is_asking)
        };
        let follows = manner == Manner::RssCloud
            && self.find_cloud_registrations(&asked.callback).iter().any(is_asking);
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
                pending.not_before = Some(now.plus(SIBLING_WAIT));
            }
        });
        Ok(())
    }

    /// Sets or removes a feed's webhook; durable only once written.
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
            // A webhook has no document; its topic is only a key.
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

    /// Records a callback's answer to a verification or denial, unless a newer request has replaced the one asked
    /// about.
    pub(super) fn verified(&mut self, task: &Task, answer: CallbackAnswer, now: Time) {
        let id = task.subscription.id();
        if task.subscription.manner == Manner::RssCloud {
            self.share_answer(id, task, &answer, now);
        }
        self.change(id, now, |entry| {
            entry.is_queued_or_called = false;
            if entry.subscription.asks_the_same(&task.subscription) {
                entry.subscription.heard(answer, now);
            }
        });
    }

    /// Applies an rssCloud answer to all pending registrations of the callback: one registration may name several feeds
    /// but asks its reader once.
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
        let all = self.find_cloud_registrations(&task.subscription.callback);
        for other in all.into_iter().filter(|other| *other != id) {
            self.change(other, now, |entry| {
                if !entry.is_queued_or_called {
                    entry.subscription.heard(answer.clone(), now);
                }
            });
        }
    }

    /// Records a callback's answer to the delivery of the changes up to `tick`.
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
        if let Some(subscription) = self.entries.get(&id).map(|entry| &entry.subscription)
            && let Some(feed) = self.feeds.get_mut(&subscription.feed)
        {
            feed.put_off.remove(&subscription.topic);
        }
        self.change(id, now, |entry| {
            (entry.is_queued_or_called, entry.put_offs) = (false, 0);
            entry.subscription.pushed(answer, tick, now);
        });
    }

    /// Returns at most `limit` unwritten changes.
    pub(super) fn unwritten(&self, limit: usize) -> Vec<SubscriptionChange> {
        self.dirty.values().take(limit).cloned().collect()
    }

    /// Records that these changes are stored. Later changes of the same subscriptions stay unwritten.
    pub(super) fn note_written(&mut self, written: Vec<SubscriptionChange>) {
        for SubscriptionChange { after, .. } in written {
            let Entry::Occupied(mut dirty) = self.dirty.entry(after.id()) else { continue };
            match dirty.get().after == after {
                true => drop(dirty.remove()),
                false => dirty.get_mut().before = Some(after),
            }
        }
    }

    /// Whether there are unwritten changes.
    pub(super) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Returns the feeds that have subscriptions.
    pub(super) fn feeds(&self) -> Vec<FeedName> {
        self.feeds.keys().cloned().collect()
    }

    /// Returns the subscribed topics of feeds for which `is_meant`; webhooks have no topic document.
    pub(super) fn topics(&self, is_meant: impl Fn(&FeedName) -> bool) -> BTreeSet<String> {
        let all = self.entries.values().map(|entry| &entry.subscription);
        all.filter(|subscription| {
            subscription.manner != Manner::Webhook && is_meant(&subscription.feed)
        })
        .map(|subscription| subscription.topic.clone())
        .collect()
    }

    /// Ends the subscriptions for which `reason` returns one; returns their number.
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

    /// Ends expired leases and returns the due calls of feeds that this gateway owns.
    pub(super) fn due(&mut self, now: Time, owns: impl Fn(&FeedName) -> bool) -> Vec<QueuedCall> {
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
            entry.is_queued_or_called = true;
            due.push(entry.queued_call(id, duty));
            self.schedule(id, now);
        }
        due
    }

    /// Returns the call that is due now, if any; ends an expired lease.
    fn duty_now(&mut self, id: SubscriptionId, now: Time) -> Option<Duty> {
        self.change(id, now, |entry| entry.subscription.expire(now));
        let (time, duty) = self.next_duty(id, now)?;
        (time <= now).then_some(duty)
    }

    /// Returns the time of the next due call.
    pub(super) fn next(&self) -> Option<Time> {
        self.queue.first().map(|(time, _)| *time)
    }

    /// Begins a call whose turn has come; `None` if it is no longer due or another gateway owns the feed now.
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

    /// Recomputes what is due, because the ownership of feeds changed.
    pub(super) fn schedule_all(&mut self, now: Time) {
        let ids: Vec<SubscriptionId> = self.entries.keys().copied().collect();
        ids.into_iter().for_each(|id| self.schedule(id, now));
    }

    /// Adopts the stored subscriptions, which other gateways may have changed. Those with unwritten changes or a call
    /// in flight only adopt a newer request. Returns whether any is new here.
    pub(super) fn adopt_stored(&mut self, stored: Vec<Subscription>, now: Time) -> bool {
        let before = self.entries.len();
        let mut gone: HashSet<SubscriptionId> = self.entries.keys().copied().collect();
        for subscription in stored {
            let id = subscription.id();
            gone.remove(&id);
            self.adopt_one(id, subscription, now);
        }
        let is_any_new = self.entries.len() > before;
        gone.retain(|id| !self.has_local_state(*id));
        gone.into_iter().for_each(|id| self.remove(id));
        is_any_new
    }

    /// Returns at most `limit` subscriptions of one feed or of all, sorted by topic and callback.
    pub(super) fn list(&self, feed: Option<&FeedName>, limit: usize) -> Vec<Subscription> {
        let all = self.entries.values().map(|entry| &entry.subscription);
        let mut all: Vec<&Subscription> =
            all.filter(|subscription| feed.is_none_or(|feed| subscription.feed == *feed)).collect();
        all.sort_unstable_by_key(|subscription| {
            (&subscription.topic, subscription.callback.as_str())
        });
        all.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn count(&self) -> SubscriptionCount {
        let active =
            self.entries.values().filter(|entry| entry.subscription.active.is_some()).count();
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
