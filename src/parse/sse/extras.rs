//! Markup in `sx:sync` that SSE does not know (SSE 1.0 section 2.1.8).

use super::payload::needs;
use super::sync::{is_sync_markup, update};
use super::tree::{Id, Tree, split};
use crate::model::{Extra, SyncExtras, XML_NAMESPACE};
use crate::parse::text::escape_into;

/// What stands in an `sx:sync` beyond what SSE knows.
pub(super) fn extras(tree: &Tree<'_>, sync: Id) -> SyncExtras {
    const SYNC: [&str; 4] = ["id", "updates", "deleted", "noconflicts"];
    let mut extras = SyncExtras {
        sync: extra(tree, sync, &SYNC, &["history", "conflicts"]),
        ..SyncExtras::default()
    };
    for (id, element) in tree.children(sync) {
        if !is_sync_markup(tree, id, "history") {
            continue;
        }
        let extra = extra(tree, id, &["sequence", "when", "by"], &[]);
        if let Some(update) = update(element).ok().filter(|_| !extra.is_empty()) {
            extras.updates.push((update, extra));
        }
    }
    extras
}

fn extra(tree: &Tree<'_>, id: Id, attributes: &[&str], children: &[&str]) -> Extra {
    let mut extra = Extra::default();
    let written = tree.element(id).map(|element| &element.attributes[..]).unwrap_or_default();
    for attribute in written {
        let (prefix, local) = split(&attribute.name);
        if prefix.is_empty() && attributes.contains(&local) {
            continue;
        }
        let namespace = match prefix {
            "" => None,
            "xml" => Some(XML_NAMESPACE.to_owned()),
            prefix => tree.binding(id, prefix).map(ToOwned::to_owned),
        };
        extra.attributes.push((namespace, local.to_owned(), attribute.value.clone()));
    }
    for (child, element) in tree.children(id) {
        if children.iter().any(|known| is_sync_markup(tree, child, known)) {
            continue;
        }
        // What it uses and does not declare it declares itself from now on.
        let text = tree.slice(element.span.clone());
        let start = 1 + element.name.len();
        let (Some(before), Some(rest)) = (text.get(..start), text.get(start..)) else { continue };
        extra.elements.push_str(before);
        for (prefix, namespace) in needs(tree, child, None) {
            let name =
                if prefix.is_empty() { "xmlns".to_owned() } else { format!("xmlns:{prefix}") };
            extra.elements.push_str(&format!(" {name}=\""));
            escape_into(&mut extra.elements, &namespace);
            extra.elements.push('"');
        }
        extra.elements.push_str(rest);
    }
    extra
}
