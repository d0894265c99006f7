//! What an `sx:sync` element of SSE 1.0 or FeedSync says, which are read as equal (SSE 1.0 sections 2.4 to
//! 2.6; READINGS 1, row 1).

use super::conflict::dialect_of_item;
use super::error::{SyncFault, SyncMarkupError, fault, invalid, number, required};
use super::{CONFLICT_LIMIT, UPDATE_LIMIT, children, sync_of};
use crate::parse::dialect::FeedDialect;
use tidegate_core::model::{EndpointId, History, Shared, Stamp, SyncId, Time, Update, Version};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::Ns;

const SYNC: &str = "sx:sync";
const HISTORY: &str = "sx:history";

/// The shared item that the element `item` with the `sx:sync` element `sync` is; the data of each version is
/// its element.
///
/// Conflicts within conflicts are taken as conflicts of the item: the list is flat (section 3.3;
/// READINGS 1, row 20).
pub(super) fn read<'t, 'a>(
    item: DocElement<'t, 'a>,
    sync: DocElement<'t, 'a>,
    dialect: FeedDialect,
) -> Result<Shared<DocElement<'t, 'a>>, SyncMarkupError> {
    let mut shared = Shared::new(version(item, sync)?);
    let mut open = vec![sync];
    while let Some(sync) = open.pop() {
        let items = children(sync, Ns::Sx, "conflicts").flat_map(DocElement::children);
        for item in items.filter(|item| dialect_of_item(*item, dialect).is_some()) {
            let Some(sync) = sync_of(item, Ns::Sx)? else {
                return Err(fault(item, SyncFault::PlainConflict));
            };
            let conflict = version(item, sync)?;
            if conflict.id != shared.winner.id {
                let found = conflict.id.to_string();
                let wanted = shared.winner.id.to_string();
                return Err(fault(item, SyncFault::OtherConflict { found, wanted }));
            }
            if shared.conflicts.len() >= CONFLICT_LIMIT {
                let what = "conflicts in one item";
                return Err(fault(item, SyncFault::TooMany { what, limit: CONFLICT_LIMIT }));
            }
            shared.conflicts.push(conflict);
            open.push(sync);
        }
    }
    Ok(shared)
}

fn version<'t, 'a>(
    item: DocElement<'t, 'a>,
    sync: DocElement<'t, 'a>,
) -> Result<Version<DocElement<'t, 'a>>, SyncMarkupError> {
    let id = required(sync, SYNC, "id")?;
    let id = SyncId::new(&id).map_err(|error| invalid(sync, SYNC, "id", &id, &error))?;
    let updates = number(sync, SYNC, "updates")?;
    let deleted = flag(sync, "deleted")?.unwrap_or(false);
    let noconflicts = flag(sync, "noconflicts")?;
    let history = history(sync)?.ok_or_else(|| fault(sync, SyncFault::NoHistory))?;
    Ok(Version { id, updates, deleted, noconflicts, history, data: item })
}

fn history(sync: DocElement<'_, '_>) -> Result<Option<History>, SyncMarkupError> {
    let mut updates = Vec::new();
    for element in children(sync, Ns::Sx, "history") {
        if updates.len() >= UPDATE_LIMIT {
            let what = "sx:history in one sx:sync";
            return Err(fault(element, SyncFault::TooMany { what, limit: UPDATE_LIMIT }));
        }
        updates.push(update(element)?);
    }
    Ok(History::from_newest_first(updates))
}

pub(super) fn update(element: DocElement<'_, '_>) -> Result<Update, SyncMarkupError> {
    let sequence = number(element, HISTORY, "sequence")?;
    let when = element.attribute("when").map(|text| {
        Time::parse_rfc3339(&text).map_err(|e| invalid(element, HISTORY, "when", &text, &e))
    });
    let by = element.attribute("by").map(|text| {
        EndpointId::new(&text).map_err(|error| invalid(element, HISTORY, "by", &text, &error))
    });
    let stamp = match (when.transpose()?, by.transpose()?) {
        (Some(when), Some(by)) => Stamp::Both { when, by },
        (Some(when), None) => Stamp::When(when),
        (None, Some(by)) => Stamp::By(by),
        (None, None) => return Err(fault(element, SyncFault::NoStamp(HISTORY))),
    };
    Ok(Update { sequence, stamp })
}

/// An optional boolean: `true` and `false`, "all other values are invalid" (section 2.4).
fn flag(
    sync: DocElement<'_, '_>,
    attribute: &'static str,
) -> Result<Option<bool>, SyncMarkupError> {
    match sync.attribute(attribute).as_deref() {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(text) => {
            let wanted = "it must be \"true\" or \"false\"";
            Err(invalid(sync, SYNC, attribute, text, &wanted))
        }
    }
}
