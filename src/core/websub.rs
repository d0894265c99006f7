//! WebSub (W3C Recommendation of 23 January 2018): the messages between hub and subscriber.
//!
//! Pure values for both sides. [`form`] parses and writes the parameters `hub.*`; [`signature`] creates and verifies
//! `X-Hub-Signature`. On the side of our hub, [`Subscription`] is the state of a subscriber and decides what happens
//! next, [`cloud`] adds rssCloud, and [`webhook`] signs messages to an operator's receiver. On the subscribing side,
//! [`discover`] finds the hub of an upstream, and [`subscriber`] decides what to request of it and whether to trust it.
//! Store, network, clock and random numbers are elsewhere.

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

/// The longest stored text from a foreign party, such as a reason, in characters.
const NOTE_LIMIT: usize = 256;

/// Shortens a text to [`NOTE_LIMIT`].
fn clipped(text: &str) -> String {
    text.chars().take(NOTE_LIMIT).collect()
}

/// The leases that the hub grants (section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    /// The lease if the subscriber requests none.
    pub usual: Duration,
    /// The shortest lease.
    pub least: Duration,
    /// The longest lease.
    pub most: Duration,
}

impl Leases {
    /// Returns the granted lease for a requested one, in seconds.
    pub fn grant(&self, asked: Option<u64>) -> u64 {
        let asked = asked.unwrap_or(self.usual.as_secs());
        asked.min(self.most.as_secs()).max(self.least.as_secs())
    }
}
