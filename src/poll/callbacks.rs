//! The callbacks that hubs may call: shared by the polling task, which knows what was asked of
//! them, and those who take their calls, so that a flood of calls never reaches that task.

use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_core::model::{FeedName, SubscriptionKeys};
use tidegate_core::websub::{Intent, Secret, SignatureError, Verification};
use tokio::time::Instant;

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
    /// Whether the polling task has still to hear of a push.
    told: AtomicBool,
}

impl Callback {
    /// That of a feed; `None` where the secret is no good, so that no push could be believed.
    pub(super) fn new(feed: &FeedName, keys: &SubscriptionKeys) -> Option<Self> {
        let secret = match keys.secret.as_str() {
            "" => None,
            text => Some(Secret::new(text).ok()?),
        };
        Some(Self { feed: feed.clone(), secret, told: AtomicBool::new(false) })
    }

    /// Whether the body of a push was signed with our secret (WebSub section 7.1). One without a
    /// signature was not. A hub that was given no secret signs nothing: it knows the address, and a
    /// push has the feed polled and does nothing else.
    pub fn check(&self, signature: Option<&str>, body: &[u8]) -> Result<(), SignatureError> {
        let Some(secret) = &self.secret else { return Ok(()) };
        let signature = signature.ok_or(SignatureError::Form)?;
        secret.verify(signature, body)
    }

    /// Notes that the polling task is to be told; `false` where it is to be anyway.
    pub(super) fn tell(&self) -> bool {
        !self.told.swap(true, Ordering::AcqRel)
    }

    /// Whether the polling task is to be told.
    pub(super) fn is_to_be_told(&self) -> bool {
        self.told.load(Ordering::Acquire)
    }

    /// Notes that it was told.
    pub(super) fn mark_reported(&self) {
        self.told.store(false, Ordering::Release);
    }
}

/// The most subscriptions that are being ended at the same time; what is beyond is not asked for:
/// the lease runs out.
const MAX_LEAVING: usize = 64;
/// How long a hub may take to ask whether the end of a subscription was meant.
const LEAVING_TIME: Duration = Duration::from_secs(10 * 60);

#[derive(Debug, Default)]
struct CallbackTable {
    open: HashMap<String, Arc<Callback>>,
    /// Those of subscriptions that are being ended, with their topics, and since when.
    leaving: HashMap<String, (String, Instant)>,
}

/// All callbacks, by token.
#[derive(Debug, Default)]
pub struct Callbacks(RwLock<CallbackTable>);

impl Callbacks {
    /// The callback of a token, where its subscription goes on.
    pub fn by_token(&self, token: &str) -> Option<Arc<Callback>> {
        self.0.read().open.get(token).cloned()
    }

    /// Whether a hub has something to ask at a callback.
    pub fn is_known(&self, token: &str) -> bool {
        let table = self.0.read();
        table.open.contains_key(token) || table.leaving.contains_key(token)
    }

    /// What a hub is answered that asks whether the end of a subscription is meant.
    pub fn confirm_end(&self, token: &str, said: &Verification) -> Option<String> {
        let table = self.0.read();
        let (ending, _) = table.leaving.get(token)?;
        match said {
            Verification::Intent { intent: Intent::Unsubscribe, topic, challenge, .. }
                if topic == ending =>
            {
                Some(challenge.clone())
            }
            _ => None,
        }
    }

    /// Opens a callback. One whose secret is no good stays shut: every push of it is disbelieved.
    pub(super) fn open(&self, feed: &FeedName, keys: &SubscriptionKeys) {
        let Some(callback) = Callback::new(feed, keys) else { return };
        self.0.write().open.insert(keys.token.clone(), Arc::new(callback));
    }

    /// Shuts a callback.
    pub(super) fn shut(&self, token: &str) {
        self.0.write().open.remove(token);
    }

    /// Has a hub go on for a while to ask whether the end of a subscription is meant. `false`: there is no room.
    pub(super) fn leave(&self, token: &str, topic: &str) -> bool {
        let (mut table, now) = (self.0.write(), Instant::now());
        table.leaving.retain(|_, (_, since)| now.duration_since(*since) < LEAVING_TIME);
        let has_room = table.leaving.len() < MAX_LEAVING;
        if has_room {
            table.leaving.insert(token.to_owned(), (topic.to_owned(), now));
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_was_given_no_secret_needs_no_signature() {
        let (callbacks, feed) = (Callbacks::default(), FeedName::new("news").unwrap());
        let keys = |token: &str, secret: &str| SubscriptionKeys {
            token: token.to_owned(),
            secret: secret.to_owned(),
        };
        callbacks.open(&feed, &keys("plain", ""));
        callbacks.open(&feed, &keys("signed", "hush"));
        let check = |token| callbacks.by_token(token).unwrap().check(None, b"x").is_ok();
        assert!(check("plain") && !check("signed"));
    }
}
