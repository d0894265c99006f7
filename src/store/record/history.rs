//! What is known of the past documents of a feed, on disk.

use serde::{Deserialize, Serialize};
use tidegate_core::model::Time;

/// Since when the present order and skeleton are in force, and how many of those before were stored
/// as differences in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct HistoryRecord {
    order: Option<Run>,
    skeleton: Option<Run>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    since: Time,
    differences: u32,
}

impl HistoryRecord {
    /// Since when the present order is in force.
    pub(crate) fn order(&self) -> Option<Time> {
        self.order.map(|run| run.since)
    }

    /// Since when the present skeleton is in force.
    pub(crate) fn skeleton(&self) -> Option<Time> {
        self.skeleton.map(|run| run.since)
    }

    /// How many orders in a row were stored as differences.
    pub(crate) fn order_run(&self) -> u32 {
        self.order.map_or(0, |run| run.differences)
    }

    /// How many skeletons in a row were stored as differences.
    pub(crate) fn skeleton_run(&self) -> u32 {
        self.skeleton.map_or(0, |run| run.differences)
    }

    /// Another order is in force from `since` on.
    pub(crate) fn set_order(&mut self, since: Time, differences: u32) {
        self.order = Some(Run { since, differences });
    }

    /// Another skeleton is in force from `since` on.
    pub(crate) fn set_skeleton(&mut self, since: Time, differences: u32) {
        self.skeleton = Some(Run { since, differences });
    }
}
