//! How updates are counted: the first of an item, the next one, and those that nobody here knows any more.

use tidegate_core::model::{Count, History, LedgerEntry, Shared, Stamp, SyncId, Update};
use tidegate_core::sync;

/// Returns the first update of a new item (SSE 1.0 section 3.1). `before`: how often an earlier item with the same id
/// may have been updated; the first update is numbered above that, because subscribers ignore numbers they have seen.
pub(super) fn first_history(id: &SyncId, stamp: Stamp, before: u32) -> (Count, History) {
    let mut made = sync::create(id.clone(), (), stamp, None).winner;
    if let Ok(above) = Count::new(before).and_then(Count::next) {
        let stamp = made.history.topmost().stamp.clone();
        made.updates = above;
        made.history = History::new(Update { sequence: above, stamp });
    }
    (made.updates, made.history)
}

/// Counts its newest update, which is this gateway's own, `lost` further on.
pub(super) fn count_on(known: &mut LedgerEntry, lost: u32) {
    let on = |count: Count| Count::new(count.value().saturating_add(lost));
    let mut updates: Vec<Update> = known.history.iter().cloned().collect();
    let Some(topmost) = updates.first_mut().filter(|_| lost > 0) else { return };
    let (Ok(sequence), Ok(count)) = (on(topmost.sequence), on(known.updates)) else { return };
    topmost.sequence = sequence;
    known.updates = count;
    if let Some(history) = History::from_newest_first(updates) {
        known.history = history;
    }
}

/// The next update of an item (SSE 1.0 section 3.2), after `lost` ones that are not known any more;
/// `None` at the end of the numbers.
pub(super) fn updated(known: &LedgerEntry, stamp: Stamp, lost: u32) -> Option<(Count, History)> {
    let mut version = known.version(());
    version.updates = Count::new(version.updates.value().saturating_add(lost)).ok()?;
    let mut shared = Shared::new(version);
    sync::update(&mut shared, (), stamp).ok()?;
    Some((shared.winner.updates, shared.winner.history))
}
