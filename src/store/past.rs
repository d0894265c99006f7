//! What is kept of the past of a feed, and what it costs.

use super::{VersionNote, View};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tidegate_core::model::{Markup, Time};

/// A kept version with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptVersion {
    /// What is noted of it.
    pub note: VersionNote,
    /// The bytes that it came with; `None` for a tombstone, and where they were redacted.
    pub markup: Option<Markup>,
}

/// What a feed said at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Past {
    /// What it said: the state's `shown` and `tick` are those of then, and each item is in the
    /// version that it had, with the bytes that this came with.
    Then(Box<View>),
    /// It is not kept, or nothing was published yet; as far as is known, what was said from
    /// `back_to` on is.
    Unknown {
        /// The earliest time that can be answered; `None` where nothing can.
        back_to: Option<Time>,
    },
}

/// What is kept of a feed, and what it takes as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Holdings {
    /// Versions of items, tombstones included.
    pub versions: u64,
    /// What their bytes take.
    pub version_bytes: u64,
    /// Orders and surrounding documents of the past.
    pub documents: u64,
    /// What they take.
    pub document_bytes: u64,
    /// How far back the order of the reader view is known.
    pub back_to: Option<Time>,
}

/// How much is kept of a feed's past. The newest version of an item is kept in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retention {
    /// The most versions of an item.
    pub versions: usize,
    /// How long something is kept after something else took its place.
    pub age: Duration,
    /// What the versions and past documents of a feed may take, in bytes as stored.
    pub bytes: u64,
}

/// What a call of `prune` took out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pruned {
    /// Versions of items.
    pub versions: usize,
    /// Orders and surrounding documents.
    pub documents: usize,
    /// Whether there is more to take out: one call takes a bounded number.
    pub more: bool,
}
