//! A subscription of the hub, from the request to its end (WebSub sections 5.1 to 5.3 and 7). Pure:
//! the time, and what a callback answered, are told.
//!
//! What was asked for and what is in force stand beside each other: a renewal that is not verified
//! leaves the subscription as it was.

use super::{CallbackAnswer, Intent, Secret, clipped};
use crate::model::{FeedName, Tick, Time};
use crate::pause::GrowingPause;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;
use url::Url;

/// How often a verification is tried before the request is dropped.
pub const VERIFICATIONS: u32 = 3;
/// How long after a failure it is tried again.
const VERIFY_AGAIN: GrowingPause =
    GrowingPause { first: Duration::from_secs(30), factor: 4, most: PAUSE_LIMIT };

/// The longest pause before a first verification is tried again, also where the callback, of which
/// nothing is known yet, asks for a longer one.
const VERIFY_PAUSE_LIMIT: Duration = Duration::from_secs(5 * 60);

/// How often in a row a delivery fails before the hub gives up that change. From then on each newer
/// change is tried once, until one arrives or the lease ends.
pub const DELIVERIES: u32 = 10;
/// How long after a failure a delivery is tried again.
const DELIVER_AGAIN: GrowingPause = GrowingPause::doubling(Duration::from_secs(30), PAUSE_LIMIT);
/// The longest pause, also where the callback asks for a longer one.
const PAUSE_LIMIT: Duration = Duration::from_secs(6 * 3600);

/// How long after a first 410 the same is delivered once more. Only a second one after this pause
/// ends the subscription: there are subscribers that answer 410 while they read the feed themselves.
pub const GONE_PAUSE: Duration = Duration::from_secs(5 * 60);
/// What a first 410 is told as.
const GONE_ONCE: &str = "the callback answered 410; a second time ends the subscription";

/// Which subscription: topic and callback together are its key (section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId([u8; 16]);

impl SubscriptionId {
    /// The id of a topic and a callback.
    pub fn new(manner: Manner, topic: &str, callback: &Url) -> Self {
        let mut hash = Sha256::new();
        hash.update(manner.name());
        hash.update([0]);
        hash.update(topic);
        // An address as parsed holds no NUL.
        hash.update([0]);
        hash.update(callback.as_str());
        let digest = hash.finalize();
        Self(digest.first_chunk().copied().unwrap_or_default())
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// How a subscriber is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Manner {
    /// By WebSub: the document is delivered.
    WebSub,
    /// By rssCloud: the address of what has changed is.
    RssCloud,
    /// By a webhook of the operator's: what has changed is delivered as JSON. Nobody is asked whether that is
    /// meant, it has no lease, and it does not end because it fails.
    Webhook,
}

impl Manner {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WebSub => "websub",
            Self::RssCloud => "rsscloud",
            Self::Webhook => "webhook",
        }
    }
}

/// A subscription, or the request for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// How the subscriber is told.
    pub manner: Manner,
    /// The feed whose document the topic is.
    pub feed: FeedName,
    /// The address of that document, as the subscriber gave it.
    pub topic: String,
    /// Where the hub asks and delivers.
    pub callback: Url,
    /// What is in force.
    pub active: Option<Active>,
    /// What was asked for and is not settled yet.
    pub pending: Option<PendingRequest>,
}

/// A subscription in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Active {
    /// What deliveries are signed with.
    pub secret: Option<Secret>,
    /// Since when it is in force.
    pub since: Time,
    /// When its lease ends.
    pub until: Time,
    /// The newest change of the feed that is settled here: delivered, or given up.
    pub told: Option<Tick>,
    /// When a delivery last arrived.
    pub delivered: Option<Time>,
    /// How many deliveries have arrived.
    pub deliveries: u64,
    /// How many failed since.
    pub failures: u32,
    /// When the next may be tried.
    pub not_before: Option<Time>,
    /// When the callback said for the first time that it is gone, and nothing arrived since.
    pub gone: Option<Time>,
    /// What went wrong last.
    pub trouble: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    /// What.
    pub wanted: CallbackPurpose,
    /// When.
    pub asked: Time,
    /// How often the callback was called about it.
    pub attempts: u32,
    /// When it may be called again.
    pub not_before: Option<Time>,
    /// What went wrong last.
    pub trouble: Option<String>,
}

