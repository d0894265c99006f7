//! What an `sx:sync` element says: of SSE 1.0 or FeedSync, which are read as equal (SSE 1.0
//! sections 2.4 to 2.6; READINGS 1, row 1), and of SSE 0.91 (its sections 2.3 to 2.5 and 5).

use super::{MOST_CONFLICTS, UPDATE_LIMIT, children, dialect_of_item, sync_of};
use crate::parse::dialect::FeedDialect;
use std::borrow::Cow;
use std::fmt::Display;
use tidegate_core::model::{
    Count, EndpointId, Extra, History, Shared, Stamp, SyncExtras, SyncId, SyncMarkupError, Time,
    Update, Version,
};
use tidegate_core::sync::history_of_091;
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{split_name, tree};

/// What is read of an element of sync markup, or what is wrong with it.
pub(in crate::parse) type SyncResult<T> = Result<T, SyncMarkupError>;

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
            let sync = sync.ok_or_else(|| fault(item, "an item in sx:conflicts has no sx:sync"))?;
            let conflict = version(item, sync)?;
            if conflict.id != shared.winner.id {
                let (found, wanted) = (conflict.id.as_str(), shared.winner.id.as_str());
                let why = format!("the conflict has the id {found:?}, its item has {wanted:?}");
                return Err(fault(item, format!("{why}; they must be the same")));
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
    let updates = number(sync, "updates")?;
    let deleted = flag(sync, "deleted")?.unwrap_or(false);
    let noconflicts = flag(sync, "noconflicts")?;
    let mut history = Vec::new();
    for element in children(sync, Ns::Sx, "history") {
        let most = (UPDATE_LIMIT, "sx:history in one sx:sync");
        push_within(&mut history, most, element, || update(element))?;
    }
    let history = History::from_newest_first(history);
    let history = history.ok_or_else(|| fault(sync, NO_HISTORY))?;
    Ok(Version { id, updates, deleted, noconflicts, history, data: item })
}

fn update(element: DocElement<'_, '_>) -> SyncResult<Update> {
    Ok(Update { sequence: number(element, "sequence")?, stamp: stamp(element)? })
}

