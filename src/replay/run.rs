//! One series through the core, as time goes by.

use super::report::{DocumentOutcome, DocumentReport, PrintedEvent, PrintedPending};
use super::source::{Recorded, Series};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::model::{
    BodyPrints, Completeness, EndpointId, Event, FeedName, FeedOptions, Snapshot, Tick, Time,
    Warning,
};
use tidegate_format::parse::{self, Limits, ParseError};
use tidegate_judge::archive;
use tidegate_judge::record::{self, Observation, ObservationError, Verdict};
use tidegate_judge::{self as judge, PENDING_SHOWN, PendingAbsence};
use tidegate_store::{CommitError, PinnedFeed, Store, StoreError, in_words};
use xxhash_rust::xxh3::xxh3_128;

/// Why a replay cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A recorded document cannot be read from disk.
    #[error("cannot read {path}")]
    Read {
        /// The document.
        path: std::path::PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The document cannot be taken in.
    #[error(transparent)]
    Record(#[from] ObservationError),
}

/// A held document is polled at most so often while it is in force.
const HELD_POLLS_LIMIT: u32 = 200;
/// Pending evidence is looked at again at most so often while a document is in force.
const LOOKS_LIMIT: u32 = 200;

/// The most warnings of a document that are told.
const WARNINGS_SHOWN: usize = 5;
/// Polls are no closer than this.
const LEAST_APART: Duration = Duration::from_secs(60);

/// How far off the next poll is, given the times of the last changes, newest first, when something
/// can be decided, and the time.
pub type Interval<'a> = dyn Fn(&[Time], Option<Time>, Time) -> Duration + 'a;

/// Where a series is replayed to, and under which settings.
pub struct ReplayTarget<'a> {
    pub store: &'a Store,
    /// The feed that the documents are of.
    pub feed: FeedName,
    /// What the operator says of it.
    pub options: FeedOptions,
    /// How long changes stay in the sync view.
    pub window: Duration,
    /// The most updates of one item in a day that make a version each.
    pub versions_per_day: u32,
    /// How far off the next poll is.
    pub interval: &'a Interval<'a>,
}

/// A series that is being replayed.
struct Replayed<'a> {
    target: ReplayTarget<'a>,
    endpoint: EndpointId,
    changes: Vec<Time>,
    /// The times of the documents so far, with their numbers.
    times: Vec<(Time, u64)>,
    /// The document in force.
    last: Option<BodyPrints>,
    /// Equal full observations since the last commit.
    same: u32,
    /// The feed as it was read last.
    read: Option<Arc<Snapshot>>,
}

/// The most times of changes that are remembered.
const CHANGES_KEPT: usize = 16;

/// Replays a series, giving each line to `print` as it is done.
pub async fn series(
    target: ReplayTarget<'_>,
    series: &Series,
    mut print: impl FnMut(DocumentReport),
) -> Result<(), ReplayError> {
    let mut replayed = Replayed {
        endpoint: target.store.endpoint().clone(),
        target,
        changes: Vec::new(),
        times: Vec::new(),
        last: None,
        same: 0,
        read: None,
    };
    for (at, document) in series.documents.iter().enumerate() {
        let until = series.documents.get(at + 1).map(|next| next.time);
        print(replayed.document(document, until).await?);
    }
    Ok(())
}

