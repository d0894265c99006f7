//! Faults of the elements and attributes of sync markup.

use std::fmt::Display;
use tidegate_core::model::{Count, SyncFault, SyncMarkupError};
use tidegate_core::xml::doc::DocElement;

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
pub(in crate::parse) fn number(
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
