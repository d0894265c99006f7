//! Who writes. It groups what is waiting, applies each all or nothing, passes one barrier for all of
//! them, and only then publishes and answers ([`groups`]).

mod groups;

use super::pins::Pins;
use super::plan::PlannedCommit;
use super::records::Records;
use super::shared::StoreShared;
use super::undo::{Cleaning, Keep, LAST, PORTION};
use super::{StorePlace, keys, open, prune, purge, read, transfer};
use crate::engine::{Class, Writes};
use crate::portable::ExportRecord;
use crate::purge_mark::PurgeMark;
use crate::record::StateRecord;
use crate::{AppliedConfig, Claim, CommitError, Committed, Epoch, LoggedChange, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegate_core::clock::Clock;
use tidegate_core::model::{Attempt, FeedName, FeedRecord, PollState, Revision, Time};
use tidegate_core::websub::Subscription;

/// Who writes.
pub(super) struct Committer {
    pub(super) records: Records,
    pub(super) shared: Arc<StoreShared>,
    pub(super) place: Arc<dyn StorePlace>,
    pub(super) clock: Arc<dyn Clock>,
    /// Feeds of which is kept what records were before.
    pub(super) cleaning: BTreeMap<FeedName, Cleaning>,
    pub(super) floors: HashMap<FeedName, PurgeMark>,
    /// How often records outside the content of feeds were written.
    pub(super) list_writes: u64,
    /// The last closed epoch, and when it was closed.
    pub(super) sealed: (Epoch, Time),
    /// How long the clock had run when the age of the log was noted last.
    pub(super) noted: Duration,
    /// What is being taken in from another store.
    pub(super) importing: Option<transfer::Importer>,
}

/// What one group has done so far.
pub(super) struct CommitGroup {
    /// Its epoch, should a change make a tick, and how many changes stand in it.
    epoch: Epoch,
    changes: u32,
    at: Time,
    /// Feeds to publish, each with its new head; `None` where it was purged.
    feeds: BTreeMap<FeedName, Option<StateRecord>>,
    /// Records of feeds to show; `None` where the feed was purged.
    listed: Vec<(FeedName, Option<Arc<FeedRecord>>)>,
    /// Feeds that nobody may read until then.
    shut: Vec<Arc<Pins>>,
    wrote: bool,
    /// Epochs came from another store.
    reached: bool,
}

impl Committer {
    /// Writes a portion of a change that is not committed yet: the first of the write `write`, or one more.
    pub(super) fn portion(
        &mut self,
        claim: &Claim,
        (feed, base): (&FeedName, u64),
        mut writes: Writes,
        is_first: bool,
        group: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.shared.claimed(claim)?;
        if is_first {
            writes.insert((Class::Unfinished, keys::feed(feed)), Some(Vec::new()));
        }
        let write = base + 1;
        self.keep(feed, write);
        let done = self.records.write(writes, write, Keep::Before);
        self.wrote(done, group);
        Ok(())
    }

    /// Writes entries as they are stored: of a change that is undone.
    pub(super) fn put_back(
        &mut self,
        writes: Writes,
        group: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        self.write(writes, group);
        Ok(())
    }

    /// Commits a change.
    pub(super) fn commit(
        &mut self,
        claim: &Claim,
        planned: PlannedCommit,
        group: &mut CommitGroup,
    ) -> Result<Committed, CommitError> {
        self.shared.claimed(claim)?;
        let PlannedCommit { feed, mut writes, is_begun, base, head, tick, versions } = planned;
        let published = self.shared.published(&feed);
        let now = published
            .as_ref()
            .map_or((Revision(0), 0), |published| (published.watch.revision(), published.write));
        if now != base {
            return Err(CommitError::Conflict(now.0));
        }
        let revision = head.state.revision;
        self.records.put(&mut writes, Class::States, keys::feed(&feed), &head)?;
        if is_begun {
            writes.insert((Class::Unfinished, keys::feed(&feed)), None);
        }
        if let Some(tick) = tick {
            let announced = LoggedChange { feed: feed.clone(), tick, revision, versions };
            let key = keys::log(group.epoch.0, group.changes);
            self.records.put(&mut writes, Class::Log, key, &(group.at, announced))?;
            if self.floors.contains_key(&feed) {
                writes.insert((Class::Floors, keys::feed(&feed)), None);
            }
        }
        self.change(&feed, writes, is_begun, head, group);
        if tick.is_some() {
            self.floors.remove(&feed);
            group.changes += 1;
        }
        Ok(Committed { revision, epoch: tick.is_some().then_some(group.epoch) })
    }

    /// Writes to a feed's content: in place where nobody reads it, with what was there before otherwise,
    /// or where the change has portions already.
    fn change(
        &mut self,
        feed: &FeedName,
        writes: Writes,
        is_begun: bool,
        head: StateRecord,
        group: &mut CommitGroup,
    ) {
        let pins = self.shared.published(feed).map(|published| published.pins);
        let is_read = pins.as_ref().is_some_and(|pins| is_begun || !pins.try_shut());
        let keep = if is_begun || is_read { Keep::Before } else { Keep::Nothing };
        if keep == Keep::Before {
            self.keep(feed, head.write);
        } else {
            group.shut.extend(pins);
        }
        let done = self.records.write(writes, head.write, keep);
        self.wrote(done, group);
        group.feeds.insert(feed.clone(), Some(head));
    }

    /// Notes that what records were before the write `write` is kept.
    fn keep(&mut self, feed: &FeedName, write: u64) {
        let cleaning = self.cleaning.entry(feed.clone()).or_default();
        cleaning.newest = cleaning.newest.max(write);
    }

    /// Takes out a portion of what is kept and nobody needs any more; whether there was any.
    pub(super) fn clean(&mut self) -> bool {
        if self.shared.health().is_err() {
            return false;
        }
        let due = self.cleaning.iter().find_map(|(feed, cleaning)| {
            let published = self.shared.published(feed);
            let until = published.map_or(LAST, |published| {
                published.write.min(published.pins.earliest().unwrap_or(LAST))
            });
            cleaning.is_due(until).then(|| (feed.clone(), until))
        });
        let Some((feed, until)) = due else { return false };
        let Some(cleaning) = self.cleaning.get_mut(&feed) else { return false };
        let cleaned = cleaning.portion(&self.records, &feed, until).and_then(|(writes, is_all)| {
            self.records.engine().apply(writes)?;
            Ok(is_all)
        });
        match cleaned {
            Ok(true) => drop(self.cleaning.remove(&feed)),
            Ok(false) => {}
            Err(error) => self.shared.fail(&error),
        }
        true
    }

    /// Writes poll states.
    pub(super) fn checkpoint(
        &mut self,
        claim: &Claim,
        states: &[PollState],
        group: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.shared.claimed(claim)?;
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
        feed: &FeedName,
        mut writes: Writes,
        group: &mut CommitGroup,
    ) -> Result<(), CommitError> {
        self.shared.claimed(claim)?;
        let Some(published) = self.shared.published(feed) else { return Ok(()) };
        let head = StateRecord { write: published.write + 1, ..published.head()? };
        self.records.put(&mut writes, Class::States, keys::feed(feed), &head)?;
        self.change(feed, writes, false, head, group);
        Ok(())
    }

    /// Takes epochs that are at least so old out of the log; how many.
    pub(super) fn trim(
        &mut self,
        claim: &Claim,
        age: Duration,
        group: &mut CommitGroup,
    ) -> Result<usize, CommitError> {
        self.shared.claimed(claim)?;
        let (writes, epochs) = prune::trim(&self.records, age, self.sealed.0)?;
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
        self.shared.claimed(claim)?;
        let mut importer = match self.importing.take() {
            Some(importer) => importer,
            None if self.shared.names().is_empty() && open::is_empty(&self.records)? => {
                transfer::Importer::default()
            }
            None => {
                let path = self.records.engine().path().to_owned();
                return Err(CommitError::Store(StoreError::Occupied { path }));
            }
        };
        self.shared.forget_list();
        // It stands there from the first piece to the last.
        let mut writes = Writes::new();
        open::note_importing(&mut writes, !end);
        for piece in pieces {
            if writes.len() >= PORTION {
                let done = std::mem::take(&mut writes);
                self.wrote(self.records.write(done, transfer::IMPORT, Keep::Nothing), group);
            }
            let came = importer.piece(&self.records, piece, &mut writes)?;
            match came {
                transfer::ImportedRecord::Part => {}
                transfer::ImportedRecord::Origin(origin) => self.go_on_from(&origin, group)?,
                transfer::ImportedRecord::Feed(feed, head) => {
                    group.feeds.insert(feed, Some(*head));
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
        }
        self.wrote(self.records.write(writes, transfer::IMPORT, Keep::Nothing), group);
        if !end {
            self.importing = Some(importer);
        }
        Ok(())
    }

    /// Writes records of feeds, and what of a configuration is applied.
    pub(super) fn put_feeds(
        &mut self,
        records: &[FeedRecord],
        applied: Option<&AppliedConfig>,
        group: &mut CommitGroup,
    ) -> Result<(), StoreError> {
        let mut writes = Writes::new();
        for record in records {
            self.records.put(&mut writes, Class::Feeds, keys::feed(&record.name), record)?;
        }
        if let Some(applied) = applied {
            open::note_applied(&self.records, applied, &mut writes)?;
        }
        let listed = records.iter().map(|it| (it.name.clone(), Some(Arc::new(it.clone()))));
        group.listed.extend(listed);
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

    /// Forgets a feed; the marks that it leaves, where it had commits. The rest of it is to be swept.
    pub(super) fn purge(
        &mut self,
        feed: &FeedName,
        group: &mut CommitGroup,
    ) -> Result<Option<PurgeMark>, StoreError> {
        let published = self.shared.published(feed);
        let head = published.map(|published| published.head()).transpose()?;
        // A mark that is too low would stay so: where the database does not answer, nothing is forgotten.
        let floor = head.map(|head| {
            // Where the name of this gateway is damaged, its updates of others' items do not count.
            let own = read::undamaged(open::identity(&self.records))?.flatten();
            let own = own.map(|own| own.endpoint);
            let records = self.records.at(head.write);
            let updates = read::most_updates(&records, feed, own.as_ref())?;
            Ok::<_, StoreError>(PurgeMark::under(&head.state, updates, self.floors.get(feed)))
        });
        let floor = floor.transpose()?;
        let forgotten = purge::forget(&self.records, feed, floor.as_ref())?;
        group.listed.push((feed.clone(), None));
        self.write(forgotten, group);
        if let Some(floor) = floor {
            self.floors.insert(feed.clone(), floor);
            group.feeds.insert(feed.clone(), None);
        }
        Ok(floor)
    }

    /// Removes a portion of a feed that was forgotten; whether that is all.
    pub(super) fn sweep(
        &mut self,
        feed: &FeedName,
        floor: &PurgeMark,
        group: &mut CommitGroup,
    ) -> Result<bool, StoreError> {
        self.cleaning.remove(feed);
        let swept = purge::sweep(&self.records, feed, floor);
        group.wrote = true;
        swept.inspect_err(|error| self.shared.fail(error))
    }

    /// Applies writes as they are stored, and counts them in the same transaction: these records bear no
    /// number of their own by which a loss would be seen.
    pub(super) fn write(&mut self, mut writes: Writes, group: &mut CommitGroup) {
        if !writes.is_empty() {
            self.list_writes += 1;
            open::count_list_writes(&mut writes, self.list_writes);
            let done = self.records.engine().apply(writes);
            self.wrote(done, group);
        }
    }

    /// Notes that something was written. What a database that fails in a write has done is unknown: the
    /// store stops, and the answer is decided by its health, as for its whole group.
    fn wrote(&mut self, done: Result<(), StoreError>, group: &mut CommitGroup) {
        group.wrote = true;
        if let Err(error) = done {
            self.shared.fail(&error);
        }
    }

    /// Passes the barrier; where that fails, the store stops.
    fn pass(&mut self) -> bool {
        let passed = self.records.engine().pass();
        passed.inspect_err(|error| self.shared.fail(error)).is_ok()
    }

    /// Shows what a group has done, and then the epoch that announces it. Between the two it is closed for whoever follows
    /// this store, so that nobody is told of a change before all show it.
    ///
    /// Whether what it did is to be acknowledged. Where the database falls silent before the epoch is closed, it is:
    /// whoever opens the store next, here or elsewhere, closes that. A database that another gateway has, or that went
    /// back, may lack it.
    fn publish(&mut self, group: &mut CommitGroup) -> bool {
        self.shared.list_writes.store(self.list_writes, Ordering::Release);
        self.shared.change_list(std::mem::take(&mut group.listed));
        for (feed, head) in std::mem::take(&mut group.feeds) {
            self.shared.publish(&feed, head);
        }
        if group.changes > 0 {
            self.sealed = (group.epoch, group.at);
        }
        let (has_epoch, epoch) = (group.changes > 0 || group.reached, self.sealed.0);
        if has_epoch && let Err(error) = self.place.note(epoch) {
            // It serves only to notice damage; the store itself is durable.
            tracing::warn!(error = %error, "the store could not note what it has reached");
        }
        if let Err(error) = self.records.engine().close_epochs(has_epoch) {
            self.shared.fail(&error);
            return error.is_passing();
        }
        if has_epoch {
            self.shared.sealed.send_replace(epoch);
        }
        true
    }
}
