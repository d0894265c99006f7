//! Which shards of polls this node has: decided anew about once a second from what all nodes see.
//!
//! Each node takes its part of the shards that nobody has, and gives back what it has beyond that. A node that has not
//! said for a whole lease that it lives is forgotten first, and only then are its shards taken: under its old row it
//! asks the node that writes for nothing more. Each claim names the fence that was seen, so that of two nodes one has
//! the shard.

use super::ask::get;
use super::connect::SqlError;
use super::lease::{LeaseState, LeaseWatch, Ownership};
use super::session::{Session, SessionShared};
use super::statements::{
    CLAIM_POLLS, FORGET_NODE, LEAVE_TO_WRITER, NODES, POLL_SHARDS, PUBLISH_STATUS,
    RELEASE_ALL_POLLS, RELEASE_POLLS, WANT_POLLS,
};
use crate::store::embedded::since_boot;
use crate::store::poll_shards::{HeldShard, PollShards, SHARDS, Shard, ShardRequests};
use crate::store::{KnownGateway, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often it is decided anew.
const CLAIM_EVERY: Duration = Duration::from_secs(1);
/// The most shards that a node which writes has because only it may poll them: others share the rest.
const MOST_OF_WRITER: usize = SHARDS as usize / 2;
/// For how long only the node that writes polls a shard once a node has found that it must, in milliseconds.
const WRITER_TIME: i64 = 86_400_000;

/// What a node lets the others know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeStatus {
    pub(super) polls: bool,
    pub(super) reaches: bool,
    /// Hashes of its settings.
    pub(super) settings: String,
}

/// A node, as it is seen at one look.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenNode {
    node: i64,
    name: Arc<str>,
    beat: i64,
    polls: bool,
    /// Whether it reaches publishers.
    reaches: bool,
    settings: String,
    writes: bool,
    is_live: bool,
}

/// A shard, likewise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeenShard {
    shard: Shard,
    owner: Option<i64>,
    fence: i64,
    /// The node that needs it.
    wanted: Option<i64>,
    /// Until when only the node that writes polls it, by the database's clock in milliseconds.
    writer_until: i64,
}

/// What a node does about the shards.
#[derive(Debug, Default, PartialEq, Eq)]
struct ClaimPlan {
    /// To take, each with the fence that was seen.
    take: Vec<(Shard, i64)>,
    give_back: Vec<Shard>,
}

/// What a node knows of itself.
struct OwnShards<'a> {
    node: i64,
    held: &'a BTreeMap<Shard, HeldShard>,
    /// Those that are not given back for their number alone.
    kept: &'a BTreeSet<Shard>,
}

/// Decides what to take and what to give back. `now`: by the database's clock, in milliseconds.
fn plan_claims(
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
    let for_writer = |seen: &SeenShard| if seen.writer_until > now { writer } else { None };
    let of_writer = shards.iter().filter(|seen| for_writer(seen).is_some() && seen.owner == writer);
    let of_writer = of_writer.count();
    let has_room = of_writer < most;
    // Of another node alone: the one that writes, or one that needs it.
    let is_for_another =
        |seen: &SeenShard| is_others(for_writer(seen).filter(|_| has_room).or(seen.wanted));
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
    let (wanted, needed): (Vec<&SeenShard>, Vec<&SeenShard>) =
        needed.into_iter().partition(|seen| seen.wanted == Some(own.node));
    let room = most.saturating_sub(of_writer);
    let needed = wanted.into_iter().chain(needed.into_iter().take(room));
    plan.take.extend(needed.map(|seen| (seen.shard, seen.fence)));
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
fn is_reached_by_others(own: i64, nodes: &[SeenNode]) -> bool {
    nodes.iter().any(|seen| seen.node != own && seen.is_live && seen.polls && seen.reaches)
}

/// Numbers and fences of shards, as statements take them.
fn columns(shards: impl Iterator<Item = (Shard, i64)>) -> (Vec<i32>, Vec<i64>) {
    shards.map(|(shard, fence)| (i32::from(shard.number()), fence)).unzip()
}

fn numbers(shards: &BTreeSet<Shard>) -> Vec<i32> {
    shards.iter().map(|shard| i32::from(shard.number())).collect()
}

impl Session {
    /// The shards that this node polls: its part of them, from the first call on. Which ones is decided when this
    /// returns. Blocks.
    pub(super) fn poll_shards(&self, is_writer: bool) -> Result<Arc<PollShards>, StoreError> {
        let mut kept = self.shards.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shards) = &*kept {
            return Ok(Arc::clone(shards));
        }
        let shards = Arc::new(PollShards::new(self.shared().lease, is_writer));
        let first = Arc::clone(&shards);
        let watches = self.run("share the polls", |shared| async move {
            shared.takes_part.store(true, Ordering::Release);
            shared.publish_status(true, &first).await?;
            let mut watches = HashMap::new();
            shared.claim_polls(&first, &mut watches).await?;
            Ok(watches)
        })?;
        self.spawn(take_part(Arc::downgrade(self.shared()), Arc::downgrade(&shards), watches));
        Ok(Arc::clone(kept.insert(shards)))
    }
}

