//! An entry that stands alone with some of what it says replaced, and everything else as it is: its
//! other elements, its attributes, foreign markup, in whatever format it has.

use super::opml::mark;
use super::sse::{Id, StrictElement, Tree};
use super::{Limits, again, document};
use serde_json::{Map, Value};
use std::ops::Range;
use tidegate_core::model::{Entry, FeedDocument, Format, Markup, Time};
use tidegate_core::xml::ns::{ATOM, ATOM03, CONTENT, OUTLINE};
use tidegate_core::xml::{push_attribute, push_text};
use url::Url;

/// What an entry shall say; what is `None` stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Amendment {
    /// Its title, plain.
    pub title: Option<String>,
    /// Its text, and whether that is HTML. Empty: it has none.
    pub text: Option<(String, bool)>,
    /// Its summary, plain.
    pub summary: Option<String>,
    /// The address of its page.
    pub link: Option<String>,
    /// When it was updated, where it says so.
    pub updated: Option<Time>,
}

/// Hands the amended entry, within a small document, to `take`; `None` where the markup cannot be
/// read, or has no place for what it shall say.
pub fn amended<T>(
    markup: &Markup,
    amendment: &Amendment,
    take: impl FnOnce(&FeedDocument<'_>, &Entry<'_>) -> T,
) -> Option<T> {
    let text = match markup.format {
        Format::JsonFeed => {
            let xml = object(&markup.xml, amendment)?;
            again::document(&Markup { xml, ..markup.clone() })?
        }
        _ => element(&around(markup)?, markup.format, amendment)?,
    };
    let url = markup.context.base.as_deref().and_then(|base| Url::parse(base).ok());
    let document = document(&text, url.as_ref(), &Limits::default()).ok()?;
    let mut entry = document.entries.first()?.clone();
    if amendment.link.is_none()
        && let Some(link) = &markup.card.link
    {
        // The address that it is relative to may be known no more.
        entry.link = Some(link.clone().into());
    }
    Some(take(&document, &entry))
}

/// The markup of the amended entry.
pub fn amended_markup(markup: &Markup, amendment: &Amendment) -> Option<Markup> {
    amended(markup, amendment, super::own)
}

/// An item of JSON Feed.
fn object(text: &str, amendment: &Amendment) -> Option<String> {
    let mut item: Map<String, Value> = serde_json::from_str(text).ok()?;
    let plain =
        [("title", &amendment.title), ("summary", &amendment.summary), ("url", &amendment.link)];
    for (name, value) in plain {
        if let Some(value) = value {
            item.insert(name.to_owned(), value.clone().into());
        }
    }
    if let Some((text, is_html)) = &amendment.text {
        item.remove("content_html");
        item.remove("content_text");
        let name = if *is_html { "content_html" } else { "content_text" };
        // JSON Feed 1.1 wants one of the two.
        item.insert(name.to_owned(), text.clone().into());
    }
    if let (Some(updated), Some(said)) = (amendment.updated, item.get_mut("date_modified")) {
        *said = updated.to_string().into();
    }
    Some(Value::Object(item).to_string())
}

/// The smallest document around the entry, with what the entry inherits.
fn around(markup: &Markup) -> Option<String> {
    let mut text = again::document(markup)?;
    let mut attributes = if markup.format == Format::Opml { mark() } else { String::new() };
    for (name, value) in [("xml:base", &markup.context.base), ("xml:lang", &markup.context.lang)] {
        if let Some(value) = value {
            push_attribute(&mut attributes, name, value);
        }
    }
    let behind_name = text.find(' ')?;
    text.insert_str(behind_name, &attributes);
    Some(text)
}

