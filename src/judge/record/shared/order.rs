//! The order of the reader view of a feed that has shared items.

use super::super::draft::ChangeDraft;
use super::{EntryOwner, SharedSplit};
use foldhash::{HashMap, HashSet, HashSetExt as _};
use std::cmp::Reverse;
use tidegate_core::model::{
    Entry, FeedDocument, ItemStatus, LedgerEntry, Origin, SyncId, Tick, Time,
};

/// What the whole document lists, in its order. `plain`: the items that its plain entries became.
pub(in crate::record) fn listed(
    split: &SharedSplit<'_>,
    plain: &HashMap<usize, SyncId>,
) -> Vec<SyncId> {
    let id = |slot: &EntryOwner| match slot {
        EntryOwner::Plain(at) => plain.get(at).cloned(),
        EntryOwner::Item(id) => Some(id.clone()),
    };
    split.slots.iter().filter_map(id).collect()
}

/// The least items that the reader view shows of a publisher who lists changes only.
pub(in crate::record) const SHOWN_LEAST: usize = 100;

/// Whether nothing is known yet of a publisher who lists changes only.
pub(super) fn is_first_of_changes(split: &SharedSplit<'_>, document: &FeedDocument<'_>) -> bool {
    document.lists_changes()
        && !split.whole.known.iter().any(|known| known.origin == Origin::Upstream)
}

/// What of a complete feed is shown beside what its document lists: the last that changed.
pub(super) fn newest<'a>(
    complete: &'a FeedDocument<'_>,
    listed: &HashSet<&SyncId>,
) -> Vec<&'a SyncId> {
    let all = complete.entries.iter().filter_map(Entry::shared);
    let living =
        all.filter(|incoming| !incoming.version.deleted && !listed.contains(incoming.id()));
    let mut living: Vec<_> = living.collect();
    living.sort_by_key(|incoming| Reverse(incoming.version.history.topmost().stamp.when()));
    let room = SHOWN_LEAST.saturating_sub(listed.len());
    living.into_iter().take(room).map(|incoming| incoming.id()).collect()
}

/// Returns the sort key of the order by update: the item's own date, at the latest the time at which the gateway took
/// it in, and then its tick.
fn update_of(known: &LedgerEntry) -> (Time, Tick) {
    let own_date = known.updated.max(known.published).or(known.history.topmost().stamp.when());
    let seen = known.tick.time();
    (own_date.map_or(seen, |date| date.min(seen)), known.tick)
}

/// What is current, by update, the newest first.
pub(in crate::record) fn by_update<'d>(draft: &'d ChangeDraft<'_>) -> Vec<&'d LedgerEntry> {
    let current = draft.ledger().filter(|known| known.standing == ItemStatus::Current);
    let mut current: Vec<_> = current.map(|known| (update_of(known), known)).collect();
    current.sort_by_key(|&(update, known)| (Reverse(update), &known.id));
    current.into_iter().map(|(_, known)| known).collect()
}

/// The order of the reader view of a publisher whose document lists what changed of late
/// (`sx:sharing/@since`): that something is not in it says nothing. What is listed stands in the
/// publisher's order, or where that is the order of the changes themselves, by update; then what is
/// not listed, by update, until there are newer items enough. `is_list`: its items are outlines, whose order
/// is never that of changes.
pub(in crate::record) fn by_changes(
    draft: &mut ChangeDraft<'_>,
    listed: &[SyncId],
    is_list: bool,
) -> Vec<SyncId> {
    let there: HashSet<&SyncId> = listed.iter().collect();
    let mut room = SHOWN_LEAST.saturating_sub(there.len());
    let (mut first, mut order, mut leave) = (Vec::new(), Vec::new(), HashSet::new());
    for known in by_update(draft) {
        let id = known.id.clone();
        if there.contains(&id) {
            first.push(id);
        } else if known.origin != Origin::Upstream {
            order.push(id);
        } else if room > 0 {
            room -= 1;
            order.push(id);
        } else {
            leave.insert(id);
        }
    }
    let is_left =
        |known: &LedgerEntry| known.origin == Origin::Upstream && leave.contains(&known.id);
    for at in draft.positions(is_left) {
        draft.retire(at, format!("it is not among the {SHOWN_LEAST} that changed last"));
    }
    if is_list || !is_log(draft, listed) {
        let mut shown: HashSet<SyncId> = first.drain(..).collect();
        first = listed.iter().filter(|id| shown.remove(*id)).cloned().collect();
    }
    first.append(&mut order);
    first
}

/// Whether a document lists shared items alone, in the order in which they were changed: that is the
/// order of a log, and none of the publisher's.
fn is_log(draft: &ChangeDraft<'_>, listed: &[SyncId]) -> bool {
    let shared = draft.ledger().filter(|known| known.origin == Origin::Upstream);
    let changed: HashMap<&SyncId, _> =
        shared.map(|known| (&known.id, known.history.topmost().stamp.when())).collect();
    let keys: Option<Vec<_>> = listed.iter().map(|id| Some((*changed.get(id)?, id))).collect();
    keys.is_some_and(|keys| keys.is_sorted())
}

/// Retires the shared items that a whole document does not list any more, and returns the order of the reader view:
/// that of the document. If items are made here as well, or the document is partial, nothing leaves the view, and new
/// items come first. `is_whole`: whether the document is whole; `judged`: whether its plain part was taken in.
pub(in crate::record) fn order(
    draft: &mut ChangeDraft<'_>,
    listed: &[SyncId],
    is_whole: bool,
    judged: bool,
) -> Vec<SyncId> {
    let there: HashSet<&SyncId> = listed.iter().collect();
    let has_own = draft.observation.options.sharing.local;
    let replaces = is_whole && judged && !has_own;
    if is_whole && !has_own {
        let is_gone = |known: &LedgerEntry| {
            known.origin == Origin::Upstream
                && known.standing == ItemStatus::Current
                && !there.contains(&known.id)
        };
        for at in draft.positions(is_gone) {
            draft.retire(at, "its publisher, who shares it, does not list it any more");
        }
    }
    let shown = draft.ledger().filter(|known| known.standing == ItemStatus::Current);
    let shown: HashSet<&SyncId> = shown.map(|known| &known.id).collect();
    let (old, mut seen) = (draft.old_order(), HashSet::new());
    let before: HashSet<&SyncId> = if replaces { HashSet::new() } else { old.iter().collect() };
    let added = listed.iter().filter(|id| !before.contains(id));
    let stays = old.iter().filter(|_| !replaces);
    let order = added.chain(stays).filter(|id| shown.contains(id) && seen.insert(*id));
    order.cloned().collect()
}
