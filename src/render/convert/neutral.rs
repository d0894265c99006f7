//! What an entry says, in no format: the step between two families.

use super::tree::{self, Element};
use super::{Target, atom03, author, json_feed};
use crate::model::{Card, Family, Format, Markup, Time};
use crate::render::escape;
use crate::render::scope::ATOM;

/// The namespace of Dublin Core.
pub const DUBLIN_CORE: &str = "http://purl.org/dc/elements/1.1/";
/// The namespace of `content:encoded`.
const CONTENT: &str = "http://purl.org/rss/1.0/modules/content/";

/// An entry without its format. What has no equivalent on the other side is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neutral {
    /// The title as plain text.
    pub title: String,
    /// The address of its page.
    pub link: Option<String>,
    /// When it was published.
    pub published: Option<Time>,
    /// When it was updated.
    pub updated: Option<Time>,
    /// The name of its author.
    pub author: Option<String>,
    /// Its content, else its summary, as HTML.
    pub content: Option<String>,
    /// The names of its categories.
    pub categories: Vec<String>,
    /// Its enclosures.
    pub enclosures: Vec<Enclosure>,
    /// The feed that it was taken over from: its title, and its address.
    pub source: Option<(String, String)>,
    /// Elements of neither family, as they are.
    pub foreign: Vec<Element>,
}

/// A file that belongs to an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Enclosure {
    /// Its address.
    pub address: String,
    /// Its media type.
    pub media: Option<String>,
    /// Its length in bytes, as the publisher wrote it.
    pub length: Option<String>,
}

impl Neutral {
    /// Of an entry in any format.
    pub fn of(markup: &Markup) -> Self {
        let mut neutral = Self::of_card(&markup.card);
        let entry = match markup.format {
            Format::JsonFeed => json_feed::entry(markup, None),
            Format::Atom03 => atom03::entry(markup, None),
            _ => tree::read(&markup.xml, &markup.context),
        };
        if let Some(entry) = entry {
            match markup.format.family() {
                Family::Atom => neutral.add_atom(&entry),
                Family::Rss => neutral.add_rss(&entry),
            }
        }
        neutral
    }

    fn add_atom(&mut self, entry: &Element) {
        self.content = atom_content(entry);
        for child in entry.elements() {
            let value = |name| child.attribute(name).map(ToOwned::to_owned);
            if is_foreign(child, ATOM) {
                self.foreign.push(child.clone());
            } else if child.is(ATOM, "source") {
                self.source = atom_source(child);
                // RFC 4287 section 4.2.1: the source's authors are those of an entry without any.
                let theirs = || author::named(child).into_iter().next();
                self.author = self.author.take().or_else(theirs);
            } else if child.is(ATOM, "category") {
                self.categories.extend(value("label").or_else(|| value("term")));
            } else if child.is(ATOM, "link") && child.attribute("rel") == Some("enclosure") {
                let address = value("href").unwrap_or_default();
                let (media, length) = (value("type"), value("length"));
                self.enclosures.push(Enclosure { address, media, length });
            }
        }
    }

    fn add_rss(&mut self, item: &Element) {
        let whole = item.find(CONTENT, "encoded");
        let content = whole.or_else(|| item.find(&item.namespace, "description"));
        self.content = content.map(Element::content);
        let foreign = item.elements().filter(|child| is_foreign(child, &item.namespace));
        self.foreign.extend(foreign.cloned());
        for child in item.elements().filter(|child| child.namespace == item.namespace) {
            let value = |name| child.attribute(name).map(ToOwned::to_owned);
            if child.name == "category" {
                self.categories.push(child.content().trim().to_owned());
            } else if child.name == "enclosure" {
                let address = value("url").unwrap_or_default();
                let (media, length) = (value("type"), value("length"));
                self.enclosures.push(Enclosure { address, media, length });
            } else if child.name == "source" {
                let title = child.content().trim().to_owned();
                self.source = value("url").map(|address| (title, address));
            }
        }
    }

    /// Of what a card says: no content.
    pub fn of_card(card: &Card) -> Self {
        Self {
            title: card.title.clone(),
            link: card.link.clone(),
            published: card.published,
            updated: card.updated,
            author: card.author.clone(),
            ..Self::default()
        }
    }

    /// As the element of an entry in the target's format, without id.
    pub fn element(&self, target: &Target<'_>, seen: Option<Time>) -> Element {
        let space = target.namespace;
        let mut entry = Element::new(space, target.entry());
        entry.push(Element::new(space, "title").text(&self.title));
        match target.family {
            Family::Atom => self.fill_atom(&mut entry, space, seen),
            Family::Rss => self.fill_rss(&mut entry, space),
        }
        for foreign in &self.foreign {
            entry.push(foreign.clone());
        }
        entry
    }

