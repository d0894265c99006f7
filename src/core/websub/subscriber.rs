//! A subscription to the hub of an upstream (WebSub sections 5 and 7). Decides when to send which request, how to
//! answer the hub's verification, and whether to trust the hub to push every change.
//!
//! Pure. The hub is asked to subscribe, verifies the request, and then delivers until the lease ends; renewal is due
//! after two thirds of the lease. After a failure the next hub is tried, then all again at growing pauses. Polls are
//! fewer while a hub delivers, until it proves unreliable ([`PushTrust`]).

use super::clipped;
use super::discover::Discovery;
use super::form::{Intent, Verification};
use crate::model::{
    FAIR_TIME, HubSubscription as Subscription, Lease, PushTrust, PushedPoll, SubscriptionKeys,
    SubscriptionStanding as Standing, Time, ToldChange,
};
use crate::pause::GrowingPause;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// The requested lease.
pub const LEASE_ASKED: Duration = Duration::from_secs(10 * 86_400);
/// The shortest lease that is believed.
pub const LEASE_LEAST: Duration = Duration::from_secs(60);
/// The longest lease that is believed: a hub may forget its subscribers, so it is asked again by then.
pub const LEASE_MOST: Duration = Duration::from_secs(30 * 86_400);
/// How long a hub may take to verify a request.
pub const VERIFY_WAIT: Duration = Duration::from_secs(10 * 60);
/// The pause after all hubs of a feed have failed.
const RETRY: GrowingPause = GrowingPause::doubling(Duration::from_secs(10 * 60), DAY);
/// The pause before the next hub of the feed is tried.
const NEXT_HUB: Duration = Duration::from_secs(5);
/// How long a hub that denied the subscription is left alone.
pub const DENIED_PAUSE: Duration = Duration::from_secs(7 * 86_400);

/// The most requests per feed in a burst, and per day. The budget survives a change of subscription. Otherwise feeds
/// that keep naming other hubs, hubs that deny, or short leases would cause requests without end.
pub const ATTEMPTS_PER_DAY: u32 = 24;
/// The part of a day that one request uses up.
const SHARE: Duration = Duration::from_secs(DAY.as_secs() / ATTEMPTS_PER_DAY as u64);

/// Begins a subscription to the discovered hubs. `spent`: when the budget used by the feed's earlier requests is
/// restored.
pub fn begin(
    found: &Discovery,
    keys: SubscriptionKeys,
    callbacks: &str,
    spent: Option<Time>,
    now: Time,
) -> Subscription {
    Subscription {
        topic: found.topic.clone(),
        hubs: found.hubs.clone(),
        hub: 0,
        keys,
        callbacks: callbacks.to_owned(),
        standing: Standing::Waiting,
        next: now,
        lease: None,
        failures: 0,
        spent,
        note: None,
        trust: PushTrust::default(),
        last_push: None,
        pushes: 0,
    }
}

/// Moves all times back with a clock that was set back.
pub fn set_back(subscription: &mut Subscription, by: Duration) {
    subscription.next = subscription.next.minus(by);
    subscription.spent = subscription.spent.map(|at| at.minus(by));
    subscription.trust.set_back(by);
    subscription.lease = subscription
        .lease
        .map(|lease| Lease { since: lease.since.minus(by), until: lease.until.minus(by) });
}

/// Resumes a stored subscription after the clock was set back by `back`. A lease that begins in the future or is longer
/// than any is dropped, and the hub is asked again at once.
pub fn resume(subscription: &mut Subscription, back: Duration, now: Time) {
    if !back.is_zero() {
        set_back(subscription, back);
    }
    let furthest = now.plus(LEASE_MOST);
    if subscription.lease.is_some_and(|lease| lease.since > now || lease.until > furthest) {
        (subscription.lease, subscription.trust.awaited) = (None, None);
        subscription.next = now;
    }
    if subscription.next > furthest {
        subscription.next = now;
    }
    subscription.trust.distrusted_until =
        subscription.trust.distrusted_until.filter(|until| *until <= furthest);
}

