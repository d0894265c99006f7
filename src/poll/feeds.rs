//! The polling state of each feed, shared by the scheduler, its rounds and status queries. There may be a million
//! feeds, so the values of `status` are computed on request.

use super::memory::FeedMemory;
use super::schedule::{PlannedPoll, whole_seconds};
use super::scheduler::feed::LiveFeed;
use parking_lot::{Mutex, MutexGuard, RwLock};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{FeedName, FeedRecord, PollState, Time};
use tidegate_status::{
    EventCounts, FeedSummary, FinishedPoll, FinishedProbe, POLLS_KEPT, PROBES_KEPT, ParsedNote,
    PollEnding, PollFailure, PollStatus, PollTotals, RejectedPushes, ScheduledPoll,
};
use tidegate_store::ChangedFeeds;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The polling state of one feed.
pub(super) struct FeedPolling {
    pub(super) record: Arc<FeedRecord>,
    /// Its runtime state while it is polled.
    pub(super) live: LiveFeed,
    /// What rounds build on, including the stored state. A round works on a copy, which replaces it at the end.
    pub(super) memory: FeedMemory,
    log: PollLog,
    /// A summary of the last document that was parsed.
    document: Option<Box<ParsedNote>>,
    /// The interval in seconds as of the last successful poll.
    interval: u32,
    last_read: Option<Time>,
    /// The last probes for missing items, newest first.
    probes: Vec<FinishedProbe>,
    /// Pushes of its hub that failed verification.
    pub(super) disbelieved: Option<Box<RejectedPushes>>,
}

impl FeedPolling {
    pub(super) fn new(record: Arc<FeedRecord>, memory: FeedMemory) -> Self {
        Self {
            record,
            live: LiveFeed::default(),
            memory,
            log: PollLog::default(),
            document: None,
            interval: 0,
            last_read: None,
            probes: Vec::new(),
            disbelieved: None,
        }
    }

    /// Adds a finished probe for missing items.
    pub(super) fn add_probe(&mut self, note: FinishedProbe) {
        self.probes.truncate(PROBES_KEPT - 1);
        self.probes.insert(0, note);
    }

    /// Adds a finished poll and a summary of its document. `is_substitute`: the document came from a reader's request
    /// while the gateway's own polls fail.
    pub(super) fn add(
        &mut self,
        note: FinishedPoll,
        document: Option<ParsedNote>,
        is_substitute: bool,
    ) {
        if !is_substitute {
            self.live.failure = note.failure.clone().map(Box::new);
        }
        if note.failure.is_none() {
            self.last_read = Some(note.at);
        }
        self.document = document.map(Box::new).or(self.document.take());
        self.log.push(note);
    }

    pub(super) const fn is_paused(&self) -> bool {
        self.live.since.is_none()
    }

    /// Sets the next poll and returns the one planned before.
    pub(super) fn plan(&mut self, next: PlannedPoll) -> Option<PlannedPoll> {
        // The backoff of a failing feed does not change its interval.
        if self.memory.state.failures == 0
            && let Some(read) = self.last_read.or(self.live.since)
        {
            self.interval = whole_seconds(next.at.since(read));
        }
        self.live.next.replace(next)
    }

    pub(super) fn summarize(&self) -> FeedSummary {
        let read = self.last_read.or(self.live.since);
        let interval = Duration::from_secs(u64::from(self.interval));
        FeedSummary {
            last_poll: self.log.last,
            next_poll: self.live.next.as_ref().map(|next| next.at),
            is_in_flight: self.live.running.is_some(),
            read,
            stale_after: read.map(|read| FeedSummary::stale_after(read, interval)),
            error: self.live.failure.as_ref().map(|failure| failure.error.clone()),
            ..FeedSummary::from(&self.memory.state)
        }
    }

