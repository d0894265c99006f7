//! Reading SSE feed files: items as exact slices of the document, with what their `sx:sync` says
//! (SSE 1.0 section 2, FeedSync section 2).

mod error;
mod extras;
mod items;
mod payload;
mod sharing;
mod sync;
mod sync091;
pub(super) mod values;

#[cfg(test)]
mod tests;

pub use super::sync_markup::{CONFLICT_LIMIT, UPDATE_LIMIT, bare};
pub use error::{SseError, SseFault};
pub use items::{SseFeed, SseItem, read};
pub use payload::Payload;
pub use sharing::SseSharing;
pub use sync091::{KeptConflict, converted};
use tidegate_core::xml::ns;
pub use tidegate_core::xml::strict::{
    ATTRIBUTE_LIMIT, BYTES_LIMIT, DEPTH_LIMIT, Id, NAMESPACE_LIMIT, StrictContent, StrictElement,
    Tree,
};
pub use values::Values;

pub(super) use payload::needs;

/// The most items of a document.
pub const ITEM_LIMIT: usize = 100_000;
/// The most bytes that the items of a document take with what they inherit.
pub const WEIGHT_LIMIT: usize = 128 << 20;

/// Whether a text has one of the namespaces of sync markup, as they stand in documents that cannot be
/// read, too.
pub fn mentions_sync_markup(text: &str) -> bool {
    ["www.microsoft.com/schemas/sse", "www.microsoft.com/schemas/rss/sse", "feedsync.org/2007"]
        .iter()
        .any(|name| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some())
}

/// The dialects of sync markup that are told apart by their namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SseDialect {
    /// SSE 1.0.
    Sse,
    /// FeedSync.
    FeedSync,
    /// SSE 0.91, whose histories are of another kind.
    Sse091,
}

impl SseDialect {
    /// The dialect of a namespace (READINGS 1, row 1; READINGS 2, row 1).
    pub fn of(namespace: &str) -> Option<Self> {
        match ns::canonical(namespace) {
            ns::SSE => Some(Self::Sse),
            ns::FEED_SYNC => Some(Self::FeedSync),
            ns::SSE_091 => Some(Self::Sse091),
            _ => None,
        }
    }
}
