//! Why a document cannot be parsed.

use tidegate_core::xml::doc::LimitReached;

/// Why bytes are not a feed document. The upstream is to blame for every one of these: asking
/// again helps only when it has changed what it sends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Nothing but white space.
    #[error("the upstream sent an empty document; its last good one stays in force")]
    Empty,
    /// More bytes than are taken.
    #[error(
        "the upstream sent a document of {found} bytes (decoded), the limit is {limit}; it must \
         list fewer entries"
    )]
    TooLarge {
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// A web page, often a login form or an error page.
    #[error(
        "the upstream sent an HTML page{} instead of a feed (byte {at}); check the address, and \
         whether it asks for a login",
        title.as_ref().map(|t| format!(" titled {t:?}")).unwrap_or_default()
    )]
    Html {
        /// The page's title, where it has one.
        title: Option<String>,
        /// Byte offset of its first element.
        at: usize,
    },
    /// Something else that is no feed.
    #[error("the upstream sent {what} instead of a feed (byte {at}); check the address")]
    NotAFeed {
        /// What it is, with its article.
        what: String,
        /// Byte offset of what tells so.
        at: usize,
    },
    /// A broken document without a single whole entry.
    #[error("the upstream sent a broken feed with no whole entry in it: {reason} (byte {at})")]
    NothingWhole {
        /// What is broken.
        reason: String,
        /// Byte offset where it shows.
        at: usize,
    },
    /// A named limit.
    #[error(
        "the upstream's feed has more than {limit} {what} at byte {at}, which is the limit; it is \
         refused"
    )]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
        /// Byte offset where it was met.
        at: usize,
    },
}

impl From<LimitReached> for ParseError {
    fn from(LimitReached { what, limit, at }: LimitReached) -> Self {
        Self::Limit { what, limit, at }
    }
}

impl ParseError {
    /// The byte offset into the decoded text, where one says something.
    pub const fn offset(&self) -> Option<usize> {
        match self {
            Self::Empty | Self::TooLarge { .. } => None,
            Self::Html { at, .. }
            | Self::NotAFeed { at, .. }
            | Self::NothingWhole { at, .. }
            | Self::Limit { at, .. } => Some(*at),
        }
    }
}