/// Whether the subscription still fits what was discovered: same topic, and its hub still named. If so, adopts the list
/// of hubs; `Some(true)` if it changed. `None`: a new subscription is needed.
pub fn goes_on(subscription: &mut Subscription, found: &Discovery) -> Option<bool> {
    if subscription.topic != found.topic {
        return None;
    }
    if subscription.hubs == found.hubs {
        return Some(false);
    }
    let at = found.hubs.iter().position(|hub| hub == subscription.address())?;
    subscription.hub = u32::try_from(at).ok()?;
    subscription.hubs.clone_from(&found.hubs);
    Some(true)
}

/// Handles what is due. Returns whether to send a request now; that is recorded before, because the hub may verify
/// before it answers.
pub fn due(subscription: &mut Subscription, now: Time) -> bool {
    if now < subscription.next {
        return false;
    }
    expire(subscription, now);
    if subscription.standing == Standing::Asked {
        let waited = VERIFY_WAIT.as_secs() / 60;
        let said = format!("it did not ask back within {waited} minutes of the request");
        fail(subscription, &said, None, now);
        return false;
    }
    // At most a day can be spent; more was computed by a clock that ran ahead.
    let spent = subscription.spent.filter(|spent| *spent <= now.plus(DAY));
    let spent = spent.map_or(now, |spent| spent.max(now));
    let left = now.plus(DAY).since(spent);
    if left < SHARE {
        subscription.standing = Standing::Waiting;
        subscription.next = now.plus(SHARE - left);
        subscription.note =
            Some(format!("it was asked {ATTEMPTS_PER_DAY} times in a day, which is the limit"));
        return false;
    }
    subscription.spent = Some(spent.plus(SHARE));
    subscription.standing = Standing::Asked;
    subscription.next = now.plus(VERIFY_WAIT);
    true
}

/// Records that the request is sent now, after it waited for the hub's host.
pub fn sent(subscription: &mut Subscription, now: Time) {
    if subscription.standing == Standing::Asked {
        subscription.next = now.plus(VERIFY_WAIT);
    }
}

/// Records that the due request was not sent. It becomes due at `next` and does not count before.
pub fn put_off(subscription: &mut Subscription, why: &str, next: Time) {
    if subscription.standing == Standing::Asked {
        subscription.standing = Standing::Waiting;
        subscription.spent = subscription.spent.map(|spent| spent.minus(SHARE));
        subscription.next = next;
        subscription.note = Some(clipped(why));
    }
}

/// Records a failed request. `wait`: the pause that the hub asks for.
pub fn failed(subscription: &mut Subscription, why: &str, wait: Option<Duration>, now: Time) {
    // The hub may have verified the request all the same.
    if subscription.standing == Standing::Asked {
        fail(subscription, why, wait, now);
    }
}

fn fail(subscription: &mut Subscription, why: &str, wait: Option<Duration>, now: Time) {
    subscription.standing = Standing::Waiting;
    subscription.failures = subscription.failures.saturating_add(1);
    subscription.note = Some(clipped(why));
    let hubs = u32::try_from(subscription.hubs.len()).unwrap_or(u32::MAX).max(1);
    // While the lease lasts, retry this hub only.
    let rounds = if subscription.is_held(now) {
        subscription.failures
    } else {
        if hubs > 1 {
            // The trust in one hub says nothing about the next.
            subscription.hub = (subscription.hub + 1) % hubs;
            subscription.trust = PushTrust::default();
        }
        if subscription.hub != 0 {
            subscription.next = now.plus(NEXT_HUB);
            return;
        }
        subscription.failures / hubs
    };
    let pause = RETRY.after(rounds).max(wait.unwrap_or_default()).min(RETRY.most);
    subscription.next = now.plus(pause);
}

/// Answers a hub's call to the callback: the challenge to confirm, an empty text for a denial, or `None` if the
/// subscription was not requested: 404 (section 5.3).
pub fn called(subscription: &mut Subscription, said: &Verification, now: Time) -> Option<String> {
    match said {
        Verification::Intent { intent: Intent::Subscribe, topic, challenge, lease } => {
            // A late verification is accepted too.
            let asked = match subscription.standing {
                Standing::Asked => true,
                Standing::Waiting => subscription.failures > 0,
                // Our answer may have been lost, and an unconfirmed hub would drop us.
                Standing::Verified => subscription.is_held(now),
                Standing::Denied => false,
            };
            if !asked || *topic != subscription.topic {
                return None;
            }
            hold(subscription, *lease, now);
            Some(challenge.clone())
        }
        // We never unsubscribe from a subscription in use.
        Verification::Intent { intent: Intent::Unsubscribe, .. } => None,
        Verification::Denied { topic, .. } if *topic != subscription.topic => None,
        Verification::Denied { reason, .. } => {
            let reason = reason.as_deref().unwrap_or("it gave no reason");
            deny(subscription, reason, now);
            Some(String::new())
        }
    }
}

