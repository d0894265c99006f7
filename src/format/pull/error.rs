//! Why a replica could not be brought up to date. It is as it was.

use crate::parse::ParseError;
use tidegate_core::model::{Completeness, FeedDocument, SyncFault, SyncMarkupError};

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
    pub(super) fn of_sync(text: &str, SyncMarkupError { at, fault }: &SyncMarkupError) -> Self {
        let what = match fault {
            SyncFault::Repeated { id, first } => {
                let first = Self::new(text, *first, "").line;
                format!(
                    "the sync id {:?} is that of line {first} again; an id may stand once in a feed",
                    id.as_str()
                )
            }
            fault => fault.to_string(),
        };
        Self::new(text, *at, what)
    }
}

/// Why a pull failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// The feed, or the complete feed that it leads to, cannot be had.
    #[error("{url} could not be read: {why}")]
    Unread {
        /// Its address.
        url: String,
        /// Why.
        why: String,
    },
    /// What came is no feed.
    #[error("{url} is no feed: {source}")]
    NotAFeed {
        /// Its address.
        url: String,
        /// Why.
        source: ParseError,
    },
    /// Its sync markup cannot be read.
    #[error("{url}: {source}")]
    Markup {
        /// Its address.
        url: String,
        /// What is wrong, and in which line.
        source: FeedFault,
    },
    /// It is of a format that is not kept.
    #[error("{url} is {found}, and replicas are kept of Atom 1.0 and RSS 2.0")]
    Format {
        /// Its address.
        url: String,
        /// What it is.
        found: &'static str,
    },
    /// It is kept by other rules than before, by which what is kept cannot be gone on with.
    #[error(
        "{url} has {now} and had {before}; the replica is left as it was; use another --into to \
             begin a new one"
    )]
    Changed {
        /// Its address.
        url: String,
        /// What it was.
        before: &'static str,
        /// What it is now.
        now: &'static str,
    },
    /// The replica would be larger than it could be read again.
    #[error("the replica would be {found} {what}, the limit is {limit}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much there would be.
        found: usize,
        /// The limit.
        limit: usize,
    },
}
