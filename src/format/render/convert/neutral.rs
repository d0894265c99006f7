//! What an entry says, in no format: the step between two families.

use super::author::{self, Person};
use super::category::{Categories, Category};
use super::{atom03, json_feed, read_entry};
use crate::render::references::{self, Base};
use tidegate_core::model::{Card, Family, Format, Markup, Time};
use tidegate_core::xml;
use tidegate_core::xml::address;
use tidegate_core::xml::html::plain_text;
use tidegate_core::xml::ns::{ATOM, CONTENT, DC, SLASH, THREADING};
use tidegate_core::xml::tree::{self, Attribute, Element, Node};

/// An entry without its format. All its references are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Neutral {
    /// The title as plain text; empty where there is none.
    pub title: String,
    /// The address of its page.
    pub link: Option<String>,
    /// When it was published.
    pub published: Option<Time>,
    /// When it was updated.
    pub updated: Option<Time>,
    /// Its authors.
    pub authors: Vec<Person>,
    /// Who else had a part in it.
    pub contributors: Vec<Person>,
    /// Its content, else its summary.
    pub content: Option<Text>,
    /// Its summary, where that is not its content.
    pub summary: Option<Text>,
    /// Its categories.
    pub categories: Vec<Category>,
    /// Its enclosures.
    pub enclosures: Vec<Enclosure>,
    /// The address of the page with its comments, and how many there are.
    pub comments: Option<(String, Option<String>)>,
    /// Whose rights are in it.
    pub rights: Option<String>,
    /// The language of its own.
    pub language: Option<String>,
    /// The feed that it was taken over from: its title, and its address.
    pub source: Option<(String, String)>,
    /// Its links that are none of those above, as elements of Atom.
    pub links: Vec<Element>,
    /// Attributes of neither family on the entry itself.
    pub attributes: Vec<Attribute>,
    /// Elements of neither family, as they are.
    pub foreign: Vec<Element>,
}

/// A text with its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// HTML.
    Html(String),
    /// Without markup.
    Plain(String),
}

impl Text {
    /// As HTML.
    pub fn html(&self) -> String {
        match self {
            Self::Html(html) => html.clone(),
            Self::Plain(text) => {
                let mut html = String::new();
                xml::push_text(&mut html, text);
                html
            }
        }
    }

    /// Without markup.
    pub fn plain(&self) -> String {
        match self {
            Self::Html(html) => plain_text(html),
            Self::Plain(text) => text.clone(),
        }
    }

    fn is_blank(&self) -> bool {
        let (Self::Html(text) | Self::Plain(text)) = self;
        text.trim().is_empty()
    }
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
    /// Its title.
    pub title: Option<String>,
}

impl Neutral {
    /// Of an entry in any format; `base` is where its relative references lead.
    pub fn of(markup: &Markup, base: &Base) -> Self {
        let mut neutral = Self::of_card(&markup.card);
        let entry = match markup.format {
            Format::JsonFeed => json_feed::entry(markup, None),
            Format::Atom03 => atom03::entry(markup, None),
            _ => read_entry(markup),
        };
        let Some(mut entry) = entry else { return neutral };
        let own = match markup.format.family() {
            Family::Atom => ATOM.to_owned(),
            Family::Rss => entry.namespace.clone(),
        };
        references::make_absolute(&mut entry, &own, base);
        let guid = entry.find(&own, "guid").filter(|_| own != ATOM);
        let permalink = guid.and_then(|guid| relative_permalink(guid, base));
        let mut reading = Reading { own, permalink, ..Reading::default() };
        for node in std::mem::take(&mut entry.children) {
            if let Node::Element(child) = node {
                reading.child(child);
            }
        }
        let foreign = entry.attributes.iter().filter(|attribute| !attribute.namespace.is_empty());
        neutral.attributes = foreign.cloned().collect();
        let said = entry.inherited().find(|attribute| attribute.name == "lang");
        neutral.language = said.map(|said| said.value.clone());
        neutral.settle(reading);
        neutral
    }

    /// Of what a card says: no content.
    pub fn of_card(card: &Card) -> Self {
        Self {
            title: card.title.clone(),
            link: card.link.clone(),
            published: card.published,
            updated: card.updated,
            authors: card.author.as_deref().map(Person::named).into_iter().collect(),
            ..Self::default()
        }
    }

