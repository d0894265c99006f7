//! What an item says in plain fields, as elements of an Atom entry.

use crate::parse::out::Out;
use tidegate_core::model::Time;
use tidegate_core::xml::address::percent_encoded;
use tidegate_core::xml::well_formed_date;

/// What a collection is called that does not say it.
const UNTITLED: &str = "Collection";

/// The fields that mean the same in Atom, each once but categories and enclosures.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) title: Option<String>,
    pub(super) id: Option<String>,
    pub(super) link: Option<String>,
    /// `content:encoded`, else `content` or `body`; whether it is HTML for certain.
    pub(super) content: Option<(String, bool)>,
    pub(super) description: Option<String>,
    pub(super) author: Option<String>,
    pub(super) published: Option<Time>,
    pub(super) updated: Option<Time>,
    pub(super) categories: Vec<String>,
    pub(super) enclosures: Vec<CollectionFile>,
    /// When the item was last changed, as its history has it, for items that say no date.
    pub(super) changed: Option<Time>,
    /// What the markup of the entry says in elements of Atom, by their names.
    pub(super) said: Vec<String>,
}

/// A file that belongs to an item.
#[derive(Debug, Default)]
pub(super) struct CollectionFile {
    pub(super) url: String,
    pub(super) kind: Option<String>,
    pub(super) length: Option<String>,
}

impl Fields {
    /// Takes a field with text; `false` where it is none of those that are known, where it cannot be
    /// read, or where it was taken already.
    pub(super) fn take(&mut self, name: &str, text: &str) -> bool {
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

    /// Of a collection: RFC 4287 section 4.1.1 wants a title, and an author where its items may name
    /// none.
    pub(super) fn into_head(mut self) -> Self {
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

    /// Writes the fields that the entry does not say in elements of Atom. `sync_id` identifies an item
    /// that has no id of its own.
    pub(super) fn write(&self, out: &mut Out, sync_id: Option<&str>) {
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
