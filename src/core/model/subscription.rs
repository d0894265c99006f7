//! What is remembered of a subscription to the WebSub hub of an upstream.

use super::Time;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What only the hub and this gateway know of a subscription. It is never shown.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SubscriptionKeys {
    /// The last step of the callback's address, which nobody can guess.
    pub token: String,
    /// The secret under which the hub signs what it pushes.
    pub secret: String,
}

impl fmt::Debug for SubscriptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubscriptionKeys(…)")
    }
}

/// What is being done about a subscription. Whether the hub delivers is told by its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum SubscriptionStanding {
    /// The hub is asked at a later time.
    #[default]
    Waiting,
    /// It was asked, and has not yet asked back whether that was meant.
    Asked,
    /// It has asked back; it is asked again when its lease is nearly over.
    Verified,
    /// It said no; it is asked again after a long time.
    Denied,
}

/// For how long a hub said that it delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease {
    /// Since when it does so without a break.
    pub since: Time,
    /// Until when.
    pub until: Time,
}

/// Whether a hub is believed to tell of every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HubTrust {
    /// It has told of none yet.
    #[default]
    Unproven,
    /// It has told of a change that was then found.
    Trusted,
    /// Polls found changes that it had not told of.
    Distrusted,
}

impl HubTrust {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unproven => "unproven",
            Self::Trusted => "trusted",
            Self::Distrusted => "distrusted",
        }
    }
}

/// A subscription to the hub of an upstream (WebSub, W3C Recommendation of 23 January 2018).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HubSubscription {
    /// The address under which the hub knows the feed.
    pub topic: String,
    /// The hubs that the feed names, in its order; never empty.
    pub hubs: Vec<String>,
    /// Which of them it is about.
    pub hub: u32,
    /// What only the hub and this gateway know.
    pub keys: SubscriptionKeys,
    /// The address of callbacks that the hub was given, to which the token is added.
    pub callbacks: String,
    /// What is being done about it.
    pub standing: SubscriptionStanding,
    /// When the next thing is to be done.
    pub next: Time,
    /// For how long the hub delivers, where it does.
    pub lease: Option<Lease>,
    /// Requests in a row that led to nothing.
    pub failures: u32,
    /// Requests since `day`, which is where that is counted from.
    pub attempts: u32,
    /// When the first of these was made.
    pub day: Time,
    /// Why the last request led to nothing, in words.
    pub note: Option<String>,
    /// Whether the hub is believed to tell of every change.
    pub trust: HubTrust,
    /// Changes in a row that it told of before they were found.
    pub heard: u32,
    /// Changes in a row that were found without it.
    pub silent: u32,
    /// When a change was found that the hub may still tell of.
    pub suspect: Option<Time>,
    /// When it last told of something.
    pub last_push: Option<Time>,
    /// How often it did.
    pub pushes: u64,
}

impl HubSubscription {
    /// The address of the hub.
    pub fn address(&self) -> &str {
        let at = usize::try_from(self.hub).unwrap_or(usize::MAX);
        self.hubs.get(at).or_else(|| self.hubs.first()).map_or("", String::as_str)
    }

    /// Whether the hub delivers at that time.
    pub fn is_held(&self, now: Time) -> bool {
        self.lease.is_some_and(|lease| now < lease.until)
    }

    /// The word for how it stands at that time.
    pub fn state(&self, now: Time) -> &'static str {
        match self.standing {
            SubscriptionStanding::Denied => "denied",
            SubscriptionStanding::Asked if self.is_held(now) => "renewing",
            _ if self.is_held(now) => "subscribed",
            SubscriptionStanding::Asked => "asked",
            SubscriptionStanding::Waiting | SubscriptionStanding::Verified => "waiting",
        }
    }
}
