//! Collections as plain XML and as JSON (FeedSync for Collections), read as Atom.
//!
//! The specification leaves open what an item says. What means the same in Atom becomes that:
//! `title` and `subject`, `content`, `body` and `description`, ids, links, dates, authors,
//! categories and enclosures. Elements of Atom stay as they are, and everything else is kept as
//! foreign markup. What comes of it is an Atom document with `sx:*`, which is read like any other;
//! each item begins in the line that it had, as far as that can be, so that faults name their
//! place.

mod json;
#[cfg(test)]
mod tests;

use super::out::{Lines, Out, root};
use super::{Limits, ParseError, without_garbage};
use std::collections::BTreeMap;
use tidegate_core::model::Time;
use tidegate_core::sync_markup::collection_item;
use tidegate_core::xml::address::percent_encoded;
use tidegate_core::xml::doc::{Doc, DocElement, WalkStep};
use tidegate_core::xml::ns::{ATOM, Ns};
use tidegate_core::xml::{cut, split_name, well_formed_date};

/// The most items of a collection.
pub const ITEM_LIMIT: usize = 100_000;
/// What a collection is called that does not say it.
const UNTITLED: &str = "Collection";
const HTML: &str = " type=\"html\"";

/// A collection as an Atom document with sync markup; `None` for whatever is no collection. Plain
/// XML whose root is a collection is one though nothing in it is shared.
pub fn transcoded(text: &str) -> Result<Option<String>, ParseError> {
    read(text, &Limits::default(), true)
}

/// The same within limits, of a document that may be anything: it is a collection where it shares
/// something.
pub(super) fn within(text: &str, limits: &Limits) -> Result<Option<String>, ParseError> {
    read(text, limits, false)
}

fn read(text: &str, limits: &Limits, is_expected: bool) -> Result<Option<String>, ParseError> {
    let trimmed = without_garbage(text);
    let start = text.len() - trimmed.len();
    let mut out = Out::new(limits);
    let is_one = match trimmed.as_bytes().first() {
        Some(b'{') => json::write(&mut out, text, start, limits)?,
        Some(b'<') if root(trimmed) == Some("collection") => {
            write_if_shared(&mut out, text, is_expected || mentions_sync_markup(trimmed))?
        }
        _ => false,
    };
    if is_one { out.finish().map(Some) } else { Ok(None) }
}

/// Whether a text has one of the namespaces of sync markup, as they stand in documents that cannot
/// be read, too.
fn mentions_sync_markup(text: &str) -> bool {
    ["www.microsoft.com/schemas/sse", "www.microsoft.com/schemas/rss/sse", "feedsync.org/2007"]
        .iter()
        .any(|name| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some())
}

/// What an item or a collection says that means the same in Atom.
#[derive(Debug, Default)]
struct Fields {
    /// Texts that stand once, by `title`, `id`, `link`, `author`, `published`, `updated`, `content` and
    /// `description`.
    texts: BTreeMap<&'static str, String>,
    /// Whether the content is HTML for certain.
    is_html: bool,
    categories: Vec<String>,
    enclosures: Vec<CollectionFile>,
    /// When the item was last changed, as its history has it, for items that say no date.
    changed: Option<Time>,
    /// What the markup of the entry says in elements of Atom, by their names.
    said: Vec<String>,
}

/// A file that belongs to an item.
#[derive(Debug, Default)]
struct CollectionFile {
    url: String,
    kind: Option<String>,
    length: Option<String>,
}

impl Fields {
    /// Takes a field with text; `false` where it is none of those that are known, where it cannot
    /// be read, or where it was taken already.
    fn take(&mut self, name: &str, text: &str) -> bool {
        let text = text.trim();
        let word = match name {
            "title" | "subject" => "title",
            "id" | "guid" => "id",
            "link" | "url" => "link",
            "author" | "creator" => "author",
            "pubDate" | "published" => "published",
            "content" | "body" => "content",
            "updated" => "updated",
            "description" => "description",
            "category" if !text.is_empty() => {
                self.categories.push(text.to_owned());
                return true;
            }
            _ => return false,
        };
        let text = match word {
            "published" | "updated" => {
                well_formed_date(text).map(|time| time.to_string()).unwrap_or_default()
            }
            _ => text.to_owned(),
        };
        if text.is_empty() || self.texts.contains_key(word) {
            return false;
        }
        self.is_html |= word == "content" && is_html(&text);
        self.texts.insert(word, text);
        true
    }

