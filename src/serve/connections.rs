//! Who is connected: a share for each peer, and when there are too many the least useful go first.
//!
//! A connection without a request in flight is of the least use: its client opens another when it has
//! something to ask. Where all have one, the peer that has most gives way to one that has fewer. What
//! comes from a trusted proxy is of many clients: it has no share of its own, and its requests are let
//! finish.

mod activity;
mod limits;

pub(super) use activity::{Activity, Busy, Ending, EndingWatch};
pub(super) use limits::ConnectionLimits;

use super::client::Client;
use activity::SweepClock;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Connections at once.
pub(super) const CONNECTION_LIMIT: usize = 1024;
/// Those of one peer that is no trusted proxy.
pub(super) const PEER_LIMIT: usize = 128;
/// How long a newcomer waits where nobody can give way; then it is closed, and the next one waits.
const WAIT: Duration = Duration::from_secs(1);

/// How many connections there may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionShares {
    /// Of all together.
    pub(super) all: usize,
    /// Of one peer.
    pub(super) each: usize,
}

impl ConnectionShares {
    /// Those of a running gateway.
    pub(super) const USUAL: Self = Self { all: CONNECTION_LIMIT, each: PEER_LIMIT };
}

#[derive(Debug)]
struct OpenConnection {
    peer: Client,
    is_proxy: bool,
    activity: Arc<Activity>,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    next: u64,
    open: HashMap<u64, OpenConnection>,
    /// How many each peer has, proxies left out.
    peers: HashMap<Client, usize>,
}

impl ConnectionTable {
    fn count(&self, peer: Client) -> usize {
        self.peers.get(&peer).copied().unwrap_or(0)
    }

    fn remove(&mut self, id: u64) -> Option<OpenConnection> {
        let open = self.open.remove(&id)?;
        if !open.is_proxy
            && let Some(count) = self.peers.get_mut(&open.peer)
        {
            *count -= 1;
            if *count == 0 {
                self.peers.remove(&open.peer);
            }
        }
        Some(open)
    }

    /// The connection at rest that goes first: of the peer that has most, the one that rests longest.
    fn idle(&self, of: Option<Client>) -> Option<u64> {
        let wanted = |open: &OpenConnection| of.is_none_or(|of| !open.is_proxy && open.peer == of);
        let idle = self.open.iter().filter(|(_, open)| wanted(open) && open.activity.is_idle());
        let rank = |id: u64, open: &OpenConnection| {
            let count = if open.is_proxy { 0 } else { self.count(open.peer) };
            (std::cmp::Reverse(count), open.activity.rested(), id)
        };
        idle.min_by_key(|(id, open)| rank(**id, open)).map(|(id, _)| *id)
    }

    /// The oldest connection of the peer that has most, where that is more than `fewer` will have.
    fn of_the_greatest(&self, fewer: usize) -> Option<u64> {
        let (greatest, count) = self.peers.iter().max_by_key(|(_, count)| **count)?;
        if *count <= fewer + 1 {
            return None;
        }
        let its = |open: &OpenConnection| !open.is_proxy && open.peer == *greatest;
        self.open.iter().filter(|(_, open)| its(open)).map(|(id, _)| *id).min()
    }
}

/// Every connection that is open.
#[derive(Debug)]
pub(super) struct Connections {
    shares: ConnectionShares,
    table: Mutex<ConnectionTable>,
    begun: Instant,
    clock: SweepClock,
    left: Notify,
}

/// What becomes of a newcomer.
enum Admittance {
    Here(ConnectionSlot),
    /// Its peer has its share, and each of them is busy.
    Refused,
    /// All places are taken, and nobody has more than the newcomer would have.
    Full,
}

impl Connections {
    /// None yet.
    pub(super) fn new(shares: ConnectionShares) -> Arc<Self> {
        let (table, clock) = (Mutex::default(), SweepClock::default());
        Arc::new(Self { shares, table, begun: Instant::now(), clock, left: Notify::new() })
    }

    fn table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection of this peer, as soon as there is one; `None` where it is to be closed.
    pub(super) async fn place(
        self: &Arc<Self>,
        peer: Client,
        is_proxy: bool,
    ) -> Option<ConnectionSlot> {
        let wait = tokio::time::sleep(WAIT);
        let mut wait = std::pin::pin!(wait);
        loop {
            let left = self.left.notified();
            match self.try_place(peer, is_proxy) {
                Admittance::Here(place) => return Some(place),
                Admittance::Refused => return None,
                Admittance::Full => {}
            }
            tokio::select! {
                () = left => {}
                () = wait.as_mut() => return None,
            }
        }
    }

    /// Whether a peer has all the connections that one may have.
    pub(super) fn has_its_share(&self, peer: Client) -> bool {
        self.table().count(peer) >= self.shares.each
    }

