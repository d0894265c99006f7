//! What deltas of the reader view need (RFC 3229 with the manipulation `feed`): the render revision since which each
//! item is shown unchanged (`touched`), and the first one from which a delta can express every change (`deltas_from`).

use super::draft::ChangeDraft;
use foldhash::{HashMap, HashSet, HashSetExt as _};
use tidegate_core::model::{Family, Order, SyncId};

/// Notes the render revision of the commit in every item that is shown anew by it, and in the state
/// where a delta cannot tell of something.
pub(super) fn note(draft: &mut ChangeDraft<'_>) {
    let render = draft.state.render_revision;
    let mut anew = arrivals(draft);
    anew.extend(draft.changed_ids().cloned());
    if is_rearranged(draft, &anew) || (draft.deletes() && has_no_tombstones(draft)) {
        draft.state.deltas_from = render;
    }
    if anew.is_empty() {
        return;
    }
    for index in draft.positions(|known| anew.contains(&known.id)) {
        draft.change(index, |item| item.touched = render);
    }
}

/// The items that come into the reader view, for the first time or again.
fn arrivals(draft: &ChangeDraft<'_>) -> HashSet<SyncId> {
    let Some(order) = &draft.order else { return HashSet::new() };
    let there: HashSet<&SyncId> = draft.old_order().iter().collect();
    order.iter().filter(|id| !there.contains(id)).cloned().collect()
}

/// Whether items that stay as they were stand in another order now: where order means something,
/// as in a ranking, a reader must see it.
fn is_rearranged(draft: &ChangeDraft<'_>, anew: &HashSet<SyncId>) -> bool {
    let Some(order) = &draft.order else { return false };
    if !matches!(draft.observation.options.order, Order::Auto | Order::None) {
        // Whoever has the items has their order: it is that of their dates.
        return false;
    }
    let old: HashMap<&SyncId, usize> =
        draft.old_order().iter().enumerate().map(|(place, id)| (id, place)).collect();
    let places = order.iter().filter(|id| !anew.contains(*id)).filter_map(|id| old.get(id));
    !places.is_sorted()
}

/// RSS has no element that says that an item is gone.
fn has_no_tombstones(draft: &ChangeDraft<'_>) -> bool {
    draft.state.format.family() == Family::Rss
}
