//! How far the walk through a publisher's older documents has come.

use super::Time;
use serde::{Deserialize, Serialize};

/// How a publisher's older documents follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ArchiveLayout {
    /// Archive documents, linked (Feed History draft-05 section 4, RFC 5005 section 4).
    Archives,
    /// Pages, linked (RFC 5005 section 3).
    Pages,
    /// Pages that are numbered in the address and not linked (WordPress, `?paged=2`).
    Numbered,
}

impl ArchiveLayout {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Archives => "archives",
            Self::Pages => "pages",
            Self::Numbered => "numbered",
        }
    }
}

/// Whether a walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum WalkStanding {
    /// It goes on.
    Walking,
    /// It came to its end.
    Done,
    /// It stopped before its end, and goes on from there when it is asked to.
    Stopped,
}

impl WalkStanding {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Walking => "walking",
            Self::Done => "done",
            Self::Stopped => "stopped",
        }
    }
}

/// A walk through a publisher's older documents, which takes in what its feed did not show any more
/// when it was polled first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backfill {
    /// Whether it goes on.
    pub standing: WalkStanding,
    /// How the documents follow each other, once that is known.
    pub trail: Option<ArchiveLayout>,
    /// The address of the next document; `None`: it begins with the feed itself.
    pub next: Option<String>,
    /// Older documents that were read.
    pub documents: u32,
    /// Items that were taken in.
    pub items: u32,
    /// Entries that were known already.
    pub known: u32,
    /// Bytes of documents, decompressed.
    pub bytes: u64,
    /// Bytes of the items that were taken in.
    pub taken_bytes: u64,
    /// Failures in a row at the next document.
    pub failures: u32,
    /// When it began.
    pub started: Time,
    /// When it came to its end or stopped.
    pub ended: Option<Time>,
    /// Why it ended or stopped, or what went wrong last.
    pub note: Option<String>,
    /// Fingerprints of the documents that were read last, newest first, at most
    /// [`Backfill::MARKS_KEPT`]: their addresses and what they listed.
    pub marks: Vec<u64>,
    /// Fingerprints of ids that newer documents say are deleted, at most [`Backfill::GONE_KEPT`].
    pub gone: Vec<u64>,
}

impl Backfill {
    /// The most fingerprints of documents that are kept.
    pub const MARKS_KEPT: usize = 128;
    /// The most fingerprints of deleted ids that are kept.
    pub const GONE_KEPT: usize = 512;

    /// A walk that begins now.
    pub const fn begin(now: Time) -> Self {
        Self {
            standing: WalkStanding::Walking,
            trail: None,
            next: None,
            documents: 0,
            items: 0,
            known: 0,
            bytes: 0,
            taken_bytes: 0,
            failures: 0,
            started: now,
            ended: None,
            note: None,
            marks: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Whether it goes on.
    pub fn is_walking(&self) -> bool {
        self.standing == WalkStanding::Walking
    }
}
