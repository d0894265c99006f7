//! What the picture of a feed's life shows: items with the times at which something happened to them.

use std::collections::HashMap;
use tidegate_core::model::{
    Event, EventKind, Interruptions, ItemStatus, LedgerEntry, Snapshot, SyncId, Time,
};

/// The most items that a picture shows, the newest ones.
pub(super) const LINES_SHOWN: usize = 2_000;
/// The most edits of an item that it shows, the newest ones.
const EDITS_SHOWN: usize = 20;

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// It does not: the item is in the feed.
    Current,
    /// Its item is missing since then, and nothing is decided yet.
    Missing(Time),
    /// Its item scrolled off, and lives on in the complete feed.
    Retired(Time),
    /// Its publisher took it away.
    Deleted(Time),
    /// It is in no view any more: the operator removed its text, or it was discarded.
    Removed(Time),
}

impl LineEnd {
    /// When the item left; `None` while it is in the feed.
    pub(super) const fn time(self) -> Option<Time> {
        match self {
            Self::Current => None,
            Self::Missing(at) | Self::Retired(at) | Self::Deleted(at) | Self::Removed(at) => {
                Some(at)
            }
        }
    }
}

/// A change of an item that made a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineEdit {
    /// The number of the version.
    pub(super) version: u32,
    pub(super) at: Time,
    /// Whether the history has the version before, so that there may be something to compare with.
    pub(super) has_older: bool,
}

/// An item and what happened to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LifeLine {
    pub(super) id: SyncId,
    /// Empty where the item has none, and where its text was removed.
    pub(super) title: String,
    pub(super) begin: Time,
    pub(super) end: LineEnd,
    /// Edits in the order of time.
    pub(super) edits: Vec<LineEdit>,
    /// When its publisher gave it another id, as far as the events go back.
    pub(super) renames: Vec<Time>,
}

impl LifeLine {
    fn new(known: &LedgerEntry, renames: Vec<Time>) -> Self {
        let end = match known.standing {
            ItemStatus::Current => known
                .pending_absence()
                .map_or(LineEnd::Current, |absence| LineEnd::Missing(absence.since)),
            ItemStatus::Retired { since } => LineEnd::Retired(since),
            ItemStatus::Deleted { since } => LineEnd::Deleted(since),
            ItemStatus::Redacted { since }
            | ItemStatus::Discarded { since }
            | ItemStatus::Evicted { since, .. } => LineEnd::Removed(since),
        };
        let title = if known.is_redacted() { String::new() } else { known.title.clone() };
        let (id, begin) = (known.id.clone(), known.first_seen);
        Self { id, title, begin, end, edits: edits(known), renames }
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
pub(crate) struct FeedLife {
    /// Newest first.
    pub(super) lines: Vec<LifeLine>,
    /// How many items the ledger has.
    pub(super) items: usize,
    /// When the feed did not go on as usual, in the order in which that began.
    pub(super) interruptions: Interruptions,
}

impl FeedLife {
    /// The life of a feed as its ledger and its newest events tell it.
    pub(crate) fn new(snapshot: &Snapshot, events: &[Event], interruptions: Interruptions) -> Self {
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
        assert_eq!(LifeLine::new(&deleted, Vec::new()).end, LineEnd::Deleted(at(40)));
    }

    #[test]
    fn a_removed_text_leaves_no_title() {
        let mut redacted = known(&[(2, 40), (1, 10)], ItemStatus::Redacted { since: at(40) });
        redacted.title = "A name that must go".to_owned();
        assert_eq!(LifeLine::new(&redacted, Vec::new()).title, "");
    }
}