/// The shared item that the element `item` is by SSE 0.91, and its `conflict` attribute; `None`
/// where it has no such `sx:sync`.
pub(super) fn read_091<'t, 'a>(
    item: DocElement<'t, 'a>,
    dialect: FeedDialect,
) -> SyncResult<Option<(Shared<DocElement<'t, 'a>>, bool)>> {
    let Some(sync) = sync_of(item, Ns::Sx091)? else { return Ok(None) };
    let (winner, is_contested) = version_091(sync, sync_id(sync)?, item, children_091)?;
    let mut shared = Shared::new(winner);
    let lists = children(sync, Ns::Sx091, "conflicts");
    for element in lists.flat_map(|list| children(list, Ns::Sx091, "conflict")) {
        let conflict = || conflict_091(element, &shared.winner.id, dialect);
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

/// A version by SSE 0.91, and its `conflict` attribute. `parts`: the elements of a name that belong to its
/// `sx:sync` or a part of that.
pub(in crate::parse) fn version_091<'t, 'a, D, I: Iterator<Item = DocElement<'t, 'a>>>(
    sync: DocElement<'t, 'a>,
    id: SyncId,
    data: D,
    parts: impl Fn(DocElement<'t, 'a>, &'static str) -> I,
) -> SyncResult<(Version<D>, bool)> {
    let history = parts(sync, "history").next();
    let history = history.ok_or_else(|| fault(sync, NO_HISTORY))?;
    let updates = number(sync, "version")?;
    let deleted = flag(sync, "deleted")?.unwrap_or(false);
    let is_contested = flag(sync, "conflict")?.unwrap_or(false);
    let (last, mut before) = (stamp(history)?, Vec::new());
    for element in parts(history, "update") {
        let most = (UPDATE_LIMIT, "sx:update in one sx:history");
        push_within(&mut before, most, element, || stamp(element))?;
    }
    let history = history_of_091(updates, last, before);
    Ok((Version { id, updates, deleted, noconflicts: None, history, data }, is_contested))
}

/// The version of the item `id` that an `sx:conflict` says to have lost.
pub(in crate::parse) fn lost_091<D>(
    conflict: DocElement<'_, '_>,
    id: &SyncId,
    data: D,
) -> SyncResult<Version<D>> {
    let (id, updates) = (id.clone(), number(conflict, "version")?);
    let history = history_of_091(updates, stamp(conflict)?, Vec::new());
    Ok(Version { id, updates, deleted: false, noconflicts: None, history, data })
}

/// The version of the item `id` that an `sx:conflict` stands for: the item in it, without conflicts
/// of its own.
fn conflict_091<'t, 'a>(
    element: DocElement<'t, 'a>,
    id: &SyncId,
    dialect: FeedDialect,
) -> SyncResult<Version<DocElement<'t, 'a>>> {
    let lost = lost_091(element, id, element)?;
    let mut items = element.children().filter(|item| dialect_of_item(*item, dialect).is_some());
    let Some(item) = items.next() else { return Ok(lost) };
    let Some(sync) = sync_of(item, Ns::Sx091)? else { return Ok(lost) };
    let (inside, _) = version_091(sync, sync_id(sync)?, item, children_091)?;
    // What stands in it is for each application to say (section 5.2): it may be no version of the
    // item.
    Ok(if inside.id == *id { inside } else { lost })
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
            && let Some(child) = tree::of(child)
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
pub(super) fn fault(element: DocElement<'_, '_>, fault: impl Into<String>) -> SyncMarkupError {
    SyncMarkupError { at: element.span().start, fault: fault.into(), repeats: None }
}

pub(super) const NO_HISTORY: &str = "sx:sync has no sx:history; there must be at least one";

/// What there is more of than is taken.
pub(super) fn too_many(what: &str, limit: usize) -> String {
    format!("there are more than {limit} {what}, which is the limit")
}

/// A fault of an attribute's value, which is cut to a readable length.
fn invalid(
    element: DocElement<'_, '_>,
    attribute: &str,
    value: &str,
    wanted: impl Display,
) -> SyncMarkupError {
    const SHOWN: usize = 80;
    let (local, value) = (element.local(), value.chars().take(SHOWN).collect::<String>());
    fault(element, format!("sx:{local} has {attribute}={value:?}; {wanted}"))
}

/// A required attribute.
fn required<'a>(element: DocElement<'_, 'a>, attribute: &str) -> SyncResult<Cow<'a, str>> {
    let missing =
        || format!("sx:{} has no attribute {attribute:?}; it is required", element.local());
    element.attribute(attribute).ok_or_else(|| fault(element, missing()))
}

fn sync_id(sync: DocElement<'_, '_>) -> SyncResult<SyncId> {
    checked_id(sync, &required(sync, "id")?)
}

pub(in crate::parse) fn checked_id(sync: DocElement<'_, '_>, id: &str) -> SyncResult<SyncId> {
    SyncId::new(id).map_err(|error| invalid(sync, "id", id, error))
}

/// A required number of updates or sequence.
fn number(element: DocElement<'_, '_>, attribute: &str) -> SyncResult<Count> {
    let text = required(element, attribute)?;
    let number = text.trim().parse().ok().and_then(|number| Count::new(number).ok());
    let wanted = "an integer from 1 to 2147483647 must be there";
    number.ok_or_else(|| invalid(element, attribute, &text, wanted))
}

/// Whether an element is read by SSE 0.91, for which an empty attribute is as good as none (sections
/// 2.3 and 2.4).
fn is_091(element: DocElement<'_, '_>) -> bool {
    element.ns() != Ns::Sx
}

/// An optional boolean. SSE 1.0 knows `true` and `false`, "all other values are invalid" (section
/// 2.4).
fn flag(sync: DocElement<'_, '_>, attribute: &str) -> SyncResult<Option<bool>> {
    let Some(written) = sync.attribute(attribute) else { return Ok(None) };
    let wanted = match (is_091(sync), &*written) {
        (_, "true") => return Ok(Some(true)),
        (_, "false") => return Ok(Some(false)),
        (false, _) => "it must be \"true\" or \"false\"",
        (true, text) => match text.trim() {
            "" => return Ok(None),
            "true" => return Ok(Some(true)),
            "false" => return Ok(Some(false)),
            _ => "it must be \"true\", \"false\" or empty",
        },
    };
    Err(invalid(sync, attribute, &written, wanted))
}

/// The `when` and `by` of an element, one of which must be there. In SSE 0.91 dates are those of RFC
/// 822.
fn stamp(element: DocElement<'_, '_>) -> SyncResult<Stamp> {
    let is_091 = is_091(element);
    let value = |name| element.attribute(name).filter(|text| !is_091 || !text.trim().is_empty());
    let wanted = "a date-time as in \"Fri, 06 Jan 2006 19:24:09 GMT\" must be there";
    let date = |text: &str| match is_091 {
        true => Time::parse_rfc2822(text).ok_or_else(|| wanted.to_owned()),
        false => Time::parse_rfc3339(text).map_err(|error| error.to_string()),
    };
    let when = value("when")
        .map(|text| date(&text).map_err(|error| invalid(element, "when", &text, error)));
    let by = value("by")
        .map(|text| EndpointId::new(&text).map_err(|error| invalid(element, "by", &text, error)));
    match (when.transpose()?, by.transpose()?) {
        (Some(when), Some(by)) => Ok(Stamp::Both { when, by }),
        (Some(when), None) => Ok(Stamp::When(when)),
        (None, Some(by)) => Ok(Stamp::By(by)),
        (None, None) => {
            let local = element.local();
            let why = "has neither \"when\" nor \"by\"; one of them must be there";
            Err(fault(element, format!("sx:{local} {why}")))
        }
    }
}

/// Adds one more of what an element has, of which there may be so many.
pub(in crate::parse) fn push_within<T>(
    list: &mut Vec<T>,
    (limit, what): (usize, &str),
    element: DocElement<'_, '_>,
    one: impl FnOnce() -> SyncResult<T>,
) -> SyncResult<()> {
    if list.len() >= limit {
        return Err(fault(element, too_many(what, limit)));
    }
    list.push(one()?);
    Ok(())
}
