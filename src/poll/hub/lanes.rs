//! Who is called now: so many at once, and for one client or host no more than its share, so that slow callbacks
//! hold up nobody else. Pure. How soon a host is called again is for its queue to say
//! ([`crate::host_queue`]); until then it rests here, and holds no call.
//!
//! Anybody may ask for the verification of a callback at any host. So each client has a share of the calls, and what
//! is asked for waits beside deliveries to those who have agreed, not before them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tidegate_core::websub::SubscriptionId;
use tokio::time::Instant;

/// Calls at once to callbacks that something was delivered to before and whose last call did not fail, and as many to
/// those that nothing was delivered to yet: strangers name them.
pub(super) const AT_ONCE: usize = 128;
/// Calls at once to callbacks whose last call failed.
pub(super) const AT_ONCE_IN_TROUBLE: usize = 32;
/// Calls at once to one host.
pub(super) const AT_ONCE_PER_HOST: usize = 4;
/// Of them, those to callbacks whose last call failed, and as many to those that have agreed to nothing yet: neither
/// waits for the others.
pub(super) const AT_ONCE_IN_DOUBT_PER_HOST: usize = AT_ONCE_PER_HOST / 4;

/// What is known of a callback, by which it shares in the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Standing {
    /// Something was delivered to it, and its last call did not fail.
    Proven,
    /// It has agreed, and nothing was delivered to it yet.
    Agreed,
    /// It has agreed to nothing yet.
    Unverified,
    /// Its last call failed.
    Troubled,
}

impl Standing {
    /// The calls in doubt among which it counts.
    const fn in_doubt(self) -> Option<usize> {
        match self {
            Self::Proven | Self::Agreed => None,
            Self::Unverified => Some(0),
            Self::Troubled => Some(1),
        }
    }

    /// Its lane, and how many calls that has at once.
    const fn lane(self) -> (usize, usize) {
        match self {
            Self::Proven => (0, AT_ONCE),
            Self::Agreed | Self::Unverified => (1, AT_ONCE),
            Self::Troubled => (2, AT_ONCE_IN_TROUBLE),
        }
    }
}

/// What subscriptions have in common that wait behind each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LaneKey {
    /// Whose share of the calls it takes.
    pub(super) owner: Arc<str>,
    /// The host of the callback.
    pub(super) host: Arc<str>,
    pub(super) standing: Standing,
    /// Whether something new is delivered, which waits behind no question.
    pub(super) is_delivery: bool,
}

/// A subscription that waits for its turn, or has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaneTurn {
    pub(super) key: LaneKey,
    pub(super) id: SubscriptionId,
}

/// How many there are, in all and by a name.
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

/// The calls to callbacks of some standings.
#[derive(Debug, Default)]
struct Lane {
    /// By whose share they take.
    running: Counts,
    /// Of those who wait, whose turn it is.
    turns: VecDeque<LaneKey>,
    waiting: HashMap<LaneKey, VecDeque<SubscriptionId>>,
}

/// Waiting subscriptions, and the calls that are made. Each subscription waits once at most.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: [Lane; 3],
    /// The calls by their hosts, and those of them that are in doubt.
    hosts: Counts,
    in_doubt: [Counts; 2],
    /// The hosts that are not called yet, and from when on they are.
    resting: HashMap<Arc<str>, Instant>,
}

impl Lanes {
    /// Lets a subscription wait for its turn.
    pub(super) fn push(&mut self, LaneTurn { key, id }: LaneTurn) {
        let Some(lane) = self.lanes.get_mut(key.standing.lane().0) else { return };
        if !lane.waiting.contains_key(&key) {
            lane.turns.push_back(key.clone());
        }
        lane.waiting.entry(key).or_default().push_back(id);
    }

    /// The next whose turn it is; to be given back by [`Lanes::done`]. Those that it goes past keep their turns.
    pub(super) fn next(&mut self) -> Option<LaneTurn> {
        let Self { lanes, hosts, in_doubt, resting } = self;
        let may_call = |key: &LaneKey| {
            let doubts = key.standing.in_doubt().and_then(|kind| in_doubt.get(kind));
            !resting.contains_key(&key.host)
                && hosts.of(&key.host) < AT_ONCE_PER_HOST
                && doubts.is_none_or(|calls| calls.of(&key.host) < AT_ONCE_IN_DOUBT_PER_HOST)
        };
        let turn = lanes.iter_mut().find_map(|lane| lane.next(may_call))?;
        hosts.add(&turn.key.host);
        let kind = turn.key.standing.in_doubt();
        if let Some(calls) = kind.and_then(|kind| in_doubt.get_mut(kind)) {
            calls.add(&turn.key.host);
        }
        Some(turn)
    }

    /// Takes back a turn whose host may not be called yet: it is the next there, from then on.
    pub(super) fn put_back(&mut self, LaneTurn { key, id }: LaneTurn, from: Instant) {
        self.done(&key);
        self.resting.insert(Arc::clone(&key.host), from);
        let Some(lane) = self.lanes.get_mut(key.standing.lane().0) else { return };
        lane.turns.retain(|waiting| *waiting != key);
        lane.turns.push_front(key.clone());
        lane.waiting.entry(key).or_default().push_front(id);
    }

    /// Lets those hosts be called whose time has come.
    pub(super) fn wake(&mut self, now: Instant) {
        self.resting.retain(|_, from| *from > now);
    }

    /// When the next host may be called again that waits for that.
    pub(super) fn rests_until(&self) -> Option<Instant> {
        self.resting.values().min().copied()
    }

    /// Those that wait, who do no more.
    pub(super) fn drain(&mut self) -> Vec<SubscriptionId> {
        self.lanes.iter_mut().for_each(|lane| lane.turns.clear());
        self.lanes.iter_mut().flat_map(|lane| lane.waiting.drain()).flat_map(|it| it.1).collect()
    }

    /// A call has ended.
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
    fn next(&mut self, may_call: impl Fn(&LaneKey) -> bool) -> Option<LaneTurn> {
        let (_, at_once) = self.turns.front()?.standing.lane();
        let free = at_once.checked_sub(self.running.all).filter(|free| *free > 0)?;
        // Nobody has more than is still free, so that others find room, however much one asks for.
        let has_turn = |key: &LaneKey| self.running.of(&key.owner) < free && may_call(key);
        let key = self.turns.remove(self.turns.iter().position(has_turn)?)?;
        let waiting = self.waiting.get_mut(&key)?;
        let id = waiting.pop_front()?;
        match waiting.is_empty() {
            true => drop(self.waiting.remove(&key)),
            false => self.turns.push_back(key.clone()),
        }
        self.running.add(&key.owner);
        Some(LaneTurn { key, id })
    }
}

#[cfg(test)]
mod tests;