    /// Takes what was read where there is more than one place for it.
    fn settle(&mut self, reading: Reading) {
        let Reading { own, entry, creators, authors, source_authors, .. } = reading;
        let mut texts = [reading.whole, reading.content, reading.description, reading.summary];
        if own == ATOM {
            // There a module's word for it comes second.
            texts.swap(0, 1);
        }
        let mut people = creators;
        let is_named = !people.is_empty();
        for author in authors {
            // The bare address of somebody who has a name already.
            let is_mail = author.email.is_none() && author.name.contains('@');
            if !(is_named && is_mail) {
                author::add(&mut people, author);
            }
        }
        if people.is_empty() {
            people = std::mem::take(&mut self.authors);
        }
        if people.is_empty() {
            // RFC 4287 section 4.2.1: the source's authors are those of an entry without any.
            people = source_authors;
        }
        let mut texts = texts.into_iter().flatten().filter(|text| !text.is_blank());
        let content = texts.next();
        let words = content.as_ref().map(Text::html);
        let same =
            |text: &Text| words.as_deref().is_some_and(|words| words.trim() == text.html().trim());
        let summary = texts.find(|text| !same(text));
        let link = self.link.take().or(reading.alternate).or(reading.permalink);
        let language = self.language.take().or(entry.language);
        let link = link.map(address::encoded);
        let mut links = entry.links;
        let addresses = links.iter_mut().flat_map(|link| &mut link.attributes);
        for address in addresses.filter(|part| part.namespace.is_empty() && part.name == "href") {
            address.value = address::encoded(std::mem::take(&mut address.value));
        }
        links.retain(|other| {
            other.attribute("rel") != Some("alternate")
                || other.attribute("href") != link.as_deref()
        });
        *self = Self {
            title: std::mem::take(&mut self.title),
            published: self.published,
            updated: self.updated,
            attributes: std::mem::take(&mut self.attributes),
            authors: people,
            content,
            summary,
            link,
            language,
            links,
            categories: reading.categories.into_vec(),
            ..entry
        };
        for enclosure in &mut self.enclosures {
            enclosure.address = address::encoded(std::mem::take(&mut enclosure.address));
        }
        for address in self.comments.iter_mut().map(|(address, _)| address) {
            *address = address::encoded(std::mem::take(address));
        }
        if let (Some((_, count)), Some(said)) = (&mut self.comments, reading.count) {
            count.get_or_insert(said);
        }
    }
}

/// What is read of an entry's elements, before it is known which of them count.
#[derive(Debug, Default)]
struct Reading {
    /// The namespace of the format's own elements.
    own: String,
    entry: Neutral,
    categories: Categories,
    /// `dc:creator`, then the authors by the format's own means.
    creators: Vec<Person>,
    authors: Vec<Person>,
    source_authors: Vec<Person>,
    /// `content:encoded`, Atom's content, RSS's description, Atom's summary.
    whole: Option<Text>,
    content: Option<Text>,
    description: Option<Text>,
    summary: Option<Text>,
    alternate: Option<String>,
    /// The address that a `guid` is which is relative.
    permalink: Option<String>,
    /// `slash:comments`.
    count: Option<String>,
}

impl Reading {
    fn child(&mut self, child: Element) {
        if child.namespace == ATOM {
            self.atom(&child);
        } else if child.namespace == self.own {
            self.rss(&child);
        } else {
            self.module(child);
        }
    }

    fn atom(&mut self, child: &Element) {
        let value = |name| child.attribute(name).map(ToOwned::to_owned);
        let entry = &mut self.entry;
        match child.name.as_str() {
            "link" => self.link(child),
            "author" => self.authors.extend(Person::of_atom(child)),
            "contributor" => entry.contributors.extend(Person::of_atom(child)),
            "category" => {
                let term = value("term").unwrap_or_default();
                let (scheme, label) = (value("scheme"), value("label"));
                self.categories.add(Category { term, scheme, label });
            }
            "content" => match child.attribute("src") {
                Some(address) => {
                    let (address, media) = (address.to_owned(), value("type"));
                    entry.enclosures.push(Enclosure { address, media, ..Enclosure::default() });
                }
                None => self.content = self.content.take().or_else(|| text(child)),
            },
            "summary" => self.summary = self.summary.take().or_else(|| text(child)),
            "rights" => entry.rights = text(child).map(|rights| rights.plain()),
            "source" => {
                entry.source = atom_source(child);
                self.source_authors = author::named(child, "author");
            }
            _ => {}
        }
    }

