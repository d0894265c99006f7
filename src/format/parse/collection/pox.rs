//! Collections as plain XML.

use super::{CollectionFile, Fields, ITEM_LIMIT};
use crate::parse::out::{Lines, Out};
use crate::parse::{Limits, ParseError};
use tidegate_core::model::Time;
use tidegate_core::sync_markup::collection_item;
use tidegate_core::xml::doc::{Doc, DocElement, WalkStep};
use tidegate_core::xml::ns::{ATOM, Ns};
use tidegate_core::xml::{cut, split_name};

/// Writes the collection that a text is; `false` where it is none. `is_shared`: it speaks of sync
/// markup.
pub fn write_if_shared(out: &mut Out, text: &str, is_shared: bool) -> Result<bool, ParseError> {
    let built = match Doc::read_plain(text) {
        Err(error) if is_shared => return Err(error.into()),
        Err(_) => return Ok(false),
        Ok(built) => built,
    };
    match (built.findings.fault, built.doc.root()) {
        (Some((at, reason)), _) if is_shared => Err(ParseError::NothingWhole { reason, at }),
        // One that has nothing yet need not speak of sync markup (section 2.2).
        (None, Some(root)) if is_shared || root.is_leaf() => {
            write(out, root)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Writes a collection.
fn write(out: &mut Out, root: DocElement<'_, '_>) -> Result<(), ParseError> {
    let own = root.ns();
    out.push("<feed xmlns=\"");
    out.push(ATOM);
    out.push("\"");
    attributes(out, root);
    out.push(">");
    let is_item = |child: &DocElement<'_, '_>| child.ns() == own && child.local() == "item";
    let lines = Lines::of(root.doc().text());
    // The head comes first, whatever order it stands in.
    let mut fields = Fields::default();
    for child in root.children().filter(|child| !is_item(child)) {
        if child.ns() == Ns::Atom {
            fields.said.push(child.local().to_owned());
        }
        if child.ns() != own || !fields.take(child.local(), &child.all_text()) {
            out.at(lines.line(child.span().start));
            out.copy(child);
        }
    }
    // A feed has a subtitle, and no content.
    let has_subtitle = fields.said.iter().any(|said| said == "subtitle");
    if let Some(subtitle) = fields.description.take().filter(|_| !has_subtitle) {
        out.element("subtitle", " type=\"html\"", &subtitle);
    }
    fields.into_head().write(out, None);
    let mut writer = ItemWriter { out, own, lines: Some(lines) };
    for (item, before) in root.children().filter(is_item).zip(0..) {
        if before >= ITEM_LIMIT {
            let at = item.span().start;
            return Err(ParseError::Limit { what: "items", limit: ITEM_LIMIT, at });
        }
        writer.entry(item, None);
    }
    out.push("</feed>");
    Ok(())
}

/// Sync markup that stands elsewhere than in its item: what writes it, and the sync id.
pub type Elsewhere<'a> = (&'a mut dyn FnMut(&mut Out), Option<&'a str>);

/// Writes items as entries.
pub struct ItemWriter<'o> {
    pub out: &'o mut Out,
    /// The namespace of the collection's own elements.
    pub own: Ns,
    /// The lines of the document that the items stand in.
    pub lines: Option<Lines>,
}

impl ItemWriter<'_> {
    /// Adds an item as an entry. `sync` writes the sync markup where that stands elsewhere, and
    /// says the sync id: what stands in the item does not count then.
    pub fn entry(&mut self, item: DocElement<'_, '_>, sync: Option<Elsewhere<'_>>) {
        self.go_to(item);
        let start = self.out.len();
        self.out.push("<entry");
        attributes(self.out, item);
        self.out.push(">");
        let is_elsewhere = sync.is_some();
        let mut sync_id = None;
        if let Some((write, id)) = sync {
            write(self.out);
            sync_id = id.map(str::to_owned);
        }
        let mut fields = Fields::default();
        for child in item.children() {
            if is_sync(child) {
                if !is_elsewhere {
                    sync_id = sync_id.or_else(|| child.attribute("id").map(Into::into));
                    fields.changed = fields.changed.or_else(|| changed(child));
                    self.sync(child);
                }
                continue;
            }
            if child.ns() == Ns::Atom {
                fields.said.push(child.local().to_owned());
            }
            if !self.takes(&mut fields, child) {
                self.copy(child);
            }
        }
        if fields.link.is_none() && !fields.said.iter().any(|said| said == "link") {
            fields.link = self.page(item);
        }
        fields.write(self.out, sync_id.as_deref());
        if !is_elsewhere {
            self.keep(item, start);
        }
        self.out.push("</entry>");
    }

    /// A guid that is an address leads to the item's page, unless it says that it does not.
    fn page(&self, item: DocElement<'_, '_>) -> Option<String> {
        let guid = item.children().find(|e| e.ns() == self.own && e.local() == "guid")?;
        let address = guid.all_text().trim().to_owned();
        let leads = guid.attribute("isPermaLink").as_deref() != Some("false");
        (leads && address.starts_with("http")).then_some(address)
    }

    /// Keeps an item that has elements of its own, whose entry begins at `start`, so that it comes
    /// back in these.
    fn keep(&mut self, item: DocElement<'_, '_>, start: usize) {
        let is_own = |child: DocElement<'_, '_>| child.ns() == self.own && child.ns() != Ns::Atom;
        let is_kept = |child: DocElement<'_, '_>| match child.ns() {
            Ns::Other(number) => child.doc().uri(number) == collection_item::NAMESPACE,
            _ => false,
        };
        if !item.children().any(is_own) || item.children().any(is_kept) {
            return;
        }
        let mut own = Out::new(&Limits::default());
        for child in item.children().filter(|child| !is_sync(*child)) {
            own.copy_within(child, "");
        }
        if let Ok(content) = own.finish() {
            self.out.keep(start, collection_item::POX, &[], &content);
        }
    }

    /// Adds line ends up to the line of an element.
    fn go_to(&mut self, element: DocElement<'_, '_>) {
        if let Some(lines) = &self.lines {
            self.out.at(lines.line(element.span().start));
        }
    }

    fn copy(&mut self, element: DocElement<'_, '_>) {
        self.go_to(element);
        self.out.copy(element);
    }

    /// Whether a child of an item was taken as a field.
    fn takes(&self, fields: &mut Fields, child: DocElement<'_, '_>) -> bool {
        match (child.ns(), child.local()) {
            (Ns::Named("content"), "encoded") => {
                let text = child.all_text();
                let has_html = fields.content.as_ref().is_some_and(|(_, is_html)| *is_html);
                let is_taken = !has_html && !text.trim().is_empty();
                if is_taken {
                    fields.content = Some((text, true));
                }
                is_taken
            }
            (Ns::Named("dc"), local @ "creator") => fields.take(local, &child.all_text()),
            (ns, "enclosure") if ns == self.own => {
                let value = |name| child.attribute(name).map(Into::into);
                let Some(url) = value("url") else { return false };
                let (kind, length) = (value("type"), value("length"));
                fields.enclosures.push(CollectionFile { url, kind, length });
                true
            }
            (ns, local) if ns == self.own => {
                // What has elements in it is more than a text, but for texts that are HTML.
                let text = match local {
                    "title" | "subject" => child.all_text(),
                    _ if child.is_leaf() => child.all_text(),
                    "content" | "body" | "description" => html(child),
                    _ => return false,
                };
                // What attributes say beside is kept with the element.
                let says_no_more = |name: &str| matches!(name, "isPermaLink" | "type");
                fields.take(local, &text) && child.attributes().all(|a| says_no_more(a.name()))
            }
            _ => false,
        }
    }

    /// Adds an `sx:sync` whose conflicts are entries.
    fn sync(&mut self, sync: DocElement<'_, '_>) {
        self.opened(sync);
        for child in sync.children() {
            // Only elements of sync markup that may have items in them are taken apart.
            let is_ours = child.ns().is_sync_markup();
            if is_ours && matches!(child.local(), "conflicts" | "conflict") {
                self.conflicts(child);
            } else {
                self.copy(child);
            }
        }
        self.closed(sync);
    }

    /// Adds `sx:conflicts`, or `sx:conflict` of SSE 0.91.
    fn conflicts(&mut self, list: DocElement<'_, '_>) {
        self.opened(list);
        for child in list.children() {
            match child.local() {
                "item" if child.ns() == self.own => self.entry(child, None),
                "conflict" if child.ns() == Ns::Sx091 => self.conflicts(child),
                _ => self.copy(child),
            }
        }
        self.closed(list);
    }

    fn opened(&mut self, element: DocElement<'_, '_>) {
        self.go_to(element);
        self.out.push("<");
        self.out.push(element.name());
        let (prefix, _) = split_name(element.name());
        self.out.bind(prefix, &element.binding(prefix).unwrap_or_default());
        for attribute in element.attributes().filter(|a| !a.name().contains(':')) {
            self.out.attribute(attribute.name(), &attribute.value());
        }
        self.out.push(">");
    }

    fn closed(&mut self, element: DocElement<'_, '_>) {
        for piece in ["</", element.name(), ">"] {
            self.out.push(piece);
        }
    }
}

/// Whether an element is the `sx:sync` of an item.
fn is_sync(element: DocElement<'_, '_>) -> bool {
    element.ns().is_sync_markup() && element.local() == "sync"
}

/// When an item was last changed, as its history says.
fn changed(sync: DocElement<'_, '_>) -> Option<Time> {
    let mut updates = sync.children().filter(|child| child.local() == "history");
    updates.find_map(|update| Time::parse_rfc3339(&update.attribute("when")?).ok())
}

/// What stands in an element as HTML: its text is HTML already.
fn html(element: DocElement<'_, '_>) -> String {
    let mut out = String::new();
    let mut walk = element.walk();
    while let Some(step) = walk.next() {
        match step {
            WalkStep::Text(text) => out.push_str(&text),
            WalkStep::Open(child) if child.id != element.id => {
                out.push_str(cut(child.doc().text(), child.span()));
                walk.leave_out();
            }
            WalkStep::Open(_) | WalkStep::Close(_) => {}
        }
    }
    out
}

/// Adds the attributes of an element, with the bindings of their prefixes.
fn attributes(out: &mut Out, element: DocElement<'_, '_>) {
    let mut bound: Vec<&str> = Vec::new();
    for attribute in element.attributes() {
        let (prefix, _) = split_name(attribute.name());
        if !prefix.is_empty() && !bound.contains(&prefix) {
            bound.push(prefix);
            out.bind(prefix, &element.binding(prefix).unwrap_or_default());
        }
        out.attribute(attribute.name(), &attribute.value());
    }
}