/// Takes part in polling, until the session or the store ends.
async fn take_part(
    shared: Weak<SessionShared>,
    shards: Weak<PollShards>,
    mut watches: HashMap<i64, LeaseWatch>,
) {
    loop {
        sleep(CLAIM_EVERY).await;
        let (Some(shared), Some(shards)) = (shared.upgrade(), shards.upgrade()) else { return };
        if let Err(error) = shared.claim_polls(&shards, &mut watches).await {
            let error = error.of_store("share the polls", &shared.shown);
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::warn!(%error, ?cause, "it is not known which feeds this gateway polls");
        }
        drop((shared, shards));
    }
}

impl SessionShared {
    /// Decides once what this node polls.
    pub(super) async fn claim_polls(
        &self,
        shards: &PollShards,
        watches: &mut HashMap<i64, LeaseWatch>,
    ) -> Result<(), SqlError> {
        if shards.abstains() {
            // The store has stopped: nothing can be taken in.
            self.publish_status(false, shards).await?;
            self.execute(RELEASE_ALL_POLLS, &[&self.node]).await?;
            shards.confirm(since_boot(), BTreeMap::new());
            return Ok(());
        }
        self.send_requests(shards.take_requests(), shards).await?;
        let (mut nodes, now) = self.nodes(watches).await?;
        self.check_published(&nodes);
        // Also one that took no part any more: it may still have shards.
        for dead in nodes.iter_mut().filter(|node| !node.is_live) {
            match self.execute(FORGET_NODE, &[&dead.node, &dead.beat]).await? {
                1 => {
                    tracing::warn!(gateway = %dead.name, "a gateway is gone; the others poll its feeds")
                }
                // It has said that it lives, or another node has forgotten it: the next look tells.
                _ => dead.is_live = true,
            }
        }
        if self.is_forgotten.load(Ordering::Acquire) {
            // Others may have taken its shards, or be about to.
            self.execute(RELEASE_ALL_POLLS, &[&self.node]).await?;
            self.is_forgotten.store(false, Ordering::Release);
        }
        let seen = self.seen_shards(shards, &nodes).await?;
        self.note_gateways(&nodes, &seen, shards);
        let (held, kept) = (shards.held(), shards.kept());
        let own = OwnShards { node: self.node, held: &held, kept: &kept };
        // What is in flight may still end well: shards are given over one by one.
        let is_cut_off = shards.is_cut_off() && is_reached_by_others(self.node, &nodes);
        self.publish_status(!is_cut_off, shards).await?;
        let ClaimPlan { take, give_back } = match is_cut_off {
            true => ClaimPlan { take: Vec::new(), give_back: held.keys().copied().collect() },
            false => plan_claims(&own, &nodes, &seen, now),
        };
        shards.give_back(give_back);
        if !take.is_empty() {
            let (taken, fences) = columns(take.into_iter());
            self.execute(CLAIM_POLLS, &[&self.node, &taken, &fences]).await?;
            self.seen_shards(shards, &nodes).await?;
        }
        Ok(())
    }

    /// Publishes the status of this node, where that is another than it published last.
    async fn publish_status(&self, polls: bool, shards: &PollShards) -> Result<(), SqlError> {
        let (reaches, settings) = (shards.reaches(), shards.published_settings());
        let status = NodeStatus { polls, reaches, settings };
        if self.published().as_ref() != Some(&status) {
            // Before it is written: a node that joins anew meanwhile writes it as well.
            *self.published() = Some(status.clone());
            let NodeStatus { polls, reaches, settings } = status;
            let written =
                self.execute(PUBLISH_STATUS, &[&self.node, &polls, &reaches, &settings]).await;
            if written.is_err() {
                *self.published() = None;
            }
            written?;
        }
        Ok(())
    }

    /// Has the status published anew where the node's row has another one: it joined anew in between.
    fn check_published(&self, nodes: &[SeenNode]) {
        let Some(own) = nodes.iter().find(|seen| seen.node == self.node) else { return };
        let (polls, reaches, settings) = (own.polls, own.reaches, own.settings.clone());
        let mut published = self.published();
        if *published != Some(NodeStatus { polls, reaches, settings }) {
            *published = None;
        }
    }

