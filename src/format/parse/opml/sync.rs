//! The `sx:sync` of an outline (SSE 0.91 sections 2.3 to 2.5 and 5).

use super::build::{is_outline, is_sharing};
use super::quoted;
use crate::parse::sync_markup::{CONFLICT_LIMIT, UPDATE_LIMIT};
use std::borrow::Cow;
use tidegate_core::model::{Count, EndpointId, Stamp, SyncId, Time};
use tidegate_core::sync::{Conflict091, Item091};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::{cut, trimmed};

/// What is kept of a conflict: the markup between the tags of its `sx:conflict`.
pub type OutlineSync = String;

/// The value of an attribute, trimmed; an empty one is as good as none.
pub(super) fn value<'a>(element: DocElement<'_, 'a>, name: &str) -> Option<Cow<'a, str>> {
    let value = element.attribute(name)?;
    Some(trimmed(value)).filter(|value| !value.is_empty())
}

fn number(element: DocElement<'_, '_>) -> Result<Count, String> {
    let text = value(element, "version").ok_or("it has no version")?;
    let number = text.parse().ok().and_then(|number| Count::new(number).ok());
    number
        .ok_or_else(|| format!("its version {:?} is no number from 1 to 2147483647", quoted(&text)))
}

/// A boolean: absent and empty are `false` (section 2.3).
fn flag(element: DocElement<'_, '_>, name: &str) -> Result<bool, String> {
    match value(element, name).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => Err(format!("its {name} is {:?}, neither true nor false", quoted(text))),
    }
}

/// `when` and `by`; an empty one is as good as none (section 2.4).
fn stamp(element: DocElement<'_, '_>) -> Result<Stamp, String> {
    let when = value(element, "when").map(|text| {
        Time::parse_rfc2822(&text)
            .ok_or_else(|| format!("its when {:?} is no date of RFC 822", quoted(&text)))
    });
    let by = value(element, "by").map(|text| EndpointId::new(&text).map_err(|e| e.to_string()));
    match (when.transpose()?, by.transpose()?) {
        (Some(when), Some(by)) => Ok(Stamp::Both { when, by }),
        (Some(when), None) => Ok(Stamp::When(when)),
        (None, Some(by)) => Ok(Stamp::By(by)),
        (None, None) => Err("it has neither when nor by".to_owned()),
    }
}

/// Reads an `sx:sync`: what it says, or the first thing that is wrong.
pub(super) fn read_sync(sync: DocElement<'_, '_>) -> Result<Item091<(), OutlineSync>, String> {
    let id = value(sync, "id").ok_or("it has no id")?;
    let id = SyncId::new(&id).map_err(|error| error.to_string())?;
    let version = number(sync)?;
    let (deleted, conflict) = (flag(sync, "deleted")?, flag(sync, "conflict")?);
    let last = parts(sync, "history").next().ok_or("it has no sx:history")?;
    let last = stamp(last).map_err(|error| format!("of its sx:history, {error}"))?;
    let updates = read_all(sync, ("update", UPDATE_LIMIT), stamp)?;
    let conflicts = read_all(sync, ("conflict", CONFLICT_LIMIT), lost)?;
    Ok(Item091 { id, version, deleted, conflict, last, updates, conflicts, data: () })
}

/// The elements of a name that belong to an `sx:sync`: not what was kept of a conflict, nor outlines behind one
/// that is not closed.
fn parts<'t, 'a>(
    sync: DocElement<'t, 'a>,
    name: &'static str,
) -> impl Iterator<Item = DocElement<'t, 'a>> {
    let mut next = sync.id + 1;
    let all = std::iter::from_fn(move || {
        let element = sync.doc().element(next).filter(|element| element.id < sync.behind())?;
        let is_of_others = is_outline(element) || is_sharing(element, "conflict");
        next = if is_of_others { element.behind() } else { element.id + 1 };
        Some(element)
    });
    all.filter(move |element| is_sharing(*element, name))
}

/// Reads all elements of a name, of which there are at most so many.
fn read_all<T>(
    sync: DocElement<'_, '_>,
    (name, limit): (&'static str, usize),
    read: impl Fn(DocElement<'_, '_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let all = parts(sync, name).enumerate().map(|(before, element)| {
        if before >= limit {
            return Err(format!("it has more than {limit} {name}s"));
        }
        read(element).map_err(|error| format!("of an sx:{name}, {error}"))
    });
    all.collect()
}

/// Reads an `sx:conflict`.
fn lost(conflict: DocElement<'_, '_>) -> Result<Conflict091<OutlineSync>, String> {
    let data = cut(conflict.doc().text(), conflict.content()).to_owned();
    Ok(Conflict091 { version: number(conflict)?, edit: stamp(conflict)?, data })
}
