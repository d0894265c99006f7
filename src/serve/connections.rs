//! Who is connected: a share for each peer and each site of peers, and when there are too many the least useful go
//! first.
//!
//! A connection whose client is waited for is of the least use: for a request, for the body of one, or until it takes
//! its answer. Where the gateway works for all, the site that has most gives way to one that has fewer. What comes from
//! a trusted proxy is of many clients: it has no share of its own, and its requests are let finish. Where nobody gives
//! way, a newcomer is answered whether the gateway is alive, and nothing else.
//! Each connection is one of the files that the process may have open.

mod activity;

use super::budget::{BudgetHolder, HeldThing};
use super::{Budget, BudgetShares, Client, HeldBudget};
pub(super) use activity::SweepClock;
pub(super) use activity::{ClientWait, Connection, RequestInFlight, WatchedStream};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// A peer that is no trusted proxy gets one in this many of the connections, and its network one in this many.
const PEER_PART: u64 = 8;
const NETWORK_PART: u64 = 4;
/// Connections beyond the others, for who asks whether the gateway is alive.
const RESERVE: u64 = 16;

/// Sweeps over all connections within the shortest of their limits.
const SWEEPS_PER_LIMIT: u32 = 4;
/// The longest time between two sweeps.
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The limits of one connection; tests take shorter times. They are checked every [`ConnectionLimits::sweep_interval`],
/// so a connection may outlast a limit by that long, and is never cut before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionLimits {
    /// From the accept until the head of the first request is there.
    pub(crate) first_request: Duration,
    /// Within which the head of a later request must come (HTTP/1.1).
    pub(crate) head: Duration,
    /// How long a client may take nothing of an answer (HTTP/1.1, and whole HTTP/2 connections).
    pub(crate) stall: Duration,
    /// How long a client may take nothing of its answers, or send nothing of its requests (streams of HTTP/2 as well).
    pub(crate) untaken: Duration,
    /// After which a connection is asked to end; a client opens a new one.
    pub(crate) lifetime: Duration,
    /// How long a connection that was asked to end may take for the answers in flight.
    pub(crate) drain: Duration,
}

impl ConnectionLimits {
    /// The limits of a running gateway.
    pub(crate) const USUAL: Self = Self {
        first_request: Duration::from_secs(15),
        head: Duration::from_secs(30),
        stall: Duration::from_secs(30),
        untaken: Duration::from_secs(60),
        lifetime: Duration::from_secs(15 * 60),
        drain: Duration::from_secs(10),
    };

    /// The time between two sweeps over all connections.
    pub(crate) fn sweep_interval(&self) -> Duration {
        let all =
            [self.first_request, self.head, self.stall, self.untaken, self.lifetime, self.drain];
        all.into_iter()
            .fold(MAX_SWEEP_INTERVAL, |shortest, limit| shortest.min(limit / SWEEPS_PER_LIMIT))
    }
}

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    /// It goes on.
    No,
    /// It ends when the answers in flight have gone out.
    Graceful,
    /// It ends now.
    Now,
}

/// The shares of a gateway with so many connections.
pub(super) const fn shares(all: u64) -> BudgetShares {
    BudgetShares { all, each: all.div_ceil(PEER_PART), network: all.div_ceil(NETWORK_PART) }
}

/// Every connection that is open.
#[derive(Debug)]
pub(super) struct Connections {
    open: Arc<Budget>,
    reserve: Arc<Budget>,
    begun: Instant,
    clock: SweepClock,
}

impl Connections {
    /// None yet.
    pub(super) fn new(shares: BudgetShares) -> Self {
        let reserve = BudgetShares { all: RESERVE, each: RESERVE, network: RESERVE };
        let [open, reserve] = [shares, reserve].map(|shares| Budget::new(shares, Duration::ZERO));
        Self { open, reserve, begun: Instant::now(), clock: SweepClock::default() }
    }

    /// Changes how many there may be.
    pub(super) fn set_shares(&self, shares: BudgetShares) {
        self.open.set_shares(shares);
    }

    /// Whether a peer has all the connections that one may have.
    pub(super) fn has_its_share(&self, peer: Client) -> bool {
        self.open.of(peer) >= self.open.shares().each
    }

    /// Takes a slot for a connection of this peer; `None` if the connection is to be closed.
    pub(super) fn acquire_slot(&self, peer: Client, is_proxy: bool) -> Option<ConnectionSlot> {
        let client = (!is_proxy).then_some(peer);
        [(&self.open, false), (&self.reserve, true)].into_iter().find_map(
            |(budget, is_reserved)| {
                let connection = Arc::new(Connection::new(Arc::clone(&self.clock), is_reserved));
                let thing = HeldThing { id: Arc::as_ptr(&connection).addr(), size: 1 };
                let own = Some(Arc::clone(&connection));
                let held =
                    budget.take(BudgetHolder { client, connection: own, thing, is_action: false });
                Some(ConnectionSlot { connection, _held: held.ok()? })
            },
        )
    }

    /// Ends the connections that have come to a limit, and where the server `is_closing` all others when
    /// their answers have gone out. To be called every [`ConnectionLimits::sweep_interval`].
    pub(super) fn sweep(&self, limits: &ConnectionLimits, is_closing: bool) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.clock.store(now, Ordering::Relaxed);
        let least = if is_closing { Ending::Graceful } else { Ending::No };
        for budget in [&self.open, &self.reserve] {
            budget.for_each(|connection| connection.end(connection.due(limits, now).max(least)));
        }
    }
}

