//! Decides which callback is called next. The calls in flight are limited in total, per host, and per client, so that
//! slow callbacks delay nobody else. Pure.
//!
//! The call budgets of hosts are in [`crate::host_queue`]; a host without budget rests here and uses no call. Anybody
//! may request the verification of a callback at any host. So each client has a share of the calls, and such requests
//! do not delay deliveries to verified callbacks.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tidegate_core::websub::SubscriptionId;
use tokio::time::Instant;

/// The most simultaneous calls to callbacks with a successful delivery and no failure since. Others that did not fail,
/// which strangers may have named, have as many.
pub(super) const AT_ONCE: usize = 128;
/// The most simultaneous calls to callbacks whose last call failed.
pub(super) const AT_ONCE_IN_TROUBLE: usize = 32;
/// The most simultaneous calls to one host.
pub(super) const AT_ONCE_PER_HOST: usize = 4;
/// Of these, the most to callbacks whose last call failed; unverified ones have as many. Neither waits for the other.
pub(super) const AT_ONCE_IN_DOUBT_PER_HOST: usize = AT_ONCE_PER_HOST / 4;

/// The history of a callback, which decides its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Standing {
    /// A delivery succeeded, and the last call did not fail.
    Proven,
    /// It was verified; nothing was delivered yet.
    Agreed,
    /// It was not verified yet.
    Unverified,
    /// The last call failed.
    Troubled,
}

impl Standing {
    /// Returns the index of the limit for doubtful calls that applies, if any.
    const fn in_doubt(self) -> Option<usize> {
        match self {
            Self::Proven | Self::Agreed => None,
            Self::Unverified => Some(0),
            Self::Troubled => Some(1),
        }
    }

    /// Returns its lane, and that lane's most simultaneous calls.
    const fn lane(self) -> (usize, usize) {
        match self {
            Self::Proven => (0, AT_ONCE),
            Self::Agreed | Self::Unverified => (1, AT_ONCE),
            Self::Troubled => (2, AT_ONCE_IN_TROUBLE),
        }
    }
}

/// The key of a queue in a lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LaneKey {
    /// The host or client whose share of the calls is used.
    pub(super) owner: Arc<str>,
    pub(super) host: Arc<str>,
    pub(super) standing: Standing,
    /// Whether the call is a delivery; deliveries do not wait behind verifications.
    pub(super) is_delivery: bool,
}

/// A call in a lane, waiting or in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueuedCall {
    pub(super) key: LaneKey,
    pub(super) id: SubscriptionId,
}

/// Counts in total and by name.
#[derive(Debug, Default)]
pub(super) struct Counts {
    all: usize,
    by_name: HashMap<Arc<str>, usize>,
}

impl Counts {
    pub(super) fn of(&self, name: &Arc<str>) -> usize {
        self.by_name.get(name).copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, name: &Arc<str>) {
        self.all += 1;
        *self.by_name.entry(Arc::clone(name)).or_default() += 1;
    }

    pub(super) fn remove(&mut self, name: &Arc<str>) {
        self.all = self.all.saturating_sub(1);
        match self.of(name) {
            0 | 1 => drop(self.by_name.remove(name)),
            more => drop(self.by_name.insert(Arc::clone(name), more - 1)),
        }
    }
}

/// The calls of one or two standings.
#[derive(Debug, Default)]
struct Lane {
    /// Calls in flight, by owner.
    running: Counts,
    /// The queues that are not empty; the front is next.
    queues: VecDeque<LaneKey>,
    waiting: HashMap<LaneKey, VecDeque<SubscriptionId>>,
}

/// The waiting subscriptions and the calls in flight. Each subscription waits at most once.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: [Lane; 3],
    /// Calls in flight by host, and the doubtful ones among them.
    hosts: Counts,
    in_doubt: [Counts; 2],
    /// Hosts without call budget, and when they may be called again.
    resting: HashMap<Arc<str>, Instant>,
}

