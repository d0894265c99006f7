//! What an `sx:sync` element says: of SSE 1.0 or FeedSync, which are read as equal (SSE 1.0
//! sections 2.4 to 2.6; READINGS 1, row 1), and of SSE 0.91 (its sections 2.3 to 2.5 and 5).

use super::{MOST_CONFLICTS, UPDATE_LIMIT, children, dialect_of_item, sync_of};
use crate::parse::dialect::FeedDialect;
use std::fmt::Display;
use tidegate_core::model::{
    Count, EndpointId, Extra, History, Shared, Stamp, SyncExtras, SyncFault, SyncId,
    SyncMarkupError, Time, Update, Version,
};
use tidegate_core::sync::{Item091, from_091};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{split_name, tree};

/// What is read of an element of sync markup, or what is wrong with it.
pub(in crate::parse) type SyncResult<T> = Result<T, SyncMarkupError>;

const SYNC: &str = "sx:sync";
const HISTORY: &str = "sx:history";
const UPDATE: &str = "sx:update";
const CONFLICT: &str = "sx:conflict";

/// The shared item that the element `item` with the `sx:sync` element `sync` is, by SSE 1.0; the
/// data of each version is its element.
///
/// Conflicts within conflicts are taken as conflicts of the item: the list is flat (section 3.3;
/// READINGS 1, row 20).
pub(super) fn read<'t, 'a>(
    item: DocElement<'t, 'a>,
    sync: DocElement<'t, 'a>,
    dialect: FeedDialect,
) -> SyncResult<Shared<DocElement<'t, 'a>>> {
    let mut shared = Shared::new(version(item, sync)?);
    let mut open = vec![sync];
    while let Some(sync) = open.pop() {
        let items = children(sync, Ns::Sx, "conflicts").flat_map(DocElement::children);
        for item in items.filter(|item| dialect_of_item(*item, dialect).is_some()) {
            let sync = sync_of(item, Ns::Sx)?;
            let sync = sync.ok_or_else(|| fault(item, SyncFault::PlainConflict))?;
            let conflict = version(item, sync)?;
            if conflict.id != shared.winner.id {
                let found = conflict.id.to_string();
                let wanted = shared.winner.id.to_string();
                return Err(fault(item, SyncFault::OtherConflict { found, wanted }));
            }
            push_within(&mut shared.conflicts, MOST_CONFLICTS, item, || Ok(conflict))?;
            open.push(sync);
        }
    }
    Ok(shared)
}

fn version<'t, 'a>(
    item: DocElement<'t, 'a>,
    sync: DocElement<'t, 'a>,
) -> SyncResult<Version<DocElement<'t, 'a>>> {
    let id = sync_id(sync)?;
    let updates = number(sync, SYNC, "updates")?;
    let deleted = flag(sync, "deleted", false)?.unwrap_or(false);
    let noconflicts = flag(sync, "noconflicts", false)?;
    let mut history = Vec::new();
    for element in children(sync, Ns::Sx, "history") {
        let most = (UPDATE_LIMIT, "sx:history in one sx:sync");
        push_within(&mut history, most, element, || update(element))?;
    }
    let history = History::from_newest_first(history);
    let history = history.ok_or_else(|| fault(sync, SyncFault::NoHistory))?;
    Ok(Version { id, updates, deleted, noconflicts, history, data: item })
}

fn update(element: DocElement<'_, '_>) -> SyncResult<Update> {
    let sequence = number(element, HISTORY, "sequence")?;
    Ok(Update { sequence, stamp: stamp(element, HISTORY, false)? })
}

/// The shared item that the element `item` is by SSE 0.91, and its `conflict` attribute; `None`
/// where it has no such `sx:sync`.
pub(super) fn read_091<'t, 'a>(
    item: DocElement<'t, 'a>,
    dialect: FeedDialect,
) -> SyncResult<Option<(Shared<DocElement<'t, 'a>>, bool)>> {
    let Some(sync) = sync_of(item, Ns::Sx091)? else { return Ok(None) };
    let read: Item091<_, ()> = item_091(sync, sync_id(sync)?, item, children_091)?;
    let (id, is_contested) = (read.id.clone(), read.conflict);
    let mut shared = from_091(read, |_| None);
    let lists = children(sync, Ns::Sx091, "conflicts");
    for element in lists.flat_map(|list| children(list, Ns::Sx091, "conflict")) {
        let conflict = || conflict_091(element, &id, dialect);
        push_within(&mut shared.conflicts, MOST_CONFLICTS, element, conflict)?;
    }
    Ok(Some((shared, is_contested)))
}

fn children_091<'t, 'a>(
    element: DocElement<'t, 'a>,
    local: &'static str,
) -> impl Iterator<Item = DocElement<'t, 'a>> {
    children(element, Ns::Sx091, local)
}

