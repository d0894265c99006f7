//! The one thread that writes. It groups what is waiting, applies each as a transaction, passes
//! one barrier for all of them, and only then publishes and answers.

use super::archives;
use super::barrier::Barrier;
use super::folder::Reached;
use super::keys;
use super::plan::{ChangeTarget, encoded, plan};
use super::prune;
use super::purge;
use super::redo;
use super::request::{CommitRequest, PendingAnswer};
use super::shared::{Gate, StoreShared};
use super::transfer;
use super::trees::{Class, Trees, Writes};
use crate::clock::Clock;
use crate::model::{Attempt, FeedName, FeedRecord, FeedState, PollState, Revision, Time};
use crate::store::portable::ExportRecord;
use crate::store::purge_mark::PurgeMark;
use crate::store::record::SubscriptionRecord;
use crate::store::{Claim, CommitError, Committed, Epoch, StoreError, check, lineage};
use crate::websub::Subscription;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The most requests behind one barrier; also bounds an epoch.
const GROUP_LIMIT: usize = 256;
/// How far apart groups begin while more than one request comes at a time.
const GROUP_EVERY: Duration = Duration::from_millis(20);

/// A feed as the committer has it; never behind what is published.
pub(super) struct CommittedFeed {
    pub(super) state: FeedState,
    /// The number of its next event.
    pub(super) next_event: u64,
}

/// The thread that writes.
pub(super) struct Committer {
    pub(super) trees: Arc<Trees>,
    pub(super) shared: Arc<StoreShared>,
    pub(super) barrier: Box<dyn Barrier>,
    pub(super) reached: Reached,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) held: HashMap<FeedName, CommittedFeed>,
    pub(super) floors: HashMap<FeedName, PurgeMark>,
    /// The fence of this process's claim.
    pub(super) fence: u64,
    /// Tells this opening of the store from all others.
    pub(super) mark: Option<u32>,
    /// The last closed epoch, and when it was closed.
    pub(super) sealed: (Epoch, Time),
    /// What is being taken in from another store.
    pub(super) bringing: Option<transfer::Bringing>,
}

/// What one group has done so far.
struct CommitGroup {
    /// Its epoch, should a change make a tick, and how many changes stand in it.
    epoch: Epoch,
    changes: u32,
    at: Time,
    /// Feeds to publish.
    feeds: BTreeSet<FeedName>,
    wrote: bool,
    /// Epochs came from another store.
    reached: bool,
}

impl Committer {
    /// Serves requests until nobody can send any more, then passes a last barrier.
    pub(super) fn run(mut self, mut requests: mpsc::Receiver<CommitRequest>) {
        let mut last: Option<(Instant, usize)> = None;
        while let Some(first) = requests.blocking_recv() {
            let mut group = vec![first];
            gather(&mut group, &mut requests);
            // An isolated request goes at once. Where requests come together, waiting for the next
            // beat lets one barrier serve more of them.
            if let Some((begun, size)) = last
                && size.max(group.len()) > 1
                && group.len() < GROUP_LIMIT
            {
                std::thread::sleep(GROUP_EVERY.saturating_sub(begun.elapsed()));
                gather(&mut group, &mut requests);
            }
            last = Some((Instant::now(), group.len()));
            self.serve(group);
        }
        if self.shared.health().is_ok() {
            self.pass();
        }
    }

    fn serve(&mut self, group: Vec<CommitRequest>) {
        let gates = self.gates(&group);
        // A gate is poisoned only where this very thread panicked, which ends it.
        let shut: Vec<_> =
            gates.iter().map(|gate| gate.write().unwrap_or_else(PoisonError::into_inner)).collect();
        let mut round = CommitGroup {
            epoch: Epoch(self.sealed.0.0 + 1),
            changes: 0,
            at: self.clock.now().max(self.sealed.1),
            feeds: BTreeSet::new(),
            wrote: false,
            reached: false,
        };
        let answers: Vec<PendingAnswer> =
            group.into_iter().map(|request| self.apply(request, &mut round)).collect();
        if round.wrote && self.shared.health().is_ok() && self.pass() {
            self.publish(&round);
        }
        drop(shut);
        for answer in answers {
            answer.send(|| self.shared.health());
        }
    }

