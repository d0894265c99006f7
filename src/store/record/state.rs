//! Feed states on disk, and what is left of purged feeds.

use super::Record;
use crate::model::FeedState;
use crate::store::purge_mark::PurgeMark;
use serde::{Deserialize, Serialize};

/// A [`FeedState`], and which events are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct StateRecord {
    pub(in crate::store) state: FeedState,
    /// The number of the next event; those kept end before it.
    pub(in crate::store) next_event: u64,
    /// The number of the last write to the feed's content.
    pub(in crate::store) write: u64,
}

impl Record for StateRecord {}

/// A [`PurgeMark`], and whether the purged feed's data is still being removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct FloorRecord {
    /// The marks of the purged feed.
    pub(in crate::store) floor: PurgeMark,
    /// Some of the purged feed's data may still be there.
    pub(in crate::store) sweeping: bool,
}

impl Record for FloorRecord {}
