//! What an `sx:sync` element says (SSE 1.0 sections 2.4 to 2.6).

use super::{CONFLICT_LIMIT, Payload, SseDialect, SseError, SseFault, UPDATE_LIMIT};
use super::{Id, StrictElement, Tree};
use tidegate_core::model::{
    Count, EndpointId, Family, History, Shared, Stamp, SyncId, Time, Update, Version,
};
use tidegate_core::xml::ns::{ATOM, is_rss};

const SYNC: &str = "sx:sync";
const HISTORY: &str = "sx:history";

/// Whether an element is the sync markup `local` of SSE 1.0 or FeedSync, which are read as equal
/// (READINGS 1, row 1).
pub(super) fn is_sync_markup(tree: &Tree<'_>, id: Id, local: &str) -> bool {
    let (namespace, name) = tree.name(id);
    let dialect = SseDialect::of(namespace);
    name == local && matches!(dialect, Some(SseDialect::Sse | SseDialect::FeedSync))
}

/// The one `sx:sync` in an item; `None` where there is none.
pub(super) fn sync_of(tree: &Tree<'_>, item: Id) -> Result<Option<Id>, SseError> {
    let mut found = tree.children(item).filter(|(id, _)| is_sync_markup(tree, *id, "sync"));
    let first = found.next().map(|(id, _)| id);
    match found.next() {
        Some((_, second)) => Err(tree.fault(second.span.start, SseFault::Twice(SYNC))),
        None => Ok(first),
    }
}

/// The family of an element that is an item: `entry` of Atom, or `item` in the namespace that the
/// feed's own items are in, or in another of RSS.
pub(super) fn family_of(tree: &Tree<'_>, id: Id, rss: &str) -> Option<Family> {
    match tree.name(id) {
        (ATOM, "entry") => Some(Family::Atom),
        (namespace, "item") if namespace == rss || is_rss(namespace) => Some(Family::Rss),
        _ => None,
    }
}

/// The shared item that the element `item` with the `sx:sync` element `sync` is.
///
/// Conflicts within conflicts are taken as conflicts of the item: the list is flat (section 3.3;
/// READINGS 1, row 20).
pub(super) fn shared(
    tree: &Tree<'_>,
    rss: &str,
    item: Id,
    sync: Id,
) -> Result<Shared<Payload>, SseError> {
    let mut shared = Shared::new(version(tree, rss, item, sync)?);
    let mut open = vec![sync];
    while let Some(sync) = open.pop() {
        let lists = tree.children(sync).filter(|(id, _)| is_sync_markup(tree, *id, "conflicts"));
        let items = lists.flat_map(|(list, _)| tree.children(list));
        for (item, element) in items {
            if family_of(tree, item, rss).is_none() {
                continue;
            }
            let at = element.span.start;
            let Some(sync) = sync_of(tree, item)? else {
                return Err(tree.fault(at, SseFault::PlainConflict));
            };
            let conflict = version(tree, rss, item, sync)?;
            if conflict.id != shared.winner.id {
                let found = conflict.id.to_string();
                let wanted = shared.winner.id.to_string();
                return Err(tree.fault(at, SseFault::OtherConflict { found, wanted }));
            }
            if shared.conflicts.len() >= CONFLICT_LIMIT {
                let what = "conflicts in one item";
                let fault = SseFault::TooMany { what, limit: CONFLICT_LIMIT };
                return Err(tree.fault(at, fault));
            }
            shared.conflicts.push(conflict);
            open.push(sync);
        }
    }
    Ok(shared)
}

fn version(tree: &Tree<'_>, rss: &str, item: Id, sync: Id) -> Result<Version<Payload>, SseError> {
    let family = family_of(tree, item, rss).unwrap_or(Family::Rss);
    let (Some(element), Some(data)) =
        (tree.element(sync), Payload::cut(tree, family, item, Some(sync)))
    else {
        return Err(tree.fault(0, SseFault::Missing { element: SYNC, attribute: "id" }));
    };
    let fault = |fault| tree.fault(element.span.start, fault);
    let id = required(element, SYNC, "id").map_err(fault)?;
    let id = SyncId::new(id).map_err(|error| fault(invalid(SYNC, "id", id, &error)))?;
    let updates = number(element, SYNC, "updates").map_err(fault)?;
    let deleted = flag(element, "deleted").map_err(fault)?.unwrap_or(false);
    let noconflicts = flag(element, "noconflicts").map_err(fault)?;
    let history = history(tree, sync)?.ok_or_else(|| fault(SseFault::NoHistory))?;
    Ok(Version { id, updates, deleted, noconflicts, history, data })
}

fn history(tree: &Tree<'_>, sync: Id) -> Result<Option<History>, SseError> {
    let mut updates = Vec::new();
    for (id, element) in tree.children(sync) {
        if !is_sync_markup(tree, id, "history") {
            continue;
        }
        let read = if updates.len() < UPDATE_LIMIT {
            update(element)
        } else {
            Err(SseFault::TooMany { what: "sx:history in one sx:sync", limit: UPDATE_LIMIT })
        };
        updates.push(read.map_err(|fault| tree.fault(element.span.start, fault))?);
    }
    Ok(History::from_newest_first(updates))
}

pub(super) fn update(element: &StrictElement<'_>) -> Result<Update, SseFault> {
    let sequence = number(element, HISTORY, "sequence")?;
    let when = element.attribute("when").map(|text| {
        Time::parse_rfc3339(text).map_err(|error| invalid(HISTORY, "when", text, &error))
    });
    let by = element
        .attribute("by")
        .map(|text| EndpointId::new(text).map_err(|error| invalid(HISTORY, "by", text, &error)));
    let stamp = match (when.transpose()?, by.transpose()?) {
        (Some(when), Some(by)) => Stamp::Both { when, by },
        (Some(when), None) => Stamp::When(when),
        (None, Some(by)) => Stamp::By(by),
        (None, None) => return Err(SseFault::NoStamp(HISTORY)),
    };
    Ok(Update { sequence, stamp })
}

/// A required attribute.
pub(super) fn required<'t>(
    element: &'t StrictElement<'_>,
    name: &'static str,
    attribute: &'static str,
) -> Result<&'t str, SseFault> {
    element.attribute(attribute).ok_or(SseFault::Missing { element: name, attribute })
}

/// A required number of updates or sequence.
pub(super) fn number(
    element: &StrictElement<'_>,
    name: &'static str,
    attribute: &'static str,
) -> Result<Count, SseFault> {
    let text = required(element, name, attribute)?;
    let number = text.trim().parse().ok().and_then(|number| Count::new(number).ok());
    number.ok_or_else(|| {
        invalid(name, attribute, text, &"an integer from 1 to 2147483647 must be there")
    })
}

/// An optional boolean: `true` and `false`, "all other values are invalid" (section 2.4).
fn flag(element: &StrictElement<'_>, attribute: &'static str) -> Result<Option<bool>, SseFault> {
    match element.attribute(attribute) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(text) => Err(invalid(SYNC, attribute, text, &"it must be \"true\" or \"false\"")),
    }
}

/// A fault of an attribute's value, which is cut to a readable length.
pub(super) fn invalid(
    element: &'static str,
    attribute: &'static str,
    value: &str,
    wanted: &dyn std::fmt::Display,
) -> SseFault {
    const SHOWN: usize = 80;
    let value = value.chars().take(SHOWN).collect();
    SseFault::Invalid { element, attribute, value, wanted: wanted.to_string() }
}
