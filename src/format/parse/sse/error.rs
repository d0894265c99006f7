//! What can be wrong with an SSE feed file, and where.

use tidegate_core::xml::strict::{FaultAt, TreeFault};

/// A fault with its place.
pub type SseError = FaultAt<SseFault>;

impl From<TreeFault> for SseFault {
    fn from(fault: TreeFault) -> Self {
        match fault {
            TreeFault::Malformed(what) => Self::Malformed(what),
            TreeFault::NoElement => Self::NotAFeed(TreeFault::NoElement.to_string()),
            TreeFault::TooMany { what, limit } => Self::TooMany { what, limit },
            TreeFault::Undeclared(prefix) => Self::Undeclared(prefix),
        }
    }
}

/// What is wrong with a document or an item.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SseFault {
    /// It is not well-formed.
    #[error("the document is not well-formed: {0}")]
    Malformed(String),
    /// It is something else than a feed.
    #[error("the document is neither Atom 1.0, RSS nor a collection: {0}")]
    NotAFeed(String),
    /// There is more of something than is taken.
    #[error("there are more than {limit} {what}, which is the limit")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The named limit.
        limit: usize,
    },
    /// A prefix is used that nothing declares.
    #[error("the prefix {0:?} is not declared")]
    Undeclared(String),
    /// A required attribute is missing.
    #[error("{element} has no attribute {attribute:?}; it is required")]
    Missing {
        /// The element.
        element: &'static str,
        /// The attribute.
        attribute: &'static str,
    },
    /// An attribute has a value that it may not have.
    #[error("{element} has {attribute}={value:?}; {wanted}")]
    Invalid {
        /// The element.
        element: &'static str,
        /// The attribute.
        attribute: &'static str,
        /// Its value.
        value: String,
        /// What is allowed.
        wanted: String,
    },
    /// A `sx:sync` without history.
    #[error("sx:sync has no sx:history; there must be at least one")]
    NoHistory,
    /// Neither `when` nor `by`.
    #[error("{0} has neither \"when\" nor \"by\"; one of them must be there")]
    NoStamp(&'static str),
    /// More than one `sx:sync`.
    #[error("the item has more than one {0}")]
    Twice(&'static str),
    /// An item in `sx:conflicts` without `sx:sync`.
    #[error("an item in sx:conflicts has no sx:sync")]
    PlainConflict,
    /// A conflict that is a version of another item.
    #[error("the conflict has the id {found:?}, its item has {wanted:?}; they must be the same")]
    OtherConflict {
        /// The conflict's id.
        found: String,
        /// The item's id.
        wanted: String,
    },
}
