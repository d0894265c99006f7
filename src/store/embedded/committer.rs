//! The committer. On disk and in memory it groups the waiting requests, applies each all or nothing, passes one
//! barrier for the group, and only then publishes and answers ([`requests`]). In a database that other gateways write
//! to as well, each request is a transaction ([`super::transactions`]).

mod requests;

pub(super) use self::requests::CommitRequest;
pub(crate) use self::requests::WriteScope;

use super::feed::FeedRecords;
use super::plan::PlannedCommit;
use super::records::{RecordCodec, Records};
use super::redo::PORTION;
use super::shared::StoreShared;
use super::{keys, open, prune, purge, read, transfer};
use crate::disk::OpenFolder;
use crate::engine::{Class, Writes};
use crate::portable::ExportRecord;
use crate::purge_mark::PurgeMark;
use crate::record::StateRecord;
use crate::{
    AppliedOrigins, CommitError, Committed, Epoch, FeedList, LoggedChange, StoreError, StoreOrigin,
    SubscriptionChange,
};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tidegate_core::model::{Attempt, FeedName, FeedRecord, PollState, Revision, Time};
use tidegate_core::websub::Subscription;

/// Does all writes of a store.
pub(super) struct Committer {
    pub(super) records: Records,
    pub(super) shared: Arc<StoreShared>,
    folder: Option<Arc<OpenFolder>>,
    /// How often records outside the content of feeds were written.
    pub(super) list_writes: u64,
    /// The last closed epoch, and when it was closed.
    pub(super) newest: (Epoch, Time),
    /// The group of requests that is being carried out.
    pub(super) group: CommitGroup,
}

/// The changes of one group of requests, which are published after its barrier.
#[derive(Default)]
pub(super) struct CommitGroup {
    /// The epoch of the changes in it, and its closing time; used only if a change makes a tick.
    epoch: Epoch,
    pub(super) at: Time,
    /// The changes that the change log announces in this epoch.
    pub(super) logged: Vec<LoggedChange>,
    /// Feeds to publish, each with its new head; `None` where it was purged.
    pub(super) feeds: BTreeMap<FeedName, Option<StateRecord>>,
    /// Records of feeds to show; `None` where the feed was purged.
    pub(super) listed: Vec<(FeedName, Option<Arc<FeedRecord>>)>,
    wrote: bool,
    /// The last epoch that came from another store.
    pub(super) reached: Option<(Epoch, Time)>,
    /// Whether the identity changed.
    pub(super) is_renamed: bool,
    /// Whether it imports another store, and whether that ends in it.
    pub(super) imports: Option<bool>,
}

impl CommitGroup {
    /// The group after the epoch `newest`, at the time `now`.
    fn behind(newest: (Epoch, Time), now: Time) -> Self {
        Self { epoch: Epoch(newest.0.0 + 1), at: now.max(newest.1), ..Self::default() }
    }
}

impl Committer {
    /// A committer with an empty group. `newest`: the last closed epoch, and its closing time.
    pub(super) fn new(
        records: Records,
        folder: Option<Arc<OpenFolder>>,
        shared: &Arc<StoreShared>,
        (list_writes, newest): (u64, (Epoch, Time)),
    ) -> Self {
        let shared = Arc::clone(shared);
        let group = CommitGroup::behind(newest, shared.clock.now());
        Self { records, shared, folder, list_writes, newest, group }
    }

    /// Whether no other process writes to the database. Otherwise the database numbers the change log, and a gateway
    /// publishes only what it read from there.
    fn is_alone(&self) -> bool {
        !self.records.engine().is_shared()
    }

    /// The state of a feed as it is stored.
    pub(super) fn head(&self, feed: &FeedName) -> Result<Option<StateRecord>, StoreError> {
        self.records.record(Class::States, &keys::feed(feed))
    }

