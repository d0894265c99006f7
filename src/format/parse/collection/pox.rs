//! Collections as plain XML.

use super::fields::{CollectionFile, Fields};
use super::{ITEM_LIMIT, is_sync};
use crate::parse::out::Out;
use crate::parse::{Limits, ParseError};
use tidegate_core::model::Time;
use tidegate_core::sync_markup::{Dialect, shape_element};
use tidegate_core::xml::ns::{ATOM, CONTENT, DC};
use tidegate_core::xml::strict::{Id, StrictContent, Tree};

/// Writes the collection that a document is; `false` where it is none.
pub(super) fn write(out: &mut Out, tree: &Tree<'_>) -> Result<bool, ParseError> {
    let (own, local) = tree.name(0);
    if local != "collection" {
        return Ok(false);
    }
    out.push("<feed xmlns=\"");
    out.push(ATOM);
    out.push("\"");
    attributes(out, tree, 0);
    out.push(">");
    let mut fields = Fields::default();
    let mut items = 0_usize;
    // The head comes first, whatever order it stands in.
    for (id, _) in tree.children(0) {
        let (namespace, local) = tree.name(id);
        if namespace == own && local == "item" {
            continue;
        }
        if namespace == ATOM {
            fields.said.push(local.to_owned());
        }
        let is_taken = namespace == own && fields.take(local, &tree.plain(id));
        if !is_taken {
            out.copy(tree, id);
        }
    }
    fields.description = fields.description.take().filter(|_| {
        // A feed has a subtitle, and no content.
        !fields.said.iter().any(|said| said == "subtitle")
    });
    if let Some(subtitle) = fields.description.take() {
        out.element("subtitle", " type=\"html\"", &subtitle);
    }
    fields.into_head().write(out, None);
    for (id, element) in tree.children(0) {
        if tree.name(id) != (own, "item") {
            continue;
        }
        items += 1;
        if items > ITEM_LIMIT {
            let at = element.span.start;
            return Err(ParseError::Limit { what: "items", limit: ITEM_LIMIT, at });
        }
        entry(out, tree, id, own, None);
    }
    out.push("</feed>");
    Ok(true)
}

/// Sync markup that stands elsewhere than in its item: what writes it, and the sync id.
pub(super) type Elsewhere<'a> = (&'a mut dyn FnMut(&mut Out), Option<&'a str>);

/// Adds an item as an entry. `own` is the namespace of the collection's own elements; `sync` writes
/// the sync markup where that stands elsewhere, and says the sync id: what stands in the item does not
/// count then.
pub(super) fn entry(
    out: &mut Out,
    tree: &Tree<'_>,
    item: Id,
    own: &str,
    sync: Option<Elsewhere<'_>>,
) {
    if let Some(element) = tree.element(item) {
        out.at(tree.line(element.span.start));
    }
    let start = out.len();
    out.push("<entry");
    attributes(out, tree, item);
    out.push(">");
    let is_elsewhere = sync.is_some();
    let mut sync_id = None;
    if let Some((write, id)) = sync {
        write(out);
        sync_id = id.map(str::to_owned);
    }
    let mut fields = Fields::default();
    let (mut is_own, mut has_shape) = (false, false);
    for (id, element) in tree.children(item) {
        let (namespace, local) = tree.name(id);
        if is_sync(namespace) && local == "sync" {
            if !is_elsewhere {
                sync_id = sync_id.or_else(|| element.attribute("id").map(str::to_owned));
                fields.changed = fields.changed.or_else(|| changed(tree, id));
                self::sync(out, tree, id, own);
            }
            continue;
        }
        if namespace == ATOM {
            fields.said.push(local.to_owned());
        }
        is_own |= namespace == own && namespace != ATOM;
        has_shape |= namespace == shape_element::NAMESPACE;
        if !takes(&mut fields, tree, id, own) {
            out.copy(tree, id);
        }
    }
    // A guid that is an address leads to the item's page, unless it says that it does not.
    if fields.link.is_none() && !fields.said.iter().any(|said| said == "link") {
        let guid = tree.children(item).find(|(id, _)| tree.name(*id) == (own, "guid"));
        let guid = guid.filter(|(_, guid)| guid.attribute("isPermaLink") != Some("false"));
        let address = guid.map(|(id, _)| tree.plain(id).trim().to_owned());
        fields.link = address.filter(|address| address.starts_with("http"));
    }
    fields.write(out, sync_id.as_deref());
    // What Atom has words for stands in these as well, so that it comes back in the item's own.
    if is_own && !has_shape && !is_elsewhere {
        let mut own = Out::new(&Limits::default());
        for (id, _) in tree.children(item) {
            let (namespace, local) = tree.name(id);
            if !(is_sync(namespace) && local == "sync") {
                own.copy_within(tree, id, "");
            }
        }
        if let Ok(content) = own.finish() {
            out.shape(start, shape_element::POX, &content);
        }
    }
    out.push("</entry>");
}

