//! What a node does about the shards of polls, by what it sees of all nodes and shards. Pure.

use crate::poll_shards::{HeldShard, SHARDS, Shard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most shards that a node which writes has because only it may poll them: others share the rest.
const MOST_OF_WRITER: usize = SHARDS as usize / 2;

/// A node, as it is seen at one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeenNode {
    pub(super) node: i64,
    pub(super) name: Arc<str>,
    pub(super) beat: i64,
    pub(super) polls: bool,
    /// Whether it reaches publishers.
    pub(super) reaches: bool,
    pub(super) settings: String,
    pub(super) writes: bool,
    pub(super) is_live: bool,
}

/// A shard, likewise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenShard {
    pub(super) shard: Shard,
    pub(super) owner: Option<i64>,
    pub(super) fence: i64,
    /// The node that needs it.
    pub(super) wanted: Option<i64>,
    /// Until when only the node that writes polls it, by the database's clock in milliseconds.
    pub(super) writer_until: i64,
}

/// What a node does about the shards.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ClaimPlan {
    /// To take, each with the fence that was seen.
    pub(super) take: Vec<(Shard, i64)>,
    pub(super) give_back: Vec<Shard>,
}

/// What a node knows of itself.
pub(super) struct OwnShards<'a> {
    pub(super) node: i64,
    pub(super) held: &'a BTreeMap<Shard, HeldShard>,
    /// Those that are not given back for their number alone.
    pub(super) kept: &'a BTreeSet<Shard>,
}

/// Decides what to take and what to give back. `now`: by the database's clock, in milliseconds.
pub(super) fn plan_claims(
    own: &OwnShards<'_>,
    nodes: &[SeenNode],
    shards: &[SeenShard],
    now: i64,
) -> ClaimPlan {
    let polling: BTreeSet<i64> =
        nodes.iter().filter(|node| node.polls && node.is_live).map(|node| node.node).collect();
    let writer = nodes.iter().find(|node| node.writes && node.polls && node.is_live);
    let writer = writer.map(|node| node.node);
    let part = usize::from(SHARDS).div_ceil(polling.len().max(1));
    let is_others =
        |node: Option<i64>| node.is_some_and(|node| node != own.node && polling.contains(&node));
    // Beyond a bound, what only the writer should poll is polled like the rest.
    let most = if polling.len() > 1 { part.max(MOST_OF_WRITER) } else { usize::from(SHARDS) };
    let only_writer = shards.iter().filter(|seen| writer.is_some() && seen.writer_until > now);
    let (of_writer, lacking): (Vec<&SeenShard>, Vec<&SeenShard>) =
        only_writer.partition(|seen| seen.owner == writer);
    let room = most.saturating_sub(of_writer.len());
    // Those that go there, the same as all nodes see it: no more are given back than it takes.
    let going: BTreeSet<Shard> = lacking.iter().take(room).map(|seen| seen.shard).collect();
    let for_writer = |seen: &SeenShard| {
        let is_its = seen.writer_until > now && seen.owner == writer;
        if is_its || going.contains(&seen.shard) { writer } else { None }
    };
    // Of another node alone: the one that writes, or one that needs it.
    let is_for_another =
        |seen: &SeenShard| is_others(for_writer(seen).filter(|_| room > 0).or(seen.wanted));
    let is_for_own =
        |seen: &SeenShard| seen.wanted == Some(own.node) || for_writer(seen) == Some(own.node);
    let is_held = |seen: &SeenShard| own.held.get(&seen.shard).is_some_and(|held| !held.is_leaving);
    let mut plan = ClaimPlan::default();
    plan.give_back.extend(
        shards.iter().filter(|seen| is_held(seen) && is_for_another(seen)).map(|seen| seen.shard),
    );
    let kept = own.held.values().filter(|held| !held.is_leaving).count();
    let mut count = kept.saturating_sub(plan.give_back.len());
    let is_free = |seen: &SeenShard| !own.held.contains_key(&seen.shard) && !is_others(seen.owner);
    let (needed, others): (Vec<&SeenShard>, Vec<&SeenShard>) = shards
        .iter()
        .filter(|seen| is_free(seen) && !is_for_another(seen))
        .partition(|seen| is_for_own(seen));
    plan.take.extend(needed.into_iter().map(|seen| (seen.shard, seen.fence)));
    count += plan.take.len();
    // Nodes that look at the same time begin at different places.
    let begin = usize::try_from(own.node.unsigned_abs() % u64::from(SHARDS)).unwrap_or_default();
    let (before, behind) = others.split_at(begin.min(others.len()));
    let room = part.saturating_sub(count);
    plan.take.extend(behind.iter().chain(before).take(room).map(|seen| (seen.shard, seen.fence)));
    let excess = count.saturating_sub(part);
    let is_spare = |seen: &&SeenShard| {
        is_held(seen)
            && !is_for_another(seen)
            && !is_for_own(seen)
            && !own.kept.contains(&seen.shard)
    };
    plan.give_back.extend(shards.iter().filter(is_spare).take(excess).map(|seen| seen.shard));
    // What is kept is given back only beyond the bound.
    let excess = count.saturating_sub(most);
    if plan.give_back.len() < excess {
        let left = excess - plan.give_back.len();
        let is_kept = |seen: &&SeenShard| is_held(seen) && !plan.give_back.contains(&seen.shard);
        let kept: Vec<Shard> = shards.iter().filter(is_kept).take(left).map(|s| s.shard).collect();
        plan.give_back.extend(kept);
    }
    // In one order at all nodes, so that none waits for another that waits for it.
    plan.take.sort_unstable();
    plan
}

