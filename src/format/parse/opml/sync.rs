//! The `sx:sync` of an outline (SSE 0.91 sections 2.3 to 2.5 and 5).

use super::build::{is_outline, is_sharing};
use crate::parse::sync_markup::{CONFLICT_LIMIT, UPDATE_LIMIT, flag, number, stamp};
use std::borrow::Cow;
use tidegate_core::model::{SyncId, SyncMarkupError};
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

/// Reads an `sx:sync`: what it says, or the first thing that is wrong.
pub(super) fn read_sync(sync: DocElement<'_, '_>) -> Result<Item091<(), OutlineSync>, String> {
    let described = |error: SyncMarkupError| error.fault.to_string();
    let id = value(sync, "id").ok_or("it has no id")?;
    let id = SyncId::new(&id).map_err(|error| error.to_string())?;
    let version = number(sync, "sx:sync", "version").map_err(described)?;
    let flag = |name| flag(sync, name, true).map_err(described);
    let (deleted, conflict) =
        (flag("deleted")?.unwrap_or(false), flag("conflict")?.unwrap_or(false));
    let last = parts(sync, "history").next().ok_or("it has no sx:history")?;
    let last = stamp(last, "sx:history", true).map_err(described)?;
    let updates =
        read_all(sync, ("update", UPDATE_LIMIT), |update| stamp(update, "sx:update", true))?;
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
    read: impl Fn(DocElement<'_, '_>) -> Result<T, SyncMarkupError>,
) -> Result<Vec<T>, String> {
    let all = parts(sync, name).enumerate().map(|(before, element)| {
        if before >= limit {
            return Err(format!("it has more than {limit} {name}s"));
        }
        read(element).map_err(|error| error.fault.to_string())
    });
    all.collect()
}

/// Reads an `sx:conflict`.
fn lost(conflict: DocElement<'_, '_>) -> Result<Conflict091<OutlineSync>, SyncMarkupError> {
    let data = cut(conflict.doc().text(), conflict.content()).to_owned();
    let version = number(conflict, "sx:conflict", "version")?;
    Ok(Conflict091 { version, edit: stamp(conflict, "sx:conflict", true)?, data })
}