    fn link(&mut self, link: &Element) {
        let value = |name| link.attribute(name).map(ToOwned::to_owned);
        let Some(address) = value("href") else { return };
        let media = value("type");
        let is_page = media.as_deref().is_none_or(|media| media.contains("html"));
        match link.attribute("rel").unwrap_or("alternate") {
            "enclosure" => {
                let (length, title) = (value("length"), value("title"));
                self.entry.enclosures.push(Enclosure { address, media, length, title });
            }
            "replies" if is_page && self.entry.comments.is_none() => {
                let counted =
                    link.attributes.iter().find(|a| a.namespace == THREADING && a.name == "count");
                self.entry.comments = Some((address, counted.map(|a| a.value.clone())));
            }
            // Where this very entry is had as Atom.
            "self" => {}
            relation => {
                if relation == "alternate" && is_page {
                    self.alternate.get_or_insert(address);
                }
                let mut link = link.clone();
                link.prefix = "atom".to_owned();
                if link.attribute("rel").is_none() {
                    link.set("rel", "alternate");
                }
                self.entry.links.push(link);
            }
        }
    }

    fn rss(&mut self, child: &Element) {
        let value = |name| child.attribute(name).map(ToOwned::to_owned);
        let said = || Some(child.content().trim().to_owned()).filter(|text| !text.is_empty());
        let entry = &mut self.entry;
        match child.name.as_str() {
            "author" => self.authors.extend(said().as_deref().and_then(Person::of_rss)),
            "category" => {
                let (term, scheme) = (said().unwrap_or_default(), value("domain"));
                self.categories.add(Category { term, scheme, label: None });
            }
            "comments" => entry.comments = said().map(|address| (address, None)),
            "description" => {
                self.description.get_or_insert(Text::Html(tree::escaped_html(child)));
            }
            "enclosure" => {
                let (media, length) = (value("type"), value("length"));
                let address = value("url").unwrap_or_default();
                entry.enclosures.push(Enclosure { address, media, length, title: None });
            }
            "source" => {
                entry.source = value("url").map(|address| (said().unwrap_or_default(), address));
            }
            _ => {}
        }
    }

    /// What is said by the means of a module that both families share.
    fn module(&mut self, child: Element) {
        let said = || Some(child.content().trim().to_owned()).filter(|text| !text.is_empty());
        let entry = &mut self.entry;
        match (child.namespace.as_str(), child.name.as_str()) {
            (CONTENT, "encoded") => {
                self.whole.get_or_insert(Text::Html(tree::escaped_html(&child)));
            }
            (DC, "creator") => {
                author::add(&mut self.creators, Person::named(&child.content()));
            }
            (DC, "contributor") => {
                author::add(&mut entry.contributors, Person::named(&child.content()));
            }
            (DC, "rights") => entry.rights = entry.rights.take().or_else(said),
            (DC, "language") => entry.language = said(),
            // Dates are told by the card.
            (DC, "date") | ("", _) => {}
            (SLASH, "comments") => {
                self.count = said();
                entry.foreign.push(child);
            }
            _ => entry.foreign.push(child),
        }
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

/// The address that a `guid` is, where it is a relative one: said to be a permalink, or a path.
pub fn relative_permalink(guid: &Element, base: &Base) -> Option<String> {
    let written = guid.content();
    let says = guid.attribute("isPermaLink").map(|says| says.trim().to_ascii_lowercase());
    let is_path = ["/", "./", "../"].iter().any(|start| written.trim().starts_with(start));
    let is_permalink = match says.as_deref() {
        Some("true") => true,
        Some(_) => false,
        // By the text it would be one, but many write nothing and mean any text.
        None => is_path,
    };
    base.resolve(&written).filter(|_| is_permalink)
}

/// A text of Atom 1.0 (RFC 4287 sections 3.1.1 and 4.1.3); `None` where it is of a media type that no
/// other format has a place for.
fn text(element: &Element) -> Option<Text> {
    match element.attribute("type").unwrap_or("text").trim().to_ascii_lowercase().as_str() {
        "html" | "text/html" => Some(Text::Html(tree::escaped_html(element))),
        "xhtml" | "application/xhtml+xml" => Some(Text::Html(tree::html(element))),
        "text" | "text/plain" | "" => Some(Text::Plain(element.content())),
        _ => None,
    }
}
