//! How the feeds stand, shared with those who ask. Of each feed as little is kept as may be, for there
//! may be a million; it is put into the values of `status` when somebody asks.

mod log;

use self::log::PollLog;
use super::reason::{PlannedPoll, whole_seconds};
use super::seldom::{Nothing, Seldom};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;
use tidegate_core::model::{Backfill, FeedName, Interruptions, Time};
use tidegate_status::{
    FeedSummary, FinishedPoll, FinishedProbe, HubReport, PROBES_KEPT, ParsedNote, PollEnding,
    PollFailure, PollGaps, PollStatus, PollTotals,
};

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
    pub(super) rare: Seldom<RareStatus>,
    /// Since when it is polled.
    since: Option<Time>,
    /// The interval, in seconds, that it had when it was last read.
    interval: u32,
    /// When it did not go on as usual.
    pub(super) interruptions: Interruptions,
    /// When something that is pending can be decided.
    pub(super) look_again: Option<Time>,
    last_read: Option<Time>,
    last_change: Option<Time>,
}

/// What most feeds have nothing of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RareStatus {
    /// The last failure, if the last poll failed.
    failure: Option<PollFailure>,
    /// Where permanent redirects lead.
    pub(super) moved_to: Option<String>,
    /// Where items may have been missed.
    pub(super) gaps: PollGaps,
    /// Why a document is held back, if one is.
    pub(super) held: Option<String>,
    /// The walk through its publisher's older documents.
    pub(super) backfill: Option<Box<Backfill>>,
    /// The last rounds of asking, newest first.
    probes: VecDeque<FinishedProbe>,
    /// The subscription to its hub, where there is one.
    pub(super) hub: Option<Box<HubReport>>,
}

impl Nothing for RareStatus {
    const NOTHING: Self = Self {
        failure: None,
        moved_to: None,
        gaps: PollGaps { count: 0, last: None },
        held: None,
        backfill: None,
        probes: VecDeque::new(),
        hub: None,
    };
    const SHARED: &'static Self = &Self::NOTHING;
}

impl BoardEntry {
    /// Takes in a round of asking for missing items.
    pub(super) fn add_probe(&mut self, note: FinishedProbe) {
        if note.counts.values().any(|count| *count > 0) {
            self.last_change = Some(note.at);
        }
        self.rare.change(|rare| {
            rare.probes.truncate(PROBES_KEPT - 1);
            rare.probes.push_front(note);
        });
    }

