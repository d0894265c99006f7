//! The past of a feed: versions, views, retention.

use super::{VersionNote, View};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tidegate_core::model::{Markup, Time};

/// A kept version with its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptVersion {
    /// The version.
    pub note: VersionNote,
    /// Its bytes; `None` for a tombstone, and where they were redacted.
    pub markup: Option<Markup>,
}

/// A feed at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Past {
    /// The view: `shown` and `tick` of the state are those of then, and each item has its version and bytes of then.
    Then(Box<View>),
    /// The view is not kept, or nothing was published yet; as far as is known, views from `back_to` on are kept.
    Unknown {
        /// The earliest time that can be answered; `None` where nothing can.
        back_to: Option<Time>,
    },
}

/// Counts of the retained past, and its stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Holdings {
    /// Versions of items, tombstones included.
    pub versions: u64,
    /// The bytes of these versions.
    pub version_bytes: u64,
    /// Past frames.
    pub documents: u64,
    /// The bytes of these frames.
    pub document_bytes: u64,
    /// How far back the order of the reader view is known.
    pub back_to: Option<Time>,
}

/// The limits of the past of a feed. The newest version of an item is always kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Retention {
    /// The most versions of an item.
    pub versions: usize,
    /// How long an entry is kept after it was replaced.
    pub age: Duration,
    /// The most stored bytes of the versions and past frames of a feed.
    pub bytes: u64,
}

/// The counts of one call of `prune`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Pruned {
    /// Versions of items.
    pub versions: usize,
    /// Past frames.
    pub documents: usize,
    /// Whether there is more to take out: one call takes a bounded number.
    pub more: bool,
}