    /// The gates of everything that the group may touch, each once.
    fn gates(&self, group: &[CommitRequest]) -> Vec<Gate> {
        let mut feeds = BTreeSet::new();
        let mut lists = false;
        for request in group {
            match request {
                CommitRequest::Commit { prepared, .. } => drop(feeds.insert(&prepared.change.feed)),
                CommitRequest::Prune { feed, .. } => drop(feeds.insert(feed)),
                CommitRequest::Purge { feed, .. } => {
                    feeds.insert(feed);
                    lists = true;
                }
                CommitRequest::Checkpoint { .. }
                | CommitRequest::PutFeed { .. }
                | CommitRequest::NoteAttempt { .. }
                | CommitRequest::PutSubscriptions { .. }
                | CommitRequest::Bring { .. }
                | CommitRequest::Trim { .. } => lists = true,
            }
        }
        let feeds = feeds.into_iter().filter_map(|feed| self.shared.published(feed));
        let lists = lists.then(|| Arc::clone(&self.shared.lists));
        feeds.map(|published| published.gate).chain(lists).collect()
    }

    fn apply(&mut self, request: CommitRequest, round: &mut CommitGroup) -> PendingAnswer {
        let health = self.shared.health();
        match request {
            CommitRequest::Commit { claim, mut prepared, reply } => {
                let done = health
                    .map_err(CommitError::Store)
                    .and_then(|()| self.commit(&claim, &mut prepared, round));
                PendingAnswer::Commit(reply, done)
            }
            CommitRequest::Checkpoint { claim, states, reply } => {
                let done = health
                    .map_err(CommitError::Store)
                    .and_then(|()| self.checkpoint(&claim, &states, round));
                PendingAnswer::Checkpoint(reply, done)
            }
            CommitRequest::Prune { claim, gone, reply, .. } => {
                let done = health
                    .map_err(CommitError::Store)
                    .and_then(|()| self.prune(&claim, &gone, round));
                PendingAnswer::Checkpoint(reply, done)
            }
            CommitRequest::Trim { claim, before, reply } => {
                let done = health
                    .map_err(CommitError::Store)
                    .and_then(|()| self.trim(&claim, before, round));
                PendingAnswer::Trim(reply, done)
            }
            CommitRequest::PutFeed { record, reply } => {
                let done = health.and_then(|()| self.put_feed(&record, round));
                PendingAnswer::Plain(reply, done)
            }
            CommitRequest::NoteAttempt { attempt, reply } => {
                let done = health.and_then(|()| self.note_attempt(&attempt, round));
                PendingAnswer::Plain(reply, done)
            }
            CommitRequest::PutSubscriptions { subscriptions, reply } => {
                let done = health.and_then(|()| self.put_subscriptions(&subscriptions, round));
                PendingAnswer::Plain(reply, done)
            }
            CommitRequest::Bring { claim, pieces, end, reply } => {
                let done = health
                    .map_err(CommitError::Store)
                    .and_then(|()| self.bring(&claim, &pieces, end, round));
                PendingAnswer::Checkpoint(reply, done)
            }
            CommitRequest::Purge { feed, reply } => {
                let done = health.and_then(|()| self.purge(&feed, round));
                PendingAnswer::Plain(reply, done)
            }
        }
    }

    fn claimed(&self, claim: &Claim) -> Result<(), CommitError> {
        let ours = claim.shard == 0 && claim.fence == self.fence;
        if ours { Ok(()) } else { Err(CommitError::Fenced) }
    }

