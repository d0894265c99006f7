//! What polling knows of each feed: kept once, for the scheduler and its rounds and for who asks how feeds stand.
//! There may be a million, so that it is put into the values of `status` when somebody asks.

use super::memory::Memory;
use super::poll_log::PollLog;
use super::reason::{PlannedPoll, whole_seconds};
use super::scheduler::feed::LiveFeed;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, PollState, Time};
use tidegate_status::{
    FeedSummary, FinishedPoll, FinishedProbe, PROBES_KEPT, ParsedNote, PollFailure, PollStatus,
    PollTotals, RejectedPushes,
};
use tidegate_store::ChangedFeeds;
use tokio::sync::Notify;
use tokio::time::Instant;

/// What polling knows of one feed.
pub(super) struct FeedPolling {
    pub(super) record: Arc<FeedRecord>,
    /// What goes on with it while it is polled.
    pub(super) live: LiveFeed,
    /// What rounds go on from, and what of it is stored. A round works on a copy, which takes its place in the end.
    pub(super) memory: Memory,
    log: PollLog,
    /// The last document that was looked at.
    document: Option<Box<ParsedNote>>,
    /// Whether missing items are asked for, or wait to be.
    pub(super) probing: bool,
    pub(super) next: Option<PlannedPoll>,
    /// Since when it is polled; `None`: it is paused.
    since: Option<Time>,
    /// The interval, in seconds, that it had when it was last read.
    interval: u32,
    last_read: Option<Time>,
    /// The last failure, if the last poll failed.
    failure: Option<Box<PollFailure>>,
    /// The last rounds of asking, newest first.
    probes: Vec<FinishedProbe>,
    /// Whether the polling task has still to hear of a push.
    pub(super) waits_for_push: bool,
    /// Pushes of its hub that were not believed.
    pub(super) disbelieved: Option<Box<RejectedPushes>>,
}

impl FeedPolling {
    pub(super) fn new(record: Arc<FeedRecord>, memory: Memory) -> Self {
        Self {
            record,
            live: LiveFeed::default(),
            memory,
            log: PollLog::default(),
            document: None,
            probing: false,
            next: None,
            since: None,
            interval: 0,
            last_read: None,
            failure: None,
            probes: Vec::new(),
            waits_for_push: false,
            disbelieved: None,
        }
    }

    /// Takes in a round of asking for missing items.
    pub(super) fn add_probe(&mut self, note: FinishedProbe) {
        self.probes.truncate(PROBES_KEPT - 1);
        self.probes.insert(0, note);
    }

    /// Takes in a poll, and the document that it looked at. `is_aside`: it was not the gateway's own, while its own
    /// polls fail.
    pub(super) fn add(&mut self, note: FinishedPoll, document: Option<ParsedNote>, is_aside: bool) {
        if !is_aside {
            self.failure = note.failure.clone().map(Box::new);
        }
        if note.failure.is_none() {
            self.last_read = Some(note.at);
        }
        self.document = document.map(Box::new).or(self.document.take());
        self.log.push(note);
    }

    /// It is polled from now on.
    pub(super) const fn begin(&mut self, now: Time) {
        self.since = Some(now);
    }

    /// It is not polled for the time being.
    pub(super) fn pause(&mut self) {
        (self.probing, self.next, self.since) = (false, None, None);
        self.failure = None;
        // Nobody waits for a poll of it any more.
        drop(self.end_live());
        // What is heard of a push meanwhile comes to nothing.
        self.waits_for_push = false;
    }

    /// Whether it is not polled for the time being.
    pub(super) const fn is_paused(&self) -> bool {
        self.since.is_none()
    }

    /// The next poll is that one. Returns the one that was planned before.
    pub(super) fn plan(&mut self, next: PlannedPoll) -> Option<PlannedPoll> {
        // What is put off because it fails says nothing of how often it should be read.
        if self.memory.state.failures == 0
            && let Some(read) = self.last_read.or(self.since)
        {
            self.interval = whole_seconds(next.at.since(read));
        }
        self.next.replace(next)
    }

