//! The life of a feed as a picture: a line for each item, from when it was first seen to when it left.
//!
//! Time runs to the right, and newer items are above. A line is dashed from when
//! its item was first missing, fades where it scrolled off, ends in a cross
//! where it was deleted, has a dot for each edit, which leads to what changed, and a diamond where its publisher
//! gave it another id. Bands show when a document was held, and when the publisher
//! failed.

mod bands;
mod picture;

pub(super) use self::picture::figure;

use std::collections::HashMap;
use tidegate_core::model::{
    Event, EventKind, Interruptions, ItemStatus, LedgerEntry, Snapshot, SyncId, Time,
};

/// The most items that a picture shows, the newest ones.
const LINES_SHOWN: usize = 2_000;
/// The most edits of an item that it shows, the newest ones.
const EDITS_SHOWN: usize = 20;

/// How an item left its feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Departure {
    /// It is missing, and nothing is decided yet.
    Missing,
    /// It scrolled off, and lives on in the complete feed.
    Retired,
    /// Its publisher took it away.
    Deleted,
    /// It is in no view any more: the operator removed its text, or it was discarded.
    Removed,
}

/// A change of an item that made a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineEdit {
    /// The number of the version.
    version: u32,
    at: Time,
    /// Whether the history has the version before, so that there may be something to compare with.
    has_older: bool,
}

/// An item and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LifeLine {
    id: SyncId,
    /// Empty where the item has none, and where its text was removed.
    title: String,
    begin: Time,
    /// How and when it left; `None` while it is in the feed.
    left: Option<(Departure, Time)>,
    /// Edits in the order of time.
    edits: Vec<LineEdit>,
    /// When its publisher gave it another id, as far as the events go back.
    renames: Vec<Time>,
}

impl LifeLine {
    fn new(known: &LedgerEntry, renames: Vec<Time>) -> Self {
        let left = match known.standing {
            ItemStatus::Current => {
                known.pending_absence().map(|absence| (Departure::Missing, absence.since))
            }
            ItemStatus::Retired { since } => Some((Departure::Retired, since)),
            ItemStatus::Deleted { since } => Some((Departure::Deleted, since)),
            ItemStatus::Redacted { since }
            | ItemStatus::Discarded { since }
            | ItemStatus::Evicted { since, .. } => Some((Departure::Removed, since)),
        };
        let title = if known.is_redacted() { String::new() } else { known.title.clone() };
        let (id, begin) = (known.id.clone(), known.first_seen);
        Self { id, title, begin, left, edits: edits(known), renames }
    }
}

/// The edits that an item's history knows the time of. The first version is no edit, nor is a tombstone.
fn edits(known: &LedgerEntry) -> Vec<LineEdit> {
    let tombstone = known.is_tombstone().then_some(known.updates.value());
    let has = |version| known.history.iter().any(|update| update.sequence.value() == version);
    let edit = known.history.iter().filter_map(|update| {
        let (version, at) = (update.sequence.value(), update.stamp.when()?);
        let is_edit = version > 1 && Some(version) != tombstone;
        is_edit.then(|| LineEdit { version, at, has_older: has(version - 1) })
    });
    let mut edits: Vec<LineEdit> = edit.take(EDITS_SHOWN).collect();
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
        let known = snapshot.newest_first();
        let items = known.len();
        let line = |known: &LedgerEntry| {
            LifeLine::new(known, renames.remove(&known.id).unwrap_or_default())
        };
        let lines = known.into_iter().take(LINES_SHOWN).map(line).collect();
        Self { lines, items, interruptions }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{Count, EndpointId, History, Stamp, Stub, Update};

    fn at(seconds: i64) -> Time {
        Time::from_unix(1_800_000_000 + seconds)
    }

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
            ..Stub::named("a").into_known()
        }
    }

    fn versions(known: &LedgerEntry) -> Vec<(u32, bool)> {
        edits(known).into_iter().map(|edit| (edit.version, edit.has_older)).collect()
    }

    #[test]
    fn the_first_version_and_a_tombstone_are_no_edits() {
        let current = known(&[(4, 40), (3, 30), (1, 10)], ItemStatus::Current);
        assert_eq!(versions(&current), [(3, false), (4, true)]);
        let deleted = known(&[(2, 40), (1, 10)], ItemStatus::Deleted { since: at(40) });
        assert_eq!(versions(&deleted), []);
        assert_eq!(LifeLine::new(&deleted, Vec::new()).left, Some((Departure::Deleted, at(40))));
    }

    #[test]
    fn a_removed_text_leaves_no_title() {
        let mut redacted = known(&[(2, 40), (1, 10)], ItemStatus::Redacted { since: at(40) });
        redacted.title = "A name that must go".to_owned();
        assert_eq!(LifeLine::new(&redacted, Vec::new()).title, "");
    }
}
