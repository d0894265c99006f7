//! Who is called now: so many at once, and of one host no more than a few, so that slow callbacks
//! hold up nobody else. Pure.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv6Addr;
use std::sync::Arc;
use tidegate_core::websub::SubscriptionId;
use tidegate_net::fetch::{self, AllowPrivate};
use url::Url;

/// Calls at once.
pub(super) const AT_ONCE: usize = 64;
/// Calls at once to one host.
pub(super) const AT_ONCE_PER_HOST: usize = 4;
/// Calls at once, of all, to callbacks whose last call failed, or that have agreed to nothing yet: many
/// that time out, or that strangers name, leave the rest of the calls to those that answer.
pub(super) const AT_ONCE_IN_TROUBLE: usize = 16;
/// Of the calls at once to one host, those to such callbacks.
pub(super) const AT_ONCE_IN_TROUBLE_PER_HOST: usize = AT_ONCE_PER_HOST / 2;

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

/// A subscription that waits for its turn, or has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaneTurn {
    /// The host of its callback.
    pub(super) host: Arc<str>,
    /// Which.
    pub(super) id: SubscriptionId,
    /// Whether the last call of its callback failed, or it has agreed to nothing yet.
    pub(super) troubled: bool,
}

/// The waiting of one host, either those that are well or those in trouble.
#[derive(Debug, Default)]
struct HostLane {
    waiting: VecDeque<SubscriptionId>,
    /// Whether the host stands among those that may go on.
    ready: bool,
}

#[derive(Debug, Default)]
struct Lane {
    well: HostLane,
    troubled: HostLane,
    running: usize,
    in_trouble: usize,
}

impl Lane {
    /// Whether another call may begin.
    fn is_free(&self, troubled: bool) -> bool {
        self.running < AT_ONCE_PER_HOST
            && (!troubled || self.in_trouble < AT_ONCE_IN_TROUBLE_PER_HOST)
    }

    fn line(&mut self, troubled: bool) -> &mut HostLane {
        if troubled { &mut self.troubled } else { &mut self.well }
    }
}

/// Lines of waiting subscriptions for each host. Each subscription waits once at most.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: HashMap<Arc<str>, Lane>,
    well: VecDeque<Arc<str>>,
    troubled: VecDeque<Arc<str>>,
    running: usize,
    in_trouble: usize,
    /// Whether those in trouble are looked at first: every other time, so that neither starves.
    turned: bool,
}

impl Lanes {
    /// Lets a subscription wait for its turn.
    pub(super) fn push(&mut self, turn: &LaneTurn) {
        let lane = self.lanes.entry(Arc::clone(&turn.host)).or_default();
        lane.line(turn.troubled).waiting.push_back(turn.id);
        self.make_ready(&turn.host, turn.troubled);
    }

    /// The next whose turn it is; to be given back by [`Lanes::done`].
    pub(super) fn next(&mut self) -> Option<LaneTurn> {
        if self.running >= AT_ONCE {
            return None;
        }
        self.turned = !self.turned;
        self.next_turn(self.turned).or_else(|| self.next_turn(!self.turned))
    }

    /// A call has ended.
    pub(super) fn done(&mut self, turn: &LaneTurn) {
        let Some(lane) = self.lanes.get_mut(&turn.host) else { return };
        lane.running = lane.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        if turn.troubled {
            lane.in_trouble = lane.in_trouble.saturating_sub(1);
            self.in_trouble = self.in_trouble.saturating_sub(1);
        }
        let waits = !lane.well.waiting.is_empty() || !lane.troubled.waiting.is_empty();
        if lane.running > 0 || waits {
            self.make_ready(&turn.host, false);
            self.make_ready(&turn.host, true);
        } else {
            self.lanes.remove(&turn.host);
        }
    }

    fn hosts(&mut self, troubled: bool) -> &mut VecDeque<Arc<str>> {
        if troubled { &mut self.troubled } else { &mut self.well }
    }

    /// Lets a host stand among those that may go on, where it may.
    fn make_ready(&mut self, host: &Arc<str>, troubled: bool) {
        let Some(lane) = self.lanes.get_mut(host) else { return };
        let free = lane.is_free(troubled);
        let line = lane.line(troubled);
        if free && !line.waiting.is_empty() && !line.ready {
            line.ready = true;
            self.hosts(troubled).push_back(Arc::clone(host));
        }
    }

