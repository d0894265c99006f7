//! From what is kept of an item to what is answered of it; the same for every store.

use super::VersionNote;
use crate::model::{Item, Known, Markup, Shared, Version};

/// The item of a ledger entry and its newest bytes.
pub(super) fn assemble(known: Known, newest: Markup) -> Item {
    let deleted = known.is_deleted();
    let winner = Version {
        id: known.id,
        updates: known.updates,
        deleted,
        noconflicts: None,
        history: known.history,
        data: newest,
    };
    Item {
        shared: Shared::new(winner),
        published_id: known.published_id,
        tick: known.tick,
        standing: known.standing,
        touched: known.touched,
    }
}

/// What is noted of the version that a ledger entry has now.
pub(super) fn note(known: &Known, reason: &str) -> VersionNote {
    VersionNote {
        updates: known.updates,
        update: known.history.topmost().clone(),
        deleted: known.is_deleted(),
        tick: known.tick,
        title: known.title.clone(),
        reason: reason.to_owned(),
    }
}