    fn try_place(self: &Arc<Self>, peer: Client, is_proxy: bool) -> Admittance {
        let mut table = self.table();
        let count = table.count(peer);
        let goes = if !is_proxy && count >= self.shares.each {
            match table.idle(Some(peer)) {
                Some(id) => Some(id),
                None => return Admittance::Refused,
            }
        } else if table.open.len() >= self.shares.all {
            // A proxy's connection may be of a client that has no other.
            let fewer = if is_proxy { 0 } else { count };
            match table.idle(None).or_else(|| table.of_the_greatest(fewer)) {
                Some(id) => Some(id),
                None => return Admittance::Full,
            }
        } else {
            None
        };
        if let Some(open) = goes.and_then(|id| table.remove(id)) {
            open.activity.end(Ending::Now);
        }
        let id = table.next;
        table.next += 1;
        let activity = Arc::new(Activity::new(Arc::clone(&self.clock)));
        if !is_proxy {
            *table.peers.entry(peer).or_default() += 1;
        }
        let place = ConnectionSlot { id, activity: Arc::clone(&activity), all: Arc::clone(self) };
        table.open.insert(id, OpenConnection { peer, is_proxy, activity });
        Admittance::Here(place)
    }

    /// Ends the connections that have come to a limit, and where the server `is_closing` all others when
    /// their answers have gone out. To be called every [`ConnectionLimits::pace`].
    pub(super) fn sweep(&self, limits: &ConnectionLimits, is_closing: bool) {
        let now = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.clock.store(now, Ordering::Relaxed);
        let least = if is_closing { Ending::Graceful } else { Ending::No };
        for open in self.table().open.values() {
            open.activity.end(limits.ending(&open.activity.age(now)).max(least));
        }
    }
}

/// A connection, as its requests know it.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    id: u64,
    activity: Arc<Activity>,
}

impl Connection {
    /// A request is in flight on it until what this returns is dropped.
    pub(super) fn begin(&self, is_http_1: bool) -> Busy {
        self.activity.begin(is_http_1)
    }

    /// Ends it.
    pub(super) fn cut(&self) {
        self.activity.end(Ending::Now);
    }

    /// One of a test.
    #[cfg(test)]
    pub(super) fn new(id: u64) -> Self {
        Self { id, activity: Arc::new(Activity::new(SweepClock::default())) }
    }

    /// Whether it was ended.
    #[cfg(test)]
    pub(super) fn is_cut(&self) -> bool {
        self.activity.ending() == Ending::Now
    }
}

impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Connection {}

impl std::hash::Hash for Connection {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl ConnectionSlot {
    /// The connection that has this place.
    pub(super) fn connection(&self) -> Connection {
        Connection { id: self.id, activity: Arc::clone(&self.activity) }
    }

    #[cfg(test)]
    fn is_cut(&self) -> bool {
        self.activity.ending() == Ending::Now
    }
}

/// A connection's place.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    id: u64,
    /// What the connection is doing.
    pub(super) activity: Arc<Activity>,
    all: Arc<Connections>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.all.table().remove(self.id);
        self.all.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(last: u8) -> Client {
        Client::at([192, 0, 2, last].into())
    }

    fn connections(all: usize, each: usize) -> Arc<Connections> {
        Connections::new(ConnectionShares { all, each })
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_has_its_share_and_what_rests_gives_way() {
        let connections = connections(8, 2);
        let first = connections.place(peer(1), false).await.unwrap();
        let second = connections.place(peer(1), false).await.unwrap();
        let busy = first.activity.begin(true);
        let third = connections.place(peer(1), false).await.unwrap();
        assert!(!first.is_cut() && second.is_cut());
        let also_busy = third.activity.begin(true);
        assert!(connections.has_its_share(peer(1)) && !connections.has_its_share(peer(2)));
        assert!(connections.place(peer(1), false).await.is_none(), "all of its own are busy");
        let other = connections.place(peer(2), false).await;
        assert!(other.is_some(), "another peer has its own share");
        drop((busy, also_busy));
        // What came to rest first goes first.
        assert!(connections.place(peer(1), false).await.is_some());
        assert!(first.is_cut() && !third.is_cut());
    }

    #[tokio::test(start_paused = true)]
    async fn under_pressure_the_idle_go_and_then_the_greatest_gives_way() {
        let connections = connections(4, 4);
        let mut held = Vec::new();
        for _ in 0..3 {
            let place = connections.place(peer(1), false).await.unwrap();
            held.push((place.activity.begin(true), place));
        }
        let idle = connections.place(peer(2), false).await.unwrap();
        let third = connections.place(peer(3), false).await.unwrap();
        assert!(idle.is_cut(), "the only one at rest");
        let busy = third.activity.begin(true);
        let fourth = connections.place(peer(4), false).await.unwrap();
        assert!(held[0].1.is_cut(), "the greatest has more than the newcomer");
        let also_busy = fourth.activity.begin(true);
        let fifth = connections.place(peer(5), false).await;
        assert!(fifth.is_some() == held[1].1.is_cut());
        drop((busy, also_busy));
    }

    #[tokio::test(start_paused = true)]
    async fn a_proxy_has_no_share_and_its_requests_finish() {
        let connections = connections(4, 1);
        let mut held = Vec::new();
        for _ in 0..4 {
            let place = connections.place(peer(9), true).await.unwrap();
            held.push((place.activity.begin(true), place));
        }
        assert!(connections.place(peer(1), false).await.is_none(), "nobody can give way");
        let waiting = {
            let connections = Arc::clone(&connections);
            tokio::spawn(async move { connections.place(peer(1), false).await.is_some() })
        };
        tokio::task::yield_now().await;
        held.pop();
        assert!(waiting.await.unwrap(), "who waits comes in when somebody leaves");
        drop(held.remove(0).0);
        assert!(connections.place(peer(2), false).await.is_some());
    }
}