    fn next_turn(&mut self, troubled: bool) -> Option<LaneTurn> {
        if troubled && self.in_trouble >= AT_ONCE_IN_TROUBLE {
            return None;
        }
        // Each round takes one away.
        while let Some(host) = self.hosts(troubled).pop_front() {
            let Some(lane) = self.lanes.get_mut(&host) else { continue };
            let free = lane.is_free(troubled);
            let line = lane.line(troubled);
            line.ready = false;
            // Its other line may have used up what the host may have; then it is ready again later.
            let Some(id) = free.then(|| line.waiting.pop_front()).flatten() else { continue };
            lane.running += 1;
            lane.in_trouble += usize::from(troubled);
            self.running += 1;
            self.in_trouble += usize::from(troubled);
            self.make_ready(&host, troubled);
            return Some(LaneTurn { host, id, troubled });
        }
        None
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

    fn turn(host: &Arc<str>, number: usize, troubled: bool) -> LaneTurn {
        LaneTurn { host: Arc::clone(host), id: id(number), troubled }
    }

    fn drain(lanes: &mut Lanes) -> Vec<LaneTurn> {
        std::iter::from_fn(|| lanes.next()).collect()
    }

    #[test]
    fn a_host_has_a_few_calls_and_the_others_go_past_it() {
        let (slow, quick): (Arc<str>, Arc<str>) = ("slow".into(), "quick".into());
        let mut lanes = Lanes::default();
        for number in 0..100 {
            lanes.push(&turn(&slow, number, number % 3 == 0));
        }
        lanes.push(&turn(&quick, 100, false));
        let begun = drain(&mut lanes);
        assert_eq!(begun.iter().filter(|turn| turn.host == slow).count(), AT_ONCE_PER_HOST);
        let of_quick = turn(&quick, 100, false);
        assert!(begun.contains(&of_quick));
        lanes.done(&of_quick);
        assert!(drain(&mut lanes).is_empty());
        lanes.done(begun.iter().find(|turn| turn.host == slow).unwrap());
        assert_eq!(drain(&mut lanes).len(), 1);
    }

    #[test]
    fn all_hosts_together_have_a_limit_and_everybody_has_a_turn() {
        let mut lanes = Lanes::default();
        let hosts: Vec<Arc<str>> = (0..200).map(|n| format!("host {n}").into()).collect();
        for (number, host) in hosts.iter().enumerate() {
            lanes.push(&turn(host, number, false));
            lanes.push(&turn(host, 200 + number, true));
        }
        let mut running = drain(&mut lanes);
        assert_eq!(running.len(), AT_ONCE);
        let mut turns = running.len();
        while let Some(ended) = running.pop() {
            lanes.done(&ended);
            let begun = drain(&mut lanes);
            turns += begun.len();
            running.extend(begun);
        }
        assert_eq!(turns, 400);
        assert!(lanes.lanes.is_empty() && lanes.well.is_empty() && lanes.troubled.is_empty());
        assert_eq!((lanes.running, lanes.in_trouble), (0, 0));
    }

    #[test]
    fn callbacks_in_trouble_share_a_part_of_the_calls() {
        let mut lanes = Lanes::default();
        let hosts: Vec<Arc<str>> = (0..100).map(|n| format!("slow {n}").into()).collect();
        for (number, host) in hosts.iter().enumerate() {
            lanes.push(&turn(host, number, true));
        }
        let begun = drain(&mut lanes);
        assert_eq!(begun.len(), AT_ONCE_IN_TROUBLE, "none of these ends");
        let quick: Arc<str> = "quick".into();
        lanes.push(&turn(&quick, 100, false));
        assert_eq!(lanes.next(), Some(turn(&quick, 100, false)));
        assert_eq!(lanes.next(), None);
        lanes.done(&begun[0]);
        assert!(lanes.next().is_some_and(|turn| turn.troubled));
    }

    #[test]
    fn what_strangers_ask_for_leaves_calls_to_those_who_have_agreed() {
        let (mut lanes, host): (_, Arc<str>) = (Lanes::default(), "reader".into());
        for number in 0..200 {
            lanes.push(&turn(&host, number, true));
        }
        assert_eq!(drain(&mut lanes).len(), AT_ONCE_IN_TROUBLE_PER_HOST, "none of these ends");
        let delivery = turn(&host, 200, false);
        lanes.push(&delivery);
        assert_eq!(drain(&mut lanes), std::slice::from_ref(&delivery));
        lanes.done(&delivery);
        assert!(drain(&mut lanes).is_empty());
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
