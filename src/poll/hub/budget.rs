//! How much is sent to one host. Pure; the time is told.
//!
//! Whoever asks decides where the hub calls, and an endpoint that echoes what it is sent verifies
//! anything. So what all callbacks of one host are sent has a bound that makes the hub useless as a
//! weapon, and is no hindrance to a reader of many feeds: what is beyond it comes later, and then as
//! the newest document only.
//!
//! Anybody may ask for the verification of a callback at any host. So verifications have a part of their
//! own, in which each client has a share, and deliveries to those who have agreed have the rest: no stranger can use
//! that up.

use super::lanes::Shares;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Calls of one host within [`WITHIN`] that ask strangers whether they want to subscribe.
pub(super) const FIRST_VERIFICATIONS: usize = 60;
/// Those to somebody who has subscribed.
const OF_SUBSCRIBERS: usize = 90;
/// Of these, those about a renewal or an end: whoever knows the callback may ask for these as well.
const OTHER_VERIFICATIONS: usize = 30;
/// Bytes that are sent to one host within [`WITHIN`]; the call that reaches it is finished.
const BYTES: u64 = 32 * 1024 * 1024;
/// The time that both count for.
const WITHIN: Duration = Duration::from_secs(60);
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

#[derive(Debug)]
struct Spent {
    since: Instant,
    first: Shares,
    other: usize,
    delivered: usize,
    bytes: u64,
}

impl Spent {
    fn new(since: Instant) -> Self {
        Self { since, first: Shares::default(), other: 0, delivered: 0, bytes: 0 }
    }

    /// Takes a call of an owner; whether there is room for it.
    fn try_spend(&mut self, owner: &Arc<str>, purpose: Purpose) -> bool {
        let is_free = self.other + self.delivered < OF_SUBSCRIBERS;
        let has_room = match purpose {
            Purpose::FirstVerification => self.first.has_room(Some(owner), FIRST_VERIFICATIONS),
            Purpose::OtherVerification => is_free && self.other < OTHER_VERIFICATIONS,
            Purpose::Delivery => is_free && self.bytes < BYTES,
        };
        match purpose {
            _ if !has_room => {}
            Purpose::FirstVerification => self.first.add(Some(owner)),
            Purpose::OtherVerification => self.other += 1,
            Purpose::Delivery => self.delivered += 1,
        }
        has_room
    }
}

/// What was sent to each host lately.
#[derive(Debug, Default)]
pub(super) struct Budgets(HashMap<Arc<str>, Spent>);

impl Budgets {
    /// Takes one call of a host, for whose share it counts; whether there is room for it.
    pub(super) fn try_spend(
        &mut self,
        host: &Arc<str>,
        owner: &Arc<str>,
        purpose: Purpose,
        now: Instant,
    ) -> bool {
        let is_over = |spent: &Spent| now.saturating_duration_since(spent.since) >= WITHIN;
        if self.0.len() >= HOSTS {
            self.0.retain(|_, spent| !is_over(spent));
        }
        let fresh = || Spent::new(now);
        let spent = self.0.entry(Arc::clone(host)).or_insert_with(fresh);
        if is_over(spent) {
            *spent = fresh();
        }
        spent.try_spend(owner, purpose)
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

    /// How many of 10,000 calls of a host there is room for.
    fn taken(
        budgets: &mut Budgets,
        (host, owner): (&str, &str),
        purpose: Purpose,
        now: Instant,
    ) -> usize {
        let (host, owner) = (host.into(), owner.into());
        (0..10_000).filter(|_| budgets.try_spend(&host, &owner, purpose, now)).count()
    }

    #[test]
    fn a_host_is_sent_so_much_within_a_minute() {
        let (mut budgets, start) = (Budgets::default(), Instant::now());
        let delivery = Purpose::Delivery;
        assert_eq!(taken(&mut budgets, ("one", "one"), delivery, start), 90);
        budgets.sent("one", 1);
        let other: Arc<str> = "other".into();
        assert!(budgets.try_spend(&other, &other, delivery, start), "others have their own");
        budgets.sent("other", 32 * 1024 * 1024);
        assert!(!budgets.try_spend(&other, &other, delivery, start + WITHIN / 2));
        for host in [&"one".into(), &other] {
            assert!(budgets.try_spend(host, host, delivery, start + WITHIN));
        }
    }

    #[test]
    fn strangers_take_nothing_from_those_who_have_agreed_nor_from_each_other() {
        let (mut budgets, now) = (Budgets::default(), Instant::now());
        let mut take = |host, owner, purpose| taken(&mut budgets, (host, owner), purpose, now);
        assert_eq!(take("one", "stranger", Purpose::FirstVerification), 30);
        assert_eq!(take("one", "another", Purpose::FirstVerification), 15);
        // Whoever knows a callback may have it asked about its renewal again and again.
        assert_eq!(take("one", "one", Purpose::OtherVerification), 30);
        assert_eq!(take("one", "one", Purpose::Delivery), 60);
        // Nor does one who is sent much keep others from subscribing.
        assert_eq!(take("other", "other", Purpose::Delivery), 90);
        assert_eq!(take("other", "other", Purpose::OtherVerification), 0);
        assert_eq!(take("other", "stranger", Purpose::FirstVerification), 30);
    }

    #[test]
    fn hosts_are_forgotten() {
        let (mut budgets, start) = (Budgets::default(), Instant::now());
        let mut take = |host: &str, now| {
            let host = host.into();
            budgets.try_spend(&host, &host, Purpose::Delivery, now);
            budgets.0.len()
        };
        for n in 0..HOSTS {
            take(&format!("host {n}"), start);
        }
        assert_eq!(take("new", start + WITHIN), 1);
    }
}