    /// That it failed, though nothing was asked.
    pub(super) fn fail(&mut self, failure: PollFailure) {
        self.failure = Some(Box::new(failure));
    }

    /// The last failure, if the last poll failed.
    pub(super) fn failure(&self) -> Option<&PollFailure> {
        self.failure.as_deref()
    }

    /// How it stands, in short.
    pub(super) fn summarize(&self) -> FeedSummary {
        let read = self.last_read.or(self.since);
        let interval = Duration::from_secs(u64::from(self.interval));
        FeedSummary {
            last_poll: self.log.last(),
            next_poll: self.next.as_ref().map(|next| next.at),
            is_in_flight: self.live.running.is_some(),
            read,
            stale_after: read.map(|read| FeedSummary::stale_after(read, interval)),
            error: self.failure().map(|failure| failure.error.clone()),
            ..FeedSummary::from(&self.memory.state)
        }
    }

    /// How it stands.
    pub(super) fn describe(&self) -> PollStatus {
        let mut status = PollStatus {
            polls: self.log.polls(),
            document: self.document.as_deref().cloned(),
            same: self.memory.last().same,
            next: self.next.as_ref().map(PlannedPoll::describe),
            failure: self.failure().cloned(),
            last_read: self.last_read,
            probing: self.probing,
            probes: self.probes.clone().into(),
            ..PollStatus::from(&self.memory.state)
        };
        status.hub = status.hub.filter(|_| !self.is_paused());
        if let (Some(hub), Some(disbelieved)) = (&mut status.hub, &self.disbelieved) {
            hub.disbelieved.clone_from(disbelieved);
        }
        status
    }
}

/// The place of a feed, which the scheduler and the table share.
pub(super) struct FeedCell {
    polling: Mutex<FeedPolling>,
    changed: Arc<ChangedFeeds>,
}

impl FeedCell {
    /// Waits until nobody else has the feed.
    pub(super) fn lock(&self) -> FeedGuard<'_> {
        FeedGuard { polling: self.polling.lock(), is_changed: false, changed: &self.changed }
    }
}

/// A feed that nobody else has. Where it is changed, that is noted when it is let go.
pub(super) struct FeedGuard<'a> {
    polling: MutexGuard<'a, FeedPolling>,
    is_changed: bool,
    changed: &'a ChangedFeeds,
}

impl Deref for FeedGuard<'_> {
    type Target = FeedPolling;

    fn deref(&self) -> &FeedPolling {
        &self.polling
    }
}

impl DerefMut for FeedGuard<'_> {
    fn deref_mut(&mut self) -> &mut FeedPolling {
        self.is_changed = true;
        &mut self.polling
    }
}

impl Drop for FeedGuard<'_> {
    fn drop(&mut self) {
        if self.is_changed {
            self.changed.note(&self.polling.record.name);
        }
    }
}

/// How long changed poll states are gathered before they are written together.
pub(super) const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);
/// How many poll states, or subscriptions, are written together at most, and how many epochs are read.
pub(super) const MAX_BATCH: usize = 512;

/// What polling remembers and the store does not show yet.
#[derive(Default)]
pub(super) struct UnsavedFeeds {
    /// Whether each is being written as it is.
    feeds: BTreeMap<FeedName, (Arc<FeedCell>, bool)>,
    /// When some of it is written.
    at: Option<Instant>,
}

