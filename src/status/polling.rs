//! The results and status of polls, for callers and operators.

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

/// The number of events of each kind; kinds without events may be absent.
pub type EventCounts = BTreeMap<EventKind, u32>;

/// Serializes all kinds of the contract, each with its number.
fn all_kinds<S: Serializer>(counts: &EventCounts, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(EventKind::ALL.len()))?;
    for kind in EventKind::ALL {
        map.serialize_entry(kind.name(), counts.get(&kind).unwrap_or(&0))?;
    }
    map.end()
}

/// The number of polls of a feed that the operator can see.
pub const POLLS_KEPT: usize = 20;

/// The outcome of a poll (CONTRACT, Administration API).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = PollOutcome)]
pub enum PollEnding {
    /// Something that readers see changed.
    Changed,
    /// The publisher sent a document; nothing that readers see changed.
    Unchanged,
    /// The publisher answered 304; nothing that readers see changed.
    NotModified,
    /// No document was received, or it could not be used.
    Failed,
}

impl PollEnding {
    /// Returns the contract's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::NotModified => "not_modified",
            Self::Failed => "failed",
        }
    }
}

/// The result of a poll on demand (CONTRACT, `POST /api/v1/feeds/NAME/poll`). Durable when returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PollResponse {
    pub outcome: PollEnding,
    /// The events of items, by kind.
    #[serde(flatten, serialize_with = "all_kinds")]
    #[schema(value_type = schema::EventNumbers)]
    pub counts: EventCounts,
    /// Why a document is held back, if one is.
    pub held: Option<String>,
    /// The feed's tick after the poll.
    pub until: Option<Tick>,
    /// Why the poll failed, if it did.
    pub error: Option<String>,
}

/// The failure of a poll.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PollFailure {
    /// The failure, in one sentence.
    pub error: String,
    /// Who must act on it.
    pub blame: FetchBlame,
    /// The HTTP status that came instead of a document.
    pub status: Option<u16>,
}

/// A summary of a parsed document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[schema(as = LastDocument)]
pub struct ParsedNote {
    /// When the poll that fetched it began.
    pub at: Time,
    /// The number of entries.
    pub entries: usize,
    /// Why only a part of it counts, if so.
    pub partial: Option<String>,
    /// Its problems and their places; at most `tidegate_poll::MAX_WARNINGS`.
    pub warnings: Vec<String>,
}

/// A finished poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Poll)]
pub struct FinishedPoll {
    /// When it began.
    pub at: Time,
    /// How long it took.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    #[schema(value_type = u64)]
    pub took: Duration,
    pub outcome: PollEnding,
    /// Whether it was a poll on demand.
    #[serde(skip)]
    pub asked_for: bool,
    /// The bytes of the body as transferred.
    pub bytes: u64,
    /// Whether anything was committed.
    #[serde(skip)]
    pub committed: bool,
    /// Whether its document had no item in common with the previous one.
    #[serde(skip)]
    pub is_apart: bool,
    /// The number of entries in the document, if one was parsed.
    pub entries: Option<usize>,
    /// Items whose bytes changed without a visible difference: updated, but without a new version.
    pub rewritten: u32,
    /// The events of items, by kind.
    #[serde(flatten, serialize_with = "all_kinds")]
    #[schema(value_type = schema::EventNumbers)]
    pub counts: EventCounts,
    /// The failure, if it failed.
    #[serde(flatten, serialize_with = "all_parts")]
    #[schema(value_type = FailureParts<'_>)]
    pub failure: Option<PollFailure>,
    /// Notes for the operator, such as odd redirects; retained for the newest poll only.
    pub notes: Vec<String>,
}

impl FinishedPoll {
    /// Creates a poll without details.
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

/// The number of probes of a feed that the operator can see.
pub const PROBES_KEPT: usize = 10;

/// A finished probe for missing items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Probe)]
pub struct FinishedProbe {
    /// When it ended.
    pub at: Time,
    /// The number of requests.
    pub requests: u32,
    /// The findings in words, one per item.
    pub said: Vec<String>,
    /// The events of items, by kind.
    #[serde(flatten, serialize_with = "all_kinds")]
    #[schema(value_type = schema::EventNumbers)]
    pub counts: EventCounts,
}

/// The parts of a failure; all are `null` if there is none.
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

/// Totals over all polls since the start, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PollTotals {
    /// Polls with the outcome `changed`.
    pub changed: u64,
    /// Polls with the outcome `unchanged`.
    pub unchanged: u64,
    /// Polls with the outcome `not_modified`.
    pub not_modified: u64,
    /// Polls with the outcome `failed`.
    pub failed: u64,
    /// Documents that had no item in common with the previous one.
    pub apart: u64,
    /// Bytes of bodies as transferred.
    pub bytes: u64,
    /// Events of all kinds.
    pub events: u64,
    /// Commits to the store.
    pub commits: u64,
    /// The total duration of polls, in milliseconds.
    pub millis: u64,
    /// The number of polls per duration: up to each of [`PollTotals::DURATIONS`] and above the one before; the last
    /// counts longer ones.
    pub durations: [u64; PollTotals::DURATIONS.len() + 1],
}

