//! From stored items to documents, by splicing into the publisher's own bytes.

pub mod sx;
pub mod sx091;

use crate::model::{Family, FeedState, Item, Skeleton, Tick};

/// Which view of a feed (CONTRACT, Addresses).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViewKind {
    /// What a feed reader is pointed at.
    Reader,
    /// The SSE partial feed.
    Sync,
    /// Every item that lives and every tombstone kept.
    Complete,
}

/// The dialect of the sync markup (`?sx=`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// SSE 1.0, `http://www.microsoft.com/schemas/sse`.
    #[default]
    Sse,
    /// FeedSync, `http://feedsync.org/2007/feedsync`.
    FeedSync,
}

/// The addresses that a document names; all absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Of the reader view.
    pub reader: String,
    /// Of the sync view.
    pub sync: String,
    /// Of the complete view.
    pub complete: String,
    /// Of the upstream, as configured (`via`).
    pub upstream: String,
    /// Of the SUP document with the feed's fragment; `None` while there is none.
    pub sup: Option<String>,
    /// Of the WebSub hub; `None` while there is none.
    pub hub: Option<String>,
}

/// What to render.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// The view.
    pub kind: ViewKind,
    /// The dialect.
    pub dialect: Dialect,
    /// The addresses to name.
    pub addresses: &'a Addresses,
    /// The feed's state.
    pub state: &'a FeedState,
    /// The document around the entries.
    pub skeleton: &'a Skeleton,
    /// The items, in the order to show; in the sync and complete view tombstones are among them.
    pub items: &'a [Item],
    /// Tombstones to show as `at:deleted-entry` (Atom reader view); empty elsewhere.
    pub deleted: &'a [Item],
    /// `sx:sharing/@since` (sync and complete view).
    pub since: Option<Tick>,
    /// `sx:sharing/@until` (sync and complete view).
    pub until: Option<Tick>,
    /// `sx:sharing/@expires` (sync view).
    pub expires: Option<crate::model::Time>,
}

/// The media type of a family, with its charset.
pub const fn media_type(family: Family) -> &'static str {
    match family {
        Family::Atom => "application/atom+xml; charset=utf-8",
        Family::Rss => "application/rss+xml; charset=utf-8",
    }
}

/// Renders a page in its family's current format: Atom 1.0 or RSS 2.0.
pub fn document(_page: &Page<'_>) -> String {
    String::new()
}