impl UnsavedFeeds {
    /// When some of it is to be written.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_full = self.feeds.len() >= MAX_BATCH;
        self.at.map(|at| if is_full { Instant::now() } else { at })
    }

    /// What is to be written of a feed, where the store has still to be told of it.
    pub(super) fn state(&self, feed: &FeedName, now: Time) -> Option<PollState> {
        self.feeds.get(feed).map(|(cell, _)| cell.lock().memory.write(now))
    }

    /// Nothing is to be written of a feed.
    pub(super) fn forget(&mut self, feed: &FeedName) {
        self.feeds.remove(feed);
    }

    pub(super) fn clear(&mut self) {
        self.feeds.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.feeds.is_empty()
    }

    /// Begins to write some of it.
    pub(super) fn begin(&mut self, now: Time) -> Vec<PollState> {
        // The rest is written next.
        self.at = (self.feeds.len() > MAX_BATCH).then(Instant::now);
        let first = self.feeds.values_mut().take(MAX_BATCH);
        first
            .map(|(cell, is_being_written)| {
                *is_being_written = true;
                cell.lock().memory.write(now)
            })
            .collect()
    }

    /// Takes in whether what was being written is stored. What has changed meanwhile is written with the next.
    pub(super) fn end(&mut self, is_stored: bool) {
        self.feeds.retain(|_, (_, is_being_written)| {
            let was_being_written = std::mem::take(is_being_written);
            !(was_being_written && is_stored)
        });
        if !is_stored {
            self.at = Some(Instant::now());
        }
    }
}

/// All feeds, those that are paused included.
#[derive(Default)]
pub(super) struct FeedTable {
    feeds: RwLock<BTreeMap<FeedName, Arc<FeedCell>>>,
    /// The feeds whose polling stands otherwise, those that left included.
    pub(super) changed: Arc<ChangedFeeds>,
    /// Nobody takes it while he has the lock of a feed.
    unsaved: Mutex<UnsavedFeeds>,
    /// There is more to be written, or it is to be written sooner.
    pub(super) has_unsaved: Notify,
    /// Of all feeds, those that left included.
    pub(super) totals: Mutex<PollTotals>,
}

impl FeedTable {
    /// Takes in a feed, in the place of one of its name.
    pub(super) fn insert(&self, record: Arc<FeedRecord>, memory: Memory) -> Arc<FeedCell> {
        let feed = record.name.clone();
        let (polling, changed) = (FeedPolling::new(record, memory), Arc::clone(&self.changed));
        let cell = Arc::new(FeedCell { polling: Mutex::new(polling), changed });
        let old = self.feeds.write().insert(feed.clone(), Arc::clone(&cell));
        old.iter().for_each(|old| old.lock().pause());
        self.changed.note(&feed);
        cell
    }

    /// Takes a feed out, with what goes on with it.
    pub(super) fn remove(&self, feed: &FeedName) {
        let old = self.feeds.write().remove(feed);
        old.iter().for_each(|old| old.lock().pause());
        self.changed.note(feed);
    }

    /// A feed that is polled.
    pub(super) fn live(&self, feed: &FeedName) -> Option<Arc<FeedCell>> {
        self.get(feed).filter(|cell| !cell.lock().is_paused())
    }

    pub(super) fn get(&self, feed: &FeedName) -> Option<Arc<FeedCell>> {
        self.feeds.read().get(feed).cloned()
    }

    /// All feeds as they are now.
    pub(super) fn all(&self) -> Vec<(FeedName, Arc<FeedCell>)> {
        let feeds = self.feeds.read();
        feeds.iter().map(|(feed, cell)| (feed.clone(), Arc::clone(cell))).collect()
    }

    pub(super) fn unsaved(&self) -> MutexGuard<'_, UnsavedFeeds> {
        self.unsaved.lock()
    }

    /// Has what is remembered of a feed written down within that time.
    pub(super) fn remember(&self, feed: &FeedName, cell: &Arc<FeedCell>, within: Duration) {
        self.remember_unless(feed, cell, within, || false);
    }

    /// The same, unless it left: who takes a feed out forgets afterwards what is to be written of it.
    pub(super) fn remember_unless(
        &self,
        feed: &FeedName,
        cell: &Arc<FeedCell>,
        within: Duration,
        has_left: impl FnOnce() -> bool,
    ) {
        let (mut unsaved, at) = (self.unsaved(), Instant::now() + within);
        if has_left() {
            return;
        }
        unsaved.feeds.insert(feed.clone(), (Arc::clone(cell), false));
        unsaved.at = Some(unsaved.at.map_or(at, |before| before.min(at)));
        drop(unsaved);
        self.has_unsaved.notify_one();
    }
}

#[cfg(test)]
mod tests;