    fn fill_atom(&self, entry: &mut Element, space: &str, seen: Option<Time>) {
        let simple = |name: &str, text: &str| Element::new(space, name).text(text);
        let linked = |relation: &str, address: &str| {
            Element::new(space, "link").with("rel", relation).with("href", address)
        };
        if let Some(link) = &self.link {
            entry.push(linked("alternate", link));
        }
        if let Some(updated) = self.updated.or(self.published).or(seen) {
            entry.push(simple("updated", &updated.to_string()));
        }
        if let Some(published) = self.published {
            entry.push(simple("published", &published.to_string()));
        }
        if let Some(author) = &self.author {
            entry.push(Element::new(space, "author").child(simple("name", author)));
        }
        for category in &self.categories {
            entry.push(Element::new(space, "category").with("term", category));
        }
        for enclosure in &self.enclosures {
            let link = linked("enclosure", &enclosure.address);
            entry.push(enclosure.describe(link));
        }
        if let Some((title, address)) = &self.source {
            let source = Element::new(space, "source");
            let source = source.child(simple("id", address)).child(simple("title", title));
            entry.push(source.child(linked("self", address)));
        }
        if let Some(content) = &self.content {
            entry.push(simple("content", content).with("type", "html"));
        }
    }

    fn fill_rss(&self, item: &mut Element, space: &str) {
        let simple = |name: &str, text: &str| Element::new(space, name).text(text);
        if let Some(link) = &self.link {
            item.push(simple("link", link));
        }
        if let Some(date) = self.published.or(self.updated) {
            item.push(simple("pubDate", &date.rfc822()));
        }
        if let Some(author) = &self.author {
            // RSS wants an electronic mail address in `author`.
            let mut creator = Element::new(DUBLIN_CORE, "creator").text(author);
            creator.prefix = "dc".to_owned();
            item.push(creator);
        }
        for category in &self.categories {
            item.push(simple("category", category));
        }
        for enclosure in &self.enclosures {
            let element = Element::new(space, "enclosure").with("url", &enclosure.address);
            item.push(enclosure.describe(element));
        }
        if let Some((title, address)) = &self.source {
            item.push(simple("source", title).with("url", address));
        }
        if let Some(content) = &self.content {
            item.push(simple("description", content));
        }
    }
}

impl Enclosure {
    /// Adds type and length, which both families write alike.
    fn describe(&self, mut element: Element) -> Element {
        for (name, value) in [("type", &self.media), ("length", &self.length)] {
            if let Some(value) = value {
                element.set(name, value);
            }
        }
        element
    }
}

/// The feed that an entry was taken over from (RFC 4287 section 4.2.11).
fn atom_source(source: &Element) -> Option<(String, String)> {
    let mut links = source.elements().filter(|child| child.is(ATOM, "link"));
    let own = links.find(|link| link.attribute("rel") == Some("self"));
    let address = own.and_then(|link| link.attribute("href")).map(ToOwned::to_owned);
    let address = address.or_else(|| source.find(ATOM, "id").map(Element::content))?;
    let title = source.find(ATOM, "title").map(Element::content).unwrap_or_default();
    Some((title, address))
}

/// Whether an element belongs to neither family and says nothing that is converted: author, date and
/// content are.
fn is_foreign(child: &Element, own: &str) -> bool {
    let is_converted = match child.namespace.as_str() {
        ATOM => true,
        DUBLIN_CORE => matches!(child.name.as_str(), "creator" | "date"),
        CONTENT => child.name == "encoded",
        other => other == own,
    };
    !is_converted && !child.namespace.is_empty()
}

/// The content, else the summary, of an Atom 1.0 entry (RFC 4287 sections 3.1.1 and 4.1.3).
fn atom_content(entry: &Element) -> Option<String> {
    let found = entry
        .find(ATOM, "content")
        .filter(|content| content.attribute("src").is_none())
        .or_else(|| entry.find(ATOM, "summary"))?;
    match found.attribute("type").unwrap_or("text") {
        "html" | "text/html" => Some(found.content()),
        "xhtml" => Some(tree::html(found)),
        "text" | "text/plain" => {
            let mut html = String::new();
            escape::text(&mut html, &found.content());
            Some(html)
        }
        _ => None,
    }
}