/// The document with the entry amended.
fn element(text: &str, format: Format, amendment: &Amendment) -> Option<String> {
    let tree = Tree::read(text).ok()?;
    let mut amended = Amended { tree: &tree, entry: entry_of(&tree)?, format, edits: Vec::new() };
    if let Some(title) = &amendment.title {
        amended.title(title)?;
    }
    if let Some((text, is_html)) = &amendment.text {
        amended.text(text, *is_html)?;
    }
    if let Some(summary) = &amendment.summary {
        let place = amended.own("summary");
        amended.replace(place, "summary", "", summary)?;
    }
    if let Some(link) = &amendment.link {
        amended.link(link)?;
    }
    if let Some(updated) = amendment.updated {
        amended.updated(updated);
    }
    let mut edits = amended.edits;
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut out, mut done) = (String::with_capacity(text.len() + 256), 0);
    for (range, with) in edits {
        out.push_str(text.get(done..range.start)?);
        out.push_str(&with);
        done = range.end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// The only entry of a small document.
fn entry_of(tree: &Tree<'_>) -> Option<Id> {
    let (first, _) = tree.children(0).next()?;
    match tree.name(first).1 {
        "channel" => tree.children(first).next().map(|(item, _)| item),
        _ => Some(first),
    }
}

struct Amended<'t, 'a> {
    tree: &'t Tree<'a>,
    entry: Id,
    format: Format,
    /// Places in the text, and what stands there instead.
    edits: Vec<(Range<usize>, String)>,
}

impl Amended<'_, '_> {
    /// The first child of this name in a namespace.
    fn child(&self, namespace: &str, name: &str) -> Option<Id> {
        let found = self.tree.children(self.entry).find(|(id, _)| {
            let (found, local) = self.tree.name(*id);
            found == namespace && local == name
        });
        found.map(|(id, _)| id)
    }

    /// The first child of this name in the entry's own namespace.
    fn own(&self, name: &str) -> Option<Id> {
        self.child(self.tree.name(self.entry).0, name)
    }

    fn title(&mut self, title: &str) -> Option<()> {
        let before = self.own("title").map(|id| self.tree.plain(id));
        self.replace(self.own("title"), "title", "", title)?;
        // An outline says in its attributes what it is called where that is not its text.
        let outline = self.child(OUTLINE, "outline");
        let Some(element) = outline.and_then(|id| self.tree.element(id)) else { return Some(()) };
        let said = before.unwrap_or_default();
        let is_name = |name: &str, value: &str| {
            name == "text" || name == "title" && value.trim() == said.trim()
        };
        let mut tag = format!("<{}", element.name);
        push_declarations(&mut tag, element);
        for attribute in &element.attributes {
            let is_called = is_name(attribute.name, &attribute.value);
            let value = if is_called { title } else { &attribute.value };
            push_attribute(&mut tag, attribute.name, value);
        }
        let (end, close) = match &element.inner {
            Some(inner) => (inner.start, ">"),
            None => (element.span.end, "/>"),
        };
        tag.push_str(close);
        self.edits.push((element.span.start..end, tag));
        Some(())
    }

    /// Replaces the text where readers look for it first.
    fn text(&mut self, text: &str, is_html: bool) -> Option<()> {
        let places = [
            self.own("content"),
            self.child(CONTENT, "encoded"),
            self.own("description"),
            self.own("summary"),
        ];
        let is_said = |id: &Id| !self.tree.plain(*id).trim().is_empty();
        let said = places.iter().flatten().find(|id| is_said(id));
        let place = said.or_else(|| places.iter().flatten().next()).copied();
        if text.is_empty() {
            if let Some(element) = place.and_then(|id| self.tree.element(id)) {
                self.edits.push((element.span.clone(), String::new()));
            }
            return Some(());
        }
        match (self.format, is_html) {
            (Format::Atom10 | Format::Opml, true) => {
                self.replace(place, "content", " type=\"html\"", text)
            }
            (Format::Atom10 | Format::Opml, false) => {
                self.replace(place, "content", " type=\"text\"", text)
            }
            (Format::Atom03, true) => {
                self.replace(place, "content", " type=\"text/html\" mode=\"escaped\"", text)
            }
            (Format::Atom03, false) => {
                self.replace(place, "content", " type=\"text/plain\" mode=\"escaped\"", text)
            }
            (_, true) => self.replace(place, "description", "", text),
            // A description is HTML.
            (_, false) => {
                let mut html = String::new();
                push_text(&mut html, text);
                self.replace(place, "description", "", &html)
            }
        }
    }

    fn link(&mut self, link: &str) -> Option<()> {
        let is_page = |id: &Id| {
            let element = self.tree.element(*id);
            let rel = element.and_then(|element| element.attribute("rel"));
            rel.is_none_or(|rel| rel.trim() == "alternate")
        };
        let own = self.tree.name(self.entry).0;
        let links =
            self.tree.children(self.entry).filter(|(id, _)| self.tree.name(*id) == (own, "link"));
        let place = links.map(|(id, _)| id).find(is_page);
        if !matches!(self.format, Format::Atom10 | Format::Atom03 | Format::Opml) {
            return self.replace(place, "link", "", link);
        }
        let prefix = self.prefix();
        let mut element = format!("<{prefix}link rel=\"alternate\"");
        push_attribute(&mut element, "href", link);
        element.push_str("/>");
        self.put(place, element)
    }

    /// Dates the entry, where it says when it was updated.
    fn updated(&mut self, updated: Time) {
        let dates =
            [self.own("updated"), self.child(ATOM, "updated"), self.child(ATOM03, "modified")];
        let date = dates.into_iter().flatten().next().and_then(|id| self.tree.element(id));
        if let Some(inner) = date.and_then(|element| element.inner.clone()) {
            self.edits.push((inner, updated.to_string()));
        }
    }

    /// Puts an element with text in the place of another one, whose name and inherited attributes it
    /// keeps, or in front of all that the entry has.
    fn replace(
        &mut self,
        place: Option<Id>,
        name: &str,
        attributes: &str,
        text: &str,
    ) -> Option<()> {
        let known = place.and_then(|id| self.tree.element(id));
        let name = known.map_or_else(|| format!("{}{name}", self.prefix()), |e| e.name.to_owned());
        let mut element = format!("<{name}");
        let kept = known.map_or(&[][..], |element| &element.attributes);
        if let Some(known) = known {
            push_declarations(&mut element, known);
        }
        for attribute in kept.iter().filter(|attribute| attribute.name.contains(':')) {
            push_attribute(&mut element, attribute.name, &attribute.value);
        }
        element.push_str(attributes);
        element.push('>');
        push_text(&mut element, text);
        element.push_str(&format!("</{name}>"));
        self.put(place, element)
    }

    fn put(&mut self, place: Option<Id>, element: String) -> Option<()> {
        let range = match place.and_then(|id| self.tree.element(id)) {
            Some(known) => known.span.clone(),
            None => {
                let inner = self.tree.element(self.entry)?.inner.clone()?;
                inner.start..inner.start
            }
        };
        self.edits.push((range, element));
        Some(())
    }

    /// The prefix that the entry's own elements have, with its colon.
    fn prefix(&self) -> String {
        let name = self.tree.element(self.entry).map_or("", |element| element.name);
        name.split_once(':').map(|(prefix, _)| format!("{prefix}:")).unwrap_or_default()
    }
}

fn push_declarations(out: &mut String, element: &StrictElement<'_>) {
    for declaration in &element.declarations {
        let colon = if declaration.name.is_empty() { "" } else { ":" };
        push_attribute(out, &format!("xmlns{colon}{}", declaration.name), &declaration.value);
    }
}

#[cfg(test)]
mod tests;