fn hold(subscription: &mut Subscription, seconds: Option<u64>, now: Time) {
    let lease = seconds.map_or(LEASE_ASKED, Duration::from_secs).clamp(LEASE_LEAST, LEASE_MOST);
    let before = subscription.lease.filter(|before| now < before.until);
    let since = before.map_or(now, |before| before.since);
    subscription.lease = Some(Lease { since, until: now.plus(lease) });
    subscription.standing = Standing::Verified;
    subscription.next = now.plus(lease / 3 * 2);
    subscription.failures = 0;
    subscription.note = None;
}

fn deny(subscription: &mut Subscription, reason: &str, now: Time) {
    let reason = format!("it said no: {reason}");
    subscription.lease = None;
    subscription.trust.awaited = None;
    // A denial ends deliveries. It does not concern a request that is still waiting, which may be for another hub.
    if !matches!(subscription.standing, Standing::Asked | Standing::Verified) {
        return;
    }
    if subscription.hubs.len() > 1 {
        fail(subscription, &reason, None, now);
        return;
    }
    subscription.standing = Standing::Denied;
    subscription.note = Some(clipped(&reason));
    subscription.next = now.plus(DENIED_PAUSE);
}

/// Removes an expired lease.
fn expire(subscription: &mut Subscription, now: Time) {
    if subscription.lease.is_some() && !subscription.is_held(now) {
        subscription.lease = None;
        subscription.trust.awaited = None;
    }
}

/// Records a push with a valid signature. Returns which change it announces.
pub fn pushed(subscription: &mut Subscription, now: Time) -> ToldChange {
    subscription.last_push = Some(now);
    subscription.pushes = subscription.pushes.saturating_add(1);
    subscription.trust.pushed(FAIR_TIME, now)
}

/// Records a successful poll. Returns whether the trust in the hub changed.
pub fn polled(subscription: &mut Subscription, poll: PushedPoll, now: Time) -> bool {
    let expected = poll.expected && subscription.is_held(now);
    subscription.trust.polled(PushedPoll { expected, ..poll }, FAIR_TIME, now)
}

/// Whether the hub is expected to push every change after a poll that began at `begun`.
pub fn covers(subscription: &Subscription, begun: Time, now: Time) -> bool {
    let delivers =
        subscription.lease.is_some_and(|lease| lease.since <= begun && now < lease.until);
    delivers && subscription.trust.is_relied_on(now)
}

/// Describes the state and its reason in words.
pub fn describe(subscription: &Subscription, now: Time) -> String {
    let note = subscription.note.as_deref();
    let again = format!("; it is asked again at {}", subscription.next);
    let mut said = match (subscription.state(now), subscription.lease) {
        ("denied", _) => "the hub does not deliver".to_owned(),
        ("asked", _) => "the hub was asked and has not asked back yet".to_owned(),
        (_, Some(lease)) if subscription.is_held(now) => {
            format!("the hub delivers until {}", lease.until)
        }
        _ => "the hub is to be asked".to_owned(),
    };
    if let Some(note) = note {
        said.push_str(": ");
        said.push_str(note);
    }
    if subscription.standing != Standing::Asked {
        said.push_str(&again);
    }
    match subscription.trust {
        PushTrust { distrusted_until: Some(until), .. } if now < until => {
            let why = "it did not tell of two changes in a row, so that polls go on as without it";
            said.push_str(&format!("; {why} until {until}"));
        }
        _ if !subscription.is_held(now) => {}
        PushTrust { missed: 0, .. } => said.push_str("; polls are fewer meanwhile"),
        _ => {
            said.push_str("; polls are fewer meanwhile, though it did not tell of the last change")
        }
    }
    said
}

#[cfg(test)]
mod tests;
