//! A local replica of a feed: what to ask for, and what comes of the answers. Pure.
//!
//! An SSE feed is followed by section 4.1 of SSE 1.0: the complete feed first, then partial ones,
//! and the complete one again where `since` shows that something was missed. A plain feed is
//! reconstructed from its archives as Feed History draft-05 section 6 has it (READINGS 3, row 3).
//! A [`pull`](pull()) asks by what it is given; its caller fetches and writes files. Merging two
//! feed files ([`merged`]) is here as well.

mod document;
mod history;
mod item;
mod merge;
mod session;
#[cfg(test)]
mod tests;

pub use item::{ChangeKind, PulledChange};
pub use merge::{MergedFeed, Side, merged};
pub use session::pull;

use crate::parse::ParseError;
use serde::{Deserialize, Serialize};
use tidegate_core::model::{Completeness, FeedDocument, SyncMarkupError};
use url::Url;

/// The most bytes of a feed file that is merged, and of a replica.
pub const BYTES_LIMIT: usize = 32 << 20;

/// Why a replica could not be brought up to date, in a sentence. It is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PullError(String);

/// What one pull may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PullLimits {
    /// Requests.
    pub requests: usize,
    /// Bytes of documents, decompressed.
    pub bytes: usize,
    /// Bytes of items in the replica with which older documents are still asked for. It must be
    /// read again, and each item is written with what it needs of the document around it.
    pub items: usize,
}

impl PullLimits {
    /// The limits where nobody says otherwise.
    pub const STANDARD: Self =
        Self { requests: 1_000, bytes: 256 * 1024 * 1024, items: BYTES_LIMIT / 4 * 3 };
}

/// What is to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    pub url: Url,
    pub asked: Asked,
}

/// What is asked of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// What changed since the last pull: with the validators of its [`State`], and a delta where
    /// the publisher can tell one (RFC 3229, `A-IM: feed`).
    Changes,
    /// The whole document, unless it is the one of this tag.
    Unless(Option<String>),
}

/// What came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedBody {
    /// The address that answered.
    pub url: Url,
    /// The body, decompressed.
    pub bytes: Vec<u8>,
    /// `Content-Type`, as sent.
    pub content_type: Option<String>,
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// Whether it is a delta from the document that was named (226).
    pub is_delta: bool,
}

/// An answer: what came; `None` where what was known still holds (304); why nothing came, in words.
pub type Answer = Result<Option<FetchedBody>, String>;

/// What came of a pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullOutcome {
    /// The replica as a file; `None` where it is as it was.
    pub replica: Option<String>,
    /// What is to be kept beside it.
    pub state: State,
    /// What changed.
    pub changes: Vec<PulledChange>,
    /// What may be missing, or was odd.
    pub warnings: Vec<String>,
    /// How many items live in it.
    pub living: usize,
    /// How many tombstones it has.
    pub tombstones: usize,
    /// Whether the local items were thrown away because changes were missed.
    pub was_out_of_sync: bool,
}

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

/// What is wrong with a feed that is merged, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct FeedFault {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl FeedFault {
    pub(super) fn new(text: &str, offset: usize, what: impl Into<String>) -> Self {
        let before = text.as_bytes().get(..offset).unwrap_or_default();
        Self { line: memchr::memchr_iter(b'\n', before).count() + 1, what: what.into() }
    }

    /// What keeps a text from being read.
    pub(super) fn of(text: &str, error: &ParseError) -> Self {
        let no_feed =
            |what: &str| format!("the document is neither Atom 1.0, RSS nor a collection: {what}");
        let what = match error {
            ParseError::NothingWhole { reason, .. } => {
                format!("the document is not well-formed: {reason}")
            }
            ParseError::Limit { what, limit, .. } => {
                format!("there are more than {limit} {what}, which is the limit")
            }
            ParseError::TooLarge { limit, .. } => {
                format!("there are more than {limit} bytes, which is the limit")
            }
            ParseError::Empty => no_feed("there is nothing in it"),
            ParseError::Html { .. } => no_feed("it is an HTML page"),
            ParseError::NotAFeed { what, .. } => no_feed(&format!("it is {what}")),
        };
        Self::new(text, error.offset().unwrap_or(0), what)
    }

    /// What keeps a document from being whole; `None` where it is.
    pub(super) fn of_broken(document: &FeedDocument<'_>) -> Option<Self> {
        let Completeness::Salvaged(why) = &document.completeness else { return None };
        let what = format!("the document is not well-formed: {why}");
        Some(Self::new(document.text, document.broken_at.unwrap_or(0), what))
    }

    /// What is wrong with the sync markup of an entry in a text.
    pub(super) fn of_sync(text: &str, error: &SyncMarkupError) -> Self {
        let what = match &error.repeats {
            Some((id, first)) => {
                let (id, first) = (id.as_str(), Self::new(text, *first, "").line);
                format!(
                    "the sync id {id:?} is that of line {first} again; an id may stand once in a feed"
                )
            }
            None => error.fault.clone(),
        };
        Self::new(text, error.at, what)
    }
}
