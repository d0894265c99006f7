//! What can be wrong with the `sx:sync` of an entry, and where.

use super::SyncId;

/// A fault with its place, a byte offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncMarkupError {
    pub at: usize,
    pub fault: SyncFault,
}

/// What is wrong with the `sx:sync` of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SyncFault {
    /// Its entry is not well-formed.
    #[error("the item is not well-formed, so that what its sx:sync says is in doubt")]
    Repaired,
    /// There is more of something than is taken.
    #[error("there are more than {limit} {what}, which is the limit")]
    TooMany { what: &'static str, limit: usize },
    /// A required attribute is missing.
    #[error("{element} has no attribute {attribute:?}; it is required")]
    Missing { element: &'static str, attribute: &'static str },
    /// An attribute has a value that it may not have.
    #[error("{element} has {attribute}={value:?}; {wanted}")]
    Invalid { element: &'static str, attribute: &'static str, value: String, wanted: String },
    #[error("sx:sync has no sx:history; there must be at least one")]
    NoHistory,
    #[error("{0} has neither \"when\" nor \"by\"; one of them must be there")]
    NoStamp(&'static str),
    #[error("the item has more than one sx:sync")]
    Twice,
    /// An item in `sx:conflicts` without `sx:sync`.
    #[error("an item in sx:conflicts has no sx:sync")]
    PlainConflict,
    /// A conflict that is a version of another item.
    #[error("the conflict has the id {found:?}, its item has {wanted:?}; they must be the same")]
    OtherConflict { found: String, wanted: String },
    /// An item in `sx:conflicts` that is too large.
    #[error("an item in sx:conflicts cannot be read: {0}")]
    Conflict(String),
    /// Its id is that of an earlier entry, which begins at the byte `first`.
    #[error(
        "the sync id {id} is that of the entry at byte {first} again; an id may stand once in a feed, so \
         that it counts for none"
    )]
    Repeated { id: SyncId, first: usize },
    /// What its history says was not made where it says so.
    #[error("its history is not believed")]
    Refused,
}