impl Replayed<'_> {
    async fn document(
        &mut self,
        recorded: &Recorded,
        until: Option<Time>,
    ) -> Result<DocumentReport, ReplayError> {
        let bytes = std::fs::read(&recorded.path)
            .map_err(|source| ReplayError::Read { path: recorded.path.clone(), source })?;
        self.times.push((recorded.time, recorded.n));
        let mut line = DocumentReport {
            n: recorded.n,
            file: recorded.file.clone(),
            ..DocumentReport::default()
        };
        let body = xxh3_128(&bytes);
        let prints = BodyPrints { wire: body, body };
        let unchanged = self.last == Some(prints);
        let mut now = recorded.time;
        let mut verdict =
            match self.process_document(&bytes, prints, (now, unchanged), &mut line).await? {
                Ok(verdict) => verdict,
                Err(error) => return Ok(failed(line, &error)),
            };
        let mut polls = 0;
        while let (true, Some(until)) = (is_open(&verdict), until) {
            let next = verdict.decision_due.unwrap_or(now).max(now.plus(Duration::from_secs(1)));
            polls += 1;
            if next >= until || polls > HELD_POLLS_LIMIT {
                break;
            }
            now = next;
            // It was read before.
            let Ok(next) = self.process_document(&bytes, prints, (now, false), &mut line).await?
            else {
                break;
            };
            verdict = next;
        }
        line.held = verdict.held.clone();
        if !is_open(&verdict) {
            self.last = Some(prints);
            if let Some(until) = until {
                self.in_force(now, until, &mut line).await?;
            }
        } else {
            self.last = None;
        }
        self.explain(&mut line, now).await?;
        if !line.events.is_empty() {
            line.outcome = DocumentOutcome::Changed;
        }
        Ok(line)
    }

    /// Adds why nothing was concluded from what is missing or held.
    async fn explain(&mut self, line: &mut DocumentReport, now: Time) -> Result<(), ReplayError> {
        let Some(state) = self.target.store.state(&self.target.feed).await? else { return Ok(()) };
        if let Some(hold) = &state.hold {
            line.note(format!("held: {}", judge::hold_words(hold)));
        }
        if state.next_decision_at.is_none() {
            return Ok(());
        }
        let Some((snapshot, _)) = self.unsettled(now).await? else { return Ok(()) };
        let options = &self.target.options;
        let (absent, all) = judge::absent(&snapshot, options, PENDING_SHOWN);
        if all > absent.len() {
            line.note(format!("{} of {all} missing items are shown", absent.len()));
        }
        let printed = absent.iter().filter_map(|known| {
            let pending = PendingAbsence::new(known, options, self.same)?;
            let seen_gone = self.in_force_at(pending.since);
            Some(PrintedPending { pending, seen_gone })
        });
        line.pending = printed.collect();
        Ok(())
    }

    /// The document that was in force at a time.
    fn in_force_at(&self, time: Time) -> Option<u64> {
        self.times.iter().rev().find(|(at, _)| *at <= time).map(|(_, n)| *n)
    }

    fn observation<'b>(&'b self, snapshot: Option<&'b Snapshot>, now: Time) -> Observation<'b> {
        Observation {
            feed: &self.target.feed,
            url: "",
            endpoint: &self.endpoint,
            options: &self.target.options,
            snapshot,
            now,
            running_now: now,
            tombstones: record::TOMBSTONES_KEPT,
            window: self.target.window,
            versions_per_day: self.target.versions_per_day,
            items: record::ITEMS_KEPT,
            archives: archive::Policy::default(),
        }
    }

    /// Reads a document, takes it in where it is not unchanged, and keeps what comes of it.
    async fn process_document(
        &mut self,
        bytes: &[u8],
        prints: BodyPrints,
        (now, unchanged): (Time, bool),
        line: &mut DocumentReport,
    ) -> Result<Result<Verdict, ParseError>, ReplayError> {
        let (snapshot, reader) = self.unsettled(now).await?.unzip();
        let limits = Limits::default();
        let before = record::read_before(snapshot.as_deref(), prints);
        let text = match parse::decode_as(bytes, None, before, &limits) {
            Ok(decoded) => decoded,
            Err(error) => return Ok(Err(error)),
        };
        let mut document = match parse::document(&text.text, None, &limits) {
            Ok(document) => document,
            Err(error) => return Ok(Err(error)),
        };
        text.describe(&mut document);
        if line.notes.is_empty() {
            note_warnings(
                line,
                &document.completeness,
                text.warnings.iter().chain(&document.warnings),
            );
        }
        if unchanged {
            self.same += 1;
            return Ok(Ok(self.decide_pending(now).await?));
        }
        let (mut snapshot, mut looks) = (snapshot, 0);
        if let (Some(reader), Some(part)) = (&reader, &snapshot) {
            let query = record::ledger_query(&self.observation(Some(part), now), &[&document]);
            snapshot = reader.read_more(part, query).await?.map(Arc::new).or(snapshot);
        }
        let mut verdict = loop {
            let observation = self.observation(snapshot.as_deref(), now);
            let verdict = record::take_in(&observation, &document, prints)?;
            looks += 1;
            // Ends with the whole ledger, which lacks nothing.
            let query = record::wanted_after(&observation, &verdict, looks);
            let (Some(reader), Some(part)) = (&reader, &snapshot) else { break verdict };
            let Some(more) = reader.read_more(part, query).await? else { break verdict };
            snapshot = Some(Arc::new(more));
        };
        // A pinned feed keeps what a commit takes the place of.
        drop(reader);
        if let Some(doubt) = &verdict.doubt {
            line.note(doubt.clone());
        }
        verdict = self.keep(verdict, now, line).await?;
        Ok(Ok(verdict))
    }

    /// The feed without its settled items, and what reads these. Where it has none it is read once for each revision:
    /// which settled item left the window last depends on the time as well.
    async fn unsettled(
        &mut self,
        now: Time,
    ) -> Result<Option<(Arc<Snapshot>, PinnedFeed)>, ReplayError> {
        let Some(reader) = self.target.store.pin(&self.target.feed).await? else { return Ok(None) };
        let revision = reader.state().revision;
        let is_known =
            |read: &Arc<Snapshot>| read.state.revision == revision && read.settled.is_none();
        if !self.read.as_ref().is_some_and(is_known) {
            let cutoff = Tick::at(now.minus(self.target.window));
            self.read = reader.unsettled(cutoff).await?.map(Arc::new);
        }
        Ok(self.read.clone().map(|snapshot| (snapshot, reader)))
    }

    async fn decide_pending(&mut self, now: Time) -> Result<Verdict, ReplayError> {
        let snapshot = self.unsettled(now).await?.map(|(snapshot, _)| snapshot);
        Ok(record::decide_pending(&self.observation(snapshot.as_deref(), now), self.same))
    }

    async fn keep(
        &mut self,
        mut verdict: Verdict,
        now: Time,
        line: &mut DocumentReport,
    ) -> Result<Verdict, ReplayError> {
        match verdict.rewritten() {
            0 => {}
            n => line.note(format!(
                "items whose bytes changed in nothing that a reader would see, so that there is no \
                 version: {n}"
            )),
        }
        line.events.extend(verdict.events().iter().map(|event| self.printed(event)));
        if let Some(change) = verdict.change.take() {
            if change.tick.is_some() {
                self.changes.insert(0, now);
                self.changes.truncate(CHANGES_KEPT);
            }
            self.target.store.commit(change).await?;
            self.same = 0;
        }
        Ok(verdict)
    }

    /// Polls that find the document unchanged, until the next one; only those that can decide
    /// something are computed.
    async fn in_force(
        &mut self,
        from: Time,
        until: Time,
        line: &mut DocumentReport,
    ) -> Result<(), ReplayError> {
        let mut now = from;
        for _ in 0..LOOKS_LIMIT {
            let state = self.target.store.state(&self.target.feed).await?;
            let Some(ripens) = state.and_then(|s| s.next_decision_at) else { return Ok(()) };
            let next = |by| (self.target.interval)(&self.changes, by, now).max(LEAST_APART);
            let (apart, rest) = (next(None), ripens.since(now));
            // Of ordinary polls on the way to it only the number matters.
            let polls = rest.as_secs() / apart.as_secs();
            let (step, polls) = match u32::try_from(polls).unwrap_or(u32::MAX) {
                0 | 1 => (next(Some(ripens)), 1),
                polls => (apart.saturating_mul(polls), polls),
            };
            now = now.plus(step);
            if now >= until {
                return Ok(());
            }
            self.same = self.same.saturating_add(polls);
            if now < ripens {
                continue;
            }
            let verdict = self.decide_pending(now).await?;
            self.keep(verdict, now, line).await?;
        }
        Ok(())
    }

    /// An event as it is printed: when the item was first missing is told by document.
    fn printed(&self, event: &Event) -> PrintedEvent {
        let seen_gone = event.seen_gone.and_then(|since| self.in_force_at(since));
        PrintedEvent::new(event, seen_gone)
    }
}

/// Whether a document is to be judged again even if it is the same.
const fn is_open(verdict: &Verdict) -> bool {
    verdict.held.is_some() || verdict.doubt.is_some()
}

/// Notes what is wrong with a document.
fn note_warnings<'w>(
    line: &mut DocumentReport,
    completeness: &Completeness,
    warnings: impl Iterator<Item = &'w Warning>,
) {
    if let Completeness::Salvaged(reason) = completeness {
        line.note(format!("only a part of it counts: {reason}"));
    }
    for warning in warnings.take(WARNINGS_SHOWN) {
        line.note(format!("at byte {}: {}", warning.offset, warning.message));
    }
}

fn failed(line: DocumentReport, error: &dyn std::error::Error) -> DocumentReport {
    DocumentReport { outcome: DocumentOutcome::Failed, error: Some(in_words(error)), ..line }
}
