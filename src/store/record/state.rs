//! Feed states on disk, and what is left of purged feeds.

use crate::purge_mark::PurgeMark;
use serde::{Deserialize, Serialize};
use tidegate_core::model::{FeedState, Time};

/// A [`FeedState`], and which events are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateRecord {
    pub(crate) state: FeedState,
    /// The number of the next event; those kept end before it.
    pub(crate) next_event: u64,
    /// The number of the last write to the feed's content.
    pub(crate) write: u64,
    /// When its last document was asked for.
    pub(crate) asked_at: Option<Time>,
}

impl StateRecord {
    /// The last moment that it tells of.
    pub(crate) fn latest(&self) -> Time {
        self.state.tick.map_or(self.state.updated_at, |tick| tick.time().max(self.state.updated_at))
    }
}

/// A [`PurgeMark`], and whether the purged feed's data is still being removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PurgeRecord {
    /// The marks of the purged feed.
    pub(crate) mark: PurgeMark,
    /// Some of the purged feed's data may still be there.
    pub(crate) sweeping: bool,
}