    fn commit(
        &mut self,
        claim: &Claim,
        prepared: &mut super::plan::Prepared,
        round: &mut CommitGroup,
    ) -> Result<Committed, CommitError> {
        self.claimed(claim)?;
        let feed = prepared.change.feed.clone();
        let before = self.held.get(&feed);
        let state = before.map(|held| &held.state);
        check::check(&prepared.change, state, |id| {
            let found = self.trees.tree(Class::Heads).contains_key(keys::item(&feed, id));
            Ok(state.is_some() && found.map_err(|error| self.trees.failed("read", error))?)
        })?;
        if archives::is_given(&self.trees, &prepared.change)? {
            let what = "it gives an archive an id that another has".to_owned();
            return Err(check::invalid(&prepared.change, what));
        }
        let mut base = prepared.change.base;
        let floor = self.floors.get(&feed);
        if let Some(floor) = floor {
            if state.is_none() {
                base = floor.revision;
            }
            floor.lift(&mut prepared.change, state.is_none());
            // What it seals bears the lifted ticks. Nothing was sealed before; but the document around
            // the entries may be that of an earlier change, where this is not the first.
            // Text is taken out of archives only where a tick was committed; nothing is lifted then.
            if prepared.change.redacted.is_empty() {
                let stored = state.is_some();
                prepared.segments = archives::sealed(&self.trees, &prepared.change, stored)?;
            }
        }
        let revision = Revision(base.0 + 1);
        prepared.change.state.revision = revision;
        lineage::go_on(&mut prepared.change, state, self.mark);
        let place = ChangeTarget {
            revision,
            next_event: before.map_or(0, |held| held.next_event),
            epoch: (round.epoch.0, round.changes),
            at: round.at,
        };
        let (mut writes, next_event) = plan(&self.trees, prepared, state, &place)?;
        let ticked = prepared.change.tick.is_some();
        if ticked && floor.is_some() {
            self.trees.remove(&mut writes, Class::Floors, keys::feed(&feed))?;
        }
        self.write(&writes, round)?;
        if ticked {
            self.floors.remove(&feed);
            round.changes += 1;
        }
        round.feeds.insert(feed.clone());
        self.held.insert(feed, CommittedFeed { state: prepared.change.state.clone(), next_event });
        Ok(Committed { revision, epoch: ticked.then_some(round.epoch) })
    }

    fn checkpoint(
        &mut self,
        claim: &Claim,
        states: &[PollState],
        round: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.claimed(claim)?;
        let mut writes = Writes::new();
        for state in states {
            let what = || format!("the poll state of the feed {}", state.feed);
            let record = encoded(&self.trees, state, what)?;
            self.trees.put(&mut writes, Class::Polls, keys::feed(&state.feed), &record)?;
        }
        Ok(self.write(&writes, round)?)
    }

    fn prune(
        &mut self,
        claim: &Claim,
        gone: &prune::PruneRequest,
        round: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.claimed(claim)?;
        let writes = prune::remove(&self.trees, gone)?;
        Ok(self.write(&writes, round)?)
    }

    fn trim(
        &mut self,
        claim: &Claim,
        before: Time,
        round: &mut CommitGroup,
    ) -> Result<usize, CommitError> {
        self.claimed(claim)?;
        let (writes, epochs) = prune::trim(&self.trees, before, self.sealed.0)?;
        self.write(&writes, round)?;
        Ok(epochs)
    }

    /// Takes in pieces of another store. Nothing else is asked of a store meanwhile.
    fn bring(
        &mut self,
        claim: &Claim,
        pieces: &[ExportRecord],
        end: bool,
        round: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.claimed(claim)?;
        let mut bringing = match self.bringing.take() {
            Some(bringing) => bringing,
            None if self.held.is_empty() && transfer::is_empty(&self.trees) => {
                transfer::Bringing::default()
            }
            None => {
                let path = self.trees.path().to_owned();
                return Err(CommitError::Store(StoreError::Occupied { path }));
            }
        };
        for piece in pieces {
            let mut writes = Writes::new();
            let came = bringing.piece(&self.trees, piece, &mut writes)?;
            self.write(&writes, round)?;
            match came {
                transfer::ImportedRecord::Part => {}
                transfer::ImportedRecord::Feed(feed, held) => {
                    self.held.insert(feed.clone(), *held);
                    round.feeds.insert(feed);
                }
                transfer::ImportedRecord::Floor(feed, floor) => {
                    self.floors.insert(feed, floor);
                }
                transfer::ImportedRecord::Epoch(epoch, at) => {
                    self.sealed = (epoch, at);
                    round.reached = true;
                }
            }
        }
        if end {
            bringing.end()?;
        } else {
            self.bringing = Some(bringing);
        }
        Ok(())
    }

    fn put_feed(&mut self, record: &FeedRecord, round: &mut CommitGroup) -> Result<(), StoreError> {
        let what = || format!("the record of the feed {}", record.name);
        let row = encoded(&self.trees, record, what)?;
        let mut writes = Writes::new();
        self.trees.put(&mut writes, Class::Feeds, keys::feed(&record.name), &row)?;
        self.write(&writes, round)
    }