/// What the callback is to be called for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallbackPurpose {
    /// To verify a subscription or its renewal.
    Subscribe {
        /// The lease that is offered, in seconds.
        lease: u64,
        secret: Option<Secret>,
        /// The newest change of the feed when it was asked for: what comes after is delivered.
        told: Option<Tick>,
    },
    /// To verify its end.
    Unsubscribe,
    /// To say that the topic is told of no more (section 5.2).
    Denial {
        /// Why.
        reason: String,
    },
}

impl CallbackPurpose {
    /// Whether the same is wanted, whatever the feed did meanwhile.
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Subscribe { lease, secret, .. },
                Self::Subscribe { lease: lease_too, secret: secret_too, .. },
            ) => lease == lease_too && secret == secret_too,
            _ => self == other,
        }
    }
}

/// What is to be done about a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Duty {
    /// Its lease has ended.
    Expire,
    /// Its callback is to be asked whether this is meant.
    Verify(Intent),
    /// Its callback is to be told that the topic is told of no more.
    Deny,
    /// The newest document is to be delivered.
    Deliver,
}

impl Active {
    /// One that begins, and by when its lease ends; `told`: the newest change that it is not told of.
    const fn new(secret: Option<Secret>, told: Option<Tick>, (since, until): (Time, Time)) -> Self {
        Self {
            secret,
            since,
            until,
            told,
            delivered: None,
            deliveries: 0,
            failures: 0,
            not_before: None,
            gone: None,
            trouble: None,
        }
    }

    /// Whether a callback that says now that it is gone has said so before a whole pause ago.
    fn has_gone(&self, now: Time) -> bool {
        self.gone.is_some_and(|gone| now.since(gone) >= GONE_PAUSE)
    }
}

impl Subscription {
    /// A subscription of which nothing is known yet.
    pub const fn new(manner: Manner, feed: FeedName, topic: String, callback: Url) -> Self {
        Self { manner, feed, topic, callback, active: None, pending: None }
    }

    /// Puts a webhook in force that is told of what comes after `told`, or goes on with the one that is with
    /// another secret.
    pub fn keep_webhook(&mut self, secret: Secret, told: Option<Tick>, now: Time) {
        match &mut self.active {
            Some(active) => active.secret = Some(secret),
            None => self.active = Some(Active::new(Some(secret), told, (now, Time::MAX))),
        }
    }

    /// Its id.
    pub fn id(&self) -> SubscriptionId {
        SubscriptionId::new(self.manner, &self.topic, &self.callback)
    }

    /// Whether nothing is left of it.
    pub const fn is_over(&self) -> bool {
        self.active.is_none() && self.pending.is_none()
    }

    /// Takes a request. One that is asked for again changes nothing.
    pub fn ask(&mut self, wanted: CallbackPurpose, now: Time) {
        if self.pending.as_ref().is_some_and(|pending| pending.wanted.same(&wanted)) {
            return;
        }
        let asked = now;
        self.pending =
            Some(PendingRequest { wanted, asked, attempts: 0, not_before: None, trouble: None });
    }

    /// Whether the request that is pending is that of an earlier state of it.
    pub fn asks_the_same(&self, earlier: &Self) -> bool {
        let asked = |it: &PendingRequest, then: &PendingRequest| {
            it.asked == then.asked && it.wanted == then.wanted
        };
        self.pending
            .as_ref()
            .zip(earlier.pending.as_ref())
            .is_some_and(|(it, then)| asked(it, then))
    }

    /// Ends it because its topic is told of no more; the callback is to learn why. Says whether
    /// anything changed.
    pub fn deny(&mut self, reason: &str, now: Time) -> bool {
        let denied =
            |pending: &PendingRequest| matches!(pending.wanted, CallbackPurpose::Denial { .. });
        if self.active.is_none() && self.pending.as_ref().is_none_or(denied) {
            return false;
        }
        self.active = None;
        self.pending = None;
        // The other manners have no word for it.
        if self.manner == Manner::WebSub {
            self.ask(CallbackPurpose::Denial { reason: clipped(reason) }, now);
        }
        true
    }

