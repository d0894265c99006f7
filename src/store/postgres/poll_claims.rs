//! Which shards of polls this node has: decided anew about once a second from what all nodes see.
//!
//! Each node takes its part of the shards that nobody has, and gives back what it has beyond that. A node that has not
//! said for a whole lease that it lives is forgotten first, and only then are its shards taken: under its old row it
//! asks the node that writes for nothing more. Each claim names the fence that was seen, so that of two nodes one has
//! the shard.

use super::ask::get;
use super::connect::SqlError;
use super::lease::{LeaseState, LeaseWatch, Ownership};
use super::poll_plan::{
    ClaimPlan, OwnShards, SeenNode, SeenShard, is_reached_by_others, plan_claims,
};
use super::session::{Session, SessionShared};
use super::statements::{
    CLAIM_POLLS, FORGET_NODE, LEAVE_TO_WRITER, NODES, POLL_SHARDS, PUBLISH_STATUS,
    RELEASE_ALL_POLLS, RELEASE_POLLS, WANT_POLLS,
};
use crate::embedded::since_boot;
use crate::poll_shards::{PollShards, Shard, ShardRequests};
use crate::{KnownGateway, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How often it is decided anew.
const CLAIM_EVERY: Duration = Duration::from_secs(1);
/// For how long only the node that writes polls a shard once a node has found that it must, in milliseconds.
const WRITER_TIME: i64 = 86_400_000;

/// What a node has seen of the others.
#[derive(Default)]
pub(super) struct ClaimMemory {
    watches: HashMap<i64, LeaseWatch>,
    /// When a node that had the shard and polled lived last, by the database's clock in milliseconds.
    polled: HashMap<Shard, i64>,
    /// Since when the store of this node has taken in nothing, although the database answers.
    stopped: Option<Instant>,
}

impl ClaimMemory {
    /// Notes who has the shards.
    fn note(&mut self, nodes: &[SeenNode], shards: &[SeenShard]) {
        let polling = nodes.iter().filter(|node| node.polls);
        let beats: HashMap<i64, i64> = polling.map(|node| (node.node, node.beat)).collect();
        let beat = |seen: &SeenShard| Some((seen.shard, *beats.get(&seen.owner?)?));
        self.polled.extend(shards.iter().filter_map(beat));
    }

    /// For how long nobody polls a shard that is free; without end where that is not known. `now`: by the database's
    /// clock, in milliseconds.
    fn unpolled(&self, shard: Shard, now: i64) -> Duration {
        self.polled.get(&shard).map_or(Duration::MAX, |polled| {
            Duration::from_millis(u64::try_from(now.saturating_sub(*polled)).unwrap_or_default())
        })
    }

    /// Whether the store has taken in nothing for longer than it takes to open it again.
    fn is_stopped(&mut self, is_stopped: bool, lease: Duration) -> bool {
        let now = Instant::now();
        self.stopped = is_stopped.then(|| self.stopped.unwrap_or(now));
        self.stopped.is_some_and(|since| now - since > lease)
    }
}

/// What a node lets the others know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NodeStatus {
    pub(super) polls: bool,
    pub(super) reaches: bool,
    /// Hashes of its settings.
    pub(super) settings: String,
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
        let (turn, kept) = &self.shards;
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shards) = kept.get() {
            return Ok(Arc::clone(shards));
        }
        let shards = Arc::new(PollShards::new(self.shared().lease, is_writer));
        let first = Arc::clone(&shards);
        let memory = self.run("share the polls", |shared| async move {
            shared.takes_part.store(true, Ordering::Release);
            shared.publish_status(true, &first).await?;
            let mut memory = ClaimMemory::default();
            shared.claim_polls(&first, &mut memory).await?;
            Ok(memory)
        })?;
        self.spawn(take_part(Arc::downgrade(self.shared()), Arc::downgrade(&shards), memory));
        Ok(Arc::clone(kept.get_or_init(|| shards)))
    }
}