    fn note_attempt(
        &mut self,
        attempt: &Attempt,
        round: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let (mut writes, key) = (Writes::new(), keys::feed(&attempt.feed));
        if attempt.is_over() {
            self.trees.remove(&mut writes, Class::Attempts, key)?;
        } else {
            let what = || format!("the mark of the feed {}", attempt.feed);
            let row = encoded(&self.trees, attempt, what)?;
            self.trees.put(&mut writes, Class::Attempts, key, &row)?;
        }
        self.write(&writes, round)
    }

    fn put_subscriptions(
        &mut self,
        subscriptions: &[Subscription],
        round: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let mut writes = Writes::new();
        for subscription in subscriptions {
            let key = keys::subscription(subscription.id());
            if subscription.is_over() {
                self.trees.remove(&mut writes, Class::Subscriptions, key)?;
                continue;
            }
            let what = || format!("a subscription to {}", subscription.topic);
            let row = encoded(&self.trees, &SubscriptionRecord::from(subscription), what)?;
            self.trees.put(&mut writes, Class::Subscriptions, key, &row)?;
        }
        self.write(&writes, round)
    }

    fn purge(&mut self, feed: &FeedName, round: &mut CommitGroup) -> Result<(), StoreError> {
        let state = self.held.get(feed).map(|held| &held.state);
        let floor = state.map(|state| {
            // Where the name of this gateway cannot be read, its updates of others' items do not count.
            let own =
                super::open::identity(&self.trees, None).ok().flatten().map(|own| own.endpoint);
            let updates = super::read::most_updates(&self.trees, feed, own.as_ref());
            PurgeMark::under(state, updates, self.floors.get(feed))
        });
        let writes = purge::forget(&self.trees, feed, floor.as_ref())?;
        self.write(&writes, round)?;
        let Some(floor) = floor else { return Ok(()) };
        self.held.remove(feed);
        self.floors.insert(feed.clone(), floor);
        round.feeds.insert(feed.clone());
        // A half-removed feed must never be found without the note that it is being removed.
        if !self.pass() {
            return self.shared.health();
        }
        let swept = purge::sweep(&self.trees, feed, &floor);
        swept.inspect_err(|error| self.shared.fail(error))
    }

    /// Applies writes. What an engine that fails in a write has done is unknown: the store stops.
    fn write(&mut self, writes: &Writes, round: &mut CommitGroup) -> Result<(), StoreError> {
        if writes.is_empty() {
            return Ok(());
        }
        round.wrote = true;
        let (trees, barrier) = (&*self.trees, &mut *self.barrier);
        match redo::apply(trees, writes, &mut || {
            barrier.pass().map_err(|error| undurable(trees, &error))
        }) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.shared.fail(&error);
                // The answer is decided by the health of the store, as for its whole group.
                Ok(())
            }
        }
    }

    /// Passes the barrier; where that fails, the store stops.
    fn pass(&mut self) -> bool {
        match self.barrier.pass() {
            Ok(()) => true,
            Err(source) => {
                self.shared.fail(&undurable(&self.trees, &source));
                false
            }
        }
    }

    fn publish(&mut self, round: &CommitGroup) {
        for feed in &round.feeds {
            self.shared.publish(feed, self.held.get(feed).map(|held| &held.state));
        }
        if round.changes > 0 {
            self.sealed = (round.epoch, round.at);
        }
        if round.changes > 0 || round.reached {
            let epoch = self.sealed.0;
            if let Err(error) = self.reached.note(epoch) {
                // It serves only to notice damage; the store itself is durable.
                tracing::warn!(error = %error, "the store could not note what it has reached");
            }
            self.shared.sealed.send_replace(epoch);
        }
    }
}

/// The error of a barrier that failed.
fn undurable(trees: &Trees, source: &std::io::Error) -> StoreError {
    let source = std::io::Error::new(source.kind(), format!("{}: {source}", trees.path()));
    StoreError::Io { doing: "make a write durable", source }
}

/// Takes what is waiting, as far as the group has room.
fn gather(group: &mut Vec<CommitRequest>, requests: &mut mpsc::Receiver<CommitRequest>) {
    while group.len() < GROUP_LIMIT {
        match requests.try_recv() {
            Ok(request) => group.push(request),
            Err(_) => break,
        }
    }
}
