//! Markup in `sx:sync` that SSE does not know (SSE 1.0 section 2.1.8).
//!
//! It is written anew from what was read, so that it can stand in any document: a reference that XML does
//! not know is the character that HTML means by it or its own text, and a processing instruction or a comment
//! does not come along.

use super::children;
use super::version::update;
use tidegate_core::model::{Extra, SyncExtras};
use tidegate_core::xml::doc::DocElement;
use tidegate_core::xml::ns::Ns;
use tidegate_core::xml::{split_name, tree};

/// What stands in an `sx:sync` beyond what SSE knows; `None` where that is more than
/// [`SyncExtras::LIMIT`].
pub(super) fn read(sync: DocElement<'_, '_>) -> Option<SyncExtras> {
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
        if child.binding(split_name(child.name()).0).is_some()
            && let Some(child) = tree::of(child, element.scope())
        {
            tree::write(&mut extra.elements, &child, &mut scope);
        }
        if extra.size() > SyncExtras::LIMIT {
            return None;
        }
    }
    (extra.size() <= SyncExtras::LIMIT).then_some(extra)
}