    /// What is to be done next, and when, given the feed's newest tick.
    pub fn next(&self, tick: Option<Tick>, now: Time) -> Option<(Time, Duty)> {
        // No pause is longer than the limit: a time beyond it was set by a clock that was ahead.
        let sane = |time: Time| if time.since(now) > PAUSE_LIMIT { now } else { time };
        let due = |not_before: Option<Time>, since: Time| not_before.map_or(since.min(now), sane);
        let mut next: Option<(Time, Duty)> = None;
        let mut at = |time: Time, duty: Duty| {
            if next.is_none_or(|(earliest, _)| time < earliest) {
                next = Some((time, duty));
            }
        };
        if let Some(active) = &self.active {
            at(active.until, Duty::Expire);
            if active.until <= now {
                return next;
            }
            if tick > active.told {
                at(due(active.not_before, active.since), Duty::Deliver);
            }
        }
        if let Some(pending) = &self.pending {
            let duty = match pending.wanted {
                CallbackPurpose::Subscribe { .. } => Duty::Verify(Intent::Subscribe),
                CallbackPurpose::Unsubscribe => Duty::Verify(Intent::Unsubscribe),
                CallbackPurpose::Denial { .. } => Duty::Deny,
            };
            at(due(pending.not_before, pending.asked), duty);
        }
        next
    }

    /// Takes note that the clock was set back: no pause ends later than one that began now, by the
    /// failures there were.
    pub fn turned_back(&mut self, now: Time) {
        let bound = |not_before: &mut Option<Time>, pause: Duration| {
            let latest = now.plus(pause.min(PAUSE_LIMIT));
            if not_before.is_some_and(|time| time > latest) {
                *not_before = Some(latest);
            }
        };
        if let Some(active) = &mut self.active {
            let pause = DELIVER_AGAIN.after(active.failures);
            let pause = if active.gone.is_some() { pause.max(GONE_PAUSE) } else { pause };
            bound(&mut active.not_before, pause);
        }
        if let Some(pending) = &mut self.pending {
            bound(&mut pending.not_before, VERIFY_AGAIN.after(pending.attempts));
        }
    }

    /// Whether a subscription or a renewal waits to be verified.
    pub fn is_asked_for(&self) -> bool {
        let wanted = self.pending.as_ref().map(|pending| &pending.wanted);
        matches!(wanted, Some(CallbackPurpose::Subscribe { .. }))
    }

    /// Whether nothing is in force and a first verification is waited for.
    pub fn is_unverified(&self) -> bool {
        self.active.is_none() && self.is_asked_for()
    }

    /// Whether something was delivered already. What the operator names needs no proof.
    pub fn is_proven(&self) -> bool {
        let has_delivered = self.active.as_ref().is_some_and(|active| active.deliveries > 0);
        has_delivered || self.manner == Manner::Webhook
    }

