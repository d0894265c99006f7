//! What replay prints (CONTRACT, Command line).

use serde::Serialize;
use std::collections::BTreeMap;
use tidegate_core::model::{Event, EventKind, counted};
use tidegate_judge::PendingAbsence;

/// What came of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentOutcome {
    /// Something happened while it was in force.
    Changed,
    /// Nothing did.
    #[default]
    Unchanged,
    /// It could not be read.
    Failed,
}

impl DocumentOutcome {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Unchanged => "unchanged",
            Self::Failed => "failed",
        }
    }
}

/// An event as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrintedEvent {
    kind: &'static str,
    sync_id: String,
    native_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_native_id: Option<String>,
    title: String,
    tick: Option<String>,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen_gone: Option<u64>,
}

impl PrintedEvent {
    /// Prints an event; `seen_gone` is the first document without the item.
    pub fn new(event: &Event, seen_gone: Option<u64>) -> Self {
        Self {
            kind: event.kind.name(),
            sync_id: event.id.to_string(),
            native_id: event.native_id.clone(),
            old_native_id: event.old_native_id.clone(),
            title: event.title.clone(),
            tick: event.tick.map(|t| t.to_string()),
            reason: event.reason.clone(),
            seen_gone,
        }
    }

    /// One line for people.
    pub fn describe(&self) -> String {
        format!("  {} {} ({}): {}", self.kind, self.title, self.native_id, self.reason)
    }
}

/// An item that was still missing when the next document came, as it is printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PrintedPending {
    #[serde(flatten)]
    pub(super) pending: PendingAbsence,
    /// The first document without the item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seen_gone: Option<u64>,
}

impl PrintedPending {
    /// One line for people.
    pub fn describe(&self) -> String {
        let PendingAbsence { title, native_id, seen, would, decides_at, .. } = &self.pending;
        let would = would.name();
        format!("  missing {title} ({native_id}): {seen}; {would} at {decides_at} at the earliest")
    }
}

/// The line of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DocumentReport {
    /// The document's number.
    pub n: u64,
    pub file: String,
    /// What came of it.
    pub outcome: DocumentOutcome,
    /// What happened while it was in force.
    pub events: Vec<PrintedEvent>,
    /// Why it was held, where it was still held when the next document came.
    pub held: Option<String>,
    /// Why it could not be read.
    pub error: Option<String>,
    /// Items that were still missing then with nothing concluded, at most
    /// [`tidegate_judge::PENDING_SHOWN`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PrintedPending>,
    /// What else there is to know of it, at most `NOTES_SHOWN`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The most notes of a document.
pub const NOTES_SHOWN: usize = 10;

impl DocumentReport {
    /// Adds a note while there is room.
    pub fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_SHOWN && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// The counts of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    documents: u64,
    changed: u64,
    unchanged: u64,
    failed: u64,
    held: u64,
    #[serde(flatten)]
    events: BTreeMap<&'static str, u64>,
}

impl Default for Summary {
    fn default() -> Self {
        let events = EventKind::ALL.iter().map(|kind| (kind.name(), 0)).collect();
        Self { documents: 0, changed: 0, unchanged: 0, failed: 0, held: 0, events }
    }
}

impl Summary {
    /// Counts a line.
    pub fn add(&mut self, line: &DocumentReport) {
        self.documents += 1;
        match line.outcome {
            DocumentOutcome::Changed => self.changed += 1,
            DocumentOutcome::Unchanged => self.unchanged += 1,
            DocumentOutcome::Failed => self.failed += 1,
        }
        self.held += u64::from(line.held.is_some());
        for event in &line.events {
            *self.events.entry(event.kind).or_insert(0) += 1;
        }
    }

    /// One paragraph for people.
    pub fn describe(&self) -> String {
        let events: Vec<String> =
            self.events.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        format!(
            "{}: {} changed, {} unchanged, {} failed, {} held\nitems: {}",
            counted(self.documents, "document"),
            self.changed,
            self.unchanged,
            self.failed,
            self.held,
            events.join(", ")
        )
    }
}
