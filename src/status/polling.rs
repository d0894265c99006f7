//! What is told of polls: to who asked for one, and to the operator.

use super::hub::HubReport;
use super::schema;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use tidegate_core::model::{
    Backfill, EventKind, Interruption, InterruptionKind, Interruptions, Overlap, Tick, Time,
};
use tidegate_net::fetch::FetchBlame;
use utoipa::ToSchema;

/// How many events of each kind; kinds without any may be absent.
pub type EventCounts = BTreeMap<EventKind, u32>;

/// Writes the kinds of the contract, each with its number.
fn all_kinds<S: Serializer>(counts: &EventCounts, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(EventKind::ALL.len()))?;
    for kind in EventKind::ALL {
        map.serialize_entry(kind.name(), counts.get(&kind).unwrap_or(&0))?;
    }
    map.end()
}

/// How many polls of a feed are remembered for the operator.
pub const POLLS_KEPT: usize = 20;

/// What came of a poll (CONTRACT, Administration API).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PollOutcome)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PollResponse {
    /// What came of it.
    pub outcome: PollEnding,
    /// What happened to items.
    #[serde(flatten, serialize_with = "all_kinds")]
    #[schema(value_type = schema::EventNumbers)]
    pub counts: EventCounts,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// The feed's tick afterwards.
    pub until: Option<Tick>,
    /// What went wrong.
    pub error: Option<String>,
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PollFailure {
    /// What, in one sentence.
    pub error: String,
    /// Who has to do something about it.
    pub blame: FetchBlame,
    /// The HTTP status that came instead of a document.
    pub status: Option<u16>,
}

/// A document that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[schema(as = LastDocument)]
pub struct ParsedNote {
    /// When the poll that brought it began.
    pub at: Time,
    /// How many entries it has.
    pub entries: usize,
    /// Why only a part of it counts, where that is so.
    pub partial: Option<String>,
    /// What was wrong with it, with the place; at most `tidegate_poll::MAX_WARNINGS`.
    pub warnings: Vec<String>,
}

/// A poll that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Poll)]
pub struct FinishedPoll {
    /// When it began.
    pub at: Time,
    /// How long it took.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    #[schema(value_type = u64)]
    pub took: Duration,
    /// What came of it.
    pub outcome: PollEnding,
    /// Whether it was asked for rather than due.
    #[serde(skip)]
    pub asked_for: bool,
    /// Bytes of the body as they came over the wire.
    pub bytes: u64,
    /// Whether anything was committed.
    #[serde(skip)]
    pub committed: bool,
    /// Whether its document had no item in common with the one before.
    #[serde(skip)]
    pub is_apart: bool,
    /// Entries in the document, where one was read.
    pub entries: Option<usize>,
    /// Items whose bytes changed in nothing that a reader would see: shown, but no version.
    pub rewritten: u32,
    /// What happened to items.
    #[serde(flatten, serialize_with = "all_kinds")]
    #[schema(value_type = schema::EventNumbers)]
    pub counts: EventCounts,
    /// What went wrong.
    #[serde(flatten, serialize_with = "all_parts")]
    #[schema(value_type = FailureParts<'_>)]
    pub failure: Option<PollFailure>,
    /// What an operator may want to know: odd redirects. Kept of the newest poll only.
    pub notes: Vec<String>,
}

impl FinishedPoll {
    /// A poll of which nothing else is known.
    pub const fn new(at: Time, outcome: PollEnding) -> Self {
        Self {
            at,
            took: Duration::ZERO,
            outcome,
            asked_for: false,
            bytes: 0,
            committed: false,
            is_apart: false,
            entries: None,
            rewritten: 0,
            counts: EventCounts::new(),
            failure: None,
            notes: Vec::new(),
        }
    }
}

/// How many rounds of asking for a feed's missing items are remembered for the operator.
pub const PROBES_KEPT: usize = 10;

/// A round of asking for missing items that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Probe)]
pub struct FinishedProbe {
    /// When it was over.
    pub at: Time,
    /// Requests that were made.
    pub requests: u32,
    /// What was heard, in words, an item each.
    pub said: Vec<String>,
    /// What happened to items.
    #[serde(flatten, serialize_with = "all_kinds")]
    #[schema(value_type = schema::EventNumbers)]
    pub counts: EventCounts,
}

/// What went wrong, each part of it even where nothing did.
#[derive(Serialize, ToSchema)]
struct FailureParts<'a> {
    error: Option<&'a str>,
    #[schema(value_type = Option<schema::Blame>)]
    blame: Option<FetchBlame>,
    status: Option<u16>,
}

fn all_parts<S: Serializer>(failure: &Option<PollFailure>, to: S) -> Result<S::Ok, S::Error> {
    let failure = failure.as_ref();
    let parts = FailureParts {
        error: failure.map(|failure| failure.error.as_str()),
        blame: failure.map(|failure| failure.blame),
        status: failure.and_then(|failure| failure.status),
    };
    parts.serialize(to)
}

fn milliseconds<S: Serializer>(took: &Duration, to: S) -> Result<S::Ok, S::Error> {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX).serialize(to)
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
    /// Documents that had no item in common with the one before.
    pub apart: u64,
    /// Bytes of bodies over the wire.
    pub bytes: u64,
    /// Events of all kinds.
    pub events: u64,
    /// Commits to the store.
    pub commits: u64,
    /// Time that polls took, in milliseconds.
    pub millis: u64,
    /// How many polls took at most as long as each of [`PollTotals::DURATIONS`] and longer than the one
    /// before; last, how many took longer than all of them.
    pub durations: [u64; PollTotals::DURATIONS.len() + 1],
}