    /// Commits a change; a conflict where the feed is not at the state that it was planned over.
    pub(super) fn commit(&mut self, planned: PlannedCommit) -> Result<Committed, CommitError> {
        let PlannedCommit { feed, mut writes, base, head, logged } = planned;
        if self.is_alone() {
            let published = self.shared.published(&feed);
            let now = published
                .map_or((Revision(0), 0), |published| (published.revision, published.write));
            if now != base {
                return Err(CommitError::Conflict(now.0));
            }
        }
        let revision = head.state.revision;
        self.records.put(&mut writes, Class::States, keys::feed(&feed), &head)?;
        if let Some(logged) = logged {
            if self.is_alone() {
                let place = u32::try_from(self.group.logged.len()).unwrap_or(u32::MAX);
                let place = (self.group.epoch, place, self.group.at);
                log(&self.records, &mut writes, place, &logged)?;
            }
            self.group.logged.push(logged);
        }
        self.apply(writes);
        self.group.feeds.insert(feed, Some(head));
        Ok(Committed { revision })
    }

    /// Writes poll states.
    pub(super) fn checkpoint(&mut self, states: &[PollState]) -> Result<(), CommitError> {
        let mut writes = Writes::new();
        for state in states {
            self.records.put(&mut writes, Class::Polls, keys::feed(&state.feed), state)?;
        }
        self.write(writes)
    }

    /// Prunes the past of a feed; a conflict where the feed is not at the state `head`.
    pub(super) fn prune(
        &mut self,
        feed: &FeedName,
        head: &StateRecord,
        mut writes: Writes,
    ) -> Result<(), CommitError> {
        let found = self.head(feed)?;
        if found.as_ref() != Some(head) {
            let revision = found.map(|found| found.state.revision);
            return Err(CommitError::Conflict(revision.unwrap_or_default()));
        }
        let head = StateRecord { write: head.write + 1, ..head.clone() };
        self.records.put(&mut writes, Class::States, keys::feed(feed), &head)?;
        self.apply(writes);
        self.group.feeds.insert(feed.clone(), Some(head));
        Ok(())
    }

    /// Removes epochs of at least this age from the change log; answers how many.
    pub(super) fn trim(&mut self, age: Duration) -> Result<usize, CommitError> {
        let (writes, epochs) = prune::trim(&self.records, age, self.newest.0)?;
        self.write(writes)?;
        Ok(epochs)
    }

    /// Imports records of another store, which no other request uses meanwhile.
    pub(super) fn import(&mut self, pieces: &[ExportRecord], end: bool) -> Result<(), CommitError> {
        let shared = Arc::clone(&self.shared);
        let mut importing = shared.importing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut importer = match importing.take() {
            Some(importer) => importer,
            None if open::is_empty(&self.records)? => transfer::Importer::default(),
            None => {
                let path = self.records.engine().path().to_owned();
                return Err(CommitError::Store(StoreError::Occupied { path }));
            }
        };
        self.group.imports = Some(end);
        // The note is there from the first record until the last one is stored.
        let mut writes = Writes::new();
        open::note_importing(&mut writes, true);
        for piece in pieces {
            if writes.len() >= PORTION {
                self.apply(std::mem::take(&mut writes));
            }
            importer.piece(self, piece, &mut writes)?;
        }
        if end {
            importer.end()?;
            open::note_importing(&mut writes, false);
        }
        self.apply(writes);
        if !end {
            *importing = Some(importer);
        }
        Ok(())
    }

    /// Sets the fence, lineage and running time to follow those of another store.
    pub(super) fn go_on_from(&mut self, origin: &StoreOrigin) -> Result<(), CommitError> {
        let mut lineage = origin.lineage.clone();
        lineage.open(self.shared.opening_mark(), origin.reached.0);
        let writes = open::change_identity(&self.records, |identity| {
            identity.fence = identity.fence.max(origin.fence);
            identity.lineage = lineage.clone();
            identity.running = origin.running;
        })?;
        let mut identity = self.shared.identity.write().unwrap_or_else(PoisonError::into_inner);
        identity.lineage = lineage;
        drop(identity);
        self.group.is_renamed = true;
        self.write(writes)
    }