/// When an item was last changed, as its history says.
fn changed(tree: &Tree<'_>, sync: Id) -> Option<Time> {
    let mut updates = tree.children(sync).filter(|(id, _)| tree.name(*id).1 == "history");
    updates.find_map(|(_, update)| Time::parse_rfc3339(update.attribute("when")?).ok())
}

/// Whether a child of an item was taken as a field.
fn takes(fields: &mut Fields, tree: &Tree<'_>, id: Id, own: &str) -> bool {
    let (namespace, local) = tree.name(id);
    let Some(element) = tree.element(id) else { return false };
    match (namespace, local) {
        (CONTENT, "encoded") if !fields.content.as_ref().is_some_and(|(_, html)| *html) => {
            let text = tree.plain(id);
            let is_there = !text.trim().is_empty();
            if is_there {
                fields.content = Some((text, true));
            }
            is_there
        }
        (DC, "creator") => fields.take(local, &tree.plain(id)),
        (namespace, "enclosure") if namespace == own => {
            let value = |name| element.attribute(name).map(str::to_owned);
            let Some(url) = value("url") else { return false };
            fields.enclosures.push(CollectionFile {
                url,
                kind: value("type"),
                length: value("length"),
            });
            true
        }
        (namespace, local) if namespace == own => {
            let is_plain = tree.children(id).next().is_none();
            // What has elements in it is more than a text, but for texts that are HTML.
            let is_html = matches!(local, "content" | "body" | "description");
            let is_title = matches!(local, "title" | "subject");
            let text = match (is_plain || is_title, is_html) {
                (true, _) => tree.plain(id),
                (false, true) => html(tree, id),
                (false, false) => return false,
            };
            // What attributes say beside is kept with the element.
            let says_no_more = |name: &str| matches!(name, "isPermaLink" | "type");
            fields.take(local, &text)
                && element.attributes.iter().all(|attribute| says_no_more(attribute.name))
        }
        _ => false,
    }
}

/// What stands in an element as HTML: its text is HTML already.
fn html(tree: &Tree<'_>, id: Id) -> String {
    let mut out = String::new();
    for content in tree.contents(id) {
        match content {
            StrictContent::Text(text) => out.push_str(text),
            StrictContent::Element(child) => {
                out.push_str(tree.element(*child).map_or("", |e| tree.slice(e.span.clone())));
            }
        }
    }
    out
}

/// Adds an `sx:sync` whose conflicts are entries.
fn sync(out: &mut Out, tree: &Tree<'_>, sync: Id, own: &str) {
    // Only elements of sync markup that may have items in them are taken apart.
    let is_list = |id| {
        let (namespace, local) = tree.name(id);
        is_sync(namespace) && matches!(local, "conflicts" | "conflict")
    };
    opened(out, tree, sync);
    for (id, _) in tree.children(sync) {
        if is_list(id) {
            list(out, tree, id, own);
        } else {
            out.copy(tree, id);
        }
    }
    closed(out, tree, sync);
}

/// Adds `sx:conflicts`, or `sx:conflict` of SSE 0.91.
fn list(out: &mut Out, tree: &Tree<'_>, list: Id, own: &str) {
    opened(out, tree, list);
    for (id, _) in tree.children(list) {
        match tree.name(id) {
            (namespace, "item") if namespace == own => entry(out, tree, id, own, None),
            (namespace, "conflict") if Dialect::of(namespace) == Some(Dialect::Sse091) => {
                self::list(out, tree, id, own);
            }
            _ => out.copy(tree, id),
        }
    }
    closed(out, tree, list);
}

fn opened(out: &mut Out, tree: &Tree<'_>, id: Id) {
    let Some(element) = tree.element(id) else { return };
    out.at(tree.line(element.span.start));
    out.push("<");
    out.push(element.name);
    let prefix = element.name.split_once(':').map_or("", |(prefix, _)| prefix);
    out.bind(prefix, tree.name(id).0);
    for attribute in element.attributes.iter().filter(|a| !a.name.contains(':')) {
        out.attribute(attribute.name, &attribute.value);
    }
    out.push(">");
}

fn closed(out: &mut Out, tree: &Tree<'_>, id: Id) {
    let name = tree.element(id).map_or("", |element| element.name);
    for piece in ["</", name, ">"] {
        out.push(piece);
    }
}

/// Adds the attributes of an element, with the bindings of their prefixes.
fn attributes(out: &mut Out, tree: &Tree<'_>, id: Id) {
    let Some(element) = tree.element(id) else { return };
    let mut bound: Vec<&str> = Vec::new();
    for attribute in &element.attributes {
        if let Some((prefix, _)) = attribute.name.split_once(':')
            && !bound.contains(&prefix)
        {
            bound.push(prefix);
            out.bind(prefix, tree.binding(id, prefix).unwrap_or_default());
        }
        out.attribute(attribute.name, &attribute.value);
    }
}