    fn says(&self, name: &str) -> bool {
        self.said.iter().any(|said| said == name)
    }

    /// Writes those of a collection: RFC 4287 section 4.1.1 wants a title, and an author where its
    /// items may name none.
    fn write_head(mut self, out: &mut Out) {
        if !self.says("author") {
            let title = self.texts.get("title").map_or("unknown", String::as_str).to_owned();
            self.texts.entry("author").or_insert(title);
        }
        self.texts.entry("title").or_insert_with(|| UNTITLED.to_owned());
        self.write(out, None);
    }

    /// Writes the fields that the entry does not say in elements of Atom. `sync_id` identifies an
    /// item that has no id of its own.
    fn write(&self, out: &mut Out, sync_id: Option<&str>) {
        let text = |word: &str| self.texts.get(word).map(String::as_str);
        let put = |out: &mut Out, name: &str, attributes: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|_| !self.says(name)) {
                out.element(name, attributes, value);
            }
        };
        put(out, "title", "", text("title").or(Some("")));
        let derived = sync_id.map(|id| format!("x-sync-id:{}", percent_encoded(id)));
        put(out, "id", "", text("id").or(derived.as_deref()));
        if let Some(link) = text("link") {
            out.link(&[("rel", "alternate"), ("href", link)]);
        }
        put(out, "published", "", text("published"));
        // RFC 4287 section 4.1.2 wants one.
        let changed = self.changed.map(|time| time.to_string());
        put(out, "updated", "", text("updated").or(text("published")).or(changed.as_deref()));
        if let Some(author) = text("author").filter(|_| !self.says("author")) {
            out.push("<author>");
            out.element("name", "", author);
            out.push("</author>");
        }
        for category in &self.categories {
            out.empty("category", &[("term", category)]);
        }
        for CollectionFile { url, kind, length } in &self.enclosures {
            let mut parts = vec![("rel", "enclosure"), ("href", url.as_str())];
            parts.extend(kind.as_deref().map(|kind| ("type", kind)));
            parts.extend(length.as_deref().map(|length| ("length", length)));
            out.link(&parts);
        }
        let (kind, content) = (if self.is_html { HTML } else { "" }, text("content"));
        // A description beside a content is a summary of it.
        if content.is_some() || self.says("content") {
            put(out, "summary", HTML, text("description"));
            put(out, "content", kind, content);
        } else {
            put(out, "content", HTML, text("description"));
        }
    }
}

/// Whether a text of no stated kind is HTML: it has a tag that ends, or one that needs no end.
fn is_html(text: &str) -> bool {
    ["</", "/>", "<br>", "<img ", "<p>"].iter().any(|tag| text.contains(tag))
}

