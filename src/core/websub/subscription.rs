//! A subscription at our hub, from the request to its end (WebSub sections 5.1 to 5.3 and 7). Pure; time and answers
//! are passed in.
//!
//! The pending request is kept next to the active subscription: a renewal that is not verified leaves the latter
//! unchanged.

use super::{CallbackAnswer, Intent, Secret, clipped};
use crate::model::{FeedName, Tick, Time};
use crate::pause::GrowingPause;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;
use url::Url;

/// How often a verification is tried before the request is dropped.
pub const VERIFICATIONS: u32 = 3;
/// The pause before a verification is retried.
const VERIFY_AGAIN: GrowingPause =
    GrowingPause { first: Duration::from_secs(30), factor: 4, most: PAUSE_LIMIT };

/// The longest pause before a first verification is retried, even if the callback, still unknown, asks for a longer
/// one.
const VERIFY_PAUSE_LIMIT: Duration = Duration::from_secs(5 * 60);

/// How many consecutive failures make the hub give up a change. After that each newer change is tried once, until one
/// arrives or the lease ends.
pub const DELIVERIES: u32 = 10;
/// The pause before a delivery is retried.
const DELIVER_AGAIN: GrowingPause = GrowingPause::doubling(Duration::from_secs(30), PAUSE_LIMIT);
/// The longest pause, even if the callback asks for a longer one.
const PAUSE_LIMIT: Duration = Duration::from_secs(6 * 3600);

/// The pause after a first 410, after which the same change is delivered again. Only a second 410 ends the
/// subscription, because some subscribers answer 410 while they read the feed.
pub const GONE_PAUSE: Duration = Duration::from_secs(5 * 60);
/// The shown failure after a first 410.
const GONE_ONCE: &str = "the callback answered 410; a second time ends the subscription";

/// Identifies a subscription: manner, topic and callback are its key (section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId([u8; 16]);

impl SubscriptionId {
    /// Computes the id of a topic and a callback.
    pub fn new(manner: Manner, topic: &str, callback: &Url) -> Self {
        let mut hash = Sha256::new();
        hash.update(manner.name());
        hash.update([0]);
        hash.update(topic);
        // A parsed address contains no NUL.
        hash.update([0]);
        hash.update(callback.as_str());
        let digest = hash.finalize();
        Self(digest.first_chunk().copied().unwrap_or_default())
    }

    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// The protocol of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Manner {
    /// WebSub: the document is delivered.
    WebSub,
    /// rssCloud: the address of the changed document is delivered.
    RssCloud,
    /// An operator's webhook: changes are delivered as JSON. It is not verified, has no lease, and does not end because
    /// of failures.
    Webhook,
}

impl Manner {
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
    pub manner: Manner,
    /// The feed whose document the topic is.
    pub feed: FeedName,
    /// The address of that document, as the subscriber gave it.
    pub topic: String,
    /// The address for verifications and deliveries.
    pub callback: Url,
    /// The active subscription, if any.
    pub active: Option<Active>,
    /// The request that is not settled yet, if any.
    pub pending: Option<PendingRequest>,
}

/// An active subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Active {
    /// The secret for signing deliveries.
    pub secret: Option<Secret>,
    /// When it began.
    pub since: Time,
    /// When its lease ends.
    pub until: Time,
    /// The feed's newest change that is settled: delivered or given up.
    pub told: Option<Tick>,
    /// The time of the last successful delivery.
    pub delivered: Option<Time>,
    /// The number of successful deliveries.
    pub deliveries: u64,
    /// Consecutive failures since.
    pub failures: u32,
    /// The earliest time of the next delivery.
    pub not_before: Option<Time>,
    /// The time of the first 410 since the last successful delivery.
    pub gone: Option<Time>,
    /// The last failure.
    pub trouble: Option<String>,
}

/// A request that is not settled yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    pub wanted: CallbackPurpose,
    pub asked: Time,
    /// How often the callback was called for it.
    pub attempts: u32,
    /// The earliest time of the next call.
    pub not_before: Option<Time>,
    /// The last failure.
    pub trouble: Option<String>,
}

/// The purpose of a call to the callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallbackPurpose {
    /// Verify a subscription or its renewal.
    Subscribe {
        /// The granted lease, in seconds.
        lease: u64,
        secret: Option<Secret>,
        /// The feed's newest change at the time of the request; later ones are delivered.
        told: Option<Tick>,
    },
    /// Verify the end of a subscription.
    Unsubscribe,
    /// Announce that the topic is no longer delivered (section 5.2).
    Denial { reason: String },
}

impl CallbackPurpose {
    /// Whether two requests ask for the same, regardless of changes of the feed.
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

/// What a subscription needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Duty {
    /// Its lease has ended.
    Expire,
    /// Verify a request at the callback.
    Verify(Intent),
    /// Announce to the callback that the topic is no longer delivered.
    Deny,
    /// Deliver the newest document.
    Deliver,
}

impl Active {
    /// Begins a subscription for a period. `told`: the newest change that is not to be delivered.
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

    /// Whether the first 410 was at least [`GONE_PAUSE`] ago.
    fn has_gone(&self, now: Time) -> bool {
        self.gone.is_some_and(|gone| now.since(gone) >= GONE_PAUSE)
    }
}

