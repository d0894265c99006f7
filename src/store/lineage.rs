//! Which opening of the store made which of a feed's render revisions; the same for every store.
//! The epochs of the change log are told apart likewise, by the store's identity.

use tidegate_core::model::{Change, FeedState};

/// A number that no other opening has, as good as surely; `None` where the system gives out no
/// chance.
pub(super) fn mark() -> Option<u32> {
    getrandom::u32().ok()
}

/// Notes in a change that is about to be stored which opening makes it.
pub(super) fn go_on(change: &mut Change, before: Option<&FeedState>, mark: u32) {
    let state = &mut change.state;
    let found = before
        .map_or_else(|| state.render_revision.saturating_sub(1), |before| before.render_revision);
    if state.render_revision > found {
        state.lineage.go_on(mark, found);
    }
}