    /// Notes the running time.
    pub(super) fn note_running(&mut self, at: Time) -> Result<(), CommitError> {
        let passed = self.shared.running_since_noted(self.shared.clock.running());
        let writes = open::change_identity(&self.records, |identity| {
            identity.running = Some(at);
            // The change log ages by the time for which the store was open.
            identity.log_ages.note(passed, self.newest.0);
        })?;
        self.write(writes)
    }

    /// Writes records of feeds that were planned over a list of all, and the applied origins of a configuration.
    pub(super) fn put_feeds(
        &mut self,
        records: &[FeedRecord],
        over: Option<&FeedList>,
        applied: Option<&AppliedOrigins>,
    ) -> Result<(), CommitError> {
        // A store without other gateways plans its changes of the list one after the other.
        if let Some(over) = over.filter(|_| !self.is_alone()) {
            let wanted = records.iter().map(|record| keys::feed(&record.name));
            let stored: Vec<Option<FeedRecord>> = self.records.all(Class::Feeds, wanted)?;
            for (FeedRecord { name, .. }, found) in records.iter().zip(stored) {
                if found.as_ref() != over.get(name).map(Arc::as_ref) {
                    return Err(StoreError::FeedChanged { feed: name.clone() }.into());
                }
            }
        }
        let mut writes = Writes::new();
        for record in records {
            self.records.put(&mut writes, Class::Feeds, keys::feed(&record.name), record)?;
        }
        if let Some(applied) = applied {
            let key = open::APPLIED_ORIGINS_KEY.to_vec();
            self.records.put(&mut writes, Class::Gateway, key, applied)?;
        }
        self.write(writes)?;
        let listed = records.iter().map(|it| (it.name.clone(), Some(Arc::new(it.clone()))));
        self.group.listed.extend(listed);
        Ok(())
    }

    /// Notes the beginning, or the end, of taking in a large document.
    pub(super) fn note_attempt(&mut self, attempt: &Attempt) -> Result<(), CommitError> {
        let (mut writes, key) = (Writes::new(), keys::of_kind(keys::ATTEMPT, &attempt.feed));
        if attempt.is_over() {
            writes.insert((Class::Marks, key), None);
        } else {
            self.records.put(&mut writes, Class::Marks, key, attempt)?;
        }
        self.write(writes)
    }

    /// Writes subscriptions of the hub, and removes those that are over. The caller is the only writer of
    /// subscriptions.
    pub(super) fn put_subscriptions(
        &mut self,
        changes: &[SubscriptionChange],
    ) -> Result<(), CommitError> {
        let keys = changes.iter().map(|change| keys::subscription(change.after.id()));
        let stored: Vec<Option<Subscription>> =
            self.records.all(Class::Subscriptions, keys.clone())?;
        let mut writes = Writes::new();
        for ((change, key), stored) in changes.iter().zip(keys).zip(stored) {
            let subscription = change.over(stored);
            if subscription.is_over() {
                writes.insert((Class::Subscriptions, key), None);
            } else {
                self.records.put(&mut writes, Class::Subscriptions, key, &subscription)?;
            }
        }
        self.write(writes)
    }

    /// The purge mark of a feed at `head`, its last state. Reads its ledger.
    pub(super) fn purge_mark(
        feed: &FeedRecords,
        head: &StateRecord,
    ) -> Result<PurgeMark, StoreError> {
        // An identity that is damaged names no gateway: its updates of shared items are not counted.
        let own = read::undamaged(open::identity(&feed.records))?.flatten();
        let own = own.map(|own| own.endpoint);
        // A purge mark that is too low cannot be mended later: where the database does not answer, the purge fails.
        let updates = feed.most_updates(own.as_ref())?;
        let older = read::purged(&feed.records, &feed.name)?;
        Ok(PurgeMark::under(&head.state, updates, older.as_ref()))
    }

