//! Who writes. It groups what is waiting, applies each all or nothing, passes one barrier for all of
//! them, and only then publishes and answers.

use super::plan::{ChangeTarget, plan};
use super::records::Records;
use super::request::{CommitRequest, PendingAnswer, Touches};
use super::shared::{Gate, StoreShared};
use super::{StorePlace, archives, keys, open, prune, purge, read, transfer};
use crate::clock::Clock;
use crate::model::{Attempt, FeedName, FeedRecord, FeedState, PollState, Revision, Time};
use crate::store::engine::{Class, Writes};
use crate::store::portable::ExportRecord;
use crate::store::purge_mark::PurgeMark;
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

/// Who writes.
pub(super) struct Committer {
    pub(super) records: Records,
    pub(super) shared: Arc<StoreShared>,
    pub(super) place: Arc<dyn StorePlace>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) committed: HashMap<FeedName, CommittedFeed>,
    pub(super) floors: HashMap<FeedName, PurgeMark>,
    /// The fence of this process's claim.
    pub(super) fence: u64,
    /// Tells this opening of the store from all others.
    pub(super) mark: Option<u32>,
    /// The last closed epoch, and when it was closed.
    pub(super) sealed: (Epoch, Time),
    /// What is being taken in from another store.
    pub(super) importing: Option<transfer::Importer>,
}

/// What one group has done so far.
pub(super) struct CommitGroup {
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

    /// Does what is asked for, passes one barrier for all of it, and answers.
    pub(super) fn serve(&mut self, requests: Vec<CommitRequest>) {
        let gates = self.gates(&requests);
        // A gate is poisoned only where the committer panicked, which ends it.
        let shut: Vec<_> =
            gates.iter().map(|gate| gate.write().unwrap_or_else(PoisonError::into_inner)).collect();
        let mut group = CommitGroup {
            epoch: Epoch(self.sealed.0.0 + 1),
            changes: 0,
            at: self.clock.now().max(self.sealed.1),
            feeds: BTreeSet::new(),
            wrote: false,
            reached: false,
        };
        let shared = Arc::clone(&self.shared);
        let health = || shared.health();
        let answers: Vec<PendingAnswer> =
            requests.into_iter().map(|request| request.apply(self, &mut group, &health)).collect();
        if group.wrote && health().is_ok() && self.pass() {
            self.publish(&group);
        }
        drop(shut);
        for answer in answers {
            answer(&health);
        }
    }

    /// The gates of everything that the requests may touch, each once.
    fn gates(&self, requests: &[CommitRequest]) -> Vec<Gate> {
        let mut feeds = BTreeSet::new();
        let mut lists = false;
        for request in requests {
            match &request.touches {
                Touches::Feed(feed) => drop(feeds.insert(feed)),
                Touches::Lists => lists = true,
                Touches::FeedAndLists(feed) => {
                    feeds.insert(feed);
                    lists = true;
                }
            }
        }
        let feeds = feeds.into_iter().filter_map(|feed| self.shared.published(feed));
        let lists = lists.then(|| Arc::clone(&self.shared.lists));
        feeds.map(|published| published.gate).chain(lists).collect()
    }

    fn claimed(&self, claim: &Claim) -> Result<(), CommitError> {
        let ours = claim.shard == 0 && claim.fence == self.fence;
        if ours { Ok(()) } else { Err(CommitError::Fenced) }
    }

