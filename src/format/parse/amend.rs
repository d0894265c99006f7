//! An entry that stands alone with some of what it says replaced, and everything else as it is: its
//! other elements, its attributes, foreign markup, in whatever format it has.

use super::dialect::{FeedDialect, relation};
use super::reading::{EntryReading, Meaning};
use super::{alone, collection};
use serde_json::{Map, Value};
use std::ops::Range;
use tidegate_core::model::{Entry, Format, Markup, Time};
use tidegate_core::xml::doc::{Doc, DocElement};
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::ns::{Ns, OUTLINE_PREFIX};
use tidegate_core::xml::tag::prefix_of;
use tidegate_core::xml::{push_attribute, push_empty, push_namespace, push_text, push_value};

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

/// Hands the amended entry to `take`, with its format; `None` where the markup cannot be read, or has
/// no place for what it shall say.
pub fn amended<T>(
    markup: &Markup,
    amendment: &Amendment,
    take: impl FnOnce(Format, &Entry<'_>) -> T,
) -> Option<T> {
    let is_collected = markup.format == Format::Collection;
    // What somebody says of an item here is said in words of Atom.
    let as_atom = is_collected.then(|| collection::as_atom(markup, None, None));
    let markup = match &as_atom {
        Some(atom) => atom.as_ref()?,
        None => markup,
    };
    let text = match markup.format {
        Format::JsonFeed => object(&markup.xml, amendment)?,
        _ => element(markup, amendment)?,
    };
    let mut entry = alone(markup.format, &text, &markup.context)?;
    if amendment.link.is_none()
        && let Some(link) = &markup.card.link
    {
        // The address that it is relative to may be known no more.
        entry.link = Some(link.clone().into());
    }
    Some(take(markup.format, &entry))
}

/// The markup of the amended entry.
pub fn amended_markup(markup: &Markup, amendment: &Amendment) -> Option<Markup> {
    amended(markup, amendment, super::markup_of)
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

/// The text of the entry, amended.
fn element(markup: &Markup, amendment: &Amendment) -> Option<String> {
    let doc = Doc::read_in(&markup.xml, &markup.context)?;
    let entry = doc.root()?;
    let dialect = FeedDialect { format: markup.format, root: entry.ns() };
    let reading = EntryReading::new(entry, dialect);
    let mut amended = Amended { reading, format: markup.format, edits: Vec::new() };
    if let Some(title) = &amendment.title {
        amended.title(title)?;
    }
    if let Some((text, is_html)) = &amendment.text {
        amended.text(text, *is_html)?;
    }
    if let Some(summary) = &amendment.summary {
        let place = amended.first(Meaning::Summary);
        amended.replace(place, "summary", "", summary)?;
    }
    if let Some(link) = &amendment.link {
        amended.link(link)?;
    }
    if let Some(updated) = amendment.updated {
        amended.updated(updated);
    }
    let edits = Edits::new(0..markup.xml.len(), amended.edits);
    Some(edits.apply(&markup.xml).into_owned())
}

struct Amended<'t, 'a> {
    reading: EntryReading<'t, 'a>,
    format: Format,
    edits: Vec<Edit>,
}

impl<'t, 'a> Amended<'t, 'a> {
    fn first(&self, meaning: Meaning) -> Option<DocElement<'t, 'a>> {
        self.reading.all(meaning).next()
    }

    fn edit(&mut self, range: Range<usize>, with: String) {
        self.edits.push(Edit { range, with: with.into() });
    }

    fn title(&mut self, title: &str) -> Option<()> {
        let place = self.first(Meaning::Title);
        let before = place.map(DocElement::all_text).unwrap_or_default();
        self.replace(place, "title", "", title)?;
        // An outline says in its attributes what it is called where that is not its text.
        let is_outline = |child: &DocElement<'_, '_>| {
            child.ns() == Ns::Named(OUTLINE_PREFIX) && child.local() == "outline"
        };
        let outline = self.reading.entry.children().find(is_outline);
        let named = outline.into_iter().flat_map(DocElement::attributes).filter(|attribute| {
            attribute.name() == "text"
                || attribute.name() == "title" && attribute.value().trim() == before.trim()
        });
        let mut value = String::new();
        push_value(&mut value, title);
        named.for_each(|attribute| self.edit(attribute.place(), value.clone()));
        Some(())
    }

    /// Replaces the text where readers look for it first.
    fn text(&mut self, text: &str, is_html: bool) -> Option<()> {
        let place = self.reading.text();
        if text.is_empty() {
            if let Some(place) = place {
                self.edit(place.span(), String::new());
            }
            return Some(());
        }
        let kind = match (self.format, is_html) {
            (Format::Atom10 | Format::Opml, true) => " type=\"html\"",
            (Format::Atom10 | Format::Opml, false) => " type=\"text\"",
            (Format::Atom03, true) => " type=\"text/html\" mode=\"escaped\"",
            (Format::Atom03, false) => " type=\"text/plain\" mode=\"escaped\"",
            (_, true) => return self.replace(place, "description", "", text),
            // A description is HTML.
            (_, false) => {
                let mut html = String::new();
                push_text(&mut html, text);
                return self.replace(place, "description", "", &html);
            }
        };
        self.replace(place, "content", kind, text)
    }

    fn link(&mut self, link: &str) -> Option<()> {
        if !matches!(self.format, Format::Atom10 | Format::Atom03 | Format::Opml) {
            return self.replace(self.first(Meaning::Page), "link", "", link);
        }
        let own = self.reading.entry.ns();
        let is_page =
            |link: &DocElement<'_, '_>| link.ns() == own && relation(*link) == "alternate";
        let place = self.reading.all(Meaning::Link).find(is_page);
        let mut element = String::new();
        let said = [("rel", Some("alternate")), ("href", Some(link))];
        push_empty(&mut element, &format!("{}link", self.prefix()), &said);
        self.put(place, element)
    }

    /// Dates the entry, where it says when it was updated.
    fn updated(&mut self, updated: Time) {
        let date = self.first(Meaning::Updated).or_else(|| self.first(Meaning::ModuleUpdated));
        if let Some(date) = date.filter(|date| !date.is_empty_tag()) {
            self.edit(date.content(), updated.to_string());
        }
    }

    /// Puts an element with text in the place of another one, whose name and inherited attributes
    /// it keeps, or in front of all that the entry has.
    fn replace(
        &mut self,
        place: Option<DocElement<'t, 'a>>,
        name: &str,
        attributes: &str,
        text: &str,
    ) -> Option<()> {
        let name =
            place.map_or_else(|| format!("{}{name}", self.prefix()), |e| e.name().to_owned());
        let mut element = format!("<{name}");
        if let Some(known) = place {
            push_declarations(&mut element, known);
            for attribute in known.attributes().filter(|kept| kept.name().contains(':')) {
                push_attribute(&mut element, attribute.name(), &attribute.value());
            }
        }
        element.push_str(attributes);
        element.push('>');
        push_text(&mut element, text);
        element.push_str(&format!("</{name}>"));
        self.put(place, element)
    }

    fn put(&mut self, place: Option<DocElement<'t, 'a>>, element: String) -> Option<()> {
        let range = match place {
            Some(known) => known.span(),
            None if self.reading.entry.is_empty_tag() => return None,
            None => self.reading.entry.content().start..self.reading.entry.content().start,
        };
        self.edit(range, element);
        Some(())
    }

    /// The prefix that the entry's own elements have, with its colon.
    fn prefix(&self) -> &'a str {
        prefix_of(self.reading.entry.name())
    }
}

fn push_declarations(out: &mut String, element: DocElement<'_, '_>) {
    for declaration in element.declarations() {
        push_namespace(out, declaration.declared_prefix(), &declaration.declared_uri());
    }
}

#[cfg(test)]
mod tests;
