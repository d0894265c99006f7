//! What sharing adds to a feed, as markup: `sx:sync` in its dialects, and the item of a collection that an
//! entry was made from. Written here for whoever makes documents, and for `parse`, which makes one of a
//! collection or a list.

pub mod collection_item;
pub mod sx;
pub mod sx091;

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