/// Writes the collection as plain XML that a text is; `false` where it is none. `is_shared`: it speaks
/// of sync markup.
fn write_if_shared(out: &mut Out, text: &str, is_shared: bool) -> Result<bool, ParseError> {
    let built = match Doc::read_plain(text) {
        Err(error) if is_shared => return Err(error.into()),
        Err(_) => return Ok(false),
        Ok(built) => built,
    };
    match (built.findings.fault, built.doc.root()) {
        (Some((at, reason)), _) if is_shared => Err(ParseError::NothingWhole { reason, at }),
        // One that has nothing yet need not speak of sync markup (section 2.2).
        (None, Some(root)) if is_shared || root.is_leaf() => {
            write_collection(out, root)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn write_collection(out: &mut Out, root: DocElement<'_, '_>) -> Result<(), ParseError> {
    let own = root.ns();
    out.push(&format!("<feed xmlns=\"{ATOM}\""));
    attributes(out, root);
    out.push(">");
    let is_item = |child: &DocElement<'_, '_>| child.ns() == own && child.local() == "item";
    let mut writer = ItemWriter { out, own, lines: Some(Lines::of(root.doc().text())) };
    // The head comes first, whatever order it stands in.
    let mut fields = Fields::default();
    for child in root.children().filter(|child| !is_item(child)) {
        if child.ns() == Ns::Atom {
            fields.said.push(child.local().to_owned());
        }
        if child.ns() != own || !fields.take(child.local(), &child.all_text()) {
            writer.copy(child);
        }
    }
    // A feed has a subtitle, and no content.
    let subtitle = fields.texts.remove("description");
    if let Some(subtitle) = subtitle.filter(|_| !fields.says("subtitle")) {
        writer.out.element("subtitle", HTML, &subtitle);
    }
    fields.write_head(writer.out);
    for (item, before) in root.children().filter(is_item).zip(0..) {
        if before >= ITEM_LIMIT {
            let at = item.span().start;
            return Err(ParseError::Limit { what: "items", limit: ITEM_LIMIT, at });
        }
        writer.entry(item);
    }
    writer.out.push("</feed>");
    Ok(())
}

/// Writes items as entries.
struct ItemWriter<'o> {
    out: &'o mut Out,
    /// The namespace of the collection's own elements.
    own: Ns,
    /// The lines of the document that the items stand in.
    lines: Option<Lines>,
}

impl ItemWriter<'_> {
    /// Adds an item as an entry.
    fn entry(&mut self, item: DocElement<'_, '_>) {
        self.go_to(item);
        let start = self.out.len();
        self.begin(item);
        let mut fields = Fields::default();
        let mut sync_id = None;
        for sync in item.children().filter(|child| is_sync(*child)) {
            sync_id = sync_id.or_else(|| sync.attribute("id"));
            fields.changed = fields.changed.or_else(|| changed(sync));
        }
        self.content(item, fields, sync_id.as_deref(), true);
        self.keep(item, start);
        self.out.push("</entry>");
    }

    /// Begins the entry of an item.
    fn begin(&mut self, item: DocElement<'_, '_>) {
        self.out.push("<entry");
        attributes(self.out, item);
        self.out.push(">");
    }

    /// Adds what an item says. `has_sync`: its sync markup stands in it.
    fn content(
        &mut self,
        item: DocElement<'_, '_>,
        mut fields: Fields,
        sync_id: Option<&str>,
        has_sync: bool,
    ) {
        for child in item.children() {
            if is_sync(child) {
                if has_sync {
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
        if !fields.texts.contains_key("link") && !fields.says("link") {
            fields.texts.extend(self.page(item).map(|page| ("link", page)));
        }
        fields.write(self.out, sync_id);
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
            own.copy(child, "");
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
        self.out.copy(element, ATOM);
    }

    /// Whether a child of an item was taken as a field.
    fn takes(&self, fields: &mut Fields, child: DocElement<'_, '_>) -> bool {
        match (child.ns(), child.local()) {
            (Ns::Named("content"), "encoded") => {
                let text = child.all_text();
                let is_taken = !fields.is_html && !text.trim().is_empty();
                if is_taken {
                    fields.texts.insert("content", text);
                    fields.is_html = true;
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

    /// Adds an element of sync markup whose conflicts are entries: `sx:sync`, `sx:conflicts`, or
    /// `sx:conflict` of SSE 0.91.
    fn sync(&mut self, element: DocElement<'_, '_>) {
        self.go_to(element);
        self.out.push("<");
        self.out.push(element.name());
        self.out.bind(split_name(element.name()).0, &element.uri().unwrap_or_default());
        for attribute in element.attributes().filter(|a| !a.name().contains(':')) {
            self.out.attribute(attribute.name(), &attribute.value());
        }
        self.out.push(">");
        for child in element.children() {
            match (element.local(), child.local()) {
                // Only elements of sync markup that may have items in them are taken apart.
                ("sync", "conflicts" | "conflict") if child.ns().is_sync_markup() => {
                    self.sync(child);
                }
                ("conflicts" | "conflict", "item") if child.ns() == self.own => self.entry(child),
                ("conflicts" | "conflict", "conflict") if child.ns() == Ns::Sx091 => {
                    self.sync(child);
                }
                _ => self.copy(child),
            }
        }
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