/// Takes part in polling, until the session or the store ends.
async fn take_part(shared: Weak<SessionShared>, shards: Weak<PollShards>, mut memory: ClaimMemory) {
    loop {
        sleep(CLAIM_EVERY).await;
        let (Some(shared), Some(shards)) = (shared.upgrade(), shards.upgrade()) else { return };
        if let Err(error) = shared.claim_polls(&shards, &mut memory).await {
            memory.stopped = None;
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
        memory: &mut ClaimMemory,
    ) -> Result<(), SqlError> {
        if shards.abstains() {
            return self.leave_polls(shards).await;
        }
        self.send_requests(shards.take_requests(), shards).await?;
        let (mut nodes, now) = self.nodes(&mut memory.watches).await?;
        self.check_published(&nodes);
        // Also one that took no part any more: it may still have shards.
        for dead in nodes.iter_mut().filter(|node| !node.is_live) {
            match self.lease_pool.execute(FORGET_NODE, &[&dead.node, &dead.beat]).await? {
                1 => {
                    tracing::warn!(gateway = %dead.name, "a gateway is gone; the others poll its feeds")
                }
                // It has said that it lives, or another node has forgotten it: the next look tells.
                _ => dead.is_live = true,
            }
        }
        if self.is_forgotten.load(Ordering::Acquire) {
            // Others may have taken its shards, or be about to.
            self.lease_pool.execute(RELEASE_ALL_POLLS, &[&self.node]).await?;
            self.is_forgotten.store(false, Ordering::Release);
        }
        let seen = self.seen_shards(shards, &nodes).await?;
        memory.note(&nodes, &seen);
        self.note_gateways((&nodes, now), &seen, shards);
        if memory.is_stopped(shards.is_stopped(), self.lease) {
            // Where nobody else polls, it goes on with what it has once it takes in again.
            let is_other = |node: &SeenNode| node.node != self.node && node.is_live && node.polls;
            return match nodes.iter().any(is_other) {
                true => self.leave_polls(shards).await,
                false => self.publish_status(false, shards).await,
            };
        }
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
            shards.note_unpolled(
                take.iter().map(|(shard, _)| (*shard, memory.unpolled(*shard, now))),
            );
            let (taken, fences) = columns(take.into_iter());
            self.lease_pool.execute(CLAIM_POLLS, &[&self.node, &taken, &fences]).await?;
            self.seen_shards(shards, &nodes).await?;
        }
        Ok(())
    }

    /// Gives all shards back: first nothing of them is in flight any more.
    async fn leave_polls(&self, shards: &PollShards) -> Result<(), SqlError> {
        self.publish_status(false, shards).await?;
        shards.confirm(since_boot(), BTreeMap::new());
        self.lease_pool.execute(RELEASE_ALL_POLLS, &[&self.node]).await?;
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
            let written = self
                .lease_pool
                .execute(PUBLISH_STATUS, &[&self.node, &polls, &reaches, &settings])
                .await;
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
    fn note_gateways(
        &self,
        (nodes, now): (&[SeenNode], i64),
        seen: &[SeenShard],
        shards: &PollShards,
    ) {
        let known = nodes.iter().filter(|node| node.is_live).map(|node| KnownGateway {
            name: node.name.to_string(),
            is_this: node.node == self.node,
            writes: node.writes,
            polls: node.polls,
            reaches: node.reaches,
            shards: seen.iter().filter(|seen| seen.owner == Some(node.node)).count(),
            beat_age: u64::try_from(now.saturating_sub(node.beat))
                .map_or(Duration::ZERO, Duration::from_millis),
            differing: match node.node == self.node {
                true => Vec::new(),
                false => shards.differing(&node.settings),
            },
        });
        let known: Arc<[KnownGateway]> = known.collect();
        // Also one that seems to be gone: it may only be paused, or cut off.
        if nodes.len() > 1 {
            self.sign.note_others(since_boot());
        }
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
        let rows = self.lease_pool.rows(NODES, &[]).await?;
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
        let rows = self.lease_pool.rows(POLL_SHARDS, &[]).await?;
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
            self.lease_pool.execute(RELEASE_POLLS, &[&self.node, &ended, &fences]).await?;
        }
        if !wanted.is_empty() {
            self.lease_pool.execute(WANT_POLLS, &[&self.node, &numbers(&wanted)]).await?;
        }
        if !of_writer.is_empty() {
            let until = self.lease_pool.now().await?.0.saturating_add(WRITER_TIME);
            self.lease_pool.execute(LEAVE_TO_WRITER, &[&numbers(&of_writer), &until]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_was_polled_until_the_last_sign_of_life_of_whoever_polled_it() {
        let node = |node: i64, beat: i64, polls: bool| SeenNode {
            node,
            name: "a gateway".into(),
            beat,
            polls,
            reaches: true,
            settings: String::new(),
            writes: false,
            is_live: true,
        };
        let [one, two, three] = [1, 2, 3].map(|number| Shard::numbered(number).unwrap());
        let seen =
            |shard, owner| SeenShard { shard, owner, fence: 1, wanted: None, writer_until: 0 };
        let mut memory = ClaimMemory::default();
        let nodes = [node(7, 1_000, true), node(8, 2_000, false)];
        memory.note(&nodes, &[seen(one, Some(7)), seen(two, Some(8)), seen(three, None)]);
        let millis = Duration::from_millis;
        assert_eq!(memory.unpolled(one, 61_000), millis(60_000));
        assert_eq!(memory.unpolled(one, 500), Duration::ZERO, "by a clock that was set back");
        // Nobody says that it polled these.
        assert_eq!([two, three].map(|shard| memory.unpolled(shard, 3_000)), [Duration::MAX; 2]);
        // One that polls no more, and one that others have forgotten.
        memory.note(&[node(7, 5_000, false)], &[seen(one, Some(7)), seen(two, Some(9))]);
        assert_eq!(memory.unpolled(one, 61_000), millis(60_000));
        memory.note(&[node(7, 9_000, true)], &[seen(one, Some(7))]);
        memory.note(&[], &[seen(one, None)]);
        assert_eq!(memory.unpolled(one, 61_000), millis(52_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_opened_again_soon_has_not_stopped() {
        let (mut memory, lease) = (ClaimMemory::default(), Duration::from_secs(15));
        let mut stopped_after = async |seconds: u64, is_stopped: bool| {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            memory.is_stopped(is_stopped, lease)
        };
        assert!(!stopped_after(0, true).await && !stopped_after(15, true).await);
        assert!(stopped_after(1, true).await);
        assert!(!stopped_after(1, false).await && !stopped_after(1, true).await);
        assert!(!stopped_after(15, true).await && stopped_after(1, true).await);
    }
}
