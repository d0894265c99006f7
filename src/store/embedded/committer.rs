//! Who writes. On disk and in memory it groups what is waiting, applies each all or nothing, passes one barrier for all
//! of them, and only then publishes and answers ([`requests`]). Of a database that others write to as well, each request
//! is a transaction ([`super::transactions`]).

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

/// Who writes.
pub(super) struct Committer {
    pub(super) records: Records,
    pub(super) shared: Arc<StoreShared>,
    folder: Option<Arc<OpenFolder>>,
    /// How often records outside the content of feeds were written.
    pub(super) list_writes: u64,
    /// The last closed epoch, and when it was closed.
    pub(super) sealed: (Epoch, Time),
    /// What is under way.
    pub(super) group: CommitGroup,
}

/// What one group has done so far.
#[derive(Default)]
pub(super) struct CommitGroup {
    /// Its epoch, should a change make a tick, and when that is closed.
    epoch: Epoch,
    pub(super) at: Time,
    /// The changes that stand in it.
    pub(super) logged: Vec<LoggedChange>,
    /// Feeds to publish, each with its new head; `None` where it was purged.
    pub(super) feeds: BTreeMap<FeedName, Option<StateRecord>>,
    /// Records of feeds to show; `None` where the feed was purged.
    pub(super) listed: Vec<(FeedName, Option<Arc<FeedRecord>>)>,
    wrote: bool,
    /// The last epoch that came from another store.
    pub(super) reached: Option<(Epoch, Time)>,
    /// Its lineage is another.
    pub(super) is_renamed: bool,
    /// It takes in another store; whether that is its end.
    pub(super) imports: Option<bool>,
}

impl CommitGroup {
    /// The one behind the epoch `sealed`, at the time `now`.
    fn behind(sealed: (Epoch, Time), now: Time) -> Self {
        Self { epoch: Epoch(sealed.0.0 + 1), at: now.max(sealed.1), ..Self::default() }
    }
}

impl Committer {
    /// One that has done nothing yet. `sealed`: the last closed epoch, and when it was closed.
    pub(super) fn new(
        records: Records,
        folder: Option<Arc<OpenFolder>>,
        shared: &Arc<StoreShared>,
        (list_writes, sealed): (u64, (Epoch, Time)),
    ) -> Self {
        let shared = Arc::clone(shared);
        let group = CommitGroup::behind(sealed, shared.clock.now());
        Self { records, shared, folder, list_writes, sealed, group }
    }

    /// Whether the database is this process's alone. Otherwise the change log is numbered by the database, and nothing
    /// is published but what was read of that.
    fn is_alone(&self) -> bool {
        !self.records.engine().is_shared()
    }

    /// The state of a feed as it is stored.
    pub(super) fn head(&self, feed: &FeedName) -> Result<Option<StateRecord>, StoreError> {
        self.records.record(Class::States, &keys::feed(feed))
    }

    /// Commits a change to a feed that stands as it was planned over.
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

    /// Takes out a part of the past of a feed that stands at `head`.
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

    /// Takes epochs that are at least so old out of the log; how many.
    pub(super) fn trim(&mut self, age: Duration) -> Result<usize, CommitError> {
        let (writes, epochs) = prune::trim(&self.records, age, self.sealed.0)?;
        self.write(writes)?;
        Ok(epochs)
    }

    /// Takes in pieces of another store. Nothing else is asked of a store meanwhile.
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
        // It stands there from the first piece until the last is stored.
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

