//! The callbacks that hubs may call: shared by the polling task, which knows what was asked of
//! them, and those who take their calls, so that a flood of calls never reaches that task.

use crate::model::{FeedName, SubscriptionKeys, Time};
use crate::websub::{Secret, SignatureError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Where hubs reach this gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The address of callbacks, to which a slash and a token are added.
    pub callbacks: String,
    /// Whether only hubs at the operator's own hosts can reach it, and are asked.
    pub own_hosts: bool,
}

/// A callback.
#[derive(Debug)]
pub struct Callback {
    /// Of which feed.
    pub feed: FeedName,
    secret: Secret,
    /// Whether the polling task has still to hear of a push.
    told: AtomicBool,
}

impl Callback {
    /// Whether the body of a push was signed with our secret (WebSub section 7.1). One without a
    /// signature was not.
    pub fn check(&self, signature: Option<&str>, body: &[u8]) -> Result<(), SignatureError> {
        let signature = signature.ok_or(SignatureError::Form)?;
        self.secret.verify(signature, body).map(drop)
    }

    /// Notes that the polling task is to be told; `false` where it is to be anyway.
    pub(super) fn tell(&self) -> bool {
        !self.told.swap(true, Ordering::AcqRel)
    }

    /// Notes that it was told, or could not be.
    pub(super) fn told(&self) {
        self.told.store(false, Ordering::Release);
    }
}

/// A push that was not believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disbelieved {
    /// How many there were since the start.
    pub count: u64,
    /// When the last one came.
    pub last: Time,
    /// Why it was not believed.
    pub why: String,
}

/// All callbacks, by token.
#[derive(Debug, Default)]
pub struct Callbacks(RwLock<HashMap<String, Arc<Callback>>>);

impl Callbacks {
    /// The callback of a token.
    pub fn of(&self, token: &str) -> Option<Arc<Callback>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(token).cloned()
    }

    /// Opens a callback. One whose secret is none stays shut: every push of it is disbelieved.
    pub(super) fn open(&self, feed: &FeedName, keys: &SubscriptionKeys) {
        let Ok(secret) = Secret::new(&keys.secret) else { return };
        let callback = Callback { feed: feed.clone(), secret, told: AtomicBool::new(false) };
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(keys.token.clone(), Arc::new(callback));
    }

    /// Shuts a callback.
    pub(super) fn shut(&self, token: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}
