//! Whether a gateway over a database that others may take still answers from memory.
//!
//! A process that was paused for longer than its lease (a stopped machine) cannot know whether another gateway
//! has written since. It finds out with its next sign of life; until then nothing is answered.

use crate::store::DatabaseOwner;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// What the last sign of life said of a lease.
pub(in crate::store) struct LeaseSign {
    begun: Instant,
    /// For how long one is good.
    limit: Duration,
    /// When the last one was, in milliseconds since `begun`; [`LeaseSign::LOST`] where another gateway has the
    /// database.
    last: AtomicU64,
    owner: Mutex<Option<DatabaseOwner>>,
}

impl LeaseSign {
    /// No time.
    const LOST: u64 = u64::MAX;

    /// One that is good until `limit` from now.
    pub(in crate::store) fn new(limit: Duration) -> Self {
        let (begun, last) = (Instant::now(), AtomicU64::new(0));
        Self { begun, limit, last, owner: Mutex::default() }
    }

    fn elapsed(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(Self::LOST - 1)
    }

    /// Notes that the database was this process's `ago`; or that it could not be asked, which a paused process
    /// cannot note.
    pub(in crate::store) fn held(&self, ago: Duration) {
        let ago = u64::try_from(ago.as_millis()).unwrap_or(Self::LOST);
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.last.store(self.elapsed().saturating_sub(ago), Ordering::Release);
    }

    /// Notes that another gateway has it.
    pub(in crate::store) fn lost(&self, name: String) {
        let owner = DatabaseOwner { name, is_gone: false };
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = Some(owner);
        self.last.store(Self::LOST, Ordering::Release);
    }

    /// The gateway that has it, where that is another one.
    pub(super) fn owner(&self) -> Option<DatabaseOwner> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether nobody else can have written.
    pub(super) fn is_good(&self) -> bool {
        let last = self.last.load(Ordering::Acquire);
        let limit = u64::try_from(self.limit.as_millis()).unwrap_or(Self::LOST);
        last != Self::LOST && self.elapsed().saturating_sub(last) <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_good_until_it_is_old_or_another_has_the_database() {
        let sign = LeaseSign::new(Duration::from_secs(60));
        assert!(sign.is_good());
        sign.lost("another".to_owned());
        assert!(!sign.is_good());
        assert_eq!(sign.owner().unwrap().name, "another");
        sign.held(Duration::ZERO);
        assert!(sign.is_good() && sign.owner().is_none());
        let short = LeaseSign::new(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(5));
        assert!(!short.is_good() && short.owner().is_none());
    }
}
