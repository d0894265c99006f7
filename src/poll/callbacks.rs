//! Verification of hub callbacks: signatures, and subscriptions being ended. Request handlers decide here, so that a
//! flood of calls never reaches the polling task.

use moka::sync::Cache;
use std::time::Duration;
use tidegate_core::model::{FeedName, SubscriptionKeys};
use tidegate_core::websub::{Intent, Secret, SignatureError, Verification};

/// How hubs reach this gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The base address of callbacks; a slash and a token follow.
    pub callbacks: String,
    /// Whether only hubs at the operator's own hosts can reach it, and are used.
    pub own_hosts: bool,
    /// Whether hubs are given secrets over plain HTTP, where an eavesdropper learns them.
    pub http_secrets: bool,
}

/// The callback of a feed's hub subscription.
#[derive(Debug)]
pub struct Callback {
    pub feed: FeedName,
    /// The secret shared with the hub; `None` if the hub was given none, because it is reached over plain HTTP.
    secret: Option<Secret>,
}

impl Callback {
    /// Returns the callback of a feed; `None` if its secret is invalid, so that no push could be verified.
    pub(super) fn new(feed: &FeedName, keys: &SubscriptionKeys) -> Option<Self> {
        let secret = match keys.secret.as_str() {
            "" => None,
            text => Some(Secret::new(text).ok()?),
        };
        Some(Self { feed: feed.clone(), secret })
    }

    /// Verifies the signature of a push (WebSub section 7.1); a push without one fails. A hub without a secret signs
    /// nothing: knowing the callback address suffices, since a push only causes a poll.
    pub fn check(&self, signature: Option<&str>, body: &[u8]) -> Result<(), SignatureError> {
        let Some(secret) = &self.secret else { return Ok(()) };
        let signature = signature.ok_or(SignatureError::Form)?;
        secret.verify(signature, body)
    }
}

/// The topics of subscriptions being ended, by token, for as long as a hub may verify. At most 64: of others the end is
/// not confirmed, and their leases expire.
#[derive(Debug)]
pub struct EndingCallbacks(Cache<String, String>);

impl Default for EndingCallbacks {
    fn default() -> Self {
        let wait = Duration::from_secs(10 * 60);
        Self(Cache::builder().max_capacity(64).time_to_live(wait).build())
    }
}

impl EndingCallbacks {
    pub fn is_known(&self, token: &str) -> bool {
        self.0.contains_key(token)
    }

    /// Returns the challenge if a hub verifies the end of a subscription that is being ended.
    pub fn confirm_end(&self, token: &str, said: &Verification) -> Option<String> {
        let ending = self.0.get(token)?;
        match said {
            Verification::Intent { intent: Intent::Unsubscribe, topic, challenge, .. }
                if *topic == ending =>
            {
                Some(challenge.clone())
            }
            _ => None,
        }
    }

    /// Remembers a subscription being ended, so that its hub's verification is confirmed for 10 minutes.
    pub(super) fn leave(&self, token: &str, topic: &str) {
        self.0.insert(token.to_owned(), topic.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_was_given_no_secret_needs_no_signature() {
        let feed = FeedName::new("news").unwrap();
        for (secret, is_believed) in [("", true), ("hush", false)] {
            let keys = SubscriptionKeys { token: "token".to_owned(), secret: secret.to_owned() };
            let callback = Callback::new(&feed, &keys).unwrap();
            assert_eq!(callback.check(None, b"x").is_ok(), is_believed);
        }
    }
}
