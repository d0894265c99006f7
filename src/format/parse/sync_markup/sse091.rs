//! What an `sx:sync` element of SSE 0.91 says (its sections 2.3 to 2.5 and 5).

use super::conflict::dialect_of_item;
use super::error::{self, fault, invalid, number, push_within, sync_id};
use super::{MOST_CONFLICTS, UPDATE_LIMIT, children, sync_of};
use crate::parse::dialect::FeedDialect;
use tidegate_core::model::{Stamp, SyncFault, SyncId, SyncMarkupError, Time};
use tidegate_core::sync::{Conflict091, Item091};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::Ns;

const SYNC: &str = "sx:sync";
const HISTORY: &str = "sx:history";
const UPDATE: &str = "sx:update";
const CONFLICT: &str = "sx:conflict";

/// An item whose data is its element. What is kept of a conflict is the item in it, without conflicts of
/// its own.
pub(super) type ReadItem091<'t, 'a> = Item091<DocElement<'t, 'a>, ConflictItem<'t, 'a>>;

/// The item that an `sx:conflict` stands for.
pub(super) struct ConflictItem<'t, 'a>(pub Box<ReadItem091<'t, 'a>>);

/// The item that the element `item` is; `None` where it has no such `sx:sync`.
pub(super) fn read<'t, 'a>(
    item: DocElement<'t, 'a>,
    dialect: FeedDialect,
) -> Result<Option<ReadItem091<'t, 'a>>, SyncMarkupError> {
    let Some((sync, mut read)) = alone(item)? else { return Ok(None) };
    read.conflicts = conflicts(sync, &read.id, dialect)?;
    Ok(Some(read))
}

/// The element of an item's `sx:sync`, and the item without its conflicts.
type SyncedItem091<'t, 'a> = (DocElement<'t, 'a>, ReadItem091<'t, 'a>);

fn alone<'t, 'a>(
    item: DocElement<'t, 'a>,
) -> Result<Option<SyncedItem091<'t, 'a>>, SyncMarkupError> {
    let Some(sync) = sync_of(item, Ns::Sx091)? else { return Ok(None) };
    let id = sync_id(sync, SYNC)?;
    let history = children(sync, Ns::Sx091, "history").next();
    let history = history.ok_or_else(|| fault(sync, SyncFault::NoHistory))?;
    let read = Item091 {
        id,
        version: number(sync, SYNC, "version")?,
        deleted: flag(sync, "deleted")?,
        conflict: flag(sync, "conflict")?,
        last: stamp(history, HISTORY)?,
        updates: updates(history)?,
        conflicts: Vec::new(),
        data: item,
    };
    Ok(Some((sync, read)))
}

fn updates(history: DocElement<'_, '_>) -> Result<Vec<Stamp>, SyncMarkupError> {
    let mut updates = Vec::new();
    for element in children(history, Ns::Sx091, "update") {
        let most = (UPDATE_LIMIT, "sx:update in one sx:history");
        push_within(&mut updates, most, element, || stamp(element, UPDATE))?;
    }
    Ok(updates)
}

fn conflicts<'t, 'a>(
    sync: DocElement<'t, 'a>,
    id: &SyncId,
    dialect: FeedDialect,
) -> Result<Vec<Conflict091<ConflictItem<'t, 'a>>>, SyncMarkupError> {
    let mut conflicts = Vec::new();
    let lists = children(sync, Ns::Sx091, "conflicts");
    for element in lists.flat_map(|list| children(list, Ns::Sx091, "conflict")) {
        push_within(&mut conflicts, MOST_CONFLICTS, element, || conflict(element, id, dialect))?;
    }
    Ok(conflicts)
}

fn conflict<'t, 'a>(
    element: DocElement<'t, 'a>,
    id: &SyncId,
    dialect: FeedDialect,
) -> Result<Conflict091<ConflictItem<'t, 'a>>, SyncMarkupError> {
    let (version, edit) = (number(element, CONFLICT, "version")?, stamp(element, CONFLICT)?);
    let mut items = element.children();
    let item = items.find(|item| dialect_of_item(*item, dialect).is_some());
    let item = item.map(alone).transpose()?.flatten().map(|(_, item)| item);
    // What stands in it is for each application to say (section 5.2): it may be no version of the item.
    let item = item.filter(|item| item.id == *id).unwrap_or_else(|| Item091 {
        id: id.clone(),
        version,
        deleted: false,
        conflict: false,
        last: edit.clone(),
        updates: Vec::new(),
        conflicts: Vec::new(),
        data: element,
    });
    Ok(Conflict091 { version, edit, data: ConflictItem(Box::new(item)) })
}

/// `when` and `by`; an empty one is as good as none (section 2.4).
pub(in crate::parse) fn stamp(
    element: DocElement<'_, '_>,
    name: &'static str,
) -> Result<Stamp, SyncMarkupError> {
    let value = |name: &str| element.attribute(name).filter(|text| !text.trim().is_empty());
    let wanted = "a date-time as in \"Fri, 06 Jan 2006 19:24:09 GMT\" must be there";
    error::stamp(element, name, value, |text| Time::parse_rfc2822(text).ok_or(wanted))
}

/// A boolean: absent and empty are `false` (section 2.3).
pub(in crate::parse) fn flag(
    sync: DocElement<'_, '_>,
    attribute: &'static str,
) -> Result<bool, SyncMarkupError> {
    match sync.attribute(attribute).as_deref().map(str::trim) {
        None | Some("" | "false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => {
            let wanted = "it must be \"true\", \"false\" or empty";
            Err(invalid(sync, SYNC, attribute, text, &wanted))
        }
    }
}
