//! Why a replica could not be brought up to date. It is as it was.

use crate::parse::ParseError;
use crate::parse::sse::SseError;

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
        source: SseError,
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