    /// Goes on where another store was.
    pub(super) fn go_on_from(&mut self, origin: &StoreOrigin) -> Result<(), CommitError> {
        let mut lineage = origin.lineage.clone();
        lineage.open(self.shared.mark(), origin.reached.0);
        let writes = open::reidentify(&self.records, |identity| {
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

    /// Notes where the running time stands.
    pub(super) fn note_running(&mut self, at: Time) -> Result<(), CommitError> {
        let passed = self.shared.running_since_noted(self.shared.clock.running());
        let writes = open::reidentify(&self.records, |identity| {
            identity.running = Some(at);
            // How old the change log is: by how long the store was open.
            identity.log_ages.note(passed, self.sealed.0);
        })?;
        self.write(writes)
    }

    /// Writes records of feeds that were decided over a list, and what of a configuration is applied.
    pub(super) fn put_feeds(
        &mut self,
        records: &[FeedRecord],
        over: Option<&FeedList>,
        applied: Option<&AppliedOrigins>,
    ) -> Result<(), CommitError> {
        // Who is alone decides about one change after the other.
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

    /// Notes that a large document of a feed is begun or over.
    pub(super) fn note_attempt(&mut self, attempt: &Attempt) -> Result<(), CommitError> {
        let (mut writes, key) = (Writes::new(), keys::of_kind(keys::ATTEMPT, &attempt.feed));
        if attempt.is_over() {
            writes.insert((Class::Marks, key), None);
        } else {
            self.records.put(&mut writes, Class::Marks, key, attempt)?;
        }
        self.write(writes)
    }

    /// Writes subscriptions of the hub, and takes out those that are over. Whoever calls is the only one who does.
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

    /// The marks that a feed leaves that is purged, where it had commits: `head` as of the last one. Reads its ledger.
    pub(super) fn purge_mark(
        feed: &FeedRecords,
        head: &StateRecord,
    ) -> Result<PurgeMark, StoreError> {
        // Where the name of this gateway is damaged, its updates of others' items do not count.
        let own = read::undamaged(open::identity(&feed.records))?.flatten();
        let own = own.map(|own| own.endpoint);
        // A mark that is too low would stay so: where the database does not answer, nothing is forgotten.
        let updates = feed.most_updates(own.as_ref())?;
        let older = read::floor(&feed.records, &feed.name)?;
        Ok(PurgeMark::under(&head.state, updates, older.as_ref()))
    }

    /// Forgets a feed, which leaves these marks where it had commits. The rest of it is to be swept.
    pub(super) fn purge(
        &mut self,
        feed: &FeedName,
        floor: Option<&PurgeMark>,
    ) -> Result<(), CommitError> {
        self.write(purge::forget(&self.records, feed, floor)?)?;
        self.group.listed.push((feed.clone(), None));
        if floor.is_some() {
            self.group.feeds.insert(feed.clone(), None);
        }
        Ok(())
    }

    /// Removes a portion of a feed that was forgotten; whether that is all.
    pub(super) fn sweep(
        &mut self,
        feed: &FeedName,
        floor: &PurgeMark,
    ) -> Result<bool, CommitError> {
        self.group.wrote = true;
        let swept = purge::sweep(&self.records, feed, floor);
        Ok(swept.inspect_err(|error| self.fail(error))?)
    }

    /// Removes what a large change had noted of itself.
    pub(super) fn forget_redo(&mut self, feed: &FeedName) -> Result<(), CommitError> {
        self.group.wrote = true;
        while self.records.clear(Class::Marks, &keys::of_kind(keys::REDO, feed))? {}
        Ok(())
    }

    /// Applies writes as they are stored, and counts them in the same transaction, where no database does: these records
    /// bear no number of their own by which a loss would be seen.
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

    /// Applies writes. What a database that fails in a write has done is unknown: the store stops, and the answer is
    /// decided by its health, as for its whole group.
    pub(super) fn apply(&mut self, writes: Writes) {
        self.group.wrote = true;
        if let Err(error) = self.records.engine().apply(writes) {
            self.fail(&error);
        }
    }

    /// Stops the store. A transaction that fails is none, and stops nothing.
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

    /// Shows what a group has done, and then the epoch that announces it.
    fn publish(&mut self) {
        self.shared.list_writes.store(self.list_writes, Ordering::Release);
        self.shared.change_list(std::mem::take(&mut self.group.listed));
        for (feed, head) in std::mem::take(&mut self.group.feeds) {
            self.shared.publish(&feed, head);
        }
        if !self.group.logged.is_empty() {
            self.sealed = (self.group.epoch, self.group.at);
        } else if self.group.reached.is_none() {
            return;
        }
        let epoch = self.sealed.0;
        if let Some(folder) = &self.folder {
            folder.note_reached(epoch);
        }
        self.shared.sealed.send_replace(epoch);
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
