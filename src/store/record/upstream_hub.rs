//! A subscription to the hub of an upstream, on disk.

use super::sharing::Seconds;
use crate::model::{HubSubscription, HubTrust, Lease, SubscriptionKeys, SubscriptionStanding};
use serde::{Deserialize, Serialize};

/// A [`HubSubscription`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SubscriptionRecord {
    topic: String,
    hubs: Vec<String>,
    hub: u32,
    token: String,
    secret: String,
    callbacks: String,
    standing: StandingRecord,
    next: Seconds,
    lease: Option<(Seconds, Seconds)>,
    failures: u32,
    attempts: u32,
    day: Seconds,
    note: Option<String>,
    trust: TrustRecord,
    heard: u32,
    silent: u32,
    suspect: Option<Seconds>,
    last_push: Option<Seconds>,
    pushes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum StandingRecord {
    Waiting,
    Asked,
    Verified,
    Denied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum TrustRecord {
    Unproven,
    Trusted,
    Distrusted,
}

impl From<&HubSubscription> for SubscriptionRecord {
    fn from(of: &HubSubscription) -> Self {
        Self {
            topic: of.topic.clone(),
            hubs: of.hubs.clone(),
            hub: of.hub,
            token: of.keys.token.clone(),
            secret: of.keys.secret.clone(),
            callbacks: of.callbacks.clone(),
            standing: match of.standing {
                SubscriptionStanding::Waiting => StandingRecord::Waiting,
                SubscriptionStanding::Asked => StandingRecord::Asked,
                SubscriptionStanding::Verified => StandingRecord::Verified,
                SubscriptionStanding::Denied => StandingRecord::Denied,
            },
            next: of.next.into(),
            lease: of.lease.map(|lease| (lease.since.into(), lease.until.into())),
            failures: of.failures,
            attempts: of.attempts,
            day: of.day.into(),
            note: of.note.clone(),
            trust: match of.trust {
                HubTrust::Unproven => TrustRecord::Unproven,
                HubTrust::Trusted => TrustRecord::Trusted,
                HubTrust::Distrusted => TrustRecord::Distrusted,
            },
            heard: of.heard,
            silent: of.silent,
            suspect: of.suspect.map(Into::into),
            last_push: of.last_push.map(Into::into),
            pushes: of.pushes,
        }
    }
}

impl From<SubscriptionRecord> for HubSubscription {
    fn from(record: SubscriptionRecord) -> Self {
        let lease =
            |(since, until): (Seconds, Seconds)| Lease { since: since.into(), until: until.into() };
        Self {
            topic: record.topic,
            hubs: record.hubs,
            hub: record.hub,
            keys: SubscriptionKeys { token: record.token, secret: record.secret },
            callbacks: record.callbacks,
            standing: match record.standing {
                StandingRecord::Waiting => SubscriptionStanding::Waiting,
                StandingRecord::Asked => SubscriptionStanding::Asked,
                StandingRecord::Verified => SubscriptionStanding::Verified,
                StandingRecord::Denied => SubscriptionStanding::Denied,
            },
            next: record.next.into(),
            lease: record.lease.map(lease),
            failures: record.failures,
            attempts: record.attempts,
            day: record.day.into(),
            note: record.note,
            trust: match record.trust {
                TrustRecord::Unproven => HubTrust::Unproven,
                TrustRecord::Trusted => HubTrust::Trusted,
                TrustRecord::Distrusted => HubTrust::Distrusted,
            },
            heard: record.heard,
            silent: record.silent,
            suspect: record.suspect.map(Into::into),
            last_push: record.last_push.map(Into::into),
            pushes: record.pushes,
        }
    }
}