/// An item without its conflicts. `parts`: the elements of a name that belong to its `sx:sync` or a
/// part of that.
pub(in crate::parse) fn item_091<'t, 'a, D, C, I: Iterator<Item = DocElement<'t, 'a>>>(
    sync: DocElement<'t, 'a>,
    id: SyncId,
    data: D,
    parts: impl Fn(DocElement<'t, 'a>, &'static str) -> I,
) -> SyncResult<Item091<D, C>> {
    let history = parts(sync, "history").next();
    let history = history.ok_or_else(|| fault(sync, SyncFault::NoHistory))?;
    let mut read = Item091 {
        id,
        version: number(sync, SYNC, "version")?,
        deleted: flag(sync, "deleted", true)?.unwrap_or(false),
        conflict: flag(sync, "conflict", true)?.unwrap_or(false),
        last: stamp(history, HISTORY, true)?,
        updates: Vec::new(),
        conflicts: Vec::new(),
        data,
    };
    for element in parts(history, "update") {
        let most = (UPDATE_LIMIT, "sx:update in one sx:history");
        push_within(&mut read.updates, most, element, || stamp(element, UPDATE, true))?;
    }
    Ok(read)
}

/// The `version` of an `sx:conflict`, and its most recent update.
pub(in crate::parse) fn lost_091(conflict: DocElement<'_, '_>) -> SyncResult<(Count, Stamp)> {
    Ok((number(conflict, CONFLICT, "version")?, stamp(conflict, CONFLICT, true)?))
}

/// The version of the item `id` that an `sx:conflict` stands for: the item in it, without conflicts
/// of its own.
fn conflict_091<'t, 'a>(
    element: DocElement<'t, 'a>,
    id: &SyncId,
    dialect: FeedDialect,
) -> SyncResult<Version<DocElement<'t, 'a>>> {
    let (version, edit) = lost_091(element)?;
    let item = element.children().find(|item| dialect_of_item(*item, dialect).is_some());
    let inside: Option<Item091<_, ()>> = match item {
        Some(item) => sync_of(item, Ns::Sx091)?
            .map(|sync| item_091(sync, sync_id(sync)?, item, children_091))
            .transpose()?,
        None => None,
    };
    // What stands in it is for each application to say (section 5.2): it may be no version of the
    // item.
    let read = inside.filter(|inside| inside.id == *id).unwrap_or_else(|| Item091 {
        id: id.clone(),
        version,
        deleted: false,
        conflict: false,
        last: edit,
        updates: Vec::new(),
        conflicts: Vec::new(),
        data: element,
    });
    Ok(from_091(read, |_| None).winner)
}

// Markup that SSE does not know (SSE 1.0 section 2.1.8) is written anew from what was read, so that
// it can stand in any document: a reference that XML does not know is the character that HTML means
// by it or its own text, and a processing instruction or a comment does not come along.

/// What stands in an `sx:sync` beyond what SSE knows; `None` where that is more than
/// [`SyncExtras::LIMIT`].
pub(super) fn extras(sync: DocElement<'_, '_>) -> Option<SyncExtras> {
    const SYNC: [&str; 4] = ["id", "updates", "deleted", "noconflicts"];
    let of_sync = extra(sync, &SYNC, &["history", "conflicts"])?;
    let mut extras = SyncExtras { sync: of_sync, ..SyncExtras::default() };
    for element in children(sync, Ns::Sx, "history") {
        let extra = extra(element, &["sequence", "when", "by"], &[])?;
        if let Some(update) = update(element).ok().filter(|_| !extra.is_empty()) {
            extras.updates.push((update, extra));
        }
        if extras.size() > SyncExtras::LIMIT {
            return None;
        }
    }
    Some(extras)
}

/// `None` where there is too much of it.
fn extra(element: DocElement<'_, '_>, attributes: &[&str], known: &[&str]) -> Option<Extra> {
    let mut extra = Extra::default();
    for attribute in element.attributes() {
        let (prefix, local) = split_name(attribute.name());
        let namespace = match prefix {
            "" if attributes.contains(&local) => continue,
            "" => None,
            _ => match element.binding(prefix) {
                Some(namespace) => Some(namespace.into_owned()),
                None => continue,
            },
        };
        extra.attributes.push((namespace, local.to_owned(), attribute.value().into_owned()));
    }
    let is_known =
        |child: &DocElement<'_, '_>| child.ns() == Ns::Sx && known.contains(&child.local());
    // What it uses it declares itself, and that it is in no namespace.
    let mut scope = vec![(String::new(), "urn:around".to_owned())];
    for child in element.children().filter(|child| !is_known(child)) {
        // A prefix that nothing declares means nothing elsewhere.
        if child.uri().is_some()
            && let Some(child) = tree::of(child, &[])
        {
            tree::write(&mut extra.elements, &child, &mut scope);
        }
        if extra.size() > SyncExtras::LIMIT {
            return None;
        }
    }
    (extra.size() <= SyncExtras::LIMIT).then_some(extra)
}

/// A fault of an element.
pub(super) fn fault(element: DocElement<'_, '_>, fault: SyncFault) -> SyncMarkupError {
    SyncMarkupError { at: element.span().start, fault }
}

/// A fault of an attribute's value, which is cut to a readable length.
fn invalid(
    element: DocElement<'_, '_>,
    (name, attribute): (&'static str, &'static str),
    value: &str,
    wanted: impl Display,
) -> SyncMarkupError {
    const SHOWN: usize = 80;
    let (value, wanted) = (value.chars().take(SHOWN).collect(), wanted.to_string());
    fault(element, SyncFault::Invalid { element: name, attribute, value, wanted })
}

/// A required attribute of an element, which is called `name` in faults.
fn required(
    element: DocElement<'_, '_>,
    name: &'static str,
    attribute: &'static str,
) -> SyncResult<String> {
    let missing = || fault(element, SyncFault::Missing { element: name, attribute });
    element.attribute(attribute).map(Into::into).ok_or_else(missing)
}

fn sync_id(sync: DocElement<'_, '_>) -> SyncResult<SyncId> {
    checked_id(sync, &required(sync, SYNC, "id")?)
}

pub(in crate::parse) fn checked_id(sync: DocElement<'_, '_>, id: &str) -> SyncResult<SyncId> {
    SyncId::new(id).map_err(|error| invalid(sync, (SYNC, "id"), id, error))
}

/// A required number of updates or sequence.
fn number(
    element: DocElement<'_, '_>,
    name: &'static str,
    attribute: &'static str,
) -> SyncResult<Count> {
    let text = required(element, name, attribute)?;
    let number = text.trim().parse().ok().and_then(|number| Count::new(number).ok());
    let wanted = "an integer from 1 to 2147483647 must be there";
    number.ok_or_else(|| invalid(element, (name, attribute), &text, wanted))
}

/// An optional boolean. SSE 1.0 knows `true` and `false`, "all other values are invalid" (section
/// 2.4); in SSE 0.91 an empty one is as good as none (section 2.3).
fn flag(
    sync: DocElement<'_, '_>,
    attribute: &'static str,
    is_091: bool,
) -> SyncResult<Option<bool>> {
    let Some(written) = sync.attribute(attribute) else { return Ok(None) };
    let value = if is_091 { written.trim() } else { &*written };
    match value {
        "true" => Ok(Some(true)),
        "false" => Ok(Some(false)),
        "" if is_091 => Ok(None),
        text => {
            let wanted = match is_091 {
                true => "it must be \"true\", \"false\" or empty",
                false => "it must be \"true\" or \"false\"",
            };
            Err(invalid(sync, (SYNC, attribute), text, wanted))
        }
    }
}

/// The `when` and `by` of an element, one of which must be there. In SSE 0.91 an empty one is as
/// good as none (section 2.4), and dates are those of RFC 822.
fn stamp(element: DocElement<'_, '_>, name: &'static str, is_091: bool) -> SyncResult<Stamp> {
    let value = |name| element.attribute(name).filter(|text| !is_091 || !text.trim().is_empty());
    let wanted = "a date-time as in \"Fri, 06 Jan 2006 19:24:09 GMT\" must be there";
    let date = |text: &str| match is_091 {
        true => Time::parse_rfc2822(text).ok_or_else(|| wanted.to_owned()),
        false => Time::parse_rfc3339(text).map_err(|error| error.to_string()),
    };
    let when = value("when")
        .map(|text| date(&text).map_err(|error| invalid(element, (name, "when"), &text, error)));
    let by = value("by").map(|text| {
        EndpointId::new(&text).map_err(|error| invalid(element, (name, "by"), &text, error))
    });
    match (when.transpose()?, by.transpose()?) {
        (Some(when), Some(by)) => Ok(Stamp::Both { when, by }),
        (Some(when), None) => Ok(Stamp::When(when)),
        (None, Some(by)) => Ok(Stamp::By(by)),
        (None, None) => Err(fault(element, SyncFault::NoStamp(name))),
    }
}

/// Adds one more of what an element has, of which there may be so many.
pub(in crate::parse) fn push_within<T>(
    list: &mut Vec<T>,
    (limit, what): (usize, &'static str),
    element: DocElement<'_, '_>,
    one: impl FnOnce() -> SyncResult<T>,
) -> SyncResult<()> {
    if list.len() >= limit {
        return Err(fault(element, SyncFault::TooMany { what, limit }));
    }
    list.push(one()?);
    Ok(())
}
