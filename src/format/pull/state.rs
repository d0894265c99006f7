//! What is kept of a replica beside it, so that the next pull goes on from there.

use serde::{Deserialize, Serialize};

/// An archive document that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArchiveGap {
    /// Its address.
    pub url: String,
    /// The archive before which reading on can end, since it was read earlier.
    pub until: Option<String>,
    /// The entries that newer documents speak of: what stands in the gap is no news of them.
    /// `None`: everything that is kept is newer.
    pub above: Option<Vec<String>>,
}

/// A complete feed that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complete {
    /// Its address.
    pub url: String,
    /// Its `ETag`.
    pub etag: Option<String>,
}

/// By which rules a replica is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "by")]
pub enum ReplicaBasis {
    /// SSE 1.0 section 4.1.
    Sse {
        /// The `until` of the last read, where the feed has bounds.
        until: Option<String>,
        /// The complete feed, where that is what is read each time, since the feed has no bounds.
        complete: Option<Complete>,
    },
    /// Feed History draft-05 section 6.
    History {
        /// The last archive that was read, by its `self` or the address that it was read from.
        archive: Option<String>,
        /// Archives that could not be read, newest first.
        #[serde(default, rename = "missing")]
        gaps: Vec<ArchiveGap>,
        /// Entries that were said to be deleted while there were gaps: an archive that is read late
        /// must not bring them back.
        #[serde(default)]
        deleted: Vec<String>,
    },
}

impl Default for ReplicaBasis {
    fn default() -> Self {
        Self::Sse { until: None, complete: None }
    }
}

/// What is kept of a replica beside it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct State {
    /// The address that is followed: the one that was given, or the one that a document there
    /// called `current`.
    pub subscription: String,
    /// The `ETag` of the last document read from there.
    pub etag: Option<String>,
    /// Its `Last-Modified`.
    pub last_modified: Option<String>,
    /// The address that gave them: they are sent to no other one.
    pub answered_by: Option<String>,
    /// By which rules, and how far.
    pub kept: ReplicaBasis,
}
