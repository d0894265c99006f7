//! How the feeds stand, shared with those who ask. Of each feed as little is kept as may be, for there
//! may be a million; it is put into the values of `status` when somebody asks.

mod log;

use self::log::PollLog;
use super::reason::PlannedPoll;
use crate::model::{Backfill, FeedName, HubTrust, Time};
use crate::status::{
    FeedSummary, FinishedPoll, FinishedProbe, HubReport, PROBES_KEPT, ParsedNote, PollEnding,
    PollFailure, PollGaps, PollStatus, PollTotals,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{PoisonError, RwLock};

/// How the feeds stand.
#[derive(Default)]
pub(super) struct FeedBoard {
    board: RwLock<Board>,
}

#[derive(Default)]
struct Board {
    feeds: BTreeMap<FeedName, Box<BoardEntry>>,
    /// Of all feeds, those that left included.
    totals: PollTotals,
}

/// How the polling of one feed stands.
#[derive(Default)]
pub(super) struct BoardEntry {
    log: PollLog,
    /// The last document that was looked at.
    document: Option<Box<ParsedNote>>,
    /// Full observations since the last commit that found the document unchanged.
    pub(super) same: u32,
    /// Failures in a row.
    pub(super) failures: u32,
    /// Whether a request is being made.
    pub(super) in_flight: bool,
    /// Whether missing items are asked for, or wait to be.
    pub(super) probing: bool,
    pub(super) next: Option<PlannedPoll>,
    /// The last failure, if the last poll failed.
    failure: Option<Box<PollFailure>>,
    /// Where permanent redirects lead.
    pub(super) moved_to: Option<String>,
    /// Where items may have been missed.
    pub(super) gaps: PollGaps,
    /// Why a document is held back, if one is.
    pub(super) held: Option<String>,
    /// When something that is pending can be decided.
    pub(super) look_again: Option<Time>,
    last_read: Option<Time>,
    last_change: Option<Time>,
    /// The walk through its publisher's older documents.
    pub(super) backfill: Option<Box<Backfill>>,
    /// The last rounds of asking, newest first.
    probes: VecDeque<FinishedProbe>,
    /// The subscription to its hub, where there is one.
    pub(super) hub: Option<Box<HubReport>>,
}

impl BoardEntry {
    /// Takes in a round of asking for missing items.
    pub(super) fn add_probe(&mut self, note: FinishedProbe) {
        if note.counts.values().any(|count| *count > 0) {
            self.last_change = Some(note.at);
        }
        self.probes.truncate(PROBES_KEPT - 1);
        self.probes.push_front(note);
    }

    /// Takes in a poll, and the document that it looked at.
    fn add(&mut self, note: FinishedPoll, document: Option<ParsedNote>) {
        self.failure = note.failure.clone().map(Box::new);
        if note.failure.is_none() {
            self.last_read = Some(note.at);
        }
        if note.outcome == PollEnding::Changed {
            self.last_change = Some(note.at);
        }
        if let Some(document) = document {
            self.document = Some(Box::new(document));
        }
        self.log.push(note);
    }

    /// That it failed, though nothing was asked.
    pub(super) fn fail(&mut self, failure: PollFailure) {
        self.failure = Some(Box::new(failure));
    }

    /// The last failure, if the last poll failed.
    pub(super) fn failure(&self) -> Option<&PollFailure> {
        self.failure.as_deref()
    }

    fn is_hub_distrusted(&self) -> bool {
        let trust = self.hub.as_ref().map(|hub| hub.subscription.trust);
        trust == Some(HubTrust::Distrusted)
    }

    fn summarize(&self) -> FeedSummary {
        FeedSummary {
            last_poll: self.log.last(),
            next_poll: self.next.as_ref().map(|next| next.at),
            failures: self.failures,
            error: self.failure().map(|failure| failure.error.clone()),
            gaps: self.gaps,
            moved_to: self.moved_to.clone(),
            is_hub_distrusted: self.is_hub_distrusted(),
            gathered: None,
        }
    }

    fn describe(&self) -> PollStatus {
        PollStatus {
            polls: self.log.polls(),
            document: self.document.as_deref().cloned(),
            same: self.same,
            totals: self.log.totals(),
            in_flight: self.in_flight,
            next: self.next.as_ref().map(PlannedPoll::describe),
            failures: self.failures,
            failure: self.failure.as_deref().cloned(),
            moved_to: self.moved_to.clone(),
            gaps: self.gaps,
            held: self.held.clone(),
            look_again: self.look_again,
            last_read: self.last_read,
            last_change: self.last_change,
            backfill: self.backfill.as_deref().cloned(),
            probing: self.probing,
            probes: self.probes.clone(),
            hub: self.hub.as_deref().cloned(),
        }
    }
}

impl FeedBoard {
    /// Changes how a feed stands, which need not have stood there before.
    pub(super) fn change(&self, feed: &FeedName, change: impl FnOnce(&mut BoardEntry)) {
        let mut board = self.board.write().unwrap_or_else(PoisonError::into_inner);
        match board.feeds.get_mut(feed) {
            Some(entry) => change(entry),
            None => change(board.feeds.entry(feed.clone()).or_default()),
        }
    }

    /// Changes how a feed stands, where it does.
    pub(super) fn note(&self, feed: &FeedName, change: impl FnOnce(&mut BoardEntry)) {
        let mut board = self.board.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = board.feeds.get_mut(feed) {
            change(entry);
        }
    }

    /// Takes in a poll, the document that it looked at, and what else it changed.
    pub(super) fn add(
        &self,
        feed: &FeedName,
        note: FinishedPoll,
        document: Option<ParsedNote>,
        change: impl FnOnce(&mut BoardEntry),
    ) {
        let mut board = self.board.write().unwrap_or_else(PoisonError::into_inner);
        board.totals.add(&note);
        let entry = match board.feeds.get_mut(feed) {
            Some(entry) => entry,
            None => board.feeds.entry(feed.clone()).or_default(),
        };
        entry.add(note, document);
        change(entry);
    }

    pub(super) fn remove(&self, feed: &FeedName) {
        self.board.write().unwrap_or_else(PoisonError::into_inner).feeds.remove(feed);
    }

    /// What is true of how a feed stands; `false` where it does not.
    pub(super) fn matches(&self, feed: &FeedName, is: impl FnOnce(&BoardEntry) -> bool) -> bool {
        let board = self.board.read().unwrap_or_else(PoisonError::into_inner);
        board.feeds.get(feed).is_some_and(|entry| is(entry))
    }

    /// How a feed stands.
    pub(super) fn status(&self, feed: &FeedName) -> Option<PollStatus> {
        let board = self.board.read().unwrap_or_else(PoisonError::into_inner);
        board.feeds.get(feed).map(|entry| entry.describe())
    }

    /// How all feeds stand, in short.
    pub(super) fn summaries(&self) -> BTreeMap<FeedName, FeedSummary> {
        let board = self.board.read().unwrap_or_else(PoisonError::into_inner);
        board.feeds.iter().map(|(feed, entry)| (feed.clone(), entry.summarize())).collect()
    }

    /// How all feeds stand.
    pub(super) fn statuses(&self) -> BTreeMap<FeedName, PollStatus> {
        let board = self.board.read().unwrap_or_else(PoisonError::into_inner);
        board.feeds.iter().map(|(feed, entry)| (feed.clone(), entry.describe())).collect()
    }

    /// Sums over all polls since the start.
    pub(super) fn totals(&self) -> PollTotals {
        self.board.read().unwrap_or_else(PoisonError::into_inner).totals
    }
}
