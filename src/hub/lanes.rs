//! Who is called now: so many at once, and of one host no more than a few, so that slow callbacks
//! hold up nobody else. Pure.

use crate::websub::SubscriptionId;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Calls at once.
pub(super) const AT_ONCE: usize = 64;
/// Calls at once to one host.
pub(super) const AT_ONCE_PER_HOST: usize = 4;

#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<SubscriptionId>,
    running: usize,
    /// Whether it stands among those that may go on.
    ready: bool,
}

impl Lane {
    fn may_go(&self) -> bool {
        !self.waiting.is_empty() && self.running < AT_ONCE_PER_HOST
    }
}

/// A line of waiting subscriptions for each host. Each subscription waits once at most.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: HashMap<Arc<str>, Lane>,
    ready: VecDeque<Arc<str>>,
    running: usize,
}

impl Lanes {
    /// Lets a subscription wait for its turn.
    pub(super) fn push(&mut self, host: &Arc<str>, id: SubscriptionId) {
        let lane = self.lanes.entry(Arc::clone(host)).or_default();
        lane.waiting.push_back(id);
        if lane.may_go() && !lane.ready {
            lane.ready = true;
            self.ready.push_back(Arc::clone(host));
        }
    }

    /// The next whose turn it is; its host is to be given back by [`Lanes::done`].
    pub(super) fn next(&mut self) -> Option<(Arc<str>, SubscriptionId)> {
        if self.running >= AT_ONCE {
            return None;
        }
        let host = self.ready.pop_front()?;
        let lane = self.lanes.get_mut(&host)?;
        lane.ready = false;
        let id = lane.waiting.pop_front()?;
        lane.running += 1;
        self.running += 1;
        if lane.may_go() {
            lane.ready = true;
            self.ready.push_back(Arc::clone(&host));
        }
        Some((host, id))
    }

    /// A call to this host has ended.
    pub(super) fn done(&mut self, host: &Arc<str>) {
        let Some(lane) = self.lanes.get_mut(host) else { return };
        lane.running = lane.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        if lane.may_go() && !lane.ready {
            lane.ready = true;
            self.ready.push_back(Arc::clone(host));
        } else if lane.running == 0 && lane.waiting.is_empty() {
            self.lanes.remove(host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::websub::Manner;
    use url::Url;

    fn id(number: usize) -> SubscriptionId {
        SubscriptionId::of(Manner::WebSub, "t", &Url::parse(&format!("http://a/{number}")).unwrap())
    }

    fn drain(lanes: &mut Lanes) -> Vec<Arc<str>> {
        std::iter::from_fn(|| lanes.next()).map(|(host, _)| host).collect()
    }

    #[test]
    fn a_host_has_a_few_calls_and_the_others_go_past_it() {
        let (slow, quick): (Arc<str>, Arc<str>) = ("slow".into(), "quick".into());
        let mut lanes = Lanes::default();
        for number in 0..100 {
            lanes.push(&slow, id(number));
        }
        lanes.push(&quick, id(100));
        let begun = drain(&mut lanes);
        assert_eq!(begun.iter().filter(|host| **host == slow).count(), AT_ONCE_PER_HOST);
        assert!(begun.contains(&quick));
        lanes.done(&quick);
        assert!(drain(&mut lanes).is_empty());
        lanes.done(&slow);
        assert_eq!(drain(&mut lanes).len(), 1);
    }

    #[test]
    fn all_hosts_together_have_a_limit_and_everybody_has_a_turn() {
        let mut lanes = Lanes::default();
        let hosts: Vec<Arc<str>> = (0..200).map(|n| format!("host {n}").into()).collect();
        for (number, host) in hosts.iter().enumerate() {
            lanes.push(host, id(number));
        }
        let mut running = drain(&mut lanes);
        assert_eq!(running.len(), AT_ONCE);
        let mut turns = running.len();
        while let Some(host) = running.pop() {
            lanes.done(&host);
            let begun = drain(&mut lanes);
            turns += begun.len();
            running.extend(begun);
        }
        assert_eq!(turns, 200);
        assert!(lanes.lanes.is_empty() && lanes.ready.is_empty() && lanes.running == 0);
    }
}
