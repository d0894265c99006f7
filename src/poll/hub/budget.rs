//! How much is sent to one host. Pure; the time is told.
//!
//! Whoever asks decides where the hub calls, and an endpoint that echoes what it is sent verifies
//! anything. So what all callbacks of one host are sent has a bound that makes the hub useless as a
//! weapon, and is no hindrance to a reader of many feeds: what is beyond it comes later, and then as
//! the newest document only.
//!
//! Anybody may ask for the verification of a callback at any host. So verifications have a part of their
//! own, and deliveries to those who have agreed have the rest: no stranger can use that up.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Calls of one host within [`WITHIN`].
pub const REQUESTS: u32 = 120;
/// Of them, those that ask whether somebody wants to subscribe.
pub const FIRST_VERIFICATIONS: u32 = REQUESTS / 4;
/// Of them, those that are asked of one who has subscribed, about a renewal or an end: whoever knows the
/// callback may ask for these as well.
pub const OTHER_VERIFICATIONS: u32 = REQUESTS / 4;
/// Bytes that are sent to one host within [`WITHIN`]; the call that reaches it is finished.
pub const BYTES: u64 = 32 * 1024 * 1024;
/// The time that both count for.
pub const WITHIN: Duration = Duration::from_secs(60);
/// How many hosts are counted before those are forgotten whose time is over.
const HOSTS: usize = 4096;

/// What a call is for, as the parts of a host's budget go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// To verify a request of one who has not agreed to anything yet.
    FirstVerification,
    /// To ask or tell a subscriber anything but what is new.
    OtherVerification,
    /// To tell a subscriber what is new.
    Delivery,
}

#[derive(Debug, Clone, Copy)]
struct Spent {
    since: Instant,
    first: u32,
    other: u32,
    delivered: u32,
    bytes: u64,
}

impl Spent {
    /// Takes a call; whether there is room for it.
    fn try_spend(&mut self, purpose: Purpose) -> bool {
        let of_subscribers = self.other + self.delivered;
        let is_free = of_subscribers < REQUESTS - FIRST_VERIFICATIONS;
        let (room, count) = match purpose {
            Purpose::FirstVerification => (self.first < FIRST_VERIFICATIONS, &mut self.first),
            Purpose::OtherVerification => {
                (is_free && self.other < OTHER_VERIFICATIONS, &mut self.other)
            }
            Purpose::Delivery => (is_free && self.bytes < BYTES, &mut self.delivered),
        };
        *count += u32::from(room);
        room
    }
}

/// What was sent to each host lately.
#[derive(Debug, Default)]
pub(super) struct Budgets(HashMap<Arc<str>, Spent>);

impl Budgets {
    /// Takes one call of a host; whether there is room for it.
    pub(super) fn try_spend(&mut self, host: &Arc<str>, purpose: Purpose, now: Instant) -> bool {
        let is_over = |spent: &Spent| now.saturating_duration_since(spent.since) >= WITHIN;
        if self.0.len() >= HOSTS {
            self.0.retain(|_, spent| !is_over(spent));
        }
        let fresh = Spent { since: now, first: 0, other: 0, delivered: 0, bytes: 0 };
        let spent = self.0.entry(Arc::clone(host)).or_insert(fresh);
        if is_over(spent) {
            *spent = fresh;
        }
        spent.try_spend(purpose)
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
        let taken =
            (0..10_000).filter(|_| budgets.try_spend(&one, Purpose::Delivery, start)).count();
        assert_eq!(taken, 90);
        assert!(budgets.try_spend(&other, Purpose::Delivery, start), "others have their own");
        budgets.sent("other", 32 * 1024 * 1024);
        assert!(!budgets.try_spend(&other, Purpose::Delivery, start + WITHIN / 2));
        for host in [&one, &other] {
            assert!(budgets.try_spend(host, Purpose::Delivery, start + WITHIN));
        }
    }

    #[test]
    fn strangers_take_nothing_from_those_who_have_agreed() {
        let (mut budgets, now) = (Budgets::default(), Instant::now());
        let host: Arc<str> = "one".into();
        let mut taken =
            |purpose| (0..10_000).filter(|_| budgets.try_spend(&host, purpose, now)).count();
        assert_eq!(taken(Purpose::FirstVerification), 30);
        // Whoever knows a callback may have it asked about its renewal again and again.
        assert_eq!(taken(Purpose::OtherVerification), 30);
        assert_eq!(taken(Purpose::Delivery), 60);
        // Nor does one who is sent much keep others from subscribing.
        let host: Arc<str> = "other".into();
        let mut taken =
            |purpose| (0..10_000).filter(|_| budgets.try_spend(&host, purpose, now)).count();
        assert_eq!(taken(Purpose::Delivery), 90);
        assert_eq!((taken(Purpose::OtherVerification), taken(Purpose::FirstVerification)), (0, 30));
    }

    #[test]
    fn hosts_are_forgotten() {
        let (mut budgets, start) = (Budgets::default(), Instant::now());
        for n in 0..HOSTS {
            budgets.try_spend(&format!("host {n}").into(), Purpose::Delivery, start);
        }
        budgets.try_spend(&"new".into(), Purpose::Delivery, start + WITHIN);
        assert_eq!(budgets.0.len(), 1);
    }
}