    /// Removes the heads of a feed and sets its purge mark, where it had commits. Its content is to be swept.
    pub(super) fn purge(
        &mut self,
        feed: &FeedName,
        mark: Option<&PurgeMark>,
    ) -> Result<(), CommitError> {
        self.write(purge::forget(&self.records, feed, mark)?)?;
        self.group.listed.push((feed.clone(), None));
        if mark.is_some() {
            self.group.feeds.insert(feed.clone(), None);
        }
        Ok(())
    }

    /// Removes a portion of the content of a purged feed; answers whether that was all.
    pub(super) fn sweep(&mut self, feed: &FeedName, mark: &PurgeMark) -> Result<bool, CommitError> {
        self.group.wrote = true;
        let swept = purge::sweep(&self.records, feed, mark);
        Ok(swept.inspect_err(|error| self.fail(error))?)
    }

    /// Removes the blobs of a large change.
    pub(super) fn forget_redo(&mut self, feed: &FeedName) -> Result<(), CommitError> {
        self.group.wrote = true;
        while self.records.clear(Class::Marks, &keys::of_kind(keys::REDO, feed))? {}
        Ok(())
    }

    /// Applies writes outside the content of feeds, and counts them in the same transaction. The count reveals lost
    /// writes of these records, which have no revision; a database that gateways share needs none.
    pub(super) fn write(&mut self, mut writes: Writes) -> Result<(), CommitError> {
        if writes.is_empty() {
            return Ok(());
        }
        if self.is_alone() {
            self.list_writes += 1;
            let (key, count) = (open::LIST_WRITES_KEY.to_vec(), self.list_writes);
            self.records.put(&mut writes, Class::Gateway, key, &count)?;
        }
        self.apply(writes);
        Ok(())
    }

    /// Applies writes. After an error it is unknown which were applied: the store stops, and the answer follows from
    /// its health, as for the whole group.
    pub(super) fn apply(&mut self, writes: Writes) {
        self.group.wrote = true;
        if let Err(error) = self.records.engine().apply(writes) {
            self.fail(&error);
        }
    }

    /// Stops the store. A transaction that fails is rolled back, and stops nothing.
    fn fail(&self, error: &StoreError) {
        if self.is_alone() {
            self.shared.fail(error);
        }
    }

    /// Passes the barrier; where that fails, the store stops.
    fn pass(&mut self) -> bool {
        let passed = self.records.engine().pass();
        passed.inspect_err(|error| self.fail(error)).is_ok()
    }

    /// Publishes the changes of a group, and then the epoch that announces them.
    fn publish(&mut self) {
        self.shared.list_writes.store(self.list_writes, Ordering::Release);
        self.shared.change_list(std::mem::take(&mut self.group.listed));
        for (feed, head) in std::mem::take(&mut self.group.feeds) {
            self.shared.publish(&feed, head);
        }
        if !self.group.logged.is_empty() {
            self.newest = (self.group.epoch, self.group.at);
        } else if self.group.reached.is_none() {
            return;
        }
        let epoch = self.newest.0;
        if let Some(folder) = &self.folder {
            folder.note_reached(epoch);
        }
        self.shared.newest.send_replace(epoch);
    }
}

/// Plans the entry of a change in the log: its epoch, its place in that, and when it is closed.
pub(super) fn log(
    codec: &RecordCodec,
    writes: &mut Writes,
    (epoch, place, at): (Epoch, u32, Time),
    change: &LoggedChange,
) -> Result<(), StoreError> {
    let mut value = at.unix().to_be_bytes().to_vec();
    value.extend(codec.encoded(change, || "a change in the log".to_owned())?);
    writes.insert((Class::Log, keys::log(epoch.0, place)), Some(value));
    Ok(())
}
