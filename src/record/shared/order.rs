//! The order of the reader view of a feed that has shared items.

use super::super::draft::Draft;
use super::{Parts, Slot};
use crate::model::{EventKind, Known, Origin, Standing, SyncId};
use crate::record::draft::Said;
use std::collections::{HashMap, HashSet};

/// What the document lists, in its order.
#[derive(Debug, Default)]
pub(in crate::record) struct Listed(pub(in crate::record) Vec<SyncId>);

impl Listed {
    /// What the whole document lists. `plain`: the items that its plain entries became.
    pub(in crate::record) fn of(parts: &Parts<'_>, plain: &HashMap<usize, SyncId>) -> Self {
        let id = |slot: &Slot| match slot {
            Slot::Plain(at) => plain.get(at).cloned(),
            Slot::Shared(said) => Some(said.id().clone()),
            Slot::Passed(id) => Some(id.clone()),
        };
        Self(parts.slots.iter().filter_map(id).collect())
    }
}

/// Retires the shared items that a whole document does not list any more, and answers the order of
/// the reader view. Where items are made here as well, or the document is a part, it takes nothing
/// out: what is new stands above what was there. `is_whole`: whether the document
/// is the whole one; `judged`: whether its plain part was taken in.
pub(in crate::record) fn order(
    draft: &mut Draft<'_>,
    listed: &Listed,
    is_whole: bool,
    judged: bool,
) -> Vec<SyncId> {
    let there: HashSet<&SyncId> = listed.0.iter().collect();
    let has_own = draft.round.options.sharing.local;
    let replaces = is_whole && judged && !has_own;
    if is_whole && !has_own {
        let is_gone = |known: &Known| {
            known.origin == Origin::Upstream
                && known.standing == Standing::Current
                && !there.contains(&known.id)
        };
        for at in draft.positions(is_gone) {
            let since = draft.round.now;
            draft.change(at, |item| item.standing = Standing::Retired { since });
            let reason = "its publisher, who shares it, does not list it any more";
            draft.event(at, Said::new(EventKind::Retired, reason));
        }
    }
    let shown: HashSet<SyncId> = draft
        .ledger()
        .filter(|known| known.standing == Standing::Current)
        .map(|known| known.id.clone())
        .collect();
    let is_shown = |id: &&SyncId| shown.contains(*id);
    let mut seen: HashSet<SyncId> = HashSet::new();
    let listed = listed.0.iter().filter(is_shown);
    let order: Vec<SyncId> = if replaces {
        listed.cloned().collect()
    } else {
        let old: HashSet<&SyncId> = draft.old_order().iter().collect();
        let added = listed.filter(|id| !old.contains(id));
        added.chain(draft.old_order().iter().filter(is_shown)).cloned().collect()
    };
    order.into_iter().filter(|id| seen.insert(id.clone())).collect()
}