/// Whether publishers are reached by another node than `own`.
pub(super) fn is_reached_by_others(own: i64, nodes: &[SeenNode]) -> bool {
    nodes.iter().any(|seen| seen.node != own && seen.is_live && seen.polls && seen.reaches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PART: usize = SHARDS as usize / 2;

    fn node(node: i64, writes: bool, is_live: bool) -> SeenNode {
        let (name, settings) = ("a gateway".into(), String::new());
        let (beat, polls, reaches) = (0, true, true);
        SeenNode { node, name, beat, polls, reaches, settings, writes, is_live }
    }

    fn free() -> Vec<SeenShard> {
        let free =
            |shard| SeenShard { shard, owner: None, fence: 1, wanted: None, writer_until: 0 };
        Shard::all().map(free).collect()
    }

    /// The shards of each of some nodes, which decide in turn.
    struct Fleet {
        shards: Vec<SeenShard>,
        held: BTreeMap<i64, BTreeMap<Shard, HeldShard>>,
        kept: BTreeSet<Shard>,
    }

    impl Fleet {
        fn new() -> Self {
            Self { shards: free(), held: BTreeMap::new(), kept: BTreeSet::new() }
        }

        /// One node decides; what it gives back is given back at once.
        fn decide(&mut self, own: i64, nodes: &[SeenNode]) {
            let held = self.held.entry(own).or_default();
            held.retain(|shard, of| {
                self.shards.iter().any(|seen| {
                    seen.shard == *shard && seen.owner == Some(own) && seen.fence == of.fence
                })
            });
            let known = OwnShards { node: own, held, kept: &self.kept };
            let plan = plan_claims(&known, nodes, &self.shards, 10);
            for (shard, fence) in plan.take {
                let seen = self.shards.iter_mut().find(|seen| seen.shard == shard).unwrap();
                assert_eq!(seen.fence, fence);
                let lives =
                    |owner: i64| nodes.iter().any(|node| node.node == owner && node.is_live);
                assert!(!seen.owner.is_some_and(lives), "{own} takes what another has");
                *seen = SeenShard { owner: Some(own), fence: fence + 1, wanted: None, ..*seen };
                held.insert(shard, HeldShard { fence: fence + 1, is_leaving: false });
            }
            for shard in plan.give_back {
                assert!(held.remove(&shard).is_some());
                self.shards.iter_mut().find(|seen| seen.shard == shard).unwrap().owner = None;
            }
        }

        fn of(&self, node: i64) -> usize {
            self.shards.iter().filter(|seen| seen.owner == Some(node)).count()
        }
    }

    #[test]
    fn two_nodes_have_half_each_and_one_takes_what_the_other_leaves() {
        let (mut fleet, both) = (Fleet::new(), [node(1, true, true), node(2, false, true)]);
        fleet.decide(1, &both[..1]);
        assert_eq!(fleet.of(1), usize::from(SHARDS));
        for own in [1, 2, 1, 2] {
            fleet.decide(own, &both);
        }
        assert_eq!((fleet.of(1), fleet.of(2)), (PART, PART));
        let before = fleet.shards.clone();
        fleet.decide(1, &both);
        fleet.decide(2, &both);
        assert_eq!(fleet.shards, before, "shards wander without a reason");
        fleet.decide(1, &[node(1, true, true), node(2, false, false)]);
        assert_eq!(fleet.of(1), usize::from(SHARDS));
    }

    #[test]
    fn what_a_node_needs_and_what_only_the_writer_polls_go_there() {
        let (mut fleet, both) = (Fleet::new(), [node(1, true, true), node(2, false, true)]);
        for own in [1, 2, 1, 2] {
            fleet.decide(own, &both);
        }
        let of = |node: i64| move |seen: &&mut SeenShard| seen.owner == Some(node);
        let wanted = fleet.shards.iter_mut().find(of(2)).unwrap();
        wanted.wanted = Some(1);
        let wanted = wanted.shard;
        let of_writer = fleet.shards.iter_mut().filter(of(2)).nth(1).unwrap();
        of_writer.writer_until = 11;
        let of_writer = of_writer.shard;
        for own in [2, 1, 1, 2] {
            fleet.decide(own, &both);
        }
        let owner = |shard| fleet.shards.iter().find(|seen| seen.shard == shard).unwrap().owner;
        assert_eq!(owner(of_writer), Some(1));
        assert_eq!((fleet.of(1), fleet.of(2)), (PART, PART));
        // It was needed once, and may be given back for another one.
        assert!(owner(wanted).is_some());
        // Without the node that writes, the other one polls it.
        fleet.decide(2, &both[1..]);
        assert_eq!(fleet.of(2), usize::from(SHARDS));
    }

    /// However many shards only the writer should poll, others have a part of the work.
    #[test]
    fn the_writer_has_at_most_half_of_the_shards_beside_others() {
        let nodes = [node(1, true, true), node(2, false, true), node(3, false, true)];
        let mut fleet = Fleet::new();
        fleet.decide(1, &nodes[..1]);
        fleet.shards.iter_mut().for_each(|seen| seen.writer_until = 11);
        fleet.kept = Shard::all().collect();
        for own in [1, 2, 3, 1, 2, 3] {
            fleet.decide(own, &nodes);
        }
        assert_eq!(fleet.of(1), MOST_OF_WRITER);
        assert_eq!(fleet.of(1) + fleet.of(2) + fleet.of(3), usize::from(SHARDS));
        let before = fleet.shards.clone();
        for own in [1, 2, 3] {
            fleet.decide(own, &nodes);
        }
        assert_eq!(fleet.shards, before, "shards wander without a reason");
    }

    #[test]
    fn no_more_is_given_back_for_the_writer_than_it_takes() {
        let nodes = [node(1, true, true), node(2, false, true), node(3, false, true)];
        let mut fleet = Fleet::new();
        fleet.decide(1, &nodes[..1]);
        fleet.shards.iter_mut().for_each(|seen| seen.writer_until = 11);
        fleet.kept = Shard::all().collect();
        for own in [1, 2, 3, 1, 2, 3] {
            fleet.decide(own, &nodes);
        }
        let before = [fleet.of(2), fleet.of(3)];
        // Another shard need not be the writer's any more, so that it has room for one.
        let own = fleet.shards.iter_mut().find(|seen| seen.owner == Some(1)).unwrap();
        own.writer_until = 0;
        for own in [2, 3] {
            fleet.decide(own, &nodes);
        }
        let given = before[0] + before[1] - fleet.of(2) - fleet.of(3);
        assert_eq!(given, 1, "of {before:?}");
        for own in [1, 2, 3, 1, 2, 3] {
            fleet.decide(own, &nodes);
        }
        assert_eq!(fleet.of(1) + fleet.of(2) + fleet.of(3), usize::from(SHARDS));
        let of_writer = |seen: &&SeenShard| seen.owner == Some(1) && seen.writer_until > 10;
        assert_eq!(fleet.shards.iter().filter(of_writer).count(), MOST_OF_WRITER);
        let before = fleet.shards.clone();
        for own in [1, 2, 3] {
            fleet.decide(own, &nodes);
        }
        assert_eq!(fleet.shards, before, "shards wander without a reason");
    }

    #[test]
    fn what_is_kept_is_not_given_back_for_the_number_alone() {
        let (mut fleet, both) = (Fleet::new(), [node(1, true, true), node(2, false, true)]);
        fleet.decide(1, &both[..1]);
        let three = [node(1, true, true), node(2, false, true), node(3, false, true)];
        fleet.decide(1, &both);
        fleet.decide(2, &both);
        fleet.kept = fleet.held[&1].keys().take(PART - 7).copied().collect();
        for own in [1, 2, 3, 1, 2, 3] {
            fleet.decide(own, &three);
        }
        assert_eq!(fleet.of(1), PART - 7);
    }

    proptest! {
        /// However nodes come and go, all shards are polled soon, each by one node, and evenly.
        #[test]
        fn shards_are_spread_over_the_nodes_that_live(
            lives in proptest::collection::vec(proptest::collection::vec(any::<bool>(), 4), 1..6),
        ) {
            let mut fleet = Fleet::new();
            for mut live in lives {
                live[0] = true;
                let nodes: Vec<SeenNode> = (1_i64..)
                    .zip(&live)
                    .map(|(number, is_live)| node(number * 97, number == 1, *is_live))
                    .collect();
                for _ in 0..3 {
                    for seen in nodes.iter().filter(|seen| seen.is_live) {
                        fleet.decide(seen.node, &nodes);
                    }
                }
                let count = nodes.iter().filter(|seen| seen.is_live).count();
                let part = usize::from(SHARDS).div_ceil(count);
                let mut sum = 0;
                for seen in nodes.iter().filter(|seen| seen.is_live) {
                    let of = fleet.of(seen.node);
                    prop_assert!(of <= part && of + count >= part, "{of} of {part}");
                    sum += of;
                }
                prop_assert_eq!(sum, usize::from(SHARDS));
            }
        }
    }
}
