//! What is left of a purged feed, so that one of the same name goes on above it.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use tidegate_core::model::{
    Change, Count, EndpointId, FeedState, History, LedgerEntry, Origin, Revision, Tick, Time,
    Update,
};

/// The marks that a purged feed had reached. A subscriber or a cache may still hold them, so they
/// are never given out a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeMark {
    pub revision: Revision,
    /// Its last tick.
    pub tick: Option<Tick>,
    /// Its render revision.
    pub render: u64,
    /// When what it showed last changed.
    pub shown: Time,
    /// How often an item that was made in it was updated at most. Its ids will be minted again, and
    /// whoever knows them takes in only what was updated more often (SSE 1.0 section 3.3).
    pub updates: u32,
}

/// The most of it that is kept: items that begin far above it would be taken for a leap, and refused
/// (docs/sharing.md, Limits).
const UPDATES_LIMIT: u32 = 32_768;

impl PurgeMark {
    /// The marks of a feed that is purged now, over those of a feed purged before it. `updates`: how
    /// often an item made in it was updated at most.
    pub(super) fn under(state: &FeedState, updates: u32, older: Option<&Self>) -> Self {
        let before = older.map_or(0, |mark| mark.updates).max(state.updates_before);
        // What a restore lost before the purge.
        let lost = state.gap.map_or(0, |gap| gap.most_updates());
        let updates = updates.saturating_add(lost);
        Self {
            revision: state.revision,
            tick: state.tick.max(older.and_then(|mark| mark.tick)),
            render: state.render_revision,
            shown: state.updated_at,
            updates: updates.max(before).min(UPDATES_LIMIT),
        }
    }

    /// Lifts the first change of a new feed above the marks. `first`: nothing was committed since
    /// the purge. Until a tick was committed, later changes are lifted as well.
    pub(super) fn lift(&self, change: &mut Change, first: bool) {
        let second = Duration::from_secs(1);
        if first {
            let lifted = |render: u64| render.saturating_add(self.render).saturating_add(1);
            change.state.render_revision = lifted(change.state.render_revision);
            change.state.deltas_from = lifted(change.state.deltas_from);
            for entry in &mut change.known {
                entry.touched = lifted(entry.touched);
                if is_made_here(entry) {
                    self.lift_updates(entry);
                }
            }
            change.state.updates_before = self.updates;
            change.state.updated_at = change.state.updated_at.max(self.shown.plus(second));
        }
        let Some(last) = self.tick else { return };
        // A subscriber that stopped at the last tick of the purged feed must see that it is out of sync: the window
        // begins above that, and the first tick above the window's start.
        let start = Tick::next(last.time(), Some(last));
        for bound in [&mut change.state.window_start, &mut change.state.complete_start] {
            *bound = bound.map(|bound| bound.max(start));
        }
        let Some(old) = change.tick else { return };
        let new = old.max(Tick::next(start.time(), Some(start)));
        change.tick = Some(new);
        change.state.tick = Some(new);
        let sealed = &mut change.state.archives.sealed;
        *sealed = sealed.map(|sealed| if sealed == old { new } else { sealed });
        for entry in change.known.iter_mut().filter(|entry| entry.tick == old) {
            entry.tick = new;
        }
        for event in change.events.iter_mut().filter(|event| event.tick == Some(old)) {
            event.tick = Some(new);
        }
    }

    /// Counts on from the updates that an item of the same id may have had.
    fn lift_updates(&self, entry: &mut LedgerEntry) {
        let above = |count: Count| Count::new(count.value().saturating_add(self.updates));
        let history = entry.history.iter().map(|update| {
            let sequence = above(update.sequence).unwrap_or(Count::MAX);
            Update { sequence, stamp: update.stamp.clone() }
        });
        if let Some(history) = History::from_newest_first(history.collect::<Vec<_>>()) {
            entry.history = history;
        }
        entry.updates = above(entry.updates).unwrap_or(Count::MAX);
    }
}

/// The updates of an item that was made here; of another one the greatest sequence of this gateway's own, by which those
/// who share it know it.
pub(super) fn own_updates(known: &LedgerEntry, own: Option<&EndpointId>) -> u32 {
    let updates = match own {
        _ if is_made_here(known) => Some(known.updates),
        Some(own) => Update::greatest_by(own, known.history.iter()),
        None => None,
    };
    updates.map_or(0, Count::value)
}

const fn is_made_here(known: &LedgerEntry) -> bool {
    matches!(known.origin, Origin::Observed | Origin::Local)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::model::{Format, Gap};
    use tidegate_judge::record::LEAP_LIMIT;

    /// Of what others made, this gateway's own updates count: they come back with it.
    #[test]
    fn our_own_updates_of_shared_items_count() {
        let tick = Tick::at(Time::from_unix(5));
        let mut known = crate::conformance::make::known("a", 9, tick);
        let own = EndpointId::new("gate.example").unwrap();
        assert_eq!(own_updates(&known, Some(&own)), 9);
        known.origin = Origin::Upstream;
        let update = |n: u32, by: &str| Update {
            sequence: Count::new(n).unwrap(),
            stamp: tidegate_core::model::Stamp::By(EndpointId::new(by).unwrap()),
        };
        let history = [update(9, "OTHER"), update(4, "gate.example"), update(3, "gate.example")];
        known.history = History::from_newest_first(history).unwrap();
        assert_eq!(own_updates(&known, Some(&own)), 4);
        assert_eq!(own_updates(&known, None), 0);
    }

    #[test]
    fn what_begins_above_it_is_no_leap() {
        let state = FeedState::untouched(Format::Atom10, Time::from_unix(0));
        let floor =
            |updates, older: Option<&PurgeMark>| PurgeMark::under(&state, updates, older).updates;
        assert_eq!(floor(3, None), 3);
        let older = PurgeMark::under(&state, 5, None);
        assert_eq!((floor(3, Some(&older)), floor(9, Some(&older))), (5, 9));
        assert!(floor(u32::MAX, None) < LEAP_LIMIT);
        let century = Gap { since: Time::from_unix(0), until: Time::from_unix(86_400 * 36_500) };
        assert!(century.updates(24) * 2 < LEAP_LIMIT);
        let purged = FeedState { updates_before: 7, ..state.clone() };
        assert_eq!(PurgeMark::under(&purged, 3, None).updates, 7);
        let gap = Some(Gap { since: Time::from_unix(0), until: Time::from_unix(60) });
        let restored = FeedState { gap, ..state };
        // However many versions a day are allowed: one for each second of it.
        assert_eq!(PurgeMark::under(&restored, 3, None).updates, 3 + 60);
    }
}
