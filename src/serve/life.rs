//! The life of a feed as a picture: a line for each item, from when it was first seen to when it left.
//!
//! Time runs to the right, and newer items are above. A line is dashed from when
//! its item was first missing, fades where it scrolled off, ends in a cross
//! where it was deleted, has a dot for each edit, which leads to what changed, and a diamond where its publisher
//! gave it another id. Bands show when a document was held, and when the publisher
//! failed.

mod picture;

pub(super) use self::picture::figure;

use super::html::text;
use std::collections::HashMap;
use tidegate_core::model::{
    Event, EventKind, Interruption, InterruptionKind, Interruptions, ItemStatus, LedgerEntry,
    Snapshot, SyncId, Time, counted,
};
use tidegate_judge as judge;

/// The most items that a picture shows, the newest ones.
const LINES_SHOWN: usize = 2_000;
/// The most edits of an item that it shows, the newest ones.
const EDITS_SHOWN: usize = 20;

/// How an item left its feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    /// It is missing, and nothing is decided yet.
    Missing,
    /// It scrolled off, and lives on in the complete feed.
    Retired,
    /// Its publisher took it away.
    Deleted,
    /// It is in no view any more: the operator removed its text, or it was discarded.
    Removed,
}

/// What a mark on a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkKind {
    Edit,
    /// The publisher gave the item another id.
    Rename,
    /// It left for good.
    Gone,
}

/// A mark on the line of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineMark {
    kind: MarkKind,
    at: Time,
    words: String,
    /// The query of the item's page that shows it.
    query: String,
}

impl LineMark {
    fn new(kind: MarkKind, at: Time, words: &str) -> Self {
        Self { kind, at, words: words.to_owned(), query: String::new() }
    }
}

/// An item and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LifeLine {
    id: SyncId,
    /// Its title; its id where it has none, and where its text was removed.
    title: String,
    begin: Time,
    /// How and when it left; `None` while it is in the feed.
    left: Option<(LineEnd, Time)>,
    /// Edits in the order of time, renames as far as the events go back, and its end.
    marks: Vec<LineMark>,
}

impl LifeLine {
    fn new(known: &LedgerEntry, renames: &[Time]) -> Self {
        let left = match known.standing {
            ItemStatus::Current | ItemStatus::Older { .. } => {
                known.pending_absence().map(|absence| (LineEnd::Missing, absence.since))
            }
            ItemStatus::Retired { since } => Some((LineEnd::Retired, since)),
            ItemStatus::Deleted { since } => Some((LineEnd::Deleted, since)),
            ItemStatus::Redacted { since }
            | ItemStatus::Discarded { since }
            | ItemStatus::Evicted { since, .. } => Some((LineEnd::Removed, since)),
        };
        let title = known.title.trim();
        let title = match title.is_empty() || known.is_redacted() {
            true => known.id.as_str().to_owned(),
            false => text(title),
        };
        let mut marks = edits(known);
        let renamed = |at: &Time| LineMark::new(MarkKind::Rename, *at, "under another id");
        marks.extend(renames.iter().map(renamed));
        marks.extend(match left {
            Some((LineEnd::Deleted, at)) => Some(LineMark::new(MarkKind::Gone, at, "deleted")),
            Some((LineEnd::Removed, at)) => Some(LineMark::new(MarkKind::Gone, at, "removed")),
            _ => None,
        });
        Self { id: known.id.clone(), title, begin: known.first_seen, left, marks }
    }
}

/// The edits that an item's history knows the time of. The first version is no edit, nor is a tombstone. Where the history
/// has the version before, the mark leads to what changed.
fn edits(known: &LedgerEntry) -> Vec<LineMark> {
    let tombstone = known.is_tombstone().then_some(known.updates.value());
    let has = |version| known.history.iter().any(|update| update.sequence.value() == version);
    let edit = known.history.iter().filter_map(|update| {
        let (version, at) = (update.sequence.value(), update.stamp.when()?);
        let is_edit = version > 1 && Some(version) != tombstone;
        let before = version.checked_sub(1).filter(|before| has(*before));
        let query = before.map(|before| format!("?diff={before}..{version}")).unwrap_or_default();
        let mark = LineMark::new(MarkKind::Edit, at, &format!("version {version}"));
        is_edit.then_some(LineMark { query, ..mark })
    });
    let mut edits: Vec<LineMark> = edit.take(EDITS_SHOWN).collect();
    edits.reverse();
    edits
}

/// What the picture shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FeedLife {
    /// Newest first.
    lines: Vec<LifeLine>,
    /// How many items the ledger has.
    items: usize,
    /// When the feed did not go on as usual, in the order in which that began.
    interruptions: Interruptions,
}