impl Subscription {
    /// Creates a subscription that is neither active nor requested.
    pub const fn new(manner: Manner, feed: FeedName, topic: String, callback: Url) -> Self {
        Self { manner, feed, topic, callback, active: None, pending: None }
    }

    /// Activates a webhook that receives changes after `told`, or replaces the secret of an active one.
    pub fn keep_webhook(&mut self, secret: Secret, told: Option<Tick>, now: Time) {
        match &mut self.active {
            Some(active) => active.secret = Some(secret),
            None => self.active = Some(Active::new(Some(secret), told, (now, Time::MAX))),
        }
    }

    pub fn id(&self) -> SubscriptionId {
        SubscriptionId::new(self.manner, &self.topic, &self.callback)
    }

    /// Whether the subscription can be forgotten.
    pub const fn is_over(&self) -> bool {
        self.active.is_none() && self.pending.is_none()
    }

    /// Records a request; an identical one that is pending stays unchanged.
    pub fn ask(&mut self, wanted: CallbackPurpose, now: Time) {
        if self.pending.as_ref().is_some_and(|pending| pending.wanted.same(&wanted)) {
            return;
        }
        let asked = now;
        self.pending =
            Some(PendingRequest { wanted, asked, attempts: 0, not_before: None, trouble: None });
    }

    /// Whether its pending request is the same as in an `earlier` state.
    pub fn asks_the_same(&self, earlier: &Self) -> bool {
        let asked = |it: &PendingRequest, then: &PendingRequest| {
            it.asked == then.asked && it.wanted == then.wanted
        };
        self.pending
            .as_ref()
            .zip(earlier.pending.as_ref())
            .is_some_and(|(it, then)| asked(it, then))
    }

    /// Ends the subscription because its topic is no longer delivered; a WebSub callback will be told the reason.
    /// Returns whether anything changed.
    pub fn deny(&mut self, reason: &str, now: Time) -> bool {
        let denied =
            |pending: &PendingRequest| matches!(pending.wanted, CallbackPurpose::Denial { .. });
        if self.active.is_none() && self.pending.as_ref().is_none_or(denied) {
            return false;
        }
        self.active = None;
        self.pending = None;
        // The other protocols have no denials.
        if self.manner == Manner::WebSub {
            self.ask(CallbackPurpose::Denial { reason: clipped(reason) }, now);
        }
        true
    }

    /// Returns the next duty and its time, given the feed's newest tick.
    pub fn next(&self, tick: Option<Tick>, now: Time) -> Option<(Time, Duty)> {
        // A time beyond the longest pause was computed by a clock that ran ahead.
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

    /// Adapts to a clock that was set back: shortens each pause to the one that would begin now.
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

    /// Whether a subscription or a renewal awaits verification.
    pub fn is_asked_for(&self) -> bool {
        let wanted = self.pending.as_ref().map(|pending| &pending.wanted);
        matches!(wanted, Some(CallbackPurpose::Subscribe { .. }))
    }

    /// Whether it is not active and awaits its first verification.
    pub fn is_unverified(&self) -> bool {
        self.active.is_none() && self.is_asked_for()
    }

    /// Whether a delivery has succeeded. A webhook, named by the operator, needs no proof.
    pub fn is_proven(&self) -> bool {
        let has_delivered = self.active.as_ref().is_some_and(|active| active.deliveries > 0);
        has_delivered || self.manner == Manner::Webhook
    }

    /// Whether the last call of its callback failed.
    pub fn is_in_trouble(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.attempts > 0)
            || self.active.as_ref().is_some_and(|active| active.failures > 0)
    }

    /// Records a callback's answer to a verification or denial.
    pub fn heard(&mut self, answer: CallbackAnswer, now: Time) {
        let Some(mut pending) = self.pending.take() else { return };
        match (answer, pending.wanted) {
            (CallbackAnswer::Taken, CallbackPurpose::Subscribe { lease, secret, told }) => {
                let before = self.active.take();
                let until = now.plus(Duration::from_secs(lease));
                let new = Active::new(secret, told, (now, until));
                self.active = Some(match before {
                    Some(Active { since, told, delivered, deliveries, .. }) => {
                        // Changes not delivered before the renewal stay due.
                        Active { since, told, delivered, deliveries, ..new }
                    }
                    None => new,
                });
            }
            (CallbackAnswer::Taken, CallbackPurpose::Unsubscribe) => self.active = None,
            // A denial needs no particular answer.
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

    /// Records a callback's answer to the delivery of the changes up to `tick`.
    pub fn pushed(&mut self, answer: CallbackAnswer, tick: Option<Tick>, now: Time) {
        let Some(active) = &mut self.active else { return };
        let answer = match answer {
            // Only the operator ends a webhook.
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
                // If the clock was set back, the pause begins anew.
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

    /// Postpones a call that could not be made here, for a reason `why` that is not the callback's fault. Other duties
    /// do not wait.
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

    /// Ends the active subscription if its lease has ended.
    pub fn expire(&mut self, now: Time) {
        self.active.take_if(|active| active.until <= now);
    }

    /// Returns its status in a word.
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

/// Returns the longer of two pauses, within the limit.
fn pause(own: Duration, asked: Option<Duration>) -> Duration {
    own.max(asked.unwrap_or_default()).min(PAUSE_LIMIT)
}

#[cfg(test)]
mod tests;
