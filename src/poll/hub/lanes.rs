//! Who is called now: so many at once, and for one client or host no more than its share, so that slow callbacks
//! hold up nobody else. Pure.

use super::shares::Shares;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv6Addr;
use std::sync::Arc;
use tidegate_core::websub::SubscriptionId;
use tidegate_net::fetch::{self, AllowPrivate};
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

/// The host of a callback: its registrable domain, so that a thousand names below it are one; its
/// address without the port, of IPv6 the network of 64 bits that one subscriber has.
pub(super) fn host_of(callback: &Url) -> Arc<str> {
    match callback.host() {
        Some(url::Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            psl::domain_str(name).unwrap_or(name).into()
        }
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

/// A subscription that waits for its turn, or has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaneTurn {
    /// Whose share of the calls it takes.
    pub(super) owner: Arc<str>,
    /// The host of its callback.
    pub(super) host: Arc<str>,
    /// Which.
    pub(super) id: SubscriptionId,
    pub(super) standing: Standing,
    /// Whether the last call of its callback failed, or it has agreed to nothing yet.
    pub(super) in_doubt: bool,
}

/// The subscriptions of one owner and one host that wait.
#[derive(Debug)]
struct CallbackQueue {
    host: Arc<str>,
    in_doubt: bool,
    ids: VecDeque<SubscriptionId>,
}

/// What waits for one owner, hosts in turn.
#[derive(Debug, Default)]
struct OwnerQueue(VecDeque<CallbackQueue>);

impl OwnerQueue {
    /// The next whose host is free.
    fn next(&mut self, hosts: &HostCalls) -> Option<(Arc<str>, bool, SubscriptionId)> {
        for _ in 0..self.0.len() {
            let mut queue = self.0.pop_front()?;
            let (host, in_doubt) = (Arc::clone(&queue.host), queue.in_doubt);
            let id = if hosts.is_free(&host, in_doubt) { queue.ids.pop_front() } else { None };
            if !queue.ids.is_empty() {
                self.0.push_back(queue);
            }
            if let Some(id) = id {
                return Some((host, in_doubt, id));
            }
        }
        None
    }
}

/// The calls to each host, and how many of them are in doubt.
#[derive(Debug, Default)]
struct HostCalls(HashMap<Arc<str>, (usize, usize)>);

impl HostCalls {
    fn is_free(&self, host: &str, in_doubt: bool) -> bool {
        self.0.get(host).is_none_or(|(running, doubtful)| {
            *running < AT_ONCE_PER_HOST && (!in_doubt || *doubtful < AT_ONCE_IN_DOUBT_PER_HOST)
        })
    }

    fn begin(&mut self, turn: &LaneTurn) {
        let (running, doubtful) = self.0.entry(Arc::clone(&turn.host)).or_default();
        *running += 1;
        *doubtful += usize::from(turn.in_doubt);
    }

    fn end(&mut self, turn: &LaneTurn) {
        let Some((running, doubtful)) = self.0.get_mut(&turn.host) else { return };
        *running = running.saturating_sub(1);
        *doubtful = doubtful.saturating_sub(turn.in_doubt.into());
        if *running == 0 {
            self.0.remove(&turn.host);
        }
    }
}

/// The calls to callbacks of one standing.
#[derive(Debug)]
struct Lane {
    standing: Standing,
    at_once: usize,
    running: Shares,
    /// The owners for whom something waits, by whose turn it is.
    turns: VecDeque<Arc<str>>,
    waiting: HashMap<Arc<str>, OwnerQueue>,
}

impl Lane {
    fn new(standing: Standing, at_once: usize) -> Self {
        let (running, turns, waiting) = (Shares::default(), VecDeque::new(), HashMap::new());
        Self { standing, at_once, running, turns, waiting }
    }

    fn push(&mut self, turn: &LaneTurn) {
        let OwnerQueue(queues) = self.waiting.entry(Arc::clone(&turn.owner)).or_default();
        if queues.is_empty() {
            self.turns.push_back(Arc::clone(&turn.owner));
        }
        let key = (&turn.host, turn.in_doubt);
        match queues.iter_mut().find(|queue| (&queue.host, queue.in_doubt) == key) {
            Some(queue) => queue.ids.push_back(turn.id),
            None => {
                let (host, in_doubt) = (Arc::clone(&turn.host), turn.in_doubt);
                queues.push_back(CallbackQueue { host, in_doubt, ids: [turn.id].into() });
            }
        }
    }

    /// The next whose turn it is.
    fn next(&mut self, hosts: &HostCalls) -> Option<LaneTurn> {
        // Each round looks at one of those who wait.
        let rounds = if self.running.has_room(None, self.at_once) { self.turns.len() } else { 0 };
        for _ in 0..rounds {
            let owner = self.turns.pop_front()?;
            let queue = self.waiting.get_mut(&owner)?;
            let has_room = self.running.has_room(Some(&owner), self.at_once);
            let next = if has_room { queue.next(hosts) } else { None };
            if queue.0.is_empty() {
                self.waiting.remove(&owner);
            } else {
                self.turns.push_back(Arc::clone(&owner));
            }
            if let Some((host, in_doubt, id)) = next {
                self.running.add(Some(&owner));
                return Some(LaneTurn { owner, host, id, standing: self.standing, in_doubt });
            }
        }
        None
    }
}

/// Waiting subscriptions, and the calls that are made. Each subscription waits once at most.
#[derive(Debug)]
pub(super) struct Lanes {
    lanes: [Lane; 3],
    hosts: HostCalls,
}

impl Default for Lanes {
    fn default() -> Self {
        let lanes = [
            Lane::new(Standing::Proven, AT_ONCE),
            Lane::new(Standing::New, AT_ONCE_NEW),
            Lane::new(Standing::Troubled, AT_ONCE_IN_TROUBLE),
        ];
        Self { lanes, hosts: HostCalls::default() }
    }
}

impl Lanes {
    /// Lets a subscription wait for its turn.
    pub(super) fn push(&mut self, turn: &LaneTurn) {
        if let Some(lane) = self.lane(turn.standing) {
            lane.push(turn);
        }
    }

    /// The next whose turn it is; to be given back by [`Lanes::done`].
    pub(super) fn next(&mut self) -> Option<LaneTurn> {
        let turn = self.lanes.iter_mut().find_map(|lane| lane.next(&self.hosts))?;
        self.hosts.begin(&turn);
        Some(turn)
    }

    /// Those that wait, who do no more.
    pub(super) fn drain(&mut self) -> Vec<SubscriptionId> {
        let mut waited = Vec::new();
        for lane in &mut self.lanes {
            lane.turns.clear();
            let queues = lane.waiting.drain().flat_map(|(_, OwnerQueue(queues))| queues);
            waited.extend(queues.flat_map(|queue| queue.ids));
        }
        waited
    }

    /// A call has ended.
    pub(super) fn done(&mut self, turn: &LaneTurn) {
        self.hosts.end(turn);
        if let Some(lane) = self.lane(turn.standing) {
            lane.running.remove(Some(&turn.owner));
        }
    }

    fn lane(&mut self, standing: Standing) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.standing == standing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::websub::Manner;
    use url::Url;

    fn id(number: usize) -> SubscriptionId {
        SubscriptionId::new(
            Manner::WebSub,
            "t",
            &Url::parse(&format!("http://a/{number}")).unwrap(),
        )
    }

    /// One of a subscriber of this host.
    fn turn(host: &str, number: usize, standing: Standing) -> LaneTurn {
        let host: Arc<str> = host.into();
        let in_doubt = standing == Standing::Troubled;
        LaneTurn { owner: Arc::clone(&host), host, id: id(number), standing, in_doubt }
    }

    /// A request of a client with a callback at this host.
    fn asked(client: &str, host: &str, number: usize) -> LaneTurn {
        let (owner, in_doubt) = (client.into(), true);
        LaneTurn { owner, in_doubt, ..turn(host, number, Standing::New) }
    }

    fn drain(lanes: &mut Lanes) -> Vec<LaneTurn> {
        std::iter::from_fn(|| lanes.next()).collect()
    }

    #[test]
    fn a_host_has_a_few_calls_and_the_others_go_past_it() {
        let mut lanes = Lanes::default();
        for number in 0..100 {
            let troubled = number % 3 == 0;
            let standing = if troubled { Standing::Troubled } else { Standing::Proven };
            lanes.push(&turn("slow", number, standing));
        }
        let of_quick = turn("quick", 100, Standing::Proven);
        lanes.push(&of_quick);
        let begun = drain(&mut lanes);
        assert_eq!(begun.iter().filter(|turn| &*turn.host == "slow").count(), AT_ONCE_PER_HOST);
        assert!(begun.contains(&of_quick));
        lanes.done(&of_quick);
        assert!(drain(&mut lanes).is_empty());
        lanes.done(begun.iter().find(|turn| &*turn.host == "slow").unwrap());
        assert_eq!(drain(&mut lanes).len(), 1);
    }

    #[test]
    fn all_hosts_together_have_a_limit_and_everybody_has_a_turn() {
        let mut lanes = Lanes::default();
        let standings = [Standing::Proven, Standing::New, Standing::Troubled];
        for number in 0..600 {
            lanes.push(&turn(&format!("host {number}"), number, standings[number % 3]));
        }
        let mut running = drain(&mut lanes);
        assert_eq!(running.len(), AT_ONCE + AT_ONCE_NEW + AT_ONCE_IN_TROUBLE);
        let mut turns = running.len();
        while let Some(ended) = running.pop() {
            lanes.done(&ended);
            let begun = drain(&mut lanes);
            turns += begun.len();
            running.extend(begun);
        }
        assert_eq!(turns, 600);
        let is_empty = |lane: &Lane| lane.waiting.is_empty() && lane.turns.is_empty();
        assert!(lanes.hosts.0.is_empty() && lanes.lanes.iter().all(is_empty));
        assert!(lanes.lanes.iter().all(|lane| lane.running.all() == 0));
    }

    #[test]
    fn callbacks_in_trouble_share_a_part_of_the_calls() {
        let mut lanes = Lanes::default();
        for number in 0..100 {
            lanes.push(&turn(&format!("slow {number}"), number, Standing::Troubled));
        }
        let begun = drain(&mut lanes);
        assert_eq!(begun.len(), AT_ONCE_IN_TROUBLE, "none of these ends");
        for well in [turn("quick", 100, Standing::Proven), asked("client", "new", 101)] {
            lanes.push(&well);
            assert_eq!(lanes.next(), Some(well));
        }
        assert_eq!(lanes.next(), None);
        lanes.done(&begun[0]);
        assert!(lanes.next().is_some_and(|turn| turn.standing == Standing::Troubled));
    }

    #[test]
    fn what_strangers_ask_for_leaves_calls_to_those_who_have_agreed() {
        let mut lanes = Lanes::default();
        for number in 0..200 {
            lanes.push(&asked("stranger", "reader", number));
        }
        assert_eq!(drain(&mut lanes).len(), AT_ONCE_IN_DOUBT_PER_HOST, "none of these ends");
        // Also where nothing was delivered to them yet.
        for standing in [Standing::Proven, Standing::New] {
            let delivery = turn("reader", 200, standing);
            lanes.push(&delivery);
            assert_eq!(drain(&mut lanes), std::slice::from_ref(&delivery));
            lanes.done(&delivery);
        }
        assert!(drain(&mut lanes).is_empty());
    }

    /// Callbacks that never answer, each at another host.
    #[test]
    fn who_asks_for_many_leaves_room_for_the_requests_of_others() {
        for clients in [1, 3, 60] {
            let mut lanes = Lanes::default();
            for number in 0..5000 {
                let client = format!("client {}", number % clients);
                lanes.push(&asked(&client, &format!("silent {number}"), number));
            }
            let begun = drain(&mut lanes);
            let share = AT_ONCE_NEW / (clients + 1);
            assert!(begun.len() >= clients * share && begun.len() < AT_ONCE_NEW, "{clients}");
            let honest = asked("honest", "reader", 5000);
            lanes.push(&honest);
            assert_eq!(drain(&mut lanes), [honest], "{clients}");
        }
    }

    /// Where a proxy hides who asks, all are one client.
    #[test]
    fn a_host_that_is_asked_for_often_keeps_no_other_from_its_turn() {
        let mut lanes = Lanes::default();
        for number in 0..200 {
            lanes.push(&asked("proxy", "silent", number));
        }
        let honest = asked("proxy", "reader", 200);
        lanes.push(&honest);
        assert!(drain(&mut lanes).contains(&honest));
    }

    #[test]
    fn callbacks_are_told_apart_by_registrable_domain_or_address() {
        let host = |text: &str| host_of(&Url::parse(text).unwrap()).to_string();
        assert_eq!(host("https://a.b.reader.co.uk/"), "reader.co.uk");
        assert_eq!(host("https://reader.co.uk./"), "reader.co.uk");
        assert_eq!(host("http://localhost:8000/"), "localhost");
        assert_eq!(host("http://93.184.216.34:81/"), "93.184.216.34");
        assert_eq!(host("http://93.184.216.34:82/"), "93.184.216.34");
        let network = host("http://[2606:4700:4700::1111]/");
        assert_eq!(network, "[2606:4700:4700::]/64");
        assert_eq!(host("http://[2606:4700:4700:0:ffff:1:2:3]:8080/"), network);
        // Whom the operator allows may be many on one machine.
        assert_eq!(host("http://10.1.2.3:81/"), "10.1.2.3:81");
        assert_eq!(host("http://[::1]/"), "[::1]:80");
    }
}
