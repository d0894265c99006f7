//! Collections as plain XML and as JSON (FeedSync for Collections), read as Atom.
//!
//! The specification leaves open what an item says. What means the same in Atom becomes that:
//! `title` and `subject`, `content`, `body` and `description`, ids, links, dates, authors,
//! categories and enclosures. Elements of Atom stay as they are, and everything else is kept as
//! foreign markup. What comes of it is an Atom document with `sx:*`, which is read like any other;
//! each item begins in the line that it had, as far as that can be, so that faults name their
//! place.

mod json;
mod pox;

#[cfg(test)]
mod tests;

use super::out::Out;
use super::{Limits, ParseError, out, without_garbage};
use tidegate_core::model::Time;
use tidegate_core::xml::address::percent_encoded;
use tidegate_core::xml::well_formed_date;

/// The most items of a collection.
pub const ITEM_LIMIT: usize = 100_000;

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
        Some(b'<') if out::root(trimmed) == Some("collection") => {
            pox::write_if_shared(&mut out, text, is_expected || mentions_sync_markup(trimmed))?
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

/// What a collection is called that does not say it.
const UNTITLED: &str = "Collection";

/// The fields that mean the same in Atom, each once but categories and enclosures.
#[derive(Debug, Default)]
struct Fields {
    title: Option<String>,
    id: Option<String>,
    link: Option<String>,
    /// `content:encoded`, else `content` or `body`; whether it is HTML for certain.
    content: Option<(String, bool)>,
    description: Option<String>,
    author: Option<String>,
    published: Option<Time>,
    updated: Option<Time>,
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
        let slot = match name {
            "title" | "subject" => &mut self.title,
            "id" | "guid" => &mut self.id,
            "link" | "url" => &mut self.link,
            "description" => &mut self.description,
            "author" | "creator" => &mut self.author,
            "content" | "body" => {
                let said = Some((text.to_owned(), is_html(text))).filter(|_| !text.is_empty());
                return put(&mut self.content, said);
            }
            "pubDate" | "published" => return put(&mut self.published, well_formed_date(text)),
            "updated" => return put(&mut self.updated, well_formed_date(text)),
            "category" if !text.is_empty() => {
                self.categories.push(text.to_owned());
                return true;
            }
            _ => return false,
        };
        put(slot, Some(text.to_owned()).filter(|text| !text.is_empty()))
    }

    /// Of a collection: RFC 4287 section 4.1.1 wants a title, and an author where its items may
    /// name none.
    fn into_head(mut self) -> Self {
        let names_one = self.author.is_some() || self.said.iter().any(|said| said == "author");
        let title = self.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        if !names_one {
            self.author = Some(title.unwrap_or("unknown").to_owned());
        }
        if title.is_none() {
            self.title = Some(UNTITLED.to_owned());
        }
        self
    }

    /// Writes the fields that the entry does not say in elements of Atom. `sync_id` identifies an
    /// item that has no id of its own.
    fn write(&self, out: &mut Out, sync_id: Option<&str>) {
        let is_said = |name: &str| self.said.iter().any(|said| said == name);
        let text = |out: &mut Out, name: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|_| !is_said(name)) {
                out.element(name, "", value);
            }
        };
        let title = self.title.as_deref().unwrap_or_default();
        text(out, "title", Some(title));
        let derived = sync_id.map(|id| format!("x-sync-id:{}", percent_encoded(id)));
        text(out, "id", self.id.as_deref().or(derived.as_deref()));
        if let Some(link) = &self.link {
            out.link(&[("rel", "alternate"), ("href", link)]);
        }
        let time = |time: Option<Time>| time.map(|time| time.to_string());
        text(out, "published", time(self.published).as_deref());
        // RFC 4287 section 4.1.2 wants one.
        let updated = self.updated.or(self.published).or(self.changed);
        text(out, "updated", time(updated).as_deref());
        if let Some(author) = self.author.as_deref().filter(|_| !is_said("author")) {
            out.push("<author>");
            out.element("name", "", author);
            out.push("</author>");
        }
        for category in &self.categories {
            out.push("<category");
            out.attribute("term", category);
            out.push("/>");
        }
        for CollectionFile { url, kind, length } in &self.enclosures {
            let mut parts = vec![("rel", "enclosure"), ("href", url.as_str())];
            parts.extend(kind.as_deref().map(|kind| ("type", kind)));
            parts.extend(length.as_deref().map(|length| ("length", length)));
            out.link(&parts);
        }
        let typed = |is_html| if is_html { " type=\"html\"" } else { "" };
        let description = self.description.as_deref().map(|text| (text, true));
        let content = self.content.as_ref().map(|(text, is_html)| (text.as_str(), *is_html));
        // A description beside a content is a summary of it.
        let (content, summary) = match content {
            Some(content) => (Some(content), description),
            None if is_said("content") => (None, description),
            None => (description, None),
        };
        for (name, value) in [("summary", summary), ("content", content)] {
            if let Some((value, is_html)) = value.filter(|_| !is_said(name)) {
                out.element(name, typed(is_html), value);
            }
        }
    }
}

fn put<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    match value {
        Some(value) if slot.is_none() => {
            *slot = Some(value);
            true
        }
        _ => false,
    }
}

/// Whether a text of no stated kind is HTML: it has a tag that ends, or one that needs no end.
fn is_html(text: &str) -> bool {
    ["</", "/>", "<br>", "<img ", "<p>"].iter().any(|tag| text.contains(tag))
}
