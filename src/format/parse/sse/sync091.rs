//! What an `sx:sync` element of SSE 0.91 says (its sections 2.3 to 2.5 and 5).

use super::payload::needs;
use super::sync::{invalid, number, required};
use super::{CONFLICT_LIMIT, Payload, SseDialect, SseError, SseFault, UPDATE_LIMIT};
use super::{Id, StrictElement, Tree};
use tidegate_core::model::{EndpointId, Family, Shared, Stamp, SyncId, Time};
use tidegate_core::sync::{Conflict091, Item091, from_091};
use tidegate_core::xml::ns::ATOM;

const SYNC: &str = "sx:sync";
const HISTORY: &str = "sx:history";
const UPDATE: &str = "sx:update";
const CONFLICT: &str = "sx:conflict";

/// What is kept of a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptConflict {
    /// What stood in an `sx:conflict`.
    Markup {
        /// The markup between its tags.
        xml: String,
        /// The bindings that it uses and does not make, as (prefix, URI).
        needs: Vec<(String, String)>,
        /// The item in it, where there is one with sync markup; without conflicts of its own.
        item: Option<Box<Item091<Payload, KeptConflict>>>,
    },
    /// An item that lost just now, whole.
    Item(Box<Item091<Payload, KeptConflict>>),
}

impl KeptConflict {
    /// The item that was kept.
    pub fn into_item(self) -> Option<Item091<Payload, Self>> {
        match self {
            Self::Markup { item, .. } => item.map(|item| *item),
            Self::Item(item) => Some(*item),
        }
    }
}

/// An item of SSE 0.91 as one of 1.0, with the items that were kept of its conflicts (READINGS 2, its
/// last sentence).
pub fn converted(item: Item091<Payload, KeptConflict>) -> Shared<Payload> {
    from_091(item, |conflict| conflict.data.into_item())
}

/// The item of SSE 0.91 that the element `item` is; `None` where it has no such `sx:sync`.
pub(super) fn read(
    tree: &Tree<'_>,
    family: Family,
    item: Id,
) -> Result<Option<Item091<Payload, KeptConflict>>, SseError> {
    let Some((sync, mut read)) = alone(tree, family, item)? else { return Ok(None) };
    read.conflicts = conflicts(tree, sync)?;
    Ok(Some(read))
}

/// The element of an item's `sx:sync`, and the item without its conflicts.
type Alone = (Id, Item091<Payload, KeptConflict>);

fn alone(tree: &Tree<'_>, family: Family, item: Id) -> Result<Option<Alone>, SseError> {
    let mut found = children(tree, item, "sync");
    let Some((sync, element)) = found.next() else { return Ok(None) };
    if let Some((_, second)) = found.next() {
        return Err(tree.fault(second.span.start, SseFault::Twice(SYNC)));
    }
    let Some(data) = Payload::cut(tree, family, item, Some(sync)) else { return Ok(None) };
    let fault = |fault| tree.fault(element.span.start, fault);
    let id = required(element, SYNC, "id").map_err(fault)?;
    let id = SyncId::new(id).map_err(|error| fault(invalid(SYNC, "id", id, &error)))?;
    let (history, last) =
        children(tree, sync, "history").next().ok_or_else(|| fault(SseFault::NoHistory))?;
    let read = Item091 {
        id,
        version: number(element, SYNC, "version").map_err(fault)?,
        deleted: flag(element, "deleted").map_err(fault)?,
        conflict: flag(element, "conflict").map_err(fault)?,
        last: stamp(tree, last, HISTORY)?,
        updates: updates(tree, history)?,
        conflicts: Vec::new(),
        data,
    };
    Ok(Some((sync, read)))
}

