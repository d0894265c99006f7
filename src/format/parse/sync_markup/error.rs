//! What can be wrong with the `sx:sync` of an entry, and where.

use std::fmt::Display;
use tidegate_core::model::Count;
use tidegate_core::xml::doc::DocElement;

/// A fault with its place, a byte offset.
pub(super) struct SyncMarkupError {
    pub at: usize,
    pub fault: SyncFault,
}

/// What is wrong with the `sx:sync` of an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SyncFault {
    /// Its entry is not well-formed.
    #[error("the item has sx:sync and is not well-formed")]
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
}

/// A fault of an element.
pub(super) fn fault(element: DocElement<'_, '_>, fault: SyncFault) -> SyncMarkupError {
    SyncMarkupError { at: element.span().start, fault }
}

/// A required attribute of an element, which is called `name` in faults.
pub(super) fn required(
    element: DocElement<'_, '_>,
    name: &'static str,
    attribute: &'static str,
) -> Result<String, SyncMarkupError> {
    let value = element.attribute(attribute);
    let missing = || fault(element, SyncFault::Missing { element: name, attribute });
    value.map(|value| value.into_owned()).ok_or_else(missing)
}

/// A required number of updates or sequence.
pub(super) fn number(
    element: DocElement<'_, '_>,
    name: &'static str,
    attribute: &'static str,
) -> Result<Count, SyncMarkupError> {
    let text = required(element, name, attribute)?;
    let number = text.trim().parse().ok().and_then(|number| Count::new(number).ok());
    let wanted = "an integer from 1 to 2147483647 must be there";
    number.ok_or_else(|| invalid(element, name, attribute, &text, &wanted))
}

/// A fault of an attribute's value, which is cut to a readable length.
pub(super) fn invalid(
    element: DocElement<'_, '_>,
    name: &'static str,
    attribute: &'static str,
    value: &str,
    wanted: &dyn Display,
) -> SyncMarkupError {
    const SHOWN: usize = 80;
    let (value, wanted) = (value.chars().take(SHOWN).collect(), wanted.to_string());
    fault(element, SyncFault::Invalid { element: name, attribute, value, wanted })
}
