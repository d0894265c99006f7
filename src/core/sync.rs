//! The sharing algebra: what `sx:sync` becomes when an item is created, updated, deleted, restored,
//! merged and resolved (SSE 1.0 sections 3.1 to 3.4).
//!
//! Plain values in, plain values out: no store, no clock and no markup. The data of a version is a
//! type parameter; the algebra copies it about and, for data that breaks the specification,
//! compares its [`Canonical`] bytes.
//!
//! Merge is commutative, associative and idempotent, and replicas converge in whatever order they
//! meet, for items made by these functions: updates follow FeedSync section 3.2 step 4 (an endpoint
//! that updates takes its own conflicting versions into the history) and histories lose nothing
//! that subsumption needs (READINGS 1, rows 3 and 15). `laws` proves it with random replicas.

mod local;
mod merge;
mod outline;
mod sse091;

#[cfg(test)]
mod examples;
#[cfg(test)]
mod laws;
#[cfg(test)]
pub(crate) mod samples;

pub use local::{
    Choice, HISTORY_LIMIT, create, delete, next_update, resolve, resolve_all, restore, truncate,
    update,
};
pub use merge::{is_subsumed, merge, precedence, same_item, update_is_subsumed};
pub use outline::{
    OutlineItem091, Outlines, PlacedOutline, break_cycles, in_order, merge_outlines,
};
pub use sse091::{By091, history_of_091, merge_091, updates_of_091};

use crate::model::SyncId;

/// Data with a byte form that is the same wherever the data is the same.
///
/// It breaks the tie between two versions that conformant endpoints could not have made
/// (READINGS 1, row 4), so that every endpoint decides alike.
pub trait Canonical {
    /// The bytes to compare.
    fn canonical(&self) -> &[u8];
}

#[cfg(any(test, feature = "testing"))]
impl Canonical for String {
    fn canonical(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Canonical for () {
    fn canonical(&self) -> &[u8] {
        &[]
    }
}

/// Why an operation on a shared item is refused. The item is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyncError {
    /// `updates` or the endpoint's `sequence` stands at 2³¹−1 (READINGS 1, row 24).
    #[error(
        "item {id} was updated 2147483647 times, which is the most there can be; delete it and create another"
    )]
    Exhausted {
        /// The item.
        id: SyncId,
    },
    /// There is no conflict of that number.
    #[error(
        "item {id} has {have} conflicts, and number {asked} (counted from 0) is not among them"
    )]
    NoSuchConflict {
        /// The item.
        id: SyncId,
        /// The number asked for, counted from 0.
        asked: usize,
        /// How many conflicts there are.
        have: usize,
    },
    /// Two different items cannot be merged.
    #[error("item {local} cannot be merged with item {incoming}; only versions of one item merge")]
    OtherItem {
        /// The local item.
        local: SyncId,
        /// The incoming item.
        incoming: SyncId,
    },
}
