//! From what differs to what it means: evidence of absence, its confirmation, and the brake.
//!
//! Absence is evidence with a type, never a conclusion by itself. Each rule is small, named and
//! tested alone; docs/design/judgement.md has the table of which evidence leads to what. Pure.
//!
//! `absence` finds the evidence; `confirm` decides by time and observations; [`probe::conclude`] adds
//! what the permalinks answered, and is what others call.

mod absence;
pub mod archive;
mod brake;
mod confirm;
pub mod diff;
mod explain;
pub mod identity;
mod news;
mod objections;
pub mod probe;
pub mod record;
mod replaced;
mod window;

pub use absence::{MissingItem, holes, missing};
pub use brake::{
    BRAKES, Braked, HoldTerms, OTHER_FEED, brake, hold_is_ripe, hold_terms, next_look,
};
pub use confirm::Conclusion;
pub use explain::{
    PENDING_SHOWN, PendingAbsence, QUIET_SHOWN, Quiet, absent, character_words, hold_reason,
    hold_words, pending, quiet,
};
pub use news::news;
pub use objections::objection_names;
pub use probe::{conclude, ripens, ripens_from};
pub use window::{Direction, WindowShift};

use crate::identity::Matching;
use tidegate_core::model::{FeedDocument, FeedOptions, Snapshot, Time};

/// What is before the judge: the last state of a feed and the document that follows it.
#[derive(Debug, Clone, Copy)]
pub struct JudgeInput<'a> {
    /// The feed as it was.
    pub snapshot: &'a Snapshot,
    pub document: &'a FeedDocument<'a>,
    /// Which entry is which item, and what the entries call themselves.
    pub matching: &'a Matching,
    /// What the operator says of the feed.
    pub options: &'a FeedOptions,
    /// Of each pair of the matching: whether the item changed in what a reader sees.
    pub is_changed: &'a [bool],
    /// Whether this is a first document: the last one came from another address.
    pub moved: bool,
    /// The time of the observation, by which evidence and holds age: running time.
    pub now: Time,
}

impl JudgeInput<'_> {
    /// Whether the document lists every item of the feed: by its own word or the operator's.
    pub fn is_complete(&self) -> bool {
        self.options.complete || self.document.head.complete
    }

    /// How many of the matched items changed in what a reader sees.
    pub fn changed(&self) -> usize {
        self.is_changed.iter().filter(|changed| **changed).count()
    }
}
