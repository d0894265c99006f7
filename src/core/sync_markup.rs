//! What sharing adds to a feed, as markup: `sx:sync` in its dialects, and the item of a collection that an
//! entry was made from. Written here for whoever makes documents, and for `parse`, which makes one of a
//! collection or a list.

pub mod sx;
pub mod sx091;

use crate::xml::ns;

/// The dialect of the sync markup (`?sx=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// SSE 1.0, `http://www.microsoft.com/schemas/sse`.
    #[default]
    Sse,
    /// FeedSync, `http://feedsync.org/2007/feedsync`.
    FeedSync,
    /// SSE 0.91, `http://www.microsoft.com/schemas/rss/sse`, whose histories are of another kind.
    Sse091,
}

impl Dialect {
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
