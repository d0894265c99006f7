//! How much is sent to one host. Pure; the time is told.
//!
//! Whoever asks decides where the hub calls, and an endpoint that echoes what it is sent verifies
//! anything. So what all callbacks of one host are sent has a bound that makes the hub useless as a
//! weapon, and is no hindrance to a reader of many feeds: what is beyond it comes later, and then as
//! the newest document only.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Calls of one host within [`WITHIN`].
pub const REQUESTS: u32 = 120;
/// Bytes that are sent to one host within [`WITHIN`]; the call that reaches it is finished.
pub const BYTES: u64 = 32 * 1024 * 1024;
/// The time that both count for.
pub const WITHIN: Duration = Duration::from_secs(60);
/// How many hosts are counted before those are forgotten whose time is over.
const HOSTS: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Spent {
    since: Instant,
    requests: u32,
    bytes: u64,
}

/// What was sent to each host lately.
#[derive(Debug, Default)]
pub(super) struct Budgets(HashMap<Arc<str>, Spent>);

impl Budgets {
    /// Takes one call of a host; whether there is room for it.
    pub(super) fn take(&mut self, host: &Arc<str>, now: Instant) -> bool {
        let is_over = |spent: &Spent| now.saturating_duration_since(spent.since) >= WITHIN;
        if self.0.len() >= HOSTS {
            self.0.retain(|_, spent| !is_over(spent));
        }
        let fresh = Spent { since: now, requests: 0, bytes: 0 };
        let spent = self.0.entry(Arc::clone(host)).or_insert(fresh);
        if is_over(spent) {
            *spent = fresh;
        }
        let room = spent.requests < REQUESTS && spent.bytes < BYTES;
        spent.requests = spent.requests.saturating_add(u32::from(room));
        room
    }

    /// Notes that so many bytes were sent to a host.
    pub(super) fn sent(&mut self, host: &str, bytes: usize) {
        if let Some(spent) = self.0.get_mut(host) {
            spent.bytes = spent.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_sent_so_much_within_a_minute() {
        let (mut budgets, start) = (Budgets::default(), Instant::now());
        let (one, other): (Arc<str>, Arc<str>) = ("one".into(), "other".into());
        let taken = (0..10_000).filter(|_| budgets.take(&one, start)).count();
        assert_eq!(taken, 120);
        assert!(budgets.take(&other, start), "others have their own");
        budgets.sent("other", 32 * 1024 * 1024);
        assert!(!budgets.take(&other, start + WITHIN / 2));
        assert!(budgets.take(&one, start + WITHIN) && budgets.take(&other, start + WITHIN));
    }

    #[test]
    fn hosts_are_forgotten() {
        let (mut budgets, start) = (Budgets::default(), Instant::now());
        for n in 0..HOSTS {
            budgets.take(&format!("host {n}").into(), start);
        }
        budgets.take(&"new".into(), start + WITHIN);
        assert_eq!(budgets.0.len(), 1);
    }
}
