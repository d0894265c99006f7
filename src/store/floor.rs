//! What is left of a purged feed, so that one of the same name goes on above it.

use crate::model::{Change, FeedState, Revision, Tick, Time};
use std::time::Duration;

/// The marks that a purged feed had reached. A subscriber or a cache may still hold them, so they
/// are never given out a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Its revision.
    pub revision: Revision,
    /// Its last tick.
    pub tick: Option<Tick>,
    /// Its render revision.
    pub render: u64,
    /// When what it showed last changed.
    pub shown: Time,
}

impl Floor {
    /// The marks of a feed that is purged now, over those of a feed purged before it.
    pub(super) fn under(state: &FeedState, older: Option<&Self>) -> Self {
        Self {
            revision: state.revision,
            tick: state.tick.max(older.and_then(|floor| floor.tick)),
            render: state.render,
            shown: state.shown,
        }
    }

    /// Lifts the first change of a new feed above the marks. `first`: nothing was committed since
    /// the purge. Until a tick was committed, later changes are lifted as well.
    pub(super) fn lift(&self, change: &mut Change, first: bool) {
        let second = Duration::from_secs(1);
        if first {
            let lifted = |render: u64| render.saturating_add(self.render).saturating_add(1);
            change.state.render = lifted(change.state.render);
            change.state.deltas_from = lifted(change.state.deltas_from);
            for entry in &mut change.known {
                entry.touched = lifted(entry.touched);
            }
            change.state.shown = change.state.shown.max(self.shown.plus(second));
        }
        let Some(floor) = self.tick else { return };
        // A subscriber that stopped at the floor must see that it is out of sync: the window
        // begins above the floor, and the first tick above the window's start.
        let start = Tick::next(floor.time(), Some(floor));
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
}
