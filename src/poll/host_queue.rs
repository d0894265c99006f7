//! The host lines as tasks share them. A task whose turn has come gets a slot, which is returned on drop. Polls,
//! probes, walks and requests to hubs wait in these lines; calls of the gateway's own hub have separate budgets.

use super::politeness::{HostRank, HostRules, MAX_HOSTS, PoliteHost, Politeness};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate_core::model::FeedName;
use tidegate_net::fetch::PauseRequest;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// The most requests of polling at the same time, over all hosts.
pub(super) const AT_ONCE: usize = 64;
/// The calls and bytes per minute to subscribers at one host. Anybody may name a callback, so without a budget the hub
/// could be used for attacks. Deliveries beyond it are delayed and then send only the newest document.
const CALLS_A_MINUTE: u64 = 150;
const BYTES_A_MINUTE: u64 = 32 * 1024 * 1024;

enum Waiter {
    /// A poll, valid while its ticket exists. There may be a million.
    Poll(FeedName, Weak<()>),
    Task(oneshot::Sender<Result<HostSlot, Duration>>),
}

impl Waiter {
    fn still_waits(&self) -> bool {
        match self {
            Self::Poll(_, ticket) => ticket.strong_count() > 0,
            Self::Task(reply) => !reply.is_closed(),
        }
    }
}

/// Permission to ask a host, until dropped.
pub struct HostSlot {
    queue: Arc<HostQueue>,
    pub(super) host: PoliteHost,
}

pub struct HostQueue {
    lines: Mutex<Politeness<Waiter>>,
    /// When subscribers below a registrable domain may be called next. Pauses of polls do not apply here: a subscriber
    /// asks for its own.
    calls: Mutex<HashMap<Arc<str>, Instant>>,
    /// A requester arrived, or a slot was returned.
    pub(super) changed: Notify,
    /// A host asked for a pause.
    paused: Notify,
}

impl HostQueue {
    /// Creates queues without rules, until [`Self::reconfigure`] sets them.
    pub fn new() -> Arc<Self> {
        let lines = Mutex::new(Politeness::new(AT_ONCE, HostRules::default()));
        let (calls, changed, paused) = Default::default();
        Arc::new(Self { lines, calls, changed, paused })
    }

    /// Applies other rules.
    pub fn reconfigure(&self, rules: HostRules) {
        self.lines.lock().reconfigure(rules, Instant::now());
        self.changed.notify_one();
    }

    /// Returns the host of `address`.
    pub fn host(&self, address: &str) -> PoliteHost {
        self.lines.lock().rules.host(address)
    }

    /// Adds a poll to the line of the address's host. It leaves the line when its ticket is dropped.
    pub fn line_up(&self, feed: FeedName, address: &str, rank: HostRank) -> Arc<()> {
        let ticket = Arc::new(());
        let waiter = Waiter::Poll(feed, Arc::downgrade(&ticket));
        self.lines.lock().enqueue(waiter, address, rank, Instant::now());
        ticket
    }

    /// Waits for a slot at the address's host. The error is the rest of that host's pause.
    pub async fn slot(&self, address: &str, rank: HostRank) -> Result<HostSlot, Duration> {
        let (reply, slot) = oneshot::channel();
        self.lines.lock().enqueue(Waiter::Task(reply), address, rank, Instant::now());
        self.changed.notify_one();
        // The queue is gone: no slot.
        slot.await.unwrap_or(Err(Duration::ZERO))
    }

    /// Hands slots to waiting tasks until a poll's turn comes; returns that poll with its slot, or with the rest of its
    /// host's pause.
    pub fn next(self: &Arc<Self>, now: Instant) -> Option<(FeedName, Result<HostSlot, Duration>)> {
        loop {
            let (waiter, allowed) = self.lines.lock().next(now, Waiter::still_waits)?;
            let slot = allowed.map(|host| HostSlot { queue: Arc::clone(self), host });
            match waiter {
                Waiter::Poll(feed, _) => return Some((feed, slot)),
                Waiter::Task(reply) => drop(reply.send(slot)),
            }
        }
    }

    /// Records that a host asked for a pause, in answer to any request.
    pub fn pause(&self, pause: &PauseRequest) {
        let host = self.host(&pause.address);
        tracing::debug!(host = &*host.full, wait = ?pause.wait, "a host asked for a pause");
        self.lines.lock().pause(&pause.address, pause.wait, Instant::now());
        self.changed.notify_one();
        self.paused.notify_waiters();
    }

    /// Returns when subscribers at `host` may be called next; `host` is the key of the hub's lane.
    pub fn call_at(&self, host: &Arc<str>) -> Instant {
        self.reserve_call(host, 0, CALLS_A_MINUTE)
    }

    /// Counts a call to a subscriber against its host's budget.
    pub fn note_call(&self, host: &Arc<str>) {
        self.reserve_call(host, 1, CALLS_A_MINUTE);
    }

    /// Counts `bytes` sent to a subscriber against its host's budget.
    pub fn note_delivery(&self, host: &Arc<str>, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.reserve_call(host, bytes, BYTES_A_MINUTE);
    }

    /// Reserves `share` of the `all` units that a host gets per minute. Returns when the call may begin.
    fn reserve_call(&self, host: &Arc<str>, share: u64, all: u64) -> Instant {
        let (now, minute) = (Instant::now(), 60_000_000);
        // A private address, which the operator allows by name, needs no protection from this hub.
        if host.parse::<SocketAddr>().is_ok() {
            return now;
        }
        let pause = Duration::from_micros(share.saturating_mul(minute) / all);
        let mut calls = self.calls.lock();
        if calls.len() >= MAX_HOSTS {
            calls.retain(|_, at| *at > now);
        }
        let next = calls.entry(Arc::clone(host)).or_insert(now);
        let at = now.max(*next);
        *next = at + pause;
        at
    }

    /// Returns the rest of the pause of the address's host; `None` if it has none.
    pub fn paused(&self, address: &str) -> Option<Duration> {
        self.lines.lock().paused(address, Instant::now())
    }

    /// Waits until the address's host is paused. Returns the rest of the pause.
    pub async fn until_paused(&self, address: &str) -> Duration {
        loop {
            let paused = self.paused.notified();
            if let Some(left) = self.paused(address) {
                return left;
            }
            paused.await;
        }
    }

    /// Records a request on demand: the spacing of the address's host counts from now.
    pub fn note_request(&self, address: &str) {
        self.lines.lock().note_request(address, Instant::now());
    }

    /// Returns when the next request may begin if nothing changes before.
    pub fn wake_at(&self) -> Option<Instant> {
        self.lines.lock().wake_at()
    }
}

impl Drop for HostSlot {
    fn drop(&mut self) {
        self.queue.lines.lock().finish(&self.host, Instant::now());
        self.queue.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_hosts_are_asked_at_once_and_no_more() {
        let queue = HostQueue::new();
        let wait = |n: usize| {
            let feed = FeedName::new("news").unwrap();
            queue.line_up(feed, &format!("http://host{n}.example/"), HostRank::Usual)
        };
        let _tickets: Vec<_> = (0..=AT_ONCE).map(wait).collect();
        let next = || Some(queue.next(Instant::now())?.1.unwrap());
        let mut slots: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(slots.len(), AT_ONCE);
        slots.pop();
        assert!(next().is_some() && next().is_none());
    }
}