impl Lanes {
    /// Adds a subscription to its queue.
    pub(super) fn push(&mut self, QueuedCall { key, id }: QueuedCall) {
        let Some(lane) = self.lanes.get_mut(key.standing.lane().0) else { return };
        if !lane.waiting.contains_key(&key) {
            lane.queues.push_back(key.clone());
        }
        lane.waiting.entry(key).or_default().push_back(id);
    }

    /// Starts the next call, until [`Lanes::done`]. Queues that may not call yet keep their order.
    pub(super) fn next(&mut self) -> Option<QueuedCall> {
        let Self { lanes, hosts, in_doubt, resting } = self;
        let may_call = |key: &LaneKey| {
            let doubts = key.standing.in_doubt().and_then(|kind| in_doubt.get(kind));
            !resting.contains_key(&key.host)
                && hosts.of(&key.host) < AT_ONCE_PER_HOST
                && doubts.is_none_or(|calls| calls.of(&key.host) < AT_ONCE_IN_DOUBT_PER_HOST)
        };
        let queued = lanes.iter_mut().find_map(|lane| lane.next(may_call))?;
        hosts.add(&queued.key.host);
        let kind = queued.key.standing.in_doubt();
        if let Some(calls) = kind.and_then(|kind| in_doubt.get_mut(kind)) {
            calls.add(&queued.key.host);
        }
        Some(queued)
    }

    /// Takes back a call whose host must rest until `from`; it will be the next one there.
    pub(super) fn put_back(&mut self, QueuedCall { key, id }: QueuedCall, from: Instant) {
        self.done(&key);
        self.resting.insert(Arc::clone(&key.host), from);
        let Some(lane) = self.lanes.get_mut(key.standing.lane().0) else { return };
        lane.queues.retain(|waiting| *waiting != key);
        lane.queues.push_front(key.clone());
        lane.waiting.entry(key).or_default().push_front(id);
    }

    /// Allows calls again to hosts whose rest is over at `now`.
    pub(super) fn wake(&mut self, now: Instant) {
        self.resting.retain(|_, from| *from > now);
    }

    /// Returns when the first resting host may be called again.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.resting.values().min().copied()
    }

    /// Removes and returns all waiting subscriptions.
    pub(super) fn drain(&mut self) -> Vec<SubscriptionId> {
        self.lanes.iter_mut().for_each(|lane| lane.queues.clear());
        self.lanes.iter_mut().flat_map(|lane| lane.waiting.drain()).flat_map(|it| it.1).collect()
    }

    /// Ends a call.
    pub(super) fn done(&mut self, LaneKey { owner, host, standing, .. }: &LaneKey) {
        self.hosts.remove(host);
        let kind = standing.in_doubt();
        if let Some(calls) = kind.and_then(|kind| self.in_doubt.get_mut(kind)) {
            calls.remove(host);
        }
        if let Some(lane) = self.lanes.get_mut(standing.lane().0) {
            lane.running.remove(owner);
        }
    }
}

impl Lane {
    fn next(&mut self, may_call: impl Fn(&LaneKey) -> bool) -> Option<QueuedCall> {
        let (_, at_once) = self.queues.front()?.standing.lane();
        let free = at_once.checked_sub(self.running.all).filter(|free| *free > 0)?;
        // An owner may use at most as much as is still free, so that others get their share.
        let may_start = |key: &LaneKey| self.running.of(&key.owner) < free && may_call(key);
        let key = self.queues.remove(self.queues.iter().position(may_start)?)?;
        let waiting = self.waiting.get_mut(&key)?;
        let id = waiting.pop_front()?;
        match waiting.is_empty() {
            true => drop(self.waiting.remove(&key)),
            false => self.queues.push_back(key.clone()),
        }
        self.running.add(&key.owner);
        Some(QueuedCall { key, id })
    }
}

#[cfg(test)]
mod tests;