    /// Whether the last call of its callback failed.
    pub fn is_in_trouble(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.attempts > 0)
            || self.active.as_ref().is_some_and(|active| active.failures > 0)
    }

    /// Takes what the callback answered to a verification or a denial.
    pub fn heard(&mut self, answer: CallbackAnswer, now: Time) {
        let Some(mut pending) = self.pending.take() else { return };
        match (answer, pending.wanted) {
            (CallbackAnswer::Taken, CallbackPurpose::Subscribe { lease, secret, told }) => {
                let before = self.active.take();
                let until = now.plus(Duration::from_secs(lease));
                let new = Active::new(secret, told, (now, until));
                self.active = Some(match before {
                    Some(Active { since, told, delivered, deliveries, .. }) => {
                        // What was not delivered before the renewal still is.
                        Active { since, told, delivered, deliveries, ..new }
                    }
                    None => new,
                });
            }
            (CallbackAnswer::Taken, CallbackPurpose::Unsubscribe) => self.active = None,
            // Whatever is answered to a denial, it has been told.
            (CallbackAnswer::Taken | CallbackAnswer::Refused(_), _) => {}
            (CallbackAnswer::Failed { why, after }, wanted) => {
                pending.attempts = pending.attempts.saturating_add(1);
                if pending.attempts >= VERIFICATIONS {
                    return;
                }
                let limit = if self.active.is_some() { PAUSE_LIMIT } else { VERIFY_PAUSE_LIMIT };
                let paused = pause(VERIFY_AGAIN.after(pending.attempts), after).min(limit);
                pending.not_before = Some(now.plus(paused));
                pending.trouble = Some(clipped(&why));
                self.pending = Some(PendingRequest { wanted, ..pending });
            }
        }
    }

    /// Takes what the callback answered to the document of the change `tick`.
    pub fn pushed(&mut self, answer: CallbackAnswer, tick: Option<Tick>, now: Time) {
        let Some(active) = &mut self.active else { return };
        let answer = match answer {
            // It is the operator who says when a webhook ends.
            CallbackAnswer::Refused(why) if self.manner == Manner::Webhook => {
                CallbackAnswer::Failed { why, after: None }
            }
            answer => answer,
        };
        match answer {
            CallbackAnswer::Taken => {
                active.told = active.told.max(tick);
                active.delivered = Some(now);
                active.deliveries = active.deliveries.saturating_add(1);
                active.failures = 0;
                active.not_before = None;
                active.gone = None;
                active.trouble = None;
            }
            CallbackAnswer::Refused(_) if active.has_gone(now) => self.active = None,
            CallbackAnswer::Refused(_) => {
                active.failures = active.failures.saturating_add(1);
                // A clock that was set back counts anew.
                let gone = active.gone.map_or(now, |gone| gone.min(now));
                active.gone = Some(gone);
                active.not_before = Some(gone.plus(GONE_PAUSE));
                active.trouble = Some(GONE_ONCE.to_owned());
            }
            CallbackAnswer::Failed { why, after } => {
                active.failures = active.failures.saturating_add(1);
                active.trouble = Some(clipped(&why));
                if active.failures >= DELIVERIES && self.manner != Manner::Webhook {
                    active.told = active.told.max(tick);
                    active.not_before = after.map(|after| now.plus(after.min(PAUSE_LIMIT)));
                    return;
                }
                active.not_before =
                    Some(now.plus(pause(DELIVER_AGAIN.after(active.failures), after)));
            }
        }
    }

    /// Puts a call off until then that could not be made here, and why; no fault of the callback's. What else it is to
    /// be called for does not wait for that.
    pub fn put_off(&mut self, duty: Duty, until: Time, why: &str) {
        let (not_before, trouble) = match (duty, &mut self.active, &mut self.pending) {
            (Duty::Deliver, Some(active), _) => (&mut active.not_before, &mut active.trouble),
            (Duty::Verify(_) | Duty::Deny, _, Some(pending)) => {
                (&mut pending.not_before, &mut pending.trouble)
            }
            _ => return,
        };
        *not_before = (*not_before).max(Some(until));
        *trouble = Some(clipped(why));
    }

    /// Ends what is in force where its lease has ended.
    pub fn expire(&mut self, now: Time) {
        self.active.take_if(|active| active.until <= now);
    }

    /// Where it stands, in a word.
    pub fn standing(&self) -> &'static str {
        let wanted = self.pending.as_ref().map(|pending| &pending.wanted);
        match (&self.active, wanted) {
            (_, Some(CallbackPurpose::Denial { .. })) => "denied",
            (Some(_), Some(CallbackPurpose::Unsubscribe)) => "ending",
            (Some(_), _) => "active",
            (None, Some(_)) => "unverified",
            (None, None) => "over",
        }
    }
}

/// A pause, or the longer one that the callback asks for, within the limit.
fn pause(own: Duration, asked: Option<Duration>) -> Duration {
    own.max(asked.unwrap_or_default()).min(PAUSE_LIMIT)
}

#[cfg(test)]
mod tests;