    /// Commits a change.
    pub(super) fn commit(
        &mut self,
        claim: &Claim,
        prepared: &mut super::plan::Prepared,
        group: &mut CommitGroup,
    ) -> Result<Committed, CommitError> {
        self.claimed(claim)?;
        let feed = prepared.change.feed.clone();
        let before = self.committed.get(&feed);
        let state = before.map(|committed| &committed.state);
        check::check(&prepared.change, state, |id| {
            Ok(state.is_some() && self.records.contains(Class::Heads, &keys::item(&feed, id))?)
        })?;
        if archives::is_given(&self.records, &prepared.change)? {
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
                prepared.segments = archives::sealed(&self.records, &prepared.change, stored)?;
            }
        }
        let revision = Revision(base.0 + 1);
        prepared.change.state.revision = revision;
        lineage::go_on(&mut prepared.change, state, self.mark);
        let place = ChangeTarget {
            revision,
            next_event: before.map_or(0, |committed| committed.next_event),
            epoch: (group.epoch.0, group.changes),
            at: group.at,
        };
        let (mut writes, next_event) = plan(&self.records, prepared, state, &place)?;
        let ticked = prepared.change.tick.is_some();
        if ticked && floor.is_some() {
            writes.insert((Class::Floors, keys::feed(&feed)), None);
        }
        self.write(writes, group);
        if ticked {
            self.floors.remove(&feed);
            group.changes += 1;
        }
        group.feeds.insert(feed.clone());
        self.committed
            .insert(feed, CommittedFeed { state: prepared.change.state.clone(), next_event });
        Ok(Committed { revision, epoch: ticked.then_some(group.epoch) })
    }

    /// Writes poll states.
    pub(super) fn checkpoint(
        &mut self,
        claim: &Claim,
        states: &[PollState],
        group: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.claimed(claim)?;
        let mut writes = Writes::new();
        for state in states {
            self.records.put(&mut writes, Class::Polls, keys::feed(&state.feed), state)?;
        }
        self.write(writes, group);
        Ok(())
    }

    /// Takes out a part of a feed's past.
    pub(super) fn prune(
        &mut self,
        claim: &Claim,
        gone: &prune::PruneRequest,
        group: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.claimed(claim)?;
        let writes = prune::remove(&self.records, gone)?;
        self.write(writes, group);
        Ok(())
    }

    /// Takes epochs closed before `before` out of the log; how many.
    pub(super) fn trim(
        &mut self,
        claim: &Claim,
        before: Time,
        group: &mut CommitGroup,
    ) -> Result<usize, CommitError> {
        self.claimed(claim)?;
        let (writes, epochs) = prune::trim(&self.records, before, self.sealed.0)?;
        self.write(writes, group);
        Ok(epochs)
    }

    /// Takes in pieces of another store. Nothing else is asked of a store meanwhile.
    pub(super) fn import(
        &mut self,
        claim: &Claim,
        pieces: &[ExportRecord],
        end: bool,
        group: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.claimed(claim)?;
        let mut importer = match self.importing.take() {
            Some(importer) => importer,
            None if self.committed.is_empty() && open::is_empty(&self.records)? => {
                transfer::Importer::default()
            }
            None => {
                let path = self.records.engine().path().to_owned();
                return Err(CommitError::Store(StoreError::Occupied { path }));
            }
        };
        for piece in pieces {
            let mut writes = Writes::new();
            let came = importer.piece(&self.records, piece, &mut writes)?;
            self.write(writes, group);
            match came {
                transfer::ImportedRecord::Part => {}
                transfer::ImportedRecord::Feed(feed, committed) => {
                    self.committed.insert(feed.clone(), *committed);
                    group.feeds.insert(feed);
                }
                transfer::ImportedRecord::Floor(feed, floor) => {
                    self.floors.insert(feed, floor);
                }
                transfer::ImportedRecord::Epoch(epoch, at) => {
                    self.sealed = (epoch, at);
                    group.reached = true;
                }
            }
        }
        if end {
            importer.end()?;
        } else {
            self.importing = Some(importer);
        }
        Ok(())
    }

    /// Writes a feed's record.
    pub(super) fn put_feed(
        &mut self,
        record: &FeedRecord,
        group: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let mut writes = Writes::new();
        self.records.put(&mut writes, Class::Feeds, keys::feed(&record.name), record)?;
        self.write(writes, group);
        Ok(())
    }

    /// Notes that a large document of a feed is begun or over.
    pub(super) fn note_attempt(
        &mut self,
        attempt: &Attempt,
        group: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let (mut writes, key) = (Writes::new(), keys::feed(&attempt.feed));
        if attempt.is_over() {
            writes.insert((Class::Attempts, key), None);
        } else {
            self.records.put(&mut writes, Class::Attempts, key, attempt)?;
        }
        self.write(writes, group);
        Ok(())
    }

    /// Writes subscriptions of the hub, and takes out those that are over.
    pub(super) fn put_subscriptions(
        &mut self,
        subscriptions: &[Subscription],
        group: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let mut writes = Writes::new();
        for subscription in subscriptions {
            let key = keys::subscription(subscription.id());
            if subscription.is_over() {
                writes.insert((Class::Subscriptions, key), None);
            } else {
                self.records.put(&mut writes, Class::Subscriptions, key, subscription)?;
            }
        }
        self.write(writes, group);
        Ok(())
    }

    /// Forgets a feed.
    pub(super) fn purge(
        &mut self,
        feed: &FeedName,
        group: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let state = self.committed.get(feed).map(|committed| &committed.state);
        let floor = state.map(|state| {
            // Where the name of this gateway cannot be read, its updates of others' items do not count.
            let own = open::identity(&self.records).ok().flatten().map(|own| own.endpoint);
            let updates = read::most_updates(&self.records, feed, own.as_ref());
            PurgeMark::under(state, updates, self.floors.get(feed))
        });
        self.write(purge::forget(&self.records, feed, floor.as_ref())?, group);
        self.shared.health()?;
        let Some(floor) = floor else { return Ok(()) };
        self.committed.remove(feed);
        self.floors.insert(feed.clone(), floor);
        group.feeds.insert(feed.clone());
        // A half-removed feed must never be found without the note that it is being removed.
        if !self.pass() {
            return self.shared.health();
        }
        let swept = purge::sweep(&self.records, feed, &floor);
        swept.inspect_err(|error| self.shared.fail(error))
    }

    /// Applies writes. What a database that fails in a write has done is unknown: the store stops, and
    /// the answer is decided by its health, as for its whole group.
    fn write(&mut self, writes: Writes, group: &mut CommitGroup) {
        if writes.is_empty() {
            return;
        }
        group.wrote = true;
        if let Err(error) = self.records.engine().apply(writes) {
            self.shared.fail(&error);
        }
    }

    /// Passes the barrier; where that fails, the store stops.
    fn pass(&mut self) -> bool {
        let passed = self.records.engine().pass();
        passed.inspect_err(|error| self.shared.fail(error)).is_ok()
    }

    fn publish(&mut self, group: &CommitGroup) {
        for feed in &group.feeds {
            self.shared.publish(feed, self.committed.get(feed).map(|committed| &committed.state));
        }
        if group.changes > 0 {
            self.sealed = (group.epoch, group.at);
        }
        if group.changes > 0 || group.reached {
            let epoch = self.sealed.0;
            if let Err(error) = self.place.note(epoch) {
                // It serves only to notice damage; the store itself is durable.
                tracing::warn!(error = %error, "the store could not note what it has reached");
            }
            self.shared.sealed.send_replace(epoch);
        }
    }
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
