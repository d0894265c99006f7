//! What the hub keeps of its subscribers, on disk.

use super::{Record, RecordError};
use crate::model::{FeedName, Tick, Time};
use crate::websub::{Active, CallbackPurpose, Manner, PendingRequest, Secret, Subscription};
use serde::{Deserialize, Serialize};
use url::Url;

/// A [`Subscription`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct SubscriptionRecord {
    manner: MannerRecord,
    feed: FeedName,
    topic: String,
    callback: String,
    active: Option<ActiveRecord>,
    pending: Option<PendingRecord>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum MannerRecord {
    WebSub,
    RssCloud,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ActiveRecord {
    secret: Option<String>,
    since: Time,
    until: Time,
    told: Option<Tick>,
    delivered: Option<Time>,
    deliveries: u64,
    failures: u32,
    not_before: Option<Time>,
    /// When the callback first said that it is gone.
    gone: Option<Time>,
    trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PendingRecord {
    wanted: WantedRecord,
    asked: Time,
    attempts: u32,
    not_before: Option<Time>,
    trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum WantedRecord {
    Subscribe { lease: u64, secret: Option<String>, told: Option<Tick> },
    Unsubscribe,
    Denial { reason: String },
}

impl Record for SubscriptionRecord {}

fn shown(secret: Option<&Secret>) -> Option<String> {
    secret.map(|secret| secret.reveal().to_owned())
}

fn secret(text: Option<String>) -> Result<Option<Secret>, RecordError> {
    Ok(text.map(|text| Secret::new(&text)).transpose()?)
}

impl From<&Subscription> for SubscriptionRecord {
    fn from(subscription: &Subscription) -> Self {
        Self {
            manner: match subscription.manner {
                Manner::WebSub => MannerRecord::WebSub,
                Manner::RssCloud => MannerRecord::RssCloud,
            },
            feed: subscription.feed.clone(),
            topic: subscription.topic.clone(),
            callback: subscription.callback.as_str().to_owned(),
            active: subscription.active.as_ref().map(ActiveRecord::from),
            pending: subscription.pending.as_ref().map(PendingRecord::from),
        }
    }
}

impl From<&Active> for ActiveRecord {
    fn from(active: &Active) -> Self {
        Self {
            secret: shown(active.secret.as_ref()),
            since: active.since,
            until: active.until,
            told: active.told,
            delivered: active.delivered,
            deliveries: active.deliveries,
            failures: active.failures,
            not_before: active.not_before,
            gone: active.gone,
            trouble: active.trouble.clone(),
        }
    }
}

impl From<&PendingRequest> for PendingRecord {
    fn from(pending: &PendingRequest) -> Self {
        Self {
            wanted: match &pending.wanted {
                CallbackPurpose::Subscribe { lease, secret, told } => WantedRecord::Subscribe {
                    lease: *lease,
                    secret: shown(secret.as_ref()),
                    told: *told,
                },
                CallbackPurpose::Unsubscribe => WantedRecord::Unsubscribe,
                CallbackPurpose::Denial { reason } => {
                    WantedRecord::Denial { reason: reason.clone() }
                }
            },
            asked: pending.asked,
            attempts: pending.attempts,
            not_before: pending.not_before,
            trouble: pending.trouble.clone(),
        }
    }
}

impl TryFrom<SubscriptionRecord> for Subscription {
    type Error = RecordError;

    fn try_from(record: SubscriptionRecord) -> Result<Self, RecordError> {
        Ok(Self {
            manner: match record.manner {
                MannerRecord::WebSub => Manner::WebSub,
                MannerRecord::RssCloud => Manner::RssCloud,
            },
            feed: record.feed,
            topic: record.topic,
            callback: Url::parse(&record.callback)?,
            active: record.active.map(Active::try_from).transpose()?,
            pending: record.pending.map(PendingRequest::try_from).transpose()?,
        })
    }
}

impl TryFrom<ActiveRecord> for Active {
    type Error = RecordError;

    fn try_from(record: ActiveRecord) -> Result<Self, RecordError> {
        Ok(Self {
            secret: secret(record.secret)?,
            since: record.since,
            until: record.until,
            told: record.told,
            delivered: record.delivered,
            deliveries: record.deliveries,
            failures: record.failures,
            not_before: record.not_before,
            gone: record.gone,
            trouble: record.trouble,
        })
    }
}

impl TryFrom<PendingRecord> for PendingRequest {
    type Error = RecordError;

    fn try_from(record: PendingRecord) -> Result<Self, RecordError> {
        Ok(Self {
            wanted: match record.wanted {
                WantedRecord::Subscribe { lease, secret: text, told } => {
                    CallbackPurpose::Subscribe { lease, secret: secret(text)?, told }
                }
                WantedRecord::Unsubscribe => CallbackPurpose::Unsubscribe,
                WantedRecord::Denial { reason } => CallbackPurpose::Denial { reason },
            },
            asked: record.asked,
            attempts: record.attempts,
            not_before: record.not_before,
            trouble: record.trouble,
        })
    }
}
