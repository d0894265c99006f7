//! What is told of polls: to who asked for one, and to the operator.

use super::callbacks::RejectedPush;
use super::probe::ProbeResult;
use super::schedule::ScheduledPoll;
use crate::fetch::FetchBlame;
use crate::model::{Backfill, EventKind, HubSubscription, Tick, Time};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How many polls of a feed are remembered for the operator.
pub const POLLS_KEPT: usize = 20;

/// What came of a poll (CONTRACT, Administration API).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PollEnding {
    /// Something that is shown changed.
    Changed,
    /// The publisher sent a document, and nothing that is shown changed.
    Unchanged,
    /// The publisher answered 304, and nothing that is shown changed.
    NotModified,
    /// There was no document, or it could not be taken in.
    Failed,
}

impl PollEnding {
    /// The contract's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::NotModified => "not_modified",
            Self::Failed => "failed",
        }
    }
}

/// The answer to "poll now" (CONTRACT, `POST /api/v1/feeds/NAME/poll`). Durable when it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PollResponse {
    /// What came of it.
    pub outcome: PollEnding,
    /// How many events of each kind; kinds without any may be absent.
    pub counts: BTreeMap<EventKind, u32>,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// The feed's tick afterwards.
    pub until: Option<Tick>,
    /// What went wrong.
    pub error: Option<String>,
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PollFailure {
    /// What, in one sentence.
    pub error: String,
    /// Who has to do something about it.
    pub blame: FetchBlame,
    /// The HTTP status that came instead of a document.
    pub status: Option<u16>,
}

/// A document that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ParsedNote {
    /// When the poll that brought it began.
    pub at: Time,
    /// How many entries it has.
    pub entries: usize,
    /// Why only a part of it counts, where that is so.
    pub partial: Option<String>,
    /// What was wrong with it, with the place; at most [`super::MAX_WARNINGS`].
    pub warnings: Vec<String>,
}

/// A poll that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedPoll {
    /// When it began.
    pub at: Time,
    /// How long it took.
    pub took: Duration,
    /// What came of it.
    pub outcome: PollEnding,
    /// Whether it was asked for rather than due.
    pub asked_for: bool,
    /// Bytes of the body as they came over the wire.
    pub bytes: u64,
    /// Whether anything was committed.
    pub committed: bool,
    /// Entries in the document, where one was read.
    pub entries: Option<usize>,
    /// Items whose bytes changed in nothing that a reader would see: shown, but no version.
    pub rewritten: u32,
    /// How many events of each kind.
    pub counts: BTreeMap<EventKind, u32>,
    /// What went wrong.
    pub failure: Option<PollFailure>,
    /// What an operator may want to know: odd redirects. Kept of the newest poll only.
    pub notes: Vec<String>,
}

/// How many rounds of asking for a feed's missing items are remembered for the operator.
pub const PROBES_KEPT: usize = 10;

/// A round of asking for missing items that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedProbe {
    /// When it was over.
    pub at: Time,
    /// Requests that were made.
    pub requests: u32,
    /// What was heard, in words, an item each.
    pub said: Vec<String>,
    /// How many events of each kind.
    pub counts: BTreeMap<EventKind, u32>,
}

impl FinishedProbe {
    /// The note of a round.
    pub fn from_result(probed: ProbeResult) -> Self {
        let ProbeResult { at, requests, said, counts, .. } = probed;
        Self { at, requests, said, counts }
    }
}

/// Sums over polls since the start, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PollTotals {
    /// Polls that changed something.
    pub changed: u64,
    /// Polls that did not, with a document.
    pub unchanged: u64,
    /// Polls that were answered 304.
    pub not_modified: u64,
    /// Polls that failed.
    pub failed: u64,
    /// Bytes of bodies over the wire.
    pub bytes: u64,
    /// Events of all kinds.
    pub events: u64,
    /// Commits to the store.
    pub commits: u64,
    /// Time that polls took, in milliseconds.
    pub millis: u64,
}

impl PollTotals {
    /// Adds a poll.
    pub fn add(&mut self, note: &FinishedPoll) {
        let count = match note.outcome {
            PollEnding::Changed => &mut self.changed,
            PollEnding::Unchanged => &mut self.unchanged,
            PollEnding::NotModified => &mut self.not_modified,
            PollEnding::Failed => &mut self.failed,
        };
        *count += 1;
        self.bytes = self.bytes.saturating_add(note.bytes);
        self.commits += u64::from(note.committed);
        self.events += note.counts.values().copied().map(u64::from).sum::<u64>();
        let millis = u64::try_from(note.took.as_millis()).unwrap_or(u64::MAX);
        self.millis = self.millis.saturating_add(millis);
    }

