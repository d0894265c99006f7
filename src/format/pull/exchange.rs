//! What a pull asks for, what it gets, and what comes of it.

use super::BYTES_LIMIT;
use super::item::ItemChange;
use super::state::State;
use url::Url;

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
    /// The address.
    pub url: Url,
    /// What is asked of it.
    pub asked: Asked,
}

/// What is asked of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// What changed since the last pull: with the validators of its [`State`], and a delta where the
    /// publisher can tell one (RFC 3229, `A-IM: feed`).
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
    pub changes: Vec<ItemChange>,
    /// What may be missing, or was odd.
    pub warnings: Vec<String>,
    /// How many items live in it.
    pub living: usize,
    /// How many tombstones it has.
    pub tombstones: usize,
    /// Whether the local items were thrown away because changes were missed.
    pub was_out_of_sync: bool,
}
