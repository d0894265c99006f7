//! What hubs that call are believed, and the callbacks of subscriptions that are being ended. Those who take their
//! calls decide that, so that a flood of calls never reaches the polling task.

use moka::sync::Cache;
use std::time::Duration;
use tidegate_core::model::{FeedName, SubscriptionKeys};
use tidegate_core::websub::{Intent, Secret, SignatureError, Verification};

/// Where hubs reach this gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The address of callbacks, to which a slash and a token are added.
    pub callbacks: String,
    /// Whether only hubs at the operator's own hosts can reach it, and are asked.
    pub own_hosts: bool,
    /// Whether hubs over plain http are given secrets, which whoever listens learns.
    pub http_secrets: bool,
}

/// A callback.
#[derive(Debug)]
pub struct Callback {
    /// Of which feed.
    pub feed: FeedName,
    /// `None`: its hub was given none, because it is asked over plain http.
    secret: Option<Secret>,
}

impl Callback {
    /// That of a feed; `None` where the secret is no good, so that no push could be believed.
    pub(super) fn new(feed: &FeedName, keys: &SubscriptionKeys) -> Option<Self> {
        let secret = match keys.secret.as_str() {
            "" => None,
            text => Some(Secret::new(text).ok()?),
        };
        Some(Self { feed: feed.clone(), secret })
    }

    /// Whether the body of a push was signed with our secret (WebSub section 7.1). One without a
    /// signature was not. A hub that was given no secret signs nothing: it knows the address, and a
    /// push has the feed polled and does nothing else.
    pub fn check(&self, signature: Option<&str>, body: &[u8]) -> Result<(), SignatureError> {
        let Some(secret) = &self.secret else { return Ok(()) };
        let signature = signature.ok_or(SignatureError::Form)?;
        secret.verify(signature, body)
    }
}

/// The callbacks of subscriptions that are being ended, by token: their topics, for as long as a hub has to ask. What is
/// too much is not confirmed, and its lease runs out.
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

    /// What a hub is answered that asks whether the end of a subscription is meant.
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

    /// Has a hub go on for a while to ask whether the end of a subscription is meant.
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