    /// Notes which gateways live and the status of each, and reports settings that differ and did not before.
    fn note_gateways(&self, nodes: &[SeenNode], seen: &[SeenShard], shards: &PollShards) {
        let known = nodes.iter().filter(|node| node.is_live).map(|node| KnownGateway {
            name: node.name.to_string(),
            is_this: node.node == self.node,
            writes: node.writes,
            polls: node.polls,
            reaches: node.reaches,
            shards: seen.iter().filter(|seen| seen.owner == Some(node.node)).count(),
            differing: match node.node == self.node {
                true => Vec::new(),
                false => shards.differing(&node.settings),
            },
        });
        let known: Arc<[KnownGateway]> = known.collect();
        let before = shards.note_gateways(Arc::clone(&known));
        let known_before: Vec<String> =
            before.iter().filter_map(KnownGateway::difference).collect();
        let now = known.iter().filter_map(KnownGateway::difference);
        for difference in now.filter(|difference| !known_before.contains(difference)) {
            tracing::warn!(difference, "gateways over one database are to have the same settings");
        }
    }

    /// The nodes that there are, of which those that are silent for a whole lease do not live; and the time.
    async fn nodes(
        &self,
        watches: &mut HashMap<i64, LeaseWatch>,
    ) -> Result<(Vec<SeenNode>, i64), SqlError> {
        let rows = self.rows(NODES, &[]).await?;
        let (mut nodes, mut now) = (Vec::with_capacity(rows.len()), 0);
        for row in &rows {
            let (node, beat) = (get::<i64>(row, 0)?, get::<i64>(row, 2)?);
            let name: String = get(row, 1)?;
            now = get(row, 7)?;
            let seen = Ownership { owner: Some(node), name: String::new(), beat: Some(beat), now };
            let watch = watches.entry(node).or_default();
            let state = watch.note(&seen, (self.node, self.lease), Instant::now());
            let is_live = node == self.node || state != LeaseState::Free;
            nodes.push(SeenNode {
                node,
                name: name.into(),
                beat,
                polls: get(row, 3)?,
                reaches: get(row, 4)?,
                settings: get(row, 5)?,
                writes: get(row, 6)?,
                is_live,
            });
        }
        watches.retain(|node, _| nodes.iter().any(|seen| seen.node == *node));
        Ok((nodes, now))
    }

    /// The shards as they are, of which this node notes those that it has.
    async fn seen_shards(
        &self,
        shards: &PollShards,
        nodes: &[SeenNode],
    ) -> Result<Vec<SeenShard>, SqlError> {
        let asked = since_boot();
        let rows = self.rows(POLL_SHARDS, &[]).await?;
        let mut seen = Vec::with_capacity(rows.len());
        for row in &rows {
            let Some(shard) = Shard::numbered(get(row, 0)?) else { continue };
            seen.push(SeenShard {
                shard,
                owner: get(row, 1)?,
                fence: get(row, 2)?,
                wanted: get(row, 3)?,
                writer_until: get(row, 4)?,
            });
        }
        let of_own = seen.iter().filter(|seen| seen.owner == Some(self.node));
        let held = of_own.map(|seen| (seen.shard, seen.fence)).collect();
        let name = |node: i64| nodes.iter().find(|seen| seen.node == node).map(|seen| &seen.name);
        let owners =
            seen.iter().filter_map(|seen| Some((seen.shard, Arc::clone(name(seen.owner?)?))));
        shards.note_owners(owners.collect());
        // Others count the lease from the last sign of life.
        if !self.is_forgotten.load(Ordering::Acquire) {
            shards.confirm(asked.min(self.sign.last_answer()), held);
        }
        Ok(seen)
    }

    /// Does what the scheduler asks for.
    async fn send_requests(
        &self,
        requests: ShardRequests,
        shards: &PollShards,
    ) -> Result<(), SqlError> {
        let ShardRequests { ended, wanted, of_writer } = requests;
        if !ended.is_empty() {
            let held = shards.held();
            let leaving = ended.iter().filter_map(|shard| {
                held.get(shard).filter(|held| held.is_leaving).map(|held| (*shard, held.fence))
            });
            let (ended, fences) = columns(leaving);
            self.execute(RELEASE_POLLS, &[&self.node, &ended, &fences]).await?;
        }
        if !wanted.is_empty() {
            self.execute(WANT_POLLS, &[&self.node, &numbers(&wanted)]).await?;
        }
        if !of_writer.is_empty() {
            let until = self.now().await?.0.saturating_add(WRITER_TIME);
            self.execute(LEAVE_TO_WRITER, &[&numbers(&of_writer), &until]).await?;
        }
        Ok(())
    }
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