    /// Adds the sums of another feed.
    pub const fn join(&mut self, other: &Self) {
        self.changed += other.changed;
        self.unchanged += other.unchanged;
        self.not_modified += other.not_modified;
        self.failed += other.failed;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.events += other.events;
        self.commits += other.commits;
        self.millis = self.millis.saturating_add(other.millis);
    }

    /// All polls.
    pub const fn polls(&self) -> u64 {
        self.changed + self.unchanged + self.not_modified + self.failed
    }
}

/// How a feed's polling stands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PollStatus {
    /// The last polls, newest first, at most [`POLLS_KEPT`].
    pub polls: VecDeque<FinishedPoll>,
    /// The last document that was looked at; later polls may have found it unchanged.
    pub document: Option<ParsedNote>,
    /// Full observations since the last commit that found the document unchanged.
    pub same: u32,
    /// Sums since the start or since the feed was added.
    pub totals: PollTotals,
    /// Whether a request is being made.
    pub in_flight: bool,
    /// The next poll and why; in the past while it waits for its host, `None` while one is in
    /// flight.
    pub next: Option<ScheduledPoll>,
    /// Failures in a row.
    pub failures: u32,
    /// The last failure, if the last poll failed.
    pub failure: Option<PollFailure>,
    /// Where permanent redirects lead.
    pub moved_to: Option<String>,
    /// The address that last answered.
    pub answered_by: Option<String>,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// When something that is pending can be decided.
    pub look_again: Option<Time>,
    /// When the feed was last read, whether or not it had changed.
    pub last_read: Option<Time>,
    /// When it last changed.
    pub last_change: Option<Time>,
    /// The walk through its publisher's older documents.
    pub backfill: Option<Backfill>,
    /// Whether missing items are asked for, or wait to be.
    pub probing: bool,
    /// The last rounds of asking, newest first, at most [`PROBES_KEPT`].
    pub probes: VecDeque<FinishedProbe>,
    /// The subscription to its hub, where there is one.
    pub hub: Option<HubReport>,
}

/// How the subscription to a hub stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubReport {
    pub subscription: HubSubscription,
    /// Pushes that were not believed, since the start.
    pub disbelieved: Option<RejectedPush>,
}

impl HubReport {
    pub(super) const fn from_result(subscription: HubSubscription) -> Self {
        Self { subscription, disbelieved: None }
    }

    /// This one, with what was counted before of the same subscription.
    pub(super) fn after(self, before: Option<Self>) -> Self {
        let same = before.filter(|it| it.subscription.keys == self.subscription.keys);
        Self { disbelieved: same.and_then(|before| before.disbelieved), ..self }
    }
}

impl PollStatus {
    /// Whether evidence or a held document waits to be decided.
    pub const fn pending(&self) -> bool {
        self.held.is_some() || self.look_again.is_some()
    }

    /// Takes in a round of asking for missing items.
    pub fn add_probe(&mut self, note: FinishedProbe) {
        if note.counts.values().any(|count| *count > 0) {
            self.last_change = Some(note.at);
        }
        self.probes.truncate(PROBES_KEPT - 1);
        self.probes.push_front(note);
    }

    /// Takes in a poll.
    pub fn add(&mut self, note: FinishedPoll) {
        self.totals.add(&note);
        self.failure.clone_from(&note.failure);
        if note.failure.is_none() {
            self.last_read = Some(note.at);
        }
        if note.outcome == PollEnding::Changed {
            self.last_change = Some(note.at);
        }
        self.polls.truncate(POLLS_KEPT - 1);
        // Of thousands of feeds, only the newest remarks are kept.
        if let Some(last) = self.polls.front_mut() {
            last.notes = Vec::new();
        }
        self.polls.push_front(note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_polls_are_kept_and_all_are_counted() {
        let mut status = PollStatus::default();
        for n in 0..50u32 {
            status.add(FinishedPoll {
                at: Time::from_unix(i64::from(n)),
                took: Duration::from_millis(3),
                outcome: if n % 2 == 0 { PollEnding::Changed } else { PollEnding::NotModified },
                asked_for: false,
                bytes: 10,
                committed: false,
                entries: None,
                rewritten: 0,
                counts: BTreeMap::from([(EventKind::Created, 2)]),
                failure: None,
                notes: vec![format!("note {n}")],
            });
        }
        assert_eq!(status.polls.len(), POLLS_KEPT);
        assert_eq!(status.polls[0].at, Time::from_unix(49));
        assert_eq!(status.last_change, Some(Time::from_unix(48)));
        assert_eq!(status.polls.iter().map(|poll| poll.notes.len()).sum::<usize>(), 1);
        let totals = status.totals;
        assert_eq!((totals.polls(), totals.changed, totals.bytes), (50, 25, 500));
        assert_eq!((totals.events, totals.millis), (100, 150));
    }
}