fn updates(tree: &Tree<'_>, history: Id) -> Result<Vec<Stamp>, SseError> {
    let mut updates = Vec::new();
    for (_, element) in children(tree, history, "update") {
        if updates.len() >= UPDATE_LIMIT {
            let what = "sx:update in one sx:history";
            let fault = SseFault::TooMany { what, limit: UPDATE_LIMIT };
            return Err(tree.fault(element.span.start, fault));
        }
        updates.push(stamp(tree, element, UPDATE)?);
    }
    Ok(updates)
}

fn conflicts(tree: &Tree<'_>, sync: Id) -> Result<Vec<Conflict091<KeptConflict>>, SseError> {
    let mut conflicts = Vec::new();
    let lists = children(tree, sync, "conflicts");
    for (id, element) in lists.flat_map(|(list, _)| children(tree, list, "conflict")) {
        let fault = |fault| tree.fault(element.span.start, fault);
        if conflicts.len() >= CONFLICT_LIMIT {
            let what = "conflicts in one item";
            return Err(fault(SseFault::TooMany { what, limit: CONFLICT_LIMIT }));
        }
        let xml = element.inner.clone().map(|inner| tree.slice(inner).to_owned());
        conflicts.push(Conflict091 {
            version: number(element, CONFLICT, "version").map_err(fault)?,
            edit: stamp(tree, element, CONFLICT)?,
            data: KeptConflict::Markup {
                xml: xml.unwrap_or_default(),
                needs: needs(tree, id, None),
                item: kept_item(tree, id)?.map(Box::new),
            },
        });
    }
    Ok(conflicts)
}

/// The item that stands in an `sx:conflict`. What is there is for each application to say (section
/// 5.2), so that anything else is none.
fn kept_item(
    tree: &Tree<'_>,
    conflict: Id,
) -> Result<Option<Item091<Payload, KeptConflict>>, SseError> {
    let items = tree.children(conflict).filter_map(|(id, _)| match tree.name(id) {
        (ATOM, "entry") => Some((Family::Atom, id)),
        (_, "item") => Some((Family::Rss, id)),
        _ => None,
    });
    let mut items = items;
    let first = items.next();
    let Some((family, id)) = first else { return Ok(None) };
    Ok(alone(tree, family, id)?.map(|(_, item)| item))
}

/// `when` and `by`; an empty one is as good as none (section 2.4).
fn stamp(
    tree: &Tree<'_>,
    element: &StrictElement<'_>,
    name: &'static str,
) -> Result<Stamp, SseError> {
    let fault = |fault| tree.fault(element.span.start, fault);
    let value = |attribute| element.attribute(attribute).filter(|text| !text.trim().is_empty());
    let wanted = &"a date-time as in \"Fri, 06 Jan 2006 19:24:09 GMT\" must be there";
    let when = value("when").map(|text| {
        Time::parse_rfc2822(text).ok_or_else(|| fault(invalid(name, "when", text, wanted)))
    });
    let by = value("by").map(|text| {
        EndpointId::new(text).map_err(|error| fault(invalid(name, "by", text, &error)))
    });
    match (when.transpose()?, by.transpose()?) {
        (Some(when), Some(by)) => Ok(Stamp::Both { when, by }),
        (Some(when), None) => Ok(Stamp::When(when)),
        (None, Some(by)) => Ok(Stamp::By(by)),
        (None, None) => Err(fault(SseFault::NoStamp(name))),
    }
}

/// A boolean: absent and empty are `false` (section 2.3).
fn flag(element: &StrictElement<'_>, attribute: &'static str) -> Result<bool, SseFault> {
    match element.attribute(attribute) {
        None | Some("" | "false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => {
            Err(invalid(SYNC, attribute, text, &"it must be \"true\", \"false\" or empty"))
        }
    }
}

fn children<'t, 'a>(
    tree: &'t Tree<'a>,
    id: Id,
    local: &'static str,
) -> impl Iterator<Item = (Id, &'t StrictElement<'a>)> {
    tree.children(id).filter(move |(child, _)| {
        let (namespace, name) = tree.name(*child);
        name == local && SseDialect::of(namespace) == Some(SseDialect::Sse091)
    })
}
