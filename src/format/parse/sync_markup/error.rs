//! Faults of the elements and attributes of sync markup.

use std::borrow::Cow;
use std::fmt::Display;
use tidegate_core::model::{Count, EndpointId, Stamp, SyncFault, SyncId, SyncMarkupError, Time};
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

/// The required id of an item.
pub(super) fn sync_id(
    sync: DocElement<'_, '_>,
    name: &'static str,
) -> Result<SyncId, SyncMarkupError> {
    let id = required(sync, name, "id")?;
    SyncId::new(&id).map_err(|error| invalid(sync, name, "id", &id, &error))
}

/// The `when` and `by` of an element, one of which must be there, as `value` gives them; `date` reads the first.
pub(super) fn stamp<'a, E: Display>(
    element: DocElement<'_, 'a>,
    name: &'static str,
    value: impl Fn(&str) -> Option<Cow<'a, str>>,
    date: impl Fn(&str) -> Result<Time, E>,
) -> Result<Stamp, SyncMarkupError> {
    let when = value("when")
        .map(|text| date(&text).map_err(|error| invalid(element, name, "when", &text, &error)));
    let by = value("by").map(|text| {
        EndpointId::new(&text).map_err(|error| invalid(element, name, "by", &text, &error))
    });
    match (when.transpose()?, by.transpose()?) {
        (Some(when), Some(by)) => Ok(Stamp::Both { when, by }),
        (Some(when), None) => Ok(Stamp::When(when)),
        (None, Some(by)) => Ok(Stamp::By(by)),
        (None, None) => Err(fault(element, SyncFault::NoStamp(name))),
    }
}

/// Adds one more of what an element has, of which there may be so many.
pub(super) fn push_within<T>(
    list: &mut Vec<T>,
    (limit, what): (usize, &'static str),
    element: DocElement<'_, '_>,
    one: impl FnOnce() -> Result<T, SyncMarkupError>,
) -> Result<(), SyncMarkupError> {
    if list.len() >= limit {
        return Err(fault(element, SyncFault::TooMany { what, limit }));
    }
    list.push(one()?);
    Ok(())
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
