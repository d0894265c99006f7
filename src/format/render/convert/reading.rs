//! What an entry says, in no format: what is written of it in other formats, and shown.

use super::author::{self, Person};
use super::element::{Categories, Category};
use super::{atom03, json_feed, read_words};
use crate::render::references::{self, Base};
use tidegate_core::model::{Card, Family, Format, Markup, Time};
use tidegate_core::xml;
use tidegate_core::xml::address;
use tidegate_core::xml::html::plain_text;
use tidegate_core::xml::ns::{ATOM, CONTENT, DC, SLASH, THREADING};
use tidegate_core::xml::tree::{self, Attribute, Element, Node};

/// An entry without its format. All its references are absolute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
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
    /// For how many seconds it plays.
    pub seconds: Option<u64>,
}

impl Reading {
    /// Of an entry in any format; `base` is where its relative references lead.
    pub fn of(markup: &Markup, base: &Base) -> Self {
        let card = Self::of_card(&markup.card);
        let entry = match markup.format {
            Format::JsonFeed => json_feed::entry(markup, None),
            Format::Atom03 => atom03::entry(markup, None),
            _ => read_words(markup),
        };
        let Some(mut entry) = entry else { return card };
        let own = match markup.format.family() {
            Family::Atom => ATOM.to_owned(),
            Family::Rss => entry.namespace.clone(),
        };
        references::make_absolute(&mut entry, &own, base);
        let guid = entry.find(&own, "guid").filter(|_| own != ATOM);
        let permalink = guid.and_then(|guid| relative_permalink(guid, base));
        let foreign = entry.attributes.iter().filter(|attribute| !attribute.namespace.is_empty());
        let language = entry.own("lang").map(str::to_owned);
        let entry_reading = Self { attributes: foreign.cloned().collect(), language, ..card };
        let mut reader =
            EntryReader { own, entry: entry_reading, permalink, ..EntryReader::default() };
        for node in entry.children {
            if let Node::Element(child) = node {
                reader.child(child);
            }
        }
        reader.finish()
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
}

/// What is read of an entry's elements, before it is known which of them count.
#[derive(Debug, Default)]
struct EntryReader {
    /// The namespace of the format's own elements.
    own: String,
    /// With what the card says.
    entry: Reading,
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
    /// `dc:language`.
    language: Option<String>,
    /// `slash:comments`.
    count: Option<String>,
}

impl EntryReader {
    /// What counts where there is more than one place for it.
    fn finish(self) -> Reading {
        let Self { mut entry, creators: mut people, .. } = self;
        let is_named = !people.is_empty();
        for author in self.authors {
            // The bare address of somebody who has a name already.
            let is_mail = author.email.is_none() && author.name.contains('@');
            if !(is_named && is_mail) {
                author::add(&mut people, author);
            }
        }
        // RFC 4287 section 4.2.1: the source's authors are those of an entry without any.
        let known = [people, entry.authors, self.source_authors];
        entry.authors = known.into_iter().find(|known| !known.is_empty()).unwrap_or_default();
        let mut texts = [self.whole, self.content, self.description, self.summary];
        if self.own == ATOM {
            // There a module's word for it comes second.
            texts.swap(0, 1);
        }
        let mut texts = texts.into_iter().flatten().filter(|text| !text.is_blank());
        entry.content = texts.next();
        let words = entry.content.as_ref().map(Text::html).unwrap_or_default();
        entry.summary = texts.find(|text| words.trim() != text.html().trim());
        entry.link = entry.link.or(self.alternate).or(self.permalink);
        entry.language = entry.language.or(self.language);
        entry.categories = self.categories.into_vec();
        if let (Some((_, count)), Some(said)) = (&mut entry.comments, self.count) {
            count.get_or_insert(said);
        }
        let parts = entry.links.iter_mut().flat_map(|link| &mut link.attributes);
        let links = parts.filter(|part| part.namespace.is_empty() && part.name == "href");
        let addresses = (entry.link.iter_mut())
            .chain(links.map(|part| &mut part.value))
            .chain(entry.enclosures.iter_mut().map(|enclosure| &mut enclosure.address))
            .chain(entry.comments.iter_mut().map(|(address, _)| address));
        for address in addresses {
            *address = address::encoded(std::mem::take(address));
        }
        let page = entry.link.as_deref();
        entry.links.retain(|other| {
            other.attribute("rel") != Some("alternate") || other.attribute("href") != page
        });
        entry
    }

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
        let entry = &mut self.entry;
        match child.name.as_str() {
            "link" => self.link(child),
            "author" => self.authors.extend(Person::of_atom(child)),
            "contributor" => entry.contributors.extend(Person::of_atom(child)),
            "category" => self.categories.add(Category::of_atom(child)),
            "content" => match child.value("src") {
                Some(address) => {
                    let media = child.value("type");
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
        let Some(address) = link.value("href") else { return };
        let media = link.value("type");
        let is_page = media.as_deref().is_none_or(|media| media.contains("html"));
        match link.attribute("rel").unwrap_or("alternate") {
            "enclosure" => {
                let (length, title) = (link.value("length"), link.value("title"));
                let file = Enclosure { address, media, length, title, seconds: None };
                self.entry.enclosures.push(file);
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
                let mut link = link.clone().prefixed("atom");
                if link.attribute("rel").is_none() {
                    link.set("rel", "alternate");
                }
                self.entry.links.push(link);
            }
        }
    }

    fn rss(&mut self, child: &Element) {
        let entry = &mut self.entry;
        match child.name.as_str() {
            "author" => self.authors.extend(child.words().as_deref().and_then(Person::of_rss)),
            "category" => self.categories.add(Category::of_rss(child)),
            "comments" => entry.comments = child.words().map(|address| (address, None)),
            "description" => {
                self.description.get_or_insert(Text::Html(tree::escaped_html(child)));
            }
            "enclosure" => {
                let (media, length) = (child.value("type"), child.value("length"));
                let address = child.value("url").unwrap_or_default();
                let file = Enclosure { address, media, length, ..Enclosure::default() };
                entry.enclosures.push(file);
            }
            "source" => {
                let title = || child.words().unwrap_or_default();
                entry.source = child.value("url").map(|address| (title(), address));
            }
            _ => {}
        }
    }

    /// What is said by the means of a module that both families share.
    fn module(&mut self, child: Element) {
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
            (DC, "rights") => entry.rights = entry.rights.take().or_else(|| child.words()),
            (DC, "language") => self.language = child.words(),
            // Dates are told by the card.
            (DC, "date") | ("", _) => {}
            (SLASH, "comments") => {
                self.count = child.words();
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
    let address = own.and_then(|link| link.value("href"));
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

/// A text of Atom 1.0 (RFC 4287 sections 3.1.1 and 4.1.3); `None` where it is of a media type that
/// no other format has a place for.
fn text(element: &Element) -> Option<Text> {
    match element.attribute("type").unwrap_or("text").trim().to_ascii_lowercase().as_str() {
        "html" | "text/html" => Some(Text::Html(tree::escaped_html(element))),
        "xhtml" | "application/xhtml+xml" => Some(Text::Html(tree::html(element))),
        "text" | "text/plain" | "" => Some(Text::Plain(element.content())),
        _ => None,
    }
}
