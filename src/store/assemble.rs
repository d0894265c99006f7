//! From what is kept of an item to what is answered of it.

use super::VersionNote;
use tidegate_core::model::{History, Item, ItemStatus, LedgerEntry, Markup, Shared, Time, Version};

/// Whether what a view showed at `at` may tell of an item: not of one whose text was removed since,
/// and not of one that was discarded by then.
pub(super) fn is_told(known: &LedgerEntry, at: Time) -> bool {
    match known.standing {
        ItemStatus::Discarded { since } => at < since,
        _ => !known.is_redacted(),
    }
}

/// The item of a ledger entry, its newest bytes and what is in conflict with it.
pub(super) fn assemble(
    known: LedgerEntry,
    newest: Markup,
    conflicts: Vec<Version<Markup>>,
) -> Item {
    let deleted = known.is_tombstone();
    let winner = Version {
        id: known.id,
        updates: known.updates,
        deleted,
        noconflicts: known.noconflicts,
        history: known.history,
        data: newest,
    };
    Item {
        shared: Shared { winner, conflicts },
        published_id: known.published_id,
        tick: known.tick,
        standing: known.standing,
        sse091: known.sse091,
        extras: known.extras,
        touched: known.touched,
    }
}

/// An item as it was when `note` was its newest version, with the bytes of then.
pub(super) fn assemble_past(
    known: LedgerEntry,
    note: &VersionNote,
    bytes: Markup,
    listed: bool,
) -> Item {
    let standing = match (note.deleted, listed) {
        (true, _) => ItemStatus::Deleted { since: note.tick.time() },
        (false, true) => ItemStatus::Current,
        (false, false) => ItemStatus::Retired { since: note.tick.time() },
    };
    let later = known.updates.value().saturating_sub(note.updates.value());
    let later = usize::try_from(later).unwrap_or(usize::MAX);
    let history = History::from_newest_first(known.history.iter().skip(later).cloned());
    let history = history.filter(|history| *history.topmost() == note.update);
    let winner = Version {
        id: known.id,
        updates: note.updates,
        deleted: note.deleted,
        noconflicts: known.noconflicts,
        history: history.unwrap_or_else(|| History::new(note.update.clone())),
        data: bytes,
    };
    Item {
        shared: Shared::new(winner),
        published_id: known.published_id,
        tick: note.tick,
        standing,
        sse091: None,
        extras: None,
        touched: known.touched,
    }
}
