//! WebSub (W3C Recommendation of 23 January 2018): what hub and subscriber say to each other.
//!
//! Both ends, as values: [`form`] reads and writes the parameters `hub.*` of requests and of
//! verifications, [`signature`] makes and checks `X-Hub-Signature`, [`Subscription`] is what a hub
//! keeps of a subscriber and what it does next; [`cloud`] is the same for rssCloud, [`webhook`] signs
//! what an operator's own receiver is told. [`discover`] finds
//! the hub of an upstream, and [`subscriber`] decides what is asked of it and how far it is believed.
//! What is absent: the store, the network, the clock, chance.

mod answer;
pub mod cloud;
pub mod discover;
pub mod form;
pub mod signature;
pub mod subscriber;
mod subscription;
pub mod webhook;

pub use answer::CallbackAnswer;
pub use discover::{Discovery, HubLinks};
pub use form::{FormError, HubRequest, Intent, Verification};
pub use signature::{Secret, SignatureError};
pub use subscription::{
    Active, CallbackPurpose, DELIVERIES, Duty, Manner, PendingRequest, Subscription,
    SubscriptionId, VERIFICATIONS,
};

use std::time::Duration;

/// The media type of a subscriber's request (section 5.1).
pub const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// The header of a signature (section 7.1), in lower case.
pub const SIGNATURE_HEADER: &str = "x-hub-signature";

/// How much of what somebody else says is kept, in characters: why something failed, a reason.
const NOTE_LIMIT: usize = 256;

/// As much of a text as is kept.
fn clipped(text: &str) -> String {
    text.chars().take(NOTE_LIMIT).collect()
}

/// How long subscriptions of the hub last (section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    /// Where the subscriber does not say.
    pub usual: Duration,
    /// At least.
    pub least: Duration,
    /// At most.
    pub most: Duration,
}

impl Leases {
    /// The seconds that a subscriber gets who asks for `asked`.
    pub fn grant(&self, asked: Option<u64>) -> u64 {
        let asked = asked.unwrap_or(self.usual.as_secs());
        asked.min(self.most.as_secs()).max(self.least.as_secs())
    }
}
