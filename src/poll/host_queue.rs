//! The lines of hosts as tasks share them: who has its turn gets a slot, which gives itself back when it is dropped.
//! Polls, questions about missing items, older documents and hubs wait in them; the calls of our own hub wait beside
//! them.

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

/// How often subscribers at one host are called within a minute, and how many bytes they are sent: whoever asks decides
/// where the hub calls, so that without a bound it would be a weapon. What is beyond it comes later, and then as the
/// newest document only.
const CALLS_A_MINUTE: u64 = 150;
const BYTES_A_MINUTE: u64 = 32 * 1024 * 1024;

/// Who waits in a line.
enum Waiter {
    /// A poll, as long as somebody has its ticket. There may be a million at a time.
    Poll(FeedName, Weak<()>),
    /// A task.
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

/// The right to ask a host, until it is dropped.
pub struct HostSlot {
    queue: Arc<HostQueue>,
    host: PoliteHost,
}

/// The lines of all hosts.
pub struct HostQueue {
    lines: Mutex<Politeness<Waiter>>,
    /// From when on subscribers below a registrable domain may be called, also where a host of it has a pace of its own:
    /// beside polls, of whose pauses this knows nothing, since a subscriber asks for a pause by itself.
    calls: Mutex<HashMap<Arc<str>, Instant>>,
    /// Somebody came, or a slot was given back.
    changed: Notify,
    /// A host asked for a pause.
    paused: Notify,
}

impl HostQueue {
    /// One request at a time, by no rules yet.
    pub fn new() -> Arc<Self> {
        let lines = Mutex::new(Politeness::new(1, HostRules::default()));
        let (calls, changed, paused) = Default::default();
        Arc::new(Self { lines, calls, changed, paused })
    }

    /// Goes on with other rules.
    pub fn reconfigure(&self, at_once: usize, rules: HostRules) {
        self.lines.lock().reconfigure(at_once, rules, Instant::now());
        self.changed.notify_one();
    }

    /// The host of an address.
    pub fn host(&self, address: &str) -> PoliteHost {
        self.lines.lock().rules.host(address)
    }

    /// Puts a poll in the line of the host of an address, from `begin` on; it leaves when its ticket is dropped.
    pub fn line_up(
        &self,
        feed: FeedName,
        address: &str,
        rank: HostRank,
        begin: Instant,
    ) -> Arc<()> {
        let ticket = Arc::new(());
        let waiter = Waiter::Poll(feed, Arc::downgrade(&ticket));
        self.lines.lock().enqueue(waiter, address, rank, begin);
        ticket
    }

    /// Waits in the line of the host of an address. The error is how long the host is still to be left alone.
    pub async fn slot(&self, address: &str, rank: HostRank) -> Result<HostSlot, Duration> {
        let (reply, turn) = oneshot::channel();
        self.lines.lock().enqueue(Waiter::Task(reply), address, rank, Instant::now());
        self.changed.notify_one();
        // A queue that is gone lets nobody ask.
        turn.await.unwrap_or(Err(Duration::ZERO))
    }

    /// Hands out slots to tasks, up to the next poll whose turn it is: to ask its host, or to be put off, since the host
    /// is to be left alone for so long still.
    pub fn next(self: &Arc<Self>, now: Instant) -> Option<(FeedName, Result<HostSlot, Duration>)> {
        loop {
            let (waiter, turn) = self.lines.lock().next(now, Waiter::still_waits)?;
            let slot = turn.map(|host| HostSlot { queue: Arc::clone(self), host });
            match waiter {
                Waiter::Poll(feed, _) => return Some((feed, slot)),
                Waiter::Task(reply) => drop(reply.send(slot)),
            }
        }
    }

    /// Takes in that a host asks to be left alone, in answer to whatever request.
    pub fn pause(&self, pause: &PauseRequest) {
        let host = self.host(&pause.address);
        tracing::debug!(host = &*host.full, wait = ?pause.wait, "a host asked for a pause");
        self.lines.lock().pause(&pause.address, pause.wait, Instant::now());
        self.changed.notify_one();
        self.paused.notify_waiters();
    }

    /// From when on subscribers at a host may be called, by the name that its lane has.
    pub fn call_at(&self, host: &Arc<str>) -> Instant {
        self.reserve_call(host, 0, CALLS_A_MINUTE)
    }

    /// A subscriber is called.
    pub fn note_call(&self, host: &Arc<str>) {
        self.reserve_call(host, 1, CALLS_A_MINUTE);
    }

    /// A subscriber was sent so many bytes.
    pub fn note_delivery(&self, host: &Arc<str>, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.reserve_call(host, bytes, BYTES_A_MINUTE);
    }

    /// Takes so much of what a host is sent within a minute; from when on.
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

    /// How long the host of an address is still to be left alone.
    pub fn paused(&self, address: &str) -> Option<Duration> {
        self.lines.lock().paused(address, Instant::now())
    }

    /// Waits until the host of an address asks to be left alone; for how long.
    pub async fn until_paused(&self, address: &str) -> Duration {
        loop {
            let paused = self.paused.notified();
            if let Some(left) = self.paused(address) {
                return left;
            }
            paused.await;
        }
    }

    /// See `Politeness::asked`.
    pub fn asked(&self, address: &str) {
        self.lines.lock().asked(address, Instant::now());
    }

    /// When somebody may be let ask, if nothing else happens.
    pub fn wake_at(&self) -> Option<Instant> {
        self.lines.lock().wake_at()
    }

    /// Waits until somebody may be let ask since something happened.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl HostSlot {
    pub const fn host(&self) -> &PoliteHost {
        &self.host
    }
}

impl Drop for HostSlot {
    fn drop(&mut self) {
        self.queue.lines.lock().finish(&self.host, Instant::now());
        self.queue.changed.notify_one();
    }
}