    /// Takes in a poll, and the document that it looked at.
    fn add(&mut self, note: FinishedPoll, document: Option<ParsedNote>) {
        // One that did not fail while its own polls do was not its own.
        let is_aside = note.failure.is_none() && self.failures > 0;
        if self.rare.failure != note.failure && !is_aside {
            self.rare.change(|rare| rare.failure.clone_from(&note.failure));
        }
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

    /// It is polled from now on, after so many failures in a row.
    pub(super) fn begin(&mut self, now: Time, failures: u32) {
        self.since = Some(now);
        self.failures = failures;
    }

    /// It is not polled for the time being.
    pub(super) fn pause(&mut self) {
        (self.in_flight, self.probing, self.next, self.since) = (false, false, None, None);
        self.look_again = None;
        self.rare.change(|rare| (rare.failure, rare.hub) = (None, None));
    }

    /// Whether it is not polled for the time being.
    pub(super) const fn is_paused(&self) -> bool {
        self.since.is_none()
    }

    /// The next poll is that one.
    pub(super) fn plan(&mut self, next: PlannedPoll) {
        // What is put off because it fails says nothing of how often it should be read.
        if self.failures == 0
            && let Some(read) = self.last_read.or(self.since)
        {
            self.interval = whole_seconds(next.at.since(read));
        }
        self.next = Some(next);
    }

    /// A request is being made. Returns the poll that was planned.
    pub(super) fn ask(&mut self) -> Option<PlannedPoll> {
        self.in_flight = true;
        self.next.take()
    }

    /// That it failed, though nothing was asked.
    pub(super) fn fail(&mut self, failure: PollFailure) {
        self.rare.change(|rare| rare.failure = Some(failure));
    }

    /// The last failure, if the last poll failed.
    pub(super) fn failure(&self) -> Option<&PollFailure> {
        self.rare.failure.as_ref()
    }

    fn is_hub_distrusted(&self) -> bool {
        let hub = self.rare.hub.as_ref();
        hub.is_some_and(|hub| hub.subscription.trust.distrusted_until.is_some())
    }

    fn summarize(&self) -> FeedSummary {
        let read = self.last_read.or(self.since);
        let interval = Duration::from_secs(u64::from(self.interval));
        FeedSummary {
            last_poll: self.log.last(),
            next_poll: self.next.as_ref().map(|next| next.at),
            is_in_flight: self.in_flight,
            is_elsewhere: false,
            read,
            stale_after: read.map(|read| FeedSummary::stale_after(read, interval)),
            failures: self.failures,
            error: self.failure().map(|failure| failure.error.clone()),
            gaps: self.rare.gaps,
            moved_to: self.rare.moved_to.clone(),
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
            failure: self.rare.failure.clone(),
            stored_error: None,
            moved_to: self.rare.moved_to.clone(),
            gaps: self.rare.gaps,
            interruptions: self.interruptions.clone(),
            held: self.rare.held.clone(),
            look_again: self.look_again,
            last_read: self.last_read,
            last_change: self.last_change,
            backfill: self.rare.backfill.as_deref().cloned(),
            probing: self.probing,
            probes: self.rare.probes.clone(),
            hub: self.rare.hub.as_deref().cloned(),
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
        change(entry);
        entry.add(note, document);
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

    /// How a feed stands, in short.
    pub(super) fn summary(&self, feed: &FeedName) -> Option<FeedSummary> {
        let board = self.board.read().unwrap_or_else(PoisonError::into_inner);
        board.feeds.get(feed).map(|entry| entry.summarize())
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_status::EventCounts;

    const DAY: i64 = 86_400;

    fn at(seconds: i64) -> Time {
        Time::from_unix(1_795_000_000 + seconds)
    }

    fn polled(entry: &mut BoardEntry, at: Time, failure: Option<&str>) {
        let failure = failure.map(|error| PollFailure {
            error: error.to_owned(),
            blame: tidegate_status::FetchBlame::Upstream,
            status: None,
        });
        entry.failures = if failure.is_some() { entry.failures + 1 } else { 0 };
        let note = FinishedPoll {
            at,
            took: Duration::from_secs(1),
            outcome: if failure.is_some() { PollEnding::Failed } else { PollEnding::Unchanged },
            asked_for: false,
            bytes: 0,
            committed: false,
            is_apart: false,
            entries: None,
            rewritten: 0,
            counts: EventCounts::new(),
            failure,
            notes: Vec::new(),
        };
        entry.add(note, None);
    }

    fn stands(entry: &BoardEntry) -> (Option<Time>, Option<Time>) {
        let summary = entry.summarize();
        (summary.read, summary.stale_after)
    }

    /// There may be a million.
    #[test]
    fn a_feed_takes_few_bytes() {
        let sizes = [size_of::<BoardEntry>(), size_of::<PlannedPoll>()];
        assert!(sizes[0] <= 192 && sizes[1] <= 32, "{sizes:?}");
    }

    #[test]
    fn a_feed_is_stale_after_three_intervals_and_a_day_at_least() {
        let mut entry = BoardEntry::default();
        assert_eq!(stands(&entry), (None, None));
        entry.begin(at(0), 0);
        entry.plan(PlannedPoll::new(at(DAY), "it is new"));
        assert_eq!(stands(&entry), (Some(at(0)), Some(at(3 * DAY))));
        polled(&mut entry, at(DAY), None);
        entry.plan(PlannedPoll::new(at(DAY + 600), "as usual"));
        assert_eq!(stands(&entry), (Some(at(DAY)), Some(at(2 * DAY))));
    }

    #[test]
    fn a_feed_that_is_put_off_because_it_fails_is_no_less_stale() {
        let mut entry = BoardEntry::default();
        entry.begin(at(0), 0);
        polled(&mut entry, at(60), None);
        entry.plan(PlannedPoll::new(at(660), "as usual"));
        polled(&mut entry, at(660), Some("it does not answer"));
        entry.plan(PlannedPoll::new(at(5 * DAY), "it fails"));
        assert_eq!(stands(&entry), (Some(at(60)), Some(at(60 + DAY))));
        // One that failed before the start was read nobody knows when.
        let mut entry = BoardEntry::default();
        entry.begin(at(0), 7);
        entry.plan(PlannedPoll::new(at(5 * DAY), "it fails"));
        assert_eq!(stands(&entry), (Some(at(0)), Some(at(DAY))));
        entry.ask();
        let summary = entry.summarize();
        assert_eq!((summary.is_in_flight, summary.next_poll), (true, None));
    }

    #[test]
    fn durations_are_counted_between_bounds() {
        let mut totals = PollTotals::default();
        for millis in [0, 50, 51, 1000, 60_000, 60_001, 9_000_000] {
            let mut entry = BoardEntry::default();
            polled(&mut entry, at(0), None);
            let polls = entry.log.polls();
            let note = polls.front().unwrap().clone();
            totals.add(&FinishedPoll { took: Duration::from_millis(millis), ..note });
        }
        assert_eq!(totals.durations, [2, 1, 0, 0, 1, 0, 0, 0, 0, 1, 2]);
        assert_eq!(totals.durations.iter().sum::<u64>(), totals.polls());
    }
}