impl FeedLife {
    /// The life of a feed as its ledger and its newest events tell it.
    pub(super) fn new(snapshot: &Snapshot, events: &[Event], interruptions: Interruptions) -> Self {
        let mut renames: HashMap<&SyncId, Vec<Time>> = HashMap::new();
        for event in events.iter().filter(|event| event.kind == EventKind::Rekeyed) {
            renames.entry(&event.id).or_default().push(event.at);
        }
        let (known, none) = (snapshot.newest_first(), Vec::new());
        let items = known.len();
        let line =
            |known: &LedgerEntry| LifeLine::new(known, renames.get(&known.id).unwrap_or(&none));
        let lines = known.into_iter().take(LINES_SHOWN).map(line).collect();
        Self { lines, items, interruptions }
    }

    /// What the picture shows, in words.
    fn words(&self) -> String {
        let mut words = counted(self.lines.len(), "item");
        if self.items > self.lines.len() {
            words += &format!(" of {}", self.items);
        }
        for (how, what) in [
            (None, "in the feed"),
            (Some(LineEnd::Missing), "missing"),
            (Some(LineEnd::Retired), "scrolled off"),
            (Some(LineEnd::Deleted), "deleted"),
            (Some(LineEnd::Removed), "removed here"),
        ] {
            let is_so = |line: &&LifeLine| line.left.map(|(how, _)| how) == how;
            let count = self.lines.iter().filter(is_so).count();
            if count > 0 {
                words += &format!(", {count} {what}");
            }
        }
        let marks = || self.lines.iter().flat_map(|line| &line.marks);
        let count = |kind| marks().filter(|mark| mark.kind == kind).count();
        let (edits, renames) = (count(MarkKind::Edit), count(MarkKind::Rename));
        if edits > 0 {
            words += &format!("; {}", counted(edits, "edit"));
        }
        if renames > 0 {
            words += &format!("; {renames} under another id");
        }
        let kinds = [InterruptionKind::Held, InterruptionKind::Failed];
        let count = |kind| self.interruptions.iter().filter(|one| one.kind == kind).count();
        let told =
            kinds.map(|kind| (kind, count(kind))).into_iter().filter(|(_, count)| *count > 0);
        let told = told.map(|(kind, count)| format!("{} {}", kind.name(), counted(count, "time")));
        let told = told.collect::<Vec<_>>().join(", ");
        if told.is_empty() { words } else { words + "; " + &told }
    }
}

/// What an interruption was, in a sentence without its full stop.
fn in_words(one: &Interruption) -> String {
    let lasting = match one.until {
        Some(until) => format!("from {} to {until}", one.since),
        None => format!("since {}", one.since),
    };
    let reason = match one.kind {
        InterruptionKind::Held => judge::hold_reason(&one.reason),
        InterruptionKind::Failed => &one.reason,
    };
    text(&format!("{} {lasting}: {reason}", one.kind.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;
    use tidegate_core::model::{Count, EndpointId, History, Stamp, Update};

    /// An item with these updates, newest first.
    fn known(updates: &[(u32, i64)], standing: ItemStatus) -> LedgerEntry {
        let by = EndpointId::own("gate.example").unwrap();
        let update = |(sequence, when): &(u32, i64)| Update {
            sequence: Count::new(*sequence).unwrap(),
            stamp: Stamp::Both { when: at(*when), by: by.clone() },
        };
        LedgerEntry {
            updates: Count::new(updates[0].0).unwrap(),
            history: History::from_newest_first(updates.iter().map(update)).unwrap(),
            standing,
            ..LedgerEntry::left("a")
        }
    }

    fn versions(known: &LedgerEntry) -> Vec<(String, String)> {
        edits(known).into_iter().map(|edit| (edit.words, edit.query)).collect()
    }

    #[test]
    fn the_first_version_and_a_tombstone_are_no_edits() {
        let current = known(&[(4, 40), (3, 30), (1, 10)], ItemStatus::Current);
        let expected = [("version 3", ""), ("version 4", "?diff=3..4")];
        assert_eq!(versions(&current), expected.map(|(words, query)| (words.into(), query.into())));
        let deleted = known(&[(2, 40), (1, 10)], ItemStatus::Deleted { since: at(40) });
        assert_eq!(versions(&deleted), []);
        assert_eq!(LifeLine::new(&deleted, &[]).left, Some((LineEnd::Deleted, at(40))));
        // A removed text leaves no title.
        let mut redacted = known(&[(2, 40), (1, 10)], ItemStatus::Redacted { since: at(40) });
        redacted.title = "A name that must go".to_owned();
        assert_eq!(LifeLine::new(&redacted, &[]).title, redacted.id.as_str());
    }
}
