//! From what differs to what it means: identity, news, evidence of absence, and the brake.
//!
//! Four questions are asked of a document, each with a table of small, named rules, a file each:
//!
//! - [`same_item`]: which entry is which known item?
//! - `document`: is the document believed, or held until it is confirmed or heals?
//! - `hole`: what does it mean that an item is missing?
//! - [`news`]: which change of an item does a reader see?
//!
//! Absence is evidence with a type, never a conclusion by itself. docs/design/judgement.md has the rules in full. Pure.

pub mod archive;
mod document;
mod explain;
mod hole;
pub mod news;
pub mod probe;
pub mod record;
mod rules;
pub mod same_item;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod window;

pub use document::{HOLD_LOOKS, HoldTerms, hold_terms};
pub use explain::{
    PENDING_SHOWN, PendingAbsence, Quiet, absent, character_words, hold_reason, hold_words,
    never_rests, quiet,
};
pub use hole::Conclusion;
pub use rules::{Rule, noise_rules, switchable_rules};

use foldhash::{HashMap, HashMapExt as _};
use same_item::Matching;
use std::hash::Hash;
use std::time::Duration;
use tidegate_core::model::{FeedDocument, FeedOptions, Snapshot, Time};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// How often each of these comes.
fn count<T: Eq + Hash>(all: impl Iterator<Item = T>) -> HashMap<T, u64> {
    let mut counts = HashMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts
}

/// What is before the judge: the last state of a feed and the document that follows it.
#[derive(Debug, Clone, Copy)]
struct JudgeInput<'a> {
    /// The feed as it was.
    snapshot: &'a Snapshot,
    document: &'a FeedDocument<'a>,
    /// Which entry is which item, and what the entries call themselves.
    matching: &'a Matching,
    /// What the operator says of the feed.
    options: &'a FeedOptions,
    /// Of each pair of the matching: whether the item changed in what a reader sees.
    is_changed: &'a [bool],
    /// Whether the feed's address changed: the last whole document came from another one.
    moved: bool,
    /// The time of the observation, by which evidence and holds age: running time.
    now: Time,
}

impl JudgeInput<'_> {
    /// Whether the document lists every item of the feed: by its own word or the operator's.
    const fn is_complete(&self) -> bool {
        self.options.complete || self.document.head.complete
    }

    /// How many of the matched items changed in what a reader sees.
    fn changed(&self) -> usize {
        self.is_changed.iter().filter(|changed| **changed).count()
    }
}
