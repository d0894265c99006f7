//! Who is called now: so many at once, and for one client or host no more than its share, so that slow callbacks
//! hold up nobody else. Pure; the time is told.
//!
//! Whoever asks decides where the hub calls, and an endpoint that echoes what it is sent verifies
//! anything. So what all callbacks of one host are sent has a bound that makes the hub useless as a
//! weapon, and is no hindrance to a reader of many feeds: what is beyond it comes later, and then as
//! the newest document only.
//!
//! Anybody may ask for the verification of a callback at any host. So verifications have a part of their
//! own, in which each client has a share, and deliveries to those who have agreed have the rest: no stranger can use
//! that up.

use crate::domains::registrable_domain;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::websub::SubscriptionId;
use tidegate_net::fetch::{self, AllowPrivate};
use tokio::time::Instant;
use url::Url;

/// Calls at once to callbacks that something was delivered to before, and whose last call did not fail.
pub(super) const AT_ONCE: usize = 128;
/// Calls at once to callbacks that nothing was delivered to yet: strangers name them.
pub(super) const AT_ONCE_NEW: usize = 128;
/// Calls at once to callbacks whose last call failed.
pub(super) const AT_ONCE_IN_TROUBLE: usize = 32;
/// Calls at once to one host.
pub(super) const AT_ONCE_PER_HOST: usize = 4;
/// Of them, those to callbacks whose last call failed, or that have agreed to nothing yet.
pub(super) const AT_ONCE_IN_DOUBT_PER_HOST: usize = AT_ONCE_PER_HOST / 2;

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

/// The host of a callback: its registrable domain, so that a thousand names below it are one; its
/// address without the port, of IPv6 the network of 64 bits that one subscriber has.
pub(super) fn host_of(callback: &Url) -> Arc<str> {
    match callback.host() {
        Some(url::Host::Domain(_)) => registrable_domain(callback).into(),
        // A private address is called only where the operator allows it. Behind it may be many, each
        // at its port.
        Some(address) if fetch::check(callback, &AllowPrivate::No).is_err() => {
            format!("{address}:{}", callback.port_or_known_default().unwrap_or_default()).into()
        }
        Some(url::Host::Ipv4(address)) => address.to_string().into(),
        Some(url::Host::Ipv6(address)) => match address.to_ipv4_mapped() {
            Some(address) => address.to_string().into(),
            None => {
                let network = u128::from(address) >> 64 << 64;
                format!("[{}]/64", Ipv6Addr::from(network)).into()
            }
        },
        None => Arc::default(),
    }
}

/// What is known of a callback, by which it shares in the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Something was delivered to it, and its last call did not fail.
    Proven,
    /// Nothing was delivered to it yet.
    New,
    /// Its last call failed.
    Troubled,
}

/// What a call is for, as the parts of what a host is sent go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Purpose {
    /// To verify a request of one who has not agreed to anything yet.
    FirstVerification,
    /// To ask or tell a subscriber anything but what is new.
    OtherVerification,
    /// To tell a subscriber what is new.
    Delivery,
}

/// A subscription that waits for its turn, or has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaneTurn {
    /// Whose share of the calls it takes.
    pub(super) owner: Arc<str>,
    /// The host of its callback.
    pub(super) host: Arc<str>,
    pub(super) id: SubscriptionId,
    pub(super) standing: Standing,
    /// Whether the last call of its callback failed, or it has agreed to nothing yet.
    pub(super) in_doubt: bool,
}

impl LaneTurn {
    /// Those of one key wait behind each other.
    fn key(&self) -> WaitingKey {
        (Arc::clone(&self.owner), Arc::clone(&self.host), self.in_doubt)
    }
}

/// Whose share of the calls it is, the host, and whether the callbacks are in doubt.
type WaitingKey = (Arc<str>, Arc<str>, bool);

/// What was sent to a host within [`WITHIN`].
#[derive(Debug, Default)]
struct HostSent {
    first: Shares,
    other: usize,
    delivered: usize,
    bytes: u64,
}

/// The calls of a host.
#[derive(Debug)]
struct HostCalls {
    running: usize,
    in_doubt: usize,
    sent: HostSent,
    since: Instant,
}

impl HostCalls {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= WITHIN
    }

    fn has_room(&self, turn: &LaneTurn) -> bool {
        let is_doubtful = turn.in_doubt && self.in_doubt >= AT_ONCE_IN_DOUBT_PER_HOST;
        self.running < AT_ONCE_PER_HOST && !is_doubtful
    }

    fn try_send(&mut self, owner: &Arc<str>, purpose: Purpose, now: Instant) -> bool {
        if self.is_over(now) {
            (self.sent, self.since) = (HostSent::default(), now);
        }
        let HostSent { first, other, delivered, bytes } = &mut self.sent;
        let is_free = *other + *delivered < OF_SUBSCRIBERS;
        match purpose {
            Purpose::FirstVerification if first.has_room(Some(owner), FIRST_VERIFICATIONS) => {
                first.add(Some(owner));
            }
            Purpose::OtherVerification if is_free && *other < OTHER_VERIFICATIONS => *other += 1,
            Purpose::Delivery if is_free && *bytes < BYTES => *delivered += 1,
            _ => return false,
        }
        true
    }
}

type CallsByHost = HashMap<Arc<str>, HostCalls>;

