//! What an `sx:sync` element of SSE 1.0 or FeedSync says, which are read as equal (SSE 1.0 sections 2.4 to
//! 2.6; READINGS 1, row 1).

use super::conflict::dialect_of_item;
use super::error::{fault, invalid, number, push_within, stamp, sync_id};
use super::{MOST_CONFLICTS, UPDATE_LIMIT, children, sync_of};
use crate::parse::dialect::FeedDialect;
use tidegate_core::model::{History, Shared, SyncFault, SyncMarkupError, Time, Update, Version};
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
            push_within(&mut shared.conflicts, MOST_CONFLICTS, item, || Ok(conflict))?;
            open.push(sync);
        }
    }
    Ok(shared)
}

fn version<'t, 'a>(
    item: DocElement<'t, 'a>,
    sync: DocElement<'t, 'a>,
) -> Result<Version<DocElement<'t, 'a>>, SyncMarkupError> {
    let id = sync_id(sync, SYNC)?;
    let updates = number(sync, SYNC, "updates")?;
    let deleted = flag(sync, "deleted")?.unwrap_or(false);
    let noconflicts = flag(sync, "noconflicts")?;
    let history = history(sync)?.ok_or_else(|| fault(sync, SyncFault::NoHistory))?;
    Ok(Version { id, updates, deleted, noconflicts, history, data: item })
}

fn history(sync: DocElement<'_, '_>) -> Result<Option<History>, SyncMarkupError> {
    let mut updates = Vec::new();
    for element in children(sync, Ns::Sx, "history") {
        let most = (UPDATE_LIMIT, "sx:history in one sx:sync");
        push_within(&mut updates, most, element, || update(element))?;
    }
    Ok(History::from_newest_first(updates))
}

pub(super) fn update(element: DocElement<'_, '_>) -> Result<Update, SyncMarkupError> {
    let sequence = number(element, HISTORY, "sequence")?;
    let stamp = stamp(element, HISTORY, |name| element.attribute(name), Time::parse_rfc3339)?;
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