impl PollTotals {
    /// The upper bounds of the duration histogram.
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

    /// Returns the number of polls.
    pub const fn polls(&self) -> u64 {
        self.changed + self.unchanged + self.not_modified + self.failed
    }
}

/// The next poll.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, ToSchema)]
pub struct ScheduledPoll {
    pub at: Time,
    /// The reason in words.
    #[serde(rename = "why")]
    pub reason: String,
}

/// An operator's order about the walk through older documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WalkOrder {
    /// Begin, or continue one that was stopped.
    Start,
    Stop,
}

/// The result of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PushResult {
    /// The callback is unknown.
    Unknown,
    /// The signature is invalid; the push is counted and otherwise ignored.
    Disbelieved,
    /// The feed is polled as soon as possible.
    Taken,
    /// The queue of the polling task is full; the hub should retry.
    Busy,
}

/// Gaps: consecutive whole documents of a feed without a common item, between which items may have been missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, ToSchema)]
pub struct PollGaps {
    pub count: u32,
    /// When the last gap was found.
    pub last: Option<Time>,
}

impl From<&Overlap> for PollGaps {
    fn from(overlap: &Overlap) -> Self {
        Self { count: overlap.missed, last: overlap.last_missed }
    }
}

impl PollGaps {
    /// How long a gap counts as a problem of the feed.
    pub const LATELY: Duration = Duration::from_secs(7 * 86_400);

    /// Returns the time of the last gap, if it was within [`PollGaps::LATELY`].
    pub fn lately(&self, now: Time) -> Option<Time> {
        self.last.filter(|last| now.since(*last) < Self::LATELY)
    }
}

/// The polling status of a feed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct PollStatus {
    /// The last polls, newest first, at most [`POLLS_KEPT`].
    #[serde(rename = "last_polls")]
    #[schema(value_type = Vec<FinishedPoll>)]
    pub polls: VecDeque<FinishedPoll>,
    /// A summary of the last parsed document; later polls may have found it unchanged.
    #[serde(skip)]
    pub document: Option<ParsedNote>,
    /// Observations of the whole, unchanged document since the last commit.
    #[serde(skip)]
    pub same: u32,
    /// The next poll and its reason; in the past while it waits for its host, `None` while a poll is in flight.
    #[serde(rename = "next_poll")]
    pub next: Option<ScheduledPoll>,
    /// Consecutive failures.
    pub failures: u32,
    /// The failure of the last poll; `None` if it succeeded.
    #[serde(skip)]
    pub failure: Option<PollFailure>,
    /// The failure in words, as stored by another gateway that polls the feed.
    #[serde(skip)]
    pub stored_error: Option<String>,
    /// The target of permanent redirects.
    pub moved_to: Option<String>,
    /// Gaps in which items may have been missed.
    pub gaps: PollGaps,
    /// When polling did not go on as usual.
    #[serde(skip)]
    pub interruptions: Interruptions,
    /// When the feed was last read, changed or not; if another gateway polls it, as last stored.
    #[serde(skip)]
    pub last_read: Option<Time>,
    /// The walk through its publisher's older documents.
    #[serde(skip)]
    pub backfill: Option<Backfill>,
    /// Whether a probe for missing items is running or waiting.
    pub probing: bool,
    /// The last probes, newest first, at most [`PROBES_KEPT`].
    #[serde(rename = "last_probes")]
    #[schema(value_type = Vec<FinishedProbe>)]
    pub probes: VecDeque<FinishedProbe>,
    /// The subscription to its hub, if there is one.
    #[serde(skip)]
    pub hub: Option<HubReport>,
}

impl PollStatus {
    /// Returns since when its polls fail, if remembered; `None` if the last poll succeeded.
    pub fn failing_since(&self) -> Option<Time> {
        let lasts =
            |one: &&Interruption| one.kind == InterruptionKind::Failed && one.until.is_none();
        self.interruptions.iter().rev().find(lasts).map(|one| one.since)
    }

    /// Whether its own polls fail while documents still arrive as answers to readers' requests.
    pub fn reads_answers(&self) -> bool {
        let failures = usize::try_from(self.failures).unwrap_or(usize::MAX);
        self.polls.iter().take(failures).any(|poll| poll.outcome != PollEnding::Failed)
    }
}