/// The calls to callbacks of one standing.
#[derive(Debug, Default)]
struct Lane {
    running: Shares,
    /// Of those who wait the first one each, by whose turn it is.
    turns: VecDeque<LaneTurn>,
    /// Who waits behind them.
    behind: HashMap<WaitingKey, VecDeque<SubscriptionId>>,
}

impl Lane {
    fn push(&mut self, turn: LaneTurn) {
        match self.behind.entry(turn.key()) {
            Entry::Occupied(behind) => behind.into_mut().push_back(turn.id),
            Entry::Vacant(behind) => {
                behind.insert(VecDeque::new());
                self.turns.push_back(turn);
            }
        }
    }

    /// The next whose turn it is. Those that it goes past keep their turns.
    fn next(&mut self, at_once: usize, hosts: &CallsByHost) -> Option<LaneTurn> {
        if !self.running.has_room(None, at_once) {
            return None;
        }
        let is_free = |turn: &LaneTurn| {
            self.running.has_room(Some(&turn.owner), at_once)
                && hosts.get(&turn.host).is_none_or(|host| host.has_room(turn))
        };
        let turn = self.turns.remove(self.turns.iter().position(is_free)?)?;
        if let Entry::Occupied(mut behind) = self.behind.entry(turn.key()) {
            match behind.get_mut().pop_front() {
                Some(id) => self.turns.push_back(LaneTurn { id, ..turn.clone() }),
                None => drop(behind.remove()),
            }
        }
        self.running.add(Some(&turn.owner));
        Some(turn)
    }
}

/// Waiting subscriptions, and the calls that are made. Each subscription waits once at most.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    proven: Lane,
    new: Lane,
    troubled: Lane,
    hosts: CallsByHost,
}

impl Lanes {
    /// Lets a subscription wait for its turn.
    pub(super) fn push(&mut self, turn: LaneTurn) {
        self.lane(turn.standing).push(turn);
    }

    /// The next whose turn it is; to be given back by [`Lanes::done`].
    pub(super) fn next(&mut self, now: Instant) -> Option<LaneTurn> {
        if self.hosts.len() >= HOSTS {
            self.hosts.retain(|_, host| host.running > 0 || !host.is_over(now));
        }
        let Self { proven, new, troubled, hosts } = self;
        let lanes = [(proven, AT_ONCE), (new, AT_ONCE_NEW), (troubled, AT_ONCE_IN_TROUBLE)];
        let turn = lanes.into_iter().find_map(|(lane, most)| lane.next(most, hosts))?;
        let none = || HostCalls { running: 0, in_doubt: 0, sent: HostSent::default(), since: now };
        let host = hosts.entry(Arc::clone(&turn.host)).or_insert_with(none);
        host.running += 1;
        host.in_doubt += usize::from(turn.in_doubt);
        Some(turn)
    }

    /// Counts the call of a turn against what its host is sent; whether there is room for it.
    pub(super) fn try_send(&mut self, turn: &LaneTurn, purpose: Purpose, now: Instant) -> bool {
        let host = self.hosts.get_mut(&turn.host);
        host.is_none_or(|host| host.try_send(&turn.owner, purpose, now))
    }

    /// Those that wait, who do no more.
    pub(super) fn drain(&mut self) -> Vec<SubscriptionId> {
        let mut waited = Vec::new();
        for lane in [&mut self.proven, &mut self.new, &mut self.troubled] {
            waited.extend(lane.turns.drain(..).map(|turn| turn.id));
            waited.extend(lane.behind.drain().flat_map(|(_, ids)| ids));
        }
        waited
    }

    /// A call has ended, in which so many bytes were sent.
    pub(super) fn done(&mut self, turn: &LaneTurn, bytes: u64) {
        if let Some(host) = self.hosts.get_mut(&turn.host) {
            host.running = host.running.saturating_sub(1);
            host.in_doubt = host.in_doubt.saturating_sub(turn.in_doubt.into());
            host.sent.bytes = host.sent.bytes.saturating_add(bytes);
        }
        self.lane(turn.standing).running.remove(Some(&turn.owner));
    }

    const fn lane(&mut self, standing: Standing) -> &mut Lane {
        match standing {
            Standing::Proven => &mut self.proven,
            Standing::New => &mut self.new,
            Standing::Troubled => &mut self.troubled,
        }
    }
}

/// What is shared out within a limit: nobody has more of it than is still free, so that others find room, however much
/// one asks for.
#[derive(Debug, Clone, Default)]
pub(super) struct Shares {
    all: usize,
    owners: HashMap<Arc<str>, usize>,
}

impl Shares {
    /// Whether there is room for another one of an owner; `None`: it counts for nobody.
    pub(super) fn has_room(&self, owner: Option<&Arc<str>>, limit: usize) -> bool {
        let own = owner.and_then(|owner| self.owners.get(owner)).copied().unwrap_or_default();
        own < limit.saturating_sub(self.all)
    }

    /// Counts another one.
    pub(super) fn add(&mut self, owner: Option<&Arc<str>>) {
        self.all += 1;
        if let Some(owner) = owner {
            *self.owners.entry(Arc::clone(owner)).or_default() += 1;
        }
    }

    /// Counts one no more.
    pub(super) fn remove(&mut self, owner: Option<&Arc<str>>) {
        self.all = self.all.saturating_sub(1);
        let Some(owner) = owner else { return };
        if let Some(own) = self.owners.get_mut(owner) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.owners.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests;