    /// Describes the polling state in full.
    pub(super) fn describe(&self) -> PollStatus {
        let describe =
            |next: &PlannedPoll| ScheduledPoll { at: next.at, reason: next.reason.to_string() };
        let mut status = PollStatus {
            polls: self.log.polls(),
            document: self.document.as_deref().cloned(),
            same: self.memory.unchanged_observations,
            next: self.live.next.as_ref().map(describe),
            failure: self.live.failure.as_deref().cloned(),
            last_read: self.last_read,
            probing: self.live.is_probing,
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

/// The locked polling state of a feed, shared by the scheduler, its tasks and the table.
pub(super) struct FeedCell {
    polling: Mutex<FeedPolling>,
    changed: Arc<ChangedFeeds>,
}

impl FeedCell {
    /// Locks the polling state for reading or changing.
    pub(super) fn lock(&self) -> FeedGuard<'_> {
        FeedGuard { polling: self.polling.lock(), is_changed: false, changed: &self.changed }
    }
}

/// A lock guard that reports the feed as changed when it is dropped after mutable access.
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

/// How long changed poll states are gathered before they are written in one batch.
pub(super) const CHECKPOINT_EVERY: Duration = Duration::from_secs(10);
/// The most poll states or subscriptions in one batch, and the most epochs in one read.
pub(super) const MAX_BATCH: usize = 512;

/// The feeds whose poll states are not stored yet.
#[derive(Default)]
pub(super) struct UnsavedFeeds {
    /// Each feed, and whether its current state is being written.
    pub(super) feeds: BTreeMap<FeedName, (Arc<FeedCell>, bool)>,
    /// When the next batch is due.
    at: Option<Instant>,
}

impl UnsavedFeeds {
    /// Returns when the next batch is due: at once if it is full.
    pub(super) fn due(&self) -> Option<Instant> {
        let is_full = self.feeds.len() >= MAX_BATCH;
        self.at.map(|at| if is_full { Instant::now() } else { at })
    }

    /// Returns the state to be written of a feed; `None` if all is stored.
    pub(super) fn state(&self, feed: &FeedName, now: Time) -> Option<PollState> {
        self.feeds.get(feed).map(|(cell, _)| cell.lock().memory.write(now))
    }

    /// Returns the states of the next batch and marks them as being written.
    pub(super) fn begin(&mut self, now: Time) -> Vec<PollState> {
        // A rest is written immediately afterwards.
        self.at = (self.feeds.len() > MAX_BATCH).then(Instant::now);
        let first = self.feeds.values_mut().take(MAX_BATCH);
        first
            .map(|(cell, is_being_written)| {
                *is_being_written = true;
                cell.lock().memory.write(now)
            })
            .collect()
    }

    /// Ends the batch: feeds changed meanwhile, or all if it failed, are written again.
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

/// All feeds that polling knows, paused ones included.
#[derive(Default)]
pub(super) struct FeedTable {
    feeds: RwLock<BTreeMap<FeedName, Arc<FeedCell>>>,
    /// The feeds whose polling state changed, removed ones included.
    pub(super) changed: Arc<ChangedFeeds>,
    /// Lock order: never lock this while holding the lock of a feed.
    pub(super) unsaved: Mutex<UnsavedFeeds>,
    /// Wakes the writer: there is more to write, or it is due sooner.
    pub(super) has_unsaved: Notify,
    /// Totals over all feeds, removed ones included.
    pub(super) totals: Mutex<PollTotals>,
}

impl FeedTable {
    /// Inserts a feed, replacing and pausing one of the same name.
    pub(super) fn insert(&self, record: Arc<FeedRecord>, memory: FeedMemory) -> Arc<FeedCell> {
        let feed = record.name.clone();
        let (polling, changed) = (FeedPolling::new(record, memory), Arc::clone(&self.changed));
        let cell = Arc::new(FeedCell { polling: Mutex::new(polling), changed });
        let old = self.feeds.write().insert(feed.clone(), Arc::clone(&cell));
        old.iter().for_each(|old| drop(old.lock().end_live()));
        self.changed.note(&feed);
        cell
    }

    /// Removes a feed and discards its runtime state.
    pub(super) fn remove(&self, feed: &FeedName) {
        let old = self.feeds.write().remove(feed);
        old.iter().for_each(|old| drop(old.lock().end_live()));
        self.changed.note(feed);
    }

    /// Returns a feed that is polled; `None` if it is unknown or paused.
    pub(super) fn live(&self, feed: &FeedName) -> Option<Arc<FeedCell>> {
        self.get(feed).filter(|cell| !cell.lock().is_paused())
    }

    pub(super) fn get(&self, feed: &FeedName) -> Option<Arc<FeedCell>> {
        self.feeds.read().get(feed).cloned()
    }

    /// Returns all feeds, in a snapshot.
    pub(super) fn all(&self) -> Vec<(FeedName, Arc<FeedCell>)> {
        let feeds = self.feeds.read();
        feeds.iter().map(|(feed, cell)| (feed.clone(), Arc::clone(cell))).collect()
    }

    /// Has the state of a feed written after at most `within`.
    pub(super) fn remember(&self, feed: &FeedName, cell: &Arc<FeedCell>, within: Duration) {
        self.remember_unless(feed, cell, within, || false);
    }

    /// Like [`Self::remember`], unless the feed `has_left`: a removal cancels the feed's tasks first and drops its
    /// unsaved state afterwards.
    pub(super) fn remember_unless(
        &self,
        feed: &FeedName,
        cell: &Arc<FeedCell>,
        within: Duration,
        has_left: impl FnOnce() -> bool,
    ) {
        let (mut unsaved, at) = (self.unsaved.lock(), Instant::now() + within);
        if has_left() {
            return;
        }
        unsaved.feeds.insert(feed.clone(), (Arc::clone(cell), false));
        unsaved.at = Some(unsaved.at.map_or(at, |before| before.min(at)));
        drop(unsaved);
        self.has_unsaved.notify_one();
    }
}

/// The last polls of a feed, at most [`POLLS_KEPT`].
#[derive(Debug, Default)]
pub(super) struct PollLog {
    /// The polls, oldest first, as [`PackedPoll`]s in postcard encoding.
    polls: Vec<u8>,
    /// When the newest poll began.
    last: Option<Time>,
    /// The notes of the newest poll; older ones are dropped to save memory.
    notes: Box<[String]>,
    /// The number of polls.
    kept: usize,
}

#[derive(Serialize, Deserialize)]
struct PackedPoll {
    /// Seconds since the previous poll.
    since: i64,
    millis: u32,
    bytes: u64,
    outcome: PollEnding,
    details: Option<PollDetails>,
}

/// Details that most polls lack.
#[derive(Default, PartialEq, Eq, Serialize, Deserialize)]
struct PollDetails {
    asked_for: bool,
    committed: bool,
    is_apart: bool,
    entries: Option<usize>,
    rewritten: u32,
    counts: EventCounts,
    failure: Option<PollFailure>,
}

impl PollLog {
    /// Adds a poll, replacing the oldest one if there are [`POLLS_KEPT`].
    pub(super) fn push(&mut self, note: FinishedPoll) {
        if self.kept >= POLLS_KEPT
            && let Ok((_, rest)) = postcard::take_from_bytes::<PackedPoll>(&self.polls)
        {
            let oldest = self.polls.len() - rest.len();
            self.polls.drain(..oldest);
            self.kept -= 1;
        }
        self.kept += 1;
        let FinishedPoll { asked_for, committed, is_apart, entries, rewritten, .. } = note;
        let (counts, failure) = (note.counts, note.failure);
        let details =
            PollDetails { asked_for, committed, is_apart, entries, rewritten, counts, failure };
        let last = self.last.replace(note.at).unwrap_or(note.at);
        let packed = PackedPoll {
            since: note.at.unix().saturating_sub(last.unix()),
            millis: u32::try_from(note.took.as_millis()).unwrap_or(u32::MAX),
            bytes: note.bytes,
            outcome: note.outcome,
            details: Some(details).filter(|details| *details != PollDetails::default()),
        };
        // Writing to memory does not fail.
        self.polls =
            postcard::to_extend(&packed, std::mem::take(&mut self.polls)).unwrap_or_default();
        self.polls.shrink_to_fit();
        self.notes = note.notes.into();
    }

    /// Returns the polls, newest first.
    pub(super) fn polls(&self) -> VecDeque<FinishedPoll> {
        let (mut packed, mut rest) = (Vec::with_capacity(POLLS_KEPT), self.polls.as_slice());
        while let Ok((poll, left)) = postcard::take_from_bytes::<PackedPoll>(rest) {
            packed.push(poll);
            rest = left;
        }
        let mut at = self.last.map_or(0, Time::unix);
        let mut notes = self.notes.to_vec();
        let newest_first = packed.into_iter().rev().map(|poll| {
            let details = poll.details.unwrap_or_default();
            let began = Time::from_unix(at);
            at = at.saturating_sub(poll.since);
            FinishedPoll {
                at: began,
                took: Duration::from_millis(u64::from(poll.millis)),
                outcome: poll.outcome,
                asked_for: details.asked_for,
                bytes: poll.bytes,
                committed: details.committed,
                is_apart: details.is_apart,
                entries: details.entries,
                rewritten: details.rewritten,
                counts: details.counts,
                failure: details.failure,
                notes: std::mem::take(&mut notes),
            }
        });
        newest_first.collect()
    }
}

#[cfg(test)]
mod tests;