impl PollTotals {
    /// The bounds between which the durations of polls are counted.
    pub const DURATIONS: [Duration; 10] = [
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(250),
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_millis(2500),
        Duration::from_secs(5),
        Duration::from_secs(10),
        Duration::from_secs(30),
        Duration::from_secs(60),
    ];

    /// Adds a poll.
    pub fn add(&mut self, note: &FinishedPoll) {
        let count = match note.outcome {
            PollEnding::Changed => &mut self.changed,
            PollEnding::Unchanged => &mut self.unchanged,
            PollEnding::NotModified => &mut self.not_modified,
            PollEnding::Failed => &mut self.failed,
        };
        *count += 1;
        self.apart += u64::from(note.is_apart);
        self.bytes = self.bytes.saturating_add(note.bytes);
        self.commits += u64::from(note.committed);
        self.events += note.counts.values().copied().map(u64::from).sum::<u64>();
        let millis = u64::try_from(note.took.as_millis()).unwrap_or(u64::MAX);
        self.millis = self.millis.saturating_add(millis);
        let place = Self::DURATIONS.iter().position(|bound| note.took <= *bound);
        if let Some(count) = self.durations.get_mut(place.unwrap_or(Self::DURATIONS.len())) {
            *count += 1;
        }
    }

    /// All polls.
    pub const fn polls(&self) -> u64 {
        self.changed + self.unchanged + self.not_modified + self.failed
    }
}

/// The next poll.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub struct ScheduledPoll {
    /// When.
    pub at: Time,
    /// Why then, in words.
    #[serde(rename = "why")]
    pub reason: String,
}

/// What an operator orders about a walk through older documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WalkOrder {
    /// Begin, or go on with one that stopped.
    Start,
    Stop,
}

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PushResult {
    /// There is no such callback.
    Unknown,
    /// Its signature is not right: it is counted, and nothing else.
    Disbelieved,
    /// Its feed is polled as soon as may be.
    Taken,
    /// Too much waits for the polling task: the hub is to send it again.
    Busy,
}

/// How often two whole documents of a feed in a row had no item in common: items that came between them
/// may have been missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, ToSchema)]
pub struct PollGaps {
    pub count: u32,
    /// When that was found last.
    pub last: Option<Time>,
}

impl From<&Overlap> for PollGaps {
    fn from(overlap: &Overlap) -> Self {
        Self { count: overlap.missed, last: overlap.last_missed }
    }
}

impl PollGaps {
    /// For how long missed items are a problem of their feed.
    pub const LATELY: Duration = Duration::from_secs(7 * 86_400);

    /// When items may have been missed last, where that was within [`PollGaps::LATELY`].
    pub fn lately(&self, now: Time) -> Option<Time> {
        self.last.filter(|last| now.since(*last) < Self::LATELY)
    }
}

/// How a feed's polling stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct PollStatus {
    /// The last polls, newest first, at most [`POLLS_KEPT`].
    #[serde(rename = "last_polls")]
    #[schema(value_type = Vec<FinishedPoll>)]
    pub polls: VecDeque<FinishedPoll>,
    /// The last document that was looked at; later polls may have found it unchanged.
    #[serde(skip)]
    pub document: Option<ParsedNote>,
    /// Full observations since the last commit that found the document unchanged.
    #[serde(skip)]
    pub same: u32,
    /// The next poll and why; in the past while it waits for its host, `None` while one is in
    /// flight.
    #[serde(rename = "next_poll")]
    pub next: Option<ScheduledPoll>,
    /// Failures in a row.
    pub failures: u32,
    /// The last failure, if the last poll failed.
    #[serde(skip)]
    pub failure: Option<PollFailure>,
    /// The same in words, where another gateway polls the feed and stored it.
    #[serde(skip)]
    pub stored_error: Option<String>,
    /// Where permanent redirects lead.
    pub moved_to: Option<String>,
    /// Where items may have been missed.
    pub gaps: PollGaps,
    /// When it did not go on as usual.
    #[serde(skip)]
    pub interruptions: Interruptions,
    /// When the feed was last read, whether or not it had changed; of one that another gateway polls, it may have been
    /// read since.
    #[serde(skip)]
    pub last_read: Option<Time>,
    /// The walk through its publisher's older documents.
    #[serde(skip)]
    pub backfill: Option<Backfill>,
    /// Whether missing items are asked for, or wait to be.
    pub probing: bool,
    /// The last rounds of asking, newest first, at most [`PROBES_KEPT`].
    #[serde(rename = "last_probes")]
    #[schema(value_type = Vec<FinishedProbe>)]
    pub probes: VecDeque<FinishedProbe>,
    /// The subscription to its hub, where there is one.
    #[serde(skip)]
    pub hub: Option<HubReport>,
}

impl PollStatus {
    /// Since when its polls fail, as far as that is remembered; `None` where the last one did not.
    pub fn failing_since(&self) -> Option<Time> {
        let lasts =
            |one: &&Interruption| one.kind == InterruptionKind::Failed && one.until.is_none();
        self.interruptions.iter().rev().find(lasts).map(|one| one.since)
    }

    /// Whether its own polls fail and documents came since, which are what the site answers readers.
    pub fn reads_answers(&self) -> bool {
        let failures = usize::try_from(self.failures).unwrap_or(usize::MAX);
        self.polls.iter().take(failures).any(|poll| poll.outcome != PollEnding::Failed)
    }
}
