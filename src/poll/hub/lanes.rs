//! Who is called now: so many at once, and for one client or host no more than its share, so that slow callbacks
//! hold up nobody else. Pure.

use crate::domains::registrable_domain;
use std::collections::hash_map::Entry;
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

impl LaneTurn {
    fn key(&self) -> WaitingKey {
        (Arc::clone(&self.owner), Arc::clone(&self.host), self.in_doubt)
    }
}

/// The calls to each host, and how many of them are in doubt.
#[derive(Debug, Default)]
struct HostCalls(HashMap<Arc<str>, (usize, usize)>);

impl HostCalls {
    fn is_free(&self, turn: &LaneTurn) -> bool {
        self.0.get(&turn.host).is_none_or(|(running, doubtful)| {
            *running < AT_ONCE_PER_HOST && (!turn.in_doubt || *doubtful < AT_ONCE_IN_DOUBT_PER_HOST)
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

/// Whose share of the calls it is, the host, and whether the callbacks are in doubt.
type WaitingKey = (Arc<str>, Arc<str>, bool);

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
    fn next(&mut self, at_once: usize, hosts: &HostCalls) -> Option<LaneTurn> {
        if !self.running.has_room(None, at_once) {
            return None;
        }
        let is_free = |turn: &LaneTurn| {
            self.running.has_room(Some(&turn.owner), at_once) && hosts.is_free(turn)
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
    hosts: HostCalls,
}

impl Lanes {
    /// Lets a subscription wait for its turn.
    pub(super) fn push(&mut self, turn: LaneTurn) {
        self.lane(turn.standing).push(turn);
    }

    /// The next whose turn it is; to be given back by [`Lanes::done`].
    pub(super) fn next(&mut self) -> Option<LaneTurn> {
        let Self { proven, new, troubled, hosts } = self;
        let lanes = [(proven, AT_ONCE), (new, AT_ONCE_NEW), (troubled, AT_ONCE_IN_TROUBLE)];
        let turn = lanes.into_iter().find_map(|(lane, at_once)| lane.next(at_once, hosts))?;
        hosts.begin(&turn);
        Some(turn)
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

    /// A call has ended.
    pub(super) fn done(&mut self, turn: &LaneTurn) {
        self.hosts.end(turn);
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
    /// What all have.
    pub(super) const fn all(&self) -> usize {
        self.all
    }

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
            lanes.push(turn("slow", number, standing));
        }
        let of_quick = turn("quick", 100, Standing::Proven);
        lanes.push(of_quick.clone());
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
            lanes.push(turn(&format!("host {number}"), number, standings[number % 3]));
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
        let is_idle = |lane: &Lane| {
            lane.behind.is_empty() && lane.turns.is_empty() && lane.running.all() == 0
        };
        assert!(lanes.hosts.0.is_empty());
        assert!([&lanes.proven, &lanes.new, &lanes.troubled].into_iter().all(is_idle));
    }

    #[test]
    fn callbacks_in_trouble_share_a_part_of_the_calls() {
        let mut lanes = Lanes::default();
        for number in 0..100 {
            lanes.push(turn(&format!("slow {number}"), number, Standing::Troubled));
        }
        let begun = drain(&mut lanes);
        assert_eq!(begun.len(), AT_ONCE_IN_TROUBLE, "none of these ends");
        for well in [turn("quick", 100, Standing::Proven), asked("client", "new", 101)] {
            lanes.push(well.clone());
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
            lanes.push(asked("stranger", "reader", number));
        }
        assert_eq!(drain(&mut lanes).len(), AT_ONCE_IN_DOUBT_PER_HOST, "none of these ends");
        // Also where nothing was delivered to them yet.
        for standing in [Standing::Proven, Standing::New] {
            let delivery = turn("reader", 200, standing);
            lanes.push(delivery.clone());
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
                lanes.push(asked(&client, &format!("silent {number}"), number));
            }
            let begun = drain(&mut lanes);
            let share = AT_ONCE_NEW / (clients + 1);
            assert!(begun.len() >= clients * share && begun.len() < AT_ONCE_NEW, "{clients}");
            let honest = asked("honest", "reader", 5000);
            lanes.push(honest.clone());
            assert_eq!(drain(&mut lanes), [honest], "{clients}");
        }
    }

    /// Where a proxy hides who asks, all are one client.
    #[test]
    fn a_host_that_is_asked_for_often_keeps_no_other_from_its_turn() {
        let mut lanes = Lanes::default();
        for number in 0..200 {
            lanes.push(asked("proxy", "silent", number));
        }
        let honest = asked("proxy", "reader", 200);
        lanes.push(honest.clone());
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

    #[test]
    fn there_is_room_for_who_has_less_than_is_free() {
        let (mut shares, greedy, other): (_, Arc<str>, Arc<str>) =
            (Shares::default(), "greedy".into(), "other".into());
        for (owner, share) in [(&greedy, 50), (&other, 25)] {
            let mut taken = 0;
            while shares.has_room(Some(owner), 100) {
                shares.add(Some(owner));
                taken += 1;
            }
            assert_eq!(taken, share);
        }
        // What counts for nobody may have all that is left.
        while shares.has_room(None, 100) {
            shares.add(None);
        }
        assert_eq!(shares.all(), 100);
        assert!(!shares.has_room(Some(&"new".into()), 100));
        (0..50).for_each(|_| shares.remove(Some(&greedy)));
        assert!(shares.has_room(Some(&other), 100) && shares.owners.len() == 1);
    }
}
