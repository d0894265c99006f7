//! From what is kept of an item to what is answered of it; the same for every store.

use super::VersionNote;
use tidegate_core::model::{
    Event, History, Item, ItemStatus, LedgerEntry, Markup, NewVersion, Shared, Time, Version,
};

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

/// What is noted of the version that a ledger entry has now, and that is shown from `shown` on.
pub(super) fn note(known: &LedgerEntry, version: &NewVersion, shown: Time) -> VersionNote {
    let size = match (&version.markup, known.is_deleted()) {
        (Some(markup), false) => u64::try_from(markup.xml.len()).unwrap_or(u64::MAX),
        _ => 0,
    };
    VersionNote {
        updates: known.updates,
        update: known.history.topmost().clone(),
        deleted: known.is_deleted(),
        tick: known.tick,
        shown,
        title: known.title.clone(),
        reason: version.reason.clone(),
        size,
    }
}

/// Takes what the item said out of a note.
pub(super) fn redact_note(note: &mut VersionNote) {
    note.title.clear();
    note.size = 0;
}

/// Takes what the item said out of an event. `native_id`: what it goes by after the redaction.
pub(super) fn redact_event(event: &mut Event, native_id: &str) {
    event.title.clear();
    native_id.clone_into(&mut event.native_id);
    // An id may be made of a title.
    event.old_native_id = event.old_native_id.take().filter(|old| !old.starts_with("title:"));
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
