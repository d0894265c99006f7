//! What the hub keeps of its subscribers, on disk.

use super::sharing::Seconds;
use super::{Record, RecordError, fields_and, newest};
use crate::model::FeedName;
use crate::websub::{Active, Manner, Pending, Secret, Subscription, Wanted};
use serde::{Deserialize, Serialize};
use url::Url;

/// A [`Subscription`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct SubscriptionRecord {
    manner: MannerRecord,
    feed: String,
    topic: String,
    callback: String,
    active: Option<ActiveRecord>,
    pending: Option<PendingRecord>,
    /// Of what is active: when the callback first said that it is gone.
    gone: Option<Seconds>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum MannerRecord {
    WebSub,
    RssCloud,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ActiveRecord {
    secret: Option<String>,
    since: Seconds,
    until: Seconds,
    told: Option<Seconds>,
    delivered: Option<Seconds>,
    deliveries: u64,
    failures: u32,
    not_before: Option<Seconds>,
    trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PendingRecord {
    wanted: WantedRecord,
    asked: Seconds,
    attempts: u32,
    not_before: Option<Seconds>,
    trouble: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum WantedRecord {
    Subscribe { lease: u64, secret: Option<String>, told: Option<Seconds> },
    Unsubscribe,
    Denial { reason: String },
}

impl Record for SubscriptionRecord {
    const VERSION: u8 = 2;

    /// The first layout does not know that a callback may say once that it is gone.
    fn read(version: u8, payload: &[u8]) -> Result<Self, RecordError> {
        match version {
            1 => fields_and(payload, &None::<Seconds>),
            _ => newest(version, payload),
        }
    }
}

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
            feed: subscription.feed.as_str().to_owned(),
            topic: subscription.topic.clone(),
            callback: subscription.callback.as_str().to_owned(),
            active: subscription.active.as_ref().map(ActiveRecord::from),
            pending: subscription.pending.as_ref().map(PendingRecord::from),
            gone: subscription.active.as_ref().and_then(|active| active.gone).map(Seconds::from),
        }
    }
}

impl From<&Active> for ActiveRecord {
    fn from(active: &Active) -> Self {
        Self {
            secret: shown(active.secret.as_ref()),
            since: active.since.into(),
            until: active.until.into(),
            told: active.told.map(Seconds::from),
            delivered: active.delivered.map(Seconds::from),
            deliveries: active.deliveries,
            failures: active.failures,
            not_before: active.not_before.map(Seconds::from),
            trouble: active.trouble.clone(),
        }
    }
}

impl From<&Pending> for PendingRecord {
    fn from(pending: &Pending) -> Self {
        Self {
            wanted: match &pending.wanted {
                Wanted::Subscribe { lease, secret, told } => WantedRecord::Subscribe {
                    lease: *lease,
                    secret: shown(secret.as_ref()),
                    told: told.map(Seconds::from),
                },
                Wanted::Unsubscribe => WantedRecord::Unsubscribe,
                Wanted::Denial { reason } => WantedRecord::Denial { reason: reason.clone() },
            },
            asked: pending.asked.into(),
            attempts: pending.attempts,
            not_before: pending.not_before.map(Seconds::from),
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
            feed: FeedName::new(&record.feed)?,
            topic: record.topic,
            callback: Url::parse(&record.callback)?,
            active: record.active.map(|active| active.read(record.gone)).transpose()?,
            pending: record.pending.map(Pending::try_from).transpose()?,
        })
    }
}

impl ActiveRecord {
    /// What is in force; `gone` stands beside it.
    fn read(self, gone: Option<Seconds>) -> Result<Active, RecordError> {
        let record = self;
        Ok(Active {
            secret: secret(record.secret)?,
            since: record.since.into(),
            until: record.until.into(),
            told: record.told.map(Into::into),
            delivered: record.delivered.map(Into::into),
            deliveries: record.deliveries,
            failures: record.failures,
            not_before: record.not_before.map(Into::into),
            gone: gone.map(Into::into),
            trouble: record.trouble,
        })
    }
}

impl TryFrom<PendingRecord> for Pending {
    type Error = RecordError;

    fn try_from(record: PendingRecord) -> Result<Self, RecordError> {
        Ok(Self {
            wanted: match record.wanted {
                WantedRecord::Subscribe { lease, secret: text, told } => {
                    Wanted::Subscribe { lease, secret: secret(text)?, told: told.map(Into::into) }
                }
                WantedRecord::Unsubscribe => Wanted::Unsubscribe,
                WantedRecord::Denial { reason } => Wanted::Denial { reason },
            },
            asked: record.asked.into(),
            attempts: record.attempts,
            not_before: record.not_before.map(Into::into),
            trouble: record.trouble,
        })
    }
}
