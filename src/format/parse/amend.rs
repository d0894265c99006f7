//! An entry that stands alone with some of what it says replaced, and everything else as it is: its
//! other elements, its attributes, foreign markup, in whatever format it has.

use super::opml::mark;
use super::{Limits, collection, document};
use serde_json::{Map, Value};
use std::ops::Range;
use tidegate_core::model::{Entry, FeedDocument, Format, Markup, Time};
use tidegate_core::xml::doc::{Doc, DocElement};
use tidegate_core::xml::edits::{Edit, Edits};
use tidegate_core::xml::ns::{ATOM, ATOM03, Ns, OUTLINE_PREFIX, RDF};
use tidegate_core::xml::tag::prefix_of;
use tidegate_core::xml::{push_attribute, push_empty, push_namespace, push_text, push_value};
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
    let as_atom;
    let mut markup = markup;
    if markup.format == Format::Collection {
        // What somebody says of an item here is said in words of Atom.
        as_atom = collection::as_atom(markup, None, None)?;
        markup = &as_atom;
    }
    let text = match markup.format {
        Format::JsonFeed => {
            let xml = object(&markup.xml, amendment)?;
            small_document(&Markup { xml, ..markup.clone() })?
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
    let mut attributes = if markup.format == Format::Opml { mark() } else { String::new() };
    for (name, value) in [("xml:base", &markup.context.base), ("xml:lang", &markup.context.lang)] {
        value.iter().for_each(|value| push_attribute(&mut attributes, name, value));
    }
    document_around(markup, &attributes)
}

/// The document with the entry amended.
fn element(text: &str, format: Format, amendment: &Amendment) -> Option<String> {
    let doc = Doc::read_whole(text)?;
    let mut amended = Amended { entry: entry_of(doc.root()?)?, format, edits: Vec::new() };
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
    Some(Edits::new(0..text.len(), amended.edits).apply(text).into_owned())
}

/// The only entry of a small document.
fn entry_of<'t, 'a>(root: DocElement<'t, 'a>) -> Option<DocElement<'t, 'a>> {
    let first = root.children().next()?;
    if first.local() == "channel" { first.children().next() } else { Some(first) }
}

struct Amended<'t, 'a> {
    entry: DocElement<'t, 'a>,
    format: Format,
    edits: Vec<Edit>,
}

impl<'t, 'a> Amended<'t, 'a> {
    /// The first child of this name in a namespace.
    fn child(&self, ns: Ns, name: &str) -> Option<DocElement<'t, 'a>> {
        self.entry.children().find(|child| child.ns() == ns && child.local() == name)
    }

    /// The first child of this name in the entry's own namespace.
    fn own(&self, name: &str) -> Option<DocElement<'t, 'a>> {
        self.child(self.entry.ns(), name)
    }

    fn edit(&mut self, range: Range<usize>, with: String) {
        self.edits.push(Edit { range, with: with.into() });
    }

    fn title(&mut self, title: &str) -> Option<()> {
        let before = self.own("title").map(DocElement::all_text).unwrap_or_default();
        self.replace(self.own("title"), "title", "", title)?;
        // An outline says in its attributes what it is called where that is not its text.
        let outline = self.child(Ns::Named(OUTLINE_PREFIX), "outline");
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
        let places = [
            self.own("content"),
            self.child(Ns::Named("content"), "encoded"),
            self.own("description"),
            self.own("summary"),
        ];
        let mut said = places.into_iter().flatten();
        let said = said.find(|place| !place.all_text().trim().is_empty());
        let place = said.or_else(|| places.into_iter().flatten().next());
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
        let is_page = |link: &DocElement<'_, '_>| {
            link.attribute("rel").is_none_or(|rel| rel.trim() == "alternate")
        };
        let own = self.entry.ns();
        let mut links = self.entry.children().filter(|e| e.ns() == own && e.local() == "link");
        let place = links.find(is_page);
        if !matches!(self.format, Format::Atom10 | Format::Atom03 | Format::Opml) {
            return self.replace(place, "link", "", link);
        }
        let mut element = String::new();
        let said = [("rel", Some("alternate")), ("href", Some(link))];
        push_empty(&mut element, &format!("{}link", self.prefix()), &said);
        self.put(place, element)
    }

    /// Dates the entry, where it says when it was updated.
    fn updated(&mut self, updated: Time) {
        let atom = (self.child(Ns::Atom, "updated"), self.child(Ns::Atom03, "modified"));
        let date = self.own("updated").or(atom.0).or(atom.1);
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
            None if self.entry.is_empty_tag() => return None,
            None => self.entry.content().start..self.entry.content().start,
        };
        self.edit(range, element);
        Some(())
    }

    /// The prefix that the entry's own elements have, with its colon.
    fn prefix(&self) -> &'a str {
        prefix_of(self.entry.name())
    }
}

fn push_declarations(out: &mut String, element: DocElement<'_, '_>) {
    for declaration in element.declarations() {
        push_namespace(out, declaration.declared_prefix(), &declaration.declared_uri());
    }
}

/// The smallest document around an entry; `None` where the entry's slots do not fit its text.
pub(super) fn small_document(markup: &Markup) -> Option<String> {
    if markup.format == Format::JsonFeed {
        let item = markup.xml.as_str();
        return Some(format!(
            "{{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"\",\"items\":[{item}]}}"
        ));
    }
    document_around(markup, "")
}

/// The same of XML whose root has these attributes.
fn document_around(markup: &Markup, attributes: &str) -> Option<String> {
    let (start, rest) = markup.xml.split_at_checked(markup.slots.attributes)?;
    let own = markup.namespace();
    // The root bears a prefix of its own where its format has a namespace, so that it binds nothing
    // that the entry might use.
    let (root, version, namespace) = match markup.format {
        Format::Collection if own.is_empty() => ("collection", "", None),
        Format::Collection => ("around:collection", "", Some(&*own)),
        Format::Atom03 => ("around:feed", "0.3", Some(ATOM03)),
        Format::Atom10 | Format::JsonFeed | Format::Opml => ("around:feed", "", Some(ATOM)),
        Format::Rss20 => ("rss", "2.0", None),
        Format::Rss09x => ("rss", "0.92", None),
        Format::Rss10 | Format::Rss090 => ("around:RDF", "", Some(RDF)),
    };
    let mut text = format!("<{root}{attributes}");
    if !version.is_empty() {
        push_attribute(&mut text, "version", version);
    }
    namespace.iter().for_each(|namespace| push_namespace(&mut text, "around", namespace));
    let (open, close) = if root == "rss" { ("<channel>", "</channel>") } else { ("", "") };
    text.extend([">", open, start]);
    for (prefix, namespace) in &markup.context.namespaces {
        push_namespace(&mut text, prefix, namespace);
    }
    text.extend([rest, close, "</", root, ">"]);
    Some(text)
}

#[cfg(test)]
mod tests;