/// The slot of a connection, freed when dropped.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    pub(super) connection: Arc<Connection>,
    _held: HeldBudget,
}

/// Connections of clients get at most one in this many of the files that the process may open.
const CONNECTION_FILES_DIVISOR: u64 = 2;
/// Requests to origins get one in this many.
pub(super) const ORIGIN_FILES_DIVISOR: u64 = 4;
/// Files left for publishers, subscribers, operators and the store.
const RESERVED_FILES: u64 = 512;
/// If too few files are left for connections, they get one in this many all the same.
const FEW_FILES_DIVISOR: u64 = 8;

/// Raises the soft limit of files to the hard one, and answers how many connections may be served of those that are
/// wanted.
pub fn connections_within_files(wanted: u32) -> usize {
    let most = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit { current: most, maximum: most };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
    let files = file_limit();
    let connections = within(wanted, files);
    if connections < u64::from(wanted) {
        tracing::warn!(
            files,
            connections,
            wanted,
            "fewer connections are served than server.connections says, since the process may have so few files \
             open; raise its limit (LimitNOFILE of a unit, ulimit -n)"
        );
    }
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// How many files the process may have open; `None`: without a limit.
pub(super) fn file_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// `None`: without a limit.
fn within(wanted: u32, files: Option<u64>) -> u64 {
    let wanted = u64::from(wanted);
    files.map_or(wanted, |files| {
        let left = (files - files / ORIGIN_FILES_DIVISOR)
            .saturating_sub(RESERVED_FILES)
            .max(files / FEW_FILES_DIVISOR);
        wanted.min(left.min(files / CONNECTION_FILES_DIVISOR).max(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::client as peer;

    fn connections(all: u64, each: u64) -> Connections {
        Connections::new(BudgetShares { all, each, network: all })
    }

    #[test]
    fn a_peer_has_its_share_and_what_rests_gives_way() {
        let connections = connections(8, 2);
        let first = connections.acquire_slot(peer(1), false).unwrap();
        let second = connections.acquire_slot(peer(1), false).unwrap();
        let busy = first.connection.begin(true);
        let third = connections.acquire_slot(peer(1), false).unwrap();
        assert!(!first.connection.is_cut() && second.connection.is_cut());
        let also_busy = third.connection.begin(true);
        assert!(connections.has_its_share(peer(1)) && !connections.has_its_share(peer(2)));
        let probe = connections.acquire_slot(peer(1), false).unwrap();
        assert!(probe.connection.is_reserved, "all of its own are busy");
        let other = connections.acquire_slot(peer(2), false);
        assert!(other.is_some(), "another peer has its own share");
        drop((busy, also_busy));
        // Where nobody gives way a few may ask whether the gateway is alive.
        let connections = self::connections(4, 1);
        let mut held = Vec::new();
        for _ in 0..4 {
            let slot = connections.acquire_slot(peer(9), true).unwrap();
            held.push((slot.connection.begin(true), slot));
        }
        let mut reserved = Vec::new();
        for last in 10..40 {
            let slot = connections.acquire_slot(peer(last), false).unwrap();
            assert!(slot.connection.is_reserved);
            assert!(!held.iter().any(|(_, held)| held.connection.is_cut()));
            reserved.push(slot);
        }
        let cut = reserved.iter().filter(|slot| slot.connection.is_cut()).count();
        assert_eq!(u64::try_from(reserved.len() - cut), Ok(RESERVE));
        let first = &reserved[..cut];
        assert!(first.iter().all(|slot| slot.connection.is_cut()), "who has waited longest goes");
        let _busy: Vec<_> = reserved.iter().map(|slot| slot.connection.begin(true)).collect();
        assert!(connections.acquire_slot(peer(1), false).is_none(), "these are busy as well");
        held.pop();
        let one_left = connections.acquire_slot(peer(1), false).unwrap();
        assert!(!one_left.connection.is_reserved);
        drop((one_left, held.remove(0).0));
        assert!(!connections.acquire_slot(peer(2), false).unwrap().connection.is_reserved);
    }

    #[test]
    fn connections_leave_files_for_all_else() {
        for (wanted, files, connections) in [
            (1024, None, 1024),
            (1024, Some(524_288), 1024),
            (1024, Some(2048), 1024),
            (1024, Some(1024), 256),
            (1024, Some(256), 32),
            (16, Some(1024), 16),
            (16, Some(0), 1),
        ] {
            assert_eq!(within(wanted, files), connections, "{wanted} of {files:?}");
        }
        // The soft limit of files is raised to the hard one.
        let limit = getrlimit(Resource::Nofile);
        // By little, since other tests are in this process.
        let lowered = Some(limit.maximum.map_or(1 << 20, |most| most - 1));
        setrlimit(Resource::Nofile, Rlimit { current: lowered, ..limit }).unwrap();
        assert_eq!(connections_within_files(16), 16);
        assert_eq!(getrlimit(Resource::Nofile), Rlimit { current: limit.maximum, ..limit });
    }
}
